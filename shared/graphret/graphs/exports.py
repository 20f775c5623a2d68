"""Write a graph as files of another format: Parquet and GraphML."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from graphret.columns import to_json
from graphret.errors import InvalidInput
from graphret.graphs.tables import required
from graphret.graphs.transfer import Progress, no_progress
from graphret.stores.base import GraphStore
from graphret.types import Edge, Node

NODES, EDGES = "nodes.parquet", "edges.parquet"
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class ExportReport:
    """The files that were written, and the numbers of nodes and edges."""

    files: list[Path]
    nodes: int
    edges: int


def export_graph(
    store: GraphStore, out: str | Path, format: str, *, progress: Progress = no_progress
) -> ExportReport:
    """Write a graph as files; existing ones are replaced once all is written.

    Parameters
    ----------
    store
        The graph, or a view of it.
    out
        The folder, or for GraphML the file.
    format
        ``parquet`` is the layout in which public ARK graphs are published:
        ``nodes.parquet`` with the columns ``id, name, type, properties``,
        ``edges.parquet`` with ``from, to, type, properties`` (JSON objects), and beside
        them ``labels``, ``text`` and ``weight``. `import_graph` reads it all back.

        ``graphml`` is for Gephi, yEd, Cytoscape; networkx holds it in memory. Lists and
        maps are JSON, a property with the name of a field is written as
        ``properties.name``, and characters that XML forbids become U+FFFD.

    Raises
    ------
    InvalidInput
        If there is no such format, or a file cannot be written.
    MissingDependency
        If a library is not installed: pyarrow for Parquet, networkx for GraphML.
    """
    writers = {"parquet": _write_parquet, "graphml": _write_graphml}
    if format not in writers:
        raise InvalidInput(
            f"--format: expected one of {', '.join(writers)}, got {format!r}"
        )
    return writers[format](store, Path(out), progress)


def _write_parquet(store: GraphStore, folder: Path, progress: Progress) -> ExportReport:
    pa = required("pyarrow", "import", "Writing Parquet")
    parquet = required("pyarrow.parquet", "import", "Writing Parquet")
    text, counts, done = pa.string(), store.count(), 0
    of_nodes = dict.fromkeys(("id", "name", "type", "properties"), text) | {
        "labels": pa.list_(text),
        "text": text,
    }
    of_edges = dict.fromkeys(("from", "to", "type", "properties"), text) | {
        "weight": pa.float64()
    }
    with _replacing(folder) as fresh:
        for name, schema, blocks in (
            (NODES, pa.schema(of_nodes), map(_node_rows, store.nodes())),
            (EDGES, pa.schema(of_edges), map(_edge_rows, store.edges())),
        ):
            with parquet.ParquetWriter(fresh / name, schema) as writer:
                for rows in blocks:
                    writer.write_batch(pa.RecordBatch.from_pylist(rows, schema))
                    progress("write", done := done + len(rows), sum(counts))
    return ExportReport([folder / NODES, folder / EDGES], *counts)


def _node_rows(nodes: Iterable[Node]) -> list[dict[str, Any]]:
    return [
        {
            "id": node.id,
            "name": node.name,
            "type": node.label or None,
            "labels": list(node.labels),
            "text": node.text,
        }
        | {"properties": to_json(dict(node.properties))}
        for node in nodes
    ]


def _edge_rows(edges: Iterable[Edge]) -> list[dict[str, Any]]:
    return [
        {
            "from": edge.source,
            "to": edge.target,
            "type": edge.relation,
            "weight": edge.weight,
        }
        | {"properties": to_json(dict(edge.properties))}
        for edge in edges
    ]


def _write_graphml(store: GraphStore, path: Path, progress: Progress) -> ExportReport:
    nx = required("networkx", "import", "Writing GraphML")
    counts, graph = store.count(), nx.MultiDiGraph()
    for node in chain.from_iterable(store.nodes()):
        fields: dict[str, Any] = {
            "label": node.label,
            "labels": node.labels,
            "name": node.name,
            "text": node.text,
        }
        attributes = _attributes(fields, node.properties)
        graph.add_nodes_from([(_clean(node.id), attributes)])
    for edge in chain.from_iterable(store.edges()):
        fields = {"relation": edge.relation, "weight": edge.weight}
        attributes = _attributes(fields, edge.properties)
        graph.add_edges_from([(_clean(edge.source), _clean(edge.target), attributes)])
    with _replacing(path.parent) as fresh:
        nx.write_graphml(graph, fresh / path.name)
    progress("write", sum(counts), sum(counts))
    return ExportReport([path], *counts)


def _attributes(
    fields: Mapping[str, Any], properties: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields and properties of a node or an edge as GraphML attributes."""
    attributes = {
        **fields,
        **{
            f"properties.{name}" if name in fields else name: value
            for name, value in properties.items()
        },
    }
    scalars = {
        name: to_json(value) if isinstance(value, list | tuple | dict) else value
        for name, value in attributes.items()
    }
    return {
        _clean(name): _clean(value) if isinstance(value, str) else value
        for name, value in scalars.items()
        if value is not None
    }


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


@contextmanager
def _replacing(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder, whose files move to `folder` once all are complete."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".graphret-", dir=folder) as fresh:
            yield Path(fresh)
            for file in Path(fresh).iterdir():
                os.replace(file, folder / file.name)
    except OSError as error:
        raise InvalidInput(
            f"{folder}: cannot be written: {error.strerror or error}"
        ) from error
