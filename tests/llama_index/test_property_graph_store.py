"""A graphret store as a LlamaIndex property graph, alone and under an index; and
LlamaIndex's as graphret stores.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_index.core import PropertyGraphIndex
from llama_index.core.graph_stores import SimplePropertyGraphStore
from llama_index.core.graph_stores.types import (
    KG_NODES_KEY,
    KG_RELATIONS_KEY,
    ChunkNode,
    EntityNode,
    LabelledNode,
    PropertyGraphStore,
    Relation,
)
from llama_index.core.indices.property_graph import (
    ImplicitPathExtractor,
)
from llama_index.core.llms import ChatMessage
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.schema import BaseNode, Document, TransformComponent
from llama_index.core.vector_stores.types import (
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)
from llama_support import HashEmbedding

from graphret.errors import InvalidInput
from graphret.stores import MemoryStore
from graphret.testing.graphs import EDGES, NODES, all_edges, all_nodes
from graphret.types import Edge, Node
from llama_index_graphret import (
    GraphNode,
    GraphRelation,
    GraphretPropertyGraphStore,
    from_property_graph_store,
)

KONGS = [
    Node("m1", ("Film",), "King Kong", "A giant ape in New York.", {"year": 1933}),
    Node("m2", ("Film",), "King Kong", "A remake.", {"year": 2005}),
    Node("p1", ("Person", "Director"), "Peter Jackson"),
]
MADE = [Edge("p1", "DIRECTED", "m2", 2.0, {"credited": True})]


@pytest.fixture
def pg() -> GraphretPropertyGraphStore:
    return GraphretPropertyGraphStore(MemoryStore.of(NODES, EDGES))


def ids(nodes: Sequence[LabelledNode]) -> list[str]:
    return [node.id for node in nodes]


def triples(found: Sequence[Any]) -> list[tuple[str, str, str]]:
    return [(left.id, relation.label, right.id) for left, relation, right in found]


# -- nodes and relations


def test_every_node_and_edge_goes_out_and_in_again_unchanged() -> None:
    nodes = [
        *NODES,
        *KONGS,
        Node("chunk", ("text_chunk",), "", "what it says", {"page": 3}),
        Node("no label", ()),
        Node("own id", ("entity",), "own id", "", {"id": "another"}),
    ]
    pg, other = (
        GraphretPropertyGraphStore(store)
        for store in (MemoryStore.of(nodes, [*EDGES, *MADE]), MemoryStore())
    )
    out = pg.get()
    other.upsert_nodes(out)
    kinds = {node.id: type(node) for node in out}
    assert (kinds["chunk"], kinds["ada"]) == (ChunkNode, GraphNode)
    other.upsert_relations(
        [relation for _, relation, _ in pg.get_triplets(ids=ids(out))]
    )
    assert [n for block in other.store.nodes() for n in block] == sorted(
        nodes, key=lambda n: n.id
    )
    assert list(other.store.edges()) == list(pg.store.edges())


def test_an_end_that_is_not_there_becomes_an_entity_and_two_films_of_one_name_stay_two() -> (
    None
):
    pg = GraphretPropertyGraphStore(MemoryStore())
    pg.upsert_nodes(
        [GraphNode(id_=i, name="King Kong", label="Film") for i in ("m1", "m2")]
    )
    pg.upsert_relations([Relation(label="FROM", source_id="m2", target_id="NZ")])
    assert triples(pg.get_triplets(entity_names=["King Kong"])) == [
        ("m2", "FROM", "NZ")
    ]
    assert pg.store.get(["m1", "NZ"]) == [
        Node("m1", ("Film",), "King Kong"),
        Node("NZ", ("entity",), "NZ"),
    ]


# -- reading


def test_get_joins_conditions_and_takes_no_ids_for_none(
    pg: GraphretPropertyGraphStore,
) -> None:
    assert ids(pg.get()) == ["ada", "babbage", "engine", "notes"]
    assert ids(pg.get(ids=["notes", "nobody", "ada", "ada"])) == ["notes", "ada"]
    assert pg.get(ids=[]) == []
    assert ids(pg.get(properties={"born": 1815})) == ["ada"]
    assert ids(pg.get(properties={"name": "Ada Lovelace"})) == ["ada"]
    assert pg.get(properties={"born": 1815}, ids=["babbage"]) == []


def test_triplets_by_name_relation_property_and_id(
    pg: GraphretPropertyGraphStore,
) -> None:
    wrote, knew = ("ada", "WROTE", "notes"), ("ada", "KNEW", "babbage")
    assert pg.get_triplets() == pg.get_triplets(ids=[]) == []
    assert triples(pg.get_triplets(ids=["ada"])) == [knew, wrote]
    assert triples(pg.get_triplets(entity_names=["Ada Lovelace"])) == [knew, wrote]
    assert triples(pg.get_triplets(relation_names=["WROTE"])) == [wrote]
    assert triples(pg.get_triplets(properties={"year": 1843})) == [wrote]
    assert triples(
        pg.get_triplets(properties={"born": 1791}, relation_names=["KNEW", "WROTE"])
    ) == [knew]
    assert triples(pg.get_triplets(entity_names=["Charles Babbage"], ids=["ada"])) == [
        knew
    ]
    (_, relation, _), *_ = pg.get_triplets(relation_names=["DESIGNED"])
    assert isinstance(relation, GraphRelation)
    assert relation.weight == 2.0


def test_a_rel_map_goes_both_ways_nearest_first_within_its_limit(
    pg: GraphretPropertyGraphStore,
) -> None:
    (engine,) = pg.get(ids=["engine"])
    near = [("babbage", "DESIGNED", "engine"), ("notes", "ABOUT", "engine")]
    assert (
        triples(pg.get_rel_map([engine], depth=2))[:2]
        == triples(pg.get_rel_map([engine], depth=1))
        == near
    )
    assert len(pg.get_rel_map([engine], depth=2)) == 4
    assert triples(pg.get_rel_map([engine], depth=3, limit=1)) == near[:1]
    assert (
        triples(pg.get_rel_map([engine], depth=1, ignore_rels=["DESIGNED"])) == near[1:]
    )


def test_deleting_by_name_id_and_property(pg: GraphretPropertyGraphStore) -> None:
    pg.delete(relation_names=["WROTE", "NOTHING"])
    assert pg.store.count() == (4, 3)
    pg.delete(entity_names=["Ada Lovelace"])
    assert triples(pg.get_triplets(ids=["notes"])) == [("notes", "ABOUT", "engine")]
    pg.delete(ids=["notes", "nobody"], properties={"born": 1791})
    assert ids(pg.get()) == ["engine"]


def test_vector_queries_over_the_embeddings_of_nodes(tmp_path: Path) -> None:
    pg = GraphretPropertyGraphStore(MemoryStore())
    rows = np.eye(4, dtype=np.float32).tolist()
    pg.upsert_nodes(
        [
            EntityNode(name=f"n{i}", embedding=rows[i], properties={"n": i})
            for i in range(4)
        ]
    )
    query = VectorStoreQuery(query_embedding=[0.1, 0.9, 0.5, 0.0], similarity_top_k=3)
    nodes, scores = pg.vector_query(query)
    assert ids(nodes) == ["n1", "n2", "n0"]
    assert scores == pytest.approx(
        np.asarray([0.9, 0.5, 0.1]) / np.sqrt(0.81 + 0.25 + 0.01)
    )
    assert (nodes[0].embedding, nodes[0].properties) == (rows[1], {"n": 1})
    query.filters = MetadataFilters(
        filters=[MetadataFilter(key="n", value=2, operator=FilterOperator.GTE)]
    )
    pg.delete(ids=["n2"])
    pg.persist(str(tmp_path / "graph"))
    again = GraphretPropertyGraphStore(MemoryStore.load(tmp_path / "graph"))
    assert again.get() == pg.get()
    assert ids(again.vector_query(query)[0]) == ids(pg.vector_query(query)[0]) == ["n3"]
    pg.upsert_nodes([EntityNode(name="n3", properties={"n": 3})])
    assert pg.vector_query(query) == ([], [])
    with pytest.raises(InvalidInput, match="embedding"):
        pg.vector_query(VectorStoreQuery(query_str="n1"))


# -- under LlamaIndex


TEXTS = {
    "d1": "Ada Lovelace wrote notes on the Analytical Engine.",
    "d2": "Charles Babbage designed the Analytical Engine in London.",
    "d3": "The Thames flows into the North Sea.",
}
FACTS = {
    "d1": ("Ada lovelace", "WROTE_ON", "Analytical engine"),
    "d2": ("Charles babbage", "DESIGNED", "Analytical engine"),
    "d3": ("Thames", "FLOWS_INTO", "North sea"),
}


class ScriptedExtractor(TransformComponent):
    """Finds the fact of a document as an extractor's model would."""

    def __call__(self, nodes: Sequence[BaseNode], **kwargs: Any) -> Sequence[BaseNode]:
        for node in nodes:
            left, relation, right = FACTS[node.ref_doc_id or ""]
            node.metadata[KG_NODES_KEY] = [
                EntityNode(name=name, label="Thing") for name in (left, right)
            ]
            node.metadata[KG_RELATIONS_KEY] = [
                Relation(label=relation, source_id=left, target_id=right)
            ]
        return nodes


