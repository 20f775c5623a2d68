"""Graphs in Neo4j that something else wrote, and how graphret's own lie there."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from graphret import Expand
from graphret.cypher import check, kinds, run_checked
from graphret.errors import InvalidInput, QueryRefused, StoreMismatch
from graphret.schema import GraphSchema
from graphret.search import BM25Index
from graphret.stores.base import delete_edges
from graphret.stores.neo4j import AsyncNeo4jStore, Neo4jStore, quote, sampling
from graphret.stores.neo4j.layout import key_of
from graphret.stores.neo4j.statements import Work
from graphret.testing.graphs import HOSTILE
from graphret.types import Edge, Node

if TYPE_CHECKING:
    import neo4j

Auth = tuple[str, str] | None


@pytest.fixture
def database(neo4j_empty: neo4j.Driver) -> Iterator[neo4j.Driver]:
    neo4j_empty.execute_query(
        """CREATE (a:Person:Author {uuid: 'a', title: 'Dr', name: 'Ada', description: 'text'}),
        (b:Person {uuid: 'b', name: 'Charles', at: point({x: 1.5, y: 2.0})}), (c:Machine {uuid: 3, title: 'Engine'}),
        (d {note: 'bears no label'}), (a)-[:KNEW {weight: 2, since: datetime('1833-06-05T20:00Z')}]->(b),
        (a)-[:KNEW {weight: 'heavy'}]->(b), (b)-[:BUILT {weight: 0.5}]->(c), (c)-[:NEAR]->(d)
        SET a.born = date('1815-12-10')"""
    )
    neo4j_empty.execute_query("CREATE INDEX FOR (n:Unused) ON (n.uuid)")
    return neo4j_empty


def all_of(blocks: Iterator[list[Any]]) -> list[Any]:
    return [one for block in blocks for one in block]


def test_a_foreign_graph_goes_by_element_ids(database: neo4j.Driver) -> None:
    store = Neo4jStore.from_driver(database)
    assert store.count() == (4, 4)
    by_name = {node.name: node for node in all_of(store.nodes())}
    ada, charles, engine, other = by_name["Ada"], by_name["Charles"], by_name["Engine"], by_name[""]
    assert ada.id == database.execute_query("MATCH (n {uuid: 'a'}) RETURN elementId(n) AS id").records[0]["id"]
    assert ada == Node(
        ada.id,
        ("Author", "Person"),
        "Ada",
        "text",
        {"uuid": "a", "title": "Dr", "born": "1815-12-10", "description": "text"},
    )
    assert charles.properties["at"] == {"srid": 7203, "x": 1.5, "y": 2.0}
    assert (engine.properties, other.labels) == ({"uuid": 3, "title": "Engine"}, ())
    assert store.get([ada.id, "no element id", "a"]) == [ada, None, None]
    edges = store.neighbors([ada.id])
    assert sorted((e.weight, e.properties.get("weight"), e.properties.get("since")) for e in edges) == [
        (1.0, "heavy", None),
        (2.0, None, "1833-06-05T20:00:00Z"),
    ]
    assert [e.weight for e in store.neighbors([ada.id], limit=1)] == [2.0]
    assert [e.target for e in store.neighbors([engine.id], direction="out")] == [other.id]
    schema = store.schema()
    assert schema.labels == {"Author": 1, "Machine": 1, "Person": 2}  # none that only an index names
    assert schema.relations["Person", "KNEW", "Person"] == 2
    assert schema.relations["Machine", "NEAR", ""] == 1
    assert schema.properties["Author"]["born"].type == "DATE"
    assert re.search(r"at: POINT[;}]", schema.text())
    far = "MATCH (p:Person) RETURN p.at.x, point.distance(p.at, point({x: 0, y: 0})) LIMIT 1"
    assert not check(far, schema).findings
    assert [node.id for node in all_of(store.view({"born": {"$lt": "1900"}}).nodes())] == [ada.id]


def test_a_sampled_schema_says_what_it_knows_all_of(database: neo4j.Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "ALL_COUNTED", 0)
    store = Neo4jStore.from_driver(database)

    def read(sample: int, counted: int, store: Neo4jStore = store) -> GraphSchema:
        return store.run(Work(lambda: sampling.Sampler(store.graph(), sample, counted).schema()))

    schema = read(1, 1)
    assert schema.sampled_names is False
    assert schema.sampled_properties == {"Person"}  # two nodes; the others have one each
    assert schema.sampled_relation_properties == {"KNEW"}
    assert schema.sampled_relations == frozenset()  # of KNEW the labels of one end are one, or counted source by source
    assert check("MATCH (m:Machine)-[:BUILT]->(p:Person) RETURN p LIMIT 1", schema).errors
    assert check("MATCH (m:Machine) RETURN m.born LIMIT 1", schema).errors
    (found,) = check("MATCH (p:Person) RETURN p.weight LIMIT 1", schema).findings
    assert (found.kind, found.severity) == (kinds.MISPLACED_PROPERTY, "warning")
    whole = read(2, 2)
    assert (whole.sampled, whole.sampled_properties, whole.sampled_relations) == (False, frozenset(), frozenset())
    view = read(2, 1, store.view({"name": {"$in": ["Ada", "Charles"]}}))  # where no counts are kept
    assert (view.sampled_names, view.sampled_relations) == (False, {"KNEW"})


def test_dates_times_and_durations_have_types(neo4j_empty: neo4j.Driver) -> None:
    neo4j_empty.execute_query(
        """CREATE (:P {day: date('2020-01-02'), at: time('10:00Z'), local: localtime('10:00:01'),
        stamp: datetime('2020-01-02T10:00Z'), long: duration('P1Y2M3DT4.5S'), all: [duration('PT1S')]})"""
    )
    schema = Neo4jStore.from_driver(neo4j_empty).schema()
    assert {name: known.type for name, known in schema.properties["P"].items()} == {
        "day": "DATE",
        "at": "TIME",
        "local": "TIME",
        "stamp": "DATE_TIME",
        "long": "DURATION",
        "all": "LIST OF DURATION",
    }
    assert schema.properties["P"]["long"].examples == ("P1Y2M3DT4.5S",)
    assert GraphSchema.from_dict(schema.to_dict()).text() == schema.text()
    for query in ("MATCH (n:P) RETURN n.long.days, n.at.hour LIMIT 1", "MATCH (n:P) RETURN n.day + n.long LIMIT 1"):
        assert check(query, schema).findings == []


def test_nodes_with_neither_a_label_nor_an_edge_have_properties(database: neo4j.Driver) -> None:
    database.execute_query("CREATE ({foo: 1}), ({foo: 2, bar: 'x'})")
    store = Neo4jStore.from_driver(database)

    def read(scanned: int, sample: int = 10, **options: Any) -> GraphSchema:
        of = Neo4jStore.from_driver(database, **options)
        return of.run(Work(lambda: sampling.Sampler(of.graph(), sample, scanned=scanned).schema()))

    schema = store.schema()
    assert set(schema.properties[""]) == {"note", "foo", "bar"}
    assert (schema.sampled, "" in schema.labels) == (False, False)
    assert check("MATCH (n) WHERE n.foo = 1 RETURN n.bar LIMIT 1", schema).findings == []
    for wrong in ("MATCH (n) RETURN n.nothing LIMIT 1", "MATCH (n:Person) RETURN n.foo LIMIT 1"):
        assert check(wrong, schema).errors
    for partly in (read(2), read(6, sample=2)):
        assert partly.sampled_properties == {""}
        (found,) = check("MATCH (n) RETURN n.nothing LIMIT 1", partly).findings
        assert (found.kind, found.severity) == (kinds.UNKNOWN_PROPERTY, "warning")
        assert check("MATCH (n:Person) RETURN n.nothing LIMIT 1", partly).errors
    assert read(6, sample=3).sampled_properties == set()
    view = store.view({"foo": {"$exists": True}})
    shown = view.run(Work(lambda: sampling.Sampler(view.graph(), scanned=2).schema()))
    assert shown.sampled_properties == set(), "how many nodes are hidden does not show"
    database.execute_query("MATCH (n) WHERE labels(n) = [] SET n:Thing")
    assert read(1).sampled_properties == {""}  # Ada has two labels: there may be a node with none
    for change in ("MATCH (n:Author) REMOVE n:Author", "MATCH (n) SET n:Thing"):
        database.execute_query(change)
        labelled = read(1)
        assert (labelled.sampled_properties, "" in labelled.properties) == (set(), False)


def test_options_say_which_properties_are_id_name_and_text(database: neo4j.Driver) -> None:
    store = Neo4jStore.from_driver(
        database, id_property="uuid", name_property=["title", "name"], text_property="description"
    )
    ada, charles, engine = store.get(["a", "b", "3"])
    assert ada is not None
    assert charles is not None
    assert engine is not None
    assert (ada.name, ada.text, charles.name, engine.id) == ("Dr", "text", "Charles", "3")
    leaving = store.neighbors(["3"], direction="out")
    assert [(e.source, e.relation, e.target) for e in leaving] == [("3", "NEAR", _other(store))]
    assert store.query("MATCH (p:Author)-[r:KNEW {weight: 2}]->(q) RETURN r").rows[0][0].source == "a"
    assert [node.id for node in all_of(store.nodes(where={"id": "3"}))] == ["3"]
    people = Neo4jStore.from_driver(database, id_property="uuid", label="Person")
    assert people.count() == (2, 2)
    assert [node.id for node in all_of(people.nodes())] == ["a", "b"]
    assert [e.relation for e in people.neighbors(["b"])] == ["KNEW", "KNEW"]
    assert people.get(["3"]) == [None]


def _other(store: Neo4jStore) -> str:
    return next(node.id for node in all_of(store.nodes()) if node.properties.get("note"))


@pytest.mark.parametrize("options", [{}, {"id_property": "uuid"}], ids=str)
def test_a_graph_without_a_label_and_a_property_for_ids_is_not_written_to(
    database: neo4j.Driver, options: dict[str, Any]
) -> None:
    store = Neo4jStore.from_driver(database, **options)
    (first, *_) = all_of(store.nodes())
    for call in (lambda: store.upsert([Node("new")]), lambda: store.delete([first.id])):
        with pytest.raises(StoreMismatch, match="id_property"):
            call()
    assert store.count() == (4, 4)


IDS = "1, '2', 3.5, 1.0, 1e21, 9223372036854775807, -0.0, 'NaN', 0.0/0.0, 1.0/0.0, true, date('2020-01-01'), null"


@pytest.mark.parametrize("llama", [False, True])
def test_every_id_that_is_listed_is_found(neo4j_empty: neo4j.Driver, llama: bool) -> None:
    label, own = ("__Node__", "id") if llama else ("P", "sku")
    points = ", point({x: 1, y: 2}), duration('P1D'), [1]" if llama else ""
    neo4j_empty.execute_query(f"UNWIND [{IDS}{points}] AS id CREATE (p:{label} {{{own}: id}})-[:R]->(p)")
    options = {} if llama else {"id_property": own, "label": label}
    store = Neo4jStore.from_driver(neo4j_empty, **options)
    nodes = all_of(store.nodes())
    listed = [node.id for node in nodes]
    assert {"1", "2", "3.5", "1.0", "1.0E21", "9223372036854775807", "-0.0", "NaN", "Infinity"} < set(listed)
    assert len(set(listed)) == len(listed) == 13 + 3 * llama
    assert store.get(listed) == nodes
    assert store.neighbors(listed) == [Edge(node_id, "R", node_id) for node_id in sorted(listed)]
    assert sorted(node.id for (node,) in store.query("MATCH (n) RETURN n").rows) == sorted(listed)
    assert store.get(["1.00", "+1", "01", "1e21", "2.0", "nan", "inf", "1_0", "true", "2020-01-01"]) == [None] * 10
    (day,) = [node for node in nodes if node.properties.get(own) == "2020-01-01"]
    assert all_of(store.nodes(where={"properties.id": "2020-01-01"} if llama else {own: "2020-01-01"})) == [day]
    neo4j_empty.execute_query(f"MATCH (n {{{own}: 1}}) DETACH DELETE n")  # 1 and 1.0: a constraint takes them for one
    store.upsert([day], [Edge(day.id, "S", day.id)])
    assert (store.get([day.id]), store.degree(day.id)) == ([day], 2)
    assert neo4j_empty.execute_query(f"MATCH (n:{label} {{{own}: date('2020-01-01')}}) RETURN n").records


def test_ids_that_are_numbers_are_written_as_numbers(neo4j_empty: neo4j.Driver) -> None:
    neo4j_empty.execute_query("CREATE (:P {sku: 1})-[:R]->(:P {sku: 3.5}), (:P {sku: '2'}), (:P {sku: 10})")
    store = Neo4jStore.from_driver(neo4j_empty, id_property="sku", label="P")
    store.upsert([Node("1", ("P",), "One"), Node("7", ("P",))], [Edge("1", "R", "3.5", 2.0), Edge("7", "S", "1")])
    assert store.neighbors(["1"]) == [Edge("1", "R", "3.5", 2.0), Edge("7", "S", "1")]
    store.delete_edges([Edge("7", "S", "1")])
    store.delete(["10"])
    with pytest.raises(InvalidInput, match="no node '8'"):
        store.upsert([Node("9", ("P",))], [Edge("1", "R", "9"), Edge("9", "R", "8")])
    found = neo4j_empty.execute_query(
        "MATCH (n) OPTIONAL MATCH (n)-[r]->() RETURN n.sku, n.name, type(r) ORDER BY n.sku"
    )
    assert [record.values() for record in found.records] == [
        ["2", None, None],
        ["7", None, None],
        [1, "One", "R"],
        [3.5, None, None],
    ]


def test_what_two_nodes_may_be_is_not_written_to(neo4j_empty: neo4j.Driver) -> None:
    neo4j_empty.execute_query(
        "CREATE (:P {sku: 1})-[:R]->(:P {sku: '1'}), (:P {sku: 'b'}), (:P {sku: 'b'}), (:P {sku: 'c'})"
    )
    store = Neo4jStore.from_driver(neo4j_empty, id_property="sku", label="P")
    for node_id in ("1", "b"):
        with pytest.raises(InvalidInput, match=rf"'{node_id}': 2 nodes"):
            store.delete(["c", node_id])
    neo4j_empty.execute_query("MATCH (n {sku: 'b'}) DELETE n")
    with pytest.raises(InvalidInput, match="'1': 2 nodes"):
        store.upsert([Node("new", ("P",)), Node("1", ("P",))])
    assert store.count() == (3, 1)
    store.delete(["c"])
    assert store.count() == (2, 1)


async def test_what_two_nodes_may_be_is_not_read_as_one(
    neo4j_empty: neo4j.Driver, neo4j_uri: str, neo4j_auth: Auth
) -> None:
    neo4j_empty.execute_query(
        "CREATE (:P {sku: 5, x: 1}), (:P {sku: '5', x: 2}), (:P {sku: 'b'}), (:P {sku: 'b'}), (:P {sku: 6})"
    )
    options: dict[str, Any] = {"id_property": "sku", "label": "P"}
    store = Neo4jStore.from_driver(neo4j_empty, **options)
    for node_id, both in (("5", "'5' and 5"), ("b", "'b' and 'b'")):
        with pytest.raises(InvalidInput, match=rf"node '{node_id}': 2 nodes have this id: sku is {both}"):
            store.get(["6", node_id])
    async with AsyncNeo4jStore(neo4j_uri, auth=neo4j_auth, **options) as other:
        with pytest.raises(InvalidInput, match="node '5': 2 nodes have this id"):
            await other.get(["5"])
    assert [node and node.properties for node in store.get(["6", "5.0", "c"])] == [{"sku": 6}, None, None]
    (seen,) = store.view({"x": 2}).get(["5"])  # of which a view shows one
    assert seen is not None
    assert seen.properties == {"sku": "5", "x": 2}


def test_an_id_of_two_nodes_blocks_no_other_and_no_constraint_is_made(neo4j_empty: neo4j.Driver) -> None:
    neo4j_empty.execute_query("CREATE (:Q {sku: 'b'})-[:R]->(:Q {sku: 'b'}), (:Q {sku: 'b'}), (:Q {sku: 'c'})")
    store = Neo4jStore.from_driver(neo4j_empty, id_property="sku", label="Q")
    store.upsert([Node("d", ("Q",), "four")], [Edge("d", "R", "c"), Edge("c", "R", "d", 2.0)])
    store.upsert([Node("d", ("Q",), "fifth")])
    assert [node and node.name for node in store.get(["d"])] == ["fifth"]
    assert len(store.neighbors(["d"])) == 2
    writes = [
        ([Node("e", ("Q",)), Node("b", ("Q",))], []),
        ([Node("e", ("Q",))], [Edge("e", "R", "d"), Edge("d", "R", "b")]),
    ]
    for nodes, edges in writes:
        with pytest.raises(InvalidInput, match="node 'b': 3 nodes have this id"):
            store.upsert(nodes, edges)
    with pytest.raises(InvalidInput, match="node 'b': 3 nodes have this id"):
        store.delete_edges([Edge("d", "R", "b")])
    assert store.count() == (5, 3)
    made = neo4j_empty.execute_query("SHOW CONSTRAINTS YIELD labelsOrTypes RETURN labelsOrTypes").records
    assert ["Q"] not in [record[0] for record in made]


def test_edges_that_are_alike_come_in_one_order(neo4j_empty: neo4j.Driver) -> None:
    neo4j_empty.execute_query(
        "CREATE (a:P {sku: 'a'}), (b:P {sku: 'b'}) WITH a, b UNWIND range(0, 30) AS i CREATE (a)-[:R {i: i}]->(b)"
    )
    store = Neo4jStore.from_driver(neo4j_empty, id_property="sku")
    one = [edge.properties["i"] for edge in store.neighbors(["a"])]
    for ids, options in ((["b"], {}), (["b", "a"], {}), (["b"], {"direction": "in"}), (["a"], {"relations": ["R"]})):
        assert [edge.properties["i"] for edge in store.neighbors(ids, **options)] == one
    few = {edge.properties["i"] for edge in store.neighbors(["a"], limit=3)}
    assert few == {edge.properties["i"] for edge in store.neighbors(["b"], limit=3)} == set(one[:3])


def test_a_graph_of_others_with_ids_and_a_label_is_written_to(database: neo4j.Driver) -> None:
    store = Neo4jStore.from_driver(database, id_property="uuid", label="Person", name_property="name")
    store.upsert([Node("new", ("Author",), "New")], [Edge("new", "KNEW", "a", 3.0)])
    assert store.get(["new"]) == [Node("new", ("Author", "Person"), "New", properties={"uuid": "new"})]
    assert [e.weight for e in store.neighbors(["new"])] == [3.0]
    assert database.execute_query("MATCH (n:Person:Author {uuid: 'new'}) RETURN count(n) AS n").records[0]["n"] == 1


def test_the_label_that_a_user_names_is_a_label_like_any_other(database: neo4j.Driver) -> None:
    store = Neo4jStore.from_driver(database, id_property="uuid", label="Person")
    ada, charles = all_of(store.nodes(labels=["Person"]))
    assert (ada.labels, charles.labels) == (("Author", "Person"), ("Person",))
    assert [node.id for node in all_of(store.nodes(where={"label": "Person"}))] == ["a", "b"]
    assert len(store.neighbors(["a"], labels=["Person"])) == 2
    schema = store.schema()
    assert schema.labels == {"Author": 1, "Person": 2}
    assert schema.relations["Person", "KNEW", "Person"] == 2
    found = run_checked(store, "MATCH (p:Person)-[:KNEW]->(q:Person) RETURN DISTINCT q.name LIMIT 5", schema=schema)
    assert found.rows == [("Charles",)]
    again = Node("b", ("Person", "Author"), "Charles", properties={"uuid": "b"})
    store.upsert([again, Node("c", ("Machine",), properties={"uuid": "c"})])
    assert store.get(["b", "c"]) == [again, Node("c", ("Machine", "Person"), properties={"uuid": "c"})]
    assert store.schema().labels == {"Author": 2, "Machine": 1, "Person": 3}


LAID_OUT = {"id_property": "sku", "label": "P", "name_property": ["title", "name"], "text_property": "body"}


@pytest.mark.parametrize(
    ("name", "value"), [("sku", "q"), ("sku", 1), ("sku", None), ("title", "z"), ("title", None), ("body", "b")]
)
def test_a_property_that_would_take_the_place_of_a_field_is_refused(
    neo4j_empty: neo4j.Driver, name: str, value: Any
) -> None:
    store = Neo4jStore.from_driver(neo4j_empty, **LAID_OUT)
    with pytest.raises(InvalidInput, match=f"node 'a1': property '{name}'"):
        store.upsert([Node("fine"), Node("a1", (), "Ada", "text", {name: value})])
    assert store.count() == (0, 0)


def test_a_property_that_says_what_its_field_does_is_written(neo4j_empty: neo4j.Driver) -> None:
    neo4j_empty.execute_query(
        "CREATE (:P {sku: 1, title: 1910}), (:P {sku: 'a', title: ['x'], name: 'Ada'}), (:P {sku: date('2020-01-01')})"
    )
    store = Neo4jStore.from_driver(neo4j_empty, **LAID_OUT)
    known = all_of(store.nodes())
    assert [(node.id, node.name) for node in known[::2]] == [("1", "1910"), ("a", "Ada")]
    store.upsert([*known, Node("b", ("P",), "Bob", "text", {"sku": "b", "title": "Bob", "body": "text"})])
    assert all_of(store.nodes())[:3] == known
    found = neo4j_empty.execute_query("MATCH (n) RETURN n.title, n.name, toString(n.sku) AS id ORDER BY id").records
    assert [r.values() for r in found] == [
        [1910, None, "1"],
        [None, None, "2020-01-01"],
        [["x"], "Ada", "a"],
        ["Bob", None, "b"],
    ]


def test_what_json_lacks_is_read_by_what_cypher_writes(neo4j_empty: neo4j.Driver) -> None:
    made = """CREATE (:P {sku: '1', a: date('-0044-03-15'), b: localdatetime('+10000-01-01T00:00:00.5'),
        c: datetime({year: -20, timezone: 'Europe/Berlin'}), d: datetime({year: 10007, month: 7, timezone: '+01:30'}),
        e: datetime({year: 10007, month: 7, timezone: 'Europe/Berlin'}), f: date('0000-12-31'),
        g: datetime('1800-01-01T00:00[Europe/Paris]'), h: time('10:00:00.5-03:30'), i: localtime('10:00'),
        j: datetime('2020-07-01T00:00-00:30'), k: datetime('1880-01-01T00:00[Europe/London]'),
        l: localdatetime('0000-12-31T10:00'), m: duration('P1Y2M-3DT4.5S'), n: datetime('2020-01-01T00:00:00.1Z')})"""
    neo4j_empty.execute_query(made)
    store = Neo4jStore.from_driver(neo4j_empty, **LAID_OUT)
    found = neo4j_empty.execute_query("MATCH (n) UNWIND keys(n) AS k RETURN k, toString(n[k]) AS text").records
    (node,) = store.get(["1"])
    assert node is not None
    assert node.properties == {record["k"]: record["text"] for record in found}
    store.upsert([node])
    kinds = neo4j_empty.execute_query("MATCH (n) UNWIND keys(n) AS k RETURN k, toString(n[k]) AS text").records
    assert sorted(kinds) == sorted(found)
    assert store.query("MATCH (n) RETURN n.a, [n.b], {c: n.d}").rows == [
        (node.properties["a"], [node.properties["b"]], {"c": node.properties["d"]})
    ]
    assert "object at" not in store.schema().text()


def test_what_json_lacks_is_written_back_as_it_was(neo4j_empty: neo4j.Driver) -> None:
    """A node that is read, changed in one property and written is changed in this one: others' dates stay dates."""
    made = """CREATE (a:P {sku: '1', name: ['Ann', 'Annie'], text: 1.5, title: 'Ann', born: date('-0044-03-15'),
        died: [date('2020-01-01')], at: point({x: 1, y: 2}), seen: [point({longitude: 1, latitude: 2, height: 3})],
        raw: $bytes, none: $empty, rating: 0.0 / 0.0, most: 1 / 0.0, some: [1.0, 0.0 / 0.0, -1 / 0.0],
        old: [date('-0044-03-15')], embedding: [1.0]}),
        (b:P {sku: '2', name: 'Bob', born: date('1970-01-01')}), (a)-[:KNOWS {since: date('2001-01-01'), w: 1}]->(b)"""
    neo4j_empty.execute_query(made, bytes=b"a\xff", empty=b"")
    told = "MATCH (n) UNWIND keys(n) AS k RETURN n.sku AS id, k, valueType(n[k]) AS kind, toStringOrNull(n[k]) AS text"
    before = [record.values() for record in neo4j_empty.execute_query(told).records]
    store = Neo4jStore.from_driver(neo4j_empty, id_property="sku", label="P")
    nodes = all_of(store.nodes())
    assert (nodes[0].name, nodes[0].text) == ("Ann", "")
    assert (nodes[0].properties["name"], nodes[0].properties["text"]) == (["Ann", "Annie"], 1.5)
    (edge,) = all_of(store.edges())
    store.upsert([replace(node, properties={**node.properties, "new": 1}) for node in nodes], [replace(edge, weight=2)])
    after = [record.values() for record in neo4j_empty.execute_query(told).records]
    new = [[sku, "new", "INTEGER NOT NULL", "1"] for sku in "12"]
    assert sorted(after, key=str) == sorted([*before, *new], key=str)
    found = neo4j_empty.execute_query("MATCH (n)-[r]->() RETURN n.raw, n.none, toString(r.since), r.weight").records
    assert [record.values() for record in found] == [[b"a\xff", b"", "2001-01-01", 2.0]]
    assert all_of(store.edges()) == [replace(edge, weight=2.0)]
    store.upsert([replace(nodes[1], properties={**nodes[1].properties, "born": "1970-01-02"})])
    assert neo4j_empty.execute_query("MATCH (n {sku: '2'}) RETURN n.born").records[0][0] == "1970-01-02"


