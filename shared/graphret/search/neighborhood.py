"""The names of nodes' neighbours, read from a store a batch at a time."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from graphret.types import Edge, Node
from graphret.where import Where, WhereLike

BLOCK = 2_000


class NodeSource(Protocol):
    """What search needs of a store; every `GraphStore` is one."""

    def get(self, ids: Sequence[str]) -> list[Node | None]: ...

    def neighbors(
        self,
        ids: Sequence[str],
        *,
        relations: Collection[str] | None = None,
        labels: Collection[str] | None = None,
        where: WhereLike = None,
        direction: str = "both",
        limit: int | None = None,
    ) -> list[Edge]: ...

    def nodes(self, labels: Collection[str] | None = None, where: WhereLike = None) -> Iterator[list[Node]]: ...

    def view(self, where: WhereLike) -> NodeSource: ...


@dataclass(frozen=True, slots=True)
class Related:
    """The neighbours of a node by one relation in one direction: some names, and how many there are besides."""

    relation: str
    outgoing: bool
    names: tuple[str, ...]
    more: int = 0

    def __str__(self) -> str:
        """``directed_by: A, B, and 37 more``; for edges that lead to the node, ``directed_by of: A``."""
        listed = ", ".join(self.names) + (f", and {self.more} more" if self.more else "")
        return f"{self.relation}{'' if self.outgoing else ' of'}: {listed}"


def related(
    source: NodeSource, ids: Sequence[str], cap: int, relations: Collection[str] | None = None, direction: str = "both"
) -> list[tuple[Related, ...]]:
    """Return the neighbours of each node by relation, outgoing edges first, with two calls of the store.

    Parameters
    ----------
    cap
        At most this many names each, by the weight of the edge, then by id. A neighbour without a name goes by its id.
    """
    asked = set(ids)
    groups: dict[str, dict[tuple[bool, str], dict[str, float]]] = {node_id: {} for node_id in ids}
    for edge in source.neighbors(ids, relations=relations, direction=direction):
        if direction != "in" and edge.source in asked:
            _add(groups[edge.source], (False, edge.relation), edge.target, edge.weight)
        if direction != "out" and edge.target in asked and (edge.source != edge.target or direction == "in"):
            _add(groups[edge.target], (True, edge.relation), edge.source, edge.weight)
    chosen = {
        node_id: {
            key: heapq.nsmallest(cap, others, key=lambda other, weights=others: (-weights[other], other))  # type: ignore[misc]
            for key, others in found.items()
        }
        for node_id, found in groups.items()
    }
    wanted = list({other: None for found in chosen.values() for others in found.values() for other in others})
    names = {
        other: node.name if node is not None and node.name else other
        for other, node in zip(wanted, source.get(wanted) if wanted else [], strict=True)
    }
    return [
        tuple(
            Related(relation, not incoming, tuple(names[other] for other in others), len(total) - len(others))
            for ((incoming, relation), others), total in sorted(
                zip(chosen[node_id].items(), groups[node_id].values(), strict=True), key=lambda pair: pair[0][0]
            )
        )
        for node_id in ids
    ]


def touching(
    source: NodeSource, ids: Sequence[str], relations: Collection[str] | None, direction: str, where: Where
) -> set[str]:
    """Return those of the nodes that have a neighbour which satisfies a condition."""
    asked, found = set(ids), set()
    for start in range(0, len(ids), BLOCK):
        block = ids[start : start + BLOCK]
        for edge in source.neighbors(block, relations=relations, direction=direction, where=where):
            found |= asked.intersection((edge.source, edge.target))
    return found


def _add(groups: dict[tuple[bool, str], dict[str, float]], key: tuple[bool, str], other: str, weight: float) -> None:
    others = groups.setdefault(key, {})
    others[other] = max(weight, others.get(other, weight))
