"""Node and edge tables become a graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from graphret.errors import InvalidInput
from graphret.graphs.builder import TablesBuilder
from graphret.graphs.columns import ROLES, Columns
from graphret.graphs.places import place
from graphret.graphs.rows import SUFFIXES, Table, open_table
from graphret.graphs.tables import GraphTables
from graphret.graphs.values import json_object


def read_tables(
    sources: str | Path | Iterable[str | Path],
    columns: Columns | None = None,
    *,
    suffixes: Sequence[str] = SUFFIXES,
    make_nodes: bool = False,
) -> GraphTables:
    """Read node tables and edge tables: CSV, TSV, JSON Lines or Parquet.

    Parameters
    ----------
    sources
        Files, and folders of them; a table with a column for the source and one for the target holds edges, any other
        nodes.
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
        If a file is malformed, an id comes twice, an edge dangles; the message names the file and the line.
    MissingDependency
        If a file is Parquet and pyarrow is not installed.
    """
    columns = columns or Columns()
    given = [sources] if isinstance(sources, str | Path) else list(sources)
    tables = [open_table(path, columns) for source in given for path in _files(Path(source), suffixes)]
    _check_named(columns, tables)
    builder = TablesBuilder()
    kinds = {table.path: columns.has_edges(table.header) for table in tables}
    for table in tables:
        if not kinds[table.path]:
            _read_nodes(table, columns, builder)
    for table in tables:
        if kinds[table.path]:
            _read_edges(table, columns, builder, make_nodes)
    if not len(builder) and all(kinds.values()):
        raise InvalidInput(f"{', '.join(map(str, given))}: no table of nodes; edges alone need --make-nodes")
    return builder.finish()


def _files(source: Path, suffixes: Sequence[str]) -> list[Path]:
    if not source.is_dir():
        return [source]
    found = sorted(path for path in source.iterdir() if path.suffix.lower() in suffixes and path.is_file())
    if not found:
        raise InvalidInput(f"{source}: holds no table ({', '.join(suffixes)})")
    return found


def _check_named(columns: Columns, tables: list[Table]) -> None:
    """Refuse a column that was asked for and that no table has."""
    seen = ", ".join(map(repr, dict.fromkeys(name for table in tables for name in table.header)))
    for role in ROLES:
        named = columns.chosen(role)
        if named is not None and not any(named in table.header for table in tables):
            raise InvalidInput(f"--{role}-column: no table has a column {named!r}; the columns are {seen}")
    for named in columns.types:
        if not any(named in table.header for table in tables):
            raise InvalidInput(f"--type: no table has a column {named!r}; the columns are {seen}")


def _read_nodes(table: Table, columns: Columns, builder: TablesBuilder) -> None:
    file = str(table.path)
    roles = columns.roles(table.header, file)
    texts = {roles[role]: "string" for role in ("id", "label", "name", "text", "properties") if role in roles}
    separator, default = columns.label_separator, (columns.default_label,)
    for line, row in table.rows({**columns.types, **texts}):
        node_id = _string(row.pop(roles["id"], ""), "id", file, line)
        labels = row.pop(roles["label"], None) if "label" in roles else None
        name = _string(row.pop(roles["name"], ""), "name", file, line) if "name" in roles else ""
        if not name and columns.name is not None:
            raise InvalidInput(f"{place(file, line)}: the name of {node_id!r} is empty")
        text = _string(row.pop(roles["text"], ""), "text", file, line) if "text" in roles else ""
        own = _labels(labels, separator, file, line) if labels is not None else default
        if roles.get("label") == "labels" and row.get("type") == next(iter(own), ""):
            del row["type"]  # the layout of `write_parquet` has both
        builder.node(
            node_id,
            own,
            name,
            text,
            _properties(row, roles, file, line),
            file,
            line,
        )


def _read_edges(table: Table, columns: Columns, builder: TablesBuilder, make_nodes: bool) -> None:
    file = str(table.path)
    roles = columns.roles(table.header, file)
    texts = {roles[role]: "string" for role in ("source", "target", "relation", "properties") if role in roles}
    if "weight" in roles:
        texts[roles["weight"]] = "float"
    for line, row in table.rows({**columns.types, **texts}):
        ends = []
        if roles["source"] not in row and roles["target"] not in row:
            raise InvalidInput(f"{place(file, line)}: {_no_edge(roles, row)}")
        for role in ("source", "target"):
            end = _string(row.pop(roles[role], ""), role, file, line)
            if not end:
                raise InvalidInput(f"{place(file, line)}: the {role} is empty")
            if make_nodes and end not in builder:
                builder.node(end, (columns.default_label,), end, "", {}, file, line)
            ends.append(end)
        relation = _string(row.pop(roles["relation"], ""), "relation", file, line) if "relation" in roles else ""
        weight = row.pop(roles["weight"], 1.0) if "weight" in roles else 1.0
        if isinstance(weight, bool) or not isinstance(weight, int | float):
            raise InvalidInput(f"{place(file, line)}: the weight must be a number, not {weight!r}")
        builder.edge(
            ends[0],
            relation or columns.default_relation or "",
            ends[1],
            float(weight),
            _properties(row, roles, file, line),
            file,
            line,
        )


def _no_edge(roles: dict[str, str], row: dict[str, Any]) -> str:
    """What is said of a row that has none of an edge's ends, as a node has none."""
    found = f"only {', '.join(map(repr, row))}" if row else "nothing"
    return (
        f"an edge is expected, with {roles['source']!r} and {roles['target']!r}, as elsewhere in this file, but there "
        f"{'are' if len(row) > 1 else 'is'} {found}; nodes and edges go in files of their own (`graphret build` reads "
        "them from one)"
    )


def _string(value: Any, what: str, file: str, line: int) -> str:
    """Return an id, a name or a text; a whole number may stand for one."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise InvalidInput(f"{place(file, line)}: the {what} must be a string or a whole number, not {value!r}")


def _labels(value: Any, separator: str, file: str, line: int) -> tuple[str, ...]:
    labels = value.split(separator) if isinstance(value, str) else value
    if not isinstance(labels, list) or not all(isinstance(one, str) for one in labels):
        raise InvalidInput(f"{place(file, line)}: labels are a string or a list of strings, not {value!r}")
    return tuple(dict.fromkeys(one.strip() for one in labels))


def _properties(row: dict[str, Any], roles: dict[str, str], file: str, line: int) -> dict[str, Any]:
    """Return what is left of a row, and the fields of its column of properties."""
    if "properties" not in roles or roles["properties"] not in row:
        return row
    value = row.pop(roles["properties"])
    where = f"{place(file, line)}, {roles['properties']!r}"
    more = json_object(value, where) if isinstance(value, str) else value
    if not isinstance(more, dict):
        raise InvalidInput(f"{where}: a JSON object is expected, not {value!r}")
    for name in more:
        if name in row:
            raise InvalidInput(f"{where}: the property {name!r} is also a column")
    return {**row, **more}
