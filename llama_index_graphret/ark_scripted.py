"""`ScriptedExplorer`: graphret's policy without a model, where LlamaIndex wants an LLM that calls tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.callbacks import CallbackManager

from graphret.ark import scripted
from graphret.ark.prompt import EXPLORE, SEARCH
from graphret.errors import InvalidInput
from graphret.llm import Message, Reply, Tool
from llama_index_graphret.core_llm import CoreLLM


class ScriptedExplorer(CoreLLM):
    """A fixed policy that explores a graph with ARK's tools, as a LlamaIndex LLM; it is no language model.

    See `graphret.ark.ScriptedExplorer`. It drives `ArkRetriever`, and those LlamaIndex agents that offer `ark_tools`
    by function calling: `FunctionAgent`, and an `AgentWorkflow` of such. It ends by naming the nodes that it takes for
    the answer. A `ReActAgent` or a `CodeActAgent` describes its tools in a prompt instead, which a policy does not
    read, and a query engine asks for an answer in words; it has none, and says so.

    Parameters
    ----------
    callback_manager
        As any LlamaIndex LLM has it.

    Raises
    ------
    InvalidInput
        On a call, when neither `global_search` nor `explore_neighborhood` is offered as a tool.

    Examples
    --------
    >>> import asyncio
    >>> from graphret import BM25Index, Edge, MemoryStore, Node
    >>> from llama_index.core.agent.workflow import FunctionAgent
    >>> from llama_index_graphret import ark_tools
    >>> nodes = [Node("m1", ("movie",), "Heat"), Node("p1", ("person",), "Michael Mann")]
    >>> store = MemoryStore.of(nodes, [Edge("m1", "directed_by", "p1")])
    >>> async def ask(question):
    ...     agent = FunctionAgent(tools=ark_tools(store, BM25Index.build(nodes)), llm=ScriptedExplorer())
    ...     return str(await agent.run(question))
    >>> asyncio.run(ask("Who directed Heat?"))
    'Found, best first: p1'
    """

    def __init__(self, *, callback_manager: CallbackManager | None = None) -> None:
        super().__init__(_Policy(), context_window=1_000_000, callback_manager=callback_manager)

    @classmethod
    def class_name(cls) -> str:
        """The name in serialised pipelines."""
        return "ScriptedExplorer"


class _Policy(scripted.ScriptedExplorer):
    """The policy; a loop that offers nothing to explore with would wait for its answer in vain."""

    def chat(self, messages: Sequence[Message], *, tools: Sequence[Tool] | None = None, **options: Any) -> Reply:
        if not any(tool.name in (SEARCH, EXPLORE) for tool in tools or ()):
            raise InvalidInput(
                "tools: ScriptedExplorer is no language model: it needs ark_tools, offered by function calling as "
                "FunctionAgent does; give a ReActAgent, a CodeActAgent or a query engine an LLM"
            )
        return super().chat(messages, tools=tools, **options)
