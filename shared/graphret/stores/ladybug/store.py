"""`LadybugStore`: a graph in a file, with Cypher and without a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from graphret.errors import InvalidInput, StoreError, StoreMismatch
from graphret.schema import GraphSchema
from graphret.stores.base import (
    GraphStore,
    LabelTables,
    Rows,
    require_seconds,
)
from graphret.stores.database import DatabaseStore
from graphret.stores.ladybug.database import Database, Session, first_line, refused
from graphret.stores.ladybug.graph import Graph, by_table, read_schema
from graphret.stores.ladybug.loader import Loader
from graphret.stores.ladybug.profile import operators_of, wall_seconds
from graphret.stores.ladybug.queries import DRIVER_ERRORS, QueryProcess, run
from graphret.stores.ladybug.tables import Catalog, node
from graphret.stores.ladybug.writer import Writer
from graphret.stores.memory import MemoryStore
from graphret.stores.profile import Profile
from graphret.types import Edge, Node
from graphret.where import Where

#: So many nodes are read together, and the edges of so many.
BLOCK, _SOURCES = 10_000, 1_000
#: Of so many nodes of each label, and edges of each pair of labels that a relation
#: joins, the properties are read.
SAMPLE = 1_000
_QUERY_MEMORY = (
    1 << 30
)  # bytes for the pages of one query apart, where the store names no other


class LadybugStore(DatabaseStore):
    """A `CypherStore` in a Ladybug database, the embedded successor of Kùzu.

    Each primary label is a table of nodes with the columns ``id``, ``name``, ``text``,
    ``labels`` and one for each property, each relation a table of edges with
    ``weight``, ``source_row``, ``target_row`` and its properties: a query says ``MATCH
    (m:Movie)-[:DIRECTED_BY]->(p:Person) WHERE m.year > 1990``. A secondary label is an
    item of ``labels``: `query` finds by a label the nodes of its table alone, and
    `graphret.cypher.run_checked` every node that has it. A property named like one of
    the layout's columns is the column ``properties.NAME``.

    Ladybug tells neither upper from lower case in the names of tables, nor a label from
    a relation, and takes no dot. Of two such names the second gets a table with an
    underscore behind its name, and an underscore stands for a dot: beside the label
    ``Director`` a query says ``MATCH (f:Film)-[:director_]->(d:Director)``, and
    ``film.actor`` is ``film_actor``. Only queries need these names, and `schema` says
    them.

    A column has one type: one of integers becomes one of floats with the first float,
    and one of several types, of maps or of mixed lists is text to queries and
    conditions. The column ``properties`` has all properties of a row as JSON, of which
    nodes and edges are read. A view takes conditions that the database decides by
    itself. One store, of one process, may have a database open for writing, and it
    answers one call after another.

    Parameters
    ----------
    path
        The file, made where there is none; ``:memory:`` is a temporary one.
    read_only
        Open it for reading only, as several processes may at a time.
    buffer_pool_size
        At most so many bytes of memory for pages; 0 is 4 GiB.

    Raises
    ------
    StoreUnavailable
        When the file cannot be opened, or another store or process has it open.
    StoreMismatch
        When it is no database of this version of Ladybug, or something else than
        graphret made its tables.
    MissingDependency
        Without the extra ``ladybug``.
    """

    dialect = "ladybug"

    def __init__(
        self, path: str | Path, *, read_only: bool = False, buffer_pool_size: int = 0
    ) -> None:
        #: The number of writes so far, and the tables of labels after them.
        self._label_tables: tuple[int, Mapping[str, LabelTables]] | None = None
        self._written: tuple[Session, Catalog] | None = (
            None  # the open transaction of a write, for attached indexes
        )
        self._database = Database(
            path, read_only=read_only, buffer_pool_size=buffer_pool_size
        )
        self._process = QueryProcess(self._database, buffer_pool_size or _QUERY_MEMORY)
        try:
            self._read_catalog()
        except BaseException:
            self._database.close()
            raise

    @property
    def path(self) -> Path:
        """The file."""
        return self._database.path

    def close(self) -> None:
        """Close the database, unless this is a view; a second call does nothing."""
        if not self._is_view:
            self._process.close()
            self._database.close()

    # reading

    @contextmanager
    def _reading(self) -> Iterator[Graph]:
        if self._written is not None:
            yield Graph(*self._written, self._scope)
            return
        with self._database.session() as session:
            try:
                yield Graph(session, self._database.catalog, self._scope)
            except RuntimeError as error:
                raise StoreError(
                    f"{self.path}: the database could not be read: {first_line(error)}"
                ) from error

    def _read_catalog(self) -> None:
        with self._reading() as graph:
            try:
                self._database.catalog = Catalog.read(graph.session)
            except StoreMismatch as error:
                raise StoreMismatch(
                    f"{self.path}: {error}; graphret opens what it wrote"
                ) from None

    def _nodes(self, where: Where | None) -> Iterator[list[Node]]:
        for block in self._ids(BLOCK, where):
            with (
                self._reading() as graph
            ):  # a write may have happened between two blocks
                rows = [
                    row
                    for name, ids in by_table(block)
                    for row in graph.of_table(name, ids)
                ]
            yield sorted(map(node, rows), key=lambda node_: node_.id)

    def _edges(self, relations: list[str] | None) -> Iterator[list[Edge]]:
        for block in self._ids(_SOURCES):
            with self._reading() as graph:
                sources = [i for i, _ in block] if self._scope else dict(block)
                edges = graph.neighbors(sources, relations, None, "out")
            if edges:
                yield edges

    def _ids(
        self, block: int, where: Where | None = None
    ) -> Iterator[list[tuple[str, str]]]:
        with self._reading() as graph:
            ids = graph.ids(where)
        yield from (ids[start : start + block] for start in range(0, len(ids), block))

    def schema(self) -> GraphSchema:
        """Return labels, triples and properties with counts, types and examples.

        An edge counts under every pair of the labels of its ends, as checked queries
        find it by each. Properties have the names that Cypher knows them by, ``id``,
        ``name`` and ``text`` among them; labels and relations have their own, and the
        schema says what Cypher calls them. Properties are read from the first 1,000
        nodes of each label, and edges of each pair of labels that a relation joins.
        """
        with self._reading() as graph:
            return read_schema(graph, SAMPLE)

    # Cypher

    def _run(self, cypher: str, parameters: Any, **limits: Any) -> Rows:
        with self._database.session() as session:
            return run(session, self._database.catalog, cypher, parameters, **limits)

    def label_tables(self) -> Mapping[str, LabelTables]:
        """Return the tables with nodes of each label, read again after a write.

        Keys are the labels' names in queries, in lower case.
        """
        writes = self._database.writes
        if self._label_tables is None or self._label_tables[0] != writes:
            with self._reading() as graph:
                self._label_tables = writes, graph.label_tables()
        return self._label_tables[1]

    def id_in_cypher(self, variable: str) -> str:
        """Return how a query writes the id of a node."""
        return f"{variable}.id"

    def query_in_subprocess(
        self,
        cypher: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout: float,
        max_rows: int | None = None,
        max_bytes: int | None = None,
    ) -> Rows:
        """Run an untrusted query in another process, killed a second after the timeout.

        In this process, nothing could stop a query that is still being planned or that
        computes a huge value, and some queries crash it. There, a crash is a
        `QueryRefused`, and more than `timeout` seconds are a `QueryTimeout`. Queries
        run one at a time, and a write waits for them. The first one, and the first one
        after a write, waits about a second for the process to start, which does not
        count.
        """
        self._require_query(require_seconds("timeout", timeout), max_rows, max_bytes)
        return self._process.run(
            cypher, parameters, timeout=timeout, max_rows=max_rows, max_bytes=max_bytes
        )

    def explain(self, cypher: str, *, timeout: float | None = None) -> str | None:
        """Plan a query and return `None`, because Ladybug does not name its type.

        Nothing stops Ladybug's planner, whatever the `timeout`: run untrusted queries
        with `query_in_subprocess`.
        """
        self._require_query(timeout)
        with self._database.session() as session:
            try:
                session.prepared(cypher)
            except DRIVER_ERRORS as error:
                raise refused(error, timeout) from error
        return None

    def profile(
        self,
        cypher: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout: float,
    ) -> Profile:
        """Run a query in another process for `ProfilingStore.profile`."""
        ((drawing,),) = self.query_in_subprocess(
            f"PROFILE {cypher}", parameters, timeout=timeout
        ).rows
        operators = operators_of(drawing)
        rows = operators[0].rows if operators else 0
        return Profile(cypher, operators, rows, wall_seconds(drawing))

    # writing

    def load(self, source: GraphStore) -> None:
        """Fill this database, which must be empty, with the graph of another store.

        It is read into memory first, unless it is there, and written in columns.
        The nodes and each relation are a transaction: if a load is killed, a part may
        remain; `upsert` completes it.
        """
        self._require_writable()
        if self._followers:
            raise InvalidInput(
                "load: it does not update attached indexes; detach them first, and"
                " rebuild them afterwards"
            )
        with self._database.writing() as session:
            if self.count() != (0, 0):
                raise InvalidInput(
                    f"{self.path}: expected an empty database, got one with nodes"
                )
            graph = source.local_graph()
            if graph is None:
                graph = MemoryStore.of(
                    chain.from_iterable(source.nodes()),
                    chain.from_iterable(source.edges()),
                ).graph
            Loader(session, self._database.catalog, graph).load()
        self._read_catalog()

    def _write(self, work: Callable[[Writer], None], **written: Any) -> None:
        with self._database.file_lock, self.followed(**written) as stage:
            with self._database.writing() as session:
                session.do("BEGIN TRANSACTION")
                work(Writer(session, self._database.catalog))
                if self._followers:
                    stage(self._copy(_written=(session, Catalog.read(session))))
                session.do("COMMIT")
            self._read_catalog()

    def _require_writable(self) -> None:
        super()._require_writable()
        if self._database.read_only:
            raise StoreError(f"{self.path}: the database was opened read-only")
