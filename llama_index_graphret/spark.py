"""SPARK in LlamaIndex: `SparkRetriever` for query engines."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import LLM

from graphret.expansion import Expand, Ranking
from graphret.expansion.expand import Policy
from graphret.llm import ChatModel
from graphret.retriever import Retriever
from graphret.search.index import TextIndex
from graphret.spark import Spark
from graphret.stores.base import CypherStore
from llama_index_graphret.adapters import as_seeds
from llama_index_graphret.chat import as_core_model
from llama_index_graphret.filters import FiltersLike
from llama_index_graphret.retriever import CoreRetriever, top_k


class SparkRetriever(CoreRetriever):
    """Return what a plan finds that an LLM writes with one call (SPARK), and what the graph connects it to.

    Put it where a retriever goes. `evidence_of` gives the query and the row that brought a node, `retrieval_of` the
    trace with the plan.

    Parameters
    ----------
    llm
        A LlamaIndex LLM, or a graphret `ChatModel`.
    store
        A graph that answers Cypher, and no view. `from_property_graph_store` makes one of a Neo4j that LlamaIndex
        wrote.
    index
        A text index over its nodes.
    similarity_top_k, k
        How many nodes are returned, in total: exactly so many where that many qualify; 10 by default.
    filters
        What may be returned: `MetadataFilters`, or a graphret condition.
    expand, ranking
        The policy and the ranking of the expansion, as `graphret.Expand` has them; `None` does not expand.
    fallback
        Who answers where the plan finds nothing: a LlamaIndex or graphret retriever; search in `index` by default.
    options
        As `graphret.spark.Spark` has them: `settings`, `hints`, `fill`, `on_failure`.

    Raises
    ------
    InvalidInput
        When the store answers no Cypher or is a view.
    """

    def __init__(
        self,
        llm: LLM | ChatModel,
        store: CypherStore,
        index: TextIndex,
        *,
        similarity_top_k: int | None = None,
        k: int | None = None,
        filters: FiltersLike = None,
        expand: Policy | None = None,
        ranking: Ranking | None = None,
        fallback: BaseRetriever | Retriever | None = None,
        **options: Any,
    ) -> None:
        core: Retriever = Spark(as_core_model(llm), store, index, fallback=as_seeds(fallback), **options)
        if expand is not None:
            core = Expand(core, store, index, policy=expand, ranking=ranking)
        super().__init__(core, top_k(k, similarity_top_k), filters)
