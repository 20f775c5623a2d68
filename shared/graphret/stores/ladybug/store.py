"""`LadybugStore`: a graph in a file, with Cypher and without a server."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from graphret.errors import InvalidInput, QueryRefused, QueryTimeout, StoreError
from graphret.stores.attached import AttachedIndexes
from graphret.stores.base import GraphStore, Rows, require_ids, require_limit, require_seconds
from graphret.stores.ladybug.database import Database, Session, first_line, refused
from graphret.stores.ladybug.queries import DRIVER_ERRORS, QueryProcess, run
from graphret.stores.ladybug.reader import Reader
from graphret.stores.ladybug.tables import Catalog, EdgeKey
from graphret.stores.ladybug.writer import (
    Pair,
    Tables,
    delete_edges,
    delete_nodes,
    load,
    require_edges,
    require_nodes,
    upsert,
)
from graphret.types import Edge, Node
from graphret.where import Where, WhereLike, both


class LadybugStore(Reader, AttachedIndexes):
    """A `CypherStore` in a Ladybug database, the embedded successor of Kùzu.

    Each primary label is a table of nodes with the columns ``id``, ``name``, ``text``, ``labels`` and one for each
    property, each relation a table of edges with ``weight``, ``source_row``, ``target_row`` and its properties: a
    query says ``MATCH (m:Movie)-[:DIRECTED_BY]->(p:Person) WHERE m.year > 1990``. A secondary label is an item of
    ``labels``. A property named like one of the layout's columns is the column ``properties.NAME``.

    Ladybug tells neither upper from lower case in the names of tables, nor a label from a relation, and takes no dot.
    Of two such names the second gets a table with an underscore behind its name, and an underscore stands for a dot:
    beside the label ``Director`` a query says ``MATCH (f:Film)-[:director_]->(d:Director)``, and ``film.actor`` is
    ``film_actor``. Only queries need these names, and `schema` says them.

    A column has one type. One of integers becomes one of doubles with the first float, where all are exact. A property
    that is `None` is left out, tuples come back as lists. One store, of one process, may have a database open for
    writing, and it answers one call after another.

    Parameters
    ----------
    path
        The file, made where there is none; ``:memory:`` is a temporary one.
    read_only
        Open it for reading only, as several processes may at a time.
    nested
        What to do with a property that has no column type (an object, a list of lists or of several types, an integer
        beyond 64 bits) or another than its column, or a name that differs from another's by case alone: ``refuse`` it,
        or keep it as ``json``, which a query finds as text in the column ``properties``.
    id_property, name_property, text_property
        In a database that something else wrote, which properties are a node's own. Without the first, or where it is
        neither text nor a whole number, ids are the database's (``table:offset``). Such a database is only read, and a
        value that JSON lacks as its text.
    buffer_pool_size
        At most so many bytes of memory for pages; 0 is 4 GiB.
    threads
        At most so many threads for a query; 0 is one for each core.

    Raises
    ------
    StoreUnavailable
        When the file cannot be opened, or another store or process has it open.
    StoreMismatch
        When it is no database of this version of Ladybug.
    MissingDependency
        Without the extra ``ladybug``.
    """

    dialect = "ladybug"

    def __init__(
        self,
        path: str | Path,
        *,
        read_only: bool = False,
        nested: str = "refuse",
        id_property: str | None = None,
        name_property: str | None = None,
        text_property: str | None = None,
        buffer_pool_size: int = 0,
        threads: int = 0,
    ) -> None:
        super().__init__(self._reading)
        if nested not in ("refuse", "json"):
            raise InvalidInput(f"nested: 'refuse' or 'json' is expected, not {nested!r}")
        own = {"id_property": id_property, "name_property": name_property, "text_property": text_property}
        for what, given in own.items():
            if given is not None and (not isinstance(given, str) or not given):
                raise InvalidInput(f"{what}: the name of a property is expected, not {given!r}")
        self.nested, self._own = nested, [*own.values()]
        self._database = Database(path, read_only=read_only, buffer_pool_size=buffer_pool_size, threads=threads)
        self._process = QueryProcess(self._database, {**own, **self._database.settings})
        try:
            self._read_catalog()
        except BaseException:
            self._database.close()
            raise

    @property
    def path(self) -> Path:
        """The file."""
        return self._database.path

    @contextmanager
    def _reading(self) -> Iterator[tuple[Session, Catalog]]:
        with self._database.session() as session:
            try:
                yield session, self._catalog
            except RuntimeError as error:
                raise StoreError(f"{self.path}: the database could not be read: {first_line(error)}") from error

    def _read_catalog(self) -> None:
        self._catalog = Catalog()
        with self._reading() as (session, _):
            self._catalog = Catalog.read(session, self._own)

    def query(
        self,
        cypher: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        max_rows: int | None = None,
        max_bytes: int | None = None,
    ) -> Rows:
        """Run a query that only reads, in a read transaction; see `CypherStore.query`.

        Of an edge, a property that has another type in another relation of the pattern may come back as text.
        """
        require_limit(max_rows)
        require_seconds("timeout", timeout, zero=True)
        with self._database.session() as session:
            guarded = not self._database.read_only
            return run(session, self._catalog, cypher, parameters, timeout, max_rows, max_bytes, guarded=guarded)

    def explain(self, cypher: str, *, timeout: float | None = None) -> str | None:
        """Have the database plan a query; it names no kind of query, so the answer is `None`.

        Ladybug's planner cannot be stopped: a plan that took longer than `timeout` is refused once it is there. What
        nobody vouches for is for `query_apart`.

        Raises
        ------
        QueryRefused
            When it does not parse, or names a table or a property that there is not.
        QueryTimeout
            When the plan took longer than `timeout` seconds.
        """
        require_seconds("timeout", timeout, zero=True)
        started = time.monotonic()
        with self._database.session() as session:
            try:
                session.prepared(cypher)
            except DRIVER_ERRORS as error:
                raise refused(error, timeout) from error
        if timeout is not None and time.monotonic() - started > timeout:
            raise QueryTimeout(f"the plan of the query took longer than {timeout:g} s")
        return None

    def query_apart(
        self,
        cypher: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout: float,
        max_rows: int | None = None,
        max_bytes: int | None = None,
    ) -> Rows:
        """Run a query that nobody vouches for in another process, which is killed a second after the time-out.

        In this one nothing stops a query that is still planned or makes a huge value, and some crash it. One runs at a
        time, and a write waits for it. The first, and the first after a write, waits about a second for the process to
        start, which does not count.

        Raises
        ------
        QueryRefused
            When the database refuses the query, or breaks down on it.
        QueryTimeout
            When it took longer than `timeout` seconds.
        """
        require_limit(max_rows)
        require_seconds("timeout", timeout)
        return self._process.run(cypher, parameters, timeout, max_rows, max_bytes)

    def view(self, where: WhereLike) -> LadybugView:
        """Return the store as far as nodes satisfy `where`; it answers no free Cypher and cannot be written to."""
        return LadybugView(self._opened, Where.parse(where))

    def upsert(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()) -> None:
        """Add nodes and edges, or replace those of the same identity, all or none.

        A graph of millions goes into an empty database best by `load`.

        Raises
        ------
        InvalidInput
            When a node or an edge is malformed, an end of an edge is neither here nor among `nodes`, or a property
            has no place in a column, see `nested`; nothing is then written.
        StoreMismatch
            When a table is not of graphret's layout.
        """
        fresh, linked = require_nodes(nodes), require_edges(edges)
        if fresh or linked:
            with self._writing(fresh.values(), linked.values()) as (session, catalog):
                upsert(self, session, Tables(catalog, self.nested), fresh, linked)

    def check(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()) -> None:
        """Raise what `upsert` would of nodes and edges, dangling ends left out, one by one, and write nothing."""
        with self._opened() as (session, catalog):
            tables = Tables(catalog, self.nested)
            for node in nodes:
                require_nodes([node])
                tables.node(session, node)
            for edge in edges:
                require_edges([edge])
                tables.edge(session, edge, "", "")

    def delete(self, ids: Iterable[str]) -> None:
        """Take nodes away, and every edge that touches them; unknown ids are ignored."""
        wanted = [*dict.fromkeys(require_ids(ids))]
        if not wanted:
            return
        with self._writing(deletes=wanted) as (session, catalog):
            tables: dict[str, list[str]] = {}
            for node, table in self.locate(session, catalog, wanted).items():
                catalog.nodes[table].require_native(f"node {node!r}")
                tables.setdefault(table, []).append(node)
            for table, nodes in tables.items():
                delete_nodes(session, table, nodes)

    def delete_edges(self, edges: Iterable[Edge]) -> None:
        """Take edges away, known by source, relation, target and rows; those that are not there are ignored."""
        linked = require_edges(edges)
        if not linked:
            return
        with self._writing((), linked.values()) as (session, catalog):
            ends = {end for edge in linked.values() for end in (edge.source, edge.target)}
            located = self.locate(session, catalog, ends)
            gone: dict[Pair, list[EdgeKey]] = {}
            for key, edge in linked.items():
                for table in catalog.related([edge.relation]):
                    tables = located.get(edge.source, ""), located.get(edge.target, "")
                    if tables in table.pairs:
                        table.require_native(f"relation {edge.relation!r}")
                        gone.setdefault((table.name, *tables), []).append(key)
            for pair, keys in gone.items():
                delete_edges(session, pair, keys)

    @contextmanager
    def _writing(
        self, nodes: Collection[Node] = (), edges: Collection[Edge] = (), deletes: Sequence[str] = ()
    ) -> Iterator[tuple[Session, Catalog]]:
        """Give a transaction for a write, and bring the attached indexes along before it ends."""
        self._require_writable()
        with self._database.file_lock, self.followed([*nodes], [*edges], deletes) as stage:
            with self._database.writing() as session:
                session.do("BEGIN TRANSACTION")
                yield session, self._catalog
                if self._followers:
                    catalog = Catalog.read(session, self._own)
                    stage(LadybugView(lambda: nullcontext((session, catalog))))
                session.do("COMMIT")
            self._read_catalog()

    def _require_writable(self) -> None:
        if self._database.read_only:
            raise StoreError(f"{self.path}: the database was opened for reading only")

    def load(self, source: GraphStore) -> None:
        """Fill this database, which must be empty, with the graph of another store.

        What has no place here is refused before anything is written. Of a load that is killed, a part stays: `upsert`
        completes it.

        Raises
        ------
        InvalidInput
            When there are nodes here, or a property has no place in a column.
        """
        self._require_writable()
        if self._followers:
            raise InvalidInput("load: it does not tell attached indexes; detach them, and build them again after it")
        with self._database.writing() as session:
            if self.count() != (0, 0):
                raise InvalidInput(f"{self.path}: a graph is loaded into an empty database; this one has nodes")
            load(session, Tables(self._catalog, self.nested), source)
        self._read_catalog()

    @classmethod
    def from_store(cls, path: str | Path, source: GraphStore, **options: Any) -> LadybugStore:
        """Make a database of the graph of another store; options are those of the constructor."""
        store = cls(path, **options)
        try:
            store.load(source)
        except BaseException:
            store.close()
            raise
        return store

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(f"{self.path}: an open Ladybug database cannot be pickled or copied: open it in each process")

    def close(self) -> None:
        """Close the database; a second call does nothing."""
        self._process.close()
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class LadybugView(Reader, AttachedIndexes):
    """The part of a `LadybugStore` that a condition leaves, for reading."""

    dialect = "ladybug"
    _is_view = True

    def view(self, where: WhereLike) -> LadybugView:
        """Return the view as far as nodes satisfy `where` too."""
        return LadybugView(self._opened, both(self.restriction, Where.parse(where)))

    def query(self, cypher: str, *_: Any, **__: Any) -> Rows:
        """Refuse: a query could read past the view."""
        raise QueryRefused("a view answers no free Cypher, which could read past it")

    def explain(self, cypher: str, *, timeout: float | None = None) -> str | None:
        """Refuse, as `query` does."""
        raise QueryRefused("a view answers no free Cypher, which could read past it")

    def upsert(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()) -> None:
        """Refuse."""
        raise StoreError("a view of a store cannot be written to; write to the store itself")

    def delete_edges(self, edges: Iterable[Edge]) -> None:
        """Refuse."""
        raise StoreError("a view of a store cannot be written to; write to the store itself")

    def delete(self, ids: Iterable[str]) -> None:
        """Refuse."""
        raise StoreError("a view of a store cannot be written to; write to the store itself")
