"""RDF in N-Triples: types, names, properties, edges, short names, and every malformed line named."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from graphret.errors import InvalidInput, MissingDependency
from graphret.graphs.iris import local_name, short_names
from graphret.graphs.rdf import read_ntriples
from graphret.types import Edge, Node

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
XSD = "http://www.w3.org/2001/XMLSchema#"
LINES = f"""\
# people
<http://ex.org/p#ada> <{RDF}> <http://ex.org/t/Author> .
<http://ex.org/p#ada> <{RDF}> <http://ex.org/a/Person> .
<http://ex.org/p#ada> <{RDFS}label> "Ada de Lovelace"@fr .
<http://ex.org/p#ada> <{RDFS}label> "Ada Lovelace"@en .
<http://ex.org/p#ada> <{RDFS}comment> "A mathematician." .
<http://ex.org/p#ada> <http://ex.org/born> "1815"^^<{XSD}integer> .
<http://ex.org/p#ada> <http://ex.org/height> "1.65"^^<{XSD}double> .
<http://ex.org/p#ada> <http://ex.org/famous> "true"^^<{XSD}boolean> .
<http://ex.org/p#ada> <http://ex.org/died> "1852-11-27"^^<{XSD}date> .
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


def write(folder: Path, text: str | bytes, name: str = "graph.nt") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_triples_become_nodes_properties_and_edges(tmp_path: Path) -> None:
    tables = read_ntriples(write(tmp_path, LINES))
    (nodes,) = tables.nodes(100)
    assert nodes == [
        Node(
            "http://ex.org/p#ada",
            ("Person", "Author"),
            "Ada Lovelace",
            "A mathematician.",
            {
                "rdf-schema_label@fr": "Ada de Lovelace",
                "born": 1815,
                "height": 1.65,
                "famous": True,
                "died": "1852-11-27",
                "motto": 'a "quoted" é\n line',
                "field": ["mathematics", "computing"],
                "field@fr": "informatique",
            },
        ),
        Node("_:b", ("Resource",), "Babbage"),
        Node("http://ex.org/place/S%C3%A8te", ("Resource",), "Sète"),
    ]
    (edges,) = tables.edges(100)
    assert edges == [
        Edge("http://ex.org/p#ada", "foaf_knows", "_:b"),
        Edge("_:b", "ex.org_knows", "http://ex.org/p#ada"),
        Edge("_:b", "at", "http://ex.org/place/S%C3%A8te"),
    ]


