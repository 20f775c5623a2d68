"""GraphRAFT in LlamaIndex: `GraphRAFTRetriever` for query engines."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import LLM

from graphret.graphraft import GraphRAFT, QueryWriter
from graphret.retriever import Retriever
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore
from llama_index_graphret.adapters import as_seeds
from llama_index_graphret.chat import as_core_model
from llama_index_graphret.filters import FiltersLike
from llama_index_graphret.retriever import CoreRetriever, top_k


class GraphRAFTRetriever(CoreRetriever):
    """Return what the best of the queries find that exist around a question's entities (GraphRAFT).

    Put it where a retriever goes. `evidence_of` gives the queries that found a node with the probability of each,
    `retrieval_of` the trace.

    Parameters
    ----------
    store
        The graph. `from_property_graph_store` makes one of a graph that LlamaIndex wrote.
    index
        What fills free places: a text index over its nodes, or a LlamaIndex or graphret retriever.
    writer
        Ranks the queries: `graphret.graphraft.writer.Writer`, or `None`, which needs no model.
    similarity_top_k, k
        How many nodes are returned, in total: exactly so many where that many qualify; 10 by default.
    filters
        What may be returned: `MetadataFilters`, or a graphret condition.
    options
        As `graphret.graphraft.GraphRAFT` has them: `planner`, `settings`, `on_failure`, and `entities` and `reasoner`,
        which may be LLMs of LlamaIndex.
    """

    def __init__(
        self,
        store: GraphStore,
        index: TextIndex | BaseRetriever | Retriever,
        *,
        writer: QueryWriter | None = None,
        similarity_top_k: int | None = None,
        k: int | None = None,
        filters: FiltersLike = None,
        **options: Any,
    ) -> None:
        fill: Any = as_seeds(index) if isinstance(index, BaseRetriever) else index
        models = {name: as_core_model(one) for name, one in options.items() if isinstance(one, LLM)}
        super().__init__(GraphRAFT(store, fill, writer=writer, **options | models), top_k(k, similarity_top_k), filters)
