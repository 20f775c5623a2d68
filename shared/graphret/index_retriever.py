"""Flat search: a text index as a retriever."""

from __future__ import annotations

from collections.abc import Sequence

from graphret.contracts import require_same_view
from graphret.errors import InvalidInput
from graphret.retriever import Retriever
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore
from graphret.trace import Trace
from graphret.types import Evidence, Hit, Node, Retrieval, Signals
from graphret.where import Where


class IndexRetriever(Retriever):
    """A text index as a retriever: flat search.

    A node that scores 0, without any word of the query, only fills a free place
    (evidence ``fill``). The nodes are read from `store`, which must be a view of the
    same condition; an index in this process has them itself. `name` is the retriever's
    name in evidence and traces.
    """

    def __init__(
        self, index: TextIndex, store: GraphStore | None = None, *, name: str = "search"
    ) -> None:
        if store is None and index.local_index() is None:
            raise InvalidInput(
                f"store: expected a store, as a {type(index).__name__} holds no nodes"
            )
        if store is not None:
            require_same_view(store, index)
        self.index = index
        self.store = store
        self.name = name

    @property
    def graph_store(self) -> GraphStore | None:
        return self.store

    def _retrieve(self, query: str, k: int, where: Where | None) -> Retrieval:
        trace, signals = Trace(), Signals(walked_edges=False)
        local = self.index.local_index()  # one state throughout
        if local is not None:
            local.table.warn_of_unknown(where, trace)
        with trace.stage("search", index=type(self.index).__name__) as stage:
            index = self.index if local is None else local
            matches = index.search(query, k, where=where)
            if local is not None:
                at = local.table.positions(matches.ids)
                nodes: Sequence[Node | None] = local.table.at(at)
                signals.candidates = len(local.table)
                signals.confidence = local.confidence(query, at[:1])
            else:
                assert self.store is not None
                nodes = self.store.get(matches.ids)
            scored = [
                (node, score)
                for node, score in zip(nodes, matches.scores.tolist(), strict=True)
                if node
            ]
            stage.details["found"] = len(scored)
        hits = []
        for rank, (node, score) in enumerate(scored, start=1):
            why = (
                Evidence("seed", rank=rank, retriever=self.name)
                if score
                else Evidence("fill")
            )
            hits.append(Hit(node, score, (why,)))
        return Retrieval(query, k, hits, signals, trace)
