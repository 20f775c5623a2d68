"""CSV files and the Cypher script that loads them into Neo4j with ``LOAD CSV``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from graphret.errors import InvalidInput
from graphret.graphs.kinds import Kinds, kind_of
from graphret.graphs.writing import Exported, Progress, no_progress, replacing_folder
from graphret.stores.base import GraphStore
from graphret.stores.neo4j.layout import CONSTRAINT, MARKER, OWN
from graphret.stores.neo4j.names import quote
from graphret.stores.neo4j.preparing import Change, prepared
from graphret.types import Edge, Node

SCRIPT = "load.cypher"
_ROWS_EACH = 10_000
_LISTED = "list of "

#: Characters that may stand for a backslash, which Neo4j's CSV reader eats, and between the items of a list.
_SPARE = "\x1a\x1f\x1e\x1d\x1c\x1b"
_CONVERT = {"integer": "toInteger({})", "float": "toFloat({})", "boolean": "toBoolean({})"}

_Key = tuple[str, ...]


def write_cypher_csv(
    store: GraphStore, folder: str | Path, *, base_url: str = "file:///", progress: Progress = no_progress
) -> Exported:
    """Write a graph as CSV files with the script ``load.cypher``, which loads them into an empty Neo4j 5.

    There is a file for the nodes of each set of labels and one for the edges of each relation. The graph lies in the
    database as `Neo4jStore` writes it: every node also bears a label on which ids are unique, numbers, truth values and
    lists are such, and maps and lists of several kinds are JSON in a string.

    Parameters
    ----------
    store
        The graph; it is gone through twice, in blocks.
    folder
        Where the files go; it is made, or an export that is there is replaced.
    base_url
        Where the server finds the files: by default its folder for imports.

    Raises
    ------
    InvalidInput
        If Neo4j cannot hold something, or a file cannot be written.
    """
    found = _Survey(store)
    with replacing_folder(Path(folder), SCRIPT) as fresh:
        writer = _Writer(fresh, found, base_url)
        total, done = found.n_nodes + found.n_edges, 0
        for change, n in _changes(store):
            writer.add(change)
            progress("write", done := done + n, total)
        (fresh / SCRIPT).write_text(writer.script(), encoding="utf-8", newline="")
    return Exported([Path(folder) / name for name in (*writer.files, SCRIPT)], found.n_nodes, found.n_edges)


def _changes(store: GraphStore) -> Iterator[tuple[Change, int]]:
    """Go through the graph as Neo4j holds it, in blocks, with the number of nodes and edges in each."""
    nodes: list[Node]
    edges: list[Edge]
    for nodes in store.nodes():
        yield prepared(OWN, nodes, (), "json", ()), len(nodes)
    for edges in store.edges():
        yield prepared(OWN, (), edges, "json", ()), len(edges)


class _Survey:
    """What the first pass over the graph finds: the kinds of values, and which spare characters are free."""

    def __init__(self, store: GraphStore) -> None:
        self.n_nodes = self.n_edges = 0
        self.nodes: dict[_Key, Kinds] = {}
        self.edges: dict[_Key, Kinds] = {}
        self._unused = set(_SPARE)
        for change, _ in _changes(store):
            for labels, rows in change.nodes.items():
                self.nodes.setdefault(labels, Kinds()).observe(row[1] for row in rows)
                self._strike(row[1] for row in rows)
                self.n_nodes += len(rows)
            for relation, rows in change.edges.items():
                self.edges.setdefault((relation,), Kinds()).observe(row[4] for row in rows)
                self._strike(row[4] for row in rows)
                self.n_edges += len(rows)

    def _strike(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Strike the spare characters that texts use; those in a list show escaped in its `str`."""
        for values in rows:
            for text in map(str, values.values()):
                for character in [c for c in self._unused if c in text or repr(c)[1:-1] in text]:
                    self._unused.discard(character)

    def spare(self) -> tuple[str, str]:
        """Return two characters that the graph does not use."""
        left = [character for character in _SPARE if character in self._unused]
        if len(left) < 2:
            raise InvalidInput("the graph uses all the control characters that could stand for a backslash in CSV")
        return left[0], left[1]


class _File:
    """A CSV file: its columns, and how Cypher reads each back."""

    def __init__(self, name: str, ends: tuple[str, ...], kinds: Kinds) -> None:
        self.name = name
        self.ends = ends
        self.columns: dict[tuple[str, str], str] = {}
        taken = set(ends)
        for prop in kinds:
            for kind in kinds[prop]:
                simple = prop if re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,60}", prop) else f"property{len(self.columns)}"
                column = simple
                while column in taken:
                    column = f"{column}_{kind.replace(' ', '_')}"
                taken.add(column)
                self.columns[prop, kind] = column

    def header(self) -> list[str]:
        return [*self.ends, *self.columns.values()]

    def row(self, ends: list[str], values: Mapping[str, Any]) -> list[Any]:
        """Return the cells of a row: each value in the column of its name and kind."""
        cells = (values.get(name) if kind_of(values.get(name)) == kind else None for name, kind in self.columns)
        return [*ends, *cells]


