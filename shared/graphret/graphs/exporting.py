"""Writing a graph as files of another format."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from graphret._contracts import require_direct
from graphret.errors import InvalidInput
from graphret.graphs.writing import Exported, Progress, no_progress
from graphret.stores.base import GraphStore

#: Every format that a graph can be written in, with what it is.
EXPORTS = {
    "parquet": "nodes.parquet and edges.parquet, in a folder",
    "cypher-csv": "CSV files and load.cypher, which loads them into Neo4j, in a folder",
    "graphml": "one GraphML file",
}
_WRITERS = {
    "parquet": ("parquet_files", "write_parquet"),
    "cypher-csv": ("cypher_csv", "write_cypher_csv"),
    "graphml": ("graphml", "write_graphml"),
}


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
    if format not in _WRITERS:
        raise InvalidInput(f"--format: there is no format {format!r} to write; known are {', '.join(EXPORTS)}")
    require_direct(store)
    module, name = _WRITERS[format]
    write: Callable[..., Exported] = getattr(import_module(f"graphret.graphs.{module}"), name)
    return write(store, out, progress=progress)
