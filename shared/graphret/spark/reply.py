"""The Cypher query in what a model replied."""

from __future__ import annotations

import html
import re
from itertools import islice

from graphret.llm.reply_text import answer_candidates

# Of a reply, of its answer, and places where a query may begin.
_MOST_CHARS, _MOST_ANSWER_CHARS, _MOST_OPENINGS = 1_000_000, 20_000, 16
_FENCE = re.compile(
    r"(?P<fence>`{3,}|~{3,})(?:[\w+-]+(?=[ \t]*\n)|(?i:cypher|json|sql)\b)?"
    r"(?P<code>.*?)(?:(?P=fence)|\Z)",
    re.DOTALL,
)
_PATTERN = (
    r"MATCH\s*(?:\w+\s*=\s*)?(?:\(|(?:all)?shortestPath\b|(?:ANY|ALL|SHORTEST)\b)"
)
# What opens a query at the start of a line in any case, and within a line in capitals.
_OPENING = re.compile(
    rf"^[ \t]*(?:(?:OPTIONAL[ \t]+)?{_PATTERN}|UNWIND\s+\S+.*\bAS\b"
    r"|CALL\s*(?:\{|\(|[\w.]+\()|WITH\s+(?!th\w+\s|an?\s|it\s).+\bAS\b"
    r"|(?:CREATE|MERGE)\s*\(|(?-i:RETURN)\s)",
    re.IGNORECASE | re.MULTILINE,
)
_OPENING_WITHIN = re.compile(
    rf"(?:\bOPTIONAL\s+)?\b{_PATTERN}|\bUNWIND\s(?=\s*[\[$])|\bCALL\s*\{{"
)
_RETURN = re.compile(r"\bRETURN\b", re.IGNORECASE)
_KEYWORDS = (
    "MATCH|OPTIONAL|WHERE|WITH|RETURN|ORDER|LIMIT|SKIP|OFFSET|UNWIND|CALL|UNION|AND|OR"
    "|XOR|NOT|IN|IS|NULL|AS|BY|ASC|DESC|ASCENDING|DESCENDING|CASE|WHEN|THEN|ELSE|END"
    "|DISTINCT|STARTS|ENDS|CONTAINS|EXISTS|COUNT|YIELD|CREATE|MERGE|SET|DELETE|DETACH"
    "|REMOVE|ON|FOREACH"
)
_CLAUSE = re.compile(rf"\s*(?:(?:{_KEYWORDS})\b|//|[)}}|,(\[-])", re.IGNORECASE)
# Three words in a row of which none is Cypher's are a remark, as are these headings.
_WORD = rf"(?!(?:{_KEYWORDS})\b)[^\W\d_][\w'’]*"
_REMARK = re.compile(
    rf"[ \t]*[*#>_(-]{{0,3}}[ \t]*(?:{_WORD}[ \t]+){{2}}{_WORD}(?![\w.(])"
    r"|[ \t]*[*#>_]{0,3}(?:notes?|remarks?|explanation|output|results?)[*_]{0,3}:"
    r"|[ \t]*(?:\d+[.)]\s|[-*•][ \t]+[^\W\d])",
    re.IGNORECASE,
)
# A query up to its end: a semicolon, a fence, a tag, the end of a sentence. Remarks
# behind it that Cypher does not know are left out of its lines.
_PART = re.compile(
    r"""
    '(?:[^'\\]|\\.)*(?:'|\Z) | "(?:[^"\\]|\\.)*(?:"|\Z) | `[^`\n]+`
  | //[^\n]* | /\*.*?(?:\*/|\Z)
  | (?P<end>;|`{3}|~{3}|</\w+>|(?<=[\w)\]}])\.(?=\s|\Z))
  | (?P<remark>\s(?:\#|--[ ](?=\w)|—|–[ ])[^\n]*)
  | (?P<line>\n\s*)
  | (?P<returns>\bRETURN\b)
  | (?P<opens>[({\[]) | (?P<closes>[)}\]])
    """,
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)
_CLOSING = {"“": "”", "‘": "’"}
_INLINE_CODE = re.compile(r"(?:[:.|&(\[ ]`[^`\n]+`|[^`])*")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_STRING = re.compile(r"'(?:[^'\\]|\\.)*(?:'|\Z)|\"(?:[^\"\\]|\\.)*(?:\"|\Z)", re.DOTALL)
_HTML_ESCAPE = re.compile(r"&(?:lt|gt|quot|apos|#0*3[49]|#x2[27]);")
_STRAIGHT_QUOTES = str.maketrans("‘’‚“”„", "'''\"\"\"")


