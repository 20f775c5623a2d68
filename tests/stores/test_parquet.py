"""A graph written as Parquet comes back as it was; what is malformed is named by file, column and row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet as pq

from graphret.errors import InvalidInput, StorageError
from graphret.stores import MemoryStore
from graphret.stores import parquet as reading
from graphret.stores import parquet_writing as writing
from graphret.stores.parquet import read_parquet, write_parquet
from graphret.testing.graphs import EDGES, HOSTILE, NODES, random_graph
from graphret.types import Edge, Node


def everything(store: Any) -> tuple[list[Node], list[Edge]]:
    nodes = [node for block in store.nodes() for node in block]
    edges = [edge for block in store.edges() for edge in block]
    return nodes, edges


class ByObjects:
    """A store of another kind: it gives nodes and edges, and no columns."""

    def __init__(self, store: MemoryStore) -> None:
        self.nodes, self.edges = store.nodes, store.edges


def assert_round_trip(folder: Path, store: MemoryStore) -> None:
    write_parquet(store, folder / "columns")
    write_parquet(ByObjects(store), folder / "objects")  # type: ignore[arg-type]
    for way in ("columns", "objects"):
        again = read_parquet(folder / way)
        assert everything(again) == everything(store)
        assert again.schema() == store.schema()
    for name in ("nodes.parquet", "edges.parquet"):
        one, other = (pq.read_table(folder / way / name) for way in ("columns", "objects"))
        assert one.equals(other)
    assert sorted(path.name for path in (folder / "columns").iterdir()) == ["edges.parquet", "nodes.parquet"]


def test_a_graph_comes_back_as_it_was(tmp_path: Path) -> None:
    assert_round_trip(tmp_path / "small", MemoryStore.of(NODES, EDGES))
    assert_round_trip(tmp_path / "random", MemoryStore.of(*random_graph(5)))
    assert_round_trip(tmp_path / "empty", MemoryStore())
    assert_round_trip(tmp_path / "bare", MemoryStore.from_arrays(["b", "a"], source=[0], target=[0]))
    odd = [
        Node("a", (), "", "x"),
        Node("b", ("B", "A", "B")),
        Node("c", ("",)),
        Node("d", ("D",), properties={"n": None}),
    ]
    rows = [
        Edge("a", "R", "b", 0.5, {"source_row": 3, "k": [1, {"x": "ü"}]}),
        Edge("a", "R", "b", 0.1, {"target_row": 0}),
    ]
    assert_round_trip(tmp_path / "odd", MemoryStore.of(odd, rows))


def test_hostile_names_come_back(tmp_path: Path) -> None:
    nodes = [Node(f"{i}{name}", (name,), name, name, {name: name}) for i, name in enumerate(HOSTILE)]
    edges = [Edge(a.id, HOSTILE[i], a.id, 1.0, {HOSTILE[i]: [HOSTILE[i]]}) for i, a in enumerate(nodes)]
    assert_round_trip(tmp_path, MemoryStore.of(nodes, edges))


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.tuples(st.text(), st.text(), st.dictionaries(st.text(), st.floats(allow_nan=False, allow_infinity=False)))
    )
)
def test_any_text_comes_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, dict[str, float]]]
) -> None:
    nodes = [Node(f"n{i}", (name,), name, text, own) for i, (name, text, own) in enumerate(rows)]
    store = MemoryStore.of(nodes)
    folder = tmp_path_factory.mktemp("text")
    write_parquet(store, folder)
    assert everything(read_parquet(folder)) == everything(store)


def test_many_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (reading, writing):
        monkeypatch.setattr(module, "NODE_ROWS", 7)
        monkeypatch.setattr(module, "EDGE_ROWS", 11)
    assert_round_trip(tmp_path, MemoryStore.of(*random_graph(2)))


def published(folder: Path, nodes: dict[str, Any] | None = None, edges: dict[str, Any] | None = None) -> Path:
    """Files with the layout's own columns alone, `nodes` and `edges` in place of some of them."""
    folder.mkdir(exist_ok=True)
    plain = {
        "nodes": {
            "id": [7, 8, 9],
            "name": ["aspirin", "COX-1", None],
            "type": ["drug", "gene", None],
            "properties": ['{"mass": 180.2}', None, "{}"],
        }
        | (nodes or {}),
        "edges": {
            "from": [8, 7],
            "to": [9, 8],
            "type": ["interacts", "inhibits"],
            "properties": ['{"score": 1}', None],
        }
        | (edges or {}),
    }
    for name, columns in plain.items():
        pq.write_table(pa.table({k: v for k, v in columns.items() if v is not None}), folder / f"{name}.parquet")
    return folder


def test_the_published_layout_with_whole_numbers_as_ids(tmp_path: Path) -> None:
    assert everything(read_parquet(published(tmp_path))) == (
        [Node("7", ("drug",), "aspirin", "", {"mass": 180.2}), Node("8", ("gene",), "COX-1"), Node("9", ())],
        [Edge("7", "inhibits", "8"), Edge("8", "interacts", "9", 1.0, {"score": 1})],
    )


