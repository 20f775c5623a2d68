"""Read a processed STaRK knowledge base, a folder of pickles and tensors.

See Wu et al., 2024.
"""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput
from graphret.graphs.stark_reviews import FORMS, Reviews, add_reviews, pop_reviews
from graphret.graphs.tables import GraphTables, required
from graphret.validation import json_value

INFO = "node_info.pkl"
NODE_TYPES, NODE_TYPE_NAMES = "node_types.pt", "node_type_dict.pkl"
FILES = (
    INFO,
    "edge_index.pt",
    "edge_types.pt",
    NODE_TYPES,
    NODE_TYPE_NAMES,
    "edge_type_dict.pkl",
)
#: The type of every node where there are no types: Amazon's graph, as it is before
#: brands, categories and colors become nodes, has products alone.
PRODUCT = "product"

#: The fields that may hold a node's name, after ``{type}_name``; the first one counts.
NAMES = ("name", "title", "DisplayName", "display_name", "Title")
#: The fields that may hold a node's text; the first one counts.
TEXTS = ("text", "abstract", "description")

_CONTAINERS: dict[str, Any] = {
    kind.__name__: kind for kind in (set, frozenset, list, dict, tuple)
}


def read_stark(source: str | Path, reviews: Reviews = "property") -> GraphTables:
    """Read a processed STaRK knowledge base.

    The id of a node is its number, as in the answers of STaRK's questions, and its
    label the type. Its name comes from the field ``{type}_name`` or one of `NAMES`, its
    text from one of `TEXTS`; the other fields become properties, nested as they are. A
    field ``id`` becomes ``original_id``. Missing values (`None`, NaN) are left out.

    Parameters
    ----------
    source
        A folder with `FILES`. Without those of node types every node is a ``product``,
        as in Amazon's ``processed``; what has brands, categories and colors as nodes
        lies in ``processed/cache/brand-category-color``.
    reviews
        How Amazon's reviews are read: as a ``"property"`` of each product, as a
        ``"table"`` of each, or as ``"nodes"`` (`graphret.graphs.stark_reviews`).

    Raises
    ------
    InvalidInput
        If a file is missing, damaged, holds anything but plain data or tensors (no code
        in it is run), or the files do not agree; the message names the file and the
        item.
    MissingDependency
        If torch is not installed.
    """
    folder = Path(source)
    if reviews not in FORMS:
        raise InvalidInput(
            f"reviews: expected one of {', '.join(FORMS)}, got {reviews!r}"
        )
    info = _load_plain(folder / INFO)
    labels, label_names = _node_types(folder, len(info))
    relation_names = _load_plain(folder / "edge_type_dict.pkl")
    relations = _integers(folder / "edge_types.pt")
    edge_index = _integers(folder / "edge_index.pt", dimensions=2)
    if len(labels) != len(info) or edge_index.shape != (2, len(relations)):
        nodes = f"node_types.pt has {len(labels)} nodes and {INFO} {len(info)}"
        raise InvalidInput(
            f"{folder}: {nodes}; {len(relations)} edges, and edge_index.pt has the"
            f" shape {edge_index.shape}"
        )
    tables = GraphTables()
    for i, code in enumerate(labels.tolist()):
        try:
            label = label_names[code]
            name, text, properties = _fields(info[i], label)
            found = pop_reviews(properties, reviews)
            tables.node(str(i), (label,), name, text, properties)
            add_reviews(tables, str(i), name, found, reviews)
        except (
            KeyError,
            TypeError,
            AttributeError,
            RecursionError,
            InvalidInput,
        ) as error:
            raise InvalidInput(
                f"{folder / INFO}, node {i}: type {code} or a field is missing: {error}"
            ) from error
    for column, (source, target, code) in enumerate(
        zip(*edge_index.tolist(), relations.tolist(), strict=True)
    ):
        try:
            tables.edge(str(source), relation_names[code], str(target))
        except (KeyError, InvalidInput) as error:
            raise InvalidInput(
                f"{folder / 'edge_index.pt'}, column {column}: type {code}: {error}"
            ) from error
    return tables


