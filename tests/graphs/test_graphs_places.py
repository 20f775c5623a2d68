"""What a database refuses of a graph is named with the place where it was read, whatever the format."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import ladybug
import pytest

from graphret.errors import InvalidInput, StoreMismatch
from graphret.graphs import (
    Columns,
    export_graph,
    import_graph,
    load_tables,
    read_metaqa,
    read_ntriples,
    read_stark,
    read_tables,
)
from graphret.graphs.places import part_of, places_of
from graphret.graphs.tables import GraphTables
from graphret.stores import MemoryStore
from graphret.stores.ladybug import LadybugStore
from graphret.stores.neo4j import preparing
from graphret.stores.neo4j.layout import OWN
from graphret.types import Edge, Node

LADYBUG, NEO4J = ("empty", "held"), ("neo4j",)
BOTH = LADYBUG + NEO4J


class AsNeo4j:
    """Refuses what a Neo4j that graphret writes to does: its check needs no server."""

    def check(self, nodes: Iterable[Node], edges: Iterable[Edge]) -> None:
        preparing.check(OWN, nodes, edges, "refuse")


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """An empty Ladybug database, one that holds a graph, and what a Neo4j refuses; nothing is written to them here."""
    folder = tmp_path_factory.mktemp("stores")
    with LadybugStore(folder / "empty.lbug") as empty, LadybugStore(folder / "held.lbug") as held:
        held.upsert([Node("held", ("Held",))])
        yield {"empty": empty, "held": held, "neo4j": AsNeo4j()}
        assert (empty.count(), held.count()) == ((0, 0), (1, 0))


def refused(tables: GraphTables, stores: dict[str, Any], where: str, names: Iterable[str] = BOTH) -> None:
    for name in names:
        with pytest.raises(InvalidInput) as caught:
            load_tables(tables, stores[name])
        assert str(caught.value).startswith(f"{where}: "), (name, str(caught.value))


# N-Triples

A, B = "<http://ex.org/a>", "<http://ex.org/b>"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"


@pytest.mark.parametrize(
    ("lines", "at", "names"),
    [
        ([f'{B} <http://ex.org/n> "{2**70}"^^{INTEGER} .'], "line 4", BOTH),
        ([f'{B} <http://ex.org/n> "1" .', f'{B} <http://ex.org/N> "1" .'], "line 5", LADYBUG),
        ([f'{A} <http://ex.org/n> "1" .', f'{B} <http://ex.org/n> "1"^^{INTEGER} .'], "line 5", LADYBUG),
        ([f'{B} <http://ex.org/n> "{n}"^^{INTEGER} .' for n in (1, 2**70)], "lines 4, 5", BOTH),
        ([f'{B} <http://ex.org/m> "n" .', f'{B} <http://ex.org/m%00> "x"@de .'], "line 5", BOTH),
        ([f'{B} <http://ex.org/{"n" * 20_000}> "x" .'], "line 4", NEO4J),
        ([f"{B} {TYPE} <http://ex.org/T> .", f"{B} {TYPE} <http://ex.org/%00T> ."], "line 5", BOTH),
        ([f"{B} {TYPE} <http://ex.org/__Graphret__> ."], "line 4", NEO4J),
        ([f"{B} <http://ex.org/m> {A} .", f"{B} <http://ex.org/m%00> {A} ."], "line 5", BOTH),
    ],
    ids=["64 bits", "case", "type", "list", "null", "long", "label", "own label", "relation"],
)
def test_ntriples(tmp_path: Path, stores: dict[str, Any], lines: list[str], at: str, names: tuple[str, ...]) -> None:
    path = tmp_path / "graph.nt"
    path.write_text("\n".join(["# two", f"{A} <http://ex.org/knows> {B} .", "", *lines]) + "\n")
    refused(read_ntriples(path), stores, f"{path}, {at}", names)


def test_a_part_of_a_node_is_found_in_all_files(tmp_path: Path, stores: dict[str, Any]) -> None:
    one, other = tmp_path / "one.nt", tmp_path / "other.nt"
    one.write_text(f'_:b <http://ex.org/n> "1"^^{INTEGER} .\n{A} <http://ex.org/n> "1"^^{INTEGER} .\n')
    other.write_text(f'_:b <http://ex.org/n> "{2**70}"^^{INTEGER} .\n{A} <http://ex.org/n> "{2**70}"^^{INTEGER} .\n')
    refused(read_ntriples([one, other]), stores, f"{one}, line 2; {other}, line 2")
    other.write_text(f'{A} <http://ex.org/o> "x" .\n_:b <http://ex.org/n> "{2**70}"^^{INTEGER} .\n')
    refused(read_ntriples([one, other]), stores, f"{other}, line 2")


@pytest.mark.parametrize("line", [f'{A} <http://ex.org/n> "\\uD800" .', '<http://ex.org/\\uDFFF> <b:> "x" .'])
def test_half_a_surrogate_pair_is_refused_by_the_reader(tmp_path: Path, line: str) -> None:
    path = tmp_path / "graph.nt"
    path.write_text(f'{A} <http://ex.org/n> "\\U0001F600 \\\\uD800" .\n{line}\n')
    with pytest.raises(InvalidInput, match=r"graph.nt, line 2: a \\ escape that stands for nothing"):
        read_ntriples(path)


# STaRK


def write_stark(folder: Path, info: Any = None, label: str = "y", relation: str = "s") -> Path:
    import torch

    folder.mkdir()
    for name, plain in (
        ("node_info", {i: {"name": f"n{i}"} for i in range(3)} | (info or {})),
        ("node_type_dict", {0: "x", 4: label}),
        ("edge_type_dict", {0: "r", 9: relation}),
    ):
        (folder / f"{name}.pkl").write_bytes(pickle.dumps(plain))
    torch.save(torch.tensor([0, 0, 4]), folder / "node_types.pt")
    torch.save(torch.tensor([[0, 0, 1, 2], [1, 1, 2, 0]]), folder / "edge_index.pt")  # the first is a later one's
    torch.save(torch.tensor([0, 0, 9, 0]), folder / "edge_types.pt")
    return folder


@pytest.mark.xdist_group("torch")  # with the others that import it, which takes seconds
@pytest.mark.parametrize(
    ("changed", "at"),
    [
        ({"info": {1: {"v": 2**63}}}, "node_info.pkl, node 1"),
        ({"info": {2: {"v": {"a": [1]}}}}, "node_info.pkl, node 2"),
        ({"info": {2: {"v": [1, "two"]}}}, "node_info.pkl, node 2"),
        ({"info": {2: {"name": "\ud800"}}}, "node_info.pkl, node 2"),
        ({"info": {2: {"v\0": 1}}}, "node_info.pkl, node 2"),
        ({"label": "y\0"}, "node_types.pt, item 2"),
        ({"relation": "s\0"}, "edge_types.pt, item 2"),
    ],
    ids=["64 bits", "map", "list", "text", "property", "label", "relation"],
)
def test_stark(tmp_path: Path, stores: dict[str, Any], changed: dict[str, Any], at: str) -> None:
    folder = write_stark(tmp_path / "kb", **changed)
    refused(read_stark(folder), stores, f"{folder}/{at}")


# MetaQA: names are all that is in it, and every database takes every name; what is refused is a table of others

KB = "Z|directed_by|K\n\nK|written_by|Z\nK|written_by|Z\n\nB|has_tags|x\nB|directed_by|x\n"


@pytest.mark.parametrize("held", [False, True], ids=["whole", "in batches"])
@pytest.mark.parametrize(
    ("tables", "at"),
    [
        (["NODE TABLE Tag (t STRING PRIMARY KEY)"], "line 6: node 'x': the table 'Tag'"),
        (["NODE TABLE T (t STRING PRIMARY KEY)", "REL TABLE written_by (FROM T TO T)"], "line 4: edge 'K' to 'Z'"),
        (["NODE TABLE T (t STRING PRIMARY KEY)", "REL TABLE has_tags (FROM T TO T)"], "line 6: edge 'B' to 'x'"),
    ],
    ids=["node", "edge that comes twice", "edge"],
)
def test_metaqa(tmp_path: Path, tables: list[str], at: str, held: bool) -> None:
    path = tmp_path / "kb.txt"
    path.write_text(KB.replace("B|directed_by|x\n", "") if "Tag" in tables[0] else KB)
    with ladybug.Database(str(tmp_path / "g.lbug")) as database, ladybug.Connection(database) as connection:
        for table in tables:
            connection.execute(f"CREATE {table}")
    with LadybugStore(tmp_path / "g.lbug") as store:
        if held:
            store.upsert([Node("held", ("Held",))])
        with pytest.raises(StoreMismatch, match=rf"kb.txt, {at}"):
            load_tables(read_metaqa(path), store)
        assert store.count() == (int(held), 0)


def test_every_triple_and_every_name_of_metaqa_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "kb.txt"
    path.write_text(KB)
    tables = read_metaqa(path)
    for some in (tables, tables.grouped()):
        (nodes,), (edges,) = some.nodes(100), some.edges(100)
        assert some.node_places is not None
        assert some.edge_places is not None
        places = {node.id: some.node_places.at(i) for i, node in enumerate(nodes)}
        assert places == {name: f"{path}, line {n}" for name, n in {"Z": 1, "K": 1, "B": 6, "x": 6}.items()}
        found = {(edge.source, edge.relation): some.edge_places.at(i) for i, edge in enumerate(edges)}
        assert [place.rpartition(" ")[2] for _, place in sorted(found.items())] == ["7", "6", "4", "1"]


# Tables, and a graph that is there already


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_tables(tmp_path: Path, stores: dict[str, Any], suffix: str) -> None:
    path = tmp_path / f"n.{suffix}"
    if suffix == "csv":
        path.write_text("id,v,deep\na,1,\nb,2,{}\n")
    elif suffix == "jsonl":
        path.write_text('{"id": "a"}\n\n{"id": "b", "deep": {}}\n')
    else:
        MemoryStore.of([Node("a"), Node("b", properties={"deep": {}})]).save(tmp_path / "g")
        export_graph(MemoryStore.load(tmp_path / "g"), tmp_path / "layout", "parquet")
        path = tmp_path / "layout" / "nodes.parquet"
    tables = read_tables(path, Columns(types={"deep": "json"} if suffix == "csv" else {}))
    refused(tables, stores, f"{path}, " + {"csv": "line 3", "jsonl": "line 3", "parquet": "row 2"}[suffix])


def test_a_graph_that_is_copied_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHRET_CACHE", str(tmp_path / "cache"))
    MemoryStore.of([Node("a"), Node("b", properties={"deep": {}})]).save(tmp_path / "g")
    with LadybugStore(tmp_path / "held.lbug") as held:
        held.upsert([Node("held")])
    for name in ("fresh.lbug", "held.lbug"):
        with pytest.raises(InvalidInput) as caught:
            import_graph(tmp_path / "g", tmp_path / name)
        assert str(caught.value).startswith(f"{tmp_path / 'g'}, node 'b', property 'deep'")


# Words


def test_the_part_that_is_spoken_of() -> None:
    names = ["n", "N", "name", "k" * 50, "k" * 60]
    for said, kind, expected in (
        (": property 'n' is nested", "property", "n"),
        (", property 'N': there is a property 'n', from which only the case differs", "property", "N"),
        (": the property 'name': nan is not a finite number", "property", "name"),
        (", properties ['N', 'n']: cannot be kept as JSON", "property", "N"),
        (f": the name of a property: {'k' * 40!r}… has 60 characters", "property", "k" * 60),
        (": a label: 'n' holds a null character", "label", "n"),
        (": a label: 'n' holds a null character", "property", None),
        (": the label 'n' is for the store's own use", "label", "n"),
        (", relation: 'n' cannot be a name", "relation", "n"),
        (": property 'other' is nested", "property", None),
        (": a text holds half of a surrogate pair", "property", None),
        ("", "property", None),
    ):
        assert part_of(said, kind, names) == expected, said


def test_several_lines_in_words() -> None:
    assert places_of([("a", 3)]) == "a, line 3"
    assert places_of([("a", 3), ("a", 5), ("b", 1)]) == "a, lines 3, 5; b, line 1"
    assert places_of([("a", n) for n in range(9)]) == "a, lines 0, 1, 2, 3, 4, …"