@pytest.mark.parametrize("weight", ["'heavy'", "true", "point({x: 1, y: 2})", "[1, 2]", "date('2020-01-01')", "1.0"])
def test_an_odd_weight_stays(neo4j_empty: neo4j.Driver, weight: str) -> None:
    more = ["1 / 0.0", "0.0 / 0.0", "3", "9007199254740993"] if weight == "1.0" else []
    store = Neo4jStore.from_driver(neo4j_empty, id_property="sku", label="P", nested="json")
    for i, one in enumerate([weight, *more]):
        neo4j_empty.execute_query(
            f"CREATE (a:P {{sku: '{i}'}})-[:KNOWS {{weight: {one}, at: datetime('2020-01-01T00:00Z')}}]->(a)"
        )
    told = "MATCH ()-[r]->() UNWIND keys(r) AS k RETURN k, valueType(r[k]) AS kind, toStringOrNull(r[k]) AS text"
    before = neo4j_empty.execute_query(told).records
    edges = all_of(store.edges())
    store.upsert([], edges)
    assert sorted(neo4j_empty.execute_query(told).records, key=str) == sorted(before, key=str)
    store.upsert([], [replace(edge, weight=7.0) for edge in edges])
    assert [edge.weight for edge in all_of(store.edges())] == [7.0] * len(edges)


