"""LlamaIndex's property graphs over an embedded database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from llama_index.core import PropertyGraphIndex
from llama_index.core.graph_stores.types import EntityNode, Relation
from llama_index.core.indices.property_graph import ImplicitPathExtractor
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import VectorStoreQuery
from llama_support import HashEmbedding

from graphret.errors import QueryRefused
from graphret.stores.ladybug import LadybugStore
from graphret.testing.reading import all_edges
from llama_index_graphret import GraphretPropertyGraphStore


@pytest.fixture
def pg() -> Iterator[GraphretPropertyGraphStore]:
    with LadybugStore(":memory:", nested="json") as store:
        yield GraphretPropertyGraphStore(store)


def test_an_index_is_built_in_ladybug(pg: GraphretPropertyGraphStore) -> None:
    nodes = [TextNode(text=f"text {i}", id_=f"n{i}", metadata={"page": i}) for i in range(3)]
    nodes[0].relationships[NodeRelationship.NEXT] = RelatedNodeInfo(node_id="n1")
    hashes = {node.hash for node in nodes}
    index = PropertyGraphIndex(
        nodes=nodes,
        property_graph_store=pg,
        kg_extractors=[ImplicitPathExtractor()],
        embed_model=HashEmbedding(),
        use_async=False,
    )
    assert [(e.source, e.relation, e.target) for e in all_edges(pg.store)] == [("n0", "NEXT", "n1")]
    assert {node.hash for node in pg.get_llama_nodes(["n0", "n1", "n2"])} == hashes
    asked = VectorStoreQuery(HashEmbedding().get_text_embedding("page: 1\n\ntext 1"), similarity_top_k=1)
    assert [node.id for node in pg.vector_query(asked)[0]] == ["n1"]
    index.delete_nodes(["n0"])
    assert pg.store.count() == (2, 0)


def test_structured_queries_read_and_nothing_else(pg: GraphretPropertyGraphStore) -> None:
    pg.upsert_nodes([EntityNode(name="Ada", label="Person"), EntityNode(name="Notes", label="Work")])
    pg.upsert_relations([Relation(source_id="Ada", target_id="Notes", label="WROTE", properties={"year": 1843})])
    text = "MATCH (p:Person)-[w:WROTE]->(t:Work) WHERE w.year > $year RETURN p.name AS p, t.name AS t"
    assert pg.structured_query(text, {"year": 1800}) == [{"p": "Ada", "t": "Notes"}]
    for bad in ("MATCH (n) DETACH DELETE n", "COPY (MATCH (n) RETURN n) TO 'out.csv'", "CALL threads=1"):
        with pytest.raises(QueryRefused):
            pg.structured_query(bad)
    pg.delete(relation_names=["WROTE"])
    assert pg.store.count() == (2, 0)
