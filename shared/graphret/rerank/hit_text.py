"""`HitText`: how a reranker reads a hit, with the node by which it was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest
from typing import Protocol

from graphret.search.fields import NodeText
from graphret.stores.base import GraphStore
from graphret.types import Hit, Node


class HitTexts(Protocol):
    """Turns hits into what a reranker reads."""

    def texts(self, hits: Sequence[Hit]) -> list[str]:
        """Return the text of each hit."""
        ...


@dataclass(frozen=True)
class KeyValueText:
    """Turn hits into lines of keys and values: their type, their fields, and the names
    of their neighbours by relation (GRASP, appendix B.6).

    Parameters
    ----------
    store
        Where neighbours are looked up.
    properties
        The fields besides name and text; all that are texts by default.
    words
        Longest value of a field (appendix A: 300 tokens, 512 on MAG).
    neighbors
        Names a relation, in either direction (B.6: 10).
    """

    store: GraphStore
    properties: Sequence[str] | None = None
    words: int = 300
    neighbors: int = 10

    def texts(self, hits: Sequence[Hit]) -> list[str]:
        """Return the text of each hit, with two reads of the store."""
        related = self._related([hit.id for hit in hits])
        return [
            "\n".join(
                [
                    f"[Type] {hit.node.label}",
                    *self._fields(hit.node),
                    *(
                        f"[{relation}] {'; '.join(names)}"
                        for relation, names in sorted(related[hit.id].items())
                    ),
                ]
            )
            for hit in hits
        ]

    def _fields(self, node: Node) -> list[str]:
        chosen = node.properties if self.properties is None else self.properties
        given = {key: node.properties.get(key) for key in chosen}
        said = {"name": node.name, "text": node.text, **given}
        return [
            f"[{key}] {_first_words(value, self.words)}"
            for key, value in said.items()
            if isinstance(value, str) and value.strip()
        ]

    def _related(self, ids: Sequence[str]) -> dict[str, dict[str, list[str]]]:
        """Return the names of each node's neighbours by relation."""
        found: dict[str, dict[str, list[str]]] = {one: {} for one in ids}
        for edge in self.store.neighbors(list(found)):
            for own, other in (edge.source, edge.target), (edge.target, edge.source):
                if own in found and other != own:
                    others = found[own].setdefault(edge.relation, [])
                    if other not in others and len(others) < self.neighbors:
                        others.append(other)
        groups = [others for own in found.values() for others in own.values()]
        wanted = list(dict.fromkeys(chain.from_iterable(groups)))
        nodes = zip(wanted, self.store.get(wanted) if wanted else [], strict=True)
        names = {other: other if node is None else node.called for other, node in nodes}
        for others in groups:
            others[:] = [names[other] for other in others]
        return found


@dataclass(frozen=True)
class HitText:
    """Turn hits into the texts that a reranker scores: the node by which each was
    found, then the node itself.

    What answers a question of several steps does not look relevant alone: it is read
    behind the row or the first words of the node that an edge leads from, which is the
    evidence's own or one of the hits, and behind its own row, if any.

    Parameters
    ----------
    node
        How a node becomes text. ``NodeText(neighbors=10).bound(store)`` adds the names
        of its neighbours by relation, at most 10 each (GRASP, appendix B.6).
    words
        Longest text and property of a node, in words (GRASP, appendix A: 300 to 512
        tokens).
    evidence_words
        How much is read of the node by which a hit was found; 0 reads the hit alone.
    labelled
        Whether the node's label and the edge are said too.
    """

    node: NodeText = field(default_factory=NodeText)
    words: int = 300
    evidence_words: int = 60
    labelled: bool = False

    def texts(self, hits: Sequence[Hit]) -> list[str]:
        """Return the text of each hit."""
        known = {hit.id: hit.node for hit in hits}
        own = self.node.all_texts([self._cut(hit.node) for hit in hits])
        return [
            "\n".join(filter(None, self._parts(hit, text, known)))
            for hit, text in zip(hits, own, strict=True)
        ]

    def _parts(self, hit: Hit, text: str, known: Mapping[str, Node]) -> list[str]:
        label = f"type: {hit.node.label}" if self.labelled else ""
        walked = [
            one
            for one in hit.evidence
            if one.relation and one.source and one.source != hit.id
        ]
        if not walked or not self.evidence_words:
            return [label, text]
        other = (
            (edge := walked[-1]).node
            or known.get(edge.source or "")
            or Node("", name=edge.source_name or "")
        )
        ours, theirs = (
            ("target_row", "source_row")
            if edge.direction == "out"
            else ("source_row", "target_row")
        )
        said = (
            other.text
            if other.text.startswith(other.name)
            else f"{other.name}. {other.text}"
        )
        lead = _row(other, edge.properties.get(theirs)) or said
        parts = [
            _first_words(part, self.evidence_words)
            for part in (_row(hit.node, edge.properties.get(ours)), lead)
        ]
        return (
            [f"found by: {edge}", *parts, label, text]
            if self.labelled
            else [*parts, text]
        )

    def _cut(self, node: Node) -> Node:
        """The node with its text and its properties cut to so many words each."""
        said = {
            key: _first_words(v, self.words) if isinstance(v, str) else v
            for key, v in node.properties.items()
        }
        return replace(node, text=_first_words(node.text, self.words), properties=said)


def _row(node: Node, number: object) -> str:
    """A row of a table, by its number in the whole of it, with the names of its
    columns; nothing where it has none.
    """
    rows, header = (
        node.properties.get("table_rows"),
        node.properties.get("table_header") or [],
    )
    at = (
        number - 1 - int(node.properties.get("table_row_start") or 0)
        if isinstance(number, int)
        else -1
    )
    if not isinstance(rows, Sequence) or not 0 <= at < len(rows):
        return ""
    cells = [
        f"{name}: {cell}" if name else f"{cell}"
        for name, cell in zip_longest(header, rows[at])
        if cell
    ]
    return f"{node.name}. {'; '.join(cells)}"


def _first_words(text: str, words: int) -> str:
    found = text.split(maxsplit=words)
    return (
        text
        if len(found) <= words
        else text[: len(text) - len(found[-1])].rstrip() + " …"
    )
