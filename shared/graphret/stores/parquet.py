"""A graph as ``nodes.parquet`` and ``edges.parquet``, the layout in which public ARK graphs are published.

Nodes have the columns ``id, name, type, properties``, edges ``from, to, type, properties``; properties are JSON objects
as text. What that has no place for is in columns of its own: ``labels`` and ``text`` of nodes, ``weight`` of edges,
which are read where they are there. Both ways go column by column, in blocks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret._checked import PART_KEYS, require_part
from graphret.columns import assemble, no_records
from graphret.edges import NO_PART
from graphret.errors import InvalidInput
from graphret.storage import Records, Strings
from graphret.stores.memory import MemoryStore
from graphret.stores.parquet_writing import EDGE_ROWS, EDGES, NODE_ROWS, NODES, arrow, write_parquet
from graphret.strings import members

__all__ = ["read_parquet", "write_parquet"]


def read_parquet(folder: str | Path, *, double: bool = False) -> MemoryStore:
    """Read a graph from ``nodes.parquet`` and ``edges.parquet`` in a folder.

    Ids may be text or whole numbers, which become text. The type of a node is its one label, unless there is a column
    ``labels``; where it is null the node has none. Columns beyond those of the layout are ignored.
    With `double`, weights keep the precision of the file, for a database that the graph goes on to.

    Raises
    ------
    InvalidInput
        Names the file, and the column and the row (from 1) of what is missing or malformed: no such file or column, a
        null id, an id that comes twice, an edge to a node that is not there, properties that are no JSON object.
    MissingDependency
        If pyarrow is not installed.
    """
    pa, pq = arrow("Reading Parquet")
    nodes, edges = Path(folder) / NODES, Path(folder) / EDGES
    read_nodes = _NodeColumns(nodes)
    with _opened(pq, nodes, ("id", "type")) as blocks:
        for block in blocks(["id", "name", "type", "properties", "labels", "text"], NODE_ROWS):
            read_nodes.add(pa, block)
    ids = pa.concat_arrays(read_nodes.ids) if read_nodes.ids else pa.array([], pa.large_string())
    _refuse_twice(nodes, ids)
    read_edges = _EdgeColumns(edges, ids, np.float64 if double else np.float32)
    with _opened(pq, edges, ("from", "to", "type")) as blocks:
        for block in blocks(["from", "to", "type", "properties", "weight"], EDGE_ROWS):
            read_edges.add(pa, block)
    return MemoryStore.from_arrays(_to_strings(ids), **read_nodes.columns(), **read_edges.columns(), double=double)


@contextmanager
def _opened(pq: Any, path: Path, needed: tuple[str, ...]) -> Iterator[Callable[[list[str], int], Iterator[Any]]]:
    """Open a file; yields what reads some of its columns in blocks."""
    import pyarrow as pa

    if not path.is_file():
        raise InvalidInput(f"{path}: no such file")
    try:
        with pq.ParquetFile(path) as file:
            there = file.schema_arrow.names
            for name in needed:
                if name not in there:
                    raise InvalidInput(f"{path}: there is no column {name!r}; the columns are {', '.join(there)}")
            yield lambda names, rows: file.iter_batches(rows, columns=[name for name in names if name in there])
    except (pa.ArrowException, OSError) as error:
        raise InvalidInput(f"{path}: cannot be read as Parquet: {error}") from error


class _Blocks:
    """Reads blocks of rows of one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = 0

    def row(self, i: int) -> str:
        return f"{self.path}, row {self.rows + i + 1:,}"

    def text(self, pa: Any, block: Any, name: str, *, required: bool = False) -> Any:
        """Return a column as text; null stands for none unless it is required."""
        column = block.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pa.types.is_null(column.type):
            column = column.cast(pa.large_string())
        column.validate(full=True)  # that text is UTF-8
        whole = pa.types.is_integer(column.type)
        if not whole and not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
            raise InvalidInput(f"{self.path}: the column {name!r} must be text, not {column.type}")
        if required and column.null_count:
            at = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise InvalidInput(f"{self.row(at)}: {name!r} is null")
        return column.cast(pa.large_string())

    def records(self, pa: Any, block: Any) -> tuple[Records, list[dict[str, Any]] | None]:
        """Return the properties, and as objects too where one of them is not just taken over."""
        n = block.num_rows
        if "properties" not in block.schema.names or pa.types.is_null(block.column("properties").type):
            return no_records(n), None
        column = block.column("properties")
        if pa.types.is_struct(column.type) or pa.types.is_map(column.type):
            values = [_plain(dict(value or {})) for value in column.to_pylist()]
            try:
                return Records.of(values), values
            except InvalidInput as error:
                raise InvalidInput(f"{self.path}: the column 'properties': {error}") from error
        texts = self.text(pa, block, "properties").fill_null("{}")
        filled = _to_strings(texts)
        if (np.diff(filled.offsets) == 2).all() and bytes(filled.blob) == b"{}" * n:
            return no_records(n), None
        return Records(filled.blob, filled.offsets), [self._object(i, text) for i, text in enumerate(filled)]

    def _object(self, i: int, text: str) -> dict[str, Any]:
        try:
            value = _decode(text)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"{self.row(i)}: the properties are not JSON: {error}") from error
        if not isinstance(value, dict):
            raise InvalidInput(f"{self.row(i)}: the properties must be a JSON object, not {type(value).__name__}")
        return value


