"""ARK, GRASP, GraphRAFT and SPARK in LlamaIndex: retrievers, and ARK's tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.schema import IndexNode
from llama_index.core.tools import FunctionTool

from graphret.ark import Ark, ArkSettings, Toolbox
from graphret.ark.retriever import OnRun
from graphret.content import Content
from graphret.expansion import Expand, Ranking
from graphret.expansion.expand import Policy
from graphret.graphraft import GraphRAFT, GraphRAFTSettings
from graphret.graphraft.candidates import QueryWriter
from graphret.graphraft.entities import EntityNamer
from graphret.graphraft.reasoner import Reasoner
from graphret.grasp import Grasp, GraspSettings
from graphret.linking import Linker
from graphret.llm import Tool
from graphret.planning import PathPlanner, Planner
from graphret.rerank import Reranker
from graphret.retriever import Retriever
from graphret.search.index import TextIndex
from graphret.spark import Spark, SparkSettings
from graphret.stores.base import CypherStore, GraphStore
from graphret.where import WhereLike
from llama_index_graphret.adapters import as_seeds
from llama_index_graphret.chat import ChatModelLike, as_core_model, metadata_of
from llama_index_graphret.filters import FiltersLike
from llama_index_graphret.retriever import CoreRetriever


class ArkRetriever(CoreRetriever):
    """Let agents explore a graph, and return what they voted for (ARK, section 3).

    Put it where a retriever goes; ``aretrieve`` awaits the models, and cancelling it
    stops every agent. `evidence_of` gives the votes for a node and how it was reached,
    `retrieval_of` the trace with every step.

    Parameters
    ----------
    llm
        A LlamaIndex LLM, a graphret `ChatModel`, or one for each agent. One that calls
        no tools is asked for its calls as JSON.
    store
        The graph. `from_property_graph_store` makes one of what LlamaIndex's property
        graphs hold.
    index
        A text index over its nodes.
    n_agents
        How many agents there are; as `settings` say (3) by default.
    settings, hints, fill, on_failure, on_run
        As `graphret.Ark` has them.
    fallback
        Who fills the places below what was selected, and stands in where agents fail: a
        LlamaIndex or graphret retriever; search in `index` by default. What it reads
        cannot be checked: with views give one that reads nothing else.
    temperature
        Of all agents or one for each; `None` leaves it to the LLM, whose provider may
        take no other.
    content, similarity_top_k, k, filters, callback_manager, object_map,
    objects, verbose
        As `SageRetriever` has them. The agents see what filters leave out all the same;
        to hide nodes altogether give ``store.view(...)`` and ``index.view(...)`` of one
        condition.

    Raises
    ------
    InvalidInput
        When one of store and index is a view and the other is none of the same
        condition.
    """

    def __init__(
        self,
        llm: ChatModelLike | Sequence[ChatModelLike],
        store: GraphStore,
        index: TextIndex,
        *,
        n_agents: int | None = None,
        settings: ArkSettings | None = None,
        hints: str = "",
        temperature: float | Sequence[float | None] | None = None,
        fallback: BaseRetriever | Retriever | None = None,
        fill: bool = True,
        on_failure: str = "fallback",
        on_run: OnRun | None = None,
        content: Content | None = None,
        similarity_top_k: int | None = None,
        k: int | None = None,
        filters: FiltersLike = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
    ) -> None:
        settings = settings or ArkSettings()
        if n_agents is not None:
            settings = replace(settings, n_agents=n_agents)
        models = (
            list(map(as_core_model, llm))
            if isinstance(llm, (list, tuple))
            else as_core_model(llm)
        )
        core = Ark(
            models,
            store,
            index,
            settings=settings,
            hints=hints,
            temperature=temperature,
            fallback=as_seeds(fallback),
            fill=fill,
            on_failure=on_failure,
            on_run=on_run,
        )
        super().__init__(
            core,
            fill=fill,
            content=content,
            similarity_top_k=similarity_top_k,
            k=k,
            filters=filters,
            callback_manager=callback_manager,
            object_map=object_map,
            objects=objects,
            verbose=verbose,
        )


class GraspRetriever(CoreRetriever):
    """Retrieve by a plan over the graph, fused with text search, and rerank (GRASP).

    Put it where a retriever goes. `evidence_of` gives the path by which a plan led to a
    node and its rank at each stage, `retrieval_of` the trace with the plan. For a stage
    alone give `as_llama_index_retriever` a `graphret.grasp.PlanRetriever`, a
    `graphret.Fuse` or a `graphret.rerank.Rerank`.

    Parameters
    ----------
    planner
        Who writes plans: a LlamaIndex LLM or a graphret `ChatModel`, any graphret
        `Planner`, or `None`, which needs no model.
    store
        The graph. `from_property_graph_store` makes one of a graph that LlamaIndex
        wrote.
    index
        The second opinion: a text index over its nodes, or a LlamaIndex or graphret
        retriever.
    documents, linker, reranker, settings, on_failure
        As `graphret.grasp.Grasp` has them.
    fill, content, similarity_top_k, k, filters, callback_manager, object_map,
    objects, verbose
        As `SageRetriever` has them.
    """

    def __init__(
        self,
        planner: ChatModelLike | Planner | None,
        store: GraphStore,
        index: TextIndex | BaseRetriever | Retriever,
        *,
        documents: TextIndex | None = None,
        linker: Linker | None = None,
        reranker: Reranker | None = None,
        settings: GraspSettings | None = None,
        on_failure: str = "fallback",
        fill: bool = True,
        content: Content | None = None,
        similarity_top_k: int | None = None,
        k: int | None = None,
        filters: FiltersLike = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
    ) -> None:
        core = Grasp(
            as_core_model(planner),
            store,
            as_seeds(index),
            documents=documents,
            linker=linker,
            reranker=reranker,
            settings=settings,
            on_failure=on_failure,
        )
        super().__init__(
            core,
            fill=fill,
            content=content,
            similarity_top_k=similarity_top_k,
            k=k,
            filters=filters,
            callback_manager=callback_manager,
            object_map=object_map,
            objects=objects,
            verbose=verbose,
        )


class GraphRAFTRetriever(CoreRetriever):
    """Retrieve by the best existing queries around a question's entities (GraphRAFT).

    Put it where a retriever goes. `evidence_of` gives the queries that found a node
    with the probability of each, `retrieval_of` the trace.

    Parameters
    ----------
    store
        The graph. `from_property_graph_store` makes one of a graph that LlamaIndex
        wrote.
    index
        What fills free places: a text index over its nodes.
    writer
        Ranks the queries: `graphret.graphraft.writer.Writer`, or `None`, which needs no
        model.
    planner, entities, reasoner, settings, fallback, fill, on_failure
        As `graphret.graphraft.GraphRAFT` has them; `entities` and `reasoner` may be
        LLMs of LlamaIndex, and `fallback` a retriever of LlamaIndex.
    content, similarity_top_k, k, filters, callback_manager, object_map,
    objects, verbose
        As `SageRetriever` has them.
    """

    def __init__(
        self,
        store: GraphStore,
        index: TextIndex,
        *,
        writer: QueryWriter | None = None,
        planner: PathPlanner | None = None,
        entities: ChatModelLike | EntityNamer | None = None,
        reasoner: ChatModelLike | Reasoner | None = None,
        settings: GraphRAFTSettings | None = None,
        fallback: BaseRetriever | Retriever | None = None,
        fill: bool = True,
        on_failure: str = "fallback",
        content: Content | None = None,
        similarity_top_k: int | None = None,
        k: int | None = None,
        filters: FiltersLike = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
    ) -> None:
        core = GraphRAFT(
            store,
            index,
            writer=writer,
            planner=planner,
            entities=as_core_model(entities),
            reasoner=as_core_model(reasoner),
            settings=settings,
            fallback=as_seeds(fallback),
            fill=fill,
            on_failure=on_failure,
        )
        super().__init__(
            core,
            fill=fill,
            content=content,
            similarity_top_k=similarity_top_k,
            k=k,
            filters=filters,
            callback_manager=callback_manager,
            object_map=object_map,
            objects=objects,
            verbose=verbose,
        )


class SparkRetriever(CoreRetriever):
    """Retrieve by a plan that an LLM writes in one call, then expand (SPARK).

    Put it where a retriever goes. `evidence_of` gives the query and the row that
    brought a node, `retrieval_of` the trace with the plan.

    Parameters
    ----------
    llm
        A LlamaIndex LLM, or a graphret `ChatModel`.
    store
        A graph that answers Cypher, and no view. `from_property_graph_store` makes one
        of a Neo4j that LlamaIndex wrote.
    index
        A text index over its nodes.
    settings, hints
        As `graphret.Spark` has them.
    expand, ranking
        The policy and the ranking of the expansion, as `graphret.Expand` has them;
        `None` does not expand.
    fallback
        Who answers where the plan finds nothing: a LlamaIndex or graphret retriever;
        search in `index` by default.
    fill, on_failure
        As `graphret.Spark` has them.
    content, similarity_top_k, k, filters, callback_manager, object_map,
    objects, verbose
        As `SageRetriever` has them.

    Raises
    ------
    InvalidInput
        If the store does not run Cypher or is a view.
    """

    def __init__(
        self,
        llm: ChatModelLike,
        store: CypherStore,
        index: TextIndex,
        *,
        settings: SparkSettings | None = None,
        hints: str = "",
        expand: Policy | None = None,
        ranking: Ranking | None = None,
        fallback: BaseRetriever | Retriever | None = None,
        fill: bool = True,
        on_failure: str = "fallback",
        content: Content | None = None,
        similarity_top_k: int | None = None,
        k: int | None = None,
        filters: FiltersLike = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
    ) -> None:
        core: Retriever = Spark(
            as_core_model(llm),
            store,
            index,
            settings=settings,
            hints=hints,
            fallback=as_seeds(fallback),
            fill=fill,
            on_failure=on_failure,
        )
        if expand is not None:
            core = Expand(core, store, index, policy=expand, ranking=ranking)
        super().__init__(
            core,
            fill=fill,
            content=content,
            similarity_top_k=similarity_top_k,
            k=k,
            filters=filters,
            callback_manager=callback_manager,
            object_map=object_map,
            objects=objects,
            verbose=verbose,
        )


def ark_tools(
    store: GraphStore,
    index: TextIndex,
    *,
    settings: ArkSettings | None = None,
    where: WhereLike = None,
) -> list[FunctionTool]:
    """Return ARK's operations as tools: ``global_search``, ``explore_neighborhood``.

    A call that cannot be run (an unknown node, a wrong argument) is answered with what
    to do better. `settings` say how much a call returns, and `where` what the tools may
    read at all.
    """
    if where is not None:
        store, index = store.view(where), index.view(where)
    toolbox = Toolbox(store, index, settings or ArkSettings())
    return [_tool(toolbox, operation) for operation in toolbox.operations]


def _tool(toolbox: Toolbox, tool: Tool) -> FunctionTool:
    def run(**arguments: Any) -> str:
        return toolbox.run(tool.name, arguments).text

    async def arun(**arguments: Any) -> str:
        return (await toolbox.arun(tool.name, arguments)).text

    return FunctionTool(fn=run, async_fn=arun, metadata=metadata_of(tool))