@pytest.mark.parametrize("made", ["name: 'Ann'", "sku: [1]", "sku: date('-0044-03-15')"])
def test_a_node_that_has_no_id_to_write_to_is_refused(neo4j_empty: neo4j.Driver, made: str) -> None:
    neo4j_empty.execute_query(f"CREATE (:P {{{made}}})")
    store = Neo4jStore.from_driver(neo4j_empty, id_property="sku", label="P")
    (node,) = all_of(store.nodes())
    for edges in ([], [Edge(node.id, "KNOWS", node.id)]):
        with pytest.raises(InvalidInput, match=f"node {node.id!r}: its property 'sku'"):
            store.upsert([] if edges else [node], edges)
    assert store.count() == (1, 0)
    store.delete([node.id])
    assert store.count() == (0, 0)


def test_one_of_several_relationships_that_are_one_edge_is_not_written_to(neo4j_empty: neo4j.Driver) -> None:
    neo4j_empty.execute_query(
        "CREATE (a:P {sku: '1'})-[:KNOWS {since: 1999}]->(b:P {sku: '2'}), (a)-[:KNOWS {since: 2005}]->(b), "
        "(a)-[:LIKES {since: 1999}]->(b), (a)-[:KNOWS]->(a)"
    )
    store = Neo4jStore.from_driver(neo4j_empty, id_property="sku", label="P")
    before = sorted(map(repr, all_of(store.edges())))
    with pytest.raises(InvalidInput, match="edge '1' to '2': 2 relationships 'KNOWS'"):
        store.upsert([Node("3")], [Edge("1", "KNOWS", "2", 1.0, {"since": 1999})])
    assert (sorted(map(repr, all_of(store.edges()))), store.count()) == (before, (2, 4))
    store.upsert([], [Edge("1", "LIKES", "2", 2.0), Edge("1", "KNOWS", "1", 2.0)])
    assert store.count() == (2, 4)
    store.delete_edges([Edge("1", "KNOWS", "2")])
    assert store.count() == (2, 2)


