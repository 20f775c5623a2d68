"""LlamaIndex retrievers and embedding models as graphret sees them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle

from graphret.errors import InvalidInput
from graphret.retriever import Call, Retriever, Steps
from graphret.search.encoder import CallableEncoder, as_encoder
from graphret.types import Evidence, Hit, Node, Retrieval, Signals, Trace
from graphret.where import Where
from llama_index_graphret.embedding import EncoderEmbedding
from llama_index_graphret.evidence import mark
from llama_index_graphret.nodes import from_llama_node

#: The question as LlamaIndex put it, while a graphret retriever answers it, so that an inner LlamaIndex retriever gets
#: its embedding too.
asked: ContextVar[QueryBundle | None] = ContextVar("graphret_asked", default=None)


class LlamaIndexEncoder(CallableEncoder):
    """A LlamaIndex embedding model as an encoder; async retrievers await the model itself."""

    def __init__(self, embed_model: BaseEmbedding) -> None:
        plain = embed_model.encoder if isinstance(embed_model, EncoderEmbedding) else as_encoder(embed_model)
        assert plain is not None
        super().__init__(
            embed_model.get_text_embedding_batch,
            name=plain.name,
            query_fn=lambda texts: [embed_model.get_query_embedding(text) for text in texts],
            aquery_fn=embed_model.aget_query_embedding,
        )
        self.embed_model = embed_model


class LlamaIndexSeeds(Retriever):
    """A LlamaIndex retriever as a graphret one.

    Its nodes become graphret nodes and keep their scores; where it gives none, its order counts. A condition is applied
    to what it returns, since LlamaIndex retrievers take none with a question.

    Parameters
    ----------
    retriever
        Any LlamaIndex retriever. Its async side is awaited by `aretrieve`.
    deepen
        Where the retriever has a ``similarity_top_k``, ask it (a copy of it) for as many nodes as are needed; if not,
        it answers with as many as it was made for.
    name
        What evidence and traces call it; its class by default.

    Raises
    ------
    InvalidInput
        When `retriever` is no LlamaIndex retriever.
    """

    def __init__(self, retriever: BaseRetriever, *, deepen: bool = True, name: str = "") -> None:
        if not isinstance(retriever, BaseRetriever):
            raise InvalidInput(f"retriever: a LlamaIndex retriever is expected, not {type(retriever).__name__}")
        self.retriever = retriever
        self.deepen = deepen
        self.name = name or type(retriever).__name__

    def _steps(self, query: str, k: int, where: Where | None) -> Steps:
        trace = Trace()
        retriever, bundle = self._deep(k), _bundle(query)
        with trace.stage("search", retriever=self.name) as stage:
            found = yield Call(lambda: retriever.retrieve(bundle), lambda: retriever.aretrieve(bundle))
            stage.details["found"] = len(found)
        hits = [hit for hit in hits_of(found, self.name) if where is None or where.matches(hit.node)]
        return Retrieval(query, k, hits[:k], Signals(candidates=len(found), walked_edges=False), trace)

    def _deep(self, k: int) -> BaseRetriever:
        depth = getattr(self.retriever, "similarity_top_k", None)
        if not self.deepen or not isinstance(depth, int) or depth >= k:
            return self.retriever
        deeper = copy.copy(self.retriever)
        try:
            deeper.similarity_top_k = k  # type: ignore[attr-defined]
        except AttributeError:
            return self.retriever
        return deeper


def hits_of(
    found: Sequence[NodeWithScore], name: str, as_node: Callable[[BaseNode], Node] = from_llama_node
) -> list[Hit]:
    """Return LlamaIndex's nodes as hits, in their order, each once; where scores are missing or rise, ranks count."""
    hits: list[Hit] = []
    known = [one.score for one in found if one.score is not None]
    complete = len(known) == len(found) and known == sorted(known, reverse=True)
    seen: set[str] = set()
    for rank, one in enumerate(found, start=1):
        if one.node.node_id not in seen:
            seen.add(one.node.node_id)
            score = float(one.score) if complete and one.score is not None else 1.0 / rank
            hits.append(Hit(as_node(mark(one.node, ())), score, (Evidence("seed", rank=rank, retriever=name),)))
    return hits


def as_seeds(seeds: Any) -> Retriever | None:
    """Return a seed retriever of either kind as a graphret one; `None` stays `None`."""
    if seeds is None or isinstance(seeds, Retriever):
        return seeds
    return LlamaIndexSeeds(seeds)


def _bundle(query: str) -> QueryBundle:
    """Return a question for one retriever alone, since LlamaIndex's retrievers write into what they are given."""
    given = asked.get()
    if given is None or given.query_str != query:
        return QueryBundle(query)
    return QueryBundle(query, given.image_path, given.custom_embedding_strs, given.embedding)
