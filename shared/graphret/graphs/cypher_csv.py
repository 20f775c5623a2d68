"""CSV files and the Cypher script that loads them into Neo4j with ``LOAD CSV``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from graphret.errors import InvalidInput
from graphret.graphs.kinds import JSON, Kinds, kind_of, plain_text
from graphret.graphs.writing import Exported, Progress, no_progress, replacing_folder
from graphret.stores.base import GraphStore
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

    There is a file for the nodes of each tuple of labels, and one for the edges of each relation between two primary
    labels. The script makes a constraint that ids are unique under each primary label, and keeps numbers, truth values
    and lists as such; maps and lists of several kinds are JSON in a string. A property that is called like one of the
    node's own fields (``id``, ``name``, ``text``) or the edge's ``weight`` is refused.

    Parameters
    ----------
    store
        The graph; it is gone through twice, in blocks. The primary label of every node is held in memory meanwhile.
    folder
        Where the files go; it is made, or an export that is there is replaced.
    base_url
        Where the server finds the files: by default its folder for imports.

    Raises
    ------
    InvalidInput
        If a property's name is taken, or a file cannot be written.
    """
    found = _survey(store)
    with replacing_folder(Path(folder), SCRIPT) as fresh:
        writer = _Writer(fresh, found, base_url)
        total = sum(store.count())
        done = 0
        for node_block in store.nodes():
            writer.add_nodes(node_block)
            progress("write", done := done + len(node_block), total)
        for edge_block in store.edges():
            writer.add_edges(edge_block)
            progress("write", done := done + len(edge_block), total)
        (fresh / SCRIPT).write_text(writer.script(), encoding="utf-8", newline="")
    return Exported([Path(folder) / name for name in (*writer.files, SCRIPT)], found.n_nodes, found.n_edges)


class _Survey:
    """What the first pass over the graph finds."""

    def __init__(self) -> None:
        self.n_nodes = self.n_edges = 0
        self.nodes: dict[_Key, Kinds] = {}
        self.edges: dict[_Key, Kinds] = {}
        self.primary: dict[str, str] = {}
        self.unused = set(_SPARE)

    def spare(self) -> tuple[str, str]:
        """Return two characters that the graph does not use."""
        left = [character for character in _SPARE if character in self.unused]
        if len(left) < 2:
            raise InvalidInput("the graph uses all the control characters that could stand for a backslash in CSV")
        return left[0], left[1]


def _survey(store: GraphStore) -> _Survey:
    found = _Survey()
    for node_block in store.nodes():
        for node in node_block:
            found.primary[node.id] = node.label
            _observe(found, found.nodes, tuple(node.labels), node.properties, ("id", "name", "text"), node.id)
            _used(found, (node.id, node.name, node.text))
        found.n_nodes += len(node_block)
    for edge_block in store.edges():
        for edge in edge_block:
            key = found.primary[edge.source], edge.relation, found.primary[edge.target]
            _observe(found, found.edges, key, edge.properties, ("weight",), f"{edge.source} to {edge.target}")
        found.n_edges += len(edge_block)
    return found


def _observe(
    found: _Survey,
    kinds: dict[_Key, Kinds],
    key: _Key,
    properties: Mapping[str, Any],
    own: tuple[str, ...],
    item: str,
) -> None:
    known = kinds.get(key)
    if known is None:
        known = kinds[key] = Kinds()
    if properties:
        for name in own:
            if name in properties:
                raise InvalidInput(f"{item!r}: the property {name!r} has the name of a field of its own")
        known.observe([properties])
        _used(found, map(str, properties.values()))


def _used(found: _Survey, texts: Iterable[str]) -> None:
    """Strike the spare characters that a text uses; those in a list show escaped in its `str`."""
    for text in texts:
        for character in [one for one in found.unused if one in text or repr(one)[1:-1] in text]:
            found.unused.discard(character)


class _File:
    """A CSV file: its columns, and how Cypher reads each back."""

    def __init__(self, name: str, own: Mapping[str, str], kinds: Kinds) -> None:
        self.name = name
        self.own = own
        self.columns: dict[tuple[str, str], str] = {}
        self.rows = 0
        taken = set(own)
        for prop in kinds:
            for kind in kinds[prop]:
                simple = prop if re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,60}", prop) else f"property{len(self.columns)}"
                column = simple
                while column in taken:
                    column = f"{column}_{kind.replace(' ', '_')}"
                taken.add(column)
                self.columns[prop, kind] = column

    def header(self) -> list[str]:
        return [*self.own, *self.columns.values()]