def test_a_number_that_is_none_hinders_no_index(neo4j_empty: neo4j.Driver) -> None:
    """NaN is what pandas leaves for a missing number, and an infinite one is read as Cypher writes it."""
    neo4j_empty.execute_query(
        """CREATE (a:P {sku: '1', title: 'Ann', rating: 0.0 / 0.0, list: [1.0, 0.0 / 0.0], most: -1 / 0.0}),
        (b:P {sku: '2', title: 'Bob'}), (c:P {sku: '3', title: 'Cy'}), (a)-[:KNOWS {weight: 0.0 / 0.0}]->(b),
        (a)-[:KNOWS {weight: 1 / 0.0}]->(c), (b)-[:KNOWS {weight: 3, since: 0.0 / 0.0}]->(c)"""
    )
    store = Neo4jStore.from_driver(neo4j_empty, **LAID_OUT)
    assert all_of(store.nodes())[0].properties == {
        "sku": "1",
        "title": "Ann",
        "list": [1.0, None],
        "most": "-Infinity",
    }
    text = store.schema().text()
    assert "NaN" not in text
    assert "rating" not in text
    assert '"-Infinity"' in text
    index = BM25Index.of_store(store)
    assert {hit.node.name for hit in Expand(None, store, index).retrieve("Ann", k=3)} == {"Ann", "Bob", "Cy"}
    edges = sorted(all_of(store.edges()), key=lambda edge: (edge.source, edge.target))
    assert [edge.weight for edge in edges] == [1.0, 1.0, 3.0]
    assert [edge.properties for edge in edges] == [{}, {"weight": "Infinity"}, {}]
    assert [edge.weight for edge in store.neighbors(["3"], limit=1)] == [3.0]


