"""The formats that graphs come in, and how each is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from graphret._current import CURRENT
from graphret.errors import InvalidInput
from graphret.graphs.columns import Columns
from graphret.graphs.metaqa import FILE as METAQA_FILE
from graphret.graphs.metaqa import read_metaqa
from graphret.graphs.opening import FOLDER, kind_of
from graphret.graphs.rdf import read_ntriples
from graphret.graphs.rows import SUFFIXES
from graphret.graphs.stark import INFO as STARK_FILE
from graphret.graphs.stark import read_stark
from graphret.graphs.tables import GraphTables
from graphret.graphs.tabular import read_tables

TABLES = ("csv", "jsonl", "parquet")
STORE = "store"

#: Every format, with what it is.
FORMATS = {
    "csv": "node and edge tables in .csv and .tsv files",
    "jsonl": "node and edge tables in JSON Lines",
    "parquet": "node and edge tables in Parquet, such as nodes.parquet and edges.parquet",
    "tables": "node and edge tables in files of any of these types",
    "metaqa": "MetaQA's kb.txt: subject|relation|object",
    "stark": "the folder of a processed STaRK knowledge base",
    "ntriples": "RDF in N-Triples",
    STORE: "a graph that graphret can open: a folder, a Ladybug file or a Neo4j",
}
ALIASES = {"tsv": "csv", "nt": "ntriples", "rdf": "ntriples", "neo4j": STORE, "ladybug": STORE, "memory": STORE}
_SUFFIXES = {"csv": (".csv", ".tsv"), "jsonl": (".jsonl",), "parquet": (".parquet",), "tables": SUFFIXES}


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How sources are read.

    Parameters
    ----------
    columns
        Of tables, which columns hold what.
    make_nodes
        Of tables, whether an id that only an edge has becomes a node.
    language
        Of RDF, the language of names and texts.
    """

    columns: Columns = field(default_factory=Columns)
    make_nodes: bool = False
    language: str = "en"


def format_of(name: str | None, sources: Sequence[str]) -> str:
    """Return the format that a name stands for, or that of the sources where none is given.

    Raises
    ------
    InvalidInput
        If there is no such format, or the sources do not tell.
    """
    if name is not None:
        chosen = ALIASES.get(name.lower(), name.lower())
        if chosen not in FORMATS:
            raise InvalidInput(f"--format: there is no format {name!r}; known are {', '.join(FORMATS)}")
        return chosen
    if not sources:
        raise InvalidInput("there is nothing to read: no source is given")
    found = {_format_of_source(source) for source in sources}
    if len(found) == 1 and (only := found.pop()) is not None:
        return only
    if found and found <= {"csv", "jsonl", "parquet", "tables"}:
        return "tables"
    raise InvalidInput(f"{', '.join(sources)}: the format is not clear; name it (--format {'|'.join(FORMATS)})")


def _format_of_source(source: str) -> str | None:
    path = Path(source)
    if kind_of(source) != FOLDER or (path / CURRENT).is_file():
        return STORE
    if path.is_dir():
        if (path / STARK_FILE).is_file():
            return "stark"
        if (path / METAQA_FILE).is_file():
            return "metaqa"
        kinds = {_of_suffix(file) for file in path.iterdir()} - {None}
        return kinds.pop() if len(kinds) == 1 else "tables" if kinds and kinds <= set(TABLES) else None
    return "metaqa" if path.name == METAQA_FILE else _of_suffix(path)


def _of_suffix(path: Path) -> str | None:
    suffix = path.suffix.lower()
    if suffix in (".nt", ".ntriples"):
        return "ntriples"
    return next((name for name in TABLES if suffix in _SUFFIXES[name]), None)


def read_graph(sources: Sequence[str], format: str, options: ReadOptions | None = None) -> GraphTables:
    """Read a graph from files.

    Parameters
    ----------
    sources
        Files or folders; MetaQA and STaRK take one.
    format
        One of `FORMATS`, but for ``store``.

    Raises
    ------
    InvalidInput
        If something in the sources is malformed; the message names the file and the line, or the position in it.
    MissingDependency
        If a package is missing that the format needs.
    """
    options = options or ReadOptions()
    if format in FORMATS and format not in _SUFFIXES:
        options.columns.refuse_but((), f"the format {format}")
    if format in ("metaqa", "stark"):
        if len(sources) != 1:
            raise InvalidInput(f"--format {format} reads one source, and {len(sources)} are given")
        return read_metaqa(sources[0]) if format == "metaqa" else read_stark(sources[0])
    if format == "ntriples":
        return read_ntriples(sources, language=options.language)
    if format not in _SUFFIXES:
        raise InvalidInput(f"there is no format {format!r} of files; known are {', '.join(FORMATS)}")
    return read_tables(sources, options.columns, suffixes=_SUFFIXES[format], make_nodes=options.make_nodes)
