"""A processed STaRK knowledge base is read as it is laid out, and nothing in its files is run."""

from __future__ import annotations

import os
import pickle
from collections import OrderedDict, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphret.errors import InvalidInput
from graphret.graphs.stark import FILES, read_stark
from graphret.types import Edge, Node

pytestmark = pytest.mark.xdist_group("torch")  # with the others that import it, which takes seconds
INFO: dict[int, dict[str, Any]] = {
    0: {"id": "9796", "type": "gene/protein", "name": "PHYHIP", "source": "NCBI", "details": {"aliases": ["DYRK1AP3"]}},
    1: {"id": "7918", "type": "gene/protein", "name": "GPANK1", "source": "NCBI"},
    2: {"id": "D1", "type": "disease", "name": "Refsum disease", "description": "A rare disease.", "x": float("nan")},
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
    store = read_stark(write(tmp_path)).store()
    (nodes,) = store.nodes()
    about = {"source": "NCBI", "details": {"aliases": ["DYRK1AP3"]}, "original_id": "9796"}
    assert nodes == [
        Node("0", ("gene/protein",), "PHYHIP", "", about),
        Node("1", ("gene/protein",), "GPANK1", "", {"source": "NCBI", "original_id": "7918"}),
        Node("2", ("disease",), "Refsum disease", "A rare disease.", {"original_id": "D1"}),
        Node("3", ("brand",), "Acme", "", {"score": 0.5, "seen": [1, 2]}),
    ]
    (edges,) = store.edges()
    assert set(edges) == {Edge("0", "ppi", "1"), Edge("1", "ppi", "0"), Edge("0", "associated with", "2")}


def test_a_missing_or_damaged_file_is_named(tmp_path: Path) -> None:
    for name in FILES[:2]:  # a pickle and a tensor
        path = write(tmp_path) / name
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        for _ in range(2):
            with pytest.raises(InvalidInput, match=name):
                read_stark(tmp_path)
            path.unlink(missing_ok=True)


class Runs:
    """Unpickled in the ordinary way, calls a function."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.made = function, arguments

    def __reduce__(self) -> Any:
        return self.made


def attacks(canary: Path) -> dict[str, bytes]:
    text = f"touch '{canary}'".encode()
    return {
        "system": pickle.dumps({0: {"name": Runs(os.system, text.decode())}}),
        "protocol 0": b'cos\nsystem\n(S"' + text + b'"\ntR.',
        "stack": b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c" + bytes([len(text)]) + text + b"\x85R.",
        "build": b"\x80\x02cbuiltins\nset\nN}X\x0c\x00\x00\x00__defaults__K\x01\x85s\x86b.",
    }


@pytest.mark.parametrize("kind", attacks(Path("x")))
def test_a_pickle_that_wants_to_run_something_runs_nothing(tmp_path: Path, kind: str) -> None:
    canary = tmp_path / "canary"
    folder = write(tmp_path / "kb")
    (folder / "node_info.pkl").write_bytes(attacks(canary)[kind])
    with pytest.raises(InvalidInput, match=r"node_info.pkl: .*(nothing of it was run|a dict is expected)"):
        read_stark(folder)
    assert not canary.exists()
    if kind != "build":
        pickle.loads(attacks(canary)[kind])
        assert canary.exists(), "the attack is real"


def test_a_tensor_file_that_wants_to_run_something_runs_nothing(tmp_path: Path) -> None:
    import torch

    canary = tmp_path / "canary"
    folder = write(tmp_path / "kb")
    torch.save({"tensor": Runs(os.system, f"touch '{canary}'")}, folder / "edge_index.pt")
    with pytest.raises(InvalidInput, match=r"edge_index.pt: .*nothing of it was run"):
        read_stark(folder)
    assert not canary.exists()
    torch.load(folder / "edge_index.pt", weights_only=False)
    assert canary.exists()


def test_plain_data_is_read(tmp_path: Path) -> None:
    info = {"frozen": frozenset({"x"}), "ordered": OrderedDict(b=1, a=2), "default": defaultdict(list, a=[1])}
    info |= {"tuple": (1, (2.5, None, True)), "int": np.int64(-3), "bool": np.bool_(True), "big": 10**30}
    folder = write(tmp_path)
    (folder / "node_info.pkl").write_bytes(pickle.dumps({**INFO, 0: info}))
    (found,) = read_stark(folder).store().get(["0"])
    assert found is not None
    expected = {"frozen": ["x"], "ordered": {"b": 1, "a": 2}, "default": {"a": [1]}, "big": 10**30}
    assert found.properties == expected | {"tuple": [1, [2.5, None, True]], "int": -3, "bool": True}