def test_an_index_is_built_asked_and_changed_over_a_graphret_store() -> None:
    pg, reply_text = (
        GraphretPropertyGraphStore(MemoryStore()),
        ChatMessage("analytical engine^nothing", role="assistant"),
    )
    index = PropertyGraphIndex.from_documents(
        [
            Document(text=TEXTS[doc_id], doc_id=doc_id, metadata={"kind": "history"})
            for doc_id in ("d1", "d2")
        ],
        property_graph_store=pg,
        kg_extractors=[ScriptedExtractor(), ImplicitPathExtractor()],
        embed_model=HashEmbedding(),
        llm=MockFunctionCallingLLM(
            response_generator=lambda messages, **_: reply_text, is_chat_model=True
        ),
        use_async=False,
    )
    chunks = {node.ref_doc_id or "": node for node in pg.get_llama_nodes(ids(pg.get()))}
    assert {
        doc_id: (chunk.get_content(), chunk.metadata)
        for doc_id, chunk in chunks.items()
    } == {doc_id: (TEXTS[doc_id], {"kind": "history"}) for doc_id in ("d1", "d2")}
    edges = [
        (edge.source, edge.relation, edge.target)
        for block in pg.store.edges()
        for edge in block
    ]
    mentions = [
        (chunk.node_id, "MENTIONS", name)
        for d, chunk in chunks.items()
        for name in FACTS[d][::2]
    ]
    sources = [(chunk.node_id, "SOURCE", d) for d, chunk in chunks.items()]
    assert sorted(edges) == sorted([FACTS["d1"], FACTS["d2"], *mentions, *sources])
    assert "MENTIONS" not in {
        relation.label for _, relation, _ in pg.get_rel_map(pg.get())
    }
    schema = pg.get_schema_str()
    assert ("Thing" in schema, "_node_content" in schema, "embedding" in schema) == (
        True,
        False,
        False,
    )

    texts = [
        chunk_text.text
        for chunk_text in index.as_retriever(include_text=True).retrieve(
            "Who designed it?"
        )
    ]
    assert any(
        TEXTS["d2"] in chunk_text
        and "Charles babbage -> DESIGNED -> Analytical engine" in chunk_text
        for chunk_text in texts
    )

    index.insert(Document(text=TEXTS["d3"], doc_id="d3"))
    (chunk,) = pg.get(properties={"ref_doc_id": "d3"})
    expected = [FACTS["d3"], (chunk.id, "MENTIONS", "North sea")]
    assert sorted(triples(pg.get_triplets(ids=["North sea"]))) == sorted(expected)
    index.delete_nodes([chunk.id])
    pg.delete_llama_nodes(ref_doc_ids=["d1"])
    assert [
        node.properties["ref_doc_id"]
        for node in pg.get()
        if isinstance(node, ChunkNode)
    ] == ["d2"]
    assert ids(pg.get(ids=["Thames"])) == ["Thames"]


