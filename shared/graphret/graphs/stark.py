"""A processed STaRK knowledge base: a folder of pickles and tensors (Wu et al., 2024)."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput, MissingDependency
from graphret.graphs.pickles import load_plain
from graphret.graphs.places import Places, part_of
from graphret.graphs.tables import GraphTables
from graphret.graphs.values import json_value

INFO = "node_info.pkl"
FILES = (INFO, "edge_index.pt", "edge_types.pt", "node_types.pt", "node_type_dict.pkl", "edge_type_dict.pkl")

#: The fields that hold a node's name, the first that is there; ``{type}_name`` comes before them.
NAMES = ("name", "title", "DisplayName", "display_name", "Title")
#: The fields that hold what a node says.
TEXTS = ("text", "abstract", "description")


def read_stark(source: str | Path) -> GraphTables:
    """Read a processed STaRK knowledge base.

    The id of a node is its number, as in the answers of STaRK's questions, and its label the type. Its name is taken
    from the field ``{type}_name``, ``name``, ``title`` or ``DisplayName``, its text from ``text``, ``abstract`` or
    ``description`` where that is a string; the other fields are properties, nested as they are. A field ``id`` becomes
    ``original_id``. What is missing (`None`, NaN) is left out.

    Parameters
    ----------
    source
        A folder with ``node_info.pkl``, ``edge_index.pt``, ``edge_types.pt``, ``node_types.pt``,
        ``node_type_dict.pkl`` and ``edge_type_dict.pkl``.

    Raises
    ------
    InvalidInput
        If a file is missing, damaged, asks for anything but plain data or tensors (nothing of it is run), or the files
        do not agree; the message names the file and the item.
    MissingDependency
        If torch is not installed.
    """
    folder = Path(source)
    for name in FILES:
        if not (folder / name).is_file():
            raise InvalidInput(f"{folder / name}: no such file; a STaRK knowledge base has {', '.join(FILES)}")
    info = load_plain(folder / INFO)
    if not isinstance(info, dict):
        raise InvalidInput(f"{folder / INFO}: a dict from node to its fields is expected, not {type(info).__name__}")
    label_names, labels = _codes(folder, "node_types.pt", "node_type_dict.pkl")
    relations, relation = _codes(folder, "edge_types.pt", "edge_type_dict.pkl")
    if len(labels) != len(info):
        raise InvalidInput(f"{folder / 'node_types.pt'}: {len(labels)} nodes, and {len(info)} in {INFO}")
    starts, ends = _ends(folder / "edge_index.pt", len(info), len(relation))
    fields = [_fields(info.get(i), label_names[code], f"{folder / INFO}, node {i}") for i, code in enumerate(labels)]
    texts = [text for _, text, _ in fields]
    properties = [rest for _, _, rest in fields]
    return GraphTables(
        ids=[str(i) for i in range(len(info))],
        names=[name for name, _, _ in fields],
        texts=texts if any(texts) else None,
        labels=labels.astype(np.int32),
        label_sets=[(name,) for name in label_names],
        properties=properties if any(properties) else None,
        source=starts,
        target=ends,
        relation=relation,
        relations=relations,
        node_places=Places(lambda i, said: _node_place(folder, i, said, label_names[labels[i]])),
        edge_places=Places(lambda i, said: _edge_place(folder, i, said, relations[relation[i]])),
    ).distinct()


def _node_place(folder: Path, position: int, said: str, label: str) -> str:
    if part_of(said, "label", [label]) is not None:
        return f"{folder / 'node_types.pt'}, item {position}"
    return f"{folder / INFO}, node {position}"


def _edge_place(folder: Path, position: int, said: str, relation: str) -> str:
    if part_of(said, "relation", [relation]) is not None:
        return f"{folder / 'edge_types.pt'}, item {position}"
    return f"{folder / 'edge_index.pt'}, column {position}"


def _ends(path: Path, n_nodes: int, n_edges: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Read the ends of the edges."""
    edges = _integers(path, dimensions=2)
    if edges.shape != (2, n_edges):
        raise InvalidInput(f"{path}: its shape is {edges.shape}, and (2, {n_edges}) by edge_types.pt")
    outside = np.flatnonzero(((edges < 0) | (edges >= n_nodes)).any(axis=0))
    if len(outside):
        one = int(outside[0])
        source, target = edges[:, one].tolist()
        raise InvalidInput(f"{path}, column {one}: from {source} to {target}, and the nodes are 0 to {n_nodes - 1}")
    return edges[0], edges[1]


