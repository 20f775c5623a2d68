"""A graph as files: Parquet, GraphML, and CSV with the Cypher that loads it into Neo4j."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from graphret._contracts import require_direct
from graphret.errors import InvalidInput, MissingDependency
from graphret.graphs.transfer import Progress, no_progress
from graphret.stores.base import GraphStore
from graphret.stores.neo4j import CONSTRAINT, MARKER, quote
from graphret.types import Edge, Node

#: Every format that a graph can be written in, with what it is.
EXPORTS = {
    "parquet": "nodes.parquet and edges.parquet, in a folder",
    "cypher-csv": "CSV files and load.cypher, which loads them into Neo4j, in a folder",
    "graphml": "one GraphML file",
}
NODES, EDGES, SCRIPT = "nodes.parquet", "edges.parquet", "load.cypher"

_LIST = "list of "
#: Control characters that stand in CSV for a backslash, which Neo4j's reader eats, and between the items of a list.
_BACKSLASH, _BETWEEN = "\x1a", "\x1f"
_CONVERSIONS = {"integer": "toInteger({})", "float": "toFloat({})", "boolean": "toBoolean({})"}
_GRAPHML_TYPES = {"integer": "long", "float": "double", "boolean": "boolean"}
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written.

    Parameters
    ----------
    files
        The files.
    nodes, edges
        How many are in them.
    replaced
        In how many values characters were replaced that the format cannot hold.
    """

    files: list[Path]
    nodes: int
    edges: int
    replaced: int = 0


def export_graph(store: GraphStore, out: str | Path, format: str, *, progress: Progress = no_progress) -> Exported:
    """Write a graph as files, in blocks; what is there is replaced when all is written.

    Parameters
    ----------
    store
        The graph, or a view of it.
    out
        The folder, or for GraphML the file.
    format
        One of `EXPORTS`.

    Raises
    ------
    InvalidInput
        If there is no such format, the format cannot hold something, or a file cannot be written.
    MissingDependency
        If a package is missing that the format needs.
    """
    if format not in EXPORTS:
        raise InvalidInput(f"--format: there is no format {format!r} to write; known are {', '.join(EXPORTS)}")
    require_direct(store)
    if format == "parquet":
        return write_parquet(store, out, progress=progress)
    if format == "graphml":
        return write_graphml(store, out, progress=progress)
    return write_cypher_csv(store, out, progress=progress)


