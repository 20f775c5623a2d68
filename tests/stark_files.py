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


def review(summary: str, said: str, stars: float, **more: Any) -> dict[str, Any]:
    """A review as STaRK has it, with NaN where nobody voted."""
    given = {"reviewerID": "A1", "summary": summary, "reviewText": said}
    rest = {"overall": stars, "verified": True, "reviewTime": "01 1, 2015"}
    return {**given, **rest, "style": None, "vote": float("nan"), **more}


#: Three products of Amazon, as they are before brands and the like become nodes.
AMAZON: dict[int, dict[str, Any]] = {
    0: {
        "review": [
            review("Warm", "Keeps my\nhead warm.", 5.0, vote="1,002"),
            review("Too small", "Does not fit.", 2.0),
        ],
        "qa": [{"question": "Is it wool?", "answer": "Yes."}],
        "brand": "Norrland",
        "color": ["red"],
        "asin": "B01",
        "title": "Wool cap",
        "description": ["A cap.", "For winter."],
        "price": "$11.80",
    },
    1: {"review": [], "qa": [], "asin": "B02", "title": "Scarf", "description": []},
    2: {"review": [review("Fine", "Good gloves.", 4.0)], "title": "Gloves"},
}


def write_amazon(folder: Path) -> Path:
    """Write these products as STaRK's ``processed`` has them: without node types."""
    torch = torch_of()
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in {
        "node_info.pkl": AMAZON,
        "edge_type_dict.pkl": {0: "also_buy", 1: "also_view"},
    }.items():
        (folder / name).write_bytes(pickle.dumps(value))
    torch.save(torch.tensor([[0, 0], [1, 2]]), folder / "edge_index.pt")
    torch.save(torch.tensor([0, 1]), folder / "edge_types.pt")
    return folder
