"""`SageRetriever`: the online half of SAGE."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from graphret.expansion import Expand, Ranking, ranking_of
from graphret.retriever import Compute, Retriever, Steps, unwrap_or_fallback
from graphret.search.hybrid import HybridIndex
from graphret.stores.memory import MemoryStore
from graphret.trace import Trace
from graphret.where import Where

if TYPE_CHECKING:
    from graphret.sage.graph import SageGraph


class SageRetriever(Retriever):
    """Expansion over a `SageGraph` as it is when the question comes (SAGE, 2.2).

    Parameters
    ----------
    graph
        The graph.
    ranking
        ``"coverage"``, ``"propagate"``, ``"paper"``, or a `Ranking` of your own; by
        default the one that was trained for this graph, ``"coverage"`` where none was.
    seeds
        Who finds the seeds; the graph's own hybrid search by default.
    on_failure
        ``"fallback"`` seeds from the graph's search where `seeds` fails, and goes by
        words alone where the question cannot be embedded; ``"raise"`` raises
        `RetrievalFailed`.
    """

    name = "sage"

    def __init__(
        self,
        graph: SageGraph,
        ranking: Ranking | str | None = None,
        *,
        seeds: Retriever | None = None,
        on_failure: str = "fallback",
    ) -> None:
        self.graph = graph
        self.ranking = ranking_of(ranking or graph.ranking or "coverage")
        self.seeds = seeds
        self.on_failure = on_failure

    def _steps(self, query: str, k: int, where: Where | None) -> Steps:
        state, trace = self.graph.state, Trace()
        index = yield from _embedded(state.index, query, trace, self.on_failure)
        store = MemoryStore(state.graph)
        expand = Expand(
            self.seeds, store, index, ranking=self.ranking, on_failure=self.on_failure
        )
        retrieval = yield from expand._steps(query, k, where)
        retrieval.trace.stages[:0] = trace.stages
        return retrieval


def _embedded(
    index: HybridIndex, query: str, trace: Trace, on_failure: str
) -> Generator[Any, Any, HybridIndex]:
    """Return an index that knows the embedding of `query`, or that of the words alone
    where none can be had.
    """
    dense = index.dense
    if dense is None or dense.encoder is None or dense.remembers(query):
        return index
    name = dense.encoder.name
    with trace.stage("embed", encoder=name):
        try:
            yield Compute(lambda: dense.prepare([query]))
            return index
        except Exception as error:
            failure = error
    unwrap_or_fallback(failure, name, on_failure, trace)
    return HybridIndex(index.lexical)
