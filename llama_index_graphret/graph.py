"""`SageGraph`, made of LlamaIndex's nodes and indexes and kept up to date with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks import CallbackManager
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    ContextChatEngine,
)
from llama_index.core.chat_engine.types import ChatMode
from llama_index.core.indices.utils import embed_nodes
from llama_index.core.llms import LLM
from llama_index.core.memory import BaseMemory
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import BaseSynthesizer, ResponseMode
from llama_index.core.schema import BaseNode, Document, IndexNode
from llama_index.core.tools import ToolMetadata
from llama_index.core.vector_stores import SimpleVectorStore

import graphret
from graphret.corpus import (
    Chunker,
    Corpus,
    HeuristicMetadata,
    MetadataExtractor,
    from_chunks,
)
from graphret.errors import InvalidInput
from graphret.executors import LOCAL, Executor, Progress
from graphret.expansion import Ranking
from graphret.retriever import Retriever
from graphret.sage import SageSettings
from graphret.sage.state import Changes
from graphret.types import Edge, Node
from graphret.where import WhereLike
from llama_index_graphret.adapters import encoder_of
from llama_index_graphret.evidence import mark
from llama_index_graphret.filters import FiltersLike
from llama_index_graphret.nodes import from_llama_node, source_of
from llama_index_graphret.parser import SageNodeParser
from llama_index_graphret.retriever import SageRetriever
from llama_index_graphret.tool import DESCRIPTION, GraphTool


class SageGraph(graphret.SageGraph):
    """A `graphret.SageGraph` that can be made from LlamaIndex's nodes and indexes."""

    #: The LlamaIndex model that the graph was made with, if it was.
    embed_model: BaseEmbedding | None = None

    @classmethod
    def from_index(
        cls,
        index: VectorStoreIndex,
        *,
        embed_model: BaseEmbedding | None = None,
        chunker: Chunker | None = None,
        metadata: MetadataExtractor | None = HeuristicMetadata(),
        settings: SageSettings | None = None,
        edges: Iterable[Edge] = (),
        progress: Progress | None = None,
        executor: Executor = LOCAL,
    ) -> Self:
        """Build a graph over the nodes of a vector index.

        Nodes come from the docstore, or from a vector store that can list them;
        embeddings from the vector store where it gives them out, and only what it lacks
        is embedded: nodes are connected by their contents' embeddings, by entities and
        by names, and not by the embeddings of topics and titles that `from_nodes`
        makes. `refresh_from_index` follows later changes of the index.

        Parameters
        ----------
        embed_model
            What embeds questions: the index's own model by default.
        chunker, metadata, settings, edges, progress, executor
            As `from_nodes` takes them.

        Raises
        ------
        InvalidInput
            When the index holds no nodes, or its store does not give them out: then use
            `from_nodes`.
        """
        nodes, store = nodes_of(index), index.vector_store
        # which keeps embeddings apart from the nodes
        if isinstance(store, SimpleVectorStore):
            apart = store.data.embedding_dict
            nodes = [
                node.model_copy(
                    update={"embedding": apart.get(node.node_id, node.embedding)}
                )
                for node in nodes
            ]
        model, settings = embed_model or index._embed_model, settings or SageSettings()
        settings = replace(
            settings, similarity=replace(settings.similarity, contents_only=True)
        )
        return cls.from_nodes(
            nodes,
            embed_model=model,
            chunker=chunker,
            metadata=metadata,
            settings=settings,
            edges=edges,
            progress=progress,
            executor=executor,
        )

    @classmethod
    def from_nodes(
        cls,
        nodes: Iterable[Node | BaseNode],
        *,
        embed_model: BaseEmbedding | None = None,
        encoder: Any = "default",
        chunker: Chunker | None = None,
        metadata: MetadataExtractor | None = HeuristicMetadata(),
        settings: SageSettings | None = None,
        edges: Iterable[Edge] = (),
        vectors: Any = None,
        progress: Progress | None = None,
        executor: Executor = LOCAL,
    ) -> Self:
        """Build a graph of LlamaIndex nodes, or of graphret's.

        Parameters
        ----------
        nodes
            The nodes; those of one document are linked as its parts. They come back
            with the same ids and hashes. Of what `HierarchicalNodeParser` made the
            leaves are taken, and not their parents, which say the same again:
            `AutoMergingRetriever` puts these in their place.
        embed_model
            A LlamaIndex embedding model, in place of `encoder`. Embeddings that nodes
            carry are taken for its own, and the nodes without one are embedded by it.
        encoder
            As `graphret.SageGraph.build` takes it; it embeds all nodes.
        chunker, metadata, settings, edges, vectors, progress, executor
            As `graphret.SageGraph.from_nodes` takes them.
        """
        listed: Sequence[Any] = list(nodes)
        if any(isinstance(node, BaseNode) for node in listed):
            n_nodes = len(listed)
            listed = without_parents(listed)
            if vectors is not None and len(listed) < n_nodes:
                raise InvalidInput(
                    "vectors: expected only the leaves of a HierarchicalNodeParser,"
                    f" got {n_nodes - len(listed)} of their parents; see get_leaf_nodes"
                )
            if embed_model is not None:
                embedded = embed_nodes(listed, embed_model)
                vectors = [embedded[node.node_id] for node in listed]
            listed = from_chunks(_own(listed))
        if embed_model is not None:
            encoder = encoder_of(embed_model)
        graph = super().from_nodes(
            listed,
            encoder=encoder,
            chunker=chunker,
            metadata=metadata,
            settings=settings,
            edges=edges,
            vectors=vectors,
            progress=progress,
            executor=executor,
        )
        graph.embed_model = embed_model
        return graph

    @classmethod
    def from_documents(
        cls,
        documents: Sequence[Document],
        *,
        embed_model: BaseEmbedding | None = None,
        encoder: Any = "default",
        chunker: Chunker | None = None,
        metadata: MetadataExtractor | None = HeuristicMetadata(),
        settings: SageSettings | None = None,
        edges: Iterable[Edge] = (),
        progress: Progress | None = None,
        executor: Executor = LOCAL,
    ) -> Self:
        """Build a graph of LlamaIndex documents, cut by `SageNodeParser`.

        `from_nodes` has the parameters, and takes what others cut.
        """
        return cls.from_nodes(
            SageNodeParser().get_nodes_from_documents(documents),
            embed_model=embed_model,
            encoder=encoder,
            chunker=chunker,
            metadata=metadata,
            settings=settings,
            edges=edges,
            progress=progress,
            executor=executor,
        )

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        embed_model: BaseEmbedding | None = None,
        encoder: Any = "saved",
        metadata: MetadataExtractor | None = HeuristicMetadata(),
        chunker: Chunker | str | None = "saved",
        verify: bool = True,
    ) -> Self:
        """Open a saved graph.

        Parameters
        ----------
        embed_model
            The LlamaIndex embedding model that it was built with, in place of
            `encoder`.
        encoder, metadata, chunker, verify
            As `graphret.SageGraph.load` takes them.
        """
        if embed_model is not None:
            encoder = encoder_of(embed_model)
        graph = super().load(
            folder, encoder=encoder, metadata=metadata, chunker=chunker, verify=verify
        )
        graph.embed_model = embed_model
        return graph

    def view(self, where: WhereLike) -> Self:
        """Return a view of the nodes that satisfy `where`, see `graphret.SageGraph`."""
        view = super().view(where)
        view.embed_model = self.embed_model
        return view

    def add(self, items: Any, *, edges: Iterable[Edge] = ()) -> list[str]:
        """Add LlamaIndex documents or nodes, or graphret items, replacing earlier ones.

        Documents are split by `SageNodeParser`.
        """
        listed = items if isinstance(items, Corpus) else list(items)
        if isinstance(listed, Corpus) or not any(
            isinstance(item, BaseNode) for item in listed
        ):
            return super().add(listed, edges=edges)
        ids = [item.doc_id for item in listed if isinstance(item, Document)]
        return self._put(_own(_split(listed)), edges, ids, replace_documents=True)

    def add_nodes(
        self,
        nodes: Iterable[Any],
        *,
        edges: Iterable[Edge] = (),
        replace_documents: bool = True,
    ) -> list[str]:
        """Add LlamaIndex nodes, replacing those with the same id, and return the ids.

        They are embedded by the graph's encoder. `remove` takes node ids, and document
        ids for all nodes of a document.

        Parameters
        ----------
        replace_documents
            Whether the nodes of a document (``ref_doc_id``, or its file) that the graph
            knows and that has changed take the place of all its nodes, as after an
            `IngestionPipeline` with upserts.
        """
        listed = list(nodes)
        changed = self._changed_documents(listed) if replace_documents else []
        return self._put(_own(listed), edges, changed, replace_documents)

    def _changed_documents(self, nodes: Iterable[BaseNode]) -> list[str]:
        """Return the ids of documents whose hash differs from that in the graph."""
        hashes = {
            source.node_id: source.hash
            for node in nodes
            if (source := node.source_node) is not None and source.hash
        }
        of_documents = self.state.connections.facts.of_documents(hashes)
        sources = map(source_of, self.nodes.at(of_documents))
        return list(
            {
                source.node_id
                for source in sources
                if source is not None
                and source.hash
                and hashes.get(source.node_id, source.hash) != source.hash
            }
        )

    def refresh(self, nodes: Iterable[Any]) -> Changes:
        """Make the graph hold exactly these nodes, and return what changed.

        They are LlamaIndex documents or nodes, as `add` takes them, or graphret's.
        """
        listed = list(nodes)
        if any(isinstance(node, BaseNode) for node in listed):
            listed = _own(_split(listed))
        return super().refresh(listed)

    def refresh_from_index(self, index: VectorStoreIndex) -> Changes:
        """Update the graph from an index; return what was added, changed, deleted."""
        return self.refresh(nodes_of(index))

    def as_retriever(
        self,
        *,
        ranking: Ranking | str | None = None,
        seeds: BaseRetriever | Retriever | None = None,
        on_failure: str = "fallback",
        similarity_top_k: int | None = None,
        k: int | None = None,
        filters: FiltersLike = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
    ) -> SageRetriever:
        """Return a LlamaIndex retriever over the graph, as `SageRetriever` makes it."""
        return SageRetriever(
            self,
            ranking=ranking,
            seeds=seeds,
            on_failure=on_failure,
            similarity_top_k=similarity_top_k,
            k=k,
            filters=filters,
            callback_manager=callback_manager,
            object_map=object_map,
            objects=objects,
            verbose=verbose,
        )

    def as_query_engine(
        self,
        llm: LLM | None = None,
        *,
        similarity_top_k: int | None = None,
        k: int | None = None,
        filters: FiltersLike = None,
        ranking: Ranking | str | None = None,
        node_postprocessors: Sequence[BaseNodePostprocessor] = (),
        response_mode: ResponseMode = ResponseMode.COMPACT,
        response_synthesizer: BaseSynthesizer | None = None,
        text_qa_template: BasePromptTemplate | None = None,
        streaming: bool = False,
    ) -> RetrieverQueryEngine:
        """Return a query engine over the graph, as an index of LlamaIndex does.

        Parameters
        ----------
        llm
            Who answers; ``Settings.llm`` by default.
        similarity_top_k, k, filters, ranking
            As `SageRetriever` has them.
        node_postprocessors, response_mode, response_synthesizer, text_qa_template,
        streaming
            As `RetrieverQueryEngine.from_args` has them.
        """
        retriever = self.as_retriever(
            ranking=ranking, similarity_top_k=similarity_top_k, k=k, filters=filters
        )
        return RetrieverQueryEngine.from_args(
            retriever,
            llm=llm,
            node_postprocessors=list(node_postprocessors),
            response_mode=response_mode,
            response_synthesizer=response_synthesizer,
            text_qa_template=text_qa_template,
            streaming=streaming,
        )

    def as_chat_engine(
        self,
        llm: LLM | None = None,
        *,
        chat_mode: ChatMode = ChatMode.CONDENSE_PLUS_CONTEXT,
        similarity_top_k: int | None = None,
        k: int | None = None,
        filters: FiltersLike = None,
        ranking: Ranking | str | None = None,
        node_postprocessors: Sequence[BaseNodePostprocessor] = (),
        memory: BaseMemory | None = None,
        system_prompt: str | None = None,
    ) -> CondensePlusContextChatEngine | ContextChatEngine:
        """Return a chat engine over the graph, as an index of LlamaIndex does.

        Parameters
        ----------
        llm
            Who answers; ``Settings.llm`` by default.
        chat_mode
            ``"condense_plus_context"`` has the LLM make each message a question that
            stands by itself, ``"context"`` asks the graph what was said.
        similarity_top_k, k, filters, ranking
            As `SageRetriever` has them.
        node_postprocessors, memory, system_prompt
            As LlamaIndex's chat engines have them.

        Raises
        ------
        InvalidInput
            For any other `chat_mode`; LlamaIndex has agents and other engines that take
            ``as_tool()`` and ``as_query_engine()``.
        """
        supported = ChatMode.CONDENSE_PLUS_CONTEXT, ChatMode.CONTEXT
        if chat_mode not in supported:
            modes = " or ".join(repr(mode.value) for mode in supported)
            raise InvalidInput(f"chat_mode: expected {modes}, got {chat_mode!r}")
        engine: type[CondensePlusContextChatEngine | ContextChatEngine] = (
            ContextChatEngine
            if chat_mode == ChatMode.CONTEXT
            else CondensePlusContextChatEngine
        )
        retriever = self.as_retriever(
            ranking=ranking, similarity_top_k=similarity_top_k, k=k, filters=filters
        )
        return engine.from_defaults(
            retriever,
            llm=llm,
            node_postprocessors=list(node_postprocessors),
            memory=memory,
            system_prompt=system_prompt,
        )

    def as_tool(
        self,
        *,
        name: str = "search_graph",
        description: str = DESCRIPTION,
        similarity_top_k: int | None = None,
        k: int | None = None,
        filters: FiltersLike = None,
        ranking: Ranking | str | None = None,
        node_postprocessors: Sequence[BaseNodePostprocessor] = (),
    ) -> GraphTool:
        """Return the graph as a tool for an agent, which reads the nodes found.

        Parameters
        ----------
        name, description
            What the model knows it by. Say what the graph holds.
        similarity_top_k, k, filters, ranking
            As `SageRetriever` has them.
        node_postprocessors
            As `RetrieverTool` has them.
        """
        retriever = self.as_retriever(
            ranking=ranking, similarity_top_k=similarity_top_k, k=k, filters=filters
        )
        return GraphTool(
            retriever,
            ToolMetadata(name=name, description=description),
            list(node_postprocessors),
        )


