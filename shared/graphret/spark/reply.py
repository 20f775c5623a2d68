"""What a model replied, without its reasoning, remarks and end marks."""

from __future__ import annotations

import re

# Reasoning, one that was begun before the reply and one that never ended included.
_THOUGHT = re.compile(
    r"\A.*</think(?:ing)?>|<think(?:ing)?>.*\Z", re.DOTALL | re.IGNORECASE
)
_END_MARK = re.compile(r"<\|[\w ]+\|>.*|</s>.*|<end_of_turn>.*|\[/INST\].*", re.DOTALL)
_FENCE = re.compile(
    r"```(?:(?:cypher|json|sql|text|neo4j)\b)?\s*(.*?)(?:```|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_STATEMENT_END = re.compile(r";[ \t]*(?:\n|\Z)")
# Words that open a query, where something of a query follows, and those that open one
# of its clauses.
_OPENING = re.compile(
    r"^[ \t]*(?:(?:OPTIONAL["
    r" \t]+)?MATCH\s*(?:\w+\s*=\s*)?(?:\(|(?:all)?shortestPath\b|ANY\b|ALL\b)|"
    r"UNWIND\s+\S+.*\bAS\b|CALL\s*(?:\{|\(|[\w.]+\()|WITH\s+.+\bAS\b|(?:CREATE|MERGE)\s*\(|RETURN\s)",
    re.IGNORECASE | re.MULTILINE,
)
_CLAUSE = re.compile(
    r"\s*(?:(?:MATCH|OPTIONAL|WHERE|WITH|RETURN|ORDER|LIMIT|SKIP|UNWIND|CALL|UNION|AND|OR|NOT|CREATE|MERGE|SET|DELETE|"
    r"DETACH|REMOVE)\b|//|[)}|,(\[-])",
    re.IGNORECASE,
)


def bare_query(text: str) -> str:
    """Return the first Cypher query in a text, without fences, remarks around it and
    end marks; empty if none.

    Examples
    --------
    >>> bare_query("Here you are:\\n```cypher\\nMATCH (n) RETURN n;\\n```\\nIt returns
    all nodes.") 'MATCH (n) RETURN n'
    """
    text = without_chatter(text)
    for piece in [*(match[1] for match in _FENCE.finditer(text)), text]:
        opening = _OPENING.search(piece)
        if opening is not None:
            paragraphs = re.split(
                r"\n\s*\n", piece[opening.start() :].partition("```")[0]
            )
            kept = [paragraphs[0]]
            for paragraph in paragraphs[1:]:
                if not _CLAUSE.match(paragraph):
                    break
                kept.append(paragraph)
            return _STATEMENT_END.split("\n".join(kept))[0].strip()
    return ""


def without_chatter(text: str) -> str:
    return _END_MARK.sub("", _THOUGHT.sub("", text)).strip()