class _NodeColumns(_Blocks):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.ids: list[Any] = []
        self._texts: dict[str, list[Strings]] = {"names": [], "texts": []}
        self._labels: list[NDArray[np.int32]] = []
        self._sets: dict[tuple[str, ...], int] = {}
        self._properties: list[Records] = []

    def add(self, pa: Any, block: Any) -> None:
        ids = self.text(pa, block, "id", required=True)
        if (empty := np.diff(_to_strings(ids).offsets) == 0).any():
            raise InvalidInput(f"{self.row(int(np.argmax(empty)))}: the id is empty")
        self.ids.append(ids)
        for key, name in (("names", "name"), ("texts", "text")):
            if name in block.schema.names:
                self._texts[key].append(_to_strings(self.text(pa, block, name).fill_null("")))
        self._properties.append(self.records(pa, block)[0])
        self._labels.append(self._codes(pa, block))
        self.rows += block.num_rows

    def _codes(self, pa: Any, block: Any) -> NDArray[np.int32]:
        types = self.text(pa, block, "type").dictionary_encode()
        alone = [self._code(() if name is None else (name,)) for name in [*types.dictionary.to_pylist(), None]]
        codes: NDArray[np.int32] = np.asarray(alone, dtype=np.int32)[
            types.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        ]
        if "labels" not in block.schema.names:
            return codes
        column = block.column("labels")
        if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
            raise InvalidInput(f"{self.path}: the column 'labels' must be lists of text, not {column.type}")
        for i, labels in enumerate(column.to_pylist()):
            if labels is not None:
                if not all(isinstance(label, str) for label in labels):
                    raise InvalidInput(f"{self.row(i)}: 'labels' must be a list of text")
                codes[i] = self._code(tuple(labels))
        return codes

    def _code(self, labels: tuple[str, ...]) -> int:
        return self._sets.setdefault(labels, len(self._sets))

    def columns(self) -> dict[str, Any]:
        return {
            "names": _joined(self._texts["names"]),
            "texts": _joined(self._texts["texts"]),
            "labels": np.concatenate([np.empty(0, np.int32), *self._labels]),
            "label_sets": list(self._sets),
            "properties": _joined(self._properties),
        }


