"""Read node and edge tables: CSV, Parquet, JSON Lines and GraphML."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from graphret.errors import InvalidInput
from graphret.graphs.columns import Columns
from graphret.graphs.tables import GraphTables, parsed_json, required
from graphret.validation import json_value

_BLOCK_ROWS = 1 << 16

#: Patterns that all values of a CSV column must match for a type; ``007`` and numbers
#: of more than 15 digits stay text.
_INTEGER = r"0|-?[1-9][0-9]{0,14}"
_FLOAT = rf"{_INTEGER}|-?(0|[1-9][0-9]{{0,14}})\.[0-9]{{1,17}}([eE][-+]?[0-9]{{1,2}})?"
#: The fields that Gephi writes for every node; its label is the name.
_GEPHI = {"label", "r", "g", "b"}
_TYPES = {"int64": _INTEGER, "double": _FLOAT, "bool": "(?i)true|false"}


class _Table(NamedTuple):
    """A table: its columns, and its numbered rows, without missing values.

    Rows of JSON Lines are numbered by lines, others by rows, where the header of CSV is
    the first.
    """

    path: Path
    header: list[str]
    rows: Iterable[tuple[int, dict[str, Any]]]


def read_tables(
    sources: str | Path | Iterable[str | Path],
    columns: Columns | None = None,
    *,
    suffixes: Iterable[str] | None = None,
    make_nodes: bool = False,
) -> GraphTables:
    """Read node and edge tables: CSV, TSV, JSON Lines, Parquet or GraphML.

    A GraphML file holds one table of each kind.

    Parameters
    ----------
    sources
        Files, and folders of them; a table with a column for the source and one for the
        target holds edges, any other nodes.
    columns
        Which columns hold what; by default those with the usual names.
    suffixes
        The types of files to read from a folder; all of `SUFFIXES` by default.
    make_nodes
        Make a node for an id that only edges have, with the default label and the id as
        its name. By default such an edge is refused.

    Raises
    ------
    InvalidInput
        If a file is malformed, an id comes twice, an edge dangles; the message names
        the file, and the line or row.
    MissingDependency
        If a library is not installed: pyarrow for CSV and Parquet, networkx for
        GraphML.
    """
    columns = columns or Columns()
    listed = [sources] if isinstance(sources, str | Path) else list(sources)
    types = SUFFIXES if suffixes is None else tuple(suffixes)
    opened = [
        table for source in listed for table in _opened(Path(source), types, columns)
    ]
    columns.require_in(
        list(dict.fromkeys(name for table in opened for name in table.header)),
        "the source",
    )
    if not make_nodes and all(columns.has_edges(table.header) for table in opened):
        raise InvalidInput(
            f"{', '.join(map(str, listed))}: no table of nodes; edges alone need"
            " --make-nodes"
        )
    tables = GraphTables()
    nodes_first = sorted(opened, key=lambda table: columns.has_edges(table.header))
    for path, header, rows in nodes_first:
        has_edges, roles = columns.has_edges(header), columns.roles(header, path)
        for number, row in rows:
            try:
                if has_edges:
                    _add_edge(tables, row, roles, columns, make_nodes)
                else:
                    _add_node(tables, row, roles, columns)
            except InvalidInput as error:
                unit = "line" if path.suffix.lower() == ".jsonl" else "row"
                raise InvalidInput(f"{path}, {unit} {number}: {error}") from error
    return tables


def _opened(
    source: Path, suffixes: tuple[str, ...], columns: Columns
) -> Iterator[_Table]:
    """Open a file, or the files of a folder."""
    paths = [source]
    if source.is_dir():
        paths = sorted(
            path
            for path in source.iterdir()
            if path.suffix.lower() in suffixes and path.is_file()
        )
        if not paths:
            raise InvalidInput(f"{source}: holds no table ({', '.join(suffixes)})")
    for path in paths:
        if (opener := _OPENERS.get(path.suffix.lower())) is None:
            raise InvalidInput(
                f"{path}: unknown type of table {path.suffix!r}; known are"
                f" {', '.join(SUFFIXES)}"
            )
        if not path.is_file():
            raise InvalidInput(f"{path}: no such file")
        yield from opener(path, columns)


def _add_node(
    tables: GraphTables, row: dict[str, Any], roles: dict[str, str], columns: Columns
) -> None:
    node_id, name, text = (_text(row, roles, role) for role in ("id", "name", "text"))
    for role in ("id", "name", "text"):
        row.pop(roles.get(role, ""), None)
    labels: Any = row.pop(roles["label"], None) if "label" in roles else None
    if isinstance(labels, str):
        labels = _labels(labels)
    if labels is None:
        labels = [columns.default_label]
    if not isinstance(labels, list) or not all(
        isinstance(label, str) for label in labels
    ):
        raise InvalidInput(
            f"labels: expected a string or a list of strings, got {labels!r}"
        )
    node_labels = tuple(dict.fromkeys(label.strip() for label in labels))
    # graphret's own Parquet files also have the first label as `type`, its GraphML
    # files as `label`.
    first_label = next(iter(node_labels), "")
    for column in ("type", "label"):
        if roles.get("label") == "labels" and row.get(column) == first_label:
            del row[column]
    tables.node(node_id, node_labels, name, text, _properties(row, roles))


def _labels(text: str) -> Any:
    """Return the labels in a text: JSON, semicolons, or APOC's ``:Person:Actor``."""
    if text.startswith("["):
        return parsed_json(text)
    if text.startswith(":"):
        return text[1:].split(":")
    return text.split(";") if text else None


