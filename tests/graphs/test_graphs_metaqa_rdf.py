"""MetaQA's layout and RDF in N-Triples: labels, names, edges, and every malformed line named."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphret.errors import InvalidInput
from graphret.graphs import GraphTables, read_metaqa, read_ntriples
from graphret.types import Edge, Node

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
XSD = "http://www.w3.org/2001/XMLSchema#"
TRIPLES = f"""\
# people
<http://ex.org/p#ada> <{RDF}> <http://ex.org/t/Author> .
<http://ex.org/p#ada> <{RDF}> <http://ex.org/a/Person> .
<http://ex.org/p#ada> <{RDFS}label> "Ada de Lovelace"@fr .
<http://ex.org/p#ada> <{RDFS}label> "Ada Lovelace"@en .
<http://ex.org/p#ada> <{RDFS}comment> "A mathematician." .
<http://ex.org/p#ada> <http://ex.org/born> "1815"^^<{XSD}integer> .
<http://ex.org/p#ada> <http://ex.org/famous> "true"^^<{XSD}boolean> .
<http://ex.org/p#ada> <http://ex.org/died> "1852-11-27"^^<{XSD}date> .
<http://ex.org/p#ada> <http://ex.org/wrong> "many"^^<{XSD}integer> .
<http://ex.org/p#ada> <http://ex.org/motto> "a \\"quoted\\" \\u00e9\\n line" .
<http://ex.org/p#ada> <http://ex.org/field> "mathematics" .
<http://ex.org/p#ada> <http://ex.org/field> "computing" .
<http://ex.org/p#ada> <http://ex.org/field> "computing" .
<http://ex.org/p#ada> <http://ex.org/field> "informatique"@fr .
<http://ex.org/p#ada> <http://xmlns.com/foaf/0.1/knows> _:b .

_:b <http://xmlns.com/foaf/0.1/name> "Babbage" .
_:b <http://ex.org/knows> <http://ex.org/p#ada> .
_:b <http://ex.org/at> <http://ex.org/place/S%C3%A8te> .
"""
FILMS = "Kismet|directed_by|Ann\nKismet|starred_actors|Ann\nKismet|release_year|1944\n1944|release_year|1943\n"


def write(folder: Path, text: str | bytes, name: str = "graph.nt") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def by_id(tables: GraphTables) -> dict[str, Node]:
    return {node.id: node for block in tables.store().nodes() for node in block}


def edges(tables: GraphTables) -> set[Edge]:
    return {edge for block in tables.store().edges() for edge in block}


# MetaQA


def test_labels_are_the_roles_that_a_name_plays(tmp_path: Path) -> None:
    tables = read_metaqa(write(tmp_path, FILMS, "kb.txt"))
    assert {node.name: node.labels for node in by_id(tables).values()} == {
        "Kismet": ("Movie",),
        "Ann": ("Director", "Actor"),
        "1944": ("Movie", "Year"),
        "1943": ("Year",),
    }
    assert edges(tables) == {Edge(*line.split("|")) for line in FILMS.splitlines()}
    assert by_id(read_metaqa(tmp_path)) == by_id(tables)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a|directed_by", "subject|relation|object is expected"),
        ("a|knows|b", "relations are directed_by"),
        ("a|directed_by|", "is expected"),
        (b"a|directed_by|\xff", "not UTF-8"),
    ],
)
def test_a_malformed_line_of_metaqa_is_named(tmp_path: Path, line: str | bytes, said: str) -> None:
    path = write(tmp_path, FILMS.encode() + b"\n" + (line.encode() if isinstance(line, str) else line), "kb.txt")
    with pytest.raises(InvalidInput) as caught:
        read_metaqa(path)
    assert str(caught.value).startswith(f"{path}, line 6: ")
    assert said in str(caught.value)


# RDF


def test_triples_become_nodes_properties_and_edges(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tables = read_ntriples(write(tmp_path, TRIPLES))
    assert by_id(tables) == {
        "http://ex.org/p#ada": Node(
            "http://ex.org/p#ada",
            ("Person", "Author"),
            "Ada Lovelace",
            "A mathematician.",
            {
                "rdf-schema_label@fr": "Ada de Lovelace",
                "born": 1815,
                "famous": True,
                "died": "1852-11-27",
                "wrong": "many",
                "motto": 'a "quoted" é\n line',
                "field": ["mathematics", "computing"],
                "field@fr": "informatique",
            },
        ),
        "_:b": Node("_:b", ("Resource",), "Babbage"),
        "http://ex.org/place/S%C3%A8te": Node("http://ex.org/place/S%C3%A8te", ("Resource",), "Sète"),
    }
    assert edges(tables) == {
        Edge("http://ex.org/p#ada", "foaf_knows", "_:b"),
        Edge("_:b", "ex.org_knows", "http://ex.org/p#ada"),
        Edge("_:b", "at", "http://ex.org/place/S%C3%A8te"),
    }
    assert tables.remarks == ["1 literals are not of the type that they say, and stay text"]
    assert not caplog.records


@pytest.mark.parametrize(("language", "name"), [("en", "Colour"), ("de", "Farbe"), ("fr", "Hue")])
def test_a_name_is_of_the_language_and_of_the_best_predicate(tmp_path: Path, language: str, name: str) -> None:
    skos, schema = "http://www.w3.org/2004/02/skos/core#prefLabel", "http://schema.org/name"
    said = [(RDFS + "label", "Farbe", "@de"), (RDFS + "label", "Colour", "@en"), (RDFS + "label", "Hue", "")]
    said += [(schema, "third", ""), (skos, "second", "")]
    lines = "".join(f'<http://e/a> <{predicate}> "{text}"{tag} .\n' for predicate, text, tag in said)
    (node,) = by_id(read_ntriples(write(tmp_path, lines), language=language)).values()
    assert node.name == name
    assert {"second", "third"} <= set(map(str, node.properties.values()))


def test_blank_nodes_of_two_files_are_not_one(tmp_path: Path) -> None:
    one = write(tmp_path, '_:b <http://e/p> "1" .\n', "1.nt")
    two = write(tmp_path, '_:b <http://e/p> "2" .\n_:b <http://e/is> <http://e/x> .\n', "2.nt")
    assert by_id(read_ntriples([one, two])).keys() == {"_:b", "_:2.b", "http://e/x"}


@pytest.mark.parametrize(
    "line",
    [
        b'<http://e/a> <http://e/p> "unclosed .',
        b'<http://e/a> <http://e/p> "\xff" .',
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, line: bytes) -> None:
    path = write(tmp_path, TRIPLES.encode() + line + b"\n" + TRIPLES.encode())
    with pytest.raises(InvalidInput) as caught:
        read_ntriples(path)
    assert str(caught.value).startswith(f"{path}, line {len(TRIPLES.splitlines()) + 1}: ")
