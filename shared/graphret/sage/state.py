"""What a `SageGraph` is made of: settings, one state of nodes, edges and indexes, and the state after a change."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from graphret.corpus import MetadataExtractor, describe, from_chunks, without_extracted
from graphret.corpus.chunks import number_of, source_of, without_derived
from graphret.corpus.readers import file_id
from graphret.edges import EdgeTable
from graphret.errors import InvalidInput
from graphret.nodes import NodeTable
from graphret.sage.edge_rows import join
from graphret.sage.joins import join_links
from graphret.sage.links import LinkSettings, name_links
from graphret.sage.settings import SimilaritySettings
from graphret.sage.similarity_index import SimilarityIndex
from graphret.search.analysis import Analyzer
from graphret.search.bm25 import BM25Settings
from graphret.search.dense import HnswSettings
from graphret.search.fields import NodeText
from graphret.search.hybrid import HybridIndex
from graphret.stores.memory import Graph
from graphret.types import Edge, Node


@dataclass(frozen=True)
class SageSettings:
    """How a `SageGraph` is built; the defaults are the paper's, where it has one.

    Parameters
    ----------
    rows_per_segment, balance_segments
        Rows of a table segment, 5 to 10 (SAGE, section 2.1 A), and whether a short last one is evened out.
    alpha
        Share of BM25 in the hybrid score (SAGE, appendix E: 0.6).
    text, analyzer, bm25, hnsw
        How nodes are indexed.
    similarity
        How similarity edges are chosen.
    links
        When a name counts as said.
    """

    rows_per_segment: int = 10
    balance_segments: bool = True
    alpha: float = 0.6
    text: NodeText = field(default_factory=NodeText)
    analyzer: Analyzer = field(default_factory=Analyzer)
    bm25: BM25Settings = field(default_factory=BM25Settings)
    hnsw: HnswSettings = field(default_factory=HnswSettings)
    similarity: SimilaritySettings = field(default_factory=SimilaritySettings)
    links: LinkSettings = field(default_factory=LinkSettings)


@dataclass(frozen=True)
class SageState:
    """One state of a graph, never changed: what a retrieval sees from beginning to end."""

    graph: Graph
    index: HybridIndex
    similarity: SimilarityIndex | None
    explicit: EdgeTable


def connected(
    index: HybridIndex, similarity: SimilarityIndex, explicit: EdgeTable, settings: SageSettings
) -> SageState:
    """Return the state with every edge that the settings ask for."""
    table = index.table
    links = name_links(table, settings.links), join_links(table, settings.links)
    edges = join(len(table), [similarity.edges(), *links, explicit])
    return SageState(Graph(table, edges), index, similarity, explicit)


def nodes_of(items: Collection[str], state: SageState) -> set[str]:
    """Return the ids of the nodes that have one of these ids, or were made of an item or a file that has."""
    wanted = set(items)
    return {
        node_id
        for node_id, properties in zip(state.graph.nodes.ids, state.graph.nodes.properties, strict=True)
        if not wanted.isdisjoint((node_id, source := properties.get("source_id"), properties.get("chunk_document")))
        or file_id(str(source)) in wanted
    }


@dataclass(frozen=True, slots=True)
class Changes:
    """The ids of the nodes that a refresh added, changed and deleted, in order."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.deleted)

    def __str__(self) -> str:
        return f"{len(self.added)} added, {len(self.changed)} changed, {len(self.deleted)} deleted"


def bare(node: Node) -> Node:
    """Return a node without what graphret found out about it."""
    return without_derived(without_extracted(node))


def changes(fresh: Sequence[Node], state: SageState) -> Changes:
    """Return how chunks differ from the nodes of a graph, ids that the chunks lack counting as deleted."""
    known = {node.id: node for node in state.graph.nodes}
    added = [node.id for node in fresh if node.id not in known]
    other = [node.id for node in fresh if node.id in known and bare(known[node.id]) != bare(node)]
    return Changes(tuple(added), tuple(other), tuple(known.keys() - {node.id for node in fresh}))


def with_siblings(fresh: Sequence[Node], state: SageState, gone: Collection[str] = ()) -> list[Node]:
    """Return chunks that are added, and those of the same sources in the graph which these make different."""
    new = {node.id: node for node in fresh}
    nodes = state.graph.nodes
    sources = {source_of(node) for node in (*fresh, *(node for node in nodes if node.id in new or node.id in gone))}
    known = [without_extracted(node) for node in nodes if node.id not in gone and source_of(node) in sources]
    known.sort(key=lambda node: number_of(node, "chunk_index"))  # a chunk without a place keeps that of before
    before = {node.id: node for node in known}
    listed = [new.get(node.id, node) for node in known] + [node for node in fresh if node.id not in before]
    return [node for node in from_chunks(listed) if node.id in new or before[node.id] != node]


def changed(
    state: SageState,
    settings: SageSettings,
    metadata: MetadataExtractor | None,
    fresh: Sequence[Node],
    gone: Collection[str],
    edges: Sequence[Edge],
) -> SageState:
    """Return the state with nodes and edges added, nodes in place of those of their ids, and others taken away.

    Parameters
    ----------
    metadata
        What describes the nodes that are new; all of them, where it reads the whole corpus.
    fresh, gone
        The nodes that come, and the ids of those that go.
    edges
        Explicit edges that come.
    """
    if state.similarity is None:
        raise InvalidInput("a view of a graph, or one read from a store, cannot be changed")
    old = state.graph.nodes
    new_ids = {node.id for node in fresh}
    kept = [node for node in old if node.id not in gone and node.id not in new_ids]
    nodes = [*kept, *fresh]
    if metadata is not None:
        if metadata.corpus_wide:
            nodes = describe([without_extracted(node) for node in nodes], metadata)
        else:
            nodes = [*kept, *describe(fresh, metadata)]
    table = NodeTable.of(nodes)
    text = settings.text
    reread = set(new_ids)
    for node in nodes:  # what is found in a corpus may change with the corpus
        if node.id not in reread and text.fields(node) != text.fields(old[int(old.find([node.id])[0])]):
            reread.add(node.id)
    index = state.index.changed(table, reread)
    vectors = index.dense.vectors if index.dense else None
    similarity = state.similarity.changed(table, table.ids.tolist(), content_vectors=vectors)
    present = set(table.ids)
    explicit = [e for e in state.explicit.edges(old.ids) if e.source in present and e.target in present]
    return connected(index, similarity, EdgeTable.of(table, [*explicit, *edges]), settings)