@pytest.mark.parametrize("mixed", [False, True])
def test_what_llama_index_wrote_is_seen_as_it_is(neo4j_empty: neo4j.Driver, mixed: bool) -> None:
    neo4j_empty.execute_query("CREATE CONSTRAINT FOR (n:__Node__) REQUIRE n.id IS UNIQUE")
    neo4j_empty.execute_query(
        """CREATE (c:__Node__:Chunk {id: 'chunk', text: 'Ada knew Charles', embedding: [0.1, 0.2]}),
        (a:__Node__:__Entity__:Person {id: 'Ada', name: 'Ada', embedding: [0.1, 0.2], age: 36}),
        (c)-[:MENTIONS]->(a)"""
    )
    if mixed:
        neo4j_empty.execute_query("CREATE (:City {name: 'London'})")
    store = Neo4jStore.from_driver(neo4j_empty)
    assert store.get(["Ada", "chunk"]) == [
        Node("Ada", ("Person",), "Ada", "", {"age": 36}),
        Node("chunk", ("Chunk",), "", "Ada knew Charles"),
    ]
    assert store.neighbors(["Ada"]) == [Edge("chunk", "MENTIONS", "Ada")]
    assert {label for label, n in store.schema().labels.items() if n} == {
        "Chunk",
        "Person",
        *(["City"] if mixed else []),
    }
    assert store.count() == (2 + mixed, 1)
    if mixed:
        (city,) = all_of(store.nodes(labels=["City"]))
        assert store.get([city.id]) == [city]


