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
    """Turns hits into the texts that a reranker reads."""

    def texts(self, hits: Sequence[Hit]) -> list[str]:
        """Return the text of each hit."""
        ...


@dataclass(frozen=True)
class KeyValueText:
    """Turn hits into key-value lines: type, fields, and neighbours by relation.

    This is appendix B.6 of the GRASP paper.

    Parameters
    ----------
    store
        Where neighbours are looked up.
    properties
        The fields besides name and text; by default all that are texts.
    words
        The most words of a field (appendix A: 300 tokens, 512 on MAG).
    neighbors
        The most names a relation, in either direction (B.6: 10).
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
        properties = {key: node.properties.get(key) for key in chosen}
        fields = {"name": node.name, "text": node.text, **properties}
        return [
            f"[{key}] {_first_words(value, self.words)}"
            for key, value in fields.items()
            if isinstance(value, str) and value.strip()
        ]

    def _related(self, ids: Sequence[str]) -> dict[str, dict[str, list[str]]]:
        """Return the names of each node's neighbours by relation."""
        related: dict[str, dict[str, list[str]]] = {node_id: {} for node_id in ids}
        for edge in self.store.neighbors(list(related)):
            directions = (edge.source, edge.target), (edge.target, edge.source)
            for node_id, neighbor in directions:
                if node_id in related and neighbor != node_id:
                    group = related[node_id].setdefault(edge.relation, [])
                    if neighbor not in group and len(group) < self.neighbors:
                        group.append(neighbor)
        groups = [
            group for by_relation in related.values() for group in by_relation.values()
        ]
        neighbor_ids = list(dict.fromkeys(chain.from_iterable(groups)))
        nodes = self.store.get(neighbor_ids) if neighbor_ids else []
        names = {
            neighbor: neighbor if node is None else node.called
            for neighbor, node in zip(neighbor_ids, nodes, strict=True)
        }
        for group in groups:
            group[:] = [names[neighbor] for neighbor in group]
        return related


@dataclass(frozen=True)
class HitText:
    """Turn hits into the texts that a reranker scores, with the node each was found by.

    The answer to a question of several steps does not look relevant alone. So the text
    begins with the hit's row, if any, and with the row or the first words of the node
    at the other end of its edge, which is that of the evidence or one of the hits.

    Parameters
    ----------
    node
        How a node becomes text. ``NodeText(neighbors=10).bound(store)`` adds the names
        of its neighbours by relation, at most 10 each (GRASP, appendix B.6).
    words
        The most words of a node's text and of each property (GRASP, appendix A: 300 to
        512 tokens).
    evidence_words
        The most words of the node by which a hit was found; 0 reads the hit alone.
    labelled
        Whether the text has the node's label and the edge too.
    """

    node: NodeText = field(default_factory=NodeText)
    words: int = 300
    evidence_words: int = 60
    labelled: bool = False

    def texts(self, hits: Sequence[Hit]) -> list[str]:
        """Return the text of each hit."""
        nodes = {hit.id: hit.node for hit in hits}
        texts = self.node.all_texts([self._cut(hit.node) for hit in hits])
        return [
            "\n".join(filter(None, self._parts(hit, text, nodes)))
            for hit, text in zip(hits, texts, strict=True)
        ]

    def _parts(self, hit: Hit, text: str, nodes: Mapping[str, Node]) -> list[str]:
        label = f"type: {hit.node.label}" if self.labelled else ""
        walked = [
            evidence
            for evidence in hit.evidence
            if evidence.relation and evidence.source and evidence.source != hit.id
        ]
        if not walked or not self.evidence_words:
            return [label, text]
        other = (
            (edge := walked[-1]).node
            or nodes.get(edge.source or "")
            or Node("", name=edge.source_name or "")
        )
        row_key, other_row_key = (
            ("target_row", "source_row")
            if edge.direction == "out"
            else ("source_row", "target_row")
        )
        other_text = (
            other.text
            if other.text.startswith(other.name)
            else f"{other.name}. {other.text}"
        )
        lead = _row(other, edge.properties.get(other_row_key)) or other_text
        parts = [
            _first_words(part, self.evidence_words)
            for part in (_row(hit.node, edge.properties.get(row_key)), lead)
        ]
        return (
            [f"found by: {edge}", *parts, label, text]
            if self.labelled
            else [*parts, text]
        )

    def _cut(self, node: Node) -> Node:
        """Return the node with its text and properties cut to `words` each."""
        properties = {
            key: _first_words(value, self.words) if isinstance(value, str) else value
            for key, value in node.properties.items()
        }
        text = _first_words(node.text, self.words)
        return replace(node, text=text, properties=properties)


def _row(node: Node, number: object) -> str:
    """Return a row by its number in the whole table, with column names, or nothing."""
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
    parts = text.split(maxsplit=words)
    if len(parts) <= words:
        return text
    return text[: len(text) - len(parts[-1])].rstrip() + " …"
