"""LangChain documents and retrievers, and models and graphs of agents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Barrier
from typing import Any

from ark_support import Follows, films, index_of, selecting
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests
from pydantic import Field
from tests_support import BALLPARKS

from graphret.ark import ArkSettings
from graphret.corpus import Document as Item
from graphret.llm.chat import Message, Reply
from langchain_graphret import create_ark_graph
from langchain_graphret.ark.graph import ArkGraph

DOCUMENTS = [
    Document(item.text, id=item.id, metadata={"title": item.title, **item.metadata})
    for item in BALLPARKS
    if isinstance(item, Item)
]


class RetrieverSuite(RetrieversIntegrationTests):
    """LangChain's own suite over a kind of retriever, with its parts and a question."""

    kind: type[BaseRetriever]
    parts: Mapping[str, Any]
    question: str

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return self.kind

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return dict(self.parts)

    @property
    def retriever_query_example(self) -> str:
        return self.question


class ListRetriever(BaseRetriever):
    """Returns the same documents for every question, and remembers how it was asked."""

    documents: list[Document]
    asked: list[str] = Field(default_factory=list)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        self.asked.append("invoke")
        return self.documents

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: object
    ) -> list[Document]:
        self.asked.append("ainvoke")
        return self.documents


class BrokenRetriever(BaseRetriever):
    """Never answers."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        raise ConnectionError("the vector store is down")


def by_id(*ids: str) -> list[Document]:
    found = {document.id: document for document in DOCUMENTS}
    return [found[one].model_copy(deep=True) for one in ids]


STORE = films()
INDEX = index_of(STORE)
QUESTION = "films by Bob Bell"
ASK: Any = {"question": QUESTION, "k": 4}
SELECTIONS = (("f1", "f4"), ("f4", "f1"), ("f4", "p1"))
RANKED = ["f4", "f1", "p1"]
FULL = ArkSettings(early_stop=False)


def models(*selections: Sequence[str], waits: Sequence[float] = ()) -> list[Follows]:
    """A model for each agent: it searches, explores, then selects nodes and finishes."""
    chosen = selections or SELECTIONS
    pauses = [*waits, *([0.0] * len(chosen))]
    return [
        Follows(selecting(*nodes), f"m{i}", pauses[i]) for i, nodes in enumerate(chosen)
    ]


def graph(model: Any = None, **options: Any) -> ArkGraph:
    options.setdefault("settings", FULL)
    return create_ark_graph(
        models() if model is None else model, STORE, INDEX, **options
    )


def ids(answer: Any) -> list[str]:
    return [hit["id"] for hit in answer["hits"]]


def stops(answer: Any) -> list[str]:
    return [agent["stop"] for agent in answer["agents"]]


def asked(given: Sequence[Follows]) -> list[int]:
    return [model.asked for model in given]


def thread(name: str = "1", **more: Any) -> Any:
    return {"configurable": {"thread_id": name}, **more}


class Meeting(Follows):
    """Waits for the others before it gives the reply of that number, from 0."""

    def __init__(
        self,
        policy: Callable[[Sequence[Message]], Any],
        gates: Mapping[int, Barrier],
        name: str,
    ) -> None:
        super().__init__(policy, name)
        self.gates = gates

    def chat(self, messages: Sequence[Message], **options: Any) -> Reply:
        if gate := self.gates.get(
            sum(message.role == "assistant" for message in messages)
        ):
            gate.wait(10)
        return super().chat(messages, **options)
