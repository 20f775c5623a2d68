"""Import a graph from another format or store into a store of graphret."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from graphret.errors import InvalidInput, StoreMismatch
from graphret.graphs import metaqa, stark
from graphret.graphs.columns import Columns
from graphret.graphs.locations import FOLDER, NEO4J, kind_of, opened, place_of
from graphret.graphs.rdf import read_ntriples
from graphret.graphs.stark_reviews import Reviews
from graphret.graphs.tables import GraphTables
from graphret.graphs.tabular import SUFFIXES, read_tables
from graphret.storage import CURRENT
from graphret.stores.base import GraphStore, as_cypher
from graphret.stores.ladybug import LadybugStore
from graphret.stores.memory import MemoryStore
from graphret.stores.neo4j import quote

#: Called with the progress of a stage: its name, the number done, and the total.
Progress: TypeAlias = Callable[[str, int, int], None]

STORE = "store"
_SUFFIXES = {
    "csv": (".csv", ".tsv"),
    "jsonl": (".jsonl",),
    "parquet": (".parquet",),
    "graphml": (".graphml",),
}
#: Formats of node and edge tables, with the types of files.
TABLES = {**_SUFFIXES, "tables": SUFFIXES}
#: Every format that a graph can be read from.
FORMATS = (*TABLES, "metaqa", "stark", "ntriples", STORE)
_FORMAT_OF = {
    suffix: name for name, suffixes in _SUFFIXES.items() for suffix in suffixes
} | {".nt": "ntriples"}


def no_progress(stage: str, done: int, total: int) -> None:
    """Report nothing."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How sources are read: the columns of tables, `make_nodes`, RDF's language.

    With `make_nodes`, ids that only edges have become nodes. `reviews` says what
    Amazon's reviews in STaRK become.
    """

    columns: Columns = field(default_factory=Columns)
    make_nodes: bool = False
    language: str = "en"
    reviews: Reviews = "property"


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did: target, format, and numbers of nodes and edges by kind.

    Parameters
    ----------
    merged
        The edges that a later one with the same source, relation, target and rows
        replaced.
    """

    to: str
    format: str
    nodes: int
    edges: int
    labels: dict[str, int]
    relations: dict[str, int]
    merged: int = 0


def import_graph(
    sources: str | Path | Sequence[str | Path],
    to: str | Path,
    *,
    format: str | None = None,
    options: ReadOptions | None = None,
    progress: Progress = no_progress,
) -> ImportReport:
    """Read a graph and write it where `graphret.stores.open_store` can open it.

    The whole source is read and checked before anything is written. A folder's graph is
    replaced as a whole or not at all. A database gets nodes and edges in transactions,
    over those with the same ids: repeat an import that was interrupted.

    Parameters
    ----------
    sources
        Files or folders; for the format ``store`` one location that graphret can open.
    to
        A folder, a Ladybug file, or the address of a Neo4j.
    format
        One of `graphret.graphs.FORMATS`; by default detected from the sources.
    options
        How the sources are read. For a Neo4j that another program wrote, the columns of
        the id, the name and the text are the properties that hold them.

    Raises
    ------
    InvalidInput
        If something in the sources is malformed: the message names the file and the
        line or row, and nothing is written. If a database refuses a node or an edge:
        the message names it, and earlier transactions stay.
    MissingDependency
        If a package is missing that the format or the store needs.
    StorageError, StoreError
        If the graph cannot be written.
    """
    listed = (
        [str(sources)]
        if isinstance(sources, str | Path)
        else [str(source) for source in sources]
    )
    chosen, where, options = (
        _format_of(format, listed),
        os.fspath(to),
        options or ReadOptions(),
    )
    if chosen not in TABLES and chosen != "ntriples" and len(listed) != 1:
        raise InvalidInput(f"--format {chosen}: expected one source, got {len(listed)}")
    if chosen != "stark" and options.reviews != "property":
        raise InvalidInput(f"--reviews: is for the format stark, not for {chosen}")
    if chosen == STORE:
        origin = place_of(listed[0])
        store, edges_read = _read_store(listed[0], where, options)
    else:
        tables = _read_files(listed, chosen, options)
        origin, store = ", ".join(listed), tables.store()
        edges_read = tables.count()[1]
    try:
        if kind_of(where) == FOLDER:
            store.save(where)
        else:
            with opened(where, create=True) as database:
                copy(store, database, progress=progress)
    except (InvalidInput, StoreMismatch) as error:
        raise type(error)(f"{origin}: {error}") from error
    nodes, edges = store.count()
    labels = {label: n for label, n in sorted(store.schema().labels.items()) if n}
    relations = relation_counts(store)
    merged = edges_read - edges
    return ImportReport(where, chosen, nodes, edges, labels, relations, merged)


