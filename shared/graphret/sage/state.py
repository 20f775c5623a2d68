"""One state of a `SageGraph`, never changed, and the state after a change.

A retrieval sees one state throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from graphret.change import Change
from graphret.corpus import MetadataExtractor, describe, from_chunks
from graphret.corpus.chunks import number_of, source_of, without_derived
from graphret.corpus.metadata import (
    EXTRACTED,
    CorpusNames,
    depends_on_names_alone,
    describe_by,
    undescribed,
    without,
)
from graphret.edges import EdgeTable
from graphret.errors import InvalidInput
from graphret.nodes import NodeTable
from graphret.sage.connections import Connections
from graphret.sage.similarity import Thresholds
from graphret.search.hybrid import HybridIndex
from graphret.stores.memory import Graph
from graphret.types import Edge, Node


@dataclass
class Touched:
    """What differs between two states of a graph.

    Parameters
    ----------
    nodes
        The ids of the nodes that came, went or are described otherwise.
    sources
        The ids of the nodes from which other edges lead, beside these.
    """

    nodes: set[str] = field(default_factory=set)
    sources: set[str] = field(default_factory=set)

    def add(self, later: Touched) -> None:
        """Take in what a later change touches."""
        self.nodes |= later.nodes
        self.sources |= later.sources


@dataclass(frozen=True)
class SageState:
    """One state of a graph.

    Parameters
    ----------
    graph, index
        The nodes, all edges, and the text index over the same table.
    explicit
        The edges that were given, which are among those of `graph`.
    thresholds
        Those of similarity edges.
    connect
        Returns what the other edges follow from, which is read when the first change of
        a graph that was opened asks for it; `None` for a copy that can be read and not
        changed.
    """

    graph: Graph
    index: HybridIndex
    explicit: EdgeTable
    thresholds: Thresholds
    connect: Callable[[], Connections] | None

    @classmethod
    def connected(
        cls,
        index: HybridIndex,
        connections: Connections,
        explicit: EdgeTable,
    ) -> SageState:
        """Return the state with every edge."""
        return cls(
            Graph(index.table, connections.with_given(explicit)),
            index,
            explicit,
            connections.similarity.thresholds,
            connections.itself,
        )

    @property
    def connections(self) -> Connections:
        """What edges follow from; an `InvalidInput` where the state is a copy."""
        if self.connect is None:
            raise InvalidInput(
                "a view of a graph, or one opened without its encoder, cannot be"
                " changed or saved"
            )
        return self.connect()

    def nodes_of(self, items: Iterable[str]) -> dict[str, set[str]]:
        """Return for each id the nodes of that id, and those of its item or file."""
        nodes, found = self.graph.nodes, {item: set[str]() for item in items}
        for item, position in self.connections.facts.of_items(found):
            found[item].add(nodes.ids[position])
        for node in nodes.get([*found]):
            if node is not None:
                found[node.id].add(node.id)
        return found

    def changed(
        self,
        fresh: Sequence[Node],
        gone: Collection[str],
        edges: Sequence[Edge],
        metadata: MetadataExtractor | None,
    ) -> tuple[SageState, Touched]:
        """Return the state with nodes and edges added, and other nodes taken away.

        Nodes take the place of those that have their ids. With it comes what differs.

        Parameters
        ----------
        fresh, gone
            The nodes that come, and the ids of those that go.
        edges
            Explicit edges that come.
        metadata
            What describes the nodes that are new, and those whose metadata depend on
            these.
        """
        nodes = self.graph.nodes
        gone = {*gone} - {node.id for node in fresh}
        altered, names = self._described(fresh, gone, metadata)
        change = Change.of(nodes, NodeTable.of(altered), gone)
        index = self.index.changed(change.only(self._reread(altered)))
        given = self.explicit.moved(len(change.after), change.places)
        given = given.merged(EdgeTable.of(change.after, edges))
        connections = self.connections.changed(change, index.dense)
        after = SageState.connected(index, replace(connections, names=names), given)
        sources = change.after.ids.take(connections.relinked)
        return after, Touched(
            {node.id for node in altered} | gone,
            {*sources, *(edge.source for edge in edges)},
        )

    def _described(
        self,
        fresh: Sequence[Node],
        gone: Collection[str],
        metadata: MetadataExtractor | None,
    ) -> tuple[list[Node], CorpusNames | None]:
        """Return the nodes that are new or described otherwise than before.

        With them come the names of the corpus, where metadata depend on them.
        """
        if metadata is None or not metadata.corpus_wide:
            return describe(fresh, metadata) if metadata else [*fresh], None
        new = {node.id for node in fresh}
        if not depends_on_names_alone(metadata):
            kept = {n.id: n for n in self.graph.nodes if n.id not in {*new, *gone}}
            described = describe([*kept.values(), *fresh], metadata)
            return [node for node in described if kept.get(node.id) != node], None
        nodes = self.graph.nodes
        names = (
            self.connections.names or CorpusNames().changed((), undescribed(nodes))[0]
        )
        left = nodes.find([*new, *gone])
        names, differ = names.changed(
            undescribed(nodes.at(left[left >= 0])), undescribed(fresh)
        )
        others = nodes.at(np.setdiff1d(self.connections.words.saying(differ), left))
        again = zip(others, describe_by(others, names), strict=True)
        altered = [after for before, after in again if after != before]
        return [*altered, *describe_by(fresh, names)], names

    def _reread(self, altered: Sequence[Node]) -> set[str]:
        """Return the ids of those of the nodes of which an index reads another text."""
        nodes, text = self.graph.nodes, self.index.lexical.text
        before = nodes.get([node.id for node in altered])
        return {
            node.id
            for node, old in zip(altered, before, strict=True)
            if old is None or text.fields(node) != text.fields(old)
        }


@dataclass(frozen=True, slots=True)
class Changes:
    """The ids of the nodes that a refresh added, changed and deleted, in order."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()

    @classmethod
    def of(cls, fresh: Sequence[Node], state: SageState) -> Changes:
        """Return how chunks differ from the nodes of a graph.

        Ids that the chunks lack count as deleted.
        """
        known = {node.id: _bare(node) for node in state.graph.nodes}
        added = [node.id for node in fresh if node.id not in known]
        other = [
            node.id
            for node in fresh
            if node.id in known and known[node.id] != _bare(node)
        ]
        return cls(
            tuple(added),
            tuple(other),
            tuple(known.keys() - {node.id for node in fresh}),
        )

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.deleted)

    def __str__(self) -> str:
        return (
            f"{len(self.added)} added, {len(self.changed)} changed, {len(self.deleted)}"
            " deleted"
        )


def _bare(node: Node) -> Node:
    """Return a node without what graphret found out about it."""
    return without_derived(without(node, EXTRACTED))


def with_siblings(
    fresh: Sequence[Node], state: SageState, gone: Collection[str] = ()
) -> list[Node]:
    """Return the added chunks, and the siblings in the graph that they change.

    Siblings are chunks of the same source.
    """
    new = {node.id: node for node in fresh}
    nodes, facts = state.graph.nodes, state.connections.facts
    touched = nodes.find([*new, *gone])
    sources = {source_of(node) for node in (*fresh, *nodes.at(touched[touched >= 0]))}
    known = [
        without(node, EXTRACTED)
        for node in nodes.at(facts.of_kin(sources))
        if node.id not in gone
    ]
    known.sort(
        key=lambda node: number_of(node, "chunk_index")
    )  # a chunk without a place keeps that of before
    before = {node.id: node for node in known}
    listed = [new.get(node.id, node) for node in known] + [
        node for node in fresh if node.id not in before
    ]
    return [
        node
        for node in from_chunks(listed)
        if node.id in new or before[node.id] != node
    ]
