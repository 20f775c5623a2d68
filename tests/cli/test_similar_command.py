"""``graphret similar``, on a folder, a Ladybug file and a Neo4j."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_helpers import built, graphret, refused
from tests_support import HashingEncoder

from graphret.graphs.locations import opened
from graphret.types import Edge

PLOT = "A lighthouse keeper on a remote island writes letters nobody answers, until"
FILMS = {
    "dawn": f"{PLOT} a boat arrives.",
    "dusk": f"{PLOT} a storm arrives.",
    "heat": "Two thieves plan a last robbery in a city at night, and a detective waits.",
    "noon": "short",
}
NODES = "id,labels,name,plot,year\n" + "".join(
    f'{film},Film,{film.title()},"{plot}",{1990 + number}\n'
    for number, (film, plot) in enumerate(FILMS.items())
)
EDGES = "source,relation,target\ndawn,DIRECTED_BY,ann\n"
PLACES = ("graph", "graph.lbug", pytest.param("neo4j", marks=pytest.mark.neo4j))


@pytest.fixture(autouse=True)
def encoder(monkeypatch: pytest.MonkeyPatch) -> HashingEncoder:
    """The default encoder of these commands, which says what it was given."""
    hashing = HashingEncoder()
    monkeypatch.setattr("graphret.search.encoder.default_encoder", lambda: hashing)
    return hashing


@pytest.fixture
def films(tmp_path: Path) -> list[Path]:
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    nodes.write_text(f"{NODES}ann,Person,Ann Ames,,\n")
    edges.write_text(EDGES)
    return [nodes, edges]


def written(where: str) -> dict[str, list[Edge]]:
    with opened(where) as store:
        edges = [edge for block in store.edges() for edge in block]
    return {
        relation: [edge for edge in edges if edge.relation == relation]
        for relation in sorted({edge.relation for edge in edges})
    }


@pytest.mark.parametrize("place", PLACES)
def test_similar_nodes_are_linked_beside_what_the_graph_has(
    place: str,
    films: list[Path],
    tmp_path: Path,
    encoder: HashingEncoder,
    request: pytest.FixtureRequest,
) -> None:
    where = str(tmp_path / place)
    if place == "neo4j":
        request.getfixturevalue("neo4j_empty")
        where = request.getfixturevalue("neo4j_address")
    assert graphret("import", *films, "--out", where).code == 0
    command = ["similar", "--graph", where, "--min-characters", 50]
    counted = graphret(*command, "--estimate", "--json").json
    assert counted["labels"] == {"Film": 4, "Person": 1}
    assert counted["rich"] == {"Film": 3, "Person": 0}
    assert (counted["nodes"], counted["candidates_at_most"]) == (3, 3)
    assert written(where).keys() == {"DIRECTED_BY"}
    assert not encoder.encoded

    ran = graphret(*command, "--percentile", 60)
    assert ran.code == 0, ran.err
    assert "3  nodes have a text of 50 characters" in ran.out
    assert "3    of 4 Film" in ran.out
    assert len(encoder.encoded) == 3  # neither the short plot nor the person
    assert all("year" not in text for text in encoder.encoded)
    found = written(where)
    assert [(edge.source, edge.target) for edge in found["IS_SIMILAR"]] == [
        ("dawn", "dusk")
    ]
    assert found["IS_SIMILAR"][0].weight > 0.8
    assert len(found["DIRECTED_BY"]) == 1
    again = graphret(*command, "--percentile", 0, "--neighbors", 1, "--json").json
    assert again["edges"] == len(written(where)["IS_SIMILAR"]) == 2


def test_labels_and_properties_choose_what_is_compared(
    films: list[Path], tmp_path: Path, encoder: HashingEncoder
) -> None:
    where = tmp_path / "graph"
    assert graphret("import", *films, "--out", where).code == 0
    chosen = ["similar", "--graph", where, "--min-characters", 1, "--json"]
    counted = graphret(*chosen, "--label", "Person", "--estimate").json
    assert (counted["labels"], counted["nodes"]) == ({"Person": 1}, 1)
    assert graphret(*chosen, "--property", "year", "--label", "Film").code == 0
    assert sorted(encoder.encoded)[0] == "Dawn\nyear: 1990"


def test_what_cannot_be_linked_is_refused_and_nothing_is_written(
    films: list[Path], tmp_path: Path, encoder: HashingEncoder
) -> None:
    where = tmp_path / "graph"
    assert graphret("import", *films, "--out", where).code == 0
    command = ["similar", "--graph", where]
    assert "labels: no node is a 'Flim'; labels are: Film, Person" in refused(
        2, *command, "--label", "Flim"
    )
    assert "--min-characters 5000: no node" in refused(
        2, *command, "--min-characters", 5000
    )
    assert "needs an encoder" in refused(2, *command, "--encoder", "none")
    assert "percentile" in refused(2, *command, "--percentile", 101)
    (tmp_path / "documents").mkdir()
    documents = built(tmp_path / "documents")
    assert "graphret build --percentile" in refused(2, "similar", "--graph", documents)
    for missing in ("none", "none.lbug"):
        refused(3, "similar", "--graph", tmp_path / missing)
        assert not (tmp_path / missing).exists()
    file = tmp_path / "open.lbug"
    assert graphret("import", *films, "--out", file).code == 0
    with opened(str(file), create=True):  # as another process may have it
        assert "open in another store" in refused(6, "similar", "--graph", file)
    assert written(str(where)).keys() == written(str(file)).keys() == {"DIRECTED_BY"}
    assert not encoder.encoded
