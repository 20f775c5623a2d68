"""Names that try to end a string and write, and queries that try to leave the graph, on real databases.

`attacks/names.json` and `attacks/queries_*.jsonl` hold them. In them ``CANARY_FILE`` is a file with a secret,
``CANARY_URL`` a listening port of this machine, and ``OUT_FILE`` a file that must not come to be.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from graphret.cypher import run_checked
from graphret.errors import GraphretError, InvalidInput, QueryRefused
from graphret.testing.attacks import SECRET, Attacked, Canary
from graphret.types import Edge, Node

ATTACKS = Path(__file__).parent / "attacks"
#: Names that are put in one statement where a database plans each anew, or in one database where each takes a table.
_TOGETHER = 24


@pytest.fixture
def canary(tmp_path: Path) -> Iterator[Canary]:
    folder = tmp_path / "canary"
    folder.mkdir()
    with Canary(folder) as one:
        yield one
        one.shutdown()


@pytest.fixture(params=[pytest.param("neo4j", marks=pytest.mark.neo4j), "ladybug"])
def attacked(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Attacked]:
    if request.param == "neo4j":
        from graphret.stores.neo4j import Neo4jStore

        driver = request.getfixturevalue("neo4j_empty")
        uri, auth = request.getfixturevalue("neo4j_uri"), request.getfixturevalue("neo4j_auth")

        def bare(query: str) -> Any:
            with driver.session(default_access_mode="READ") as session:
                return session.run(query).values()

        with Neo4jStore(uri, auth=auth) as store:
            yield Attacked(store, bare)
    else:
        import ladybug

        from graphret.stores.ladybug import LadybugStore

        other = ladybug.Connection(ladybug.Database(str(tmp_path / "bare.lbug")))
        with LadybugStore(tmp_path / "graph.lbug") as store:
            yield Attacked(store, lambda query: other.execute(query).get_all())


def queries(dialect: str, canary: Canary) -> list[tuple[str, str]]:
    lines = (ATTACKS / f"queries_{dialect}.jsonl").read_text(encoding="utf-8").splitlines()
    return [(attack["kind"], canary.put_in(attack["query"])) for attack in map(json.loads, lines)]


def names(canary: Canary) -> list[str]:
    return [canary.put_in(name) for name in json.loads((ATTACKS / "names.json").read_text(encoding="utf-8"))]


def test_the_canaries_sing(attacked: Attacked, canary: Canary) -> None:
    """With no guard the same databases read the file, call the port and write the file."""
    if attacked.store.dialect == "neo4j":
        assert attacked.bare(f"LOAD CSV FROM 'file://{canary.file}' AS row RETURN row[0]") == [[SECRET]]
        with suppress(Exception):  # nothing is answered there
            attacked.bare(f"LOAD CSV FROM '{canary.url}' AS row RETURN row[0]")
        assert canary.calls > 0
    else:
        read = attacked.bare(f"LOAD FROM '{canary.file}' (file_format='csv', header=false) RETURN *")
        assert read == [[SECRET]]
        attacked.bare(f"COPY (RETURN 1) TO '{canary.out}.csv'")
        assert list(canary.out.parent.glob("out*")) != []


def test_no_query_leaves_the_graph(attacked: Attacked, canary: Canary) -> None:
    attacks = queries(attacked.store.dialect, canary)
    assert len(attacks) > 100
    for kind, query in attacks:
        with pytest.raises(QueryRefused) as refused:
            run_checked(attacked.store, query)
        report = refused.value.report
        assert report is not None, (kind, query)
        assert report.errors, (kind, query)  # the guard, not the database
        assert SECRET not in str(refused.value)
    assert not canary.touched
    assert attacked.state() == attacked.before


@pytest.mark.parametrize(
    "template",
    [
        "MATCH (n:Person) WHERE n.name = '{name}' RETURN n LIMIT 3",
        'MATCH (n:Person {{name: "{name}"}}) RETURN n LIMIT 3',
        "MATCH (n:`{name}`) RETURN n LIMIT 3",
        "MATCH (n:{name})-[:{name}]->() RETURN n.{name} LIMIT 3 // {name}",
        "MATCH (n:Person) /* {name} */ RETURN n.name AS `{name}` LIMIT 3",
    ],
)
def test_no_name_pasted_into_a_query_leaves_it(attacked: Attacked, canary: Canary, template: str) -> None:
    ran = 0
    for name in names(canary):
        try:
            rows = run_checked(attacked.store, template.format(name=name))
        except GraphretError:
            continue
        ran += 1
        assert SECRET not in repr(rows)
    if "'" in template or '"' in template:
        assert ran > 10  # plain strings for the guard: they must be so for the database as well
    assert not canary.touched
    assert attacked.state() == attacked.before


def test_names_as_parameters_are_values(attacked: Attacked, canary: Canary) -> None:
    query = "MATCH (n:Person) WHERE n.name = $name OR n.name = 'Ann' RETURN n.name AS name LIMIT 3"
    given = names(canary)
    for name in given[::10]:
        assert run_checked(attacked.store, query, {"name": name}).rows == [("Ann",)]
    each = "UNWIND $names AS name MATCH (n:Person) WHERE n.name = name OR n.name = 'Ann' RETURN name, n.name LIMIT 999"
    assert run_checked(attacked.store, each, {"names": given}).rows == [(name, "Ann") for name in given]
    assert not canary.touched
    assert attacked.state() == attacked.before


def test_names_as_ids_texts_and_values_come_back_as_they_went_in(attacked: Attacked, canary: Canary) -> None:
    store = attacked.store
    given = [name for name in names(canary) if len(name) <= 4_000]  # a longer one is no id in Neo4j
    assert len(given) > 100
    nodes = [Node(name, ("Person",), name, text=name, properties={"note": name}) for name in given]
    edges = [Edge(a, "knows", b, properties={"note": a}) for a, b in pairwise(given)]
    store.upsert(nodes, edges)
    assert store.count() == (3 + len(nodes), 2 + len(edges))
    assert store.get(given) == nodes
    for name, following in pairwise(given):
        (edge,) = store.neighbors([name], direction="out", where={"note": following})
        assert (edge.target, edge.properties["note"]) == (following, name)
    assert len(store.neighbors(given, relations=["knows"])) == len(edges)
    store.delete(given)
    assert not canary.touched
    assert attacked.state() == attacked.before


def test_names_to_look_for_are_only_looked_for(attacked: Attacked, canary: Canary) -> None:
    store = attacked.store
    looked_for = [name for name in names(canary) if name != "Person" and "\0" not in name]  # which no database takes
    assert store.get(looked_for) == [None] * len(looked_for)
    assert store.neighbors(looked_for) == []
    assert store.neighbors(["ann", "bob"], relations=looked_for) == []
    assert store.neighbors(["ann", "bob"], labels=looked_for) == []
    assert store.neighbors(["ann", "bob"], where={"name": {"$in": looked_for}}) == []
    assert list(store.nodes(labels=looked_for)) == []
    assert list(store.edges(relations=looked_for)) == []
    fields = [{name: name} for name in looked_for if name and not name.startswith("$")]
    assert len(fields) > 100
    for nth, start in enumerate(range(0, len(fields), _TOGETHER)):
        where = {"$or": fields[start : start + _TOGETHER]}
        if nth % 2:  # conditions of calls and of views are written by the same code
            assert store.neighbors(["ann", "bob"], where=where) == []
        else:
            plain = [field for field in where["$or"] if "." not in next(iter(field))]  # a view takes no paths
            assert store.view({"$or": plain}).get(["ann"]) == [None]
    store.delete(looked_for)
    assert not canary.touched
    assert attacked.state() == attacked.before


def _named(i: int, names: list[str]) -> tuple[list[Node], list[Edge]]:
    """Two nodes, and edges, that have names wherever one can be; not all stores let relation and label share one."""
    nodes = [
        Node(f"{i}", tuple(names), "x", properties=dict.fromkeys(names, 1)),
        Node(f"{i}'", tuple(names), "y"),
    ]
    return nodes, [Edge(f"{i}", f"{name} r", f"{i}'", properties={name: 2}) for name in names]


def test_names_as_labels_relations_and_keys_are_names(attacked: Attacked, canary: Canary, tmp_path: Path) -> None:
    store = attacked.store
    given = names(canary)[::2]  # a database plans anew for each
    for name in (name for name in given if "\0" in name):
        before = store.count()
        with pytest.raises(InvalidInput):
            store.upsert(*_named(0, [name]))
        assert store.count() == before
    taken = [name for name in given if "\0" not in name]
    assert len(taken) > 50
    groups = [taken[start : start + _TOGETHER] for start in range(0, len(taken), _TOGETHER)]
    if store.dialect == "neo4j":
        _require_kept(attacked, groups)
    else:  # in Ladybug the first label alone is in a query's text; and the more tables there are, the longer one takes
        from graphret.stores.ladybug import LadybugStore

        for i, group in enumerate(groups):
            with LadybugStore(tmp_path / f"{i}.lbug") as other:
                _require_kept(Attacked(other), [[name] for name in group])
    assert not canary.touched


def _require_kept(attacked: Attacked, groups: list[list[str]]) -> None:
    """Names that are put in a store come back as they are, each group with two nodes, and nothing else comes to be."""
    store = attacked.store
    made = [_named(i, group) for i, group in enumerate(groups)]
    nodes = [node for nodes, _ in made for node in nodes]
    edges = [edge for _, edges in made for edge in edges]
    store.upsert(nodes, edges)
    assert store.get([node.id for node in nodes]) == nodes
    names = [name for group in groups for name in group]
    for name, edge in list(zip(names, edges, strict=True))[::7]:
        (back,) = store.neighbors([edge.source], relations=[edge.relation], labels=[name])
        assert (back.target, back.properties) == (edge.target, edge.properties)
    assert list(store.nodes(labels=["Pwned"])) == []
    store.delete([node.id for node in nodes])
    assert store.count() == attacked.before[0]
    assert store.get(["ann", "bob", "cat"]) == attacked.before[1]


def _scoring(hits: Any) -> list[str]:
    """What has a word of the question; the rest fills up to k."""
    return [one for one, score in zip(hits.ids, hits.scores, strict=True) if score > 0]


def test_names_as_texts_to_search_for(neo4j_empty: Any, neo4j_uri: str, neo4j_auth: Any, canary: Canary) -> None:
    """Lucene has a language of its own: in an index of the database it is no more than words, too."""
    from graphret.search.neo4j_index import Neo4jTextIndex
    from graphret.stores.neo4j import Neo4jStore

    asked = [*names(canary), "*:*", "graphret_title:*", "ann OR bob", "a~", "[a TO z]", "/.*/", "+ann -bob", "(", "AND"]
    asked = [name for name in asked if "\0" not in name]
    with Neo4jStore(neo4j_uri, auth=neo4j_auth) as store:
        attacked = Attacked(store)
        index = Neo4jTextIndex.create(store)
        assert _scoring(index.search("ann", 5)) == ["ann"]
        found = index.search(asked, 5)
        assert len(found) == len(asked)
        assert {one for hits in found for one in hits.ids} <= {"ann", "bob", "cat"}
        assert [len(_scoring(hits)) for hits in found[-9:]] == [0, 0, 2, 0, 0, 0, 2, 0, 0]
        for start in range(0, len(asked), _TOGETHER):
            some = asked[start : start + _TOGETHER]
            assert index.search("ann", 5, labels=[name for name in some if name != "Person"]).ids == []
            assert index.search("ann", 5, where={"name": {"$in": some}}).ids == []
        assert not canary.touched
        assert attacked.state() == attacked.before
