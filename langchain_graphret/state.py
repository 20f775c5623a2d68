"""The state of LangGraph graphs, in plain JSON, and their sync and async nodes."""

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

#: The steps of a node: they yield external calls, are sent their results, and return
#: the node's update.
NodeSteps: TypeAlias = Generator[Call[Any] | Compute, Any, Any]


class QuestionInput(TypedDict, total=False):
    """The input: a question or messages, and optionally `k` and `where` for its hits.

    In messages, the last human one is the question.
    """

    # ephemeral channels, because these belong to this question alone
    question: Annotated[str, EphemeralValue]
    messages: Annotated[list[AnyMessage], EphemeralValue]
    k: int | None
    where: Json | None


class AnswerOutput(TypedDict, total=False):
    """The output: `hits`, `rows` and `trace` as in `Retrieval.to_dict`.

    If messages came in, a message with the hits is added.
    """

    question: Annotated[str, EphemeralValue]
    messages: Annotated[list[AnyMessage], EphemeralValue]
    hits: list[Json]
    rows: list[Json]
    trace: Json


class QuestionState(TypedDict, total=False):
    """The question in a state: `asked` has it with `k`, `where` and `as_messages`."""

    k: Annotated[int | None, EphemeralValue]
    where: Annotated[Json | None, EphemeralValue]
    asked: Json


def question_of(state: Any, k: int) -> tuple[str, int, Where | None]:
    """Return a state's question, its number of hits (by default `k`), and condition."""
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


def accept_question(state: Any, k: int) -> tuple[str, Json]:
    """Return the question, and the first node's update that stores it in the state.

    Later nodes read it by ``question_of({**state, **state["asked"]}, k)``.
    """
    question, _, _ = question_of(state, k)
    question_state = {
        "question": question,
        "k": state.get("k"),
        "where": state.get("where"),
        "as_messages": state.get("question") is None,
    }
    return question, {"asked": question_state}


def answer_update(state: Any, results: Json, graph: str) -> Json:
    """Return the last node's update: the question, its results, and a message if asked.

    The message, for a question that came as messages, has the name `graph`.
    """
    question = state["asked"]["question"]
    update = {"question": question, **results}
    if state["asked"]["as_messages"]:
        text = hits_text(question, results["hits"])
        update["messages"] = [AIMessage(text, name=graph)]
    return update


def _last_human(messages: Sequence[BaseMessage]) -> str | None:
    """Return the text of the last human message, or `None`."""
    human_messages = (
        message for message in reversed(messages) if isinstance(message, HumanMessage)
    )
    last = next(human_messages, None)
    return None if last is None else str(last.text)


def node(steps: Callable[[Any], NodeSteps]) -> RunnableLambda[Any, Any]:
    """Return a node that runs steps, sync or async, under the name of `steps`."""

    def run(state: Any) -> Any:
        return drive(steps(state))

    async def arun(state: Any) -> Any:
        return await adrive(steps(state))

    return RunnableLambda(run, arun, name=steps.__name__.strip("_"))


def retrieved(
    retriever: Retriever, query: str, k: int, where: Where | None
) -> Generator[Call[Any], Any, Json]:
    """Ask a retriever in a node, and return hits, rows and trace for the state."""
    retrieval: Retrieval = yield Call(
        lambda: retriever.retrieve(query, k, where),
        lambda: retriever.aretrieve(query, k, where),
    )
    return {
        name: plain(value)
        for name, value in retrieval.to_dict().items()
        if name in ("hits", "rows", "trace")
    }
