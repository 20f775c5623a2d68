"""What a `SageGraph` is made of: settings, and one state of nodes, edges and indexes."""

from __future__ import annotations

from dataclasses import dataclass, field

from graphret.edges import EdgeTable
from graphret.sage.edge_rows import join
from graphret.sage.joins import join_links
from graphret.sage.links import LinkSettings, name_links
from graphret.sage.settings import SimilaritySettings
from graphret.sage.similarity_index import SimilarityIndex
from graphret.search.analysis import Analyzer
from graphret.search.bm25 import BM25Settings
from graphret.search.dense import HnswSettings, require_settings
from graphret.search.fields import NodeText
from graphret.search.hybrid import HybridIndex
from graphret.stores.memory import Graph


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

    def __post_init__(self) -> None:
        require_settings(self.hnsw)


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
