"""Node and edge tables become a graph: CSV and Parquet through pyarrow, JSON Lines, GraphML through networkx."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphret.errors import InvalidInput, MissingDependency
from graphret.graphs.columns import Columns
from graphret.graphs.tables import GraphTables, json_value, parsed_json

SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet", ".graphml")
_BLOCK_BYTES = 1 << 24
_BLOCK_ROWS = 1 << 16

#: What a column of CSV must hold throughout to be of a type; ``007`` and numbers of more than 15 digits stay text.
_INTEGER = r"0|-?[1-9][0-9]{0,14}"
_FLOAT = rf"{_INTEGER}|-?(0|[1-9][0-9]{{0,14}})\.[0-9]{{1,17}}([eE][-+]?[0-9]{{1,2}})?"
_PATTERNS = {"integer": _INTEGER, "float": _FLOAT, "boolean": "(?i)true|false"}
_TRUTH = {"true": True, "false": False}
_READERS: dict[str, Callable[[str], Any]] = {
    "integer": int,
    "float": float,
    "boolean": lambda text: _TRUTH[text.lower()],
    "json": parsed_json,
}
_Rows = Iterator[tuple[int, dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class _Table:
    """A table: its columns, and what goes through its rows, without missing values, given the types of columns.

    Rows have their lines in JSON Lines, and else their numbers, of which the header of CSV is the first.
    """

    path: Path
    header: list[str]
    rows: Callable[[Mapping[str, str]], _Rows]

    def place(self, number: int) -> str:
        """Return the words for a row."""
        return f"{self.path}, {'line' if self.path.suffix.lower() == '.jsonl' else 'row'} {number}"


def read_tables(
    sources: str | Path | Iterable[str | Path],
    columns: Columns | None = None,
    *,
    suffixes: Sequence[str] = SUFFIXES,
    make_nodes: bool = False,
) -> GraphTables:
    """Read node tables and edge tables: CSV, TSV, JSON Lines or Parquet; a GraphML file is one of each.

    Parameters
    ----------
    sources
        Files, and folders of them; a table with a column for the source and one for the target holds edges, any other
        nodes. GraphML is held in memory by networkx; the others are read in blocks.
    columns
        Which columns hold what; by default those of the usual names.
    suffixes
        The types of files that are read from a folder.
    make_nodes
        Make a node of an id that only an edge has, with the default label and the id as its name, where such an edge is
        refused otherwise.

    Raises
    ------
    InvalidInput
        If a file is malformed, an id comes twice, an edge dangles; the message names the file, and the line or row.
    MissingDependency
        If pyarrow or networkx is not installed and a file needs it.
    """
    columns = columns or Columns()
    given = [sources] if isinstance(sources, str | Path) else list(sources)
    found = [table for source in given for path in _files(Path(source), suffixes) for table in _open(path, columns)]
    columns.require_in(list(dict.fromkeys(name for table in found for name in table.header)), "the source")
    tables = GraphTables()
    edges = [table for table in found if columns.has_edges(table.header)]
    for table in found:
        if table not in edges:
            _read(table, columns, tables, make_nodes, _add_node)
    if len(edges) == len(found) and not make_nodes:
        raise InvalidInput(f"{', '.join(map(str, given))}: no table of nodes; edges alone need --make-nodes")
    for table in edges:
        _read(table, columns, tables, make_nodes, _add_edge)
    return tables


def _files(source: Path, suffixes: Sequence[str]) -> list[Path]:
    if not source.is_dir():
        return [source]
    found = sorted(path for path in source.iterdir() if path.suffix.lower() in suffixes and path.is_file())
    if not found:
        raise InvalidInput(f"{source}: holds no table ({', '.join(suffixes)})")
    return found


def _read(table: _Table, columns: Columns, tables: GraphTables, make_nodes: bool, add: Callable[..., None]) -> None:
    """Add the rows of a table to the graph, and name the line of one that is refused."""
    try:
        roles = columns.roles(table.header)
    except InvalidInput as error:
        raise InvalidInput(f"{table.path}: {error}") from error
    own = {column: "float" if role == "weight" else "string" for role, column in roles.items()}
    for number, values in table.rows({**columns.types, **own}):
        try:
            add(tables, values, roles, columns, make_nodes)
        except InvalidInput as error:
            raise InvalidInput(f"{table.place(number)}: {error}") from error


def _add_node(
    tables: GraphTables, row: dict[str, Any], roles: dict[str, str], columns: Columns, make_nodes: bool
) -> None:
    node_id, name, text = (_text(row, roles, role) for role in ("id", "name", "text"))
    labels: Any = row.pop(roles["label"], None) if "label" in roles else None
    if isinstance(labels, str):
        labels = parsed_json(labels) if labels.startswith("[") else labels.split(columns.label_separator)
    if labels is None:
        labels = [columns.default_label]
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise InvalidInput(f"labels are a string or a list of strings, not {labels!r}")
    own = tuple(dict.fromkeys(label.strip() for label in labels))
    # Of its own files, Parquet has the first label as `type` besides, and GraphML as `label`.
    for column in ("type", "label"):
        if roles.get("label") == "labels" and row.get(column) == next(iter(own), ""):
            del row[column]
    tables.node(node_id, own, name, text, _properties(row, roles))


def _add_edge(
    tables: GraphTables, row: dict[str, Any], roles: dict[str, str], columns: Columns, make_nodes: bool
) -> None:
    source, target, relation = (_text(row, roles, role) for role in ("source", "target", "relation"))
    for role, end in (("source", source), ("target", target)):
        if not end:
            raise InvalidInput(f"an edge is expected, but the {role} is empty; nodes go in files of their own")
        if make_nodes and end not in tables:
            tables.node(end, (columns.default_label,), end)
    weight = row.pop(roles["weight"], 1.0) if "weight" in roles else 1.0
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        raise InvalidInput(f"the weight must be a number, not {weight!r}")
    tables.edge(source, relation or columns.default_relation or "", target, float(weight), _properties(row, roles))


def _text(row: dict[str, Any], roles: dict[str, str], role: str) -> str:
    """Take an id, a name or a text from a row; a whole number may stand for one."""
    value = row.pop(roles[role], "") if role in roles else ""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise InvalidInput(f"the {role} must be a string or a whole number, not {value!r}")


def _properties(row: dict[str, Any], roles: dict[str, str]) -> dict[str, Any]:
    """Return what is left of a row, and the fields of its column of properties."""
    value = row.pop(roles["properties"], None) if "properties" in roles else None
    if value is None or value == "{}":
        return row
    more = parsed_json(value) if isinstance(value, str) else value
    if not isinstance(more, dict):
        raise InvalidInput(f"the properties must be a JSON object, not {value!r}")
    if both := more.keys() & row.keys():
        raise InvalidInput(f"the property {min(both)!r} is also a column")
    return {**row, **more}


def _open(path: Path, columns: Columns) -> list[_Table]:
    """Open a file of any of `SUFFIXES`."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InvalidInput(f"{path}: unknown type of table {suffix!r}; known are {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise InvalidInput(f"{path}: no such file")
    if suffix in (".csv", ".tsv"):
        return [_delimited(path, columns.delimiter or ("\t" if suffix == ".tsv" else ","))]
    if suffix == ".graphml":
        return _graphml(path)
    return [_parquet(path) if suffix == ".parquet" else _json_lines(path)]


@contextmanager
def _arrow(path: Path) -> Iterator[Any]:
    """Yield pyarrow; what it raises names the file."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingDependency("pyarrow", "import", f"Reading {path.suffix[1:]} files") from error
    try:
        yield pa
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: cannot be read: {error}") from error


def _delimited(path: Path, delimiter: str) -> _Table:
    def batches(pa: Any, header: Sequence[str]) -> Any:
        from pyarrow import csv as arrow_csv

        return arrow_csv.open_csv(
            path,
            arrow_csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
            arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            arrow_csv.ConvertOptions(column_types=dict.fromkeys(header, pa.string())),
        )

    with _arrow(path) as pa:
        header: list[str] = batches(pa, ()).schema.names
    if len(set(header)) < len(header) or not all(name.strip() for name in header):
        raise InvalidInput(f"{path}, line 1: a column has no name, or two have the same: {', '.join(header)}")

    def rows(types: Mapping[str, str]) -> _Rows:
        with _arrow(path) as pa:
            kinds = _guessed(batches(pa, header), [name for name in header if name not in types]) | dict(types)
            first = 2
            for batch in batches(pa, header):
                found = [_converted(path, name, kinds[name], batch[name].to_pylist(), first) for name in header]
                for number, values in enumerate(zip(*found, strict=True), first):
                    yield number, {name: value for name, value in zip(header, values, strict=True) if value != ""}
                first += batch.num_rows

    return _Table(path, header, rows)


def _guessed(batches: Iterable[Any], names: list[str]) -> dict[str, str]:
    """Return the type of each column: the first of `_PATTERNS` that every value has which is not empty, else string."""
    import pyarrow.compute as pc

    fitting = {name: list(_PATTERNS) for name in names}
    seen: set[str] = set()
    for batch in batches if names else ():
        for name, kinds in fitting.items():
            column = batch[name].filter(pc.not_equal(batch[name], ""))
            if len(column):
                seen.add(name)
            fitting[name] = [
                kind
                for kind in kinds
                if pc.all(pc.match_substring_regex(column, f"^(?:{_PATTERNS[kind]})$"), min_count=0).as_py()
            ]
    return {name: kinds[0] if kinds and name in seen else "string" for name, kinds in fitting.items()}


def _converted(path: Path, name: str, kind: str, texts: list[str], first: int) -> list[Any]:
    """Return the values of a column; an `InvalidInput` names the row of one that is not of the type."""
    if kind == "string":
        return texts
    read, found = _READERS[kind], []
    for number, text in enumerate(texts, first):
        try:
            found.append(read(text) if text else "")
        except (ValueError, KeyError) as error:
            said = f"{path}, row {number}, column {name!r}: {text!r} is not of the type {kind}"
            raise InvalidInput(said) from error
    return found


def _parquet(path: Path) -> _Table:
    with _arrow(path):
        from pyarrow import parquet

        header: list[str] = parquet.read_schema(path).names

    def rows(types: Mapping[str, str]) -> _Rows:
        with _arrow(path), parquet.ParquetFile(path) as file:
            first = 1
            for batch in file.iter_batches(_BLOCK_ROWS):
                columns = [list(map(json_value, column.to_pylist())) for column in batch.columns]
                for number, values in enumerate(zip(*columns, strict=True), first):
                    yield number, {name: value for name, value in zip(header, values, strict=True) if value is not None}
                first += batch.num_rows

    return _Table(path, header, rows)


def _json_lines(path: Path) -> _Table:
    def rows(types: Mapping[str, str]) -> _Rows:
        for line, text in numbered_lines(path):
            try:
                value = parsed_json(text)
            except InvalidInput as error:
                raise InvalidInput(f"{path}, line {line}: {error}") from error
            if not isinstance(value, dict):
                raise InvalidInput(f"{path}, line {line}: a JSON object is expected, not {type(value).__name__}")
            yield line, {name: own for name, own in value.items() if own is not None}

    header = list(dict.fromkeys(name for _, row in rows({}) for name in row))
    if not header:
        raise InvalidInput(f"{path}: is empty, and no table")
    return _Table(path, header, rows)


def _graphml(path: Path) -> list[_Table]:
    try:
        import networkx as nx
    except ImportError as error:
        raise MissingDependency("networkx", "import", "Reading GraphML") from error
    try:
        graph = nx.read_graphml(path)
    except (nx.NetworkXError, SyntaxError, ValueError, KeyError) as error:  # ElementTree's errors are SyntaxErrors
        raise InvalidInput(f"{path}: is no GraphML ({error})") from error
    nodes = [{"id": node, **fields} for node, fields in graph.nodes(data=True)]
    edges = [{"source": source, "target": target, **fields} for source, target, fields in graph.edges(data=True)]
    found = []
    for rows, needed in ((nodes, ("id",)), (edges, ("source", "target"))):
        header = list(dict.fromkeys((*needed, *(name for row in rows for name in row))))
        if rows:
            found.append(_Table(path, header, lambda types, rows=rows: enumerate(map(dict, rows), 1)))  # type: ignore[misc]
    return found


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Go through the lines of a UTF-8 file that are not blank, with their numbers from 1.

    Raises
    ------
    InvalidInput
        If there is no such file, it cannot be read, or a line is not UTF-8; the last names the line.
    """
    number = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").removesuffix("\n").removesuffix("\r")
                if text.strip():
                    yield number, text
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}, line {number}: not UTF-8 ({error.reason})") from error
    except FileNotFoundError as error:
        raise InvalidInput(f"{path}: no such file") from error
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror or error}") from error
