"""A small knowledge base as STaRK has it on disk."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

INFO: dict[int, dict[str, Any]] = {
    0: {
        "id": "9796",
        "type": "gene/protein",
        "name": "PHYHIP",
        "source": "NCBI",
        "details": {"aliases": ["DYRK1AP3"]},
    },
    1: {"id": "7918", "type": "gene/protein", "name": "GPANK1", "source": "NCBI"},
    2: {
        "id": "D1",
        "type": "disease",
        "name": "Refsum disease",
        "description": "A rare disease.",
        "x": float("nan"),
    },
    3: {"brand_name": "Acme", "score": np.float32(0.5), "seen": {1, 2}},
}
TYPES = {0: "gene/protein", 1: "disease", 2: "brand", 3: "never used"}
RELATIONS = {0: "ppi", 1: "associated with"}


def torch_of() -> Any:
    return pytest.importorskip("torch")  # which takes seconds


def write_stark(folder: Path, **changed: Any) -> Path:
    """Write a knowledge base as STaRK does, with some files of other content."""
    torch = torch_of()
    content: dict[str, Any] = {
        "node_info.pkl": INFO,
        "edge_index.pt": [[0, 1, 0], [1, 0, 2]],
        "edge_types.pt": [0, 0, 1],
        "node_types.pt": [0, 0, 1, 2],
        "node_type_dict.pkl": TYPES,
        "edge_type_dict.pkl": RELATIONS,
    }
    folder.mkdir(exist_ok=True)
    for name, value in {
        **content,
        **{key.replace("__", "."): value for key, value in changed.items()},
    }.items():
        if name.endswith(".pt"):
            torch.save(torch.tensor(value), folder / name)
        else:
            (folder / name).write_bytes(pickle.dumps(value))
    return folder
