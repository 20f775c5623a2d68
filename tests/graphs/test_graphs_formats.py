"""MetaQA's layout, RDF in N-Triples and STaRK's pickles: what is read, and every
malformed line or file named.
"""

from __future__ import annotations

import os
import pickle
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stark_files import INFO, torch_of, write_stark

from graphret.errors import InvalidInput
from graphret.graphs import GraphTables, read_metaqa, read_ntriples
from graphret.graphs.stark import FILES, read_stark
from graphret.testing.graphs import all_edges, all_nodes
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
    return {node.id: node for node in all_nodes(tables.store())}


def edges(tables: GraphTables) -> set[Edge]:
    return set(all_edges(tables.store()))


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
    ("read", "before", "line", "said"),
    [
        (read_metaqa, FILMS, b"a|directed_by", "expected subject|relation|object"),
        (read_metaqa, FILMS, b"a|knows|b", "relations are directed_by"),
        (read_metaqa, FILMS, b"a|directed_by|", "expected subject"),
        (read_metaqa, FILMS, b"a|directed_by|\xff", "not UTF-8"),
        (read_ntriples, TRIPLES, b'<http://e/a> <http://e/p> "unclosed .', ""),
        (read_ntriples, TRIPLES, b'<http://e/a> <http://e/p> "\xff" .', ""),
    ],
)
def test_a_malformed_line_is_named(
    tmp_path: Path, read: Any, before: str, line: bytes, said: str
) -> None:
    path = write(tmp_path, before.encode() + line + b"\n" + before.encode(), "kb.txt")
    with pytest.raises(InvalidInput) as caught:
        read(path)
    assert str(caught.value).startswith(
        f"{path}, line {len(before.splitlines()) + 1}: "
    )
    assert said in str(caught.value)


def test_triples_become_nodes_properties_and_edges(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
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
        "http://ex.org/place/S%C3%A8te": Node(
            "http://ex.org/place/S%C3%A8te", ("Resource",), "Sète"
        ),
    }
    assert edges(tables) == {
        Edge("http://ex.org/p#ada", "foaf_knows", "_:b"),
        Edge("_:b", "ex.org_knows", "http://ex.org/p#ada"),
        Edge("_:b", "at", "http://ex.org/place/S%C3%A8te"),
    }
    assert caplog.messages == ["1 literals do not match their type, and stay text"]


@pytest.mark.parametrize(
    ("language", "name"), [("en", "Colour"), ("de", "Farbe"), ("fr", "Hue")]
)
def test_a_name_is_of_the_language_and_of_the_best_predicate(
    tmp_path: Path, language: str, name: str
) -> None:
    skos, schema = (
        "http://www.w3.org/2004/02/skos/core#prefLabel",
        "http://schema.org/name",
    )
    said = [
        (RDFS + "label", "Farbe", "@de"),
        (RDFS + "label", "Colour", "@en"),
        (RDFS + "label", "Hue", ""),
    ]
    said += [(schema, "third", ""), (skos, "second", "")]
    lines = "".join(
        f'<http://e/a> <{predicate}> "{text}"{tag} .\n' for predicate, text, tag in said
    )
    (node,) = by_id(read_ntriples(write(tmp_path, lines), language=language)).values()
    assert node.name == name
    assert {"second", "third"} <= set(map(str, node.properties.values()))


def test_blank_nodes_of_two_files_are_not_one(tmp_path: Path) -> None:
    one = write(tmp_path, '_:b <http://e/p> "1" .\n', "1.nt")
    two = write(
        tmp_path, '_:b <http://e/p> "2" .\n_:b <http://e/is> <http://e/x> .\n', "2.nt"
    )
    assert by_id(read_ntriples([one, two])).keys() == {"_:b", "_:2.b", "http://e/x"}


of_stark = pytest.mark.xdist_group(
    "torch"
)  # with the others that import it, which takes seconds


@of_stark
def test_nodes_and_edges_are_those_of_the_files(tmp_path: Path) -> None:
    store = read_stark(write_stark(tmp_path)).store()
    (nodes,) = store.nodes()
    about = {
        "source": "NCBI",
        "details": {"aliases": ["DYRK1AP3"]},
        "original_id": "9796",
    }
    assert nodes == [
        Node("0", ("gene/protein",), "PHYHIP", "", about),
        Node(
            "1",
            ("gene/protein",),
            "GPANK1",
            "",
            {"source": "NCBI", "original_id": "7918"},
        ),
        Node(
            "2",
            ("disease",),
            "Refsum disease",
            "A rare disease.",
            {"original_id": "D1"},
        ),
        Node("3", ("brand",), "Acme", "", {"score": 0.5, "seen": [1, 2]}),
    ]
    (edges,) = store.edges()
    assert set(edges) == {
        Edge("0", "ppi", "1"),
        Edge("1", "ppi", "0"),
        Edge("0", "associated with", "2"),
    }


