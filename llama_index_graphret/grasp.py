"""GRASP in LlamaIndex: `GraspRetriever` for query engines."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import LLM

from graphret.grasp import Grasp
from graphret.llm import ChatModel
from graphret.planning import Planner
from graphret.retriever import Retriever
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore
from llama_index_graphret.adapters import as_seeds
from llama_index_graphret.chat import as_core_model
from llama_index_graphret.filters import FiltersLike
from llama_index_graphret.retriever import CoreRetriever, top_k


class GraspRetriever(CoreRetriever):
    """Return what a plan over the graph finds, fused with a search by text, and reranked (GRASP).

    Put it where a retriever goes. `evidence_of` gives the path by which a plan led to a node and its rank at each
    stage, `retrieval_of` the trace with the plan. For a stage alone give `as_llama_index_retriever` a
    `graphret.grasp.PlanRetriever`, a `graphret.Fuse` or a `graphret.rerank.Rerank`.

    Parameters
    ----------
    planner
        Who writes plans: a LlamaIndex LLM or a graphret `ChatModel`, any graphret `Planner`, or `None`, which needs no
        model.
    store
        The graph. `from_property_graph_store` makes one of a graph that LlamaIndex wrote.
    index
        The second opinion: a text index over its nodes, or a LlamaIndex or graphret retriever.
    similarity_top_k, k
        How many nodes are returned, in total: exactly so many where that many qualify; 10 by default.
    filters
        What may be returned: `MetadataFilters`, or a graphret condition.
    options
        As `graphret.grasp.Grasp` has them: `documents`, `linker`, `reranker`, `settings`, `on_failure`.
    """

    def __init__(
        self,
        planner: LLM | ChatModel | Planner | None,
        store: GraphStore,
        index: TextIndex | BaseRetriever | Retriever,
        *,
        similarity_top_k: int | None = None,
        k: int | None = None,
        filters: FiltersLike = None,
        **options: Any,
    ) -> None:
        second: Any = as_seeds(index) if isinstance(index, BaseRetriever) else index
        core = Grasp(as_core_model(planner), store, second, **options)
        super().__init__(core, top_k(k, similarity_top_k), filters)
