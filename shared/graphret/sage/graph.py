"""`SageGraph`: a corpus as a graph of chunks to search, change, save and open."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from graphret.contracts import Lock
from graphret.corpus import (
    Chunker,
    Corpus,
    HeuristicMetadata,
    Item,
    MetadataExtractor,
    to_edges,
    to_nodes,
)
from graphret.corpus.chunkers import KnownCuts, named_chunker
from graphret.corpus.metadata import described
from graphret.corpus.readers import file_id
from graphret.edges import EdgeTable
from graphret.errors import InvalidInput
from graphret.executors import LOCAL, Executor, Progress
from graphret.expansion import Ranking
from graphret.nodes import NodeTable
from graphret.ranker import LearnedRanking
from graphret.retriever import Retriever
from graphret.sage import persistence
from graphret.sage.connections import Connections
from graphret.sage.dense_quality import fitted_dense_quality
from graphret.sage.documents import outdated
from graphret.sage.report import GraphReport, warn_if_flat
from graphret.sage.retriever import SageRetriever
from graphret.sage.settings import SageSettings
from graphret.sage.similarity import Thresholds
from graphret.sage.state import Changes, SageState, known_cuts, with_siblings
from graphret.search.bm25 import BM25Index
from graphret.search.dense import DenseIndex
from graphret.search.embedding import embed
from graphret.search.encoder import Encoder, as_encoder
from graphret.search.hybrid import HybridIndex
from graphret.search.vectors import check_vectors
from graphret.stores.memory import Graph, MemoryStore
from graphret.types import Edge, Node
from graphret.where import Where, WhereLike

_EMPTY = "the corpus is empty: there are no nodes to build a graph of"


class SageGraph:
    """A graph over chunks of documents, segments of tables and records, with indexes.

    It is described in SAGE, section 2. Made by `build`, `from_nodes` or `load`. `add`
    and `remove` change it; a retrieval that has begun does not notice. Its `store` can
    be copied into a database, over which `Expand` answers as this graph does.
    """

    def __init__(
        self,
        state: SageState,
        settings: SageSettings,
        *,
        chunker: Chunker | None,
        metadata: MetadataExtractor | None,
        ranking: LearnedRanking | None = None,
    ) -> None:
        self.state = state
        self.settings = settings
        self.chunker = chunker
        self.metadata = metadata
        # What ``graphret train ranking`` made; saved, and what `retriever` uses.
        self.ranking = ranking
        self._writing = Lock()
        self._saved: persistence.Saved | None = None

    # -- making

    @classmethod
    def build(
        cls,
        items: Corpus | Iterable[Item],
        *,
        encoder: Any = "default",
        chunker: Chunker | str | None = "default",
        metadata: MetadataExtractor | None = HeuristicMetadata(),
        settings: SageSettings | None = None,
        edges: Iterable[Edge] = (),
        progress: Progress | None = None,
        executor: Executor = LOCAL,
    ) -> Self:
        """Build a graph of documents, tables and records.

        Parameters
        ----------
        items
            What `graphret.corpus.read` returns, or the items themselves.
        encoder
            ``"default"`` for all-MiniLM-L6-v2, `None` to go without, or anything that
            `graphret.search.encoder.as_encoder` takes. Without an encoder there are no
            similarity edges; everything else works.
        chunker
            What cuts documents: ``"default"`` for the paper's semantic chunking, or
            sentences without an encoder; `None` for one node a document.
        metadata
            What finds topics, entities and the like.
        edges
            Edges between items, in addition to those of a `Corpus`.
        progress
            Called as the work goes on.
        executor
            Where blocks of the work run: in this process, or
            `graphret.executors.RayExecutor` for a cluster.

        Raises
        ------
        InvalidInput
            When there are no items, or one is malformed.
        MissingDependency
            When the default encoder is asked for and is not installed.
        """
        settings, encoder = settings or SageSettings(), as_encoder(encoder)
        if isinstance(chunker, str):
            chunker = named_chunker(chunker, encoder)
        corpus = items if isinstance(items, Corpus) else Corpus(tuple(items))
        if progress is not None:
            progress("chunk", 0, len(corpus.items))
        nodes = to_nodes(
            corpus,
            chunker=chunker,
            rows_per_segment=settings.rows_per_segment,
            executor=executor,
        )
        between_items = to_edges([*corpus.edges, *edges], nodes)
        return cls.from_nodes(
            _handed_over(nodes),
            encoder=encoder,
            chunker=chunker,
            metadata=metadata,
            settings=settings,
            edges=between_items,
            progress=progress,
            executor=executor,
        )

    @classmethod
    def from_nodes(
        cls,
        nodes: Iterable[Node],
        *,
        encoder: Any = "default",
        chunker: Chunker | None = None,
        metadata: MetadataExtractor | None = HeuristicMetadata(),
        settings: SageSettings | None = None,
        edges: Iterable[Edge] = (),
        vectors: Any = None,
        progress: Progress | None = None,
        executor: Executor = LOCAL,
    ) -> Self:
        """Build a graph of nodes that exist.

        Parameters
        ----------
        vectors
            Embeddings of the nodes, in their order, ``(n, d)``, where they are known.
        """
        settings, encoder = settings or SageSettings(), as_encoder(encoder)
        report = progress or (lambda stage, done, of: None)
        listed, given = list(nodes), vectors is not None
        if not listed:
            raise InvalidInput(_EMPTY)
        if given:
            vectors = _in_table_order(vectors, listed)
        report("describe", 0, len(listed))
        told, names = described(listed, metadata, executor)
        table = NodeTable.of(told)
        del listed, told  # they take more room than the table
        report("index", 0, len(table))
        lexical = BM25Index.build(
            table,
            text=settings.text,
            analyzer=settings.analyzer,
            settings=settings.bm25,
        )
        dense = None
        if encoder is not None or given:
            report("embed", 0, len(table))
            if encoder is not None and not given:
                texts = [settings.text.text(node) for node in table]
                vectors = embed(encoder, texts, executor, partial(report, "embed"))
            dense = DenseIndex.build(
                table, encoder, vectors=vectors, text=settings.text
            )
            report("embed", len(table), len(table))
        index = HybridIndex(lexical, dense, alpha=settings.alpha)
        report("connect", 0, len(table))
        connections = Connections.of(
            table, dense, settings.similarity, settings.links, executor
        )
        given_edges = EdgeTable.of(table, edges)
        connections = replace(connections, names=names)
        state = SageState.connected(index, connections, given_edges)
        report("connect", len(table), len(table))
        # Whoever gives embeddings expects that nothing is embedded again.
        if settings.alpha is None and not given:
            index.dense_quality = fitted_dense_quality(index)
        warn_if_flat(table, state.graph.edges, connections.facts.source)
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
        """The graph as it is now, as a store whose changes do not reach this graph."""
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
        """The thresholds of similarity edges: ``{kind of pair: {signal: value}}``."""
        return self.state.thresholds

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        encoder = self.encoder.name if self.encoder else None
        return (
            f"{type(self).__name__}({len(self):,} nodes, {len(self.edges):,} edges;"
            f" encoder {encoder})"
        )

    def retriever(
        self,
        ranking: Ranking | str | None = None,
        *,
        seeds: Retriever | None = None,
        fill: bool = True,
        on_failure: str = "fallback",
    ) -> SageRetriever:
        """Return a retriever over the graph; it sees later changes.

        Parameters
        ----------
        ranking
            ``"coverage"``, ``"propagate"``, ``"paper"``, or a `Ranking` of your own; by
            default the one that was trained for this graph, ``"coverage"`` where none
            was.
        seeds
            Who finds the seeds; the graph's own hybrid search by default.
        fill
            Whether a search fills the places that seeds and neighbours leave.
        """
        return SageRetriever(
            self, ranking, seeds=seeds, fill=fill, on_failure=on_failure
        )

    def report(self) -> GraphReport:
        """Count nodes, edges, degrees and components."""
        index = self.index
        alpha, quality = (
            (index.alpha, index.dense_quality) if index.dense else (None, None)
        )
        return GraphReport.of(self.nodes, self.edges, self.thresholds, alpha, quality)

    def view(self, where: WhereLike) -> Self:
        """Return an unchangeable copy with only the nodes that satisfy `where`.

        Nothing of the other nodes can be reached, counted or shown through it.
        """
        state, restricted = self.state, self.nodes.restricted(Where.parse(where))
        graph, index = state.graph, state.index
        if restricted is not None:
            table, positions = restricted
            graph, index = (
                Graph(table, graph.edges.induced(positions)),
                index.induced(table, positions),
            )
        cut = SageState(graph, index, EdgeTable.empty(len(graph.nodes)), {}, None)
        return type(self)(
            cut,
            self.settings,
            chunker=self.chunker,
            metadata=self.metadata,
            ranking=self.ranking,
        )

    # -- changing

    def add(
        self, items: Corpus | Iterable[Item], *, edges: Iterable[Edge] = ()
    ) -> list[str]:
        """Add items, each in place of what had its id, and return their nodes' ids.

        A document or table that was read from a Markdown file takes the place of all
        that was read from it earlier. The edges afterwards are those of a graph built
        of everything with the same thresholds. What is read and linked again is what
        the items touch; an item that the graph holds as it comes touches nothing.
        """
        corpus = items if isinstance(items, Corpus) else Corpus(tuple(items))
        rows, chunker = self.settings.rows_per_segment, self.chunker
        with self._writing:
            if chunker is not None:
                chunker = KnownCuts(chunker, known_cuts(corpus.items, self.state))
            fresh = to_nodes(corpus, chunker=chunker, rows_per_segment=rows)
            replaced = self.state.nodes_of(
                id_ for item in corpus.items for id_ in (item.id, file_id(item.id))
            )
            self._change(
                fresh, set().union(*replaced.values()), [*corpus.edges, *edges]
            )
        return [node.id for node in fresh]

    def add_nodes(
        self,
        nodes: Iterable[Node],
        *,
        edges: Iterable[Edge] = (),
        replace_documents: bool = True,
    ) -> list[str]:
        """Add chunks cut elsewhere, each in place of the node that had its id.

        Parameters
        ----------
        replace_documents
            Whether chunks of a document that the graph knows and that has changed take
            the place of all its chunks, by the rule of
            `graphret.sage.documents.outdated`. Say no to add a document piece by piece
            whose pieces do not know where they begin.
        """
        return self._put(list(nodes), edges, (), replace_documents)

    def _put(
        self,
        fresh: Sequence[Node],
        edges: Iterable[Edge],
        items: Iterable[str],
        replace_documents: bool,
    ) -> list[str]:
        """Add chunks in place of the nodes made of some items and of outdated ones."""
        with self._writing:
            gone = set().union(*self.state.nodes_of(items).values())
            if replace_documents:
                gone |= outdated(fresh, self.nodes, self.state.connections.facts)
            self._change(with_siblings(fresh, self.state, gone), gone, list(edges))
        return [node.id for node in fresh]

    def refresh(self, nodes: Iterable[Node]) -> Changes:
        """Make the graph hold exactly these chunks, and return what changed."""
        fresh = list(nodes)
        if not fresh:
            raise InvalidInput(_EMPTY)
        with self._writing:
            found = Changes.of(fresh, self.state)
            new = {*found.added, *found.changed}
            if found:
                chosen = [node for node in fresh if node.id in new]
                self._change(
                    with_siblings(chosen, self.state, found.deleted), found.deleted
                )
        return found

    def remove(self, ids: Iterable[str]) -> list[str]:
        """Remove items, files or single nodes by id, and return the removed nodes' ids.

        Raises
        ------
        InvalidInput
            When there is no item and no node of an id; nothing is taken away then.
        """
        with self._writing:
            found = self.state.nodes_of(ids)
            for one, nodes in found.items():
                if not nodes:
                    raise InvalidInput(
                        f"{one!r}: the graph has no such document, table, record or"
                        " node"
                    )
            gone = set().union(*found.values())
            if len(gone) == len(self):
                raise InvalidInput(_EMPTY)
            self._change([], gone)
        return sorted(gone)

    def refit(self) -> None:
        """Fit to the current nodes what stays the same through changes.

        These are the thresholds of similarity edges, how rare entities and the words of
        names are, and what embeddings are worth.
        """
        with self._writing:
            state = self.state
            connected = SageState.connected(
                state.index,
                state.connections.refitted(),
                state.explicit,
            )
            index = copy(connected.index)
            if self.settings.alpha is None:
                index.dense_quality = fitted_dense_quality(index)
            self.state = replace(connected, index=index)
            if self._saved is not None:
                self._saved.touched = None

    def _change(
        self, fresh: Sequence[Node], gone: Collection[str], edges: Sequence[Edge] = ()
    ) -> None:
        """Put the state in force that has `fresh` and not `gone`; the lock is held."""
        given = to_edges(edges, fresh, self.state.first_nodes_of)
        self.state, touched = self.state.changed(fresh, gone, given, self.metadata)
        if self._saved is not None and self._saved.touched is not None:
            self._saved.touched.add(touched)

    # -- on disk

    def save(self, folder: str | Path, *, whole: bool = False) -> None:
        """Write the graph to a folder, in whole or not at all.

        An earlier graph there stays in force until then. Where the graph was loaded
        from there, or saved there, and few of its nodes have changed since, only these
        are written, beside what is there; whoever loads the graph puts them in place.
        Changes wait until it is written.

        Parameters
        ----------
        whole
            Whether to write the whole graph even so, which is then opened faster.

        Raises
        ------
        IndexChanged
            When the graph was loaded from there, or saved there, and another has saved
            since: load it again. A job that loads, changes and saves while others do so
            too holds ``graphret.storage.writing(folder)`` meanwhile.
        """
        with self._writing:
            self._saved = persistence.save(
                folder,
                self.state,
                self.settings,
                self.chunker,
                self.ranking,
                self._saved,
                whole,
            )

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        encoder: Any = "saved",
        metadata: MetadataExtractor | None = HeuristicMetadata(),
        chunker: Chunker | str | None = "saved",
        verify: bool = True,
    ) -> Self:
        """Open a saved graph by memory map.

        Parameters
        ----------
        encoder
            ``"saved"`` for the one that the graph was built with, loaded when it is
            first needed, where its name says which it is; otherwise the same encoder
            again, or `None` to search without it.
        metadata, chunker
            What describes and cuts documents that are added.
        verify
            Whether every checksum is checked.

        Raises
        ------
        NotAnIndex, NewerVersion, CorruptIndex
            When the folder holds no graph, one of a newer graphret, or a damaged one;
            the message names the file.
        InvalidInput
            When the encoder is another one than the graph was built with.
        """
        state, settings, cut, ranking, saved = persistence.load(
            folder, encoder, chunker, verify
        )
        graph = cls(state, settings, chunker=cut, metadata=metadata, ranking=ranking)
        graph._saved = saved
        return graph


def _handed_over(nodes: list[Node]) -> Iterator[Node]:
    """Yield the nodes of a list and take them off it, as they need much memory."""
    nodes.reverse()
    while nodes:
        yield nodes.pop()


def _in_table_order(vectors: Any, nodes: Sequence[Node]) -> NDArray[np.float32]:
    """Return the embeddings of nodes in the order of their table, that of ids."""
    ids = np.asarray([node.id for node in nodes], dtype=object)
    checked = check_vectors(vectors, len(nodes), what="embedding")
    return checked[np.argsort(ids, kind="stable")]
