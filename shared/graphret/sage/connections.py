"""`Connections`: the edges that follow from a graph's nodes, and from what."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from graphret.change import Change
from graphret.corpus.metadata import CorpusNames
from graphret.edges import EdgeTable
from graphret.executors import LOCAL, Executor
from graphret.nodes import NodeTable
from graphret.sage.codes import CodeLists
from graphret.sage.entities import Entities
from graphret.sage.facts import NodeFacts
from graphret.sage.joins import TableCells
from graphret.sage.links import Mentions
from graphret.sage.mentions import NodeNames
from graphret.sage.relinked import relinked
from graphret.sage.settings import LinkSettings, SimilaritySettings
from graphret.sage.shared_names import SharedNames
from graphret.sage.similarity import SimilarityIndex
from graphret.sage.structure import structure_links
from graphret.sage.words_said import WordsSaid
from graphret.search.dense import DenseIndex
from graphret.storage import Bundle, Parts
from graphret.stores.memory import Graph


@dataclass(frozen=True, eq=False)
class Connections:
    """What is known of the nodes of a graph that edges, and metadata, follow from.

    Never changed once made. A change reads the nodes that it touches, and keeps what
    was read of all others: `changed` has the edges of a graph that was built of
    everything, with the same thresholds and the same rarity of words.

    Parameters
    ----------
    edges
        The edges that follow.
    similarity
        What is alike.
    mentions
        What names what.
    shared
        Which names that no node bears join texts.
    facts, words, entities, cells
        What nodes were made from; what they say, name and hold in tables.
    names
        Those of the corpus, for metadata that depend on them; `None` where none do, or
        no change asked yet.
    relinked
        The nodes from which other edges lead than before the last change.
    """

    edges: EdgeTable
    similarity: SimilarityIndex
    mentions: Mentions
    shared: SharedNames
    facts: NodeFacts = field(default_factory=NodeFacts)
    words: WordsSaid = field(default_factory=WordsSaid)
    entities: Entities = field(default_factory=Entities)
    cells: TableCells = field(default_factory=TableCells)
    names: CorpusNames | None = None
    relinked: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    @classmethod
    def of(
        cls,
        nodes: NodeTable,
        dense: DenseIndex | None,
        similarity: SimilaritySettings,
        links: LinkSettings,
        executor: Executor = LOCAL,
    ) -> Connections:
        """Find what connects the nodes of a table."""
        nothing = cls(
            EdgeTable.empty(0),
            SimilarityIndex(NodeTable.of([]), similarity),
            Mentions(NodeNames(links)),
            SharedNames(links, similarity.entity_cap),
        )
        return nothing.changed(Change.whole(nodes), dense, executor)

    def parts(self, *, follow_alone: bool) -> Parts:
        """Return the connections as they are saved.

        Where the graph has no other edges, `follow_alone`, the edges that follow are
        left out.
        """
        parts = Parts()
        if not follow_alone:
            parts.add("edges", self.edges.parts())
        parts.add("similarity", self.similarity.parts())
        parts.add("mentions", self.mentions.parts())
        parts.add("shared", self.shared.parts())
        parts.add("facts", self.facts.parts())
        parts.add("words", self.words.parts())
        parts.add("entities", self.entities.parts())
        parts.add("cells", self.cells.parts())
        if self.names is not None:
            parts.add("names", self.names.parts())
        return parts

    def itself(self) -> Connections:
        """Return these connections, where a state asks for what may have to be read."""
        return self

    @classmethod
    def from_bundle(
        cls,
        bundle: Bundle,
        graph: Graph,
        similarity: SimilaritySettings,
        links: LinkSettings,
    ) -> Connections:
        """Open saved connections over their graph; no node is read."""
        facts = NodeFacts.from_bundle(bundle.sub("facts"))
        entities = Entities.from_bundle(bundle.sub("entities"))
        shared = SharedNames(links, similarity.entity_cap)
        has_others = "edges" in bundle.meta
        return cls(
            EdgeTable.from_bundle(bundle.sub("edges")) if has_others else graph.edges,
            SimilarityIndex.from_bundle(
                bundle.sub("similarity"), graph.nodes, similarity, facts, entities
            ),
            Mentions.from_bundle(bundle.sub("mentions"), links, len(graph.nodes)),
            shared.from_bundle(bundle.sub("shared"), facts, entities),
            facts,
            WordsSaid.from_bundle(bundle.sub("words")),
            entities,
            TableCells.from_bundle(bundle.sub("cells")),
            CorpusNames.from_bundle(bundle.sub("names"))
            if "names" in bundle.meta
            else None,
        )

    def changed(
        self, change: Change, dense: DenseIndex | None, executor: Executor = LOCAL
    ) -> Connections:
        """Return what connects the nodes after a change.

        `dense` has the embeddings of the nodes after it. The names of the corpus stay
        those of before.
        """
        readers = self.words.read, self.entities.read, self.entities.read_called
        said, named, called = CodeLists.read(change.nodes, *readers)
        facts, words = self.facts.changed(change), self.words.changed(change, said)
        entities = self.entities.changed(change, named)
        similarity, alike = self.similarity.changed(
            change, facts, entities, dense, executor
        )
        mentions, naming = self.mentions.changed(
            change, self.facts, facts, words, executor
        )
        shared, sharing = self.shared.changed(
            change, self.facts, facts, self.entities, entities, called
        )
        cells, keyed = self.cells.changed(change, facts, mentions.names.settings)
        placed = structure_links(change, self.facts, facts)
        edges, sources = relinked(
            self.edges, change, [alike, placed, naming, sharing, keyed]
        )
        return replace(
            self,
            edges=edges,
            relinked=sources,
            similarity=similarity,
            mentions=mentions,
            shared=shared,
            facts=facts,
            words=words,
            entities=entities,
            cells=cells,
        )

    def refitted(self) -> Connections:
        """Return the connections with thresholds and word rarity fitted anew.

        They are fitted to the nodes that there are.
        """
        nodes = self.similarity.nodes
        similarity, alike = self.similarity.refitted()
        mentions, named = self.mentions.refitted(nodes, self.facts)
        change = Change.reading(nodes, ())
        edges, sources = relinked(self.edges, change, [alike, named])
        return replace(
            self,
            edges=edges,
            relinked=sources,
            similarity=similarity,
            mentions=mentions,
        )

    def with_given(self, given: EdgeTable) -> EdgeTable:
        """Return all edges, with a given edge in place of an equal one that follows."""
        return self.edges.merged(given)


class SavedConnections:
    """What edges follow from, as it was saved with a graph.

    It is read when a change first asks for it.
    """

    def __init__(
        self,
        bundle: Bundle,
        graph: Graph,
        similarity: SimilaritySettings,
        links: LinkSettings,
    ) -> None:
        self._saved = bundle, graph, similarity, links
        self._connections: Connections | None = None

    def __call__(self) -> Connections:
        """Return the connections; the first time they are read."""
        if self._connections is None:
            self._connections = Connections.from_bundle(*self._saved)
        return self._connections
