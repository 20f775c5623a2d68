"""ARK in LlamaIndex: `ArkRetriever` for query engines, and its two operations as tools for agents of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import LLM
from llama_index.core.tools import FunctionTool

from graphret.ark import Ark, ArkSettings, Toolbox
from graphret.llm import ChatModel, Tool
from graphret.retriever import Retriever
from graphret.search.fields import NodeText
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore
from graphret.where import WhereLike
from llama_index_graphret.adapters import as_seeds
from llama_index_graphret.chat import as_core_model, metadata_of
from llama_index_graphret.filters import FiltersLike
from llama_index_graphret.retriever import CoreRetriever, top_k


class ArkRetriever(CoreRetriever):
    """Let agents explore a graph, and return what they voted for (ARK, section 3).

    Put it where a retriever goes; ``aretrieve`` awaits the models, and cancelling it stops every agent. `evidence_of`
    gives the votes for a node and how it was reached, `retrieval_of` the trace with every step.

    Parameters
    ----------
    llm
        A LlamaIndex LLM, a graphret `ChatModel`, or one for each agent. One that calls no tools is asked for its calls
        as JSON.
    store
        The graph. `from_property_graph_store` makes one of what LlamaIndex's property graphs hold.
    index
        A text index over its nodes.
    similarity_top_k, k
        How many nodes are returned, in total: exactly so many where that many qualify; 10 by default.
    filters
        What may be returned: `MetadataFilters`, or a graphret condition. The agents see the rest all the same; to hide
        nodes altogether give ``store.view(...)`` and ``index.view(...)`` of one condition.
    fallback
        Who fills the places below what was selected, and stands in where agents fail: a LlamaIndex or graphret
        retriever; search in `index` by default. What it reads cannot be checked: with views give one that reads nothing
        else.
    temperature
        Of all agents or one for each; `None` leaves it to the LLM, whose provider may take no other.
    options
        As `graphret.Ark` has them: `settings`, `hints`, `text`, `fill`, `on_failure`, `on_run`.

    Raises
    ------
    InvalidInput
        When one of store and index is a view and the other is none of the same condition.
    """

    def __init__(
        self,
        llm: LLM | ChatModel | Sequence[LLM | ChatModel],
        store: GraphStore,
        index: TextIndex,
        *,
        similarity_top_k: int | None = None,
        k: int | None = None,
        filters: FiltersLike = None,
        temperature: float | Sequence[float | None] | None = None,
        fallback: BaseRetriever | Retriever | None = None,
        **options: Any,
    ) -> None:
        models = list(map(as_core_model, llm)) if isinstance(llm, (list, tuple)) else as_core_model(llm)
        ark = Ark(models, store, index, temperature=temperature, fallback=as_seeds(fallback), **options)
        super().__init__(ark, top_k(k, similarity_top_k), filters)


def ark_tools(
    store: GraphStore,
    index: TextIndex,
    *,
    settings: ArkSettings | None = None,
    text: NodeText | None = None,
    where: WhereLike = None,
) -> list[FunctionTool]:
    """Return ARK's two operations as tools for a LlamaIndex agent: ``global_search`` and ``explore_neighborhood``.

    A call that cannot be run (an unknown node, a wrong argument) is answered with what to do better. `settings` say how
    much a call returns, `text` which properties make up a node's text, and `where` what the tools may read at all.
    """
    toolbox = Toolbox(store, index, settings or ArkSettings(), text=text)
    if where is not None:
        toolbox = toolbox.view(where)
    return [_tool(toolbox, one) for one in toolbox.operations]


def _tool(toolbox: Toolbox, tool: Tool) -> FunctionTool:
    def run(**arguments: Any) -> str:
        return toolbox.run(tool.name, arguments).text

    async def arun(**arguments: Any) -> str:
        return (await toolbox.arun(tool.name, arguments)).text

    return FunctionTool(fn=run, async_fn=arun, metadata=metadata_of(tool))
