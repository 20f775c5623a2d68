"""Node postprocessors: `SageExpansion`, `GraphReranker` and `RRFFusion`.

They expand what another retriever returned, reorder it, or fuse it with what a further
one returns.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.bridge.pydantic import Field
from llama_index.core.instrumentation.events.rerank import (
    ReRankEndEvent,
    ReRankStartEvent,
)
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher
from pydantic import SkipValidation

from graphret import Fuse, Rerank, SageGraph
from graphret.content import Content, NodeContent
from graphret.contracts import CheckedKeywords
from graphret.errors import InvalidInput
from graphret.expansion import Expand, Ranking, ranking_of
from graphret.rerank import CrossEncoderReranker, Reranker
from graphret.retriever import (
    Call,
    Compute,
    Retriever,
    adrive,
    drive,
    require_on_failure,
)
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore
from graphret.trace import Trace
from graphret.types import Hit, Retrieval, Signals
from graphret.where import Where
from llama_index_graphret.adapters import answering, as_seeds, hits_of
from llama_index_graphret.evidence import (
    SageNodeWithScore,
    SageRetrievalEvent,
    evidence_of,
    retrieval_of,
)
from llama_index_graphret.filters import FiltersLike, to_where
from llama_index_graphret.nodes import to_llama_node
from llama_index_graphret.retriever import for_bundle, require_graph, top_k

dispatcher = get_dispatcher(__name__)


class CorePostprocessor(CheckedKeywords, BaseNodePostprocessor):
    """A postprocessor that runs a graphret retriever over its input nodes."""

    top_n: int = Field(default=10, description="How many nodes are returned, in total.")
    on_failure: str = Field(default="fallback", description="'fallback' or 'raise'.")
    where: SkipValidation[Where | None] = Field(
        default=None, exclude=True, description="What may be returned."
    )
    method: str = Field(
        default="", description="What orders the nodes, as events name it."
    )
    # Whether no input nodes means no output.
    _needs_nodes: ClassVar[bool] = True

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
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None
    ) -> Generator[Any, Any, list[NodeWithScore]]:
        if not nodes and self._needs_nodes:
            return []
        if query_bundle is None:
            raise InvalidInput(
                f"query: {self.class_name()} needs the question, as query_bundle or"
                " query_str"
            )
        dispatcher.event(
            ReRankStartEvent(
                query=query_bundle,
                nodes=nodes,
                top_n=self.top_n,
                model_name=self.method,
            )
        )
        inputs = InputNodes(nodes)
        core = self._retriever(inputs, query_bundle)
        question = query_bundle.query_str, self.top_n, self.where
        with answering(query_bundle):
            retrieval = yield Call(
                lambda: core.retrieve(*question), lambda: core.aretrieve(*question)
            )
        # neighbors may have to be read from a database
        merged: list[NodeWithScore] = yield Compute(
            lambda: self._merged(inputs, retrieval)
        )
        dispatcher.event(SageRetrievalEvent.of(retrieval))
        dispatcher.event(ReRankEndEvent(nodes=merged))
        return merged

    def _retriever(self, inputs: InputNodes, query_bundle: QueryBundle) -> Retriever:
        raise NotImplementedError

    def _merged(self, inputs: InputNodes, retrieval: Retrieval) -> list[NodeWithScore]:
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
        A `SageGraph` over the same nodes, such as `SageGraph.from_index` makes; or a
        store, such as `from_property_graph_store` makes, whose nodes are known by id.
    index
        With a store: a text index over its nodes.
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
    fill, content
        As `SageRetriever` has them, of nodes that the graph adds.
    """

    graph: SkipValidation[Any] = Field(
        exclude=True, repr=False, description="The graph, or a store."
    )
    index: SkipValidation[Any] = Field(
        default=None, exclude=True, repr=False, description="With a store its index."
    )
    fill: bool = Field(default=True, description="Whether hits may only fill a place.")
    content: SkipValidation[Any] = Field(
        default=None, exclude=True, repr=False, description="What the text of nodes is."
    )
    ranking: SkipValidation[Any] = Field(
        exclude=True, repr=False, description="What ranks seeds and neighbours."
    )

    def __init__(
        self,
        graph: SageGraph | GraphStore,
        index: TextIndex | None = None,
        *,
        fill: bool = True,
        content: Content | None = None,
        top_n: int | None = None,
        k: int | None = None,
        ranking: Ranking | str | None = None,
        filters: FiltersLike = None,
        on_failure: str = "fallback",
    ) -> None:
        if index is None:
            chosen = require_graph(graph).retriever(ranking).ranking
        else:
            chosen = ranking_of(ranking or "coverage")
            Expand(None, graph, index)  # type: ignore[arg-type]  # it refuses others
        NodeContent(chosen=content)
        super().__init__(  # type: ignore[call-arg]
            graph=graph,
            index=index,
            fill=fill,
            content=content,
            ranking=chosen,
            method=chosen.name,
            top_n=top_k(k, top_n),
            where=to_where(filters),
            on_failure=require_on_failure(on_failure),
        )

    @classmethod
    def class_name(cls) -> str:
        return "SageExpansion"

    def _retriever(self, inputs: InputNodes, query_bundle: QueryBundle) -> Retriever:
        if self.index is not None:
            over_store = Expand(
                inputs,
                self.graph,
                self.index,
                ranking=self.ranking,
                on_failure=self.on_failure,
            )
            return for_bundle(over_store, query_bundle)
        expanded: Retriever = self.graph.retriever(
            self.ranking, seeds=inputs, on_failure=self.on_failure
        )
        return for_bundle(expanded, query_bundle)

    def _merged(self, inputs: InputNodes, retrieval: Retrieval) -> list[NodeWithScore]:
        hits = [hit for hit in retrieval if self.fill or not hit.fill]
        ranked_ids = {hit.id for hit in hits} | self._ids_in_graph(inputs)
        merged = inputs.output_nodes(hits, retrieval, self._content())
        for place, hit in enumerate(inputs.hits):
            hidden = self.where is not None and not self.where.matches(hit.node)
            if hit.id in ranked_ids or hidden:
                continue
            if merged:
                neighbor = merged[min(max(place - 1, 0), len(merged) - 1)]
                hit = replace(
                    hit, score=neighbor.raw_score or 0.0, relevance=neighbor.score
                )
            merged.insert(place, inputs.output_node(hit, retrieval))
        return list(merged[: self.top_n])

    def _ids_in_graph(self, inputs: InputNodes) -> set[str]:
        """Return the ids of the input nodes that are in the graph."""
        ids = [hit.id for hit in inputs.hits]
        if self.index is None:
            return {node_id for node_id in ids if node_id in self.graph.nodes}
        return {node.id for node in self.graph.get(ids) if node is not None}

    def _content(self) -> NodeContent:
        store = None if self.index is None else self.graph
        return NodeContent(store, self.content)


