"""Node postprocessors: `SageExpansion` expands what another retriever found,
`GraphReranker` orders it anew.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

from llama_index.core.bridge.pydantic import Field
from llama_index.core.instrumentation.events.rerank import (
    ReRankEndEvent,
    ReRankStartEvent,
)
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher
from pydantic import SkipValidation

from graphret import Rerank, SageGraph
from graphret.errors import InvalidInput
from graphret.expansion import Ranking
from graphret.rerank import CrossEncoderReranker, Reranker
from graphret.retriever import Call, Retriever, adrive, drive, require_on_failure
from graphret.trace import Trace
from graphret.types import Hit, Retrieval, Signals
from graphret.where import Where
from llama_index_graphret.adapters import hits_of
from llama_index_graphret.evidence import (
    SageNodeWithScore,
    SageRetrievalEvent,
    evidence_of,
    retrieval_of,
)
from llama_index_graphret.filters import FiltersLike, to_where
from llama_index_graphret.nodes import to_llama_node
from llama_index_graphret.retriever import require_graph, top_k

dispatcher = get_dispatcher(__name__)


class CorePostprocessor(BaseNodePostprocessor):
    """A graphret retriever over the nodes that were handed in, as a postprocessor:
    written once for sync and async.
    """

    top_n: int = Field(default=10, description="How many nodes are returned, in total.")
    on_failure: str = Field(default="fallback", description="'fallback' or 'raise'.")
    where: SkipValidation[Where | None] = Field(
        default=None, exclude=True, description="What may be returned."
    )
    method: str = Field(
        default="", description="What orders the nodes, as events name it."
    )

    @dispatcher.span
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return drive(self._steps(nodes, query_bundle))

    @dispatcher.span
    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return await adrive(self._steps(nodes, query_bundle))

    def _steps(
        self, nodes: list[NodeWithScore], asked: QueryBundle | None
    ) -> Generator[Call[Retrieval], Retrieval, list[NodeWithScore]]:
        if not nodes:
            return []
        if asked is None:
            raise InvalidInput(
                f"query: {self.class_name()} needs the question, as query_bundle or"
                " query_str"
            )
        dispatcher.event(
            ReRankStartEvent(
                query=asked, nodes=nodes, top_n=self.top_n, model_name=self.method
            )
        )
        given = GivenNodes(nodes)
        core, question = (
            self._retriever(given),
            (asked.query_str, self.top_n, self.where),
        )
        found = yield Call(
            lambda: core.retrieve(*question), lambda: core.aretrieve(*question)
        )
        merged = self._merged(given, found)
        dispatcher.event(SageRetrievalEvent.of(found))
        dispatcher.event(ReRankEndEvent(nodes=merged))
        return merged

    def _retriever(self, given: GivenNodes) -> Retriever:
        raise NotImplementedError

    def _merged(self, given: GivenNodes, found: Retrieval) -> list[NodeWithScore]:
        raise NotImplementedError


class SageExpansion(CorePostprocessor):
    """Expand the nodes of an existing query engine over a graph (SAGE, section 2.2 B).

    What the engine's retriever found are the seeds; they and what the graph connects
    them to are ranked together. Nodes that were handed in come out as they were, with
    the same hash and texts, new ones as the graph holds them; the score of all is their
    relevance, 0 … 1. A node that the graph does not hold keeps its place.

    Parameters
    ----------
    graph
        A `SageGraph` over the same nodes, such as `SageGraph.from_index` makes.
    top_n, k
        How many nodes are returned, in total: exactly so many where that many qualify;
        10 by default.
    ranking
        ``"coverage"``, ``"propagate"``, ``"paper"`` or a `graphret.expansion.Ranking`;
        by default the one that was trained for the graph, ``"coverage"`` where none
        was. With ``"paper"`` the nodes that were handed in come first, as many as its
        share of seeds allows.
    filters
        What may be returned. The graph knows nothing of the filters of the engine's
        retriever: give the same ones here, or a ``graph.view(...)``.
    on_failure
        ``"fallback"``: if the embedding model fails, words alone count; the trace says
        so. ``"raise"`` raises `RetrievalFailed`.
    """

    graph: SkipValidation[Any] = Field(
        exclude=True, repr=False, description="The graph."
    )
    ranking: SkipValidation[Any] = Field(
        exclude=True, repr=False, description="What ranks seeds and neighbours."
    )

    def __init__(
        self,
        graph: SageGraph,
        *,
        top_n: int | None = None,
        k: int | None = None,
        ranking: Ranking | str | None = None,
        filters: FiltersLike = None,
        on_failure: str = "fallback",
    ) -> None:
        chosen = require_graph(graph).retriever(ranking).ranking
        super().__init__(  # type: ignore[call-arg]
            graph=graph,
            ranking=chosen,
            method=chosen.name,
            top_n=top_k(k, top_n),
            where=to_where(filters),
            on_failure=require_on_failure(on_failure),
        )

    @classmethod
    def class_name(cls) -> str:
        return "SageExpansion"

    def _retriever(self, given: GivenNodes) -> Retriever:
        expanded: Retriever = self.graph.retriever(
            self.ranking, seeds=given, on_failure=self.on_failure
        )
        return expanded

    def _merged(self, given: GivenNodes, found: Retrieval) -> list[NodeWithScore]:
        merged, there = (
            [given.dressed(hit, found) for hit in found],
            {hit.id for hit in found},
        )
        for place, hit in enumerate(given.hits):
            if (
                hit.id in there
                or hit.id in self.graph.nodes
                or (self.where and not self.where.matches(hit.node))
            ):
                continue
            if merged:
                near = merged[min(max(place - 1, 0), len(merged) - 1)]
                hit = replace(hit, score=near.raw_score or 0.0, relevance=near.score)
            merged.insert(place, given.dressed(hit, found))
        return list(merged[: self.top_n])


class GraphReranker(CorePostprocessor):
    """Order nodes by a model that reads question and node together; evidence is kept
    and gains the rank before.

    The model reads a node as graphret has it, its name, then its text, behind the row
    or the words of the node by which a graphret retriever found it; its order is fused
    with the one that the nodes came in (`graphret.Rerank`). Nodes come out with the
    same hash and texts; those that went in are not changed.

    Parameters
    ----------
    model
        A sentence-transformers cross-encoder by name or folder (loaded when first
        used), an object with ``predict(pairs)``, or a graphret `Reranker`.
    top_n, k
        How many nodes are returned; 10 by default.
    weight
        The share of the model's order in the fused one; 1 for its order alone.
    on_failure
        ``"fallback"``: if the model fails, the nodes keep their order, and the trace
        says so. ``"raise"`` raises `RetrievalFailed`.
    """

    reranker: SkipValidation[Any] = Field(
        exclude=True, repr=False, description="What scores the nodes."
    )
    weight: float = Field(
        default=0.5, ge=0, le=1, description="The share of the model's order."
    )

    def __init__(
        self,
        model: Any,
        *,
        top_n: int | None = None,
        k: int | None = None,
        weight: float = 0.5,
        on_failure: str = "fallback",
    ) -> None:
        reranker = model if isinstance(model, Reranker) else CrossEncoderReranker(model)
        super().__init__(  # type: ignore[call-arg]
            reranker=reranker,
            method=reranker.name,
            weight=weight,
            top_n=top_k(k, top_n),
            on_failure=require_on_failure(on_failure),
        )

    @classmethod
    def class_name(cls) -> str:
        return "GraphReranker"

    def _retriever(self, given: GivenNodes) -> Retriever:
        depth = len(given.hits)
        return Rerank(
            given,
            self.reranker,
            depth=depth,
            weight=self.weight,
            on_failure=self.on_failure,
        )

    def _merged(self, given: GivenNodes, found: Retrieval) -> list[NodeWithScore]:
        return [given.dressed(replace(hit, relevance=None), found) for hit in found]


class GivenNodes(Retriever):
    """Nodes that were handed in, as the answer to any question."""

    name = "given"

    def __init__(self, nodes: Sequence[NodeWithScore]) -> None:
        self.nodes = {one.node.node_id: one for one in reversed(nodes)}
        self.hits = hits_of(nodes)
        earlier = retrieval_of(nodes)
        self.trace = earlier.trace if earlier else Trace()

    def _retrieve(self, query: str, k: int, where: Where | None) -> Retrieval:
        hits = [hit for hit in self.hits if where is None or where.matches(hit.node)]
        signals = Signals(candidates=len(self.hits), walked_edges=False)
        return Retrieval(query, k, hits, signals, Trace(list(self.trace.stages)))

    def dressed(self, hit: Hit, found: Retrieval) -> SageNodeWithScore:
        """Return a hit as the node that was handed in, or as the graph has it, with the
        evidence from before.
        """
        given = self.nodes.get(hit.id)
        if given is None:
            return SageNodeWithScore.of(hit, to_llama_node(hit.node), found)
        earlier = (one for one in evidence_of(given) if one not in hit.evidence)
        return SageNodeWithScore.of(
            replace(hit, evidence=(*hit.evidence, *earlier)), given.node, found
        )