# -- LlamaIndex's as graphret stores


def other() -> PropertyGraphStore:
    """A property graph that is neither in memory nor Neo4j's, as far as graphret can
    tell.
    """
    inner = GraphretPropertyGraphStore(MemoryStore())
    methods = {
        name: staticmethod(getattr(inner, name))
        for name in PropertyGraphStore.__abstractmethods__
    }
    other_store: PropertyGraphStore = type("Other", (PropertyGraphStore,), methods)()
    return other_store


@pytest.fixture(params=[SimplePropertyGraphStore, other])
def theirs(request: pytest.FixtureRequest) -> PropertyGraphStore:
    """A graph that LlamaIndex made."""
    store: PropertyGraphStore = request.param()
    about = {"triplet_source_id": "c2"}
    store.upsert_nodes(
        [
            ChunkNode(
                text="Ada wrote notes on the engine.",
                id_="c1",
                properties={"title": "Notes", "page": 3},
            ),
            ChunkNode(text="He designed it.", id_="c2"),
            EntityNode(
                name="Ada Lovelace",
                label="Person",
                properties={"born": 1815, "bio": "A countess."},
            ),
            EntityNode(name='The "Engine"', label="Machine", embedding=[1.0, 0.0]),
            EntityNode(name="Babbage", label="Person", properties=about),
            EntityNode(name="Nobody", properties={"triplet_source_id": "gone"}),
        ]
    )
    store.upsert_relations(
        [
            Relation(
                label="WROTE_ON",
                source_id="Ada Lovelace",
                target_id="The  Engine ",
                properties={"year": 1843},
            ),
            Relation(label="MENTIONS", source_id="c1", target_id="Ada Lovelace"),
            Relation(
                label="KNEW",
                source_id="Babbage",
                target_id="Ada Lovelace",
                properties=about,
            ),
        ]
    )
    return store


