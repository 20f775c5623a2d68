"""The awaited side of a LlamaIndex property graph whose work blocks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from llama_index.core.graph_stores.types import LabelledNode, PropertyGraphStore, Relation, Triplet
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import VectorStoreQuery


class ThreadedPropertyGraphStore(PropertyGraphStore):
    """A property graph whose awaited methods run the plain ones in a thread; LlamaIndex's own block the event loop."""

    async def aget(self, properties: dict[str, Any] | None = None, ids: list[str] | None = None) -> list[LabelledNode]:
        """Do what `get` does without blocking the event loop."""
        return await asyncio.to_thread(self.get, properties, ids)

    async def aget_triplets(
        self,
        entity_names: list[str] | None = None,
        relation_names: list[str] | None = None,
        properties: dict[str, Any] | None = None,
        ids: list[str] | None = None,
    ) -> list[Triplet]:
        """Do what `get_triplets` does without blocking the event loop."""
        return await asyncio.to_thread(self.get_triplets, entity_names, relation_names, properties, ids)

    async def aget_rel_map(
        self,
        graph_nodes: list[LabelledNode],
        depth: int = 2,
        limit: int = 30,
        ignore_rels: list[str] | None = None,
    ) -> list[Triplet]:
        """Do what `get_rel_map` does without blocking the event loop."""
        return await asyncio.to_thread(self.get_rel_map, graph_nodes, depth, limit, ignore_rels)

    async def aupsert_nodes(self, nodes: Sequence[LabelledNode]) -> None:
        """Do what `upsert_nodes` does without blocking the event loop."""
        await asyncio.to_thread(self.upsert_nodes, nodes)

    async def aupsert_relations(self, relations: list[Relation]) -> None:
        """Do what `upsert_relations` does without blocking the event loop."""
        await asyncio.to_thread(self.upsert_relations, relations)

    async def adelete(
        self,
        entity_names: list[str] | None = None,
        relation_names: list[str] | None = None,
        properties: dict[str, Any] | None = None,
        ids: list[str] | None = None,
    ) -> None:
        """Do what `delete` does without blocking the event loop."""
        await asyncio.to_thread(self.delete, entity_names, relation_names, properties, ids)

    async def adelete_llama_nodes(
        self, node_ids: list[str] | None = None, ref_doc_ids: list[str] | None = None
    ) -> None:
        """Do what `delete_llama_nodes` does without blocking the event loop."""
        await asyncio.to_thread(self.delete_llama_nodes, node_ids, ref_doc_ids)

    async def astructured_query(self, query: str, param_map: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """Do what `structured_query` does without blocking the event loop."""
        return await asyncio.to_thread(self.structured_query, query, param_map)

    async def avector_query(self, query: VectorStoreQuery, **kwargs: Any) -> tuple[list[LabelledNode], list[float]]:
        """Do what `vector_query` does without blocking the event loop."""
        return await asyncio.to_thread(self.vector_query, query, **kwargs)

    async def aget_schema(self, refresh: bool = False) -> Any:
        """Do what `get_schema` does without blocking the event loop."""
        return await asyncio.to_thread(self.get_schema, refresh)

    async def aget_schema_str(self, refresh: bool = False) -> str:
        """Do what `get_schema_str` does without blocking the event loop."""
        return await asyncio.to_thread(self.get_schema_str, refresh)

    async def aget_llama_nodes(self, node_ids: list[str]) -> list[BaseNode]:
        """Do what `get_llama_nodes` does without blocking the event loop."""
        return await asyncio.to_thread(self.get_llama_nodes, node_ids)
