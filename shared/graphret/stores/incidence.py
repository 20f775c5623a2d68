"""The edges of one node in columns, and the stores that read them so."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from graphret.columns import Strings, no_records, no_strings
from graphret.nodes import NodeTable
from graphret.types import Edge, Node


@dataclass(frozen=True, slots=True)
class Incidence:
    """The edges that touch a node, a loop once, as an edge that leaves it.

    Parameters
    ----------
    nodes
        Its neighbours by id, and perhaps others, with their labels.
    others
        The position in `nodes` of the other end of each edge, ``(m,)``.
    relation
        The position of its relation in `relations`, ``(m,)``.
    outgoing
        Whether it leaves the node, ``(m,)``.
    weight
        ``(m,)``.
    relations
        The names of the relations.
    """

    nodes: NodeTable
    others: NDArray[Any]
    relation: NDArray[Any]
    outgoing: NDArray[np.bool_]
    weight: NDArray[Any]
    relations: Sequence[str]

    def __len__(self) -> int:
        return len(self.others)

    def reached(self, ids: Iterable[str]) -> set[str]:
        """Return those of some nodes to which there is an edge; the edges must be by the other end."""
        wanted = list(ids)
        at = self.nodes.find(wanted)
        edges = np.diff([np.searchsorted(self.others, at, side) for side in ("left", "right")], axis=0)[0]
        return {one for one, place, n in zip(wanted, at.tolist(), edges.tolist(), strict=True) if place >= 0 and n}

    def at(self, chosen: NDArray[Any]) -> Incidence:
        """Return some of the edges, by a mask or by position."""
        return replace(
            self,
            others=self.others[chosen],
            relation=self.relation[chosen],
            outgoing=self.outgoing[chosen],
            weight=self.weight[chosen],
        )


@runtime_checkable
class Incident(Protocol):
    """A store that reads the edges of a node in columns."""

    def state(self) -> Hashable | None:
        """Return what stays the same as long as nothing is written; `None` where that is not known."""
        ...

    def degree(self, node: str) -> int:
        """Return how many edges touch a node, in a view those to nodes that it hides included; a loop may count twice.

        It says how much there is to read, and must not be shown.
        """
        ...

    def incidence(self, node: str) -> Incidence | None:
        """Return the edges of a node; `None` where the store can give them by `neighbors` alone."""
        ...


@dataclass(frozen=True, slots=True)
class Part:
    """Edges of one relation and direction, each with the other end's id and labels, and its weight, ``(m,)``."""

    relation: str
    outgoing: bool
    ids: Sequence[str]
    labels: NDArray[Any]
    label_sets: Sequence[tuple[str, ...]]
    weights: NDArray[np.float64]


def assembled(parts: Sequence[Part]) -> Incidence | None:
    """Return the edges of a node of their parts; `None` where two nodes have one id, but not the same labels."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ids = pa.chunked_array([pa.array(part.ids, pa.large_string()) for part in parts], pa.large_string())
    coded = ids.combine_chunks().dictionary_encode()
    order = pc.sort_indices(coded.dictionary).to_numpy()
    n = len(order)
    rank = np.empty(n, dtype=np.int32)
    rank[order] = np.arange(n, dtype=np.int32)
    others = rank[coded.indices.to_numpy()]
    sets: dict[tuple[str, ...], int] = {}
    codes = [
        np.asarray([sets.setdefault(labels, len(sets)) for labels in part.label_sets], dtype=np.int32)[part.labels]
        for part in parts
    ]
    labels = np.zeros(n, dtype=np.int32)
    of_edge = np.concatenate([*codes, np.empty(0, np.int32)])
    labels[others] = of_edge
    if not np.array_equal(labels[others], of_edge):
        return None
    table = NodeTable(
        Strings(coded.dictionary.take(order)), no_strings(n), no_strings(n), labels, [*sets] or [()], no_records(n)
    )
    relations = sorted({part.relation for part in parts})
    lengths = [len(part.ids) for part in parts]
    relation = np.repeat(np.asarray([relations.index(part.relation) for part in parts], dtype=np.int16), lengths)
    outgoing = np.repeat(np.asarray([part.outgoing for part in parts], dtype=bool), lengths)
    weight = np.concatenate([*(part.weights for part in parts), np.empty(0)])
    by_id = np.argsort(others, kind="stable")
    return Incidence(table, others, relation, outgoing, weight, relations).at(by_id)


def rejoined(
    links: Incidence, node: str, others: Collection[str], edges: Sequence[Edge], nodes: Iterable[Node]
) -> Incidence:
    """Return the edges of a node after those to some others, and these themselves, were written.

    It is `links` itself where nothing of it is different.

    Parameters
    ----------
    links
        The edges before, by the other end.
    others
        The others; the node is none of them. Those to which no edge is left stay in the table of nodes.
    edges
        The edges between the node and the others now.
    nodes
        Those of their ends, or of the neighbours, that may not be in `links`, or bear other labels there.
    """
    table, column = links.nodes, links.others
    ends = [edge.target if edge.source == node else edge.source for edge in edges]
    given = list(nodes)
    known = table.find([one.id for one in given])
    there = [(at, one.labels) for at, one in zip(known.tolist(), given, strict=True) if at >= 0]
    other = [(at, labels) for at, labels in there if table.label_sets[table.labels[at]] != labels]
    if other:
        sets = list(dict.fromkeys([*table.label_sets, *(labels for _, labels in other)]))
        codes = table.labels.copy()
        for at, labels in other:
            codes[at] = sets.index(labels)
        table = NodeTable(table.ids, table.names, table.texts, codes, sets, table.properties)
    fresh = [Node(one.id, one.labels) for one, at in zip(given, known.tolist(), strict=True) if at < 0]
    if table is links.nodes and not fresh and not others:
        return links
    if fresh:
        table, moved = table.merged(NodeTable.of(fresh))
        column = moved.astype(column.dtype)[column]  # in the same order, since none goes
    code = {name: i for i, name in enumerate(dict.fromkeys([*links.relations, *(edge.relation for edge in edges)]))}
    at = table.find(ends)
    order = np.argsort(at, kind="stable").tolist()
    places, ordered = at[order], [edges[i] for i in order]
    touched = np.unique(np.concatenate([places, table.find(list(others))]))
    touched = touched[touched >= 0]
    spans = [np.searchsorted(found, touched, side) for found in (column, places) for side in ("left", "right")]
    stretches = np.stack(spans, axis=1).tolist()

    def spliced(old: NDArray[Any], new: Any) -> NDArray[Any]:
        """Put what is new of each of the touched in place of what was there; far quicker than to sort all."""
        written, end, pieces = np.asarray(new, dtype=old.dtype), 0, []
        for start, stop, first, last in stretches:
            pieces += [old[end:start], written[first:last]]
            end = stop
        return np.concatenate([*pieces, old[end:]])

    return Incidence(
        table,
        spliced(column, places),
        spliced(links.relation, [code[edge.relation] for edge in ordered]),
        spliced(links.outgoing, [edge.source == node for edge in ordered]),
        spliced(links.weight, [edge.weight for edge in ordered]),
        list(code),
    )