def test_a_graph_of_llama_index_is_read_as_it_stands(
    theirs: PropertyGraphStore,
) -> None:
    store = from_property_graph_store(
        theirs, name_property="title", text_property="bio"
    )
    nodes = {node.id: node for node in all_nodes(store)}
    assert list(nodes) == [
        "Ada Lovelace",
        "Babbage",
        "Nobody",
        "The  Engine ",
        "c1",
        "c2",
    ]
    assert nodes["Ada Lovelace"].properties == {"born": 1815, "bio": "A countess."}
    assert (nodes["Ada Lovelace"].name, nodes["Ada Lovelace"].text) == (
        "Ada Lovelace",
        "A countess.",
    )
    assert (nodes["The  Engine "].labels, nodes["The  Engine "].name) == (
        ("Machine",),
        'The "Engine"',
    )
    assert nodes["c1"] == Node(
        "c1",
        ("text_chunk",),
        "Notes",
        "Ada wrote notes on the engine.",
        {"title": "Notes", "page": 3},
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
    options: Any = {"no_such": "option"}
    with pytest.raises(TypeError, match="no_such"):
        from_property_graph_store(SimplePropertyGraphStore(), **options)
    store = MemoryStore()
    assert from_property_graph_store(GraphretPropertyGraphStore(store)) is store
