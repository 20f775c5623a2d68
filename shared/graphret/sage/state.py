"""One state of a `SageGraph`, never changed, and the state after a change.

A retrieval sees one state throughout.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from graphret.change import Change
from graphret.corpus import Document, Item, MetadataExtractor, describe, from_chunks
from graphret.corpus.chunkers import Span
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
from graphret.numeric import unique
from graphret.sage.connections import Connections
from graphret.sage.similarity import Thresholds
from graphret.search.hybrid import HybridIndex
from graphret.stores.memory import Graph
from graphret.types import Edge, Node

_PLACE = {"chunk_index", "chunk_start", "chunk_end"}


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

    def first_nodes_of(self, items: Iterable[str]) -> dict[str, str]:
        """Return the node of each id, or the first that was made of its item or file.

        Unknown ids are left out.
        """
        first = {}
        for item, ids in self.nodes_of(items).items():
            if item in ids:
                first[item] = item
            elif ids:
                nodes = self.graph.nodes.at(self.graph.nodes.positions(sorted(ids)))
                of_item = min(nodes, key=lambda node: number_of(node, "chunk_index"))
                first[item] = of_item.id
        return first

    def changed(
        self,
        fresh: Sequence[Node],
        gone: Collection[str],
        edges: Sequence[Edge],
        metadata: MetadataExtractor | None,
    ) -> tuple[SageState, Touched]:
        """Return the state with nodes and edges added, and other nodes taken away.

        Nodes take the place of those that have their ids; one that is held as it comes
        stays as it is. With the state comes what differs.

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
        if not (altered or gone or edges):
            return self, Touched()
        change = Change.of(nodes, NodeTable.of(altered), gone)
        reread = np.sort(change.after.positions(self._reread(altered)))
        index = self.index.changed(change.only(reread))
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
        if metadata is None:
            return self._differing(fresh), None
        if not metadata.corpus_wide:
            return self._differing(describe(fresh, metadata)), None
        nodes = self.graph.nodes
        if not depends_on_names_alone(metadata):
            away = {*gone, *(node.id for node in fresh)}
            kept = [node for node in nodes if node.id not in away]
            return self._differing(describe([*kept, *fresh], metadata)), None
        fresh = self._differing(undescribed(fresh), as_given=True)
        new = {node.id for node in fresh}
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

    def _differing(
        self, nodes: Iterable[Node], *, as_given: bool = False
    ) -> list[Node]:
        """Return those of some nodes that are not held as they are.

        `as_given` compares them with what was given of those that are held, without
        what an extractor found.
        """
        listed = [*nodes]
        held = filter(None, self.graph.nodes.get([node.id for node in listed]))
        known = {node.id: node for node in (undescribed(held) if as_given else held)}
        return [node for node in listed if known.get(node.id) != node]

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


def known_cuts(items: Iterable[Item], state: SageState) -> dict[str, list[Span]]:
    """Return how those texts are cut that documents still have, by the text."""
    texts = {item.id: item.text for item in items if isinstance(item, Document)}
    positions = [position for _, position in state.connections.facts.of_items(texts)]
    chunks: dict[str, list[Node]] = defaultdict(list)
    for node in state.graph.nodes.at(unique(np.asarray(positions, np.int64))):
        source = node.properties.get("source_id")
        if source in texts and node.properties.keys() >= _PLACE:
            chunks[source].append(node)
    cuts = {}
    for source, found in chunks.items():
        found.sort(key=lambda node: number_of(node, "chunk_index"))
        spans = [
            (n.properties["chunk_start"], n.properties["chunk_end"]) for n in found
        ]
        if _is_cut_so(texts[source], spans, [node.text for node in found]):
            cuts[texts[source]] = spans
    return cuts


def _is_cut_so(text: str, spans: Sequence[Span], chunks: Sequence[str]) -> bool:
    """Whether chunks are the spans of a text, and lose nothing but whitespace."""
    begins, ends = zip(*spans, strict=True)
    between = zip((0, *ends), (*begins, len(text)), strict=True)
    return [text[begin:end] for begin, end in spans] == chunks and not any(
        text[begin:end].strip() for begin, end in between
    )


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
