"""Nodes and edges of a Neo4j that something else filled, written back: what is not changed stays as it lies there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from graphret.errors import InvalidInput
from graphret.stores.neo4j import AsyncNeo4jStore, Neo4jStore
from graphret.types import Edge, Node

if TYPE_CHECKING:
    import neo4j

LAID_OUT: dict[str, Any] = {"id_property": "sku", "label": "P"}


def all_of(blocks: Iterator[list[Any]]) -> list[Any]:
    return [one for block in blocks for one in block]


def held(driver: neo4j.Driver) -> dict[Any, dict[str, Any]]:
    """Labels and properties, with their types, by ``sku``."""
    text = """MATCH (n) RETURN toString(n.sku) AS id, labels(n) AS labels,
        [k IN keys(n) | [k, n[k], valueType(n[k])]] AS properties"""
    return {
        record["id"]: {"": sorted(record["labels"]), **{k: (v, kind) for k, v, kind in record["properties"]}}
        for record in driver.execute_query(text).records
    }


def test_a_name_and_a_text_stay_in_the_properties_that_they_were_read_from(neo4j_empty: neo4j.Driver) -> None:
    neo4j_empty.execute_query(
        """CREATE (:P {sku: 'a', title: 'Ann', description: 'tall'}), (:P {sku: 'b', title: 1910, content: 'old'}),
        (:P {sku: 'c', name: 'Cy', title: 'Dr', summary: 'short', content: 'long'}), (:P:Q {sku: 'd', name: 7}),
        (:P {sku: 'e', name: ['Eve'], title: 'Eve'}), (:P {sku: 'f', name: date('2020-01-01'), title: 'Day'}),
        (:P {sku: 'g', name: 'Gus', title: 'Gus'}), (:P {sku: 'h'})"""
    )
    store = Neo4jStore.from_driver(neo4j_empty, **LAID_OUT)
    before = held(neo4j_empty)
    nodes = all_of(store.nodes())
    store.upsert(nodes)
    store.amend([(node, node) for node in nodes])
    store.upsert([replace(node, properties={}) for node in nodes if node.id == "b"])  # made anew, without the rest
    assert held(neo4j_empty) == before
    store.upsert([replace(node, name=f"{node.name}!", text="new") for node in nodes])
    after = held(neo4j_empty)
    first = ("name", "text")
    at = {"a": ("title", "description"), "b": ("title", "content"), "c": ("name", "summary"), "d": first}
    at |= {"e": ("title", "text"), "f": ("title", "text"), "g": first, "h": first}
    for node in nodes:
        name, text = at[node.id]
        changed = {name: (f"{node.name}!", "STRING NOT NULL"), text: ("new", "STRING NOT NULL")}
        assert after[node.id] == before[node.id] | changed
    again = all_of(store.nodes())
    store.amend([(node, replace(node, name="", text="newer", properties={})) for node in again if node.id in "ac"])
    assert {name: value for name, (value, _) in list(held(neo4j_empty)["c"].items())[1:]} == {
        "sku": "c",
        "summary": "newer",
    }
    assert store.get(["a"]) == [Node("a", ("P",), "", "newer", {"sku": "a", "description": "newer"})]


def test_a_name_that_a_property_would_hide_goes_to_the_first_or_is_refused(neo4j_empty: neo4j.Driver) -> None:
    neo4j_empty.execute_query("CREATE (:P {sku: 'a', title: 'Ann'}), (:P {sku: 'b', label: 'Bob'})")
    store = Neo4jStore.from_driver(neo4j_empty, **LAID_OUT, name_property=["name", "title", "label"])
    written = [
        Node("a", ("P",), "Ann", "", {"sku": "a", "title": "Dr"}),
        Node("b", ("P",), "Bob", "", {"sku": "b", "label": "Bob", "title": "Mr"}),
        Node("c", ("P",), "Cy", "", {"sku": "c", "title": "Cy"}),
    ]
    store.upsert(written)
    assert all_of(store.nodes()) == written
    titled = Neo4jStore.from_driver(neo4j_empty, **LAID_OUT, name_property="title")
    (node,) = titled.get(["a"])
    assert node is not None
    assert node.name == "Dr"
    with pytest.raises(InvalidInput, match="node 'a': property 'title' is where nodes have their name"):
        titled.upsert([replace(node, properties={**node.properties, "title": "Mrs"})])
    titled.upsert([replace(node, name="Mrs")])
    assert held(neo4j_empty)["a"]["title"][0] == "Mrs"
    both = Neo4jStore.from_driver(neo4j_empty, **LAID_OUT, name_property="title", text_property="title")
    (node,) = both.get(["a"])
    assert node is not None
    both.upsert([node])
    with pytest.raises(InvalidInput, match="node 'a': property 'title' is where nodes have their"):
        both.upsert([replace(node, text="more")])
    with pytest.raises(InvalidInput, match="node 'a': property 'name' cannot be stored"):
        store.upsert([replace(node, properties={**node.properties, "name": "2020-01-01"})])


def test_labels_that_llama_index_gives_entities_stay(neo4j_empty: neo4j.Driver) -> None:
    """A node is an entity or a chunk to LlamaIndex by its label, whatever it says."""
    neo4j_empty.execute_query(
        """CREATE (:__Node__:Chunk {id: 'bare'}), (:__Node__:Chunk {id: 'named', name: 'N', text: 't'}),
        (:__Node__:Chunk {id: 'chunk', text: 't'}), (:__Node__:__Entity__:Person {id: 'Ada', name: 'Ada'})"""
    )
    store = Neo4jStore.from_driver(neo4j_empty)
    told = "MATCH (n:__Entity__) RETURN collect(n.id) AS ids"
    nodes = all_of(store.nodes())
    store.upsert([replace(node, properties={"new": 1}) for node in nodes])
    assert neo4j_empty.execute_query(told).records[0]["ids"] == ["Ada"]
    store.upsert([Node("new", ("Person",), "New"), Node("text", ("Chunk",), "", "t"), Node("nothing", ("Thing",))])
    neo4j_empty.execute_query(
        "CREATE (:__Node__ {id: 'odd', name: ['x'], text: date('2020-01-01'), at: point({x: 1, y: 2})})"
    )
    (odd,) = store.get(["odd"])
    before = neo4j_empty.execute_query("MATCH (n {id: 'odd'}) RETURN n{.*}").records
    assert odd is not None
    store.upsert([odd])
    assert neo4j_empty.execute_query("MATCH (n {id: 'odd'}) RETURN n{.*}").records == before
    store.upsert([replace(odd, name="Odd")])
    assert store.get(["odd"]) == [replace(odd, name="Odd")]
    store.upsert([replace(node, name="Named") for node in nodes if node.id in ("bare", "chunk")])
    assert set(neo4j_empty.execute_query(told).records[0]["ids"]) == {"Ada", "new", "nothing", "bare", "chunk", "odd"}


async def test_an_edge_is_changed_where_it_is(neo4j_empty: neo4j.Driver, neo4j_uri: str, neo4j_auth: Any) -> None:
    """The driver cannot write years before 1 and after 9999: such a value stays in the database."""
    neo4j_empty.execute_query(
        """CREATE (a:P {sku: '1'})-[:KNOWS {since: date('-0044-03-15'), until: [date('+10000-01-01')], gone: 1,
        at: datetime('0000-12-31T23:00:00-02:00'), zone: datetime('2020-01-01T00:00[UTC]'), weight: 'heavy'}]->(a),
        (a)-[:KNOWS {since: date('-0044-03-15')}]->(:P {sku: 2})"""
    )
    store = Neo4jStore.from_driver(neo4j_empty, **LAID_OUT)
    told = """MATCH ()-[r]->(b) UNWIND keys(r) AS k WITH *, [v IN r[k] | toString(v)] AS list
        RETURN elementId(r), k, valueType(r[k]), coalesce(toStringOrNull(r[k]), list) ORDER BY b.sku, k"""
    told = told.replace("[v IN r[k]", "[v IN CASE WHEN r[k] IS :: LIST<ANY> THEN r[k] END")

    def rows() -> list[list[Any]]:
        return [record.values() for record in neo4j_empty.execute_query(told).records]

    before, edges = rows(), all_of(store.edges())
    store.upsert([Node("3", ("P",))], [*edges, Edge("3", "KNOWS", "1")])
    assert rows() == before
    loop, other = sorted(edges, key=lambda edge: edge.target)
    gone = {name: value for name, value in loop.properties.items() if name not in ("gone", "weight")}
    async with AsyncNeo4jStore(neo4j_uri, auth=neo4j_auth, **LAID_OUT) as same:
        await same.upsert(
            [], [replace(loop, weight=2.0, properties={**gone, "new": "x"}), replace(other, properties={})]
        )
    kept = [row for row in before if row[1] not in ("gone", "weight")]
    made = [[before[0][0], "new", "STRING NOT NULL", "x"], [before[0][0], "weight", "FLOAT NOT NULL", "2.0"]]
    assert sorted(rows()) == sorted([*[row for row in kept if row[0] == before[0][0]], *made])
    assert store.count() == (3, 3)
    (changed,) = store.neighbors(["1"], relations=["KNOWS"], direction="out", limit=1)
    store.upsert([], [replace(changed, properties={**changed.properties, "since": "-0043-03-15"})])
    assert ["since", "STRING NOT NULL", "-0043-03-15"] in [row[1:] for row in rows()]