class GraphReranker(CorePostprocessor):
    """Rerank nodes by a model that reads question and node together.

    Evidence is kept, and the previous rank is added to it.

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
    rrf_k
        Constant of reciprocal rank fusion (Cormack et al. 2009; 60 there); `None` fuses
        scores.
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
    rrf_k: float | None = Field(
        default=None, ge=0, description="Fuses ranks by it; scores are fused if None."
    )

    def __init__(
        self,
        model: Any,
        *,
        top_n: int | None = None,
        k: int | None = None,
        weight: float = 0.5,
        rrf_k: float | None = None,
        on_failure: str = "fallback",
    ) -> None:
        reranker = model if isinstance(model, Reranker) else CrossEncoderReranker(model)
        super().__init__(  # type: ignore[call-arg]
            reranker=reranker,
            method=reranker.name,
            weight=weight,
            rrf_k=rrf_k,
            top_n=top_k(k, top_n),
            on_failure=require_on_failure(on_failure),
        )

    @classmethod
    def class_name(cls) -> str:
        return "GraphReranker"

    def _retriever(self, inputs: InputNodes, query_bundle: QueryBundle) -> Retriever:
        depth = len(inputs.hits)
        return Rerank(
            inputs,
            self.reranker,
            depth=depth,
            weight=self.weight,
            rrf_k=self.rrf_k,
            on_failure=self.on_failure,
        )

    def _merged(self, inputs: InputNodes, retrieval: Retrieval) -> list[NodeWithScore]:
        return [
            inputs.output_node(replace(hit, relevance=None), retrieval)
            for hit in retrieval
        ]


class RRFFusion(CorePostprocessor):
    """Fuse the nodes of a query engine with another retriever's, by reciprocal ranks.

    ``score(d) = Σ_i weight_i / (rrf_k + rank_i(d))``. Nodes that were handed in come
    out as they were, with the same hash and texts. Where none were, the other's come
    alone. `RRFFusionRetriever` does the same as a retriever.

    Parameters
    ----------
    retriever
        A `SageGraph`, or a LlamaIndex or graphret retriever; nodes are the same where
        their ids are.
    weights
        How much the nodes and the retriever count; 1 by default.
    rrf_k
        Constant of reciprocal rank fusion (Cormack et al. 2009; 60 there).
    top_n, k
        How many nodes are returned; 10 by default.
    filters
        What may be returned.
    on_failure
        ``"fallback"``: if the retriever fails, the nodes keep their order, and the
        trace says so. ``"raise"`` raises `RetrievalFailed`.
    """

    retriever: SkipValidation[Any] = Field(
        exclude=True, repr=False, description="What the nodes are fused with."
    )
    weights: tuple[float, float] = Field(
        default=(1.0, 1.0), description="Of the nodes, and of the retriever."
    )
    rrf_k: float = Field(default=60.0, ge=0, description="Of reciprocal ranks.")
    _needs_nodes: ClassVar[bool] = False

    def __init__(
        self,
        retriever: SageGraph | BaseRetriever | Retriever,
        *,
        weights: Sequence[float] = (1.0, 1.0),
        rrf_k: float = 60.0,
        top_n: int | None = None,
        k: int | None = None,
        filters: FiltersLike = None,
        on_failure: str = "fallback",
    ) -> None:
        other: Retriever = (
            retriever.retriever()
            if isinstance(retriever, SageGraph)
            else as_seeds(retriever)
        )
        super().__init__(  # type: ignore[call-arg]
            retriever=other,
            weights=tuple(weights),
            rrf_k=rrf_k,
            method="rrf",
            top_n=top_k(k, top_n),
            where=to_where(filters),
            on_failure=require_on_failure(on_failure),
        )

    @classmethod
    def class_name(cls) -> str:
        return "RRFFusion"

    def _retriever(self, inputs: InputNodes, query_bundle: QueryBundle) -> Retriever:
        return Fuse(
            [inputs, for_bundle(self.retriever, query_bundle)],
            weights=self.weights,
            rrf_k=self.rrf_k,
            on_failure=self.on_failure,
        )

    def _merged(self, inputs: InputNodes, retrieval: Retrieval) -> list[NodeWithScore]:
        return [
            inputs.output_node(replace(hit, relevance=None), retrieval)
            for hit in retrieval
        ]


class InputNodes(Retriever):
    """The input nodes, as the answer to any question."""

    name = "given"

    def __init__(self, nodes: Sequence[NodeWithScore]) -> None:
        self.nodes = {
            scored_node.node.node_id: scored_node for scored_node in reversed(nodes)
        }
        self.hits = hits_of(nodes)
        earlier = retrieval_of(nodes)
        self.trace = earlier.trace if earlier else Trace()

    def _retrieve(self, query: str, k: int, where: Where | None) -> Retrieval:
        hits = [hit for hit in self.hits if where is None or where.matches(hit.node)]
        signals = Signals(candidates=len(self.hits), walked_edges=False)
        return Retrieval(query, k, hits, signals, Trace(list(self.trace.stages)))

    def output_nodes(
        self, hits: Sequence[Hit], retrieval: Retrieval, content: NodeContent
    ) -> list[SageNodeWithScore]:
        """Return hits as `output_node` does, new ones with their text for a model."""
        fresh = [hit.node for hit in hits if hit.id not in self.nodes]
        texts = dict(
            zip([node.id for node in fresh], content.texts(fresh), strict=True)
        )
        return [self.output_node(hit, retrieval, texts.get(hit.id)) for hit in hits]

    def output_node(
        self, hit: Hit, retrieval: Retrieval, text: str | None = None
    ) -> SageNodeWithScore:
        """Return a hit as its input node or, if new, as the graph's node.

        The earlier evidence is kept.
        """
        scored_node = self.nodes.get(hit.id)
        if scored_node is None:
            return SageNodeWithScore.of(hit, to_llama_node(hit.node, text), retrieval)
        earlier = (
            evidence
            for evidence in evidence_of(scored_node)
            if evidence not in hit.evidence
        )
        return SageNodeWithScore.of(
            replace(hit, evidence=(*hit.evidence, *earlier)),
            scored_node.node,
            retrieval,
        )