class _Writer:
    def __init__(self, folder: Path, found: _Survey, base_url: str) -> None:
        self.folder, self.base_url = folder, base_url
        self.backslash, self.between = found.spare()
        self.primary = found.primary
        fields = {"id": "string", "name": "string", "text": "string"}
        ends = {"source": "string", "target": "string", "weight": "float"}
        self.nodes = {key: _File(f"nodes-{i:03d}.csv", fields, found.nodes[key]) for i, key in _numbered(found.nodes)}
        self.edges = {key: _File(f"edges-{i:03d}.csv", ends, found.edges[key]) for i, key in _numbered(found.edges)}
        for file in (*self.nodes.values(), *self.edges.values()):
            self._append(file, [file.header()])

    @property
    def files(self) -> list[str]:
        return [file.name for file in (*self.nodes.values(), *self.edges.values())]

    def add_nodes(self, block: list[Node]) -> None:
        by_key: dict[_Key, list[list[Any]]] = {}
        for node in block:
            key = tuple(node.labels)
            own = [node.id, node.name, node.text]
            by_key.setdefault(key, []).append([*own, *_values(self.nodes[key], node.properties)])
        for key, rows in by_key.items():
            self._append(self.nodes[key], rows)

    def add_edges(self, block: list[Edge]) -> None:
        by_key: dict[_Key, list[list[Any]]] = {}
        for edge in block:
            key: _Key = (self.primary[edge.source], edge.relation, self.primary[edge.target])
            own = [edge.source, edge.target, edge.weight]
            by_key.setdefault(key, []).append([*own, *_values(self.edges[key], edge.properties)])
        for key, rows in by_key.items():
            self._append(self.edges[key], rows)

    def _append(self, file: _File, rows: list[list[Any]]) -> None:
        with (self.folder / file.name).open("a", encoding="utf-8", newline="") as out:
            out.writelines(",".join(map(self._cell, row)) + "\n" for row in rows)

    def _cell(self, value: Any) -> str:
        """Write a value so that nothing is left for Neo4j to guess: a missing one is bare, every other quoted."""
        if value is None:
            return ""
        if isinstance(value, list | tuple):
            text = "".join(self.between + _scalar(item) for item in value)
        else:
            text = _scalar(value)
        return '"' + text.replace('"', '""').replace("\\", self.backslash) + '"'

    def script(self) -> str:
        """Return the script that loads the files."""
        labels = sorted({label for label in self.primary.values() if label})
        nodes, edges = len(self.nodes), len(self.edges)
        return "".join(
            [
                f"// Loads {len(self.primary):,} nodes from {nodes} files and the edges between them from {edges},\n",
                "// into an empty Neo4j 5: cypher-shell --file load.cypher, with the files where the server finds\n",
                f"// them ({self.base_url}). In the Browser, put :auto before each LOAD CSV.\n",
                *(f"CREATE CONSTRAINT FOR (n:{quoted(one)}) REQUIRE n.id IS UNIQUE;\n" for one in labels),
                *(self._load_nodes(key, file) for key, file in self.nodes.items()),
                *(self._load_edges(key, file) for key, file in self.edges.items()),
            ]
        )

    def _load_nodes(self, labels: _Key, file: _File) -> str:
        of = "".join(f":{quoted(label)}" for label in dict.fromkeys(labels))
        own = [("id", "row.id"), ("name", "row.name"), ("text", "row.text")]
        return self._load(file, f"CREATE (x{of})", own)

    def _load_edges(self, key: _Key, file: _File) -> str:
        source, relation, target = key
        start = f"MATCH (a{_of(source)} {{id: {self._read('source')}}})"
        end = f"MATCH (b{_of(target)} {{id: {self._read('target')}}})"
        create = f"{start} {end} CREATE (a)-[x:{quoted(relation)}]->(b)"
        return self._load(file, create, [("weight", "toFloat(row.weight)")])

    def _load(self, file: _File, create: str, own: list[tuple[str, str]]) -> str:
        settings = [(name, self._read(name) if said == f"row.{name}" else said) for name, said in own]
        properties: dict[str, list[str]] = {}
        for (name, kind), column in file.columns.items():
            properties.setdefault(name, []).append(self._converted(column, kind))
        settings += [
            (name, said[0] if len(said) == 1 else f"coalesce({', '.join(said)})") for name, said in properties.items()
        ]
        setting = ", ".join(f"x.{quoted(name)} = {said}" for name, said in settings)
        return (
            f"LOAD CSV WITH HEADERS FROM {_literal(self.base_url + file.name)} AS row\n"
            f"  CALL {{ WITH row {create} SET {setting} }} IN TRANSACTIONS OF {_ROWS_EACH} ROWS;\n"
        )

    def _read(self, column: str) -> str:
        """Return the text of a column, with its backslashes."""
        return f"replace(row.{quoted(column)}, {_literal(self.backslash)}, {_literal(chr(92))})"

    def _converted(self, column: str, kind: str) -> str:
        """Return the expression for the value that was written into a column."""
        if not kind.startswith(_LISTED):
            return _CONVERT[kind].format(f"row.{quoted(column)}") if kind in _CONVERT else self._read(column)
        item = _CONVERT.get(kind.removeprefix(_LISTED), "{}").format("i")
        row = f"row.{quoted(column)}"
        items = f"split(substring({self._read(column)}, 1), {_literal(self.between)})"
        return f"CASE WHEN {row} IS NULL THEN null WHEN {row} = '' THEN [] ELSE [i IN {items} | {item}] END"


def quoted(name: str) -> str:
    """Return a name as Cypher takes it in backticks; Neo4j reads escapes even there, so a backslash is one too."""
    return "`" + _escaped(name).replace("`", "``") + "`"


def _escaped(text: str) -> str:
    return "".join(f"\\u{ord(c):04X}" if c == "\\" or ord(c) < 32 else c for c in text)


def _literal(text: str) -> str:
    return "'" + "".join("\\\\" if c == "\\" else "\\'" if c == "'" else _escaped(c) for c in text) + "'"


def _of(label: str) -> str:
    return f":{quoted(label)}" if label else ""


def _numbered(keys: Iterable[_Key]) -> Iterator[tuple[int, _Key]]:
    return enumerate(sorted(keys), 1)


def _values(file: _File, properties: Mapping[str, Any]) -> list[Any]:
    row = []
    for name, kind in file.columns:
        value = properties.get(name)
        row.append((plain_text(value) if kind == JSON else value) if kind_of(value) == kind else None)
    return row


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)