def _format_of(name: str | None, sources: Sequence[str]) -> str:
    """Return the named format, or else that of the sources."""
    if name is not None:
        if name not in FORMATS:
            raise InvalidInput(
                f"--format: expected one of {', '.join(FORMATS)}, got {name!r}"
            )
        return name
    formats = set().union(*map(_formats_in, sources))
    if len(formats) == 1:
        return formats.pop()
    if formats and formats <= TABLES.keys():
        return "tables"
    raise InvalidInput(
        f"{', '.join(sources)}: the format is not clear; name it (--format"
        f" {'|'.join(FORMATS)})"
    )


def _formats_in(source: str) -> set[str]:
    """Return the formats that a source may have."""
    path = Path(source)
    if kind_of(source) != FOLDER or (path / CURRENT).is_file():
        return {STORE}
    for name, file in (("metaqa", metaqa.FILE), ("stark", stark.INFO)):
        if path.name == file or (path / file).is_file():
            return {name}
    suffixes = {
        file.suffix.lower() for file in (path.iterdir() if path.is_dir() else [path])
    }
    return {_FORMAT_OF[suffix] for suffix in suffixes if suffix in _FORMAT_OF}


def _read_files(
    sources: Sequence[str], format: str, options: ReadOptions
) -> GraphTables:
    if format in TABLES:
        return read_tables(
            sources,
            options.columns,
            suffixes=TABLES[format],
            make_nodes=options.make_nodes,
        )
    options.columns.require_in((), f"the format {format}")
    if format == "ntriples":
        return read_ntriples(sources, language=options.language)
    if format == "stark":
        return stark.read_stark(sources[0], options.reviews)
    return metaqa.read_metaqa(sources[0])


def _read_store(
    source: str, where: str, options: ReadOptions
) -> tuple[MemoryStore, int]:
    """Read a store, and return its nodes and edges with the number of edges.

    Named columns are the properties of a database that hold id, name and text.
    """
    if place_of(source) == place_of(where):
        raise InvalidInput(f"{where}: the source and the target are the same")
    fields = options.columns.named()
    readable = ("id", "name", "text") if kind_of(source) == NEO4J else ()
    if unreadable := fields.keys() - readable:
        raise InvalidInput(f"--{min(unreadable)}-column: {source} is no table")
    with opened(
        source,
        id_property=fields.get("id"),
        name_property=fields.get("name"),
        text_property=fields.get("text"),
    ) as store:
        try:
            nodes, edges = (
                chain.from_iterable(store.nodes()),
                chain.from_iterable(store.edges()),
            )
            return MemoryStore.of(nodes, edges), store.count()[1]
        except InvalidInput as error:
            raise InvalidInput(f"{place_of(source)}: {error}") from error


def copy(
    source: GraphStore, target: GraphStore, *, progress: Progress = no_progress
) -> tuple[int, int]:
    """Copy all nodes and edges of a store into another, and return their numbers.

    They replace those with the same ids. They are written in blocks; where the target
    refuses one, earlier ones stay.
    """
    total = source.count()
    is_empty = target.count() == (0, 0)
    # One call: a local store copies its columns at each write.
    if target.local_graph() is not None:
        target.upsert(
            chain.from_iterable(source.nodes()), chain.from_iterable(source.edges())
        )
    elif (
        is_empty
        and isinstance(target, LadybugStore)
        and source.local_graph() is not None
    ):
        target.load(source)
    else:
        write = target.insert if is_empty else target.upsert
        _copy_blocks(source, write, total, progress)
    return total


def _copy_blocks(
    source: GraphStore,
    write: Callable[..., None],
    total: tuple[int, int],
    progress: Progress,
) -> None:
    done = 0
    for nodes in source.nodes():
        write(nodes=nodes)
        done += len(nodes)
        progress("nodes", done, total[0])
    done = 0
    for edges in source.edges():
        write(edges=edges)
        done += len(edges)
        progress("edges", done, total[1])


def relation_counts(store: GraphStore) -> dict[str, int]:
    """Return the number of edges of each relation.

    Neo4j keeps these counts; other stores read their edges. A schema does not help: an
    edge between nodes with several labels counts under every pair of them.
    """
    graph, database = store.local_graph(), as_cypher(store)
    if graph is not None:
        return graph.relation_counts()
    if database is not None and database.dialect == "neo4j":
        counts = {}
        for name in store.schema().relation_names:
            cypher = f"MATCH ()-[r:{quote(name)}]->() RETURN count(r)"
            ((counts[name],),) = database.query(cypher).rows
        return counts
    counted = Counter(edge.relation for block in store.edges() for edge in block)
    return dict(sorted(counted.items()))