def write_parquet(store: GraphStore, folder: str | Path, *, progress: Progress = no_progress) -> Exported:
    """Write a graph as ``nodes.parquet`` and ``edges.parquet``, the layout in which public ARK graphs are published.

    Nodes have the columns ``id, name, type, properties``, edges ``from, to, type, properties``; properties are JSON
    objects as text. What that has no place for is in columns of its own: ``labels`` and ``text`` of nodes, ``weight``
    of edges. `import_graph` reads it all back.

    Raises
    ------
    InvalidInput
        If a file cannot be written.
    MissingDependency
        If pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise MissingDependency("pyarrow", "import", "Writing Parquet") from error
    text = pa.string()
    of_nodes: dict[str, Any] = dict.fromkeys(("id", "name", "type", "properties"), text)
    of_edges: dict[str, Any] = dict.fromkeys(("from", "to", "type", "properties"), text)
    schemas = {
        NODES: pa.schema({**of_nodes, "labels": pa.list_(text), "text": text}),
        EDGES: pa.schema({**of_edges, "weight": pa.float64()}),
    }
    counts = store.count()
    done = 0
    nodes = ([_node_row(node) for node in block] for block in store.nodes())
    edges = ([_edge_row(edge) for edge in block] for block in store.edges())
    with _replacing(Path(folder)) as fresh:
        for name, blocks in ((NODES, nodes), (EDGES, edges)):
            with parquet.ParquetWriter(fresh / name, schemas[name]) as writer:
                for rows in blocks:
                    writer.write_batch(pa.RecordBatch.from_pylist(rows, schemas[name]))
                    progress("write", done := done + len(rows), sum(counts))
    return Exported([Path(folder) / NODES, Path(folder) / EDGES], *counts)


def _node_row(node: Node) -> dict[str, Any]:
    return {
        "id": node.id,
        "name": node.name,
        "type": node.label or None,
        "properties": _json(dict(node.properties)),
        "labels": list(node.labels),
        "text": node.text,
    }


def _edge_row(edge: Edge) -> dict[str, Any]:
    properties = _json(dict(edge.properties))
    return {
        "from": edge.source,
        "to": edge.target,
        "type": edge.relation,
        "properties": properties,
        "weight": edge.weight,
    }


def write_graphml(store: GraphStore, path: str | Path, *, progress: Progress = no_progress) -> Exported:
    """Write a graph as GraphML, for Gephi, yEd, Cytoscape, networkx.

    A node has the keys ``label`` (its primary label), ``labels`` (all of them, as JSON), ``name`` and ``text``, an edge
    ``relation`` and ``weight``; both have one for each property. A property of one of these names is written as
    ``properties.name``. Lists, maps and properties of several types are JSON in a string. Characters that XML forbids
    become U+FFFD; `Exported.replaced` says in how many values. The graph is gone through twice.

    Raises
    ------
    InvalidInput
        If the file cannot be written.
    """
    path, counts = Path(path), store.count()
    kinds: dict[str, dict[str, str]] = {"node": {}, "edge": {}}
    for item in _items(store):
        fields = {name: value for name, value in _graphml_fields(item).items() if name not in _ENDS}
        _observe(kinds["node" if isinstance(item, Node) else "edge"], fields)
    keys = {(domain, name): f"{domain[0]}{i}" for domain in kinds for i, name in enumerate(kinds[domain])}
    replaced = done = 0

    def clean(text: str) -> str:
        nonlocal replaced
        kept = _NOT_XML.sub("\ufffd", text)
        replaced += kept != text
        return kept

    with _replacing(path.parent) as fresh, (fresh / path.name).open("w", encoding="utf-8") as file:
        file.write('<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n')
        for (domain, name), key in keys.items():
            kind = _GRAPHML_TYPES.get(kinds[domain][name], "string")
            file.write(f'<key id="{key}" for="{domain}" attr.name={quoteattr(clean(name))} attr.type="{kind}"/>\n')
        file.write('<graph edgedefault="directed">\n')
        for item in _items(store):
            domain, fields = "node" if isinstance(item, Node) else "edge", _graphml_fields(item)
            about = " ".join(f"{name}={quoteattr(clean(fields.pop(name)))}" for name in _ENDS if name in fields)
            file.write(f"<{domain} {about}>")
            for name, value in fields.items():
                text = escape(clean(_cell(value, kinds[domain][name])), {"\r": "&#13;"})
                file.write(f'<data key="{keys[domain, name]}">{text}</data>')
            file.write(f"</{domain}>\n")
            done = _told(progress, done, sum(counts))
        file.write("</graph>\n</graphml>\n")
    return Exported([path], *counts, replaced)


_ENDS = ("id", "source", "target")
#: What is in a CSV file and is no property of Neo4j.
_APART = (":labels", ":source", ":target", ":relation")


def _items(store: GraphStore) -> Iterator[Node | Edge]:
    """Go through the nodes, then the edges."""
    for nodes in store.nodes():
        yield from nodes
    for edges in store.edges():
        yield from edges


def _graphml_fields(item: Node | Edge) -> dict[str, Any]:
    if isinstance(item, Node):
        labels = _json(list(item.labels))
        own = {"id": item.id, "label": item.label, "labels": labels, "name": item.name, "text": item.text}
        own = {name: value for name, value in own.items() if value}
        return own | _properties(item.properties, ("id", "label", "labels", "name", "text"))
    own = {"source": item.source, "target": item.target, "relation": item.relation}
    properties = _properties(item.properties, ("source", "target", "relation", "weight"))
    return {**own, "weight": item.weight, **properties}


def _neo4j_fields(item: Node | Edge) -> dict[str, Any]:
    """Return what Neo4j keeps, and behind a colon what is no property there."""
    if isinstance(item, Node):
        own = {":labels": list(item.labels), "id": item.id, "name": item.name, "text": item.text}
        own = {name: value for name, value in own.items() if value}
        return own | _properties(item.properties, ("id", "name", "text"))
    own = {":source": item.source, ":target": item.target, ":relation": item.relation}
    weight = {} if item.weight == 1 else {"weight": item.weight}
    return {**own, **weight, **_properties(item.properties, ("weight",))}


def write_cypher_csv(
    store: GraphStore, folder: str | Path, *, base_url: str = "file:///", progress: Progress = no_progress
) -> Exported:
    """Write a graph as nodes.csv, edges.csv and load.cypher, which loads them into an empty Neo4j from 5.26 on.

    The graph lies in the database as `Neo4jStore` writes it: every node also bears a label on which ids are unique.
    Numbers, truth values and lists are such; maps, lists of several kinds and properties of several types are text. An
    empty list is left out. The graph is gone through twice.

    Parameters
    ----------
    base_url
        Where the server finds the files: by default its folder for imports.

    Raises
    ------
    InvalidInput
        If Neo4j cannot hold a name, or a file cannot be written.
    """
    counts, done = store.count(), 0
    tables = {"nodes": _CsvTable(), "edges": _CsvTable()}
    for item in _items(store):
        _observe(tables["nodes" if isinstance(item, Node) else "edges"].kinds, _neo4j_fields(item))
    with _replacing(Path(folder)) as fresh, ExitStack() as stack:
        files = {
            name: stack.enter_context((fresh / f"{name}.csv").open("w", encoding="utf-8", newline=""))
            for name in tables
        }
        for name, table in tables.items():
            files[name].write(",".join(f"c{i}" for i in range(len(table.kinds))) + "\n")
        for item in _items(store):
            name = "nodes" if isinstance(item, Node) else "edges"
            files[name].write(tables[name].line(_neo4j_fields(item)))
            done = _told(progress, done, sum(counts))
        (fresh / SCRIPT).write_text(_script(tables, counts, base_url), encoding="utf-8")
    return Exported([Path(folder) / name for name in ("nodes.csv", "edges.csv", SCRIPT)], *counts)


class _CsvTable:
    """The columns of a CSV file, by the names of properties with their kinds, and how Cypher reads each back."""

    def __init__(self) -> None:
        self.kinds: dict[str, str] = {}

    def line(self, values: Mapping[str, Any]) -> str:
        """Return a row; a missing value is bare, and every other quoted."""
        return (
            ",".join(_quoted(values[prop], kind) if prop in values else "" for prop, kind in self.kinds.items()) + "\n"
        )

    def read(self, prop: str) -> str:
        """Return the expression for the value that was written into a column."""
        kind, column = self.kinds[prop], f"row.c{list(self.kinds).index(prop)}"
        if kind in _CONVERSIONS:
            return _CONVERSIONS[kind].format(column)
        text = f"replace({column}, '\\u001A', '\\\\')"
        if not kind.startswith(_LIST):
            return text
        item = _CONVERSIONS.get(kind.removeprefix(_LIST), "{}").format("i")
        return f"[i IN split({text}, '\\u001F') | {item}]"

    def statement(self, url: str, create: str) -> str:
        """Return the statement that loads the file; `create` reads what is no property."""
        values = ", ".join(f"x.{quote(prop)} = {self.read(prop)}" for prop in self.kinds if prop not in _APART)
        return (
            f"LOAD CSV WITH HEADERS FROM '{url}' AS row\n  CALL {{ WITH row {create}"
            f"{f' SET {values}' if values else ''} }} IN TRANSACTIONS OF 10000 ROWS;\n"
        )


def _script(tables: Mapping[str, _CsvTable], counts: tuple[int, int], base_url: str) -> str:
    nodes, edges = tables["nodes"], tables["edges"]
    lines = [
        f"// Loads {counts[0]:,} nodes and {counts[1]:,} edges into an empty Neo4j, from 5.26 on:\n",
        "// cypher-shell --file load.cypher, with the CSV files where the server finds them\n",
        f"// ({base_url}). In the Browser, put :auto before each LOAD CSV.\n",
        f"CREATE CONSTRAINT {CONSTRAINT} FOR (n:{quote(MARKER)}) REQUIRE n.id IS UNIQUE;\n",
    ]
    if nodes.kinds:
        labels = f"SET x:$(coalesce({nodes.read(':labels')}, []))" if ":labels" in nodes.kinds else ""
        lines.append(nodes.statement(f"{base_url}nodes.csv", f"CREATE (x:{quote(MARKER)}) {labels}"))
    if edges.kinds:
        ends = (f"MATCH ({end}:{quote(MARKER)} {{id: {edges.read(f':{end}')}}})" for end in ("source", "target"))
        create = f"{' '.join(ends)} CREATE (source)-[x:$({edges.read(':relation')})]->(target)"
        lines.append(edges.statement(f"{base_url}edges.csv", create))
    return "".join(lines)


def _told(progress: Progress, done: int, total: int) -> int:
    """Tell of every ten-thousandth item and of the last; return how many are done."""
    if (done + 1) % 10_000 == 0 or done + 1 == total:
        progress("write", done + 1, total)
    return done + 1


def _quoted(value: Any, kind: str) -> str:
    items = value if kind.startswith(_LIST) else [value]
    text = _BETWEEN.join(_cell(item, kind) for item in items)
    return '"' + text.replace('"', '""').replace("\\", _BACKSLASH) + '"'


def _properties(properties: Mapping[str, Any], taken: Iterable[str]) -> dict[str, Any]:
    """Return the properties that have a value; one that is named like a field is ``properties.name``."""
    return {
        f"properties.{name}" if name in taken else name: value
        for name, value in properties.items()
        if value is not None and value != []
    }


def _observe(kinds: dict[str, str], values: Mapping[str, Any]) -> None:
    """Keep the one kind that holds every value of each property: integers and floats are floats, others mixed text."""
    for name, value in values.items():
        kind = _kind_of(value)
        before = kinds.setdefault(name, kind)
        if before != kind:
            kinds[name] = "float" if {before, kind} == {"integer", "float"} else "string"


def _kind_of(value: Any) -> str:
    """Return ``string``, ``integer``, ``float``, ``boolean`` or ``list of`` one of them; anything else is text."""
    if isinstance(value, list | tuple):
        kinds = {_kind_of(item) for item in value}
        only = kinds.pop()
        scalar = all(isinstance(item, str | int | float) for item in value)
        return f"{_LIST}{only}" if scalar and not kinds else "string"
    kinds_by_type = {bool: "boolean", int: "integer", float: "float"}
    return kinds_by_type.get(type(value), "string")


def _cell(value: Any, kind: str) -> str:
    """Return a value of a column as text."""
    if kind == "float" and isinstance(value, int):
        value = float(value)
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{str(value)[:80]}: the store holds what is no JSON ({error})") from error


@contextmanager
def _replacing(folder: Path) -> Iterator[Path]:
    """Yield a fresh folder, whose files go into `folder` when all are whole."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".graphret-", dir=folder) as fresh:
            yield Path(fresh)
            for file in Path(fresh).iterdir():
                os.replace(file, folder / file.name)
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{folder}: a text holds what UTF-8 cannot write ({error.reason})") from error
    except OSError as error:
        raise InvalidInput(f"{folder}: cannot be written: {error.strerror or error}") from error
