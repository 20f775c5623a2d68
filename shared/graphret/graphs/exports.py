"""A graph as files of another format: Parquet and GraphML."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphret.columns import to_json
from graphret.contracts import require_direct
from graphret.errors import InvalidInput, MissingDependency
from graphret.graphs.transfer import Progress, no_progress
from graphret.stores.base import GraphStore
from graphret.types import Edge, Node

#: Every format that a graph can be written in, with what it is.
EXPORTS = {"parquet": "nodes.parquet and edges.parquet, in a folder", "graphml": "one GraphML file"}
NODES, EDGES = "nodes.parquet", "edges.parquet"
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: the files, how many nodes and edges, and in how many values characters had to be replaced."""

    files: list[Path]
    nodes: int
    edges: int
    replaced: int = 0


def export_graph(store: GraphStore, out: str | Path, format: str, *, progress: Progress = no_progress) -> Exported:
    """Write a graph as files; what is there is replaced when all is written.

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
        If there is no such format, the store holds what is no JSON, or a file cannot be written.
    MissingDependency
        If a package is missing that the format needs.
    """
    if format not in EXPORTS:
        raise InvalidInput(f"--format: there is no format {format!r} to write; known are {', '.join(EXPORTS)}")
    require_direct(store)
    write = write_parquet if format == "parquet" else write_graphml
    return write(store, Path(out), progress=progress)


def write_parquet(store: GraphStore, folder: str | Path, *, progress: Progress = no_progress) -> Exported:
    """Write a graph as ``nodes.parquet`` and ``edges.parquet``, the layout in which public ARK graphs are published.

    Nodes have the columns ``id, name, type, properties``, edges ``from, to, type, properties``; properties are JSON
    objects as text. What that has no place for is in columns of its own: ``labels`` and ``text`` of nodes, ``weight``
    of edges. `import_graph` reads it all back. The graph is written in blocks.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise MissingDependency("pyarrow", "import", "Writing Parquet") from error
    text = pa.string()
    of_nodes: dict[str, Any] = dict.fromkeys(("id", "name", "type", "properties"), text)
    of_edges: dict[str, Any] = dict.fromkeys(("from", "to", "type", "properties"), text)
    nodes = ([_node_row(node) for node in block] for block in store.nodes())
    edges = ([_edge_row(edge) for edge in block] for block in store.edges())
    counts, done = store.count(), 0
    with _replacing(Path(folder)) as fresh:
        for name, schema, blocks in (
            (NODES, pa.schema({**of_nodes, "labels": pa.list_(text), "text": text}), nodes),
            (EDGES, pa.schema({**of_edges, "weight": pa.float64()}), edges),
        ):
            with parquet.ParquetWriter(fresh / name, schema) as writer:
                for rows in blocks:
                    writer.write_batch(pa.RecordBatch.from_pylist(rows, schema))
                    progress("write", done := done + len(rows), sum(counts))
    return Exported([Path(folder) / NODES, Path(folder) / EDGES], *counts)


def _node_row(node: Node) -> dict[str, Any]:
    own = {"id": node.id, "name": node.name, "type": node.label or None, "labels": list(node.labels)}
    return {**own, "text": node.text, "properties": _json(dict(node.properties), f"node {node.id!r}")}


def _edge_row(edge: Edge) -> dict[str, Any]:
    own = {"from": edge.source, "to": edge.target, "type": edge.relation, "weight": edge.weight}
    return {**own, "properties": _json(dict(edge.properties), f"edge {edge.source!r} to {edge.target!r}")}


def write_graphml(store: GraphStore, path: str | Path, *, progress: Progress = no_progress) -> Exported:
    """Write a graph as GraphML through networkx, which holds it in memory: for Gephi, yEd, Cytoscape.

    A node has the keys ``label`` (its primary label), ``labels`` (all of them, as JSON), ``name`` and ``text``, an edge
    ``relation`` and ``weight``; both have one for each property, and a property of one of these names is written as
    ``properties.name``. Lists and maps are JSON. Characters that XML forbids become U+FFFD.
    """
    try:
        import networkx as nx
    except ImportError as error:
        raise MissingDependency("networkx", "import", "Writing GraphML") from error
    path, counts, replaced = Path(path), store.count(), 0

    def fields(own: Mapping[str, Any], properties: Mapping[str, Any], what: str) -> dict[str, Any]:
        nonlocal replaced
        found = {**own, **{f"properties.{name}" if name in own else name: v for name, v in properties.items()}}
        for name, value in found.items():
            text = value if isinstance(value, str) else _json(value, what)
            if (clean := _NOT_XML.sub("\ufffd", text)) != text:
                replaced += 1
            found[name] = clean if isinstance(value, str | list | tuple | dict) else value
        return {_NOT_XML.sub("\ufffd", name): value for name, value in found.items() if value is not None}

    graph = nx.MultiDiGraph()
    for nodes in store.nodes():
        for node in nodes:
            own: dict[str, Any] = {"label": node.label, "labels": list(node.labels), "name": node.name}
            own["text"] = node.text
            given = fields(own, node.properties, f"node {node.id!r}")
            graph.add_nodes_from([(_NOT_XML.sub("\ufffd", node.id), given)])
    for edges in store.edges():
        for edge in edges:
            ends = (_NOT_XML.sub("\ufffd", end) for end in (edge.source, edge.target))
            own = {"relation": edge.relation, "weight": edge.weight}
            given = fields(own, edge.properties, f"edge {edge.source!r} to {edge.target!r}")
            graph.add_edges_from([(*ends, given)])
    with _replacing(path.parent) as fresh:
        nx.write_graphml(graph, fresh / path.name)
    progress("write", sum(counts), sum(counts))
    return Exported([path], *counts, replaced)


def _json(value: Any, what: str) -> str:
    try:
        return to_json(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{what}: {str(value)[:80]} is no JSON: {error}") from error


@contextmanager
def _replacing(folder: Path) -> Iterator[Path]:
    """Yield a fresh folder, whose files go into `folder` when all are whole."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".graphret-", dir=folder) as fresh:
            yield Path(fresh)
            for file in Path(fresh).iterdir():
                os.replace(file, folder / file.name)
    except OSError as error:
        raise InvalidInput(f"{folder}: cannot be written: {error.strerror or error}") from error