def test_what_is_internal_is_hidden(neo4j_empty: neo4j.Driver) -> None:
    store = Neo4jStore.from_driver(neo4j_empty, nested="json")
    odd = Node("x" * 9000, ("B", "A"), "n", "t", {"id": 1, "name": None, "graphret_text": "mine", "deep": {"a": [1]}})
    store.upsert(
        [odd, Node("y", ())], [Edge(odd.id, "R", "y", 2.0, {"weight": "own", "deep": [[1], None], "no": None})]
    )
    again = Neo4jStore.from_driver(neo4j_empty)
    assert again.get([odd.id, "y"]) == [odd, Node("y", ())]
    (edge,) = again.neighbors(["y"])
    assert edge == Edge(odd.id, "R", "y", 2.0, {"weight": "own", "deep": [[1], None], "no": None})
    assert again.query("MATCH (n:A)-[r]->(m) RETURN n, r, m").rows == [(odd, edge, Node("y", ()))]
    assert again.query("MATCH (n:A)-[r]->(m) RETURN r, [m], {path: 1}").rows == [(edge, [Node("y", ())], {"path": 1})]
    assert again.query("MATCH p = (:A)-->() RETURN p").rows == [([odd, edge, Node("y", ())],)]
    assert set(again.schema().labels) == {"A", "B"}
    assert set(again.schema().properties[""]) == {"id"}  # of y, which shows no label
    assert not any(name.startswith("graphret_") for name in again.schema().properties["A"])
    with pytest.raises(InvalidInput, match="__Graphret__"):
        again.upsert([Node("z", ("__Graphret__",))])


