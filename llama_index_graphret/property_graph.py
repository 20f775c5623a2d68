"""Any LlamaIndex property graph as a graphret store."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from llama_index.core.graph_stores.simple_labelled import SimplePropertyGraphStore
from llama_index.core.graph_stores.types import LabelledNode, PropertyGraphStore, Relation

from graphret.errors import InvalidInput
from graphret.stores import GraphStore, MemoryStore
from llama_index_graphret.property_graph_store import GraphretPropertyGraphStore, from_labelled, to_labelled


def from_property_graph_store(
    store: PropertyGraphStore, *, name_property: str | None = None, text_property: str | None = None, **options: Any
) -> GraphStore:
    """Return a LlamaIndex property graph as a graphret store.

    Of a `Neo4jPropertyGraphStore` that is a `Neo4jStore` on its driver, which reads the whole graph, whoever wrote it,
    in read transactions. Any other property graph is copied into a `MemoryStore`, since it can only list what it holds:
    write to the property graph, and call this again to see what has changed. A chunk leads by ``MENTIONS`` to what was
    extracted from it.

    Parameters
    ----------
    store
        Any `PropertyGraphStore`.
    name_property, text_property
        The properties that are the name and the text of nodes which have none themselves.
    **options
        For Neo4j, further options of `Neo4jStore.from_driver`: ``id_property`` where the id is not ``id``,
        ``label="__Node__"`` to read LlamaIndex's nodes alone where the database has others, ``hidden``, ``timeout``.

    Raises
    ------
    InvalidInput
        When `store` is no property graph, or an option is not one of its store's.
    StoreUnavailable, AccessDenied
        When Neo4j cannot be reached or refuses the user.
    """
    if not isinstance(store, PropertyGraphStore):
        raise InvalidInput(f"store: a LlamaIndex PropertyGraphStore is expected, not {type(store).__name__}")
    if any(kind.__name__ == "Neo4jPropertyGraphStore" for kind in type(store).__mro__):
        from graphret.stores.neo4j import Neo4jStore

        if name_property or text_property or not options.keys().isdisjoint(("id_property", "label")):
            names = [name_property, "name"] if name_property else "name"
            texts = [text_property, "text"] if text_property else "text"
            options = {"id_property": "id", "name_property": names, "text_property": texts, **options}
        return Neo4jStore.from_driver(store.client, **{"database": getattr(store, "_database", None), **options})
    if options:
        raise InvalidInput(f"{next(iter(options))}: not an option for a {type(store).__name__}")
    if isinstance(store, GraphretPropertyGraphStore):
        return store.store
    return _copied(store, name_property or "", text_property or "")


def _copied(store: PropertyGraphStore, name: str, text: str) -> GraphStore:
    """Read a property graph whole; relations whose ends are not there are left out."""
    listed = {node.id: node for node in store.get()}
    if isinstance(store, SimplePropertyGraphStore):  # which looks ids up one by one
        triplets = store.graph.get_triplets()
    else:
        triplets = store.get_triplets(ids=list(listed)) if listed else []
    listed |= {end.id: end for left, _, right in triplets for end in (left, right)}
    nodes, relations = list[LabelledNode](), list[Relation]()
    for node in map(from_labelled, listed.values()):
        properties = _as_json(node.properties)
        title, content = (str(properties.get(key) or "") for key in (name, text))
        made = replace(node, name=node.name or title, text=node.text or content, properties=properties)
        nodes.append(to_labelled(made))
    copy = GraphretPropertyGraphStore(MemoryStore())
    copy.upsert_nodes(nodes)
    for left, one, right in triplets:
        ends = {"source_id": left.id, "target_id": right.id}
        relations.append(one.model_copy(update={**ends, "properties": _as_json(one.properties)}))
    copy.upsert_relations(relations)
    return copy.store


def _as_json(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return properties as JSON values; what is none is read as its text."""
    values: dict[str, Any] = json.loads(json.dumps(properties, default=str))
    return values