class _Writer:
    def __init__(self, folder: Path, found: _Survey, base_url: str) -> None:
        self.folder, self.base_url = folder, base_url
        self.counts = found.n_nodes, found.n_edges
        self.backslash, self.between = found.spare()
        self.nodes = {key: _File(f"nodes-{i:03d}.csv", (), found.nodes[key]) for i, key in _numbered(found.nodes)}
        ends = ("source", "target")
        self.edges = {key: _File(f"edges-{i:03d}.csv", ends, found.edges[key]) for i, key in _numbered(found.edges)}
        for file in (*self.nodes.values(), *self.edges.values()):
            self._append(file, [file.header()])

    @property
    def files(self) -> list[str]:
        return [file.name for file in (*self.nodes.values(), *self.edges.values())]

    def add(self, change: Change) -> None:
        for labels, rows in change.nodes.items():
            file = self.nodes[labels]
            self._append(file, [file.row([], values) for _, values in rows])
        for relation, rows in change.edges.items():
            file = self.edges[relation,]
            self._append(file, [file.row([source, target], values) for source, target, _, _, values in rows])

    def _append(self, file: _File, rows: list[list[Any]]) -> None:
        with (self.folder / file.name).open("a", encoding="utf-8", newline="") as out:
            out.writelines(",".join(map(self._cell, row)) + "\n" for row in rows)

    def _cell(self, value: Any) -> str:
        """Write a value so that nothing is left for Neo4j to guess: a missing one is bare, every other quoted."""
        if value is None:
            return ""
        text = "".join(self.between + _scalar(item) for item in value) if isinstance(value, list) else _scalar(value)
        return '"' + text.replace('"', '""').replace("\\", self.backslash) + '"'

    def script(self) -> str:
        """Return the script that loads the files."""
        return "".join(
            [
                f"// Loads {self.counts[0]:,} nodes and {self.counts[1]:,} edges into an empty Neo4j 5:\n",
                "// cypher-shell --file load.cypher, with the CSV files where the server finds them\n",
                f"// ({self.base_url}). In the Browser, put :auto before each LOAD CSV.\n",
                f"CREATE CONSTRAINT {CONSTRAINT} FOR (n:{quote(MARKER)}) REQUIRE n.id IS UNIQUE;\n",
                *(self._load_nodes(key, file) for key, file in self.nodes.items()),
                *(self._load_edges(key[0], file) for key, file in self.edges.items()),
            ]
        )

    def _load_nodes(self, labels: _Key, file: _File) -> str:
        return self._load(file, f"CREATE (x:{':'.join(map(_quoted, (MARKER, *labels)))})")

    def _load_edges(self, relation: str, file: _File) -> str:
        ends = (f"MATCH ({end}:{quote(MARKER)} {{id: {self._read(end)}}})" for end in file.ends)
        return self._load(file, f"{' '.join(ends)} CREATE (source)-[x:{_quoted(relation)}]->(target)")

    def _load(self, file: _File, create: str) -> str:
        properties: dict[str, list[str]] = {}
        for (name, kind), column in file.columns.items():
            properties.setdefault(name, []).append(self._converted(column, kind))
        settings = ", ".join(
            f"x.{_quoted(name)} = {said[0] if len(said) == 1 else f'coalesce({chr(44).join(said)})'}"
            for name, said in properties.items()
        )
        return (
            f"LOAD CSV WITH HEADERS FROM {_literal(self.base_url + file.name)} AS row\n"
            f"  CALL {{ WITH row {create}{f' SET {settings}' if settings else ''} }} "
            f"IN TRANSACTIONS OF {_ROWS_EACH} ROWS;\n"
        )

    def _read(self, column: str) -> str:
        """Return the text of a column, with its backslashes."""
        return f"replace(row.{quote(column)}, {_literal(self.backslash)}, {_literal(chr(92))})"

    def _converted(self, column: str, kind: str) -> str:
        """Return the expression for the value that was written into a column."""
        if not kind.startswith(_LISTED):
            return _CONVERT[kind].format(f"row.{quote(column)}") if kind in _CONVERT else self._read(column)
        item = _CONVERT.get(kind.removeprefix(_LISTED), "{}").format("i")
        row = f"row.{quote(column)}"
        items = f"split(substring({self._read(column)}, 1), {_literal(self.between)})"
        return f"CASE WHEN {row} IS NULL THEN null WHEN {row} = '' THEN [] ELSE [i IN {items} | {item}] END"


def _quoted(name: str) -> str:
    """Return a name in backticks on one line, so that every statement of the script ends at a line's end."""
    return "".join(f"\\u{ord(c):04X}" if ord(c) < 32 else c for c in quote(name))


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + "".join(f"\\u{ord(c):04X}" if ord(c) < 32 else c for c in escaped) + "'"


def _numbered(keys: Iterable[_Key]) -> Iterator[tuple[int, _Key]]:
    return enumerate(sorted(keys), 1)


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)
