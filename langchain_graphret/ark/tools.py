"""ARK's two operations as LangChain tools, for agents of your own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from langchain_core.runnables.config import ContextThreadPoolExecutor
from langchain_core.tools import BaseTool
from pydantic import ConfigDict, Field

from graphret.ark import ArkSettings, Observation, Toolbox
from graphret.ark.tools import Outcome, attempt
from graphret.llm.chat import Tool, ToolCall
from graphret.search.fields import NodeText
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore


class ArkTool(BaseTool):
    """One of the operations. What a model calls wrongly is answered with an instruction, not with an exception.

    The artifact has the ids behind the text: ``{"nodes", "edges", "total", "failed"}``, in plain JSON types.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    toolbox: Toolbox = Field(repr=False, exclude=True)
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"

    def _run(self, **arguments: Any) -> tuple[str, dict[str, Any]]:
        return _answer(self.toolbox.run(self.name, arguments))

    async def _arun(self, **arguments: Any) -> tuple[str, dict[str, Any]]:
        return _answer(await self.toolbox.arun(self.name, arguments))


def ark_tools(
    store: GraphStore, index: TextIndex, *, settings: ArkSettings | None = None, text: NodeText | None = None
) -> list[BaseTool]:
    """Return the tools `global_search` and `explore_neighborhood` over a graph (ARK, section 3.1).

    Parameters
    ----------
    store, index
        The graph, and what finds its nodes by text; give views of both, of one condition, to limit what the
        tools may read.
    settings
        How much a call returns.
    text
        How nodes become the text of which excerpts are shown.

    Examples
    --------
    >>> from langgraph.prebuilt import ToolNode
    >>> tools = ToolNode(ark_tools(store, index))  # doctest: +SKIP
    """
    toolbox = Toolbox(store, index, settings or ArkSettings(), text=text)
    return [_tool(tool, toolbox) for tool in toolbox.operations]


def _tool(tool: Tool, toolbox: Toolbox) -> ArkTool:
    return ArkTool(name=tool.name, description=tool.description, args_schema=dict(tool.parameters), toolbox=toolbox)


def _answer(observation: Observation) -> tuple[str, dict[str, Any]]:
    shown = {
        "nodes": list(observation.nodes),
        "edges": [list(edge) for edge in observation.edges],
        "total": observation.total,
        "failed": observation.failed,
    }
    return observation.text, shown


class LangChainToolbox(Toolbox):
    """Runs the calls of an agent as LangChain tools, so that callbacks, traces and event streams show each."""

    def run_calls(self, calls: Sequence[ToolCall]) -> list[Outcome]:
        """Run the calls of a reply at once."""
        if len(calls) == 1:
            return [self._run_call(calls[0])]
        with ContextThreadPoolExecutor(max_workers=len(calls)) as executor:
            return list(executor.map(self._run_call, calls))

    async def arun_calls(self, calls: Sequence[ToolCall]) -> list[Outcome]:
        """Do as `run_calls`, without blocking the event loop."""
        return list(await asyncio.gather(*(asyncio.to_thread(self._run_call, call) for call in calls)))

    def _run_call(self, call: ToolCall) -> Outcome:
        known = next((tool for tool in self.operations if tool.name == call.name), None)
        arguments = call.parsed or {}
        if known is None:
            return attempt(call, partial(self.run, call.name, arguments))
        asked = {"type": "tool_call", "id": call.id, "name": call.name, "args": arguments}
        return attempt(call, partial(_observed, _tool(known, self), asked))


def _observed(tool: ArkTool, asked: dict[str, Any]) -> Observation:
    message = tool.invoke(asked)
    shown, text = message.artifact, message.text
    wrong = json.loads(text)["error"] if shown["failed"] else ""
    edges = tuple(tuple(edge) for edge in shown["edges"])
    return Observation(text, tuple(shown["nodes"]), edges, shown["total"], shown["failed"], wrong)
