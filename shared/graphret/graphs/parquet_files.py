"""``nodes.parquet`` and ``edges.parquet``: the layout of `graphret.stores.parquet`, read whole and written."""

from __future__ import annotations

from pathlib import Path

from graphret.errors import InvalidInput, MissingDependency
from graphret.graphs.writing import Exported, Progress, no_progress
from graphret.stores.base import GraphStore
from graphret.stores.memory import MemoryStore
from graphret.stores.parquet import read_parquet
from graphret.stores.parquet import write_parquet as write

NODES, EDGES = "nodes.parquet", "edges.parquet"
_NODE_COLUMNS = {"id", "name", "type", "properties", "labels", "text"}
_EDGE_COLUMNS = {"from", "to", "type", "properties", "weight"}


def write_parquet(store: GraphStore, folder: str | Path, *, progress: Progress = no_progress) -> Exported:
    """Write a graph as ``nodes.parquet`` and ``edges.parquet``; see `graphret.stores.parquet.write_parquet`."""
    nodes, edges = store.count()
    write(store, folder)
    progress("write", nodes + edges, nodes + edges)
    return Exported([Path(folder) / NODES, Path(folder) / EDGES], nodes, edges)


def read_layout(folder: Path, *, double: bool = False) -> tuple[MemoryStore, int] | None:
    """Read a folder that has the layout and no column besides, which is quick.

    With `double`, weights keep the precision of the file.

    Returns
    -------
    tuple or None
        The graph, and how many edges the file has, those of one identity counted each; `None` if it has another form.

    Raises
    ------
    InvalidInput
        If something in the files is malformed; the message names the file and the row.
    """
    files = [folder / NODES, folder / EDGES]
    if not all(file.is_file() for file in files):
        return None
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise MissingDependency("pyarrow", "import", "Reading Parquet") from error
    try:
        schemas = [set(parquet.read_schema(file).names) for file in files]
        rows = parquet.read_metadata(files[1]).num_rows
    except (pa.ArrowException, OSError) as error:
        raise InvalidInput(f"{folder}: holds what is no Parquet file ({error})") from error
    fits = {"id", "type"} <= schemas[0] <= _NODE_COLUMNS and {"from", "to", "type"} <= schemas[1] <= _EDGE_COLUMNS
    return (read_parquet(folder, double=double), rows) if fits else None
