"""A graphret store as a LlamaIndex property graph, alone and under LlamaIndex's own `PropertyGraphIndex`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_index.core import PropertyGraphIndex
from llama_index.core.graph_stores.types import (
    KG_NODES_KEY,
    KG_RELATIONS_KEY,
    ChunkNode,
    EntityNode,
    LabelledNode,
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
from graphret.testing.graphs import EDGES, NODES
from graphret.types import Edge, Node
from llama_index_graphret import (
    GraphNode,
    GraphRelation,
    GraphretPropertyGraphStore,
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
    pg, other = (GraphretPropertyGraphStore(store) for store in (MemoryStore.of(nodes, [*EDGES, *MADE]), MemoryStore()))
    out = pg.get()
    other.upsert_nodes(out)
    kinds = {node.id: type(node) for node in out}
    assert (kinds["chunk"], kinds["ada"]) == (ChunkNode, GraphNode)
    other.upsert_relations([relation for _, relation, _ in pg.get_triplets(ids=ids(out))])
    assert [n for block in other.store.nodes() for n in block] == sorted(nodes, key=lambda n: n.id)
    assert list(other.store.edges()) == list(pg.store.edges())


def test_an_end_that_is_not_there_becomes_an_entity_and_two_films_of_one_name_stay_two() -> None:
    pg = GraphretPropertyGraphStore(MemoryStore())
    pg.upsert_nodes([GraphNode(id_=i, name="King Kong", label="Film") for i in ("m1", "m2")])
    pg.upsert_relations([Relation(label="FROM", source_id="m2", target_id="NZ")])
    assert triples(pg.get_triplets(entity_names=["King Kong"])) == [("m2", "FROM", "NZ")]
    assert pg.store.get(["m1", "NZ"]) == [Node("m1", ("Film",), "King Kong"), Node("NZ", ("entity",), "NZ")]


# -- reading


def test_get_joins_conditions_and_takes_no_ids_for_none(pg: GraphretPropertyGraphStore) -> None:
    assert ids(pg.get()) == ["ada", "babbage", "engine", "notes"]
    assert ids(pg.get(ids=["notes", "nobody", "ada", "ada"])) == ["notes", "ada"]
    assert pg.get(ids=[]) == []
    assert ids(pg.get(properties={"born": 1815})) == ["ada"]
    assert ids(pg.get(properties={"name": "Ada Lovelace"})) == ["ada"]
    assert pg.get(properties={"born": 1815}, ids=["babbage"]) == []


def test_triplets_by_name_relation_property_and_id(pg: GraphretPropertyGraphStore) -> None:
    wrote, knew = ("ada", "WROTE", "notes"), ("ada", "KNEW", "babbage")
    assert pg.get_triplets() == pg.get_triplets(ids=[]) == []
    assert triples(pg.get_triplets(ids=["ada"])) == [knew, wrote]
    assert triples(pg.get_triplets(entity_names=["Ada Lovelace"])) == [knew, wrote]
    assert triples(pg.get_triplets(relation_names=["WROTE"])) == [wrote]
    assert triples(pg.get_triplets(properties={"year": 1843})) == [wrote]
    assert triples(pg.get_triplets(properties={"born": 1791}, relation_names=["KNEW", "WROTE"])) == [knew]
    assert triples(pg.get_triplets(entity_names=["Charles Babbage"], ids=["ada"])) == [knew]
    (_, relation, _), *_ = pg.get_triplets(relation_names=["DESIGNED"])
    assert isinstance(relation, GraphRelation)
    assert relation.weight == 2.0


def test_a_rel_map_goes_both_ways_nearest_first_within_its_limit(pg: GraphretPropertyGraphStore) -> None:
    (engine,) = pg.get(ids=["engine"])
    near = [("babbage", "DESIGNED", "engine"), ("notes", "ABOUT", "engine")]
    assert triples(pg.get_rel_map([engine], depth=2))[:2] == triples(pg.get_rel_map([engine], depth=1)) == near
    assert len(pg.get_rel_map([engine], depth=2)) == 4
    assert triples(pg.get_rel_map([engine], depth=3, limit=1)) == near[:1]
    assert triples(pg.get_rel_map([engine], depth=1, ignore_rels=["DESIGNED"])) == near[1:]


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
    pg.upsert_nodes([EntityNode(name=f"n{i}", embedding=rows[i], properties={"n": i}) for i in range(4)])
    query = VectorStoreQuery(query_embedding=[0.1, 0.9, 0.5, 0.0], similarity_top_k=3)
    nodes, scores = pg.vector_query(query)
    assert ids(nodes) == ["n1", "n2", "n0"]
    assert scores == pytest.approx(np.asarray([0.9, 0.5, 0.1]) / np.sqrt(0.81 + 0.25 + 0.01))
    assert (nodes[0].embedding, nodes[0].properties) == (rows[1], {"n": 1})
    query.filters = MetadataFilters(filters=[MetadataFilter(key="n", value=2, operator=FilterOperator.GTE)])
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
    "d3": "London lies on the Thames.",
}
FACTS = {
    "d1": [("Ada lovelace", "WROTE_ON", "Analytical engine")],
    "d2": [("Charles babbage", "DESIGNED", "Analytical engine"), ("Charles babbage", "LIVED_IN", "London")],
    "d3": [("London", "LIES_ON", "Thames")],
    "d4": [("Thames", "FLOWS_INTO", "North sea")],
}


class ScriptedExtractor(TransformComponent):
    """Finds the facts of a document as an extractor's model would."""

    def __call__(self, nodes: Sequence[BaseNode], **kwargs: Any) -> Sequence[BaseNode]:
        for node in nodes:
            found = FACTS.get(node.ref_doc_id or "", [])
            names = dict.fromkeys(name for left, _, right in found for name in (left, right))
            node.metadata[KG_NODES_KEY] = [EntityNode(name=name, label="Thing") for name in names]
            node.metadata[KG_RELATIONS_KEY] = [
                Relation(label=relation, source_id=left, target_id=right) for left, relation, right in found
            ]
        return nodes


