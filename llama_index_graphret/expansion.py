"""`SageExpansion`: a postprocessor that expands what another retriever found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.callbacks import CallbackManager
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher
from pydantic import SkipValidation

from graphret import SageGraph
from graphret.errors import InvalidInput
from graphret.expansion import Ranking
from graphret.retriever import Retriever, require_on_failure
from graphret.types import Hit, Retrieval, Signals, Trace
from graphret.where import Where
from llama_index_graphret.adapters import hits_of
from llama_index_graphret.evidence import SageNodeWithScore, evidence_of
from llama_index_graphret.filters import FiltersLike, to_where
from llama_index_graphret.nodes import to_llama_node
from llama_index_graphret.retriever import Question, ranking_of, top_k

dispatcher = get_dispatcher(__name__)


class ExpansionStartEvent(ReRankStartEvent):
    """`SageExpansion` begins; handlers of reranking events see it too. The model's name is that of the ranking."""

    @classmethod
    def class_name(cls) -> str:
        return "ExpansionStartEvent"


class ExpansionEndEvent(ReRankEndEvent):
    """`SageExpansion` is done; handlers of reranking events see it too."""

    trace: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def class_name(cls) -> str:
        return "ExpansionEndEvent"


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
        on_failure: str = "fallback",
        callback_manager: CallbackManager | None = None,
    ) -> None:
        chosen = ranking_of(graph, ranking)
        super().__init__(  # type: ignore[call-arg]
            graph=graph,
            top_n=top_k(k, top_n=top_n),
            where=to_where(filters),
            on_failure=require_on_failure(on_failure),
            callback_manager=callback_manager or CallbackManager([]),
        )
        self._ranking = chosen

    @classmethod
    def class_name(cls) -> str:
        return "SageExpansion"

    @dispatcher.span
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        handed, question = self._begun(nodes, query_bundle)
        found = question.retrieve(question.bundle.query_str, self.top_n, self.where) if nodes else None
        return self._ended(handed, found)

    @dispatcher.span
    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        handed, question = self._begun(nodes, query_bundle)
        found = await question.aretrieve(question.bundle.query_str, self.top_n, self.where) if nodes else None
        return self._ended(handed, found)

    def _begun(self, nodes: list[NodeWithScore], bundle: QueryBundle | None) -> tuple[_Handed, Question]:
        if nodes and bundle is None:
            raise InvalidInput("query: SageExpansion needs the question, as query_bundle or query_str")
        name = self._ranking.name
        dispatcher.event(ExpansionStartEvent(query=bundle, nodes=nodes, top_n=self.top_n, model_name=name))
        handed, asked = _Handed(nodes), bundle or QueryBundle("")
        return handed, Question(self.graph, asked, self._ranking, handed, self.on_failure, instead=handed)

    def _ended(self, handed: _Handed, found: Retrieval | None) -> list[NodeWithScore]:
        nodes = [] if found is None else self._merged(handed, found)
        dispatcher.event(ExpansionEndEvent(nodes=nodes, trace=(found.trace if found else Trace()).to_dict()))
        return nodes

    def _merged(self, handed: _Handed, found: Retrieval) -> list[NodeWithScore]:
        """Return the hits as nodes, and those that the graph does not hold behind the ones that they came after."""
        merged = [handed.on(hit, found) for hit in found]
        places = {hit.id for hit in found}
        known = self.graph.nodes
        at = 0
        for hit in handed.hits:
            if hit.id in places:
                at = next(i for i, one in enumerate(merged) if one.node.node_id == hit.id) + 1
            elif hit.id not in known and (self.where is None or self.where.matches(hit.node)):
                near = merged[max(at - 1, 0)] if merged else None
                if near is not None:
                    hit = replace(hit, score=near.raw_score or 0.0, relevance=near.score)
                merged.insert(at, handed.on(hit, found))
                at += 1
        return list(merged[: self.top_n])


class _Handed(Retriever):
    """Nodes that were handed in, as the answer to any question."""

    name = "given"

    def __init__(self, nodes: Sequence[NodeWithScore]) -> None:
        self.nodes = {one.node.node_id: one for one in reversed(nodes)}
        self.hits = hits_of(nodes, self.name)

    def _retrieve(self, query: str, k: int, where: Where | None) -> Retrieval:
        hits = [hit for hit in self.hits if where is None or where.matches(hit.node)]
        return Retrieval(query, k, hits, Signals(candidates=len(self.hits), walked_edges=False))

    def on(self, hit: Hit, found: Retrieval) -> SageNodeWithScore:
        """Return a hit as the node that was handed in, or as the graph has it, with the evidence from before."""
        given = self.nodes.get(hit.id)
        if given is None:
            return SageNodeWithScore.of(hit, to_llama_node(hit.node), found)
        earlier = (one for one in evidence_of(given) if one not in hit.evidence)
        return SageNodeWithScore.of(replace(hit, evidence=(*hit.evidence, *earlier)), given.node, found)
