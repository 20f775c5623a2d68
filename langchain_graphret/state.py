"""What graphs of LangGraph share: a state of plain JSON, and nodes that are written
once for both ways to run them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Annotated, Any, Required, TypeAlias

from langchain_core.runnables import RunnableLambda
from langgraph.channels import EphemeralValue
from langgraph.checkpoint.base import BaseCheckpointSaver
from typing_extensions import TypedDict

from graphret.errors import InvalidInput
from graphret.retriever import Call, Retriever, adrive, drive
from graphret.search.index import require_k
from graphret.types import Retrieval
from graphret.where import Where
from langchain_graphret.documents import plain

#: An object of JSON types.
Json: TypeAlias = dict[str, Any]

#: What `StateGraph.compile` takes as a checkpointer.
Checkpointer: TypeAlias = BaseCheckpointSaver[Any] | bool | None

#: What a node does: it yields calls of what is outside, is sent what came of them, and
#: returns the node's update.
NodeSteps: TypeAlias = Generator[Call[Any], Any, Any]


class QuestionInput(TypedDict, total=False):
    """What is asked: a question, and for how many hits of which kind where that differs
    from the graph's own.
    """

    question: Required[str]
    k: int | None
    where: Json | None


class AnswerOutput(TypedDict, total=False):
    """What comes of a question: `hits` and `trace` as `Retrieval.to_dict` has them."""

    question: str
    hits: list[Json]
    trace: Json


class QuestionState(TypedDict, total=False):
    """What a state keeps of what is asked: `asked` has the `k` and `where` of this
    question, and of none before it.
    """

    k: Annotated[int | None, EphemeralValue]
    where: Annotated[Json | None, EphemeralValue]
    asked: Json


def asked_of(state: Any, k: int) -> tuple[str, int, Where | None]:
    """Return the question of a state, for how many hits, `k` where it does not say, and
    of which kind.
    """
    question = state.get("question")
    if not isinstance(question, str) or not question.strip():
        raise InvalidInput(f"question: expected words, got {question!r}")
    return (
        question,
        require_k(k if state.get("k") is None else state["k"]),
        Where.parse(state.get("where")),
    )


def first_asked(state: Any, k: int) -> tuple[str, Json]:
    """Return the question, and the update by which a graph's first node keeps `k` and
    `where` for those after it.

    These read ``asked_of({**state, **state["asked"]}, k)``.
    """
    return asked_of(state, k)[0], {
        "asked": {"k": state.get("k"), "where": state.get("where")}
    }


def node(steps: Callable[[Any], NodeSteps]) -> RunnableLambda[Any, Any]:
    """Return a node of what yields its calls; `ainvoke` awaits them."""

    def run(state: Any) -> Any:
        return drive(steps(state))

    async def arun(state: Any) -> Any:
        return await adrive(steps(state))

    return RunnableLambda(run, arun)


def retrieved(
    retriever: Retriever, query: str, k: int, where: Where | None
) -> Generator[Call[Any], Any, Json]:
    """Ask a retriever in a node, and return hits and trace as the state has them."""
    found: Retrieval = yield Call(
        lambda: retriever.retrieve(query, k, where),
        lambda: retriever.aretrieve(query, k, where),
    )
    return {
        name: plain(value)
        for name, value in found.to_dict().items()
        if name in ("hits", "trace")
    }