def _add_edge(
    tables: GraphTables,
    row: dict[str, Any],
    roles: dict[str, str],
    columns: Columns,
    make_nodes: bool,
) -> None:
    header = [*row]
    source, target, relation = (
        _text(row, roles, role) for role in ("source", "target", "relation")
    )
    for role in ("source", "target", "relation"):
        row.pop(roles.get(role, ""), None)
    for role, end in (("source", source), ("target", target)):
        if not end:
            raise InvalidInput(
                f"expected an edge, but the {role} is empty; nodes go in files of"
                " their own"
            )
        if make_nodes and not tables.id_of(end):
            tables.node(end, (columns.default_label,), end)
    weight = row.pop(roles["weight"], 1.0) if "weight" in roles else 1.0
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        raise InvalidInput(f"weight: expected a number, got {weight!r}")
    tables.edge(
        tables.id_of(source) or source,
        relation or columns.relation_of(header),
        tables.id_of(target) or target,
        float(weight),
        _properties(row, roles),
    )


def _text(row: dict[str, Any], roles: dict[str, str], role: str) -> str:
    """Return the id, name or text of a row as a string; it may be a whole number."""
    value = row.get(roles[role], "") if role in roles else ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InvalidInput(
            f"{role}: expected a string or a whole number, got {value!r}"
        )
    return str(value)


def _properties(row: dict[str, Any], roles: dict[str, str]) -> dict[str, Any]:
    """Return a row's remaining columns, and the fields of its properties column."""
    value = row.pop(roles["properties"], None) if "properties" in roles else None
    if value is None or value == "{}":
        return row
    more = parsed_json(value) if isinstance(value, str) else value
    if not isinstance(more, dict):
        raise InvalidInput(f"properties: expected a JSON object, got {value!r}")
    return {**row, **more}


@contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    """Make errors of reading a file name it, Arrow's too, which are `ValueError`."""
    try:
        yield
    except (ValueError, NotImplementedError, OSError, csv.Error) as error:
        raise InvalidInput(f"{path}: cannot be read: {error}") from error


def _csv(path: Path, columns: Columns) -> list[_Table]:
    pa = required("pyarrow", "import", "Reading CSV")
    arrow_csv = required("pyarrow.csv", "import", "Reading CSV")
    delimiter = columns.delimiter or ("\t" if path.suffix.lower() == ".tsv" else ",")
    with (
        _named_errors(path),
        path.open(encoding="utf-8-sig", errors="replace", newline="") as file,
    ):
        header = next(csv.reader(file, delimiter=delimiter), [])
    if (
        not header
        or len(set(header)) < len(header)
        or not all(name.strip() for name in header)
    ):
        raise InvalidInput(
            f"{path}, line 1: a column has no name, or two have the same:"
            f" {', '.join(header)}"
        )

    def rows() -> Iterator[dict[str, Any]]:
        texts = [
            name
            for role, name in columns.roles(header, path).items()
            if role != "weight"
        ]
        with _named_errors(path):
            text = dict.fromkeys(header, pa.string())
            table = arrow_csv.read_csv(
                path,
                # with threads an error names no row
                arrow_csv.ReadOptions(use_threads=False),
                arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                arrow_csv.ConvertOptions(
                    column_types=text, null_values=[""], strings_can_be_null=True
                ),
            )
        typed = [
            table[name] if name in texts else _typed(table[name]) for name in header
        ]
        for batch in pa.table(typed, header).to_batches(_BLOCK_ROWS):
            yield from (
                {name: value for name, value in row.items() if value is not None}
                for row in batch.to_pylist()
            )

    return [_Table(path, header, enumerate(rows(), 2))]