def _node_types(folder: Path, n_nodes: int) -> tuple[NDArray[np.int64], dict[Any, Any]]:
    """Return the type of each node, and what types are called."""
    if any((folder / name).exists() for name in (NODE_TYPES, NODE_TYPE_NAMES)):
        names = _load_plain(folder / NODE_TYPE_NAMES)
        return _integers(folder / NODE_TYPES), names
    return np.zeros(n_nodes, dtype=np.int64), {0: PRODUCT}


def _fields(info: dict[str, Any], label: str) -> tuple[str, str, dict[str, Any]]:
    """Return the name, the text and the properties of a node."""
    properties = {
        str(field): json
        for field, value in info.items()
        if (json := json_value(value)) is not None
    }
    name = _pop_text(properties, (f"{label}_name", *NAMES))
    text = _pop_text(properties, TEXTS)
    if properties.get("type") == label:
        del properties["type"]
    if "id" in properties:
        properties["original_id"] = properties.pop("id")
    return name, text, properties


def _pop_text(fields: dict[str, Any], names: tuple[str, ...]) -> str:
    """Remove and return the first of the fields that holds text.

    That is a string, a number or a list of paragraphs.
    """
    for name in names:
        value = fields.get(name)
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            value = "\n".join(value)  # Amazon's descriptions
        if isinstance(value, str | int | float) and str(value).strip():
            del fields[name]
            return str(value)
    return ""


def _integers(path: Path, dimensions: int = 1) -> NDArray[np.int64]:
    """Read a tensor of whole numbers, without running any code in the file."""
    torch = required("torch", "encoder", "Reading a STaRK knowledge base")
    try:
        tensor = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever a damaged file raises
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InvalidInput(
            f"{path}: is no tensor that torch can read, and nothing of it was run"
            f" ({reason})"
        ) from error
    array = tensor.numpy() if isinstance(tensor, torch.Tensor) else None
    if array is None or array.ndim != dimensions or array.dtype.kind not in "iu":
        raise InvalidInput(
            f"{path}: expected a tensor of whole numbers in {dimensions} dimensions"
        )
    return np.ascontiguousarray(array, dtype=np.int64)


class _PlainUnpickler(pickle.Unpickler):
    """Reads containers, strings, numbers, `None` and numpy numbers, nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a stand-in for an allowed name, never an object of this program."""
        if (
            module in ("builtins", "__builtin__")
            and (kind := _CONTAINERS.get(name)) is not None
        ):
            return lambda *items: kind(*items)
        if module == "collections" and name in ("OrderedDict", "defaultdict"):
            return lambda *_: {}  # without the factory of missing items, which is code
        if (module, name) == ("numpy", "dtype"):
            return lambda code, *_: _Dtype(code)
        if (
            module in ("numpy.core.multiarray", "numpy._core.multiarray")
            and name == "scalar"
        ):
            return lambda dtype, data: dtype.scalar(data)
        raise pickle.UnpicklingError(
            f"asks for {module}.{name}, which is not plain data"
        )


class _Dtype:
    """A pickle's type of a numpy number, checked before use; always little-endian."""

    def __init__(self, code: str) -> None:
        self.code = code

    def __setstate__(self, state: object) -> None:
        """Take no state."""

    def scalar(self, data: bytes) -> Any:
        if re.fullmatch(r"U[0-9]{1,9}", self.code):  # Amazon's brands are such
            return data.decode("utf-32-le")
        if not re.fullmatch(r"[biuf][1248]", self.code):
            raise pickle.UnpicklingError(
                f"asks for a numpy scalar of the type {self.code!r}"
            )
        return np.frombuffer(data, f"<{self.code}")[0].item()


def _load_plain(path: Path) -> dict[Any, Any]:
    """Read a pickle that holds a dict of plain data alone."""
    try:
        with path.open("rb") as file:
            content = _PlainUnpickler(file).load()
    except Exception as error:  # whatever a damaged file raises
        raise InvalidInput(
            f"{path}: is no pickle of plain data, and nothing of it was run ({error})"
        ) from error
    if not isinstance(content, dict):
        raise InvalidInput(f"{path}: expected a dict, got {type(content).__name__}")
    return content
