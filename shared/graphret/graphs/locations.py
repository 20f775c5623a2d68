"""Where graphs come from and go to: one string for a folder, a Ladybug file or a Neo4j."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from graphret.errors import InvalidInput, NotAnIndex
from graphret.folder import CURRENT, storing
from graphret.stores.base import GraphStore
from graphret.stores.opening import is_address, is_ladybug, neo4j_login, open_store

FOLDER, LADYBUG, NEO4J = "folder", "ladybug", "neo4j"

#: What a file is called that is to be made as a Ladybug database.
LADYBUG_SUFFIXES = (".lbug", ".lbdb", ".ladybug", ".kuzu")
_PREFIX = "ladybug:"
#: A server may take five seconds to answer at all, and one that refuses is asked again for a second: the driver would
#: give one that is silent a minute.
_PATIENCE: dict[str, Any] = {
    "connect_timeout": 5.0,
    "retry_time": 1.0,
    "options": {"connection_acquisition_timeout": 5.0},
}


def kind_of(where: str) -> str:
    """Return what is, or will be, at a place: ``folder``, ``ladybug`` or ``neo4j``.

    An address (``bolt://``, ``neo4j://``) is a Neo4j. What begins with ``ladybug:``, is a Ladybug database already or
    has one of `LADYBUG_SUFFIXES` and is no folder of graphret's is a Ladybug database. Anything else is a folder.
    """
    if not where or where == _PREFIX:
        raise InvalidInput("a folder, a Ladybug file or the address of a Neo4j is expected, not an empty string")
    if where.startswith(_PREFIX):
        return LADYBUG
    if is_address(where):
        return NEO4J
    path = Path(where)
    if is_ladybug(path) or (path.suffix.lower() in LADYBUG_SUFFIXES and not (path / CURRENT).is_file()):
        return LADYBUG
    return FOLDER


def path_of(where: str) -> Path:
    """Return the path of a folder or a Ladybug file."""
    return Path(where.removeprefix(_PREFIX))


def place_of(where: str) -> str:
    """Return one text for one place, however it is written, without a password."""
    if kind_of(where) != NEO4J:
        return str(path_of(where).resolve())
    address, login = neo4j_login(where, {})
    return urlsplit(address)._replace(path=quote(login.get("database", ""))).geturl()


@contextmanager
def opened(where: str, *, create: bool = False, **options: Any) -> Iterator[GraphStore]:
    """Open the graph at a place (see `kind_of`) as `open_store` does, and close what holds a connection or a file.

    With `create`, a Ladybug database that is not there is made, and taken away again where nothing was written.
    """
    path, kind = path_of(where), kind_of(where)
    fresh = kind == LADYBUG and create and not path.exists()
    if fresh:
        from graphret.stores.ladybug import LadybugStore

        with storing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        store: GraphStore = LadybugStore(path, **options)
    elif kind == LADYBUG and not path.exists():
        raise NotAnIndex(f"{path}: no such file")
    else:
        store = open_store(where.removeprefix(_PREFIX), **{**(_PATIENCE if kind == NEO4J else {}), **options})
    empty = False
    try:
        yield store
    except BaseException:
        empty = fresh and store.count() == (0, 0)
        raise
    finally:
        close = getattr(store, "close", None)
        if close is not None:
            close()
        if empty:
            for file in (path, *path.parent.glob(f"{path.name}.*")):
                file.unlink(missing_ok=True)
