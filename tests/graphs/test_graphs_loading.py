"""Graphs go into every store whole or in batches; an import that is interrupted or killed goes on where it was."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from graphret.errors import InvalidInput, NotAnIndex, StoreUnavailable
from graphret.graphs import (
    Columns,
    ReadOptions,
    copy,
    export_graph,
    import_graph,
    load_tables,
    memory_store,
    read_metaqa,
    read_tables,
)
from graphret.graphs import loading as loading_module
from graphret.graphs.example import KB
from graphret.graphs.journal import Journal, fingerprint
from graphret.graphs.opening import kind_of, opened, place_of
from graphret.stores import MemoryStore, open_store
from graphret.testing.graphs import EDGES, NODES, random_graph
from graphret.types import Edge, Node

if TYPE_CHECKING:
    import neo4j


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPHRET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "imports"


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading_module, "NODE_BATCH", 50)
    monkeypatch.setattr(loading_module, "EDGE_BATCH", 100)


def contents(store: Any) -> tuple[list[Node], list[Edge]]:
    return [n for block in store.nodes() for n in block], sorted((e for block in store.edges() for e in block), key=str)


class Counted:
    """A store whose writes are counted, and that loses its connection before the one of a number."""

    def __init__(self, inner: MemoryStore, fails_at: int | None = None) -> None:
        self.inner, self.fails_at, self.writes = inner, fails_at, 0

    def upsert(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()) -> None:
        if self.writes == self.fails_at:
            raise StoreUnavailable("the connection was lost")
        self.writes += 1
        self.inner.upsert(nodes, edges)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def test_columns_make_the_same_store_as_objects() -> None:
    tables = read_metaqa(KB)
    by_columns, by_objects = memory_store(tables), MemoryStore()
    load_tables(tables, by_objects)
    assert contents(by_columns) == contents(by_objects)
    assert by_columns.count() == tables.count() == (398, 549)


def test_an_interrupted_load_goes_on_behind_the_last_batch(small_batches: None) -> None:
    tables, inner = read_metaqa(KB), MemoryStore()
    whole = memory_store(tables)
    journal = Journal("some load")
    n_batches = 8 + 6
    for fails_at in (3, 4, 5):
        with pytest.raises(StoreUnavailable):
            load_tables(tables, Counted(inner, fails_at), journal=journal)  # type: ignore[arg-type]
    assert journal.read() == (398, 4 * 100)
    last = Counted(inner)
    done = load_tables(tables, last, journal=journal)  # type: ignore[arg-type]
    assert (done.nodes, done.edges, done.resumed_nodes, done.resumed_edges) == (398, 549, 398, 400)
    assert last.writes == n_batches - 3 - 4 - 5
    assert contents(inner) == contents(whole)
    assert not journal.path.exists()
    again = load_tables(tables, Counted(inner), journal=journal)  # type: ignore[arg-type]
    assert (again.resumed_nodes, again.resumed_edges) == (0, 0)


def test_a_journal_is_not_believed_over_the_store(small_batches: None) -> None:
    tables, journal = read_metaqa(KB), Journal("some load")
    for n, m in ((100, 0), (398, 200), (10**6, 0), (398, 10**6)):
        journal.write(n, m)
        store = Counted(MemoryStore())  # emptied since
        done = load_tables(tables, store, journal=journal)  # type: ignore[arg-type]
        assert (done.resumed_nodes, done.resumed_edges, store.writes) == (0, 0, 14)
    journal.write(100, 0)
    other = MemoryStore.of(Node(f"other-{i}") for i in range(500))  # as large, and another graph
    assert load_tables(tables, Counted(other), journal=journal).resumed_nodes == 0  # type: ignore[arg-type]
    assert other.count() == (898, 549)


@pytest.mark.parametrize("stopped", [5, 8, 11])  # among the nodes, behind the last, among the edges
@pytest.mark.parametrize("copied", [False, True])
def test_what_went_from_the_store_since_is_written_again(small_batches: None, stopped: int, copied: bool) -> None:
    """Though others have added as much, and though what is written later does not need it."""
    tables, inner, journal = read_metaqa(KB), MemoryStore(), Journal("some load")
    source = memory_store(tables)

    def load(store: Counted) -> Any:
        target: Any = store
        return copy(source, target, journal=journal) if copied else load_tables(tables, target, journal=journal)

    with pytest.raises(StoreUnavailable):
        load(Counted(inner, stopped))
    before = journal.read()
    written = [n.id for block in (source.nodes() if copied else tables.grouped().nodes(500)) for n in block]
    inner.delete(written[120:122])
    others = [Node(f"other-{i}") for i in range(300)]
    inner.upsert(others, [Edge(a.id, "other", b.id) for a in others[:30] for b in others])
    done = load(Counted(inner))
    assert done.resumed_nodes == 120 < before[0]
    assert done.resumed_edges <= before[1]
    assert inner.count() == (398 + 300, 549 + 9000)
    inner.delete(node.id for node in others)
    assert contents(inner) == contents(source)
    assert not journal.path.exists()


def test_edges_that_went_from_the_store_since_are_written_again(small_batches: None) -> None:
    tables, journal = read_metaqa(KB), Journal("some load")
    with pytest.raises(StoreUnavailable):
        load_tables(tables, Counted(whole := MemoryStore(), 12), journal=journal)  # type: ignore[arg-type]
    nodes, written = contents(whole)
    grouped = [edge for block in tables.grouped().edges(1000) for edge in block]
    others = [Edge(nodes[0].id, "other", node.id) for node in nodes]
    inner = MemoryStore.of(nodes, [*others, *(edge for edge in written if edge != grouped[250])])
    done = load_tables(tables, Counted(inner), journal=journal)  # type: ignore[arg-type]
    assert (done.resumed_nodes, done.resumed_edges) == (398, 250)
    assert set(contents(inner)[1]) == {*grouped, *others}


def test_journals_tell_sources_apart_and_survive_nonsense(tmp_path: Path) -> None:
    path = tmp_path / "kb.txt"
    path.write_text("a|has_tags|b\n")
    one = Journal([fingerprint([path]), "there"])
    one.write(5, 7)
    assert Journal([fingerprint([path]), "there"]).read() == (5, 7)
    assert Journal([fingerprint([path]), "elsewhere"]).read() == (0, 0)
    path.write_text("a|has_tags|c and more\n")
    assert Journal([fingerprint([path]), "there"]).read() == (0, 0)
    for nonsense in ("", "[]", '{"nodes": "x"}', '{"nodes": -3, "edges": null}'):
        one.path.write_text(nonsense)
        assert one.read() == (0, 0)
    unwritable = Journal("x", folder=path)  # a file, where the folder should be
    unwritable.write(1, 1)
    assert unwritable.read() == (0, 0)
    unwritable.close()


def test_copy_goes_on_too(small_batches: None) -> None:
    nodes, edges = random_graph(5)
    source = MemoryStore.of([*nodes, *(Node(f"x{i}") for i in range(200))], edges)
    inner, journal = MemoryStore(), Journal("copy")
    with pytest.raises(StoreUnavailable):
        copy(source, Counted(inner, 3), journal=journal)  # type: ignore[arg-type]
    assert journal.read() == (150, 0)
    done = copy(source, Counted(inner), journal=journal)  # type: ignore[arg-type]
    assert (done.resumed_nodes, done.nodes, done.edges) == (150, *source.count())
    assert contents(inner) == contents(source)


# Places


def test_places_are_told_apart(tmp_path: Path) -> None:
    import_graph(KB, tmp_path / "odd.lbug.d")
    assert [kind_of(one) for one in ("neo4j+s://h", "BOLT://h", "ladybug:x", "x.LBUG", "x.lbdb", "x", "x.txt")] == [
        *("neo4j", "neo4j", "ladybug", "ladybug", "ladybug", "folder", "folder"),
    ]
    assert kind_of(str(tmp_path / "odd.lbug.d")) == "folder"
    assert place_of("bolt://me:secret@h:7687") == place_of("bolt://h:7687")
    assert place_of("bolt://h:7687/a?x=y") != place_of("bolt://h:7687/b?x=y")
    assert place_of("ladybug:x.db") == place_of("./x.db")
    for wrong in ("", "ladybug:", "http://h"):
        with pytest.raises(InvalidInput):
            kind_of(wrong)
    for missing in ("ladybug:none", str(tmp_path / "none.lbug"), str(tmp_path / "none")):
        with pytest.raises(NotAnIndex, match="no such"), opened(missing):
            pass


# A Ladybug file


def test_a_ladybug_file_is_made_and_copied_back(tmp_path: Path) -> None:
    file, folder = tmp_path / "deep" / "movies.lbug", tmp_path / "movies"
    done = import_graph(KB, file)
    assert (done.nodes, done.edges, done.labels["Movie"]) == (398, 549, 44)
    back = import_graph(file, folder)
    assert (back.format, back.nodes, back.edges) == ("store", 398, 549)
    assert contents(open_store(folder)) == contents(memory_store(read_metaqa(KB)))
    assert import_graph(KB, f"ladybug:{tmp_path / 'other'}").nodes == 398
    assert import_graph(folder, tmp_path / "again.ladybug").edges == 549
    assert import_graph(KB, file).nodes == 398  # over what is there
    with opened(str(file)) as store:
        assert store.count() == (398, 549)


@pytest.mark.parametrize("to", ["new.lbug", "filled.lbug", "neo4j"])
@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_a_database_keeps_the_weights_of_the_files(
    tmp_path: Path, to: str, format: str, request: pytest.FixtureRequest
) -> None:
    weights = [0.1, 16_777_217.0, 1e300, 1.0]
    edges = [{"source": "a", "relation": f"R{i}", "target": "b", "weight": weight} for i, weight in enumerate(weights)]
    if format == "parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        nodes = {"id": ["a", "b"], "name": ["A", "B"], "type": ["X", "X"], "properties": ["{}", "{}"]}
        pq.write_table(pa.table(nodes), tmp_path / "nodes.parquet")
        names = {"source": "from", "target": "to", "relation": "type", "weight": "weight"}
        columns = {name: [edge[key] for edge in edges] for key, name in names.items()}
        pq.write_table(pa.table({**columns, "properties": ["{}"] * len(edges)}), tmp_path / "edges.parquet")
        sources = [tmp_path]
    elif format == "csv":
        (tmp_path / "n.csv").write_text("id\na\nb\n")
        rows = [",".join(map(str, edge.values())) for edge in edges]
        (tmp_path / "e.csv").write_text("\n".join(["source,relation,target,weight", *rows]))
        sources = [tmp_path / "n.csv", tmp_path / "e.csv"]
    else:
        (tmp_path / "n.jsonl").write_text('{"id": "a"}\n{"id": "b"}\n')
        (tmp_path / "e.jsonl").write_text("\n".join(map(json.dumps, edges)))
        sources = [tmp_path / "n.jsonl", tmp_path / "e.jsonl"]
    where = request.getfixturevalue("server") if to == "neo4j" else str(tmp_path / to)
    if to == "filled.lbug":
        MemoryStore.of([Node("c")]).save(tmp_path / "other")
        import_graph(tmp_path / "other", where)
    import_graph(sources, where)
    with opened(where) as store:
        assert [edge.weight for edge in store.neighbors(["a"])] == weights


def test_a_refused_import_leaves_no_ladybug_file(tmp_path: Path) -> None:
    nodes = tmp_path / "n.jsonl"
    nodes.write_text('{"id": "a", "deep": {"b": [1]}}\n')
    with pytest.raises(InvalidInput, match="deep"):
        import_graph(nodes, tmp_path / "g.lbug")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["n.jsonl"]
    import_graph(nodes, tmp_path / "g.lbug", nested="json")
    with opened(str(tmp_path / "g.lbug")) as store:
        (node,) = store.get(["a"])
    assert node is not None
    assert node.properties == {"deep": {"b": [1]}}


@pytest.mark.parametrize(
    ("source", "columns", "said"),
    [
        (KB, Columns(id="key"), "--id-column: the format metaqa"),
        (KB, Columns(types={"year": "integer"}), "--type: the format metaqa has no column 'year'"),
        ("movies", Columns(source="from"), "--source-column: "),
    ],
    ids=str,
)
def test_columns_of_what_has_none_are_refused(tmp_path: Path, source: Any, columns: Columns, said: str) -> None:
    import_graph(KB, tmp_path / "movies")
    with pytest.raises(InvalidInput, match=said):
        import_graph(tmp_path / source, tmp_path / "out", options=ReadOptions(columns))


# Neo4j


@pytest.fixture
def server(
    neo4j_empty: neo4j.Driver, neo4j_uri: str, neo4j_auth: tuple[str, str] | None, monkeypatch: pytest.MonkeyPatch
) -> str:
    """The address of an empty Neo4j."""
    for name, value in zip(("NEO4J_USERNAME", "NEO4J_PASSWORD"), neo4j_auth or (None, None), strict=True):
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
    return neo4j_uri


def test_neo4j_takes_a_graph_and_gives_it_back(server: str, tmp_path: Path) -> None:
    MemoryStore.of(NODES, EDGES).save(tmp_path / "small")
    assert import_graph(tmp_path / "small", server).nodes == len(NODES)
    assert import_graph(server, tmp_path / "back").edges == len(EDGES)
    assert contents(open_store(tmp_path / "back")) == contents(MemoryStore.of(NODES, EDGES))
    assert import_graph(server, tmp_path / "copy.lbug", format="neo4j").edges == len(EDGES)


def test_a_graph_of_others_is_copied_by_its_own_properties(
    server: str, neo4j_empty: neo4j.Driver, tmp_path: Path
) -> None:
    neo4j_empty.execute_query(
        "CREATE (:Film {key: 'f1', title: 'Dawn', plot: 'A film.', year: 1999})<-[:MADE {role: 'all'}]-"
        "(:Person:Author {key: 'p1', title: 'Ann'})"
    )
    options = ReadOptions(Columns(id="key", name="title", text="plot"))
    import_graph(server, tmp_path / "films", options=options)
    nodes, edges = contents(open_store(tmp_path / "films"))
    assert [(n.id, set(n.labels), n.name, n.text, n.properties.get("year")) for n in nodes] == [
        ("f1", {"Film"}, "Dawn", "A film.", 1999),
        ("p1", {"Person", "Author"}, "Ann", "", None),
    ]
    assert edges == [Edge("p1", "MADE", "f1", 1.0, {"role": "all"})]
    with pytest.raises(InvalidInput, match="name no columns"):
        import_graph(tmp_path / "films", tmp_path / "other", options=options)
    neo4j_empty.execute_query("MATCH (p:Person) SET p.height = 0.0 / 0.0, p.most = [0.0 / 0.0, 1 / 0.0]")
    for place in ("other", "other.lbug"):
        import_graph(server, tmp_path / place, options=options, nested="json")
        with opened(str(tmp_path / place)) as store:
            (ann,) = store.get(["p1"])
        assert ann is not None
        assert {"height", "most"} & {*ann.properties} == {"most"}
        assert ann.properties["most"] == [None, "Infinity"]


def test_parallel_edges_become_one_and_are_counted(
    server: str, neo4j_empty: neo4j.Driver, tmp_path: Path, small_batches: None
) -> None:
    neo4j_empty.execute_query(
        "CREATE (a:P {sku: 'a'}), (b:M {sku: 'b'}), (b)-[:ACTED]->(a), (a)-[:ACTED {role: 'x', source_row: 1}]->(b) "
        "WITH a, b UNWIND range(1, 120) AS i CREATE (a)-[:ACTED {role: toString(i)}]->(b)"
    )
    options = ReadOptions(Columns(id="sku"))
    for place in ("folder", "file.lbug", "file.lbug"):
        done = import_graph(server, tmp_path / place, options=options)
        assert (done.nodes, done.edges, done.merged, done.relations) == (2, 3, 119, {"ACTED": 3})
        with opened(str(tmp_path / place)) as store:
            assert store.count() == (2, 3)
    neo4j_empty.execute_query("CREATE (:M {sku: 'b'})")
    for place in ("other", "other.lbug"):
        with pytest.raises(InvalidInput, match=f"{re.escape(server)}, node 'b'"):
            import_graph(server, tmp_path / place, options=options)


NODES_WRONG = [
    ('{"id": "n7", "deep": {"a": {"b": 1}}}', r"line 8: node 'n7'.*deep"),
    ('{"id": "n7", "deep": [1, "two"]}', r"line 8: node 'n7'.*deep"),
    ('{"id": "n7", "name": "\\ud800"}', r"line 8: node 'n7'"),
    ('{"id": "n7", "labels": ["\\u0000"]}', r"line 8: node 'n7'"),
]
EDGES_WRONG = [('{"source": "n3", "target": "n1", "relation": "R", "deep": [[1]]}', r"line 5: edge 'n3' to 'n1'.*deep")]


def _refused_by_line(tmp_path: Path, where: str, held: tuple[int, int]) -> None:
    """Nothing is written of tables of which one row has what a database cannot hold."""
    nodes, edges = tmp_path / "nodes.jsonl", tmp_path / "edges.jsonl"
    plain = [json.dumps({"id": f"n{i}", "labels": ["ab"[i % 2]], "v": i}) for i in range(10)]
    links = [json.dumps({"source": f"n{i}", "target": "n1", "relation": "SR"[i % 2]}) for i in (0, 0, 1, 2, 3, 4)]
    cases = [(7, row, said, nodes) for row, said in NODES_WRONG] + [(4, row, said, edges) for row, said in EDGES_WRONG]
    for at, row, said, file in cases:
        for path, lines in ((nodes, plain), (edges, links)):
            path.write_text("\n".join([*lines[:at], row, *lines[at + 1 :]] if path is file else lines))
        with pytest.raises(InvalidInput, match=rf"{file.name}, {said}"):
            import_graph([nodes, edges], where)
        with opened(where) as store:
            assert store.count() == held


def test_neo4j_names_the_line_before_anything_is_written(server: str, tmp_path: Path, small_batches: None) -> None:
    _refused_by_line(tmp_path, server, (0, 0))


def test_ladybug_names_the_line_before_anything_is_written(tmp_path: Path, small_batches: None) -> None:
    file = tmp_path / "held.lbug"
    import_graph(KB, file)
    _refused_by_line(tmp_path, str(file), (398, 549))
    typed = tmp_path / "typed.csv"
    typed.write_text("id,label,v\nx,Movie,1\ny,Movie,2\n")
    import_graph(typed, file)
    typed.write_text("id,label,v\nx,Movie,1\nz,Tag,2\ny,Movie,two\n")
    with pytest.raises(InvalidInput, match=r"typed.csv, line 2: node 'x'.*'v'"):  # all of the column is text here
        import_graph(typed, file)
    with opened(str(file)) as store:
        assert store.count() == (400, 549)


def test_what_is_written_whole_names_the_line_too(tmp_path: Path) -> None:
    nodes, edges = tmp_path / "n.jsonl", tmp_path / "e.jsonl"
    nodes.write_text('{"id": "a"}\n\n{"id": "b", "deep": {"c": [1]}}\n')
    edges.write_text('{"source": "a", "target": "b", "relation": "R", "weight": 1e300}\n')
    with pytest.raises(InvalidInput, match=r"n.jsonl, line 3: node 'b'.*deep"):
        import_graph(nodes, tmp_path / "g.lbug")
    with pytest.raises(InvalidInput, match=r"e.jsonl, line 1: edge 'a' to 'b'.*weight"):
        import_graph([nodes, edges], tmp_path / "g")
    MemoryStore.of([Node("a"), Node("b", properties={"deep": {"c": [1]}})]).save(tmp_path / "deep")
    export_graph(open_store(tmp_path / "deep"), tmp_path / "layout", "parquet")
    with pytest.raises(InvalidInput, match=r"nodes.parquet, row 2: node 'b'.*deep"):
        import_graph(tmp_path / "layout", tmp_path / "other.lbug")
    assert {path.name for path in tmp_path.iterdir()} == {"n.jsonl", "e.jsonl", "deep", "layout"}


def test_what_only_a_store_can_tell_names_the_line_and_says_what_stays(tmp_path: Path, small_batches: None) -> None:
    table = tmp_path / "n.csv"
    table.write_text("id\n" + "".join(f"n{i}\n" for i in range(120)))

    class Picky(Counted):
        def upsert(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()) -> None:
            if any(node.id == "n70" for node in nodes):
                raise InvalidInput("node 'n70': two nodes have this id")
            super().upsert(nodes, edges)

    with pytest.raises(InvalidInput, match=r"n.csv, line 72: node 'n70': two .* 50 nodes and 0 edges .* stay"):
        load_tables(read_tables(table), Picky(MemoryStore()))  # type: ignore[arg-type]


KILLED = """
import sys
from graphret.graphs import import_graph, loading
loading.NODE_BATCH, loading.EDGE_BATCH = 20, 20
print("ready", flush=True)
import_graph(sys.argv[1], sys.argv[2], progress=lambda stage, done, total: print(stage, done, flush=True))
"""


def test_an_import_that_is_killed_goes_on_when_it_is_run_again(
    server: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for stage in ("nodes 60", "edges 100"):
        child = subprocess.Popen([sys.executable, "-c", KILLED, str(KB), server], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        with child.stdout as lines:
            assert any(line.strip() == stage for line in lines)
            child.send_signal(signal.SIGKILL)
        child.wait()
        assert len(list(cache.glob("*.json"))) == 1
    monkeypatch.setattr(loading_module, "NODE_BATCH", 20)
    monkeypatch.setattr(loading_module, "EDGE_BATCH", 20)
    deadline = time.monotonic() + 30  # until the server has given up on the killed one's transaction
    with opened(server) as store:
        while store.count()[1] < 100 and time.monotonic() < deadline:
            time.sleep(0.1)
    done = import_graph(KB, server)
    assert (done.nodes, done.edges, done.resumed_nodes) == (398, 549, 398)
    assert 100 <= done.resumed_edges < 549
    with opened(server) as store:
        assert contents(store) == contents(memory_store(read_metaqa(KB)))
    assert not list(cache.glob("*.json"))


# A folder


def test_a_killed_import_into_a_folder_leaves_the_graph_that_was_there(tmp_path: Path) -> None:
    MemoryStore.of(NODES, EDGES).save(tmp_path / "graph")
    program = (
        "import os, sys\n"
        "from graphret import storage\n"
        "from graphret.graphs import import_graph\n"
        "storage.swap = lambda *given: os.kill(os.getpid(), 9)\n"
        "import_graph(sys.argv[1], sys.argv[2])\n"
    )
    child = subprocess.run([sys.executable, "-c", program, str(KB), str(tmp_path / "graph")], check=False)
    assert child.returncode == -signal.SIGKILL
    assert contents(open_store(tmp_path / "graph")) == contents(MemoryStore.of(NODES, EDGES))
    assert import_graph(KB, tmp_path / "graph").nodes == 398
    assert open_store(tmp_path / "graph").count() == (398, 549)
    assert len(list((tmp_path / "graph").glob("gen-*"))) == 1


def test_grouped_tables_are_the_same_graph() -> None:
    tables = read_metaqa(KB)
    grouped = tables.grouped()
    assert (np.diff(grouped.labels) >= 0).all()
    assert (np.diff(grouped.relation) >= 0).all()
    assert {node.id: node for block in grouped.nodes(100) for node in block} == {
        node.id: node for block in tables.nodes(100) for node in block
    }
    assert {edge for block in grouped.edges(100) for edge in block} == {
        edge for block in tables.edges(100) for edge in block
    }
