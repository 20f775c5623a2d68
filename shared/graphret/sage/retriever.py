"""`SageRetriever`: the online half of SAGE."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from graphret.expansion import Expand, Ranking, ranking_of
from graphret.retriever import Compute, Retriever, Steps, unwrap_or_fallback
from graphret.search.dense import DenseIndex
from graphret.search.hybrid import HybridIndex
from graphret.search.vectors import Floats
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
    fill
        Whether a search fills the places that seeds and neighbours leave.
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
        fill: bool = True,
        on_failure: str = "fallback",
    ) -> None:
        self.graph = graph
        self.ranking = ranking_of(ranking or graph.ranking or "coverage")
        self.seeds = seeds
        self.fill = fill
        self.on_failure = on_failure
        self._meant: Sequence[str] | Floats = ()

    def meaning(self, meant: Sequence[str] | Floats) -> Self:
        """Return this retriever for questions that mean something else than they say.

        Parameters
        ----------
        meant
            Texts whose mean embedding stands for the question's, such as the answer
            that a model made up (HyDE, Gao et al. 2022), or the embedding itself,
            ``(d,)``. The words that are searched for are still the question's.
        """
        other = copy(self)
        other._meant = meant
        return other

    def _steps(self, query: str, k: int, where: Where | None) -> Steps:
        state, trace = self.graph.state, Trace()
        index = yield from _embedded(
            state.index, query, self._meant, trace, self.on_failure
        )
        store = MemoryStore(state.graph)
        expand = Expand(
            self.seeds,
            store,
            index,
            ranking=self.ranking,
            fill=self.fill,
            on_failure=self.on_failure,
        )
        retrieval = yield from expand._steps(query, k, where)
        retrieval.trace.stages[:0] = trace.stages
        return retrieval


def _embedded(
    index: HybridIndex,
    query: str,
    meant: Sequence[str] | Floats,
    trace: Trace,
    on_failure: str,
) -> Generator[Any, Any, HybridIndex]:
    """Return an index that knows the embedding of `query`, or one of words alone.

    The latter is returned where no embedding can be had.
    """
    dense = index.dense
    is_said = not len(meant)
    if dense is None or (is_said and (not dense.encoder or dense.remembers(query))):
        return index
    name = dense.encoder.name if dense.encoder else "given"
    with trace.stage("embed", encoder=name):
        try:
            if is_said:
                yield Compute(lambda: dense.prepare([query]))
                return index
            vector = yield Compute(lambda: _mean_embedding(dense, meant))
            return index.with_query(query, vector)
        except Exception as error:
            failure = error
    unwrap_or_fallback(failure, name, on_failure, trace)
    return HybridIndex(index.lexical)


def _mean_embedding(dense: DenseIndex, meant: Sequence[str] | Floats) -> Floats:
    """Return the embedding that stands for a question, ``(d,)``."""
    if isinstance(meant, np.ndarray):
        return meant
    dense.prepare(meant)
    mean: Floats = np.mean([dense.query_vector(text) for text in meant], axis=0)
    return mean
