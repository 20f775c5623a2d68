"""The rows of table files: CSV, TSV, JSON Lines and Parquet, each row with its line."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from graphret.errors import InvalidInput, MissingDependency
from graphret.graphs.columns import Columns
from graphret.graphs.guessing import guess, read_value
from graphret.graphs.lines import numbered, opened
from graphret.graphs.places import place
from graphret.graphs.values import json_object, json_value

SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")
_LARGEST_FIELD = 2**31 - 1
_BLOCK = 50_000


class Table:
    """A table file: its columns, and its rows as mappings with the values that are not missing.

    Parameters
    ----------
    path
        The file.
    header
        Its columns.
    rows
        Goes through the rows with their lines, or in Parquet their numbers, from 1. Columns in the mapping that it is
        given are of that type, where they are text.
    """

    def __init__(
        self, path: Path, header: list[str], rows: Callable[[Mapping[str, str]], Iterator[tuple[int, dict[str, Any]]]]
    ) -> None:
        self.path = path
        self.header = header
        self.rows = rows


def open_table(path: Path, columns: Columns) -> Table:
    """Open a table file of any of `SUFFIXES`.

    Raises
    ------
    InvalidInput
        If there is no such file, or it is not what its suffix says; as its rows are read, for every row that is
        malformed. The message names the file and the line.
    MissingDependency
        If it is a Parquet file and pyarrow is not installed.
    """
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv"):
        return _delimited(path, columns.delimiter or ("\t" if suffix == ".tsv" else ","))
    if suffix == ".jsonl":
        return _json_lines(path)
    if suffix == ".parquet":
        return _parquet(path)
    raise InvalidInput(f"{path}: unknown type of table {suffix!r}; known are {', '.join(SUFFIXES)}")


def _delimited(path: Path, delimiter: str) -> Table:
    records = _records(path, delimiter)
    line, header = next(records, (1, []))
    if not header:
        raise InvalidInput(f"{path}: is empty, and no table")
    for i, name in enumerate(header):
        if not name.strip() or name in header[:i]:
            said = f"comes twice in the header: {name!r}" if name.strip() else f"has no name: number {i + 1}"
            raise InvalidInput(f"{path}, line {line}: a column {said}")

    def rows(types: Mapping[str, str]) -> Iterator[tuple[int, dict[str, Any]]]:
        lines: list[int] = []
        fields: list[list[str]] = []
        for at, record in records:
            lines.append(at)
            fields.append(record)
        kinds = [types.get(name) or guess(record[i] for record in fields) for i, name in enumerate(header)]
        for at, record in zip(lines, fields, strict=True):
            found = {}
            for name, kind, text in zip(header, kinds, record, strict=True):
                if text:
                    where = f"{path}, line {at}, column {name!r}"
                    found[name] = text if kind == "string" else read_value(text, kind, where)
            yield at, found

    return Table(path, header, rows)


def _records(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Go through the records of a CSV file with the lines on which they begin, all of one width."""
    csv.field_size_limit(_LARGEST_FIELD)
    width = 0
    with opened(path) as file:
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        start = 1
        try:
            for record in reader:
                at, start = start, reader.line_num + 1
                if not record:
                    continue
                width = width or len(record)
                if len(record) != width:
                    raise InvalidInput(f"{path}, line {at}: {len(record)} columns, and {width} in the header")
                yield at, record
        except csv.Error as error:
            raise InvalidInput(f"{path}, line {start}: not CSV ({error})") from error


def _json_lines(path: Path) -> Table:
    records = list(_objects(path))
    if not records:
        raise InvalidInput(f"{path}: is empty, and no table")

    def rows(types: Mapping[str, str]) -> Iterator[tuple[int, dict[str, Any]]]:
        for line, record in records:
            found = {}
            for name, value in record.items():
                kept = json_value(value, f"{path}, line {line}, field {name!r}")
                if kept is not None:
                    found[name] = kept
            yield line, found

    return Table(path, list(dict.fromkeys(name for _, record in records for name in record)), rows)


def _objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with opened(path) as file:
        for line, text in numbered(file):
            if text.strip():
                yield line, json_object(text, f"{path}, line {line}")


def _parquet(path: Path) -> Table:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise MissingDependency("pyarrow", "import", "Reading Parquet") from error
    if not path.is_file():
        raise InvalidInput(f"{path}: no such file")
    try:
        file = parquet.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise InvalidInput(f"{path}: is no Parquet file ({error})") from error

    def rows(types: Mapping[str, str]) -> Iterator[tuple[int, dict[str, Any]]]:
        number = 0
        try:
            for batch in file.iter_batches(batch_size=_BLOCK):
                columns = {name: batch.column(i).to_pylist() for i, name in enumerate(batch.schema.names)}
                for values in zip(*columns.values(), strict=True):
                    number += 1
                    found = {}
                    for name, value in zip(columns, values, strict=True):
                        kept = value
                        if not isinstance(value, str | int):
                            kept = json_value(_map(value), f"{place(str(path), number)}, column {name!r}")
                        if kept is not None:
                            found[name] = kept
                    yield number, found
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{path}: cannot be read behind row {number} ({error})") from error

    return Table(path, list(file.schema_arrow.names), rows)


def _map(value: Any) -> Any:
    """Return the rows of a Parquet map, a list of pairs, as a mapping."""
    if isinstance(value, list) and value and all(isinstance(v, tuple) and len(v) == 2 for v in value):
        return dict(value)
    return value


def json_text(value: Any) -> str:
    """Return JSON on one line, as it is written into a cell."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
