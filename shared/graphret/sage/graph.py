"""`SageGraph`: a corpus as a graph of chunks that can be searched, changed, saved and opened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np

from graphret.contracts import Lock
from graphret.corpus import (
    Chunker,
    Corpus,
    HeuristicMetadata,
    Item,
    MetadataExtractor,
    describe,
    to_edges,
    to_nodes,
)
from graphret.corpus.chunkers import named_chunker
from graphret.corpus.readers import file_id
from graphret.edges import EdgeTable
from graphret.errors import InvalidInput
from graphret.expansion import Ranking
from graphret.nodes import NodeTable
from graphret.retriever import Retriever
from graphret.sage import persistence
from graphret.sage.report import GraphReport, warn_if_flat
from graphret.sage.retriever import SageRetriever
from graphret.sage.settings import Thresholds
from graphret.sage.similarity_index import SimilarityIndex
from graphret.sage.state import Changes, SageSettings, SageState, changed, changes, connected, nodes_of, with_siblings
from graphret.search.bm25 import BM25Index
from graphret.search.dense import DenseIndex
from graphret.search.encoder import Encoder, as_encoder
from graphret.search.hybrid import HybridIndex
from graphret.search.vectors import check_vectors
from graphret.stores.base import GraphStore
from graphret.stores.memory import Graph, MemoryStore
from graphret.types import Edge, Node
from graphret.where import Where, WhereLike

#: Called with the name of a stage, how much of it is done, and how much there is.
Progress: TypeAlias = Callable[[str, int, int], None]


class SageGraph:
    """A graph over chunks of documents, segments of tables and records, with indexes over them (SAGE, section 2).

    Made by `build`, `from_nodes` or `load`. `add` and `remove` change it; a retrieval that has begun does not notice.
    `write_to` puts it into a graph store, `from_store` reads it from there.
    """

    def __init__(
        self,
        state: SageState,
        settings: SageSettings,
        *,
        chunker: Chunker | None,
        metadata: MetadataExtractor | None,
    ) -> None:
        self.state = state
        self.settings = settings
        self.chunker = chunker
        self.metadata = metadata
        self._writing = Lock()
        self._saved: tuple[Path, str] | None = None  # where the graph lies, and which generation there it is

    # -- making

    @classmethod
    def build(
        cls,
        items: Corpus | Iterable[Item],
        *,
        encoder: Any = "default",
        chunker: Chunker | str | None = "default",
        metadata: MetadataExtractor | None = HeuristicMetadata(),  # noqa: B008 -- it holds no state
        settings: SageSettings | None = None,
        edges: Iterable[Edge] = (),
        progress: Progress | None = None,
    ) -> Self:
        """Build a graph of documents, tables and records.

        Parameters
        ----------
        items
            What `graphret.corpus.read` returns, or the items themselves.
        encoder
            ``"default"`` for all-MiniLM-L6-v2, `None` to go without, or anything that
            `graphret.search.encoder.as_encoder` takes. Without an encoder there are no similarity edges; everything
            else works.
        chunker
            What cuts documents: ``"default"`` for the paper's semantic chunking, or sentences without an encoder;
            `None` for one node a document.
        metadata
            What finds topics, entities and the like.
        edges
            Edges between items, in addition to those of a `Corpus`.
        progress
            Called as the work goes on.

        Raises
        ------
        InvalidInput
            When there are no items, or one is malformed.
        MissingDependency
            When the default encoder is asked for and is not installed.
        """
        settings = settings or SageSettings()
        encoder = as_encoder(encoder)
        if isinstance(chunker, str):
            chunker = named_chunker(chunker, encoder)
        corpus = items if isinstance(items, Corpus) else Corpus(tuple(items))
        report = progress or _quiet
        report("chunk", 0, 1)
        nodes = to_nodes(
            corpus,
            chunker=chunker,
            rows_per_segment=settings.rows_per_segment,
            balance=settings.balance_segments,
            metadata=None,
        )
        report("chunk", 1, 1)
        given = to_edges([*corpus.edges, *edges], nodes)
        return cls.from_nodes(
            nodes,
            encoder=encoder,
            chunker=chunker,
            metadata=metadata,
            settings=settings,
            edges=given,
            progress=progress,
        )

    @classmethod
    def from_nodes(
        cls,
        nodes: Iterable[Node],
        *,
        encoder: Any = "default",
        chunker: Chunker | None = None,
        metadata: MetadataExtractor | None = HeuristicMetadata(),  # noqa: B008 -- it holds no state
        settings: SageSettings | None = None,
        edges: Iterable[Edge] = (),
        vectors: Any = None,
        thresholds: Thresholds | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Build a graph of nodes that exist.

        Parameters
        ----------
        vectors
            Embeddings of the nodes, in their order, ``(n, d)``, where they are known.
        thresholds
            Thresholds of similarity edges to use instead of fitting them.
        """
        settings, encoder = settings or SageSettings(), as_encoder(encoder)
        report = progress or _quiet
        listed = list(nodes)
        if not listed:
            raise InvalidInput("the corpus is empty: there are no nodes to build a graph of")
        report("describe", 0, len(listed))
        table = NodeTable.of(describe(listed, metadata) if metadata else listed)
        report("describe", len(listed), len(listed))
        report("index", 0, len(table))
        lexical = BM25Index.build(table, text=settings.text, analyzer=settings.analyzer, settings=settings.bm25)
        report("index", len(table), len(table))
        dense = None
        if encoder is not None or vectors is not None:
            report("embed", 0, len(table))
            if vectors is not None:
                order = np.argsort(np.asarray([node.id for node in listed], dtype=object), kind="stable")
                vectors = check_vectors(vectors, len(listed), what="embedding")[order]
            else:
                assert encoder is not None
                texts = [settings.text.text(node) for node in table]
                vectors = encoder.encode_documents(texts, progress=lambda done, of: report("embed", done, of))
            dense = DenseIndex.build(table, encoder, vectors=vectors, text=settings.text, hnsw=settings.hnsw)
            report("embed", len(table), len(table))
        index = HybridIndex(lexical, dense, alpha=settings.alpha)
        report("connect", 0, 1)
        similarity = SimilarityIndex.build(
            table,
            encoder,
            settings.similarity,
            content_vectors=dense.vectors if dense else None,
            thresholds=thresholds,
            text=settings.text,
        )
        state = connected(index, similarity, EdgeTable.of(table, edges), settings)
        report("connect", 1, 1)
        warn_if_flat(state.graph.nodes, state.graph.edges)
        return cls(state, settings, chunker=chunker, metadata=metadata)

    # -- reading

    @property
    def nodes(self) -> NodeTable:
        """The nodes, by position."""
        return self.state.graph.nodes

    @property
    def edges(self) -> EdgeTable:
        """The edges, by position."""
        return self.state.graph.edges

    @property
    def store(self) -> MemoryStore:
        """The graph as it is now, as a store; changes to the store do not change this graph."""
        return MemoryStore(self.state.graph)

    @property
    def index(self) -> HybridIndex:
        """The text index as it is now."""
        return self.state.index

    @property
    def encoder(self) -> Encoder | None:
        """What embeds queries; `None` when the graph does without."""
        return self.state.index.dense.encoder if self.state.index.dense else None

    @property
    def thresholds(self) -> Thresholds:
        """The thresholds of similarity edges."""
        return self.state.similarity.thresholds if self.state.similarity else Thresholds()

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        edges, encoder = self.edges, self.encoder
        counts = Counter(dict(zip(edges.relations, np.bincount(edges.relation).tolist(), strict=False)))
        said = ", ".join(f"{relation} {n:,}" for relation, n in counts.most_common())
        size = f"{len(self):,} nodes, {len(edges):,} edges{': ' * bool(said)}{said}"
        return f"{type(self).__name__}({size}; encoder {encoder.name if encoder else None})"

    def retriever(
        self, ranking: Ranking | str = "coverage", *, seeds: Retriever | None = None, on_failure: str = "fallback"
    ) -> SageRetriever:
        """Return a retriever over the graph; it sees later changes.

        Parameters
        ----------
        ranking
            ``"coverage"``, ``"propagate"``, ``"paper"``, or a `Ranking` of your own.
        seeds
            Who finds the seeds; the graph's own hybrid search by default.
        """
        return SageRetriever(self, ranking, seeds=seeds, on_failure=on_failure)

    def report(self) -> GraphReport:
        """Count nodes, edges, degrees and components."""
        return GraphReport.of(self.nodes, self.edges, self.thresholds)

    def view(self, where: WhereLike) -> SageGraph:
        """Return the graph as far as nodes satisfy `where`.

        Nothing of the other nodes can be reached, counted or shown through it: it holds the nodes, the edges among them
        and the statistics of those nodes alone. It is a copy that cannot be changed, and does not see later changes.
        """
        state, condition = self.state, Where.parse(where)
        restricted = state.graph.nodes.restricted(condition)
        if restricted is None:
            return SageView(state, self.settings, chunker=self.chunker, metadata=self.metadata)
        table, positions = restricted
        graph = Graph(table, state.graph.edges.induced(positions))
        cut = SageState(graph, state.index.induced(table, positions), None, EdgeTable.empty(len(table)))
        return SageView(cut, self.settings, chunker=self.chunker, metadata=self.metadata)

    # -- changing

    def add(self, items: Corpus | Iterable[Item], *, edges: Iterable[Edge] = ()) -> list[str]:
        """Add items, each in place of what had its id, and return the ids of their nodes.

        A document or table that was read from a Markdown file takes the place of all that was read from it earlier.
        The edges afterwards are those of a graph built of everything with the same thresholds.
        """
        corpus = items if isinstance(items, Corpus) else Corpus(tuple(items))
        with self._writing:
            state = self.state
            fresh = to_nodes(
                corpus,
                chunker=self.chunker,
                rows_per_segment=self.settings.rows_per_segment,
                balance=self.settings.balance_segments,
                metadata=None,
            )
            replaced = nodes_of([id_ for item in corpus.items for id_ in (item.id, file_id(item.id))], state)
            known = state.graph.nodes
            given = to_edges([*corpus.edges, *edges], fresh, known.ids.tolist() if corpus.edges or edges else ())
            self._change(fresh, replaced, given)
        return [node.id for node in fresh]

    def add_nodes(self, nodes: Iterable[Node], *, edges: Iterable[Edge] = ()) -> list[str]:
        """Add chunks that somebody else cut, each in place of the node that had its id."""
        fresh = list(nodes)
        with self._writing:
            given = to_edges(edges, fresh, self.nodes.ids.tolist() if edges else ())
            self._change(with_siblings(fresh, self.state), (), given)
        return [node.id for node in fresh]

    def refresh(self, nodes: Iterable[Node]) -> Changes:
        """Have the graph hold these chunks and no other node, and say what was added, changed and deleted."""
        fresh = list(nodes)
        if not fresh:
            raise InvalidInput("the corpus would be empty: there are no nodes to build a graph of")
        with self._writing:
            found = changes(fresh, self.state)
            if found:
                new = {*found.added, *found.changed}
                self._change(
                    with_siblings([n for n in fresh if n.id in new], self.state, found.deleted), found.deleted, []
                )
        return found

    def remove(self, ids: Iterable[str]) -> list[str]:
        """Take away items, files or single nodes by id, and return the ids of the nodes that went.

        Raises
        ------
        InvalidInput
            When there is no item and no node of an id; nothing is taken away then.
        """
        asked = list(ids)
        with self._writing:
            state = self.state
            gone: set[str] = set()
            for one in asked:
                found = nodes_of([one], state)
                if not found:
                    raise InvalidInput(f"{one!r}: the graph has no such document, table, record or node")
                gone |= found
            if len(gone) == len(state.graph.nodes):
                raise InvalidInput("the corpus would be empty: there are no nodes to build a graph of")
            self._change([], gone, [])
        return sorted(gone)

    def refit(self) -> None:
        """Fit the thresholds of similarity edges to the nodes that there are now."""
        with self._writing:
            state = self.state
            if state.similarity:
                self.state = connected(state.index, state.similarity.refit(), state.explicit, self.settings)

    def _change(self, fresh: Sequence[Node], gone: Collection[str], edges: Sequence[Edge]) -> None:
        """Put the state in force that has `fresh` and not `gone`; the lock is held."""
        self.state = changed(self.state, self.settings, self.metadata, fresh, gone, edges)

    # -- on disk

    def save(self, folder: str | Path) -> None:
        """Write the graph to a folder, in whole or not at all; an earlier one there stays in force until then.

        Raises
        ------
        IndexChanged
            When the graph was loaded from there, or saved there, and another has saved since: load it again. A job that
            loads, changes and saves while others do so too holds ``graphret.storage.writing(folder)`` meanwhile.
        """
        place = Path(folder).resolve()
        known = self._saved[1] if self._saved is not None and self._saved[0] == place else None
        self._saved = place, persistence.save(folder, self.state, self.settings, self.chunker, replaces=known)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        encoder: Any = "saved",
        metadata: MetadataExtractor | None = HeuristicMetadata(),  # noqa: B008 -- it holds no state
        chunker: Chunker | str | None = "saved",
        verify: bool = True,
    ) -> Self:
        """Open a saved graph by memory map.

        Parameters
        ----------
        encoder
            ``"saved"`` for the one that the graph was built with, loaded when it is first needed, where its name says
            which it is; otherwise the same encoder again, or `None` to search without it.
        metadata, chunker
            What describes and cuts documents that are added.
        verify
            Whether every checksum is checked.

        Raises
        ------
        NotAnIndex, NewerVersion, CorruptIndex
            When the folder holds no graph, one of a newer graphret, or a damaged one; the message names the file.
        InvalidInput
            When the encoder is another one than the graph was built with.
        """
        state, settings, cut, generation = persistence.load(folder, encoder, chunker, verify)
        graph = cls(state, settings, chunker=cut, metadata=metadata)
        graph._saved = Path(folder).resolve(), generation
        return graph

    # -- in a store

    def write_to(self, store: GraphStore, *, name: str = "sage", embeddings: bool = True) -> persistence.Written:
        """Write the graph to a store, or bring it up to date there; only what differs is written.

        Every node gets the property ``sage_graph``, so that other nodes may live in the same store, edges between them
        and the graph's included. Properties that not every store holds, such as the rows of a table, are written as one
        JSON object, ``sage_json``; conditions on them work on the graph that is read back, not in the store. Blocks are
        transactions: a write that was interrupted is completed by another one.

        Parameters
        ----------
        name
            What tells this graph from others in the same store.
        embeddings
            Whether nodes get their embeddings too, which spares `from_store` to embed them.

        Raises
        ------
        InvalidInput
            When the store holds a node of the same id that does not belong to the graph, or a property of the graph has
            one of the names above.
        """
        return persistence.write_to(self.state, store, name=name, embeddings=embeddings)

    @classmethod
    def from_store(
        cls, store: GraphStore, *, name: str = "sage", encoder: Any = "saved", settings: SageSettings | None = None
    ) -> SageView:
        """Read a graph that `write_to` wrote; it can be asked and not changed, and does not see later changes.

        Parameters
        ----------
        store
            The store, or a view of it.
        encoder
            ``"saved"`` for the one that the graph was built with, where its name says which it is; otherwise the same
            encoder again, or `None` to search without it. Nodes are embedded where the store lacks an embedding.
        settings
            Those that the graph was built with, where they were not the default.

        Raises
        ------
        InvalidInput
            When the store holds no such graph, or the encoder is another one than the graph was built with.
        """
        settings = settings or SageSettings()
        state = persistence.read_from(store, name=name, encoder=encoder, settings=settings)
        return SageView(state, settings, chunker=None, metadata=None)


class SageView(SageGraph):
    """A part of a graph that can be read and not changed."""

    def add(self, items: Corpus | Iterable[Item], *, edges: Iterable[Edge] = ()) -> list[str]:
        """Refuse."""
        raise InvalidInput("a view of a graph, or one read from a store, cannot be changed")

    def remove(self, ids: Iterable[str]) -> list[str]:
        """Refuse."""
        raise InvalidInput("a view of a graph, or one read from a store, cannot be changed")

    def refit(self) -> None:
        """Refuse."""
        raise InvalidInput("a view of a graph, or one read from a store, cannot be changed")

    def save(self, folder: str | Path) -> None:
        """Refuse."""
        raise InvalidInput("a view of a graph cannot be saved")


def _quiet(stage: str, done: int, total: int) -> None:
    """Report nothing."""
