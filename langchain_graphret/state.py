"""What graphs of LangGraph share: a state of plain JSON, and nodes that are written
once for both ways to run them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Annotated, Any, TypeAlias

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    convert_to_messages,
)
from langchain_core.runnables import RunnableLambda
from langgraph.channels import EphemeralValue
from langgraph.checkpoint.base import BaseCheckpointSaver
from typing_extensions import TypedDict

from graphret.ark import hits_text
from graphret.errors import InvalidInput
from graphret.retriever import Call, Compute, Retriever, adrive, drive
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
NodeSteps: TypeAlias = Generator[Call[Any] | Compute, Any, Any]


class QuestionInput(TypedDict, total=False):
    """What is asked: a question, or messages of which the last human one is it, and for
    how many hits of which kind where that differs from the graph's own.
    """

    # A channel forgets these after a step: they are of this question alone.
    question: Annotated[str, EphemeralValue]
    messages: Annotated[list[AnyMessage], EphemeralValue]
    k: int | None
    where: Json | None


class AnswerOutput(TypedDict, total=False):
    """What comes of a question: `hits`, `rows` and `trace` as `Retrieval.to_dict` has
    them, and of messages one more, which tells the hits.
    """

    question: Annotated[str, EphemeralValue]
    messages: Annotated[list[AnyMessage], EphemeralValue]
    hits: list[Json]
    rows: list[Json]
    trace: Json


class QuestionState(TypedDict, total=False):
    """What a state keeps of what is asked: `asked` has this question, its `k` and
    `where`, and whether it came as messages.
    """

    k: Annotated[int | None, EphemeralValue]
    where: Annotated[Json | None, EphemeralValue]
    asked: Json


def asked_of(state: Any, k: int) -> tuple[str, int, Where | None]:
    """Return the question of a state, for how many hits, `k` where it does not say, and
    of which kind.
    """
    question = state.get("question")
    if question is None and state.get("messages"):
        question = _last_human(convert_to_messages(state["messages"]))
    if not isinstance(question, str) or not question.strip():
        raise InvalidInput(f"question: expected words, got {question!r}")
    return (
        question,
        require_k(k if state.get("k") is None else state["k"]),
        Where.parse(state.get("where")),
    )


def first_asked(state: Any, k: int) -> tuple[str, Json]:
    """Return the question, and the update by which a graph's first node keeps what is
    asked for those after it.

    These read ``asked_of({**state, **state["asked"]}, k)``.
    """
    question, _, _ = asked_of(state, k)
    asked = {
        "question": question,
        "k": state.get("k"),
        "where": state.get("where"),
        "as_messages": state.get("question") is None,
    }
    return question, {"asked": asked}


def answered(state: Any, found: Json, graph: str) -> Json:
    """Return the update of a graph's last node: the question, what was found for it,
    and a message of the name `graph` where messages asked.
    """
    question = state["asked"]["question"]
    update = {"question": question, **found}
    if state["asked"]["as_messages"]:
        told = hits_text(question, found["hits"])
        update["messages"] = [AIMessage(told, name=graph)]
    return update


def _last_human(messages: Sequence[BaseMessage]) -> str | None:
    """Return what a person said last; `None` where nobody did."""
    said = (one for one in reversed(messages) if isinstance(one, HumanMessage))
    last = next(said, None)
    return None if last is None else str(last.text)


def node(steps: Callable[[Any], NodeSteps]) -> RunnableLambda[Any, Any]:
    """Return a node of what yields its calls; `ainvoke` awaits them, and traces have
    the name of `steps`.
    """

    def run(state: Any) -> Any:
        return drive(steps(state))

    async def arun(state: Any) -> Any:
        return await adrive(steps(state))

    return RunnableLambda(run, arun, name=steps.__name__.strip("_"))


def retrieved(
    retriever: Retriever, query: str, k: int, where: Where | None
) -> Generator[Call[Any], Any, Json]:
    """Ask a retriever in a node, and return hits, rows and trace as the state has
    them.
    """
    found: Retrieval = yield Call(
        lambda: retriever.retrieve(query, k, where),
        lambda: retriever.aretrieve(query, k, where),
    )
    return {
        name: plain(value)
        for name, value in found.to_dict().items()
        if name in ("hits", "rows", "trace")
    }