def _names(path: Path) -> dict[int, str]:
    """Read the names of types by number."""
    names = load_plain(path)
    if not isinstance(names, dict):
        raise InvalidInput(f"{path}: a dict from number to name is expected, not {type(names).__name__}")
    number_of: dict[str, int] = {}
    for code, name in names.items():
        if not isinstance(code, int) or not isinstance(name, str) or not name:
            raise InvalidInput(f"{path}, item {code!r}: a number and a name are expected, not {name!r:.80}")
        first = number_of.setdefault(name, code)
        if first != code:
            raise InvalidInput(f"{path}, item {code}: the name {name!r} comes twice, first in item {first}")
    return names


def _codes(folder: Path, file: str, dictionary: str) -> tuple[list[str], NDArray[np.int64]]:
    """Return the names of the types in use, and for each item the position of its type's name."""
    names, numbers = _names(folder / dictionary), _integers(folder / file)
    used, codes = np.unique(numbers, return_inverse=True)
    for number in used.tolist():
        if number not in names:
            at = int(np.argmax(numbers == number))
            raise InvalidInput(f"{folder / file}, item {at}: type {number} is not in {dictionary}")
    return [names[number] for number in used.tolist()], codes.astype(np.int64)


def _integers(path: Path, dimensions: int = 1) -> NDArray[np.int64]:
    """Read a tensor of whole numbers, with nothing run that the file holds besides."""
    try:
        import torch
    except ImportError as error:
        raise MissingDependency("torch", "encoder", "Reading a STaRK knowledge base") from error
    try:
        tensor = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise InvalidInput(f"{path}: asks for what is no tensor, or is damaged; nothing of it was run") from error
    except (RuntimeError, ValueError, EOFError, OSError, KeyError, TypeError, AttributeError) as error:
        said = (str(error) or type(error).__name__).splitlines()[0]
        raise InvalidInput(f"{path}: is no tensor that torch can read ({said})") from error
    array = tensor.numpy() if isinstance(tensor, torch.Tensor) else None
    if array is None or array.ndim != dimensions or array.dtype.kind not in "iu":
        raise InvalidInput(f"{path}: a tensor of whole numbers in {dimensions} dimensions is expected")
    return np.ascontiguousarray(array, dtype=np.int64)


def _fields(info: object, label: str, where: str) -> tuple[str, str, dict[str, Any]]:
    """Return the name, the text and the properties of a node."""
    if not isinstance(info, dict):
        raise InvalidInput(f"{where}: its fields are missing, or no dict")
    rest: dict[str, Any] = {}
    for field, value in info.items():
        if not isinstance(field, str) or not field:
            raise InvalidInput(f"{where}: {field!r} is not the name of a field")
        kept = json_value(value, f"{where}, field {field!r}")
        if kept is not None:
            rest[field] = kept
    name = _taken(rest, (f"{label}_name", *NAMES))
    text = _taken(rest, TEXTS)
    if rest.get("type") == label:
        del rest["type"]
    if "id" in rest:
        rest["original_id"] = rest.pop("id")
    return name, text, rest


def _taken(fields: dict[str, Any], names: tuple[str, ...]) -> str:
    """Take the first of the fields that holds a string or a number."""
    for name in names:
        if isinstance(value := fields.get(name), str | int | float) and str(value).strip():
            return str(fields.pop(name))
    return ""
