"""Getting graphs in and out: readers of other formats, loading into a store, and writing files of other formats."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "columns": ("Columns",),
    "cypher_csv": ("write_cypher_csv",),
    "exporting": ("EXPORTS", "export_graph"),
    "formats": ("FORMATS", "ReadOptions", "read_graph"),
    "graphml": ("write_graphml",),
    "importing": ("Imported", "import_graph"),
    "loading": ("Loaded", "copy", "load_tables", "memory_store"),
    "metaqa": ("read_metaqa",),
    "parquet_files": ("write_parquet",),
    "rdf": ("read_ntriples",),
    "stark": ("read_stark",),
    "tables": ("GraphTables",),
    "tabular": ("read_tables",),
    "writing": ("Exported",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

if TYPE_CHECKING:
    from graphret.graphs.columns import Columns
    from graphret.graphs.cypher_csv import write_cypher_csv
    from graphret.graphs.exporting import EXPORTS, export_graph
    from graphret.graphs.formats import FORMATS, ReadOptions, read_graph
    from graphret.graphs.graphml import write_graphml
    from graphret.graphs.importing import Imported, import_graph
    from graphret.graphs.loading import Loaded, copy, load_tables, memory_store
    from graphret.graphs.metaqa import read_metaqa
    from graphret.graphs.parquet_files import write_parquet
    from graphret.graphs.rdf import read_ntriples
    from graphret.graphs.stark import read_stark
    from graphret.graphs.tables import GraphTables
    from graphret.graphs.tabular import read_tables
    from graphret.graphs.writing import Exported

__all__ = [
    "EXPORTS",
    "FORMATS",
    "Columns",
    "Exported",
    "GraphTables",
    "Imported",
    "Loaded",
    "ReadOptions",
    "copy",
    "export_graph",
    "import_graph",
    "load_tables",
    "memory_store",
    "read_graph",
    "read_metaqa",
    "read_ntriples",
    "read_stark",
    "read_tables",
    "write_cypher_csv",
    "write_graphml",
    "write_parquet",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
