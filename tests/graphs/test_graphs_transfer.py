"""Graphs go from every source into every store, whole into a folder and in batches into a database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from graphret.errors import InvalidInput
from graphret.graphs import Columns, ReadOptions, import_graph, read_metaqa
from graphret.graphs.example import KB
from graphret.stores import MemoryStore, open_store
from graphret.types import Edge, Node

if TYPE_CHECKING:
    import neo4j


def contents(store: Any) -> tuple[list[Node], list[Edge]]:
    return [n for block in store.nodes() for n in block], sorted((e for block in store.edges() for e in block), key=str)


@pytest.fixture
def server(
    neo4j_empty: neo4j.Driver, neo4j_uri: str, neo4j_auth: tuple[str, str] | None, monkeypatch: pytest.MonkeyPatch
) -> str:
    """The address of an empty Neo4j."""
    for name, value in zip(("NEO4J_USERNAME", "NEO4J_PASSWORD"), neo4j_auth or (None, None), strict=True):
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
    return neo4j_uri


@pytest.mark.parametrize("name", ["folder", "filled.lbug"])  # and Neo4j with the commands
def test_a_graph_goes_everywhere_and_comes_back_and_again(name: str, tmp_path: Path) -> None:
    whole, target = read_metaqa(KB).store(), tmp_path / name
    if name == "filled.lbug":
        MemoryStore.of([Node("c")]).save(tmp_path / "other")
        import_graph(tmp_path / "other", target)
    for _ in range(2):
        done = import_graph(KB, target)
        assert (done.format, done.nodes, done.edges, done.merged) == ("metaqa", 398, 549, 0)
        assert (done.labels["Movie"], done.relations["directed_by"]) == (44, 63)
    back = import_graph(target, tmp_path / "back", format="store")
    assert back.edges == 549
    found = open_store(tmp_path / "back")
    found.delete(["c"])
    assert contents(found) == contents(whole)


def test_what_a_database_refuses_is_named_and_maps_come_back(server: str, tmp_path: Path) -> None:
    nodes, back = tmp_path / "n.jsonl", tmp_path / "back"
    for where in (server, str(tmp_path / "g.lbug")):
        nodes.write_text('{"id": "a"}\n{"id": "b", "label": "nul\\u0000l"}\n')
        with pytest.raises(InvalidInput, match=r"n.jsonl: node 'b'"):
            import_graph(nodes, where)
        nodes.write_text('{"id": "a"}\n{"id": "b", "deep": {"c": [1]}}\n')
        import_graph(nodes, where)
        assert import_graph(where, back).nodes == 2
        assert contents(open_store(back))[0][1].properties == {"deep": {"c": [1]}}


def test_a_graph_of_others_is_copied_by_its_own_properties(
    server: str, neo4j_empty: neo4j.Driver, tmp_path: Path
) -> None:
    neo4j_empty.execute_query(
        "CREATE (f:Film {key: 'f1', title: 'Dawn', plot: 'A film.', year: 1999})<-[:MADE {role: 'all'}]-"
        "(p:Person:Author {key: 'p1', title: 'Ann'}) CREATE (p)-[:MADE {role: 'some'}]->(f)"
    )
    options = ReadOptions(Columns(id="key", name="title", text="plot"))
    done = import_graph(server, tmp_path / "films", options=options)
    assert (done.edges, done.merged) == (1, 1)
    nodes, edges = contents(open_store(tmp_path / "films"))
    assert [(n.id, set(n.labels), n.name, n.text, n.properties.get("year")) for n in nodes] == [
        ("f1", {"Film"}, "Dawn", "A film.", 1999),
        ("p1", {"Person", "Author"}, "Ann", "", None),
    ]
    assert [(e.source, e.relation, e.target) for e in edges] == [("p1", "MADE", "f1")]
