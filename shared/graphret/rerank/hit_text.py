"""`HitText`: how a reranker reads a hit, with the node by which it was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from graphret.search.fields import NodeText
from graphret.types import Evidence, Hit, Node


@dataclass(frozen=True)
class HitText:
    """Turn hits into the texts that a reranker scores: the node by which each was found, then the node itself.

    What answers a question of several steps does not look relevant alone: it is read together with the row or the first
    words of the node that an edge or a path leads from. That node is the evidence's own, or one of the hits.

    Parameters
    ----------
    node
        How a node becomes text. ``NodeText(neighbors=10).bound(store)`` adds the names of its neighbours by relation,
        at most 10 each (GRASP, appendix B.6).
    words
        Longest text and property of a node, in words (GRASP, appendix A: 300 to 512 tokens).
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
        return ["\n".join(filter(None, self._parts(hit, text, known))) for hit, text in zip(hits, own, strict=True)]

    def _parts(self, hit: Hit, text: str, known: Mapping[str, Node]) -> list[str]:
        label = f"type: {hit.node.label}" if self.labelled else ""
        walked = [one for one in hit.evidence if one.relation and one.source and one.source != hit.id]
        if not walked or not self.evidence_words:
            return [label, text]
        other = (edge := walked[-1]).node or known.get(edge.source or "")
        lead = _lead(edge, other, self.evidence_words) if other else edge.source_name or ""
        return [f"found by: {edge}", lead, "", label, text] if self.labelled else [lead, text]

    def _cut(self, node: Node) -> Node:
        """The node with its text and its properties cut to so many words each."""
        said = {key: _first_words(v, self.words) if isinstance(v, str) else v for key, v in node.properties.items()}
        return replace(node, text=_first_words(node.text, self.words), properties=said)


def _lead(edge: Evidence, node: Node, words: int) -> str:
    """The row of a table that an edge is about, else the first words of a node."""
    rows, header = node.properties.get("table_rows"), node.properties.get("table_header") or []
    row = edge.properties.get("source_row" if edge.direction == "out" else "target_row")
    if isinstance(rows, Sequence) and isinstance(row, int):
        at = row - 1 - int(node.properties.get("table_row_start") or 0)
        if 0 <= at < len(rows):
            cells = [f"{name}: {cell}" if name else f"{cell}" for name, cell in zip_longest(header, rows[at]) if cell]
            return _first_words(f"{node.name}. {'; '.join(cells)}", words)
    said = node.text if node.text.startswith(node.name) else f"{node.name}. {node.text}"
    return _first_words(said, words)


def _first_words(text: str, words: int) -> str:
    """The first words of a text, as they stand."""
    found = text.split(maxsplit=words)
    return text if len(found) <= words else text[: len(text) - len(found[-1])].rstrip() + " …"