def test_ids_that_look_like_digests_are_ids(neo4j_empty: neo4j.Driver) -> None:
    store = Neo4jStore.from_driver(neo4j_empty)
    long = "n" * 5000
    nodes = [Node(long, name="long"), Node(key_of(long), name="looks like it")]
    store.upsert(nodes)
    assert store.get([node.id for node in nodes]) == nodes


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"a": 1}, "nested='json'"),
        ([1, "a"], "nested='json'"),
        ([None], "nested='json'"),
        (2**63, "64 bits"),
        ([-(2**63) - 1], "64 bits"),
        ({1, 2}, "not a JSON value"),
        (b"bytes", "not a JSON value"),
    ],
    ids=repr,
)
def test_values_that_cannot_be_kept_are_refused_by_name(neo4j_empty: neo4j.Driver, value: Any, words: str) -> None:
    store = Neo4jStore.from_driver(neo4j_empty)
    for nodes, edges in (([Node("fine"), Node("bad", properties={"prop": value})], []), ([Node("bad")], [value])):
        with pytest.raises(InvalidInput, match=rf"(?s)bad.*prop.*{words}"):
            store.upsert(nodes, [Edge("bad", "R", "bad", 1.0, {"prop": given}) for given in edges])
    assert store.count() == (0, 0)


def test_writers_write_beside_the_nodes(neo4j_empty: neo4j.Driver) -> None:
    batches: list[int] = []

    def writer(nodes: Any) -> dict[str, dict[str, Any]]:
        batches.append(len(nodes))
        return {node.id: {"graphret_text": node.name.lower()} for node in nodes}

    store = Neo4jStore.from_driver(neo4j_empty, writers=[writer])
    store.upsert([Node("a", name="Ada"), Node("b", name="Bob")])
    assert batches == [2]
    assert store.get(["a"]) == [Node("a", name="Ada")]
    assert store.query("MATCH (n {id: 'a'}) RETURN n.graphret_text").rows == [("ada",)]
    store.options.writers[:] = [lambda nodes: {"a": {"text": "not hidden"}}]
    with pytest.raises(InvalidInput, match="writers"):
        store.upsert([Node("a")])


@pytest.mark.parametrize(
    "name", [*HOSTILE, "a`" * 3, "\\u005c\\u0060", "\\\\u0060", "`\\u0060`"], ids=lambda n: ascii(n[:20])
)
def test_quoted_names_are_read_back(neo4j_driver: neo4j.Driver, name: str) -> None:
    found = neo4j_driver.execute_query(f"WITH {{{quote(name)}: 1}} AS {quote(name)} RETURN *, keys({quote(name)}) AS k")
    assert found.records[0]["k"] == [name]
    assert name in found.keys


@pytest.mark.parametrize("name", ["", "a\0b", "n" * 20_000, "\ud800", None])
def test_names_that_cannot_be_quoted_are_refused(name: Any) -> None:
    with pytest.raises(InvalidInput):
        quote(name)


