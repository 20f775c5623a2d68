"""ARK's two operations, or all its agents, as LangChain tools of another agent."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field, model_validator

from graphret.ark import ArkSettings, Observation, Toolbox, hits_text
from graphret.llm.chat import Tool
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore
from graphret.where import WhereLike
from langchain_graphret.documents import plain
from langchain_graphret.state import question_of

_DESCRIPTION = (
    "Find what answers a question in a knowledge graph: agents search it and follow its"
    " relations from node to node. Returns the nodes that answer it, best first, one"
    " JSON object a line."
)


def ark_tools(
    store: GraphStore,
    index: TextIndex,
    *,
    settings: ArkSettings | None = None,
    where: WhereLike = None,
) -> list[BaseTool]:
    """Return ARK's tools over a graph: `global_search` and `explore_neighborhood`.

    What a model calls wrongly is answered with an instruction, not with an exception. A
    message's artifact has the ids behind the text: ``{"nodes", "edges", "total",
    "failed"}``, in plain JSON types.

    Parameters
    ----------
    store, index
        The graph, and what finds its nodes by text.
    settings
        How much a call returns.
    where
        What the tools may read at all: a filter dictionary or a `graphret.Where`.
    """
    if where is not None:
        store, index = store.view(where), index.view(where)
    toolbox = Toolbox(store, index, settings or ArkSettings())
    return [_tool(toolbox, operation) for operation in toolbox.operations]


def _tool(toolbox: Toolbox, tool: Tool) -> BaseTool:
    def run(**arguments: Any) -> tuple[str, dict[str, Any]]:
        return _answer(toolbox.run(tool.name, arguments))

    async def arun(**arguments: Any) -> tuple[str, dict[str, Any]]:
        return _answer(await toolbox.arun(tool.name, arguments))

    return StructuredTool.from_function(
        run,
        arun,
        name=tool.name,
        description=tool.description,
        args_schema=dict(tool.parameters),
        response_format="content_and_artifact",
    )


def _answer(observation: Observation) -> tuple[str, dict[str, Any]]:
    return observation.text, plain(
        {
            name: getattr(observation, name)
            for name in ("nodes", "edges", "total", "failed")
        }
    )


class ArkToolInput(BaseModel):
    """What a run is asked."""

    question: str = Field(
        description="The question, complete in itself, with the names that it is about."
    )
    k: int | None = Field(
        None,
        ge=1,
        description="How many nodes to return, where that should be another number.",
    )
    where: dict[str, Any] | None = Field(
        None,
        description=(
            'Conditions on the properties of nodes returned, such as {"year": {"$gte":'
            " 1990}}."
        ),
    )

    @model_validator(mode="after")
    def _check(self) -> ArkToolInput:
        question_of(self.model_dump(), 1)
        return self


def create_ark_tool(
    graph: Runnable[Any, Any],
    *,
    name: str = "explore_graph",
    description: str = _DESCRIPTION,
) -> BaseTool:
    """Return a graph of `create_ark_graph` as a tool, for a model that reads the hits.

    The tool message's artifact has the hits as they are, and the trace. What is asked
    malformed is answered to the model.

    Parameters
    ----------
    name, description
        What the model knows it by. Say what the graph holds.
    """

    def content_and_artifact(
        arguments: dict[str, Any], output: dict[str, Any]
    ) -> tuple[str, dict[str, Any]]:
        hits = output["hits"]
        return hits_text(arguments["question"], hits), {
            "hits": hits,
            "trace": output["trace"],
        }

    def run(config: RunnableConfig, **arguments: Any) -> tuple[str, dict[str, Any]]:
        return content_and_artifact(arguments, graph.invoke(arguments, config))

    async def arun(
        config: RunnableConfig, **arguments: Any
    ) -> tuple[str, dict[str, Any]]:
        return content_and_artifact(arguments, await graph.ainvoke(arguments, config))

    return StructuredTool.from_function(
        run,
        arun,
        name=name,
        description=description,
        args_schema=ArkToolInput,
        response_format="content_and_artifact",
        handle_validation_error=str,
    )
