"""A graph of exploring agents as one tool of another agent."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import BaseModel, Field

from graphret.ark import ArkSettings
from graphret.ark.observation import Entry, fitting
from graphret.errors import InvalidInput
from graphret.types import Evidence
from langchain_graphret.ark.state import Json

_DESCRIPTION = (
    "Find what answers a question in a knowledge graph: agents search it and follow its relations from node to node. "
    "Returns the nodes that answer it, best first, one JSON object a line."
)
_TEXT_CHARS = 1000
_REASONS = 3


class Question(BaseModel):
    """What a run is asked."""

    question: str = Field(description="The question, complete in itself, with the names that it is about.")
    k: int | None = Field(None, ge=1, description="How many nodes to return, where that should be another number.")
    where: dict[str, Any] | None = Field(
        None, description='Conditions on the properties of nodes returned, such as {"year": {"$gte": 1990}}.'
    )


def create_ark_tool(
    graph: Runnable[Any, Any],
    *,
    name: str = "explore_graph",
    description: str = _DESCRIPTION,
    max_tokens: int = ArkSettings().observation_tokens,
) -> BaseTool:
    """Return a graph of `create_ark_graph` as a tool, whose model reads the hits and why they are hits.

    The tool message's artifact has the hits as they are, and the trace. What is asked malformed is answered to the
    model.

    Parameters
    ----------
    name, description
        What the model knows it by. Say what the graph holds.
    max_tokens
        Most tokens of the answer.

    Examples
    --------
    >>> tool = create_ark_tool(graph, description="Answers questions about films.")  # doctest: +SKIP
    """

    def answered(asked: Json, found: Json) -> tuple[str, Json]:
        hits = found["hits"]
        text, _ = fitting(
            lambda shown, cut, brief: {"shown": shown, "of": len(hits)},
            [_entry(hit) for hit in hits],
            asked["question"],
            snippet_chars=_TEXT_CHARS,
            max_tokens=max_tokens,
        )
        return text, {"hits": hits, "trace": found["trace"]}

    def work(config: RunnableConfig, **asked: Any) -> tuple[str, Json]:
        try:
            return answered(asked, graph.invoke(_checked(asked), config))
        except InvalidInput as error:
            raise ToolException(str(error)) from error

    async def awaited(config: RunnableConfig, **asked: Any) -> tuple[str, Json]:
        try:
            return answered(asked, await graph.ainvoke(_checked(asked), config))
        except InvalidInput as error:
            raise ToolException(str(error)) from error

    return StructuredTool.from_function(
        work,
        awaited,
        name=name,
        description=description,
        args_schema=Question,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )


def _checked(asked: Json) -> Json:
    if not asked["question"].strip():  # a graph answers it with some nodes, since it returns as many as it is asked for
        raise InvalidInput("question: it is empty; ask one, with the names that it is about")
    return asked


def _entry(hit: Json) -> Entry:
    name = {"name": hit["name"]} if hit["name"] not in ("", hit["id"]) else {}
    why = [str(Evidence(**one)) for one in hit["evidence"][:_REASONS]]
    return Entry({"id": hit["id"], **name, "type": hit["labels"], "because": why}, hit["text"])
