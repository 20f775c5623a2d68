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
from llama_index.core.indices.utils import embed_nodes
from llama_index.core.schema import BaseNode, Document, IndexNode
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
from graphret.executors import LOCAL, Executor
from graphret.expansion import Ranking
from graphret.retriever import Retriever
from graphret.sage import SageSettings
from graphret.sage.graph import Progress
from graphret.sage.state import Changes
from graphret.types import Edge, Node
from llama_index_graphret.adapters import encoder_of
from llama_index_graphret.evidence import mark
from llama_index_graphret.filters import FiltersLike
from llama_index_graphret.nodes import from_llama_node, source_of
from llama_index_graphret.parser import SageNodeParser
from llama_index_graphret.retriever import SageRetriever


class SageGraph(graphret.SageGraph):
    """A `graphret.SageGraph` that can be made from LlamaIndex's nodes and indexes."""

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
        if isinstance(
            store, SimpleVectorStore
        ):  # which keeps embeddings apart from the nodes
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
            with the same ids and hashes.
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
            if embed_model is not None:
                embedded = embed_nodes(listed, embed_model)
                vectors = [embedded[node.node_id] for node in listed]
            listed = from_chunks(_own(listed))
        if embed_model is not None:
            encoder = encoder_of(embed_model)
        return super().from_nodes(
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
        return super().load(
            folder, encoder=encoder, metadata=metadata, chunker=chunker, verify=verify
        )

    def add(self, items: Any, *, edges: Iterable[Edge] = ()) -> list[str]:
        """Add LlamaIndex documents, which are cut by `SageNodeParser`, LlamaIndex
        nodes, or items of graphret, each in place of all that was made of it before.
        """
        listed = items if isinstance(items, Corpus) else list(items)
        if isinstance(listed, Corpus) or not any(
            isinstance(one, BaseNode) for one in listed
        ):
            return super().add(listed, edges=edges)
        whole = [one for one in listed if isinstance(one, Document)]
        parts = [one for one in listed if not isinstance(one, Document)]
        nodes = [*SageNodeParser().get_nodes_from_documents(whole), *parts]
        ids = [document.doc_id for document in whole]
        return self._put(_own(nodes), edges, ids, replace_documents=True)

    def add_nodes(
        self,
        nodes: Iterable[Any],
        *,
        edges: Iterable[Edge] = (),
        replace_documents: bool = True,
    ) -> list[str]:
        """Add LlamaIndex nodes, each in place of the node that had its id, and return
        their ids.

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
        """Return the ids of the documents of which nodes have another hash than the
        graph's nodes of them.
        """
        hashes = {
            source.node_id: source.hash
            for node in nodes
            if (source := node.source_node) is not None and source.hash
        }
        known = (source_of(node) for node in self.nodes) if hashes else ()
        return list(
            {
                source.node_id
                for source in known
                if source is not None
                and source.hash
                and hashes.get(source.node_id, source.hash) != source.hash
            }
        )

    def refresh_from_index(self, index: VectorStoreIndex) -> Changes:
        """Bring the graph up to date with an index, and say what was added, changed and
        deleted.
        """
        return self.refresh(_own(nodes_of(index)))

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


def nodes_of(index: VectorStoreIndex) -> list[BaseNode]:
    """Return the nodes of a vector index, from its docstore or from its vector
    store.
    """
    if not isinstance(index, VectorStoreIndex):
        raise InvalidInput(
            f"index: expected a VectorStoreIndex, got {type(index).__name__}"
        )
    ids = list(index.index_struct.nodes_dict.values())
    found: list[BaseNode] = (
        index.docstore.get_nodes(ids, raise_error=False) if ids else []
    )
    if found and len(found) == len(ids):
        return found
    try:
        stored = list(index.vector_store.get_nodes(node_ids=ids or None))
    except (NotImplementedError, AttributeError, TypeError, ValueError):
        stored = []
    if not stored and not found:
        name = type(index.vector_store).__name__
        raise InvalidInput(
            f"index: it holds no nodes, or {name} does not list them: use"
            " SageGraph.from_nodes"
        )
    return list({node.node_id: node for node in [*found, *stored]}.values())


def _own(nodes: Iterable[BaseNode]) -> list[Node]:
    """Return nodes as graphret's, without the evidence of an earlier retrieval."""
    return [from_llama_node(mark(node, ())) for node in nodes]
