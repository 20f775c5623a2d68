"""A processed STaRK knowledge base is read as it is laid out, and nothing in its files is run."""

from __future__ import annotations

import os
import pickle
import sys
from collections import OrderedDict, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphret.errors import InvalidInput, MissingDependency
from graphret.graphs.pickles import load_plain
from graphret.graphs.stark import FILES, read_stark
from graphret.types import Edge, Node

pytestmark = pytest.mark.xdist_group("torch")  # with the others that import it, which takes seconds
INFO: dict[int, dict[str, Any]] = {
    0: {"id": "9796", "type": "gene/protein", "name": "PHYHIP", "source": "NCBI", "details": {"aliases": ["DYRK1AP3"]}},
    1: {"id": "7918", "type": "gene/protein", "name": "GPANK1", "source": "NCBI"},
    2: {
        "id": "D1",
        "type": "disease",
        "name": "Refsum disease",
        "description": "A rare disease.",
        "onset": float("nan"),
    },
    3: {"brand_name": "Acme", "score": np.float32(0.5), "seen": {1, 2}},
}
TYPES = {0: "gene/protein", 1: "disease", 2: "brand", 3: "never used"}
RELATIONS = {0: "ppi", 1: "associated with"}


def write(folder: Path, **changed: Any) -> Path:
    """Write a knowledge base as STaRK does, with some files of other content."""
    import torch

    content: dict[str, Any] = {
        "node_info.pkl": INFO,
        "edge_index.pt": [[0, 1, 0], [1, 0, 2]],
        "edge_types.pt": [0, 0, 1],
        "node_types.pt": [0, 0, 1, 2],
        "node_type_dict.pkl": TYPES,
        "edge_type_dict.pkl": RELATIONS,
    }
    folder.mkdir(exist_ok=True)
    for name, value in {**content, **{key.replace("__", "."): value for key, value in changed.items()}}.items():
        if name.endswith(".pt"):
            torch.save(torch.tensor(value), folder / name)
        else:
            (folder / name).write_bytes(pickle.dumps(value))
    return folder


def test_nodes_and_edges_are_those_of_the_files(tmp_path: Path) -> None:
    tables = read_stark(write(tmp_path))
    (nodes,) = tables.nodes(100)
    assert nodes == [
        Node(
            "0",
            ("gene/protein",),
            "PHYHIP",
            "",
            {"source": "NCBI", "details": {"aliases": ["DYRK1AP3"]}, "original_id": "9796"},
        ),
        Node("1", ("gene/protein",), "GPANK1", "", {"source": "NCBI", "original_id": "7918"}),
        Node("2", ("disease",), "Refsum disease", "A rare disease.", {"original_id": "D1"}),
        Node("3", ("brand",), "Acme", "", {"score": 0.5, "seen": [1, 2]}),
    ]
    (edges,) = tables.edges(100)
    assert edges == [Edge("0", "ppi", "1"), Edge("1", "ppi", "0"), Edge("0", "associated with", "2")]
    assert tables.label_counts() == {"brand": 1, "disease": 1, "gene/protein": 2}


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    (write(tmp_path) / name).unlink()
    with pytest.raises(InvalidInput, match=name):
        read_stark(tmp_path)


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_named(tmp_path: Path, name: str) -> None:
    path = write(tmp_path) / name
    for content in (b"", b"nonsense", path.read_bytes()[: path.stat().st_size // 2]):
        path.write_bytes(content)
        with pytest.raises(InvalidInput, match=name):
            read_stark(tmp_path)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"edge_index__pt": [[0, 1, 0], [1, 0, 4]]}, r"edge_index.pt, column 2: from 0 to 4"),
        ({"edge_index__pt": [[0, 1], [1, 0]]}, r"edge_index.pt: its shape"),
        ({"edge_index__pt": [[0.5, 1, 0], [1, 0, 2]]}, r"edge_index.pt: a tensor of whole numbers"),
        ({"edge_types__pt": [0, 0, 7]}, r"edge_types.pt, item 2: type 7 is not in edge_type_dict.pkl"),
        ({"node_types__pt": [0, 0, 1]}, r"node_types.pt: 3 nodes, and 4"),
        ({"node_info__pkl": {0: {}, 1: {}, 2: {}, 4: {}}}, r"node_info.pkl, node 3"),
        ({"node_info__pkl": {**INFO, 1: {"a": b"x"}}}, r"node_info.pkl, node 1, field 'a'.*bytes"),
        ({"node_info__pkl": {**INFO, 1: {"a": float("inf")}}}, r"node_info.pkl, node 1, field 'a'.*infinite"),
        (
            {"node_type_dict__pkl": {0: "x", 1: "x", 2: "y"}},
            r"node_type_dict.pkl, item 1: the name 'x' comes twice, first in item 0",
        ),
        ({"node_type_dict__pkl": ["x", "y"]}, r"node_type_dict.pkl: a dict"),
        ({"edge_type_dict__pkl": {**RELATIONS, 2: ""}}, r"edge_type_dict.pkl, item 2: a number and a name"),
        ({"edge_type_dict__pkl": {"0": "ppi"}}, r"edge_type_dict.pkl, item '0': a number and a name"),
    ],
)
def test_files_that_do_not_agree_are_refused(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        read_stark(write(tmp_path, **changed))


def test_what_is_nested_too_deeply_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path)
    deep = b"]" * 5000 + b"a" * 4999  # lists in lists, which Python's own pickler cannot write
    (folder / "node_info.pkl").write_bytes(
        b"\x80\x02}(" + b"".join(b"K%c}" % i for i in range(3)) + b"K\x03}X\x01\x00\x00\x00v" + deep + b"su."
    )
    with pytest.raises(InvalidInput, match=r"node_info.pkl, node 3, field 'v': lists and maps lie too deep"):
        read_stark(folder)