class _EdgeColumns(_Blocks):
    def __init__(self, path: Path, ids: Any, precision: type[np.floating[Any]]) -> None:
        super().__init__(path)
        self._ids = ids
        self._precision = precision
        self._ends: dict[str, list[NDArray[np.int32]]] = {"from": [], "to": []}
        self._relation: list[NDArray[np.int32]] = []
        self._relations: dict[str, int] = {}
        self._weight: list[NDArray[Any]] = []
        self._rows: dict[str, list[NDArray[np.int32]]] = {key: [] for key in PART_KEYS}
        self._properties: list[Records] = []

    def add(self, pa: Any, block: Any) -> None:
        for name, found in self._ends.items():
            ends = self.text(pa, block, name, required=True)
            places = pa.compute.index_in(ends, value_set=self._ids)
            if places.null_count:
                at = int(np.argmax(places.is_null().to_numpy(zero_copy_only=False)))
                raise InvalidInput(f"{self.row(at)}: {name!r}: there is no node {ends[at].as_py()!r}")
            found.append(places.to_numpy(zero_copy_only=False).astype(np.int32))
        types = self.text(pa, block, "type", required=True).dictionary_encode()
        names = types.dictionary.to_pylist()
        indices = types.indices.to_numpy(zero_copy_only=False)
        if "" in names:
            at = int(np.argmax(indices == names.index("")))
            raise InvalidInput(f"{self.row(at)}: the type is empty")
        codes = [self._relations.setdefault(name, len(self._relations)) for name in names]
        self._relation.append(np.asarray(codes, dtype=np.int32)[indices])
        self._weight.append(self._weights(pa, block))
        self._add_properties(*self.records(pa, block), block.num_rows)
        self.rows += block.num_rows

    def _weights(self, pa: Any, block: Any) -> NDArray[Any]:
        if "weight" not in block.schema.names:
            return np.ones(block.num_rows, dtype=self._precision)
        column = block.column("weight")
        if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
            raise InvalidInput(f"{self.path}: the column 'weight' must be numbers, not {column.type}")
        with np.errstate(over="ignore"):
            given = column.cast(pa.float64()).fill_null(1.0).to_numpy(zero_copy_only=False)
            values: NDArray[Any] = given.astype(self._precision)
        if (wrong := ~np.isfinite(values)).any():
            raise InvalidInput(f"{self.row(int(np.argmax(wrong)))}: the weight must be a finite number")
        return values

    def _add_properties(self, records: Records, objects: list[dict[str, Any]] | None, n: int) -> None:
        for key, rows in self._rows.items():
            part = np.full(n, NO_PART, dtype=np.int32)
            for i, own in enumerate(objects or ()):
                if key in own:
                    part[i] = require_part(own[key], f"{self.row(i)}: {key}")
            rows.append(part)
        if objects and any(key in own for own in objects for key in PART_KEYS):
            records = Records.of({k: v for k, v in own.items() if k not in PART_KEYS} for own in objects)
        self._properties.append(records)

    def columns(self) -> dict[str, Any]:
        none = np.empty(0, np.int32)
        return {
            "source": np.concatenate([none, *self._ends["from"]]),
            "target": np.concatenate([none, *self._ends["to"]]),
            "relation": np.concatenate([none, *self._relation]),
            "relations": list(self._relations),
            "weight": np.concatenate([none.astype(self._precision), *self._weight]),
            **{key: np.concatenate([none, *rows]) for key, rows in self._rows.items()},
            "edge_properties": _joined(self._properties),
        }


def _refuse_twice(path: Path, ids: Any) -> None:
    if len(ids.unique()) == len(ids):
        return
    first: dict[str, int] = {}
    for row, node_id in enumerate(ids.to_pylist(), 1):
        if first.setdefault(node_id, row) != row:
            raise InvalidInput(f"{path}, row {row:,}: the id {node_id!r} comes twice, first in row {first[node_id]:,}")


def _plain(value: dict[str, Any]) -> dict[str, Any]:
    return {key: _plain(v) if isinstance(v, dict) else v for key, v in value.items() if v is not None}


def _joined(columns: list[Any]) -> Any:
    if not columns:
        return None
    return columns[0] if len(columns) == 1 else assemble(columns, np.arange(sum(map(len, columns)), dtype=np.int64))


def _to_strings(array: Any) -> Strings:
    """Return an Arrow array of large strings without nulls as a column, over the same bytes."""
    if not len(array):
        return Strings(np.empty(0, dtype=np.uint8), np.zeros(1, dtype=np.int64))
    _, offsets_buffer, data = array.buffers()
    offsets = np.frombuffer(offsets_buffer, dtype=np.int64, count=array.offset + len(array) + 1)[array.offset :]
    blob = np.frombuffer(data, dtype=np.uint8)[offsets[0] : offsets[-1]] if data else np.empty(0, dtype=np.uint8)
    return Strings(blob, offsets - offsets[0])


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_decode = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=members).decode
