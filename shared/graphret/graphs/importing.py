"""A graph in another format, or another store, goes to where graphret can open it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graphret import storage
from graphret.errors import InvalidInput
from graphret.graphs.checking import REFUSED, refuse_placed
from graphret.graphs.counting import relation_counts
from graphret.graphs.formats import STORE, ReadOptions, format_of, read_graph
from graphret.graphs.journal import Journal, fingerprint
from graphret.graphs.loading import Loaded, copy, load_tables, memory_store
from graphret.graphs.opening import FOLDER, kind_of, opened, place_of
from graphret.graphs.parquet_files import read_layout
from graphret.graphs.tables import GraphTables
from graphret.graphs.writing import Progress, no_progress
from graphret.stores.base import GraphStore
from graphret.stores.memory import MemoryStore


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did.

    Parameters
    ----------
    to, format
        Where the graph went, and what it came from.
    nodes, edges
        How many came from the source and are in the store.
    labels, relations
        How many nodes bear each label and how many edges there are of each relation; of the whole store where the
        source was one.
    merged
        Edges of the source that are not in the store, since a later one has the same identity (see `GraphStore`): of
        parallel edges between the same nodes with the same relation and rows, the last that was read is kept.
    resumed_nodes, resumed_edges
        How many were in the store from an earlier import that had been interrupted.
    remarks
        What was not read as it was meant to be, in words.
    """

    to: str
    format: str
    nodes: int
    edges: int
    labels: dict[str, int]
    relations: dict[str, int]
    merged: int = 0
    resumed_nodes: int = 0
    resumed_edges: int = 0
    remarks: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The figures as JSON values."""
        return asdict(self)


def import_graph(
    sources: str | Path | Sequence[str | Path],
    to: str | Path,
    *,
    format: str | None = None,
    options: ReadOptions | None = None,
    nested: str = "refuse",
    progress: Progress = no_progress,
) -> Imported:
    """Read a graph and write it to where `graphret.stores.open_store` opens it.

    A folder takes the place of the graph that it held, in whole or not at all. A database takes nodes and edges in
    transactions, over what has their ids; an import that was interrupted goes on where it was when it is run again
    with the same files, options and database.

    Parameters
    ----------
    sources
        Files or folders; for the format ``store`` one place that graphret can open.
    to
        A folder, a Ladybug file, or the address of a Neo4j.
    format
        One of `graphret.graphs.FORMATS`; by default what the sources look like.
    options
        How the sources are read. Of a database that something else wrote, the columns of the id, the name and the text
        are the properties that hold them.
    nested
        What becomes of maps and mixed lists in a database, which cannot hold them as such: ``refuse``, or ``json``:
        stored as text, read back as they were. A folder keeps them as they are.

    Raises
    ------
    InvalidInput
        If something in the sources is malformed, or the store refuses it; the message names the file and the line, or
        the position in a file without lines; of a store as the source, its address and the node or edge.
        Nothing is then written: a database is asked about all of it first. What only the database itself can tell, as
        that two of its nodes have one id, is refused when it comes to it; the transactions before it stay.
    MissingDependency
        If a package is missing that the format or the store needs.
    StorageError, StoreError
        If the graph cannot be written.
    """
    if not isinstance(to, str | Path):
        raise InvalidInput(
            f"to: a path or an address is expected, not a {type(to).__name__}; "
            "`graphret.graphs.copy` writes what a store holds to another store"
        )
    given = [str(sources)] if isinstance(sources, str | Path) else [str(source) for source in sources]
    chosen = format_of(format, given)
    where, options = str(to), options or ReadOptions()
    if kind_of(where) == FOLDER and Path(where).exists():
        with storage.writing(where):  # before the work, not after it: whether the folder can be written
            pass
    if chosen == STORE:
        return _copied(given, where, options, nested, progress)
    if chosen == "parquet" and options == ReadOptions() and len(given) == 1:
        layout = read_layout(Path(given[0]), double=kind_of(where) != FOLDER)
        if layout is not None:
            return _from_layout(*layout, given[0], where, nested, progress)
    tables = read_graph(given, chosen, options)
    loaded = Loaded(*tables.count())
    if kind_of(where) == FOLDER:
        try:
            store = memory_store(tables)
        except InvalidInput as error:
            refuse_placed(error, tables, MemoryStore())
        store.save(where)
    else:
        key = [chosen, fingerprint([Path(one) for one in given]), repr(options), nested, place_of(where)]
        with _target(where, nested) as database:
            loaded = load_tables(tables, database, journal=Journal(key), progress=progress)
    return _imported(tables, where, chosen, loaded)


def _from_layout(
    store: MemoryStore, n_edges: int, source: str, where: str, nested: str, progress: Progress
) -> Imported:
    """Write what was read from the Parquet layout as a store already."""
    loaded = Loaded(*store.count())
    if kind_of(where) == FOLDER:
        store.save(where)
    else:
        key = ["parquet", fingerprint([Path(source)]), nested, place_of(where)]
        with _target(where, nested) as database:
            try:
                loaded = copy(store, database, journal=Journal(key), progress=progress)
            except REFUSED as error:  # read again, with the row of each
                refuse_placed(error, read_graph([source], "parquet"), database)
    return Imported(
        where,
        "parquet",
        *store.count(),
        dict(sorted(store.graph.nodes.label_counts().items())),
        relation_counts(store),
        n_edges - store.count()[1],
        loaded.resumed_nodes,
        loaded.resumed_edges,
    )


def _copied(given: list[str], where: str, options: ReadOptions, nested: str, progress: Progress) -> Imported:
    """Copy one store into another."""
    if len(given) != 1:
        raise InvalidInput(f"--format {STORE} reads one source, and {len(given)} are given")
    if place_of(given[0]) == place_of(where):
        raise InvalidInput(f"{where}: the source and the target are the same")
    with opened(given[0], **_fields(given[0], options)) as source:
        if kind_of(where) == FOLDER:
            target = MemoryStore()
            loaded = _copy(given[0], source, target, None, progress)
            target.save(where)
            return _copied_to(target, where, loaded)
        with _target(where, nested) as store:
            journal = Journal([STORE, place_of(given[0]), source.count(), repr(options), nested, place_of(where)])
            return _copied_to(store, where, _copy(given[0], source, store, journal, progress))


def _copy(given: str, source: GraphStore, target: GraphStore, journal: Journal | None, progress: Progress) -> Loaded:
    """Copy, and name the source of the node or edge that is refused."""
    try:
        return copy(source, target, journal=journal, progress=progress)
    except REFUSED as error:
        raise type(error)(f"{place_of(given)}, {error}") from error


def _fields(source: str, options: ReadOptions) -> dict[str, Any]:
    """Return which properties of a database that something else wrote are the id, the name and the text."""
    columns = options.columns
    columns.refuse_but(("id", "name", "text"), source)
    given = {"id_property": columns.id, "name_property": columns.name, "text_property": columns.text}
    chosen = {option: column for option, column in given.items() if column is not None}
    if chosen and kind_of(source) == FOLDER:
        raise InvalidInput(f"{source}: a folder that graphret wrote has an id, a name and a text; name no columns")
    return chosen


def _target(where: str, nested: str) -> AbstractContextManager[GraphStore]:
    """Open a database to write to."""
    return opened(where, create=True, nested=nested)


def _copied_to(store: GraphStore, where: str, loaded: Loaded) -> Imported:
    return Imported(
        where,
        STORE,
        loaded.nodes,
        loaded.edges,
        {label: n for label, n in sorted(store.schema().labels.items()) if n},
        relation_counts(store),
        loaded.merged,
        loaded.resumed_nodes,
        loaded.resumed_edges,
    )


def _imported(tables: GraphTables, where: str, format: str, loaded: Loaded) -> Imported:
    return Imported(
        where,
        format,
        *tables.count(),
        tables.label_counts(),
        tables.relation_counts(),
        tables.merged,
        loaded.resumed_nodes,
        loaded.resumed_edges,
        tables.remarks,
    )
