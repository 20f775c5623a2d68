"""`SageExpansion`: a postprocessor that expands what another retriever found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.callbacks import CallbackManager
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher
from pydantic import SkipValidation

from graphret import SageGraph
from graphret.errors import InvalidInput, RetrievalFailed
from graphret.expansion import Ranking
from graphret.retriever import Retriever, require_on_failure
from graphret.types import Hit, Retrieval, Signals, Trace
from graphret.where import Where
from llama_index_graphret.adapters import hits_of
from llama_index_graphret.events import ExpansionEndEvent, ExpansionStartEvent
from llama_index_graphret.evidence import SageNodeWithScore, evidence_of
from llama_index_graphret.filters import FiltersLike, to_where
from llama_index_graphret.nodes import outline, to_llama_node
from llama_index_graphret.question import Question, ranking_of, require_graph
from llama_index_graphret.retriever import top_k

dispatcher = get_dispatcher(__name__)


class SageExpansion(BaseNodePostprocessor):
    """Expand the nodes of an existing query engine over a graph (SAGE, section 2.2 B).

    What the engine's retriever found are the seeds; they and what the graph connects them to are ranked together.
    Nodes that were handed in come out as they were, with the same hash and texts, new ones as the graph holds them; the
    score of all is their relevance, 0 … 1. A node that the graph does not hold stays behind the one it came after.

    Parameters
    ----------
    graph
        A `SageGraph` over the same nodes, such as `SageGraph.from_index` makes.
    top_n, k
        How many nodes are returned, in total: exactly so many where that many qualify; 10 by default.
    ranking
        ``"coverage"``, ``"propagate"``, ``"paper"`` or a `graphret.expansion.Ranking`. With ``"paper"`` the nodes that
        were handed in come first, as many as its share of seeds allows.
    filters
        What may be returned. The graph knows nothing of the filters of the engine's retriever: give the same ones here,
        or a ``graph.view(...)``.
    use_query_embedding
        As `SageRetriever` has it.
    on_failure
        ``"fallback"``: if the embedding model fails, words alone count, and if the expansion fails, the nodes come out
        as they went in; the trace says so. ``"raise"`` raises `RetrievalFailed`.

    Raises
    ------
    InvalidInput
        When an argument is malformed, or nodes come without a question.
    """

    top_n: int = Field(default=10, description="How many nodes are returned, in total.")
    on_failure: str = Field(default="fallback", description="'fallback' or 'raise'.")
    use_query_embedding: bool | None = Field(default=None, description="Whether a query's own embedding is used.")
    graph: SkipValidation[Any] = Field(exclude=True, repr=False, description="The graph.")
    where: SkipValidation[Where | None] = Field(default=None, exclude=True, description="What may be returned.")
    _ranking: Ranking = PrivateAttr()

    def __init__(
        self,
        graph: SageGraph,
        *,
        top_n: int | None = None,
        k: int | None = None,
        ranking: Ranking | str = "coverage",
        filters: FiltersLike = None,
        use_query_embedding: bool | None = None,
        on_failure: str = "fallback",
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(  # type: ignore[call-arg]
            graph=require_graph(graph),
            top_n=top_k(k, top_n=top_n),
            where=to_where(filters),
            use_query_embedding=use_query_embedding,
            on_failure=require_on_failure(on_failure),
            callback_manager=callback_manager or CallbackManager([]),
        )
        self._ranking = ranking_of(graph, ranking)

    @classmethod
    def class_name(cls) -> str:
        """The name in serialised pipelines."""
        return "SageExpansion"

    @dispatcher.span
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        bundle = self._begun(nodes, query_bundle)
        if bundle is None:
            return self._ended([], Trace())
        given = _Given(nodes)
        try:
            retrieval = self._question(given, bundle).retrieve(bundle.query_str, self.top_n, self.where)
        except Exception as error:
            retrieval = self._unexpanded(given, bundle, error)
        return self._ended(self._merged(given, retrieval), retrieval.trace)

    @dispatcher.span
    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        bundle = self._begun(nodes, query_bundle)
        if bundle is None:
            return self._ended([], Trace())
        given = _Given(nodes)
        try:
            retrieval = await self._question(given, bundle).aretrieve(bundle.query_str, self.top_n, self.where)
        except Exception as error:
            retrieval = self._unexpanded(given, bundle, error)
        return self._ended(self._merged(given, retrieval), retrieval.trace)

    def _begun(self, nodes: list[NodeWithScore], bundle: QueryBundle | None) -> QueryBundle | None:
        """Return the question, or `None` where there is nothing to expand."""
        if nodes and bundle is None:
            raise InvalidInput("query: SageExpansion needs the question, as query_bundle or query_str")
        dispatcher.event(
            ExpansionStartEvent(query=bundle, nodes=nodes, top_n=self.top_n, model_name=self._ranking.name)
        )
        return bundle if nodes else None

    def _ended(self, nodes: list[NodeWithScore], trace: Trace) -> list[NodeWithScore]:
        dispatcher.event(ExpansionEndEvent(nodes=nodes, trace=trace.to_dict()))
        return nodes

    def _question(self, given: _Given, bundle: QueryBundle) -> Retriever:
        return Question(
            self.graph,
            bundle,
            seeds=given,
            ranking=self._ranking,
            use_query_embedding=self.use_query_embedding,
            on_failure=self.on_failure,
        )

    def _unexpanded(self, given: _Given, bundle: QueryBundle, error: Exception) -> Retrieval:
        if isinstance(error, (InvalidInput, RetrievalFailed)):
            raise error
        if self.on_failure == "raise":
            raise RetrievalFailed(f"the expansion failed: {error}") from error
        retrieval = given.retrieve(bundle.query_str, self.top_n, self.where)
        retrieval.trace.note("fallback", failed="expansion", error=f"{type(error).__name__}: {error}")
        return retrieval

    def _merged(self, given: _Given, retrieval: Retrieval) -> list[NodeWithScore]:
        merged = [_handed_on(given.handed.get(hit.id), hit, retrieval) for hit in retrieval]
        present = {one.node.node_id for one in merged}
        known = self.graph.nodes
        previous: str | None = None
        for hit in given.hits:
            unknown = hit.id not in known and hit.id not in present
            if unknown and (self.where is None or self.where.matches(hit.node)):
                at = next((i + 1 for i, one in enumerate(merged) if one.node.node_id == previous), 0)
                near = merged[max(at - 1, 0)] if merged else None
                raw, score = (near.raw_score or 0.0, near.score) if near else (hit.score, hit.relevance)
                placed = replace(hit, score=raw, relevance=score)
                merged.insert(at, _handed_on(given.handed[hit.id], placed, retrieval))
                previous = hit.id
            elif hit.id in present:
                previous = hit.id
        return list(merged[: self.top_n])


class _Given(Retriever):
    """Nodes that were handed in, as the answer to any question."""

    name = "given"

    def __init__(self, nodes: Sequence[NodeWithScore]) -> None:
        self.handed: dict[str, NodeWithScore] = {}
        for one in nodes:
            self.handed.setdefault(one.node.node_id, one)
        self.hits = hits_of(nodes, self.name, outline)

    def _retrieve(self, query: str, k: int, where: Where | None) -> Retrieval:
        hits = [hit for hit in self.hits if where is None or where.matches(hit.node)]
        return Retrieval(query, k, hits, Signals(candidates=len(self.hits), walked_edges=False))


def _handed_on(handed: NodeWithScore | None, hit: Hit, retrieval: Retrieval) -> SageNodeWithScore:
    if handed is None:
        return SageNodeWithScore.of(hit, to_llama_node(hit.node), retrieval)
    earlier = (one for one in evidence_of(handed) if one not in hit.evidence)
    return SageNodeWithScore.of(replace(hit, evidence=(*hit.evidence, *earlier)), handed.node, retrieval)
