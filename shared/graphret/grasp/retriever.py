"""`Grasp`: a plan's hits fused with a text search's, reranked (Tao et al. 2026)."""

from __future__ import annotations

from graphret.contracts import implements
from graphret.errors import InvalidInput
from graphret.grasp.llm_planner import LLMPlanner
from graphret.grasp.plan_retriever import PlanRetriever
from graphret.grasp.settings import GraspSettings
from graphret.index_retriever import IndexRetriever
from graphret.linking import Linker
from graphret.llm import ChatModel
from graphret.planning import PathPlanner, Planner
from graphret.rerank import Rerank, Reranker
from graphret.retriever import Fuse, Retriever, Steps
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore
from graphret.where import Where


class Grasp(Retriever):
    """Fuse a plan's hits with those of a text search, and rerank (GRASP, section 3).

    ``Rerank(Fuse([PlanRetriever(…), IndexRetriever(…)]), reranker)``, each of which is
    of use alone. A plan that is invalid, or that finds nothing, leaves the answer to
    the search; the trace tells plan, bindings, candidates, weights and the ranks at
    each stage.

    Parameters
    ----------
    planner
        Who writes plans: a chat model, by an `LLMPlanner`; any `Planner`; or `None` for
        a `graphret.planning.PathPlanner`, which needs no model.
    store
        The graph.
    index
        The second opinion: a text index over its nodes (`FieldIndex` in the paper's
        place of mFAR), or any retriever.
    documents
        What relevance texts are held against; `index` by default, where it is one.
    linker
        Finds what anchors mean that the planner did not link.
    reranker
        The third stage; none without.
    settings
        Weights and depths: `GraspSettings.load` reads what ``graphret tune`` wrote.
        There is neither ``fallback`` nor ``fill``: the search in `index` is always
        fused in, and fills what the plan leaves.
    on_failure
        ``"fallback"`` goes on with what did not fail; ``"raise"`` raises
        `RetrievalFailed`.

    Raises
    ------
    InvalidInput
        When an argument is malformed, or store and index are not views of one
        condition.

    Examples
    --------
    >>> grasp = Grasp(None, store, FieldIndex.of_store(store))  # doctest: +SKIP
    >>> grasp.retrieve("films that share a director with Heat").hits  # doctest: +SKIP
    """

    name = "grasp"

    def __init__(
        self,
        planner: Planner | ChatModel | None,
        store: GraphStore,
        index: TextIndex | Retriever,
        *,
        documents: TextIndex | None = None,
        linker: Linker | None = None,
        reranker: Reranker | None = None,
        settings: GraspSettings | None = None,
        on_failure: str = "fallback",
    ) -> None:
        self.settings = chosen = settings or GraspSettings()
        if not isinstance(chosen, GraspSettings):
            raise InvalidInput(
                f"settings: expected GraspSettings, got {type(chosen).__name__}"
            )
        if documents is None and not isinstance(index, Retriever):
            documents = index
        if planner is None:
            index_of_names = documents if store.local_graph() is None else None
            planner = PathPlanner(store, linker or index_of_names)
        elif not implements(planner, Planner) and implements(planner, ChatModel):
            planner = LLMPlanner(planner, store)  # type: ignore[arg-type]  # it is a model
        more = {"linker": linker, "documents": documents, "on_failure": on_failure}
        self.plan = PlanRetriever(planner, store, **more)  # type: ignore[arg-type]  # it refuses others
        self.text = (
            index
            if isinstance(index, Retriever)
            else IndexRetriever(index, store, name="text")
        )
        retrievers, weights = [self.plan, self.text], chosen.weights
        self.fused = Fuse(
            retrievers,
            weights=weights,
            rrf_k=chosen.rrf_k,
            depth=chosen.depth,
            on_failure=on_failure,
        )
        self.whole: Retriever = self.fused
        if reranker is not None:
            depth, weight, rrf_k = (
                chosen.rerank_depth,
                chosen.rerank_weight,
                chosen.rerank_k,
            )
            self.whole = Rerank(
                self.fused,
                reranker,
                depth=depth,
                weight=weight,
                rrf_k=rrf_k,
                on_failure=on_failure,
            )

    @property
    def graph_store(self) -> GraphStore | None:
        return self.plan.store

    def _steps(self, query: str, k: int, where: Where | None) -> Steps:
        return self.whole._steps(query, k, where)
