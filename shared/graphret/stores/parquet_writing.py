"""Writing a graph as ``nodes.parquet`` and ``edges.parquet``; see `graphret.stores.parquet`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from graphret.edges import NO_PART
from graphret.errors import InvalidInput, MissingDependency, StorageError
from graphret.stores.base import GraphStore
from graphret.stores.memory import Graph, MemoryStore
from graphret.strings import Column, to_json
from graphret.types import Edge, Node

NODES, EDGES = "nodes.parquet", "edges.parquet"
NODE_ROWS = 1 << 16
EDGE_ROWS = 1 << 20


def write_parquet(store: GraphStore, folder: str | Path) -> None:
    """Write a graph as ``nodes.parquet`` and ``edges.parquet`` into a folder, in place of those that are there.

    Raises
    ------
    InvalidInput
        If a property is not JSON.
    StorageError
        If a file cannot be written.
    MissingDependency
        If pyarrow is not installed.
    """
    pa, pq = arrow("Writing Parquet")
    text = pa.string()
    node_schema = pa.schema(
        [(name, text) for name in ("id", "name", "type", "properties")] + [("labels", pa.list_(text)), ("text", text)]
    )
    edge_schema = pa.schema(
        [(name, text) for name in ("from", "to", "type", "properties")] + [("weight", pa.float64())]
    )
    if isinstance(store, MemoryStore):
        graph = store.graph
        node_blocks, edge_blocks = _node_blocks(pa, graph), _edge_blocks(pa, graph)
    else:
        node_blocks = (_node_rows(block) for block in store.nodes())
        edge_blocks = (_edge_rows(block) for block in store.edges())
    target = Path(folder)
    fresh = [target / f"{name}.new" for name in (NODES, EDGES)]
    try:
        target.mkdir(parents=True, exist_ok=True)
        for path, schema, made in zip(fresh, (node_schema, edge_schema), (node_blocks, edge_blocks), strict=True):
            with pq.ParquetWriter(path, schema) as writer:
                for columns in made:
                    writer.write_batch(
                        pa.record_batch(
                            [
                                pa.array(c, f.type) if isinstance(c, list) else c.cast(f.type)
                                for c, f in zip(columns, schema, strict=True)
                            ],
                            schema=schema,
                        )
                    )
        for path in fresh:
            os.replace(path, path.with_suffix(""))
    except OSError as error:
        raise StorageError(f"{target}: cannot be written: {error}") from error
    finally:
        for path in fresh:
            with suppress(OSError):
                path.unlink(missing_ok=True)


def arrow(purpose: str) -> tuple[Any, Any]:
    """Return ``pyarrow`` and ``pyarrow.parquet``."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependency("pyarrow", "import", purpose) from error
    return pyarrow, pyarrow.parquet


def _node_blocks(pa: Any, graph: Graph) -> Iterator[list[Any]]:
    nodes = graph.nodes
    types = pa.array([labels[0] if labels else None for labels in nodes.label_sets], pa.string())
    sets = pa.array([list(labels) for labels in nodes.label_sets], pa.list_(pa.string()))
    for start in range(0, len(nodes), NODE_ROWS):
        block = slice(start, start + NODE_ROWS)
        codes = pa.array(nodes.labels[block])
        ids, names, texts, properties = (
            _to_arrow(pa, column[block]) for column in (nodes.ids, nodes.names, nodes.texts, nodes.properties)
        )
        yield [ids, names, types.take(codes), properties, sets.take(codes), texts]


def _edge_blocks(pa: Any, graph: Graph) -> Iterator[list[Any]]:
    edges = graph.edges
    ids, relations = _to_arrow(pa, graph.nodes.ids), pa.array(edges.relations, pa.string())
    for start in range(0, len(edges), EDGE_ROWS):
        block = slice(start, start + EDGE_ROWS)
        parts = edges.source_part[block], edges.target_part[block]
        if all((part == NO_PART).all() for part in parts):
            properties = _to_arrow(pa, edges.properties[block])
        else:
            positions = np.arange(start, min(start + EDGE_ROWS, len(edges)))
            properties = pa.array([to_json(edge.properties) for edge in edges.at(positions, graph.nodes.ids)])
        yield [
            ids.take(pa.array(edges.source[block])),
            ids.take(pa.array(edges.target[block])),
            relations.take(pa.array(edges.relation[block])),
            properties,
            pa.array(edges.weight[block].astype(np.float64)),
        ]


def _to_arrow(pa: Any, column: Column[Any]) -> Any:
    buffers = [
        None,
        pa.py_buffer(np.ascontiguousarray(column.offsets)),
        pa.py_buffer(np.ascontiguousarray(column.blob)),
    ]
    return pa.Array.from_buffers(pa.large_string(), len(column), buffers)


def _node_rows(nodes: list[Node]) -> list[Any]:
    return [
        [node.id for node in nodes],
        [node.name for node in nodes],
        [node.labels[0] if node.labels else None for node in nodes],
        [_json(f"node {node.id!r}", node.properties) for node in nodes],
        [list(node.labels) for node in nodes],
        [node.text for node in nodes],
    ]


def _edge_rows(edges: list[Edge]) -> list[Any]:
    return [
        [edge.source for edge in edges],
        [edge.target for edge in edges],
        [edge.relation for edge in edges],
        [_json(f"edge {edge.source!r} to {edge.target!r}", edge.properties) for edge in edges],
        [edge.weight for edge in edges],
    ]


def _json(what: str, properties: Any) -> str:
    try:
        return to_json(dict(properties))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{what}: the properties are not JSON: {error}") from error