def test_values_of_a_query_are_json(neo4j_driver: neo4j.Driver) -> None:
    values = (
        "date('2020-01-02') AS d, duration('P1Y2M3DT4.5S') AS p, [point({x: 1, y: 2})] AS q, {a: time('10:00Z')} AS t"
    )
    assert Neo4jStore.from_driver(neo4j_driver).query(f"RETURN {values}").rows == [
        ("2020-01-02", "P1Y2M3DT4.5S", [{"srid": 7203, "x": 1.0, "y": 2.0}], {"a": "10:00:00Z"})
    ]


def test_explain_names_the_kind(neo4j_driver: neo4j.Driver) -> None:
    store = Neo4jStore.from_driver(neo4j_driver)
    texts = ["MATCH (n) RETURN n", "CREATE (n) RETURN n", "CREATE (n)", "CREATE INDEX FOR (n:X) ON (n.y)"]
    assert [store.explain(text) for text in texts] == ["r", "rw", "w", "s"]
    with pytest.raises(QueryRefused):
        store.explain("MATCH (n) RETURN n; MATCH (m) RETURN m")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"layout": "other"}, "layout"),
        ({"nested": "drop"}, "nested"),
        ({"id_property": ""}, "id_property"),
        ({"name_property": []}, "name_property"),
        ({"layout": "graphret", "label": "A"}, "layout"),
        ({"name_property": 3}, "name_property"),
        ({"text_property": ["a", 3]}, "text_property"),
        ({"hidden": "embedding"}, "hidden"),
        ({"timeout": -1}, "timeout"),
        ({"timeout": "1"}, "timeout"),
        ({"pool_size": 0}, "pool_size"),
        ({"pool_size": 1.5}, "pool_size"),
        ({"connect_timeout": 0}, "connect_timeout"),
        ({"retry_time": -1}, "retry_time"),
        ({"retry_time": float("nan")}, "retry_time"),
        ({"database": 3}, "database"),
    ],
    ids=str,
)
def test_malformed_options_are_refused(options: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidInput, match=rf"^{word}:"):
        Neo4jStore("bolt://127.0.0.1:1", **options)


@pytest.mark.parametrize("uri", ["", "127.0.0.1:7687", "http://127.0.0.1", "bolt://127.0.0.1:99999"])
def test_an_address_that_is_none_is_refused(uri: str) -> None:
    with pytest.raises(InvalidInput):
        Neo4jStore(uri)


def test_many_calls_wait_at_once(neo4j_empty: neo4j.Driver, neo4j_uri: str, neo4j_auth: Auth) -> None:
    """The asynchronous store waits for nothing but the database: calls overlap on one thread."""
    Neo4jStore.from_driver(neo4j_empty).upsert([Node(f"n{i}") for i in range(50)])

    async def ask() -> list[list[Node | None]]:
        async with AsyncNeo4jStore(neo4j_uri, auth=neo4j_auth) as store:
            return await asyncio.gather(*(store.get([f"n{i}"]) for i in range(50)))

    assert [found[0].id for found in asyncio.run(ask()) if found[0]] == [f"n{i}" for i in range(50)]


def test_edges_go_in_one_write_that_leaves_hidden_properties(neo4j_empty: neo4j.Driver) -> None:
    with neo4j_empty.session() as session:
        session.run(
            "CREATE (a:Thing {id: 'a', embedding: [1.0, 2.0]})-[:R]->(b:Thing {id: 'b'}), (a)-[:S]->(b), (a)-[:R]->(a)"
        )
    store = Neo4jStore.from_driver(neo4j_empty, id_property="id", label="Thing")
    delete_edges(store, [Edge("a", "R", "b")])
    with neo4j_empty.session() as session:
        left = session.run("MATCH (a {id: 'a'})-[r]->(b) RETURN type(r), b.id, a.embedding ORDER BY b.id").values()
    assert left == [["R", "a", [1.0, 2.0]], ["S", "b", [1.0, 2.0]]]
    unnamed = Neo4jStore.from_driver(neo4j_empty, layout="foreign")
    with pytest.raises(StoreMismatch, match="id_property"):
        delete_edges(unnamed, [Edge("a", "R", "a")])


@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_index_of_this_process_misses_no_write_of_several_at_once(
    neo4j_empty: neo4j.Driver, neo4j_uri: str, neo4j_auth: Auth, asynchronous: bool
) -> None:
    batches = [[Node(f"n{i}-{j}", ("N",), f"name{i} word{j}") for j in range(3)] for i in range(12)]
    store = Neo4jStore.from_driver(neo4j_empty)
    store.upsert([Node("first", ("N",), "first")])
    index = BM25Index.of_store(store)

    async def write() -> None:
        async with AsyncNeo4jStore(neo4j_uri, auth=neo4j_auth) as other:
            other.attach(index)
            await asyncio.gather(*(other.upsert(batch) for batch in batches))
            await asyncio.gather(*(other.delete([batch[0].id]) for batch in batches))

    if asynchronous:
        asyncio.run(write())
    else:
        store.attach(index)
        with ThreadPoolExecutor(6) as threads:
            list(threads.map(store.upsert, batches))
            list(threads.map(lambda batch: store.delete([batch[0].id]), batches))
    assert set(index.table.ids) == {"first", *(node.id for batch in batches for node in batch[1:])}