def _typed(column: Any) -> Any:
    """Return a column as the first type whose pattern all its values match, or text."""
    pc = required("pyarrow.compute", "import", "Reading CSV")
    for kind, pattern in _TYPES.items():
        if pc.all(pc.match_substring_regex(column, f"^(?:{pattern})$")).as_py():
            return column.cast(kind)
    return column


def _parquet(path: Path, columns: Columns) -> list[_Table]:
    parquet = required("pyarrow.parquet", "import", "Reading Parquet")

    def rows() -> Iterator[dict[str, Any]]:
        with _named_errors(path), parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(_BLOCK_ROWS):
                yield from map(json_value, batch.to_pylist())

    with _named_errors(path):
        return [_Table(path, parquet.read_schema(path).names, enumerate(rows(), 1))]


def _json_lines(path: Path, columns: Columns) -> list[_Table]:
    rows = []
    for line, text in numbered_lines(path):
        try:
            value = parsed_json(text)
        except InvalidInput as error:
            raise InvalidInput(f"{path}, line {line}: {error}") from error
        if not isinstance(value, dict):
            raise InvalidInput(
                f"{path}, line {line}: expected a JSON object, got"
                f" {type(value).__name__}"
            )
        row = {name: field for name, field in value.items() if field is not None}
        rows.append((line, row))
    return [
        _Table(path, list(dict.fromkeys(name for _, row in rows for name in row)), rows)
    ]


def _graphml(path: Path, columns: Columns) -> list[_Table]:
    nx = required("networkx", "import", "Reading GraphML")
    try:
        graph = nx.read_graphml(path)
    # ElementTree's errors are SyntaxErrors.
    except (nx.NetworkXError, SyntaxError, ValueError, KeyError) as error:
        raise InvalidInput(f"{path}: expected GraphML: {error}") from error
    of_gephi = any(fields.keys() >= _GEPHI for _, fields in graph.nodes(data=True))
    nodes = [
        {"id": node, **(_renamed(fields, "label", "name") if of_gephi else fields)}
        for node, fields in graph.nodes(data=True)
    ]
    label = "Edge Label" if of_gephi else "label"  # as APOC calls a relation
    edges = [
        {"source": source, "target": target, **_renamed(fields, label, "relation")}
        for source, target, fields in graph.edges(data=True)
    ]
    return [
        _Table(
            path,
            list(dict.fromkeys((*needed, *chain.from_iterable(rows)))),
            enumerate(rows, 1),
        )
        for rows, needed in ((nodes, ("id",)), (edges, ("source", "target")))
    ]


def _renamed(fields: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    """Return fields with one renamed, unless there is one with the new name."""
    if old not in fields or new in fields or (new == "relation" and "type" in fields):
        return fields
    return {new if name == old else name: value for name, value in fields.items()}


_OPENERS = {
    ".csv": _csv,
    ".tsv": _csv,
    ".jsonl": _json_lines,
    ".parquet": _parquet,
    ".graphml": _graphml,
}
#: The types of files that hold tables.
SUFFIXES = tuple(_OPENERS)


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a UTF-8 file that are not blank, numbered from 1."""
    number = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip(
                    "\r\n"
                )
                if text.strip():
                    yield number, text
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path}, line {number}: not UTF-8 ({error.reason})"
        ) from error
    except OSError as error:
        raise InvalidInput(
            f"{path}: cannot be read: {error.strerror or error}"
        ) from error
