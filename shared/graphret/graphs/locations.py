"""Locations of graphs as one string: a folder, a Ladybug file or a Neo4j."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

from graphret import storage
from graphret.errors import InvalidInput, NotAnIndex
from graphret.storage import CURRENT, storing
from graphret.stores.addresses import is_address, is_ladybug, neo4j_login, open_store
from graphret.stores.base import GraphStore
from graphret.stores.ladybug import LadybugStore
from graphret.stores.memory import MemoryStore
from graphret.stores.neo4j.layout import PropertyNames

FOLDER, LADYBUG, NEO4J = "folder", "ladybug", "neo4j"

#: The suffix of a file to create as a Ladybug database.
LADYBUG_SUFFIX = ".lbug"
#: Give up on a silent server after five seconds; the driver would wait a minute.
_PATIENCE = {
    "connection_timeout": 5.0,
    "connection_acquisition_timeout": 5.0,
    "max_transaction_retry_time": 1.0,
}


def kind_of(where: str) -> str:
    """Return the kind of a location: ``folder``, ``ladybug`` or ``neo4j``.

    An address (``bolt://``, ``neo4j://``) is a Neo4j. An existing Ladybug database, or
    a path that ends in ``.lbug`` and is no folder of graphret's, is a Ladybug database.
    Anything else is a folder.
    """
    if not where:
        raise InvalidInput(
            "expected a folder, a Ladybug file or the address of a Neo4j, got an"
            " empty string"
        )
    if is_address(where):
        return NEO4J
    path = Path(where)
    if is_ladybug(path) or (
        path.suffix.lower() == LADYBUG_SUFFIX and not (path / CURRENT).is_file()
    ):
        return LADYBUG
    return FOLDER


def place_of(where: str) -> str:
    """Return the canonical text of a location, without a password."""
    if kind_of(where) != NEO4J:
        return str(Path(where).resolve())
    address, login = neo4j_login(where, {})
    return urlsplit(address)._replace(path=quote(login.get("database", ""))).geturl()


@contextmanager
def opened(
    where: str,
    *,
    create: bool = False,
    id_property: str | None = None,
    name_property: PropertyNames | None = None,
    text_property: str | None = None,
) -> Iterator[GraphStore]:
    """Open the graph at a location as `open_store` does, and close it afterwards.

    With `create`, a missing Ladybug database is created and can be written to;
    otherwise it is opened read-only, as another process may have it open.
    """
    kind = kind_of(where)
    if kind == LADYBUG and create:
        with storing(Path(where)):
            Path(where).parent.mkdir(parents=True, exist_ok=True)
        store: GraphStore = LadybugStore(where)
    else:
        store = open_store(
            where,
            read_only=kind == LADYBUG,
            id_property=id_property,
            name_property=name_property,
            text_property=text_property,
            options=_PATIENCE if kind == NEO4J else None,
        )
    try:
        yield store
    finally:
        getattr(store, "close", lambda: None)()


@contextmanager
def changed(
    where: str, *, name_property: PropertyNames | None = None
) -> Iterator[GraphStore]:
    """Open the graph at a place to write to it, and close its connection or file.

    A folder is saved when the work is done without an error, under a lock from before
    it is read: changes never cross. A database is written to as the work goes on.

    Raises
    ------
    NotAnIndex
        When there is no graph, or one of documents, which has no store to write to.
    StorageError, StoreError
        When the folder or the file cannot be written to.
    """
    kind = kind_of(where)
    if kind == FOLDER:
        folder = Path(where)
        storage.read_current(folder)  # the lock would make a folder that is not there
        with storage.writing(folder):
            graph = MemoryStore.load(folder)
            yield graph
            graph.save(folder)
        return
    if kind == LADYBUG and not is_ladybug(Path(where)):
        raise NotAnIndex(f"{where}: no such file")
    with opened(where, create=True, name_property=name_property) as store:
        yield store
