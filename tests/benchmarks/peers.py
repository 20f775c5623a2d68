"""What a user would pick instead, each behind the same four calls.

``PYTHONPATH=tests python -m benchmarks.peers NAME FOLDER`` measures one in a process of
its own. FOLDER holds what `bench_peers` wrote; the figures are printed as JSON.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks import synthetic
from benchmarks.bench_changes import taken
from benchmarks.figures import peak_memory
from graphret.corpus import Document
from graphret.search.vectors import normalize

K, DIMENSION = 20, 384
CORPUS = "corpus.json"


@dataclass(frozen=True)
class Chunk:
    """A chunk as every contestant gets it."""

    id: str
    title: str
    text: str

    @property
    def content(self) -> str:
        """What is searched where a framework has one text for a chunk."""
        return f"{self.title}\n{self.text}"


class WordSums:
    """Embeddings that cost next to nothing: sums of random vectors of words.

    Rare words have longer vectors, so that texts with the same words are near.
    """

    name, dimension = "word sums", DIMENSION

    def __init__(self) -> None:
        lexicon = synthetic.words()
        self._rank = {word: rank for rank, word in enumerate(lexicon)}
        rng = np.random.default_rng(0)
        vectors = rng.standard_normal((len(lexicon) + 1, DIMENSION), dtype=np.float32)
        rarity = np.log(np.arange(2, len(lexicon) + 3, dtype=np.float32))
        self._vectors = vectors * rarity[:, None]

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.empty((len(texts), DIMENSION), np.float32)
        unknown = len(self._rank)
        for row, text in enumerate(texts):
            known = text.lower().replace(".", "").split()
            ranks = [self._rank.get(word, unknown) for word in known]
            vectors[row] = self._vectors[ranks].sum(axis=0)
        return normalize(vectors)

    encode_queries = encode_documents


@lru_cache(maxsize=1)
def word_sums() -> WordSums:
    """The embeddings of this process."""
    return WordSums()


class Contestant(Protocol):
    """What is asked of each."""

    def build(self, chunks: Sequence[Chunk]) -> None:
        """Index chunks."""

    def insert(self, chunk: Chunk) -> None:
        """Add one more, so that the next question can find it."""

    def ask(self, question: str) -> int:
        """Answer with `K` chunks, and return how many came."""

    def save(self, folder: Path) -> None:
        """Write what can be written."""


class Ours:
    """`SageGraph`: chunks, links, both indexes; the default ranking."""

    def build(self, chunks: Sequence[Chunk]) -> None:
        from graphret.sage import SageGraph

        documents = [Document(c.text, id=c.id, title=c.title) for c in chunks]
        self.graph = SageGraph.build(documents, encoder=word_sums(), chunker=None)
        self.retriever = self.graph.retriever()

    def insert(self, chunk: Chunk) -> None:
        self.graph.add([Document(chunk.text, id=chunk.id, title=chunk.title)])

    def ask(self, question: str) -> int:
        return len(self.retriever.retrieve(question, K).hits)

    def save(self, folder: Path) -> None:
        self.graph.save(folder / "graph")


class LlamaIndexFusion:
    """`VectorStoreIndex` and `BM25Retriever` in a `QueryFusionRetriever`."""

    def build(self, chunks: Sequence[Chunk]) -> None:
        from llama_index.core import VectorStoreIndex

        self.index = VectorStoreIndex(
            [*map(self._node, chunks)], embed_model=_llama_index_embedding()
        )
        self._fuse()

    def insert(self, chunk: Chunk) -> None:
        self.index.insert_nodes([self._node(chunk)])
        self._fuse()  # a `BM25Retriever` takes no more nodes: it is made again

    def ask(self, question: str) -> int:
        return len(self.retriever.retrieve(question))

    def save(self, folder: Path) -> None:
        self.index.storage_context.persist(str(folder / "index"))
        self.bm25.persist(str(folder / "bm25"))

    @staticmethod
    def _node(chunk: Chunk) -> Any:
        from llama_index.core.schema import TextNode

        return TextNode(id_=chunk.id, text=chunk.content)

    def _fuse(self) -> None:
        from llama_index.core.llms import MockLLM
        from llama_index.core.retrievers import QueryFusionRetriever
        from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
        from llama_index.retrievers.bm25 import BM25Retriever

        self.bm25 = BM25Retriever.from_defaults(index=self.index, similarity_top_k=K)
        self.retriever = QueryFusionRetriever(
            [self.index.as_retriever(similarity_top_k=K), self.bm25],
            llm=MockLLM(),
            mode=FUSION_MODES.RECIPROCAL_RANK,
            similarity_top_k=K,
            num_queries=1,
            use_async=False,
        )


class LangChainEnsemble:
    """`EnsembleRetriever` of `BM25Retriever` and an `InMemoryVectorStore`."""

    def build(self, chunks: Sequence[Chunk]) -> None:
        from langchain_core.vectorstores import InMemoryVectorStore

        self.documents = [*map(_langchain_document, chunks)]
        self.store = InMemoryVectorStore(_langchain_embeddings())
        self.store.add_documents(self.documents)
        self._fuse()

    def insert(self, chunk: Chunk) -> None:
        self.documents.append(_langchain_document(chunk))
        self.store.add_documents(self.documents[-1:])
        self._fuse()  # a `BM25Retriever` takes no more documents: it is made again

    def ask(self, question: str) -> int:
        return len(self.retriever.invoke(question)[:K])

    def save(self, folder: Path) -> None:
        self.store.dump(str(folder / "store.json"))  # a `BM25Retriever` has no way to

    def _fuse(self) -> None:
        from langchain_classic.retrievers import EnsembleRetriever
        from langchain_community.retrievers import BM25Retriever

        bm25 = BM25Retriever.from_documents(self.documents, k=K)
        by_vector = self.store.as_retriever(search_kwargs={"k": K})
        self.retriever = EnsembleRetriever(
            retrievers=[bm25, by_vector], weights=[0.5, 0.5]
        )


class LangChainGraphRetriever:
    """`GraphRetriever` over an `InMemoryVectorStore`, one hop along our links.

    They are the links that graphret found, and stand in the metadata of the chunks.
    """

    def __init__(self, links: dict[str, list[str]]) -> None:
        self.links = links

    def build(self, chunks: Sequence[Chunk]) -> None:
        from graph_retriever.strategies import Eager
        from langchain_core.vectorstores import InMemoryVectorStore
        from langchain_graph_retriever import GraphRetriever

        self.store = InMemoryVectorStore(_langchain_embeddings())
        self.store.add_documents([*map(self._linked, chunks)])
        strategy = Eager(select_k=K, start_k=K // 2, adjacent_k=K, max_depth=1)
        self.retriever = GraphRetriever(
            store=self.store, edges=[("links", "$id")], strategy=strategy
        )

    def insert(self, chunk: Chunk) -> None:
        self.store.add_documents([self._linked(chunk)])

    def ask(self, question: str) -> int:
        return len(self.retriever.invoke(question))

    def save(self, folder: Path) -> None:
        self.store.dump(str(folder / "store.json"))

    def _linked(self, chunk: Chunk) -> Any:
        return _langchain_document(chunk, {"links": self.links.get(chunk.id, [])})


def _llama_index_embedding() -> Any:
    from llama_index.core.embeddings import BaseEmbedding
    from pydantic import PrivateAttr

    class Given(BaseEmbedding):
        _words: WordSums = PrivateAttr(default_factory=word_sums)

        def _get_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embeddings([query])[0]

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_query_embedding(query)

        def _get_text_embedding(self, text: str) -> list[float]:
            return self._get_text_embeddings([text])[0]

        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            return self._words.encode_documents(texts).tolist()

    return Given()


def _langchain_embeddings() -> Any:
    from langchain_core.embeddings import Embeddings

    class Given(Embeddings):
        words = word_sums()

        def embed_query(self, text: str) -> list[float]:
            return self.embed_documents([text])[0]

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return self.words.encode_documents(texts).tolist()

    return Given()


def _langchain_document(chunk: Chunk, metadata: dict[str, Any] | None = None) -> Any:
    from langchain_core.documents import Document as LangChainDocument

    return LangChainDocument(chunk.content, id=chunk.id, metadata=metadata or {})


def measured(
    make: Callable[[], Contestant],
    chunks: Sequence[Chunk],
    new_chunks: Sequence[Chunk],
    questions: Sequence[str],
    folder: Path,
) -> dict[str, float]:
    """Return seconds of processor time, and sizes in bytes.

    The sizes are the peak of this process before it saves, and what is on disk after.
    """
    make().build(chunks[: 2 * K])  # imports what it needs
    contestant = make()
    build = taken(partial(contestant.build, chunks))
    inserts = [taken(partial(contestant.insert, chunk)) for chunk in new_chunks]
    for question in questions:
        if (found := contestant.ask(question)) < K:
            raise AssertionError(f"{question!r}: expected {K} chunks, got {found}")
    asked = [taken(partial(contestant.ask, question)) for question in questions]
    peak = peak_memory()
    contestant.save(folder)
    return {
        "build": build,
        "insert": statistics.median(inserts),
        "question": statistics.median(asked),
        "memory": peak,
        "disk": sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()),
    }


def main(name: str, folder: Path) -> None:
    """Measure one contestant."""
    corpus = json.loads(Path(folder, CORPUS).read_text(encoding="utf-8"))
    chunks, new_chunks = (
        [Chunk(*fields) for fields in corpus[part]] for part in ("chunks", "new")
    )
    contestants: dict[str, Callable[[], Contestant]] = {
        "ours": Ours,
        "llama-index": LlamaIndexFusion,
        "langchain": LangChainEnsemble,
        "graph-retriever": partial(LangChainGraphRetriever, corpus["links"]),
    }
    saved = folder / name
    saved.mkdir()
    figures = measured(
        contestants[name], chunks, new_chunks, corpus["questions"], saved
    )
    print(json.dumps(figures))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
