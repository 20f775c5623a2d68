"""A graph of exploring agents as one tool of another agent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import BaseModel, Field

from graphret.ark import ArkSettings
from graphret.ark.observation import Entry, fitting, json_line
from graphret.ark.snippet import query_terms
from graphret.errors import InvalidInput
from graphret.types import Evidence
from langchain_graphret.ark.state import Json

_NAME = "explore_graph"
_DESCRIPTION = (
    "Find what answers a question in a knowledge graph: agents search it and follow its relations from node to node. "
    "Returns the nodes that answer it, best first, one JSON object a line."
)
_TEXT_CHARS = 1000
_REASONS = 3


class Question(BaseModel):
    """What an agent is asked."""

    question: str = Field(description="The question, complete in itself, with the names that it is about.")


class Asked(Question):
    """What a run is asked."""

    k: int | None = Field(None, ge=1, description="How many nodes to return, where that should be another number.")
    where: dict[str, Any] | None = Field(
        None, description='Conditions on the properties of nodes returned, such as {"year": {"$gte": 1990}}.'
    )


@dataclass(frozen=True, slots=True)
class Answers:
    """How a graph answers as a tool.

    Parameters
    ----------
    takes
        What it is asked.
    says
        From its output to what the model reads.
    keeps
        What of its output becomes the tool message's artifact.
    """

    takes: type[BaseModel]
    says: Callable[[Json], str]
    keeps: tuple[str, ...]

    def tool(self, graph: Runnable[Any, Any], name: str | None, description: str | None) -> BaseTool:
        """Return the tool; what is asked malformed is answered to the model."""

        def work(config: RunnableConfig, **asked: Any) -> tuple[str, Json]:
            try:
                _require_question(asked)
                return self._answer(graph.invoke(asked, config))
            except InvalidInput as error:
                raise ToolException(str(error)) from error

        async def awaited(config: RunnableConfig, **asked: Any) -> tuple[str, Json]:
            try:
                _require_question(asked)
                return self._answer(await graph.ainvoke(asked, config))
            except InvalidInput as error:
                raise ToolException(str(error)) from error

        return StructuredTool.from_function(
            work,
            awaited,
            name=name or _NAME,
            description=description or _DESCRIPTION,
            args_schema=self.takes,
            response_format="content_and_artifact",
            handle_tool_error=True,
        )

    def _answer(self, found: Json) -> tuple[str, Json]:
        return self.says(found), {key: found[key] for key in self.keeps if key in found}


def _require_question(asked: Json) -> None:
    if not asked["question"].strip():  # a graph answers it with some nodes, since it returns as many as it is asked for
        raise InvalidInput("question: it is empty; ask one, with the names that it is about")


def of_graph(settings: ArkSettings) -> Answers:
    """Return how `create_ark_graph` answers: each hit with what its node says and why it is one, within a budget."""

    def says(found: Json) -> str:
        hits = found["hits"]
        text, _ = fitting(
            lambda shown, cut, level: {"shown": shown, "of": len(hits)},
            list(map(_entry, hits)),
            query_terms(found["question"]),
            snippet_chars=max(settings.snippet_chars, _TEXT_CHARS),
            max_tokens=settings.observation_tokens,
        )
        return text

    return Answers(Asked, says, ("hits", "trace"))


def _entry(hit: Json) -> Entry:
    name = {"name": hit["name"]} if hit["name"] not in ("", hit["id"]) else {}
    why = [str(Evidence(**one)) for one in hit["evidence"][:_REASONS]]
    return Entry({"id": hit["id"], **name, "type": hit["labels"], "because": why}, hit["text"])


def of_agent() -> Answers:
    """Return how `create_ark_agent` answers: with the ids that it selected."""
    return Answers(Question, lambda found: json_line({"selected": found["selection"]}), ("selection",))