def nodes_of(index: VectorStoreIndex) -> list[BaseNode]:
    """Return the nodes of a vector index, from its docstore or its vector store."""
    if not isinstance(index, VectorStoreIndex):
        raise InvalidInput(
            f"index: expected a VectorStoreIndex, got {type(index).__name__}"
        )
    ids = list(index.index_struct.nodes_dict.values())
    in_docstore: list[BaseNode] = (
        index.docstore.get_nodes(ids, raise_error=False) if ids else []
    )
    if in_docstore and len(in_docstore) == len(ids):
        return in_docstore
    try:
        stored = list(index.vector_store.get_nodes(node_ids=ids or None))
    except (NotImplementedError, AttributeError, TypeError, ValueError):
        stored = []
    if not stored and not in_docstore:
        name = type(index.vector_store).__name__
        raise InvalidInput(
            f"index: it has no nodes, or {name} does not list them: use"
            " SageGraph.from_nodes"
        )
    return list({node.node_id: node for node in [*in_docstore, *stored]}.values())


def without_parents(nodes: Iterable[Any]) -> list[Any]:
    """Return nodes without parents of others, whose text would occur twice."""
    listed = list(nodes)
    ids = {node.node_id for node in listed if isinstance(node, BaseNode)}
    return [
        node
        for node in listed
        if not isinstance(node, BaseNode)
        or not any(child.node_id in ids for child in node.child_nodes or ())
    ]


def _split(items: Iterable[BaseNode]) -> list[BaseNode]:
    """Return nodes, and those that documents are cut into."""
    listed = list(items)
    documents = [item for item in listed if isinstance(item, Document)]
    parts = [item for item in listed if not isinstance(item, Document)]
    return [*SageNodeParser().get_nodes_from_documents(documents), *parts]


def _own(nodes: Iterable[BaseNode]) -> list[Node]:
    """Return nodes as graphret nodes, without the evidence of earlier retrievals."""
    return [from_llama_node(mark(node, ())) for node in without_parents(nodes)]