def test_columns_of_other_types_that_mean_the_same(tmp_path: Path) -> None:
    struct = pa.array([{"mass": 180.2, "deep": {"a": 1, "b": None}}, None, {"mass": None, "deep": None}])
    nodes = {
        "type": pa.array(["drug", "gene", "gene"]).dictionary_encode(),
        "properties": struct,
        "name": None,
        "extra": [1, 2, 3],
    }
    edges = {"from": pa.array([8, 7], pa.uint16()), "properties": pa.nulls(2), "weight": [2, None]}
    found = everything(read_parquet(published(tmp_path, nodes, edges)))
    assert found == (
        [
            Node("7", ("drug",), properties={"mass": 180.2, "deep": {"a": 1}}),
            Node("8", ("gene",)),
            Node("9", ("gene",)),
        ],
        [Edge("7", "inhibits", "8"), Edge("8", "interacts", "9", 2.0)],
    )


@pytest.mark.parametrize(
    ("nodes", "edges", "named"),
    [
        ({"id": [7, None, 9]}, {}, r"nodes\.parquet, row 2: 'id' is null"),
        ({"id": [7, 8, 7]}, {}, r"nodes\.parquet, row 3: the id '7' comes twice, first in row 1"),
        ({"id": ["7", "", "9"]}, {}, r"nodes\.parquet, row 2: the id is empty"),
        ({"id": [7.0, 8.0, 9.0]}, {}, r"nodes\.parquet: the column 'id'"),
        ({"id": None}, {}, r"nodes\.parquet: there is no column 'id'"),
        ({"type": None}, {}, r"nodes\.parquet: there is no column 'type'"),
        ({"properties": ["{}", "{", "{}"]}, {}, r"nodes\.parquet, row 2: the properties are not JSON"),
        ({"properties": ["{}", "{}", '{"a": NaN}']}, {}, r"nodes\.parquet, row 3: the properties are not JSON"),
        (
            {"properties": ["{}", '{"a": 1, "a": 2}', "{}"]},
            {},
            r"nodes\.parquet, row 2: .* 'a' comes twice in one object",
        ),
        ({"properties": ["[]", "{}", "{}"]}, {}, r"nodes\.parquet, row 1: .* object, not list"),
        ({"properties": ['{"a":[1', "2]}", "{},{}"]}, {}, r"nodes\.parquet, row 1: the properties are not JSON"),
        ({"properties": [1.5, 2.5, 3.5]}, {}, r"nodes\.parquet: the column 'properties'"),
        ({"labels": [["a"], [None], ["b"]]}, {}, r"nodes\.parquet, row 2: 'labels'"),
        ({"labels": ["a", "b", "c"]}, {}, r"nodes\.parquet: the column 'labels'"),
        ({"name": [[1], [2], [3]]}, {}, r"nodes\.parquet: the column 'name'"),
        ({"text": pa.array([b"\xff", b"a", b"b"]).view(pa.string())}, {}, r"nodes\.parquet: .*UTF"),
        ({}, {"to": [9, 77]}, r"edges\.parquet, row 2: 'to': there is no node '77'"),
        ({}, {"from": [None, 8]}, r"edges\.parquet, row 1: 'from' is null"),
        ({}, {"from": None}, r"edges\.parquet: there is no column 'from'"),
        ({}, {"type": ["R", None]}, r"edges\.parquet, row 2: 'type' is null"),
        ({}, {"type": ["R", ""]}, r"edges\.parquet, row 2: the type is empty"),
        ({}, {"weight": [1.0, float("inf")]}, r"edges\.parquet, row 2: the weight"),
        ({}, {"weight": ["1", "2"]}, r"edges\.parquet: the column 'weight'"),
        ({}, {"properties": ["{}", '{"source_row": -4}']}, r"edges\.parquet, row 2: source_row"),
    ],
)
def test_what_is_malformed_is_named_by_row(
    tmp_path: Path, nodes: dict[str, Any], edges: dict[str, Any], named: str
) -> None:
    with pytest.raises(InvalidInput, match=named):
        read_parquet(published(tmp_path, nodes, edges))


def test_rows_are_counted_over_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "NODE_ROWS", 2)
    with pytest.raises(InvalidInput, match=r"row 3: the properties"):
        read_parquet(published(tmp_path, {"properties": ["{}", "{}", "x"]}))


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"nodes\.parquet: no such file"):
        read_parquet(tmp_path)
    published(tmp_path)
    (tmp_path / "edges.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(InvalidInput, match=r"edges\.parquet: cannot be read"):
        read_parquet(tmp_path)


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    write_parquet(MemoryStore.of(NODES, EDGES), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    class Failing:
        def nodes(self) -> Any:
            return iter([NODES])

        def edges(self) -> Any:
            yield EDGES
            yield [Edge("ada", "R", "ada", 1.0, {"bad": {1}})]

    with pytest.raises(InvalidInput, match="'ada' to 'ada'"):
        write_parquet(Failing(), tmp_path)  # type: ignore[arg-type]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="file"):
        write_parquet(MemoryStore(), tmp_path / "file")


def test_columns_make_no_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    store = MemoryStore.from_arrays(
        [f"n{i}" for i in range(3000)],
        labels=rng.integers(2, size=3000),
        label_sets=[("A",), ("B", "C")],
        source=rng.integers(3000, size=9000),
        target=rng.integers(3000, size=9000),
        edge_properties=[{"k": i % 5} for i in range(9000)],
    )
    expected = everything(store)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("an object was made")

    with monkeypatch.context() as patch:
        patch.setattr("graphret.types.Node.__init__", refuse)
        patch.setattr("graphret.types.Edge.__init__", refuse)
        write_parquet(store, tmp_path)
        again = read_parquet(tmp_path)
    assert everything(again) == expected
    assert json.loads(pq.read_table(tmp_path / "edges.parquet")["properties"][0].as_py()).keys() == {"k"}
