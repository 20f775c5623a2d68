"""ARK, GRASP, GraphRAFT and SPARK in LlamaIndex: retrievers for query engines, and
ARK's operations as tools.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import LLM
from llama_index.core.tools import FunctionTool

from graphret.ark import Ark, ArkSettings, Toolbox
from graphret.expansion import Expand, Ranking
from graphret.expansion.expand import Policy
from graphret.graphraft import GraphRAFT
from graphret.grasp import Grasp
from graphret.llm import ChatModel, Tool
from graphret.planning import Planner
from graphret.retriever import Retriever
from graphret.search.index import TextIndex
from graphret.spark import Spark
from graphret.stores.base import CypherStore, GraphStore
from graphret.where import WhereLike
from llama_index_graphret.adapters import as_seeds
from llama_index_graphret.chat import as_core_model, metadata_of
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
    similarity_top_k, k, filters
        As `SageRetriever` has them. The agents see what filters leave out all the same;
        to hide nodes altogether give ``store.view(...)`` and ``index.view(...)`` of one
        condition.
    fallback
        Who fills the places below what was selected, and stands in where agents fail: a
        LlamaIndex or graphret retriever; search in `index` by default. What it reads
        cannot be checked: with views give one that reads nothing else.
    temperature
        Of all agents or one for each; `None` leaves it to the LLM, whose provider may
        take no other.
    options
        As `graphret.Ark` has them: `settings`, `hints`, `fill`, `on_failure`, `on_run`.

    Raises
    ------
    InvalidInput
        When one of store and index is a view and the other is none of the same
        condition.
    """

    def __init__(
        self,
        llm: LLM | ChatModel | Sequence[LLM | ChatModel],
        store: GraphStore,
        index: TextIndex,
        **options: Any,
    ) -> None:
        super().__init__(_ark, llm, store, index, **options)


def _ark(
    llm: Any,
    store: GraphStore,
    index: TextIndex,
    *,
    fallback: Any = None,
    **options: Any,
) -> Retriever:
    models = (
        list(map(as_core_model, llm))
        if isinstance(llm, (list, tuple))
        else as_core_model(llm)
    )
    return Ark(
        models,
        store,
        index,
        fallback=as_seeds(fallback),
        **{"temperature": None, **options},
    )


class GraspRetriever(CoreRetriever):
    """Return what a plan over the graph finds, fused with a search by text, and
    reranked (GRASP).

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
    similarity_top_k, k, filters
        As `SageRetriever` has them.
    options
        As `graphret.grasp.Grasp` has them: `documents`, `linker`, `reranker`,
        `settings`, `on_failure`.
    """

    def __init__(
        self,
        planner: LLM | ChatModel | Planner | None,
        store: GraphStore,
        index: TextIndex | BaseRetriever | Retriever,
        **options: Any,
    ) -> None:
        super().__init__(
            Grasp, as_core_model(planner), store, as_seeds(index), **options
        )


class GraphRAFTRetriever(CoreRetriever):
    """Return what the best of the queries find that exist around a question's entities
    (GraphRAFT).

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
    similarity_top_k, k, filters
        As `SageRetriever` has them.
    options
        As `graphret.graphraft.GraphRAFT` has them: `planner`, `settings`, `on_failure`,
        and `entities` and `reasoner`, which may be LLMs of LlamaIndex.
    """

    def __init__(self, store: GraphStore, index: TextIndex, **options: Any) -> None:
        models = {
            name: as_core_model(one)
            for name, one in options.items()
            if isinstance(one, LLM)
        }
        super().__init__(GraphRAFT, store, index, **options | models)


class SparkRetriever(CoreRetriever):
    """Return what a plan finds that an LLM writes with one call (SPARK), and what the
    graph connects it to.

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
    similarity_top_k, k, filters
        As `SageRetriever` has them.
    expand, ranking
        The policy and the ranking of the expansion, as `graphret.Expand` has them;
        `None` does not expand.
    fallback
        Who answers where the plan finds nothing: a LlamaIndex or graphret retriever;
        search in `index` by default.
    options
        As `graphret.spark.Spark` has them: `settings`, `hints`, `fill`, `on_failure`.

    Raises
    ------
    InvalidInput
        When the store answers no Cypher or is a view.
    """

    def __init__(
        self, llm: LLM | ChatModel, store: CypherStore, index: TextIndex, **options: Any
    ) -> None:
        super().__init__(_spark, llm, store, index, **options)


def _spark(
    llm: Any,
    store: CypherStore,
    index: TextIndex,
    *,
    expand: Policy | None = None,
    ranking: Ranking | None = None,
    fallback: Any = None,
    **options: Any,
) -> Retriever:
    spark = Spark(
        as_core_model(llm), store, index, fallback=as_seeds(fallback), **options
    )
    return (
        spark
        if expand is None
        else Expand(spark, store, index, policy=expand, ranking=ranking)
    )


def ark_tools(
    store: GraphStore,
    index: TextIndex,
    *,
    settings: ArkSettings | None = None,
    where: WhereLike = None,
) -> list[FunctionTool]:
    """Return ARK's two operations as tools for a LlamaIndex agent: ``global_search``
    and ``explore_neighborhood``.

    A call that cannot be run (an unknown node, a wrong argument) is answered with what
    to do better. `settings` say how much a call returns, and `where` what the tools may
    read at all.
    """
    if where is not None:
        store, index = store.view(where), index.view(where)
    toolbox = Toolbox(store, index, settings or ArkSettings())
    return [_tool(toolbox, one) for one in toolbox.operations]


def _tool(toolbox: Toolbox, tool: Tool) -> FunctionTool:
    def run(**arguments: Any) -> str:
        return toolbox.run(tool.name, arguments).text

    async def arun(**arguments: Any) -> str:
        return (await toolbox.arun(tool.name, arguments)).text

    return FunctionTool(fn=run, async_fn=arun, metadata=metadata_of(tool))