def test_a_literal_that_is_not_of_its_type_stays_text(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    typed = [("n", "integer", "x"), ("n", "integer", "1_000"), ("n", "integer", " 07 "), ("f", "double", "1,5")]
    typed += [("f", "double", "-.5e2"), ("b", "boolean", "yes"), ("d", "date", "1815-06-31"), ("h", "hexBinary", "0g")]
    typed += [("t", "dateTime", "2020-01-01T00:00:00.000Z"), ("i", "float", "INF")]
    lines = [f'<http://e/a> <http://e/{p}{i}> "{text}"^^<{XSD}{kind}> .' for i, (p, kind, text) in enumerate(typed)]
    path = write(tmp_path, "\n".join(lines))
    tables = read_ntriples(path)
    (nodes,) = tables.nodes(10)
    assert list(nodes[0].properties.values()) == [
        *("x", "1_000", 7, "1,5", -50.0, "yes", "1815-06-31", "0g", "2020-01-01T00:00:00.000Z", "INF")
    ]
    assert tables.remarks == (f"{path}, line 1: 'x' is no integer, and stays text; so do 3 more literals",)
    assert not caplog.records


def test_names_follow_the_language_that_is_asked_for(tmp_path: Path) -> None:
    (nodes,) = read_ntriples(write(tmp_path, LINES), language="fr").nodes(100)
    assert nodes[0].name == "Ada de Lovelace"
    assert nodes[0].properties["field"] == ["mathematics", "computing", "informatique"]
    assert nodes[0].properties["rdf-schema_label@en"] == "Ada Lovelace"


@pytest.mark.parametrize(
    ("language", "name"),
    [("en", "Colour"), ("EN-us", "Color"), ("en-AU", "Colour"), ("de", "Farbe"), ("fr", "Hue"), ("e", "Hue")],
)
def test_a_region_of_the_language_comes_before_other_languages(tmp_path: Path, language: str, name: str) -> None:
    said = [("Farbe", "@de"), ("Colour", "@en-GB"), ("Color", "@en-US"), ("Hue", "")]
    lines = "".join(f'<http://e/a> <{RDFS}label> "{text}"{tag} .\n' for text, tag in said)
    (nodes,) = read_ntriples(write(tmp_path, lines), language=language).nodes(10)
    assert nodes[0].name == name


@pytest.mark.parametrize("escape", ["\\q", "\\u12", "\\U0000", "\\\\\\ "])
def test_an_escape_that_stands_for_nothing_is_refused(tmp_path: Path, escape: str) -> None:
    path = write(tmp_path, f'<http://e/a> <http://e/p> "fine \\\\q" .\n<http://e/a> <http://e/p> "x{escape}y" .\n')
    with pytest.raises(InvalidInput, match=r"graph.nt, line 2: a \\ escape that stands for nothing"):
        read_ntriples(path)


def test_the_best_predicate_names_a_node(tmp_path: Path) -> None:
    skos, schema = "http://www.w3.org/2004/02/skos/core#prefLabel", "http://schema.org/name"
    lines = f'<http://e/a> <{schema}> "third" .\n<http://e/a> <{skos}> "second" .\n<http://e/a> <{RDFS}label> " " .\n'
    (nodes,) = read_ntriples(write(tmp_path, lines)).nodes(10)
    assert nodes[0].name == "second"
    assert "third" in nodes[0].properties.values()


def test_blank_nodes_of_two_files_are_not_one(tmp_path: Path) -> None:
    one = write(tmp_path, '_:b <http://e/p> "1" .\n', "1.nt")
    two = write(tmp_path, '_:b <http://e/p> "2" .\n_:b <http://e/is> <http://e/x> .\n', "2.nt")
    assert list(read_ntriples([one, two]).ids) == ["_:b", "_:2.b", "http://e/x"]


def test_values_of_several_kinds_become_text(tmp_path: Path) -> None:
    lines = f'<http://e/a> <http://e/p> "1"^^<{XSD}int> .\n<http://e/a> <http://e/p> "many" .\n'
    lines += f'<http://e/a> <http://e/q> "1"^^<{XSD}int> .\n<http://e/a> <http://e/q> "1.5"^^<{XSD}decimal> .\n'
    lines += f'<http://e/a> <http://e/r> "INF"^^<{XSD}double> .\n<http://e/a> <http://e/s> "x"^^<{XSD}int> .\n'
    (nodes,) = read_ntriples(write(tmp_path, lines)).nodes(10)
    properties = dict(nodes[0].properties)
    assert str(properties.pop("r")).upper().startswith("INF")
    assert properties == {"p": ["1", "many"], "q": [1, 1.5], "s": "x"}


@pytest.mark.parametrize(
    "line",
    [
        b"<http://e/a> <http://e/p> .",
        b"<http://e/a> <http://e/p> <http://e/b>",
        b'"a" <http://e/p> <http://e/b> .',
        b"<http://e/a> _:p <http://e/b> .",
        b"<relative> <http://e/p> <http://e/b> .",
        b"<relative> <http://e/p> <http://e/b> <http://e/c> .",
        b'<http://e/a> <http://e/p> "unclosed .',
        b"<http://e/a> <http://e/p> <http://e/b> . trailing",
        b"nonsense",
        b'<http://e/a> <http://e/p> "\xff" .',
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, line: bytes, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path, LINES.encode() + line + b"\n" + LINES.encode())
    with pytest.raises(InvalidInput) as caught:
        read_ntriples(path)
    assert str(caught.value).startswith(f"{path}, line {len(LINES.splitlines()) + 1}: ")
    assert not caplog.records


def test_a_file_with_no_triples_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no triples"):
        read_ntriples(write(tmp_path, "# nothing\n"))


def test_without_rdflib_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rdflib", None)
    with pytest.raises(MissingDependency, match=r"rdflib.*graphret\[import\]"):
        read_ntriples(write(tmp_path, LINES))


def test_short_names_are_unique_and_do_not_depend_on_order() -> None:
    iris = [
        "http://ex.org/name",
        "http://xmlns.com/foaf/0.1/name",
        "http://www.w3.org/2004/02/skos/core#name",
        "http://other.org/foaf/name",
        "http://ex.org/foaf_name",
        "http://ex.org/plain",
        "urn:isbn:1",
        "http://ex.org/",
    ]
    names = short_names(iris)
    assert len(set(names.values())) == len(iris)
    assert (names["http://ex.org/plain"], names["http://ex.org/foaf_name"]) == ("plain", "foaf_name")
    for seed in range(5):
        shuffled = random.Random(seed).sample(iris, len(iris))
        assert short_names(shuffled) == names
    assert short_names(["http://e/a#name"], ["name"]) == {"http://e/a#name": "a_name"}
    assert [local_name(iri) for iri in ("http://e/a#b", "http://e/a/", "urn:x", "::")] == ["b", "a", "x", "::"]