def test_without_torch_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependency, match=r"torch.*graphret\[encoder\]"):
        read_stark(tmp_path)


class Shell:
    """Unpickled in the ordinary way, makes a file."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> Any:
        return os.system, (f"touch '{self.canary}'",)


class Evaluates(Shell):
    def __reduce__(self) -> Any:
        return eval, (f"open({str(self.canary)!r}, 'w').close()",)


class Opens(Shell):
    def __reduce__(self) -> Any:
        return open, (str(self.canary), "w")


class Hides(Shell):
    """Reaches for what it wants by the names that are admitted."""

    def __reduce__(self) -> Any:
        return getattr, (dict, "__subclasses__")


def protocol_0(canary: Path) -> bytes:
    return f"cos\nsystem\n(S\"touch '{canary}'\"\ntR.".encode()


def instance_opcode(canary: Path) -> bytes:
    return f"(S\"touch '{canary}'\"\nios\nsystem\n.".encode()


def stack_global(canary: Path) -> bytes:
    text = f"touch '{canary}'".encode()
    names = b"\x8c\x05posix\x8c\x06system\x93"
    return b"\x80\x04" + names + b"\x8c" + bytes([len(text)]) + text + b"\x85R."


def changes_a_maker(canary: Path) -> bytes:
    """Sets the code of an admitted function by BUILD."""
    return b"\x80\x02cbuiltins\nset\nN}X\x0c\x00\x00\x00__defaults__K\x01\x85s\x86b."


def persistent(canary: Path) -> bytes:
    return b"\x80\x02K\x01Q."


ATTACKS: list[Any] = [
    Shell,
    Evaluates,
    Opens,
    Hides,
    protocol_0,
    instance_opcode,
    stack_global,
    changes_a_maker,
    persistent,
]


def attack(kind: Any, canary: Path) -> bytes:
    made = kind(canary)
    return made if isinstance(made, bytes) else pickle.dumps({0: {"name": made}})


@pytest.mark.parametrize("kind", ATTACKS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", ["node_info.pkl", "node_type_dict.pkl", "edge_type_dict.pkl"])
def test_a_pickle_that_wants_to_run_something_runs_nothing(tmp_path: Path, kind: Any, name: str) -> None:
    canary = tmp_path / "canary"
    folder = write(tmp_path / "kb")
    (folder / name).write_bytes(attack(kind, canary))
    with pytest.raises(InvalidInput, match=rf"{name}: asks for .*nothing of it was run"):
        read_stark(folder)
    assert not canary.exists()


def test_the_attacks_are_real(tmp_path: Path) -> None:
    for kind in (Shell, Evaluates, Opens, protocol_0, instance_opcode, stack_global):
        canary = tmp_path / kind.__name__
        pickle.loads(attack(kind, canary))
        assert canary.exists(), kind


@pytest.mark.parametrize("name", ["edge_index.pt", "edge_types.pt", "node_types.pt"])
def test_a_tensor_file_that_wants_to_run_something_runs_nothing(tmp_path: Path, name: str) -> None:
    import torch

    canary = tmp_path / "canary"
    folder = write(tmp_path / "kb")
    torch.save({"tensor": Shell(canary)}, folder / name)
    with pytest.raises(InvalidInput, match=rf"{name}: .*nothing of it was run"):
        read_stark(folder)
    assert not canary.exists()
    torch.load(folder / name, weights_only=False)
    assert canary.exists()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_data_is_read_from_every_protocol(tmp_path: Path, protocol: int) -> None:
    lists: defaultdict[str, list[int]] = defaultdict(list)
    lists["a"].append(1)
    value = {
        1: np.int64(-3),
        2: np.float32(1.5),
        3: np.bool_(True),
        4: np.dtype(">u2").type(7),
        "set": {1, 2},
        "frozen": frozenset({"x"}),
        "bytes": b"a\xff",
        "ordered": OrderedDict(b=1, a=2),
        "default": lists,
        "tuple": (1, (2.5, None, True)),
        "text": "é\u2028",
        "big": 10**30,
    }
    path = tmp_path / "plain.pkl"
    path.write_bytes(pickle.dumps(value, protocol))
    found = load_plain(path)
    assert found == value
    assert [type(found[key]) for key in (1, 2, 3, "default")] == [int, float, bool, dict]
