"""Import and export of graphs: readers of other formats, imports, exports."""

from graphret.graphs.columns import Columns
from graphret.graphs.exports import ExportReport, export_graph
from graphret.graphs.metaqa import read_metaqa
from graphret.graphs.rdf import read_ntriples
from graphret.graphs.stark import read_stark
from graphret.graphs.tables import GraphTables
from graphret.graphs.tabular import read_tables
from graphret.graphs.transfer import ImportReport, ReadOptions, copy, import_graph

__all__ = [
    "Columns",
    "ExportReport",
    "GraphTables",
    "ImportReport",
    "ReadOptions",
    "copy",
    "export_graph",
    "import_graph",
    "read_metaqa",
    "read_ntriples",
    "read_stark",
    "read_tables",
]
