"""`SageRetriever`: the online half of SAGE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphret.errors import InvalidInput
from graphret.expansion import RANKINGS, Expand, Ranking
from graphret.retriever import Retriever, Steps
from graphret.sage.asking import embedded
from graphret.stores.memory import MemoryStore
from graphret.types import Trace
from graphret.where import Where

if TYPE_CHECKING:
    from graphret.sage.graph import SageGraph


class SageRetriever(Retriever):
    """Expansion over a `SageGraph` as it is when the question comes (SAGE, section 2.2)."""

    name = "sage"

    def __init__(
        self,
        graph: SageGraph,
        ranking: Ranking | str = "coverage",
        *,
        seeds: Retriever | None = None,
        on_failure: str = "fallback",
    ) -> None:
        if isinstance(ranking, str):
            if ranking not in RANKINGS:
                raise InvalidInput(f"ranking: one of {', '.join(RANKINGS)} is expected, not {ranking!r}")
            ranking = RANKINGS[ranking]()
        self.graph = graph
        self.ranking = ranking
        self.seeds = seeds
        self.on_failure = on_failure

    def _steps(self, query: str, k: int, where: Where | None) -> Steps:
        state, trace = self.graph.state, Trace()
        index = yield from embedded(state.index, query, trace, self.on_failure)
        store = MemoryStore(state.graph)
        expand = Expand(self.seeds, store, index, ranking=self.ranking, on_failure=self.on_failure)
        retrieval = yield from expand._steps(query, k, where)
        retrieval.trace.stages[:0] = trace.stages
        return retrieval
