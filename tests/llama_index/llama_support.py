"""What the tests of the LlamaIndex package share."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.schema import (
    BaseNode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from llama_index_instrumentation import get_dispatcher
from tests_support import HashingEncoder

from graphret import BM25Index, MemoryStore
from graphret.corpus import Corpus, Table
from graphret.demo.data import DemoQuestion, load_corpus, load_questions
from graphret.types import Edge, Node
from llama_index_graphret import SageGraph

#: A small graph of films for ARK.
QUESTION = "Which films did Tom Hanks star in?"
NODES = [
    Node("p1", ("person",), "Tom Hanks"),
    *(
        Node(f"m{i}", ("movie",), name, "A film.")
        for i, name in enumerate(("Big", "Cast Away", "Splash", "Heat"))
    ),
]
EDGES = [Edge(f"m{i}", "starred_actors", "p1") for i in range(3)]
STORE = MemoryStore.of(NODES, EDGES)
INDEX = BM25Index.build(NODES)


def small_corpus() -> tuple[Corpus, list[DemoQuestion]]:
    """Return 35 tables and passages of the demo's corpus, and questions about them."""
    questions = [question for question in load_questions() if question.passages][:5]
    wanted = {
        item for question in questions for item in (question.table, *question.passages)
    }
    items = sorted(
        load_corpus().items,
        key=lambda item: (item.id not in wanted, isinstance(item, Table)),
    )
    return Corpus(tuple(items[:35])), questions


def parts(*texts: str) -> list[BaseNode]:
    """Chunks ``n0``, ``n1``, … of which each knows the next."""
    nodes: list[BaseNode] = [
        TextNode(text=text, id_=f"n{i}", metadata={"page": i})
        for i, text in enumerate(texts)
    ]
    for one, other in itertools.pairwise(nodes):
        one.relationships[NodeRelationship.NEXT] = RelatedNodeInfo(
            node_id=other.node_id
        )
    return nodes


def ids(nodes: Sequence[NodeWithScore]) -> list[str]:
    """The ids of what was found, in order."""
    return [one.node.node_id for one in nodes]


class HashEmbedding(BaseEmbedding):
    """The tests' hashing encoder as a LlamaIndex embedding model that counts calls."""

    model_name: str = "hashing"
    fail: bool = False
    _encoder: HashingEncoder = PrivateAttr(default_factory=HashingEncoder)
    _texts: list[str] = PrivateAttr(default_factory=list)
    _queries: list[str] = PrivateAttr(default_factory=list)

    def _vector(self, text: str) -> list[float]:
        if self.fail:
            raise ConnectionError("the embedding service is away")
        return [float(x) for x in self._encoder.encode_queries([text])[0]]

    def _get_text_embedding(self, text: str) -> list[float]:
        self._texts.append(text)
        return self._vector(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        self._queries.append(query)
        return self._vector(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


class FixedRetriever(BaseRetriever):
    """Returns given nodes, or fails; counts how it was asked."""

    def __init__(
        self, nodes: list[NodeWithScore], *, error: Exception | None = None
    ) -> None:
        super().__init__()
        self.nodes = nodes
        self.error = error
        self.blocking = self.awaited = 0

    def _answer(self) -> list[NodeWithScore]:
        if self.error is not None:
            raise self.error
        return [NodeWithScore(node=one.node, score=one.score) for one in self.nodes]

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.blocking += 1
        return self._answer()

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.awaited += 1
        return self._answer()


class Recording(BaseEventHandler):
    """Keeps every event of what happens inside the block."""

    _events: list[Any] = PrivateAttr(default_factory=list)

    @classmethod
    def class_name(cls) -> str:
        return "Recording"

    def handle(self, event: Any, **kwargs: Any) -> None:
        self._events.append(event)

    def of(self, *kinds: type) -> list[Any]:
        """Events of exactly these classes."""
        return [event for event in self._events if type(event) in kinds]

    def __enter__(self) -> Recording:
        get_dispatcher().add_event_handler(self)
        return self

    def __exit__(self, *_: object) -> None:
        root = get_dispatcher()
        root.event_handlers = [
            handler for handler in root.event_handlers if handler is not self
        ]


@dataclass(frozen=True)
class World:
    """A corpus in LlamaIndex and in graphret."""

    nodes: list[BaseNode]
    index: VectorStoreIndex
    graph: SageGraph
    embedding: HashEmbedding
    questions: list[DemoQuestion]
