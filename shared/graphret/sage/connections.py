"""`Connections`: the edges of a graph that follow from its nodes, and what they follow
from.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from graphret.change import Change
from graphret.corpus.metadata import CorpusNames
from graphret.edges import EdgeTable, joined
from graphret.executors import LOCAL, Executor
from graphret.nodes import NodeTable
from graphret.sage.entities import Entities
from graphret.sage.facts import NodeFacts
from graphret.sage.joins import TableCells
from graphret.sage.links import Mentions
from graphret.sage.mentions import NodeNames
from graphret.sage.settings import LinkSettings, SimilaritySettings
from graphret.sage.shared_names import SharedNames
from graphret.sage.similarity import SimilarityIndex
from graphret.sage.structure import structure_edges
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
    """

    similarity: SimilarityIndex
    mentions: Mentions
    shared: SharedNames
    facts: NodeFacts = field(default_factory=NodeFacts)
    words: WordsSaid = field(default_factory=WordsSaid)
    entities: Entities = field(default_factory=Entities)
    cells: TableCells = field(default_factory=TableCells)
    names: CorpusNames | None = None

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
            SimilarityIndex(NodeTable.of([]), similarity),
            Mentions(NodeNames(links)),
            SharedNames(links, similarity.entity_cap),
        )
        return nothing.changed(Change.whole(nodes), dense, executor)

    def parts(self) -> Parts:
        """The connections as they are saved."""
        parts = Parts()
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
        return cls(
            SimilarityIndex.from_bundle(
                bundle.sub("similarity"),
                graph.nodes,
                similarity,
                (facts, entities),
                graph.edges,
            ),
            Mentions.from_bundle(bundle.sub("mentions"), links),
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
        """Return what connects the nodes after a change; `dense` has their embeddings
        then. The names of the corpus stay those of before.
        """
        facts, words = self.facts.changed(change), self.words.changed(change)
        entities = self.entities.changed(change)
        return replace(
            self,
            similarity=self.similarity.changed(
                change, facts, entities, dense, executor
            ),
            mentions=self.mentions.changed(change, self.facts, facts, words, executor),
            shared=self.shared.changed(change, facts, entities, self.entities),
            facts=facts,
            words=words,
            entities=entities,
            cells=self.cells.changed(change),
        )

    def refitted(self) -> Connections:
        """Return the connections with thresholds, and the rarity of words, fitted to
        the nodes that there are.
        """
        return replace(
            self,
            similarity=self.similarity.refitted(),
            mentions=self.mentions.refitted(self.similarity.nodes, self.facts),
        )

    def edges(self, explicit: EdgeTable) -> EdgeTable:
        """Return every edge: similarity, structure, names, keys, and those that were
        given.
        """
        n_nodes, links = explicit.n_nodes, self.mentions.names.settings
        found = [
            self.similarity.edges,
            structure_edges(self.facts),
            self.mentions.edges(self.facts),
            self.shared.edges(self.facts, self.entities),
            self.cells.edges(n_nodes, links),
        ]
        return joined(n_nodes, [*found, explicit])


class SavedConnections:
    """What edges follow from, as it was saved with a graph; read when a change first
    asks for it.
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
