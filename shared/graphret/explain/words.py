"""A hit in words: why it was found, and the part of it that fits the question."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import zip_longest
from typing import Any, TypeAlias

from markdown_it import MarkdownIt
from markdown_it.token import Token

from graphret.search.analysis import Analyzer
from graphret.search.fields import NodeText
from graphret.stores.base import GraphStore
from graphret.text import normalize_name, tokenize
from graphret.types import ROW_KEYS, Evidence, Hit, Node

#: A piece of text, and whether it is marked: a word of the question, or the answer in
#: guillemets.
Piece: TypeAlias = tuple[str, bool]
#: Finds nodes by their ids; unknown ids are left out.
Lookup: TypeAlias = Callable[[Sequence[str]], Mapping[str, Node]]

#: What the number next to a hit means.
RELEVANCE = (
    "relevance, 0 … 1: how much of the question a hit answers; it can be compared"
    " between questions and methods"
)
_SNIPPET = 220  # characters
_NAMES_SHOWN = 3
#: Signs of Markdown; a text with none of them needs no parser.
_MARKDOWN = re.compile(r"[*_`#\[|\\]|^ {0,3}[>+-]", re.MULTILINE)


def reasons(hit: Hit) -> list[tuple[str, str]]:
    """Return the kind of each piece of evidence of a hit, and the evidence in words."""
    return [(evidence.kind, _reason(evidence)) for evidence in hit.evidence]


def _reason(evidence: Evidence) -> str:
    if evidence.kind == "seed":
        return "found by the question" + (
            f", rank {evidence.rank}" if evidence.rank is not None else ""
        )
    if evidence.kind == "neighbor":
        arrow = {"in": "→", "out": "←"}.get(evidence.direction or "", "↔")
        return (
            f"{edge_text(evidence.relation, evidence.properties)} {arrow}"
            f" {evidence.source_name or evidence.source}"
        )
    return "fills a free place" if evidence.kind == "fill" else str(evidence)


def edge_text(relation: str | None, properties: Mapping[str, Any]) -> str:
    """Return an edge in a few words: its relation, and what its properties say.

    Examples
    --------
    >>> properties = {"name": "Ann Ames", "column": "Director", "source_row": 3}
    >>> edge_text("MENTIONS", properties)
    'MENTIONS “Ann Ames” · row 3 · column “Director”'
    """
    parts = [relation or "LINK"]
    if isinstance(name := properties.get("name"), str) and name:
        parts[0] += f" “{name}”"
    if isinstance(
        shared := properties.get("shared_entities") or properties.get("entities"), list
    ):
        parts.append("both name " + _quoted(shared))
    if rows := [
        str(row) for key in ROW_KEYS if isinstance(row := properties.get(key), int)
    ]:
        parts.append(f"row{'s' * (len(rows) > 1)} {' = '.join(rows)}")
    if isinstance(column := properties.get("column"), str) and column:
        parts.append(f"column “{column}”")
    if isinstance(columns := properties.get("columns"), list):
        pairs = [
            pair if isinstance(pair, str) else " = ".join(dict.fromkeys(map(str, pair)))
            for pair in columns
        ]
        parts.append("columns " + _quoted(pairs))
    if isinstance(signals := properties.get("signals"), Mapping) and signals:
        parts.append(
            ", ".join(
                f"{str(name).replace('_', ' ')} {value:.2f}"
                for name, value in signals.items()
            )
        )
    return " · ".join(parts)


def _quoted(names: Sequence[Any]) -> str:
    return ", ".join(f"“{name}”" for name in names[:_NAMES_SHOWN])


class Marker:
    """Marks the words of a question in texts, also inflected, and cuts snippets there.

    Parameters
    ----------
    question
        Its stop words are not marked.
    answer
        Is marked «so» where a text has it word for word, in any case; snippets prefer
        it.
    """

    def __init__(self, question: str, answer: str = "") -> None:
        self._analyzer = Analyzer()
        self._terms = frozenset(self._analyzer.of_query(question))
        # Without an answer the pattern matches nowhere.
        literal = r"\s+".join(map(re.escape, answer.split())) or "(?!)"
        self._answer = re.compile(rf"(?<!\w){literal}(?!\w)", re.IGNORECASE)

    def answered(self, node: Node) -> bool:
        """Whether the name or the text of a node has the answer word for word."""
        return any(map(self._answer.search, (node.name, text_of(node))))

    def pieces(self, text: str) -> list[Piece]:
        """Return a text in pieces, with the question's words and the answer marked."""
        answers = [match.span() for match in self._answer.finditer(text)]
        within = {at for start, end in answers for at in range(start, end)}
        words = [place for place in self._places(text) if place[0] not in within]
        out: list[Piece] = []
        done = 0
        for start, end in sorted([*answers, *words]):
            out.append((text[done:start], False))
            out.append(
                (f"«{text[start:end]}»" if start in within else text[start:end], True)
            )
            done = end
        return [piece for piece in (*out, (text[done:], False)) if piece[0]]

    def snippet(self, node: Node, *, row: int | None = None) -> list[Piece]:
        """Return the 220 characters of a node that fit the question best, marked.

        `row` is the row of a table segment that an edge is about, from 0; it is shown
        unless another row fits better.
        """
        rows = node.properties.get("table_rows")
        if not isinstance(rows, list) or not rows:
            text = " ".join(without_markdown(text_of(node)).split())
        else:
            header = [str(cell) for cell in node.properties.get("table_header") or ()]
            texts = [_row_text(header, cells) for cells in rows]
            best = max(
                range(len(rows)),
                key=lambda i: (self._fit(texts[i])[0], i == row, self._fit(texts[i])),
            )
            text = texts[best]
        return self.pieces(self._window(text))

    def _places(self, text: str) -> list[tuple[int, int]]:
        return [
            (a, b)
            for word, a, b in tokenize(text)
            if any(term in self._terms for term in self._analyzer(word))
        ]

    def _fit(self, text: str) -> tuple[bool, int]:
        """Return whether a text has the answer, and how many words of the question."""
        return self._answer.search(text) is not None, len(
            self._terms.intersection(self._analyzer(text))
        )

    def _window(self, text: str) -> str:
        width = _SNIPPET
        places = [match.start() for match in self._answer.finditer(text)] + [
            start for start, _ in self._places(text)
        ]
        starts = [
            0,
            *(max(0, min(place - width // 5, len(text) - width)) for place in places),
        ]
        start = max(starts, key=lambda s: (*self._fit(text[s : s + width]), -s))
        start = 0 if not start else text.find(" ", start) + 1
        return ("… " if start else "") + _shortened(text[start:])


def text_of(node: Node) -> str:
    """Return the text of a node or, as in other people's graphs, of its properties."""
    lists = {
        name: value if isinstance(value, list) else [value]
        for name, value in sorted(node.properties.items())
    }
    texts = [
        name
        for name, value in lists.items()
        if value and all(isinstance(part, str) for part in value)
    ]
    return node.text or NodeText(properties=tuple(texts)).text(replace(node, name=""))


def without_markdown(text: str) -> str:
    """Return a text without Markdown's marks and link targets.

    Numbers of lists, code and HTML stay as they are.
    """
    if not _MARKDOWN.search(text):
        return text
    lines = []
    for token in _markdown_parser().parse(text):
        if token.type == "list_item_open":  # it has the number in a numbered list
            lines.append(token.info + token.markup if token.info else "")
        elif token.type == "inline":
            lines.append("".join(map(_inline_text, token.children or ())))
        else:
            lines.append(token.content)
    return "\n".join(filter(None, lines))


def _inline_text(token: Token) -> str:
    return "\n" if token.type in ("softbreak", "hardbreak") else token.content


@cache
def _markdown_parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


def relevance_text(hit: Hit) -> str:
    """Return the relevance of a hit, empty where a retrieval did not give it one."""
    return "" if hit.relevance is None else f"{hit.relevance:.2f}"


def store_lookup(store: GraphStore) -> Lookup:
    """Return a lookup of the nodes of a store."""
    return lambda ids: {node.id: node for node in store.get(ids) if node is not None}


def nodes_of_hits(hits: Iterable[Hit], lookup: Lookup | None = None) -> dict[str, Node]:
    """Return the nodes of hits and those at the other ends of their edges, by id."""
    hits = list(hits)
    hit_nodes = {hit.id: hit.node for hit in hits}
    other_ends = dict.fromkeys(
        evidence.source
        for hit in hits
        for evidence in hit.evidence
        if evidence.source and evidence.source not in hit_nodes
    )
    other_nodes = lookup(list(other_ends)) if lookup and other_ends else {}
    return {**other_nodes, **hit_nodes}


def evidence_row(hit: Hit) -> int | None:
    """Return the row of a table segment that its edge is about, from 0."""
    for evidence in hit.evidence:
        # The direction is that of the edge at the other node.
        row = evidence.properties.get(ROW_KEYS[evidence.direction == "out"])
        if isinstance(row, int) and "table_rows" in hit.node.properties:
            return row - 1 - int(hit.node.properties.get("table_row_start", 0))
    return None


def name_of(node: Node) -> str:
    """Return a node's name or id, with the section and rows of a table segment."""
    name, properties = node.called, node.properties
    if "table_rows" not in properties:
        return name
    section = properties.get("section")
    if (
        isinstance(section, str)
        and section
        and normalize_name(section) != normalize_name(name)
    ):
        name = f"{name} · {section}"
    start, end = properties.get("table_row_start"), properties.get("table_row_end")
    return (
        f"{name} · rows {start + 1}–{end}"
        if isinstance(start, int) and start > 0
        else name
    )


def _row_text(header: Sequence[str], cells: Sequence[Any]) -> str:
    """Return the cells of a row with the names of their columns."""
    named_cells = zip_longest(header, map(str, cells), fillvalue="")
    return " · ".join(
        f"{name}: {cell}" if name else cell for name, cell in named_cells if cell
    )


def _shortened(text: str) -> str:
    if len(text) <= _SNIPPET:
        return text
    cut = text.rfind(" ", _SNIPPET // 2, _SNIPPET)
    return text[: cut if cut > 0 else _SNIPPET].rstrip() + " …"