@of_stark
def test_a_missing_or_damaged_file_and_files_that_disagree_are_named(
    tmp_path: Path,
) -> None:
    for name in FILES[:2]:  # a pickle and a tensor
        path = write_stark(tmp_path) / name
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        for _ in range(2):
            with pytest.raises(InvalidInput, match=name):
                read_stark(tmp_path)
            path.unlink(missing_ok=True)
    for changed, said in (
        (
            {"node_types__pt": [0, 0, 1]},
            "node_types.pt has 3 nodes and node_info.pkl 4",
        ),
        ({"edge_types__pt": [0]}, r"1 edges, and edge_index.pt has the shape \(2, 3\)"),
        ({"node_types__pt": [0, 0, 1, 9]}, "node_info.pkl, node 3: type 9"),
        ({"edge_types__pt": [0, 0, 7]}, "edge_index.pt, column 2: type 7"),
        ({"edge_index__pt": [[0, 1, 0], [1, 0, 4]]}, "no node '4'"),
    ):
        with pytest.raises(InvalidInput, match=said):
            read_stark(write_stark(tmp_path, **changed)).store()


class Runs:
    """Unpickled in the ordinary way, calls a function."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.made = function, arguments

    def __reduce__(self) -> Any:
        return self.made


def attacks(canary: Path) -> dict[str, Callable[[Path], object]]:
    """How files are made that run a command where they are read in the ordinary way,
    and how that is.
    """
    text = f"touch '{canary}'".encode()
    return {
        "system": lambda path: path.write_bytes(
            pickle.dumps({0: {"name": Runs(os.system, text.decode())}})
        ),
        "protocol 0": lambda path: path.write_bytes(
            b'cos\nsystem\n(S"' + text + b'"\ntR.'
        ),
        "stack": lambda path: path.write_bytes(
            b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c"
            + bytes([len(text)])
            + text
            + b"\x85R."
        ),
        "build": lambda path: path.write_bytes(
            b"\x80\x02cbuiltins\nset\nN}X\x0c\x00\x00\x00__defaults__K\x01\x85s\x86b."
        ),
        "tensor": (
            lambda path: torch_of().save(
                {"tensor": Runs(os.system, text.decode())}, path
            )
        ),
    }


@of_stark
@pytest.mark.parametrize("kind", attacks(Path("x")))
def test_a_file_that_wants_to_run_something_runs_nothing(
    tmp_path: Path, kind: str
) -> None:
    canary, name = (
        tmp_path / "canary",
        "edge_index.pt" if kind == "tensor" else "node_info.pkl",
    )
    path = write_stark(tmp_path / "kb") / name
    attacks(canary)[kind](path)
    with pytest.raises(
        InvalidInput, match=rf"{name}: .*(nothing of it was run|expected a dict)"
    ):
        read_stark(path.parent)
    assert not canary.exists()
    if kind != "build":
        (
            torch_of().load(path, weights_only=False)
            if kind == "tensor"
            else pickle.loads(path.read_bytes())
        )
        assert canary.exists(), "the attack is real"


@of_stark
def test_plain_data_is_read(tmp_path: Path) -> None:
    info = {
        "frozen": frozenset({"x"}),
        "ordered": OrderedDict(b=1, a=2),
        "default": defaultdict(list, a=[1]),
    }
    info |= {
        "tuple": (1, (2.5, None, True)),
        "int": np.int64(-3),
        "bool": np.bool_(True),
        "big": 10**30,
    }
    folder = write_stark(tmp_path)
    (folder / "node_info.pkl").write_bytes(pickle.dumps({**INFO, 0: info}))
    (found,) = read_stark(folder).store().get(["0"])
    assert found is not None
    expected = {
        "frozen": ["x"],
        "ordered": {"b": 1, "a": 2},
        "default": {"a": [1]},
        "big": 10**30,
    }
    assert found.properties == expected | {
        "tuple": [1, [2.5, None, True]],
        "int": -3,
        "bool": True,
    }