def scripted(answer: str) -> MockFunctionCallingLLM:
    """A model that answers every prompt alike."""
    said = ChatMessage(role="assistant", content=answer)
    return MockFunctionCallingLLM(response_generator=lambda messages, **_: said, is_chat_model=True)


@pytest.fixture
def index() -> PropertyGraphIndex:
    return PropertyGraphIndex.from_documents(
        [Document(text=text, doc_id=doc_id, metadata={"kind": "history"}) for doc_id, text in TEXTS.items()],
        property_graph_store=GraphretPropertyGraphStore(MemoryStore()),
        kg_extractors=[ScriptedExtractor(), ImplicitPathExtractor()],
        embed_model=HashEmbedding(),
        llm=scripted("analytical engine^nothing"),
        use_async=False,
    )


def store_of(index: PropertyGraphIndex) -> MemoryStore:
    pg = index.property_graph_store
    assert isinstance(pg, GraphretPropertyGraphStore)
    assert isinstance(pg.store, MemoryStore)
    return pg.store


def test_an_index_is_built_over_a_graphret_store(index: PropertyGraphIndex) -> None:
    store, pg = store_of(index), index.property_graph_store
    nodes = [node for block in store.nodes() for node in block]
    edges = [edge for block in store.edges() for edge in block]
    facts = [fact for doc_id in TEXTS for fact in FACTS[doc_id]]
    assert {node.name for node in nodes if node.label == "Thing"} == {name for fact in facts for name in fact[::2]}
    relations = {fact[1] for fact in facts}
    assert {edge.relation for edge in edges} == {*relations, "SOURCE", "MENTIONS"}
    chunks = pg.get_llama_nodes([node.id for node in nodes if node.text])
    assert {chunk.ref_doc_id: chunk.get_content() for chunk in chunks} == TEXTS
    assert all(chunk.metadata == {"kind": "history"} for chunk in chunks)
    mentioned = {(edge.source, edge.target) for edge in edges if edge.relation == "MENTIONS"}
    assert mentioned == {(c.node_id, name) for c in chunks for fact in FACTS[c.ref_doc_id or ""] for name in fact[::2]}
    assert "MENTIONS" not in {relation.label for _, relation, _ in pg.get_rel_map(pg.get())}
    schema = pg.get_schema_str()
    assert ("Thing" in schema, "_node_content" in schema, "embedding" in schema) == (True, False, False)


def test_its_own_retrievers_work(index: PropertyGraphIndex) -> None:
    texts = [one.text for one in index.as_retriever(include_text=True).retrieve("Who designed it?")]
    assert any(TEXTS["d2"] in one and "Charles babbage -> DESIGNED -> Analytical engine" in one for one in texts)


def test_documents_come_and_go(index: PropertyGraphIndex) -> None:
    pg = index.property_graph_store
    index.insert(Document(text="The Thames flows into the North Sea.", doc_id="d4"))
    (chunk,) = pg.get(properties={"ref_doc_id": "d4"})
    found = [("Thames", "FLOWS_INTO", "North sea"), (chunk.id, "MENTIONS", "North sea")]
    assert sorted(triples(pg.get_triplets(ids=["North sea"]))) == sorted(found)
    assert triples(pg.get_triplets(ids=["Thames"], relation_names=["LIES_ON"])) == [("London", "LIES_ON", "Thames")]
    index.delete_nodes([chunk.id])
    assert pg.get(properties={"ref_doc_id": "d4"}) == []
    pg.delete_llama_nodes(ref_doc_ids=["d3"])
    assert TEXTS["d3"] not in {n.text for block in store_of(index).nodes() for n in block}
    assert ids(pg.get(ids=["Thames"])) == ["Thames"]