def bare_query(reply: str) -> str:
    """Return the first Cypher query in a reply, without what stands around it.

    A query that returns something comes before one that does not; empty if there is
    none.

    Examples
    --------
    >>> bare_query("Here you are:\\n```cypher\\nMATCH (n) RETURN n;\\n```\\nAll nodes.")
    'MATCH (n) RETURN n'
    """
    begun = ""
    for candidate in answer_candidates(reply[:_MOST_CHARS]):
        answer = candidate[:_MOST_ANSWER_CHARS]
        for text in [*(fence["code"] for fence in _FENCE.finditer(answer)), answer]:
            for opening in _openings(text):
                query = _query_at(text, opening.start())
                if _RETURN.search(query):
                    return query
                begun = begun or query
    return begun


def _openings(text: str) -> list[re.Match[str]]:
    """Where queries may begin, in the order of the text."""
    within = islice(_OPENING_WITHIN.finditer(text), _MOST_OPENINGS)
    openings = [*islice(_OPENING.finditer(text), _MOST_OPENINGS), *within]
    return sorted(openings, key=lambda opening: opening.start())


def _query_at(text: str, start: int) -> str:
    query = _unquoted(text[start:], quote=text[start - 1 : start])
    if _HTML_ESCAPE.search(_STRING.sub("", query)):
        query = html.unescape(query)
    if not _STRING.search(query):
        query = query.translate(_STRAIGHT_QUOTES)
    return _without_remarks(query.strip())


def _unquoted(query: str, quote: str) -> str:
    """The query up to the quote that closes one before it, as in broken JSON."""
    if quote == "`":
        code = _INLINE_CODE.match(query)
        return code[0] if code else query
    if quote not in ('"', "'", *_CLOSING):
        return query
    returns = _RETURN.search(query)
    closing = re.compile(rf"{_CLOSING.get(quote, quote)}(?=[\s,.;:)}}\]]|\Z)")
    end = closing.search(query, returns.end() if returns else 0)
    query = query[: end.start()] if end else query
    return re.sub(
        rf"\\([\\/nrt{quote}])", lambda match: _ESCAPED.get(match[1], match[1]), query
    )


def _without_remarks(query: str) -> str:
    """The query up to its end, without blank lines and remarks at the ends of lines."""
    parts, start, returned, depth = list[str](), 0, False, 0
    for part in _PART.finditer(query):
        kind = part.lastgroup
        returned = returned or kind == "returns"
        depth += (kind == "opens") - (kind == "closes")
        over = kind == "line" and _is_over(query, part, returned)
        if over or kind == "end" or depth < 0:
            query = query[: part.start()]
            break
        if kind == "remark" or (kind == "line" and part[0].count("\n") > 1):
            parts.append(query[start : part.start()] + ("\n" if kind == "line" else ""))
            start = part.end()
    return "".join([*parts, query[start:]]).strip()


def _is_over(query: str, line_end: re.Match[str], returned: bool) -> bool:
    """Whether a remark follows: words, or a paragraph that no clause begins."""
    next_line = line_end.end()
    if returned and _REMARK.match(query, next_line):
        return True
    blank = line_end[0].count("\n") > 1
    return blank and not _CLAUSE.match(query, next_line)
