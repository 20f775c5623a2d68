"""LlamaIndex's property graphs as graphret stores."""

from __future__ import annotations

import pytest
from llama_index.core.graph_stores import SimplePropertyGraphStore
from llama_index.core.graph_stores.types import ChunkNode, EntityNode, PropertyGraphStore, Relation

from graphret.errors import InvalidInput
from graphret.stores import MemoryStore
from graphret.testing.graphs import all_edges, all_nodes
from graphret.types import Edge, Node
from llama_index_graphret import (
    GraphretPropertyGraphStore,
    from_property_graph_store,
)


def other() -> PropertyGraphStore:
    """A property graph that is neither in memory nor Neo4j's, as far as graphret can tell."""
    inner = GraphretPropertyGraphStore(MemoryStore())
    methods = {name: staticmethod(getattr(inner, name)) for name in PropertyGraphStore.__abstractmethods__}
    made: PropertyGraphStore = type("Other", (PropertyGraphStore,), methods)()
    return made


@pytest.fixture(params=[SimplePropertyGraphStore, other])
def theirs(request: pytest.FixtureRequest) -> PropertyGraphStore:
    """A graph that LlamaIndex made."""
    store: PropertyGraphStore = request.param()
    about = {"triplet_source_id": "c2"}
    store.upsert_nodes(
        [
            ChunkNode(text="Ada wrote notes on the engine.", id_="c1", properties={"title": "Notes", "page": 3}),
            ChunkNode(text="He designed it.", id_="c2"),
            EntityNode(name="Ada Lovelace", label="Person", properties={"born": 1815, "bio": "A countess."}),
            EntityNode(name='The "Engine"', label="Machine", embedding=[1.0, 0.0]),
            EntityNode(name="Babbage", label="Person", properties=about),
            EntityNode(name="Nobody", properties={"triplet_source_id": "gone"}),
        ]
    )
    store.upsert_relations(
        [
            Relation(label="WROTE_ON", source_id="Ada Lovelace", target_id="The  Engine ", properties={"year": 1843}),
            Relation(label="MENTIONS", source_id="c1", target_id="Ada Lovelace"),
            Relation(label="KNEW", source_id="Babbage", target_id="Ada Lovelace", properties=about),
        ]
    )
    return store


def test_a_graph_of_llama_index_is_read_as_it_stands(theirs: PropertyGraphStore) -> None:
    store = from_property_graph_store(theirs, name_property="title", text_property="bio")
    nodes = {node.id: node for node in all_nodes(store)}
    assert list(nodes) == ["Ada Lovelace", "Babbage", "Nobody", "The  Engine ", "c1", "c2"]
    assert nodes["Ada Lovelace"].properties == {"born": 1815, "bio": "A countess."}
    assert (nodes["Ada Lovelace"].name, nodes["Ada Lovelace"].text) == ("Ada Lovelace", "A countess.")
    assert (nodes["The  Engine "].labels, nodes["The  Engine "].name) == (("Machine",), 'The "Engine"')
    assert nodes["c1"] == Node(
        "c1", ("text_chunk",), "Notes", "Ada wrote notes on the engine.", {"title": "Notes", "page": 3}
    )
    assert all_edges(store) == [
        Edge("Ada Lovelace", "WROTE_ON", "The  Engine ", 1.0, {"year": 1843}),
        Edge("Babbage", "KNEW", "Ada Lovelace", 1.0, {"triplet_source_id": "c2"}),
        Edge("c1", "MENTIONS", "Ada Lovelace"),
        Edge("c2", "MENTIONS", "Ada Lovelace"),
        Edge("c2", "MENTIONS", "Babbage"),
    ]


def test_what_is_no_property_graph_is_refused() -> None:
    with pytest.raises(InvalidInput, match="store"):
        from_property_graph_store(MemoryStore())  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="no_such"):
        from_property_graph_store(SimplePropertyGraphStore(), no_such="option")
    store = MemoryStore()
    assert from_property_graph_store(GraphretPropertyGraphStore(store)) is store
