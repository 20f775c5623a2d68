"""Getting graphs in and out: readers of other formats, loading into a store, and writing files of other formats."""

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
