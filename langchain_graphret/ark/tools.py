"""ARK's two operations as LangChain tools, for agents of your own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from langchain_core.tools import BaseTool
from pydantic import ConfigDict, Field

from graphret.ark import ArkSettings, Observation, Toolbox
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
    return [
        ArkTool(name=tool.name, description=tool.description, args_schema=dict(tool.parameters), toolbox=toolbox)
        for tool in toolbox.operations
    ]


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

    def __init__(self, store: GraphStore, index: TextIndex, settings: ArkSettings, text: NodeText | None) -> None:
        super().__init__(store, index, settings, text=text)
        self._by_name = {tool.name: tool for tool in ark_tools(store, index, settings=settings, text=text)}

    def run(self, name: str, arguments: Mapping[str, Any]) -> Observation:
        """Run a call as a tool, where it is one of the two."""
        if name not in self._by_name:
            return super().run(name, arguments)
        message = self._by_name[name].invoke({"type": "tool_call", "id": name, "name": name, "args": dict(arguments)})
        shown, text = message.artifact, message.text
        wrong = json.loads(text)["error"] if shown["failed"] else ""
        edges = tuple((source, relation, target) for source, relation, target in shown["edges"])
        return Observation(text, tuple(shown["nodes"]), edges, shown["total"], shown["failed"], wrong)
