"""`LadybugStore`: a graph in a file, with Cypher and without a server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from graphret.errors import InvalidInput, StoreError
from graphret.stores.base import Rows, require_ids, require_limit, require_seconds
from graphret.stores.changes import Written
from graphret.stores.following import Following
from graphret.stores.ladybug import writing
from graphret.stores.ladybug.apart import Apart
from graphret.stores.ladybug.catalog import Catalog, Layout, TableNames
from graphret.stores.ladybug.columns import require_nested
from graphret.stores.ladybug.engine import Engine, Session, failed
from graphret.stores.ladybug.loading import is_heavy, load_graph
from graphret.stores.ladybug.queries import FreeQueries
from graphret.stores.ladybug.reading import Reader
from graphret.stores.ladybug.records import EdgeKey, edge_key
from graphret.stores.ladybug.view import LadybugView
from graphret.stores.ladybug.writing import Plan, checked_edges, checked_nodes, delete_edges, delete_nodes, require_ends
from graphret.stores.memory import Graph, MemoryStore
from graphret.types import Edge, Node
from graphret.where import Where, WhereLike


class LadybugStore(Reader, Following):
    """A `CypherStore` in a Ladybug database, the embedded successor of Kùzu.

    Each primary label is a table of nodes with the columns ``id``, ``name``, ``text``, ``labels`` and one for each
    property, each relation a table of edges with ``weight``, ``source_row``, ``target_row`` and its properties: a
    query says ``MATCH (m:Movie)-[:DIRECTED_BY]->(p:Person) WHERE m.year > 1990``. A secondary label is an item of
    ``labels``. A property named like one of the layout's columns is the column ``properties.NAME``.

    Ladybug tells neither upper from lower case in the names of tables, nor a label from a relation, and takes no dot in
    them. Of two such names the one that comes second, in one call a relation after the labels, gets a table with an
    underscore behind its name, and an underscore stands for a dot: beside the label ``Director`` a query says
    ``MATCH (f:Film)-[:director_]->(d:Director)``, and ``film.actor`` is ``film_actor``. These names are for queries
    alone, and what a query's ``label(r)`` gives: nodes, edges, also those that a query returns, filters and `schema`
    have the graph's own. `schema` says beside them what queries say, which the guard and the text for a prompt go by.
    Two properties of one label that differ by case alone are refused by name, unless `nested` is ``json``.

    A column has one type. Integers go into a column of doubles, and a column of integers becomes one of doubles, where
    all are exact; they are then read as floats. Weights are doubles, tuples come back as lists. To a query and in a
    condition `None` is as absent; that it is there is said in the column ``_nulls``.

    Readers work beside each other and beside a writer, but for the moments in which it changes a table or copies many
    rows. One store, of one process, may have a database open for writing.

    Parameters
    ----------
    path
        The file, made where there is none; ``:memory:`` is a temporary one.
    read_only
        Open it for reading only, as several processes may at a time.
    nested
        What to do with a property that has no column type (an object, a list of lists or of several types, an integer
        beyond 64 bits) or another than its column: ``refuse`` it, or keep it as ``json``, which restores it exactly.
        A query finds the latter as text in the column ``properties``.
    id_property, name_property, text_property
        In a database that something else wrote, which properties are a node's own. Without the first, ids are those
        of the database (``table:offset``). Such a database is not written to.
    buffer_pool_size
        At most so many bytes of memory for pages; 0 takes a third of the machine, 8 GiB at most. (The database's own
        default is most of the machine, which leaves too little beside it for the graph that is loaded.)
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
        super().__init__(self._reading, changes=lambda: self._engine.changes)
        self.nested = require_nested(nested)
        self._layout = Layout(id_property, name_property, text_property)
        self._engine = Engine(path, read_only=read_only, buffer_pool_size=buffer_pool_size, threads=threads)
        self._queries = FreeQueries(self._engine, lambda: self._catalog)
        self._apart = Apart(self._engine, self._layout)
        try:
            with self._engine.reading() as session:
                self._catalog = Catalog.read(session, self._layout)
        except RuntimeError as error:
            self._engine.close()
            raise failed(error, self._engine.path) from error

    @property
    def path(self) -> Path:
        """The file."""
        return self._engine.path

    @contextmanager
    def _reading(self) -> Iterator[tuple[Session, Catalog]]:
        with self._engine.reading() as session:
            session.set_timeout(None)
            try:
                yield session, self._catalog
            except RuntimeError as error:
                raise StoreError(f"{self._engine.path}: the database could not be read: {error}") from error

    def query(
        self,
        cypher: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        max_rows: int | None = None,
    ) -> Rows:
        """Run a query that only reads, in a read transaction; see `CypherStore.query`."""
        require_limit(max_rows)
        require_seconds("timeout", timeout, zero=True)
        return self._queries.run(cypher, parameters, timeout=timeout, max_rows=max_rows)

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
        self._queries.plan(cypher, timeout=timeout)
        return None

    def query_apart(
        self,
        cypher: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout: float,
        max_rows: int | None = None,
    ) -> Rows:
        """Run a query that nobody vouches for in another process, which is killed a second after the time-out.

        In this one nothing stops a query that is still planned or makes a huge value, and some crash it. The first
        waits for the process to start, about a second, which does not count. Up to four run at a time, each with a
        buffer pool of its own, and a write waits for them.

        Raises
        ------
        QueryRefused
            When the database refuses the query, or breaks down on it.
        QueryTimeout
            When it took longer than `timeout` seconds, with what it waited for a write or for other queries.
        """
        require_limit(max_rows)
        require_seconds("timeout", timeout)
        return self._apart.query(cypher, parameters, timeout=timeout, max_rows=max_rows)

    def view(self, where: WhereLike) -> LadybugView:
        """Return the store as far as nodes satisfy `where`; it answers no free Cypher and cannot be written to."""
        return LadybugView(self._opened, Where.parse(where), self._changes)

    def upsert(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()) -> None:
        """Add nodes and edges, or replace those of the same identity, all or none.

        A batch of thousands is copied in at once, and a small one is written row by row; a graph of millions goes
        into an empty database best by `load`.

        Raises
        ------
        InvalidInput
            When a node or an edge is malformed, an end of an edge is neither here nor among `nodes`, or a property
            has no place in a column, see `nested`; nothing is then written.
        StoreMismatch
            When a table is not of graphret's layout.
        """
        fresh, linked = checked_nodes(nodes), checked_edges(edges)
        if not fresh and not linked:
            return
        self._require_writable()
        with self._engine.writing, self.followed([*fresh.values()], [*linked.values()]) as stage:
            plan = self._planned(fresh, linked)
            self._write(plan.run, plan.alone, stage, Written.of(fresh, linked.values()))

    def check(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()) -> None:
        """Raise what `upsert` would of nodes and edges, dangling ends left out, one by one, and write nothing."""
        with self._opened() as (session, catalog):
            writing.check(session, Plan(catalog, TableNames(catalog), {}, self.nested), nodes, edges)

    def _planned(self, nodes: dict[str, Node], edges: dict[EdgeKey, Edge]) -> Plan:
        ends = {end for edge in edges.values() for end in (edge.source, edge.target)}
        with self._opened() as (session, catalog):
            located = self.locate(session, catalog, sorted({*nodes, *ends}))
        names = TableNames(catalog)
        require_ends(edges.values(), nodes.keys() | located.keys())
        tables = located | {node.id: names.of(node.label, f"node {node.id!r}") for node in nodes.values()}
        moved = [i for i in nodes if i in located and located[i] != tables[i]]
        kept = {edge_key(edge): edge for edge in self.neighbors(moved)} if moved else {}
        with self._opened() as (session, catalog):
            others = {end for edge in kept.values() for end in (edge.source, edge.target)} - tables.keys()
            tables |= self.locate(session, catalog, sorted(others))
            plan = Plan(catalog, names, located, self.nested)
            for node in nodes.values():
                plan.add_node(session, node)
            for key, edge in (kept | edges).items():
                plan.add_edge(session, key, edge, tables)
        return plan

    def delete(self, ids: Iterable[str]) -> None:
        """Take nodes away, and every edge that touches them; unknown ids are ignored."""
        wanted = [*dict.fromkeys(require_ids(ids))]
        self._require_writable()
        if not wanted:
            return
        with self._engine.writing, self.followed(deletes=wanted) as stage:
            with self._opened() as (session, catalog):
                located = self.locate(session, catalog, wanted)
            tables: dict[str, list[str]] = {}
            for node, table in located.items():
                if not catalog.nodes[table].native:
                    raise StoreError(f"node {node!r}: the table {table!r} is not graphret's, and is only read")
                tables.setdefault(table, []).append(node)

            def run(session: Session) -> None:
                for table, nodes in tables.items():
                    delete_nodes(session, table, nodes)

            self._write(run, False, stage, Written.of(deletes=wanted))

    def delete_edges(self, edges: Iterable[Edge]) -> None:
        """Take edges away, known by source, relation, target and rows; those that are not there are ignored."""
        linked = checked_edges(edges)
        self._require_writable()
        if not linked:
            return
        with self._engine.writing, self.followed((), [*linked.values()]) as stage:
            ends = {end for edge in linked.values() for end in (edge.source, edge.target)}
            with self._opened() as (session, catalog):
                located = self.locate(session, catalog, sorted(ends))
            relations = {table.relation: table for table in catalog.relations.values()}
            gone: dict[tuple[str, str, str], list[EdgeKey]] = {}
            for key, edge in linked.items():
                known = relations.get(edge.relation)
                tables = located.get(edge.source, ""), located.get(edge.target, "")
                if known is None or tables not in known.pairs:
                    continue
                if not known.native:
                    raise StoreError(f"relation {edge.relation!r}: it is not graphret's, and is only read")
                gone.setdefault((known.name, *tables), []).append(key)

            def delete(session: Session) -> None:
                for pair, keys in gone.items():
                    delete_edges(session, pair, keys)

            self._write(delete, False, stage, Written.of(edges=linked.values()))

    def load(self, source: MemoryStore) -> None:
        """Fill this database, which must be empty, with the graph of a `MemoryStore`, by columns.

        All or none; no object is made for a node or an edge. A graph of millions of edges, or with many kinds of
        them, is written to a file beside this one, which then takes its place.

        Raises
        ------
        InvalidInput
            When there are nodes here, or a property has no place in a column.
        """
        self._require_writable()
        if self._followers:
            raise InvalidInput("load: it does not tell attached indexes; detach them, and build them again after it")
        with self._engine.writing:
            if self.count() != (0, 0):
                raise InvalidInput(f"{self.path}: a graph is loaded into an empty database; this one has nodes")
            if is_heavy(source.graph):
                self._engine.replaced(lambda path: self._load_aside(path, source.graph))
                with self._engine.reading() as session:
                    self._catalog = Catalog.read(session, self._layout)
                return
            with self.followed() as stage:
                self._write(lambda session: load_graph(session, self._catalog, source.graph, self.nested), True, stage)

    def _load_aside(self, path: Path, graph: Graph) -> None:
        size, threads = self._engine.settings
        with LadybugStore(path, nested=self.nested, buffer_pool_size=size, threads=threads) as aside:

            def load(session: Session) -> None:
                def between() -> None:
                    session.do("COMMIT")
                    session.do("BEGIN TRANSACTION")

                load_graph(session, aside._catalog, graph, self.nested, between)

            with aside.followed() as stage:
                aside._write(load, True, stage)

    @classmethod
    def from_store(cls, path: str | Path, source: MemoryStore, **options: Any) -> LadybugStore:
        """Make a database of the graph of a `MemoryStore`; options are those of the constructor."""
        store = cls(path, **options)
        try:
            store.load(source)
        except BaseException:
            store.close()
            raise
        return store

    def _write(
        self,
        action: Callable[[Session], None],
        alone: bool,
        stage: Callable[[Any], None],
        written: Written | None = None,
    ) -> None:
        """Run a write in a transaction; of one that fails nothing stays."""
        engine = self._engine
        session = engine.session()
        beside = engine.gate.alone() if alone else nullcontext()
        with engine.apart.alone(), beside, engine.changes.writing(written):
            try:
                session.do("BEGIN TRANSACTION")
                action(session)
                if self._followers:
                    catalog = Catalog.read(session, self._layout)
                    stage(Reader(lambda: nullcontext((session, catalog))))
                session.do("COMMIT")
            except BaseException as error:
                with suppress(RuntimeError):  # where a statement failed, the database has rolled back
                    session.do("ROLLBACK")
                if isinstance(error, RuntimeError):
                    raise failed(error, engine.path) from error
                raise
            finally:
                session.close()
            if alone:
                engine.forget_plans()
                with engine.reading() as reading:
                    self._catalog = Catalog.read(reading, self._layout)

    def _require_writable(self) -> None:
        if self._engine.read_only:
            raise StoreError(f"{self.path}: the database was opened for reading only")

    def close(self) -> None:
        """Close the database; a second call does nothing."""
        self._apart.close()
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
