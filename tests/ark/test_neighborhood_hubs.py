"""The edges of hubs of databases: read as the contract has them, and read again when something was written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import ladybug
import neo4j
import numpy as np
import pytest

from graphret.ark import Toolbox, hubs
from graphret.errors import InvalidInput
from graphret.search import BM25Index, Matches, Neo4jTextIndex
from graphret.stores import GraphStore, MemoryStore
from graphret.stores.incidence import Incident
from graphret.stores.ladybug import LadybugStore
from graphret.stores.neo4j import Neo4jStore
from graphret.testing.graphs import random_graph
from graphret.types import Edge, Node

WORDS = ["amber", "brook", "cedar", "delta"]


@pytest.fixture(autouse=True)
def small_hubs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "CAP", 3)


def filled(store: GraphStore, n: int = 120) -> None:
    """Write a hub with parallel edges, edges both ways, a loop, weights that tie, and few words in the texts."""
    rng = np.random.default_rng(4)
    nodes, edges = random_graph(3, n_nodes=20, n_edges=40)
    labels = [("Film",), ("Film", "Short"), ("Person",), ("Short",)]
    spokes = [Node(f"s{i:03d}", labels[i % 4], f"name {i}", " ".join(rng.choice(WORDS, 1 + i % 5))) for i in range(n)]
    links = [Edge("hub", ("LIKED", "SEEN")[i % 2], spoke.id, i % 7 / 2) for i, spoke in enumerate(spokes)]
    links += [Edge("hub", "LIKED", spoke.id, 5.0, {"source_row": 1}) for spoke in spokes[::5]]
    links += [Edge(spoke.id, "SEEN", "hub", 2.0) for spoke in spokes[::3]]
    store.upsert([Node("hub", ("Person",), "The Hub"), *nodes, *spokes], [*edges, *links, Edge("hub", "SEEN", "hub")])


def require_incidence(store: GraphStore) -> None:
    """What is read in columns is what `neighbors` returns."""
    assert isinstance(store, Incident)
    for block in store.nodes():
        for node in [block[0], *block[1::20]]:  # the hub, and some that few edges touch
            links, edges = store.incidence(node.id), store.neighbors([node.id])
            assert links is not None
            assert store.degree(node.id) >= len(edges) == len(links)
            ids = links.nodes.ids.tolist()
            assert ids == sorted(ids)
            found = zip(links.others, links.relation, links.outgoing, links.weight, strict=True)
            assert Counter((ids[i], links.relations[r], bool(out), float(w)) for i, r, out, w in found) == Counter(
                (edge.target, edge.relation, True, edge.weight)
                if edge.source == node.id
                else (edge.source, edge.relation, False, edge.weight)
                for edge in edges
            )
            for one in store.get(ids):
                assert one is not None
                assert links.nodes.label_sets[links.nodes.labels[ids.index(one.id)]] == one.labels


def require_kept_in_step(store: GraphStore) -> None:
    """After each write of the store, and of a Neo4j by others, the tools say what they say of a graph in memory."""
    memory = MemoryStore()
    for one in (memory, store):
        filled(one)
    index = BM25Index.of_store(memory)
    memory.attach(index)
    tools = Toolbox(store, index)
    calls = [{}, {"query": "amber cedar"}, {"node_types": ["Short"]}, {"query": "zeppelin", "relation_types": ["SEEN"]}]

    def require_same() -> None:
        for call in calls:
            expected = Toolbox(memory, index).explore_neighborhood("hub", **call, k=30)
            assert tools.explore_neighborhood("hub", **call, k=30) == expected
            assert '"of": "' not in expected.text
        assert expected.failed or "hub" in tools._hubs._kept

    require_same()
    for write in WRITES:
        for one in (memory, store):
            write(one)
        require_same()


#: New neighbours and nodes elsewhere, renamed ones and such of another label, edges that come, change and go, a loop,
#: and the hub itself.
WRITES: list[Callable[[GraphStore], None]] = [
    lambda store: store.upsert([Node("s000", ("Film",), "renamed", "amber")], [Edge("hub", "MADE", "s001", 9.0)]),
    lambda store: store.delete(["s002", "s003"]),
    lambda store: store.upsert([Node("t1", ("Short",), "new", "amber cedar"), Node("t2", ("Place",))]),
    lambda store: store.upsert((), [Edge("t1", "SEEN", "hub", 8.0), Edge("t2", "NEAR", "t1")]),
    lambda store: store.upsert([Node("s007", ("Short", "New"), "moved", "cedar")]),
    lambda store: store.upsert(
        (), [Edge("hub", "LIKED", "s010", 0.5), Edge("hub", "LIKED", "s010", 7, {"source_row": 1})]
    ),
    lambda store: store.delete_edges(
        [Edge("hub", "LIKED", "s010", properties={"source_row": 1}), Edge("s009", "SEEN", "hub")]
    ),
    lambda store: store.upsert([Node("s002", ("Short",), "back", "amber")], [Edge("s002", "SEEN", "hub", 6.0)]),
    lambda store: store.upsert([Node("hub", ("Film",), "Another Hub")], [Edge("n1", "SEEN", "hub", 6.5)]),
    lambda store: store.delete_edges([Edge("hub", "SEEN", "hub")]),
    lambda store: store.upsert(
        [Node(f"u{i}", ("Place",)) for i in range(30)], [Edge("hub", "MADE", f"u{i}") for i in range(30)]
    ),
    lambda store: store.delete(["hub"]),
    lambda store: store.upsert(
        [Node("hub", ("Person",), "The Hub")], [Edge("hub", "SEEN", f"s{i:03d}", i) for i in range(20, 60)]
    ),
]


@pytest.fixture
def embedded() -> Iterator[LadybugStore]:
    with LadybugStore(":memory:") as store:
        yield store


def test_ladybug_reads_in_columns_what_it_reads_one_by_one(embedded: LadybugStore) -> None:
    filled(embedded)
    require_incidence(embedded)
    require_incidence(embedded.view({"label": {"$in": ["Film", "Place"]}}))
    assert [node for node, _ in embedded.hubs(100)] == ["hub"]
    degrees = {f"n{i}": embedded.degree(f"n{i}") for i in range(20)} | {"hub": embedded.degree("hub")}
    assert dict(embedded.hubs(4)) == {node: n for node, n in degrees.items() if n > 4}


def test_tools_are_made_of_a_database_that_is_not_there() -> None:
    with Neo4jStore("bolt://localhost:1", connect_timeout=0.1, retry_time=0) as store:
        Toolbox(store, BM25Index.build([]))


def test_a_hub_of_a_view_is_seen_as_it_is_after_a_write(embedded: LadybugStore) -> None:
    filled(embedded, 40)
    embedded.delete_edges([Edge("hub", "SEEN", "hub")])
    index = BM25Index.of_store(embedded)
    embedded.attach(index)
    where = {"label": {"$ne": "Film"}}
    tools = Toolbox(embedded.view(where), index.view(where))
    writes: list[Callable[[], None]] = [
        lambda: embedded.upsert([Node("s002", ("Film",))], [Edge("hub", "MADE", "s003"), Edge("hub", "MADE", "s001")]),
        lambda: embedded.upsert([Node("hub", ("Film",)), Node("s003", ("Short",), "name 3")]),
        lambda: embedded.upsert([Node("s002", ("Short",), "back"), Node("hub", ("Person",), "The Hub")]),
        lambda: embedded.delete(["s003"]),
    ]
    for write in (lambda: None, *writes):
        write()
        for call in ({}, {"relation_types": ["MADE"]}):
            expected = Toolbox(embedded.view(where), index.view(where)).explore_neighborhood("hub", **call)
            assert tools.explore_neighborhood("hub", **call) == expected


def test_neo4j_reads_in_columns_what_it_reads_one_by_one(neo4j_empty: neo4j.Driver) -> None:
    store = Neo4jStore.from_driver(neo4j_empty)
    filled(store, 40)
    require_incidence(store)
    require_incidence(store.view({"label": {"$in": ["Film", "Place"]}}))
    for layout in ({"layout": "foreign"}, {"id_property": "id", "label": "Film"}):
        require_incidence(Neo4jStore.from_driver(neo4j_empty, **layout))


def test_ladybug_reads_tables_of_others_in_columns(tmp_path: Path) -> None:
    connection = ladybug.Connection(ladybug.Database(str(tmp_path / "own.lbug")))
    for statement in (
        "CREATE NODE TABLE City (code INT64, PRIMARY KEY (code))",
        "CREATE NODE TABLE Land (name STRING, PRIMARY KEY (name))",
        "CREATE REL TABLE near (FROM City TO City, FROM City TO Land, weight DOUBLE)",
        "UNWIND range(1, 30) AS i CREATE (:City {code: i})",
        "CREATE (:Land {name: 'sea'})",
        "MATCH (a:City), (b:City) WHERE a.code % 5 = 0 AND b.code % 3 = 0 "
        "CREATE (a)-[:near {weight: b.code / 2.0}]->(b)",
        "MATCH (a:City), (b:Land) CREATE (a)-[:near]->(b)",
    ):
        connection.execute(statement)
    connection.close()
    for id_property in (None, "code"):
        with LadybugStore(tmp_path / "own.lbug", id_property=id_property, read_only=True) as store:
            require_incidence(store)


def test_what_a_store_writes_is_seen_at_once(embedded: LadybugStore) -> None:
    require_kept_in_step(embedded)


@pytest.mark.parametrize("attached", [False, True])
def test_what_is_written_in_memory_is_seen_at_once(monkeypatch: pytest.MonkeyPatch, attached: bool) -> None:
    monkeypatch.setattr("graphret.ark.places._FEW", 3)
    filled(store := MemoryStore())
    index = BM25Index.of_store(store)
    if attached:
        store.attach(index)
    tools = Toolbox(store, index)
    for write in WRITES:
        write(store)
        for call in ({}, {"query": "amber cedar"}, {"query": "name 7", "node_types": ["Short"]}):
            assert tools.explore_neighborhood("hub", **call) == Toolbox(store, index).explore_neighborhood(
                "hub", **call
            )


def test_of_a_hub_in_ladybug_no_more_is_read_after_a_write_than_was_written(
    embedded: LadybugStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_only_the_written_is_read(embedded, monkeypatch)


def test_of_a_hub_in_neo4j_no_more_is_read_after_a_write_than_was_written(
    neo4j_empty: neo4j.Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = "CREATE (n:Film:Short:Person:New:Place {name: '', text: '', weight: 1.0, source_row: 1})"
    neo4j_empty.execute_query(f"{names} CREATE (n)-[:MADE]->(n)-[:NEAR]->(n) DETACH DELETE n")  # new names are writes
    require_only_the_written_is_read(Neo4jStore.from_driver(neo4j_empty), monkeypatch)


def require_only_the_written_is_read(store: Neo4jStore | LadybugStore, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(store)
    filled(memory := MemoryStore())
    index = BM25Index.of_store(memory)
    tools = Toolbox(store, index)
    read: list[str] = []
    incidence = store.incidence
    monkeypatch.setattr(store, "incidence", lambda node: read.append(node) or incidence(node))
    for i, write in enumerate(WRITES[:-2]):
        for one in (memory, store):
            write(one)
        if i % 2:  # one write after another, and two at once
            expected = Toolbox(memory, index).explore_neighborhood("hub", "amber", k=30)
            assert tools.explore_neighborhood("hub", "amber", k=30) == expected
    assert len(read) == 1  # when the hub was written, which has a loop
    monkeypatch.setattr(hubs, "WRITTEN", 3)
    for one in (memory, store):
        one.delete(["s020", "s021", "s022", "s023"])
    assert tools.explore_neighborhood("hub", k=30) == Toolbox(memory, index).explore_neighborhood("hub", k=30)
    assert len(read) == 2


def test_a_neighbour_that_goes_and_comes_back_with_another_label_is_seen_so(embedded: LadybugStore) -> None:
    filled(embedded)
    tools = Toolbox(embedded, BM25Index.of_store(embedded))
    before = tools.explore_neighborhood("hub", node_types=["Person"]).total
    embedded.delete(["s000"])
    assert tools.explore_neighborhood("hub", node_types=["Person"]).total == before
    embedded.upsert([Node("s000", ("Person",), "back")])
    assert tools.explore_neighborhood("hub", node_types=["Person"]).total == before
    embedded.upsert((), [Edge("hub", "SEEN", "s000", 99.0)])
    seen = tools.explore_neighborhood("hub", node_types=["Person"])
    assert (seen.total, seen.nodes[0]) == (before + 1, "s000")


def test_a_hub_of_neo4j_is_read_again_when_something_was_written(neo4j_empty: neo4j.Driver) -> None:
    require_kept_in_step(Neo4jStore.from_driver(neo4j_empty))


def test_a_hub_of_neo4j_is_read_again_when_somebody_else_wrote(
    neo4j_empty: neo4j.Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Neo4jStore.from_driver(neo4j_empty)
    filled(store, 40)
    assert store.hubs(40)[0] == ("hub", store.degree("hub"))
    assert {node for node, _ in store.hubs(4)} == {f"n{i}" for i in range(20) if store.degree(f"n{i}") > 4} | {"hub"}
    tools = Toolbox(store, BM25Index.of_store(store))
    with monkeypatch.context() as watched:
        watched.setattr(Neo4jStore, "incidence", None)  # it was read with the tools
        assert not tools.explore_neighborhood("hub").failed
    before = tools.explore_neighborhood("hub")
    assert tools.explore_neighborhood("hub") == before
    with neo4j_empty.session() as session:
        session.run("MATCH (h {id: 'hub'})-[r]-(s {id: 's000'}) DELETE r").consume()
    assert tools.explore_neighborhood("hub").total == before.total - 1
    with neo4j_empty.session() as session:
        session.run("MATCH (s {id: $id}) SET s.name = 'renamed'", id=before.nodes[1]).consume()
    assert "renamed" in tools.explore_neighborhood("hub").text


def test_a_hub_of_neo4j_is_as_it_is_however_its_own_writes_and_those_of_others_follow(
    neo4j_empty: neo4j.Driver, neo4j_uri: str
) -> None:
    rng = np.random.default_rng(8)
    with Neo4jStore(neo4j_uri) as store, Neo4jStore(neo4j_uri) as other:
        filled(store, 40)
        index = BM25Index.of_store(store)
        tools, turns = Toolbox(store, index), 40
        for turn in range(turns):
            for writer in ([store], [other], [store, other], [other, store])[int(rng.integers(4))]:
                spoke = f"s{int(rng.integers(40)):03d}"
                kind = int(rng.integers(3))
                if kind == 0:
                    writer.delete_edges([Edge("hub", ("LIKED", "SEEN")[int(spoke[1:]) % 2], spoke)])
                elif kind == 1:
                    writer.upsert((), [Edge(spoke, "SEEN", "hub", 10.0 + turn)])
                else:
                    writer.upsert([Node(spoke, (("Film",), ("Person",))[turn % 2], f"in turn {turn}")])
            expected = Toolbox(other, index).explore_neighborhood("hub", k=30)
            assert tools.explore_neighborhood("hub", k=30) == expected, turn


def test_a_hub_is_kept_until_there_are_too_many(embedded: LadybugStore, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(embedded, 40)
    read: list[str] = []
    incidence = embedded.incidence
    monkeypatch.setattr(embedded, "incidence", lambda node: read.append(node) or incidence(node))
    tools = Toolbox(embedded, BM25Index.of_store(embedded))
    assert read[0] == "hub"  # the largest is read before anybody asks
    assert len(read) == len(embedded.hubs(3)) > 1
    tools.explore_neighborhood("hub")
    assert read.count("hub") == 1
    monkeypatch.setattr(hubs, "KEPT", 1)
    monkeypatch.setattr(hubs, "PREPARED", 0)
    tools = Toolbox(embedded, BM25Index.of_store(embedded))
    tools.explore_neighborhood("hub")
    tools.explore_neighborhood("hub")
    assert read.count("hub") == 3


def test_a_hub_that_is_kept_is_read_once_a_call_with_the_neighbours_not_yet_shown(
    embedded: LadybugStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(embedded, 40)
    index = BM25Index.of_store(embedded)
    tools, expected = Toolbox(embedded, index), Toolbox(embedded, index).explore_neighborhood("hub", k=30)
    asked: list[list[str]] = []
    get = embedded.get
    monkeypatch.setattr(embedded, "get", lambda ids: asked.append(list(ids)) or get(ids))
    few = tools.explore_neighborhood("hub", k=10)
    assert asked == [["hub", *few.nodes]]
    assert tools.explore_neighborhood("hub", k=30) == expected
    assert asked[1:] == [["hub", *expected.nodes[10:]]]
    monkeypatch.setattr(hubs, "NODES", 0)
    embedded.upsert([Node(expected.nodes[0], ("Film",), "renamed")])
    for _ in range(2):
        assert "renamed" in tools.explore_neighborhood("hub").text
    assert asked[-1] == ["hub", *expected.nodes[:20]]


def test_a_hub_in_memory_is_gathered_once_for_each_state_of_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphret.ark.columnar.CAP", 3)
    store = MemoryStore()
    filled(store, 40)
    index = BM25Index.of_store(store)
    store.attach(index)
    tools = Toolbox(store, index)
    writes = [
        lambda: store.upsert([Node("s000", ("Person",), "renamed", "amber")]),
        lambda: store.upsert((), [Edge("hub", "MADE", "s001", 9.0)]),
        lambda: store.delete_edges([Edge("hub", "MADE", "s001")]),
        lambda: store.delete(["s002"]),
    ]
    said = set()
    for write in (lambda: None, *writes):
        write()
        for call in ({}, {"query": "amber"}, {"node_types": ["Film"]}, {"query": "amber", "relation_types": ["SEEN"]}):
            expected = Toolbox(store, index).explore_neighborhood("hub", **call, k=30)
            for _ in range(2):
                assert tools.explore_neighborhood("hub", **call, k=30) == expected
            said.add(expected.text)
        edges = store.graph.edges
        assert [*tools._columns._hubs] == [edges]  # those of former states are gone
        assert {around.links.nodes for around in tools._columns._hubs[edges].values()} == {store.graph.nodes}
    assert len(said) > 12
    monkeypatch.setattr("graphret.ark.columnar.KEPT", 200)
    for block in store.nodes():
        for node in block:
            tools.explore_neighborhood(node.id)
    assert 50 < sum(len(around.links) for around in tools._columns._hubs[store.graph.edges].values()) <= 200


def test_filters_of_a_kept_hub_pass_what_they_passed_before(embedded: LadybugStore) -> None:
    filled(embedded, 40)
    index = BM25Index.of_store(embedded)
    tools = Toolbox(embedded, index)
    relations = (None, ["SEEN"], ["<-[SEEN]-"], ["-[SEEN]->"], ["LIKED", "SEEN"])
    calls = [("hub", None, labels, names, 30) for labels in (None, ["Film"], ["Short"]) for names in relations]
    expected = [Toolbox(embedded, index).explore_neighborhood(*call) for call in calls]
    assert len({found.text for found in expected}) > 10
    for _ in range(2):
        assert [tools.explore_neighborhood(*call) for call in calls] == expected


def test_what_is_written_while_a_kept_hub_is_looked_at_is_seen(
    embedded: LadybugStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(embedded, 40)
    tools = Toolbox(embedded, BM25Index.of_store(embedded))
    before, get = tools.explore_neighborhood("hub"), embedded.get

    def interrupted(write: Callable[[], None]) -> None:
        def late(ids: list[str]) -> list[Node | None]:
            monkeypatch.setattr(embedded, "get", get)
            write()
            return get(ids)

        monkeypatch.setattr(embedded, "get", late)

    interrupted(lambda: embedded.delete(before.nodes[:1]))
    assert tools.explore_neighborhood("hub").nodes[:5] == before.nodes[1:6]
    interrupted(lambda: embedded.delete(["hub"]))
    assert tools.explore_neighborhood("hub").failed


def test_the_index_of_neo4j_ranks_the_neighbours_of_a_hub_as_it_scores_them(
    neo4j_empty: neo4j.Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Neo4jStore.from_driver(neo4j_empty)
    filled(store, 60)
    store.upsert([Node(f"x{i}", ("Film",), "elsewhere", "amber cedar brook") for i in range(30)])
    index = Neo4jTextIndex.create(store)
    ids = [node.id for block in store.nodes() for node in block if node.id.startswith("s") or node.id == "hub"]
    links = store.incidence("hub")
    assert links is not None
    weights = {one: float(links.weight[links.others == i].max()) for i, one in enumerate(links.nodes.ids.tolist())}
    asked_again: list[str] = []
    hits = Neo4jTextIndex.hits

    def noted(self: Neo4jTextIndex, query: str, n: int) -> Matches:
        asked_again.append(query)
        return hits(self, query, n)

    with monkeypatch.context() as watched:
        watched.setattr(Neo4jTextIndex, "hits", noted)
        tools = Toolbox(store, index)
        for query in ("amber", "umbra", "amber", "umbra"):
            tools.explore_neighborhood("hub", query, k=12)
        assert asked_again == ["amber", "umbra"]
        store.upsert([Node("s059", ("Short",), "name 59", "umbra")])
        assert tools.explore_neighborhood("hub", "umbra").nodes[0] == "s059"
    monkeypatch.setattr("graphret.ark.elsewhere._LEAST", 1)
    for query, n in (("amber cedar", 7), ("amber cedar", 200), ("zeppelin", 5), ("", 5)):
        found, filled_up = index.hits(query, n), index.search(query, n)
        matching = int((filled_up.scores > 0).sum())
        assert np.array_equal(found.scores, filled_up.scores[:matching])
        assert sorted(found.scores.tolist()) == sorted(index.score(query, found.ids).tolist())
    with pytest.raises(InvalidInput, match="view"):
        index.view({"label": "Film"}).hits("amber", 5)
    for asked in ((20,), (1, 20), (1,)):  # found at once, after a second look, and not among the best
        monkeypatch.setattr("graphret.ark.elsewhere._MATCHED", asked)
        for query in ("amber cedar", "delta", "zeppelin"):
            scores = dict(zip(ids, index.score(query, ids).tolist(), strict=True))
            best = sorted(scores, key=lambda one: (-scores[one], -weights[one], one))
            tools = Toolbox(store, index)
            assert list(tools.explore_neighborhood("hub", query, k=12).nodes) == best[:12]
            short = [one for one in best if one != "hub" and int(one[1:]) % 2]
            assert list(tools.explore_neighborhood("hub", query, ["Short"], k=12).nodes) == short[:12]
