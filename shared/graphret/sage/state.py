"""One state of a `SageGraph`, never changed: what a retrieval sees throughout, and the
state after a change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from graphret.corpus import MetadataExtractor, describe, from_chunks
from graphret.corpus.chunks import number_of, source_of, without_derived
from graphret.corpus.metadata import EXTRACTED, without
from graphret.corpus.readers import file_id
from graphret.edges import EdgeTable, joined
from graphret.errors import InvalidInput
from graphret.executors import LOCAL, Executor
from graphret.nodes import NodeTable
from graphret.sage.joins import join_links
from graphret.sage.links import name_links
from graphret.sage.settings import LinkSettings
from graphret.sage.shared_names import shared_name_links
from graphret.sage.similarity import SimilarityIndex
from graphret.sage.structure import structure_edges
from graphret.search.hybrid import HybridIndex
from graphret.stores.memory import Graph
from graphret.types import Edge, Node


@dataclass(frozen=True)
class SageState:
    """One state of a graph.

    Parameters
    ----------
    graph, index
        The nodes, all edges, and the text index over the same table.
    similarity
        What similarity edges are computed from; `None` for a copy that can be read and
        not changed.
    explicit
        The edges that were given, which are among those of `graph`.
    """

    graph: Graph
    index: HybridIndex
    similarity: SimilarityIndex | None
    explicit: EdgeTable

    @classmethod
    def connected(
        cls,
        index: HybridIndex,
        similarity: SimilarityIndex,
        explicit: EdgeTable,
        links: LinkSettings,
        executor: Executor = LOCAL,
    ) -> SageState:
        """Return the state with every edge: similarity, structure, names, keys, and
        those that were given.
        """
        table = index.table
        by_name = [
            name_links(table, links, executor),
            shared_name_links(table, similarity.entities, links),
        ]
        found = [
            similarity.edges(),
            structure_edges(table),
            *by_name,
            join_links(table, links),
        ]
        return cls(
            Graph(table, joined(len(table), [*found, explicit])),
            index,
            similarity,
            explicit,
        )

    @property
    def changeable(self) -> SimilarityIndex:
        """What similarity edges are computed from; an `InvalidInput` where the state is
        a copy.
        """
        if self.similarity is None:
            raise InvalidInput(
                "a view of a graph, or one opened without its encoder, cannot be"
                " changed or saved"
            )
        return self.similarity

    def nodes_of(self, items: Iterable[str]) -> dict[str, set[str]]:
        """Return for each id those nodes that have it, or were made of an item or a
        file that has.
        """
        found: dict[str, set[str]] = {item: set() for item in items}
        for node_id, given in zip(
            self.graph.nodes.ids, self.graph.nodes.properties, strict=True
        ):
            source = str(given.get("source_id", node_id))
            for one in {
                node_id,
                source,
                given.get("chunk_document"),
                file_id(source),
            } & found.keys():
                found[one].add(node_id)
        return found

    def changed(
        self,
        fresh: Sequence[Node],
        gone: Collection[str],
        edges: Sequence[Edge],
        metadata: MetadataExtractor | None,
        links: LinkSettings,
    ) -> SageState:
        """Return the state with nodes and edges added, nodes in place of those of their
        ids, and others taken away.

        Parameters
        ----------
        fresh, gone
            The nodes that come, and the ids of those that go.
        edges
            Explicit edges that come.
        metadata
            What describes the nodes that are new; all of them, where it reads the whole
            corpus.
        """
        similarity, text = self.changeable, self.index.lexical.text
        replaced = {*gone, *(node.id for node in fresh)}
        kept = {node.id: node for node in self.graph.nodes if node.id not in replaced}
        nodes = [*kept.values(), *fresh]
        if metadata is not None:
            whole = metadata.corpus_wide
            nodes = (
                describe(nodes, metadata)
                if whole
                else [*kept.values(), *describe(fresh, metadata)]
            )
        table = NodeTable.of(nodes)
        # what is found in a corpus may change with the corpus
        reread = {
            n.id
            for n in nodes
            if n.id not in kept or text.fields(n) != text.fields(kept[n.id])
        }
        index = self.index.changed(table, reread)
        present, old = set(table.ids), self.explicit.edges(self.graph.nodes.ids)
        given = EdgeTable.of(
            table,
            [*(e for e in old if e.source in present and e.target in present), *edges],
        )
        return SageState.connected(
            index, similarity.changed(table, reread, index.dense), given, links
        )


@dataclass(frozen=True, slots=True)
class Changes:
    """The ids of the nodes that a refresh added, changed and deleted, in order."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()

    @classmethod
    def of(cls, fresh: Sequence[Node], state: SageState) -> Changes:
        """Return how chunks differ from the nodes of a graph, ids that the chunks lack
        counting as deleted.
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
    """Return chunks that are added, and those of the same sources in the graph which
    these make different.
    """
    new = {node.id: node for node in fresh}
    nodes = state.graph.nodes
    sources = {
        source_of(node)
        for node in (
            *fresh,
            *(node for node in nodes if node.id in new or node.id in gone),
        )
    }
    known = [
        without(node, EXTRACTED)
        for node in nodes
        if node.id not in gone and source_of(node) in sources
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
