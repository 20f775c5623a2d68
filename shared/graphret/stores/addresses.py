"""Opening a graph in a folder, in a Ladybug file, or at the address of a Neo4j."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from graphret import storage
from graphret.errors import InvalidInput, NotAnIndex
from graphret.stores.base import GraphStore
from graphret.stores.graph_changes import CHANGES, changed_graph
from graphret.stores.ladybug import LadybugStore
from graphret.stores.memory import KIND, MemoryStore, graph_from_bundle
from graphret.stores.neo4j import Neo4jStore
from graphret.stores.neo4j.layout import PropertyNames

#: The kinds of folders that hold a graph.
GRAPH_KINDS = (KIND, "sage")

_NEO4J = re.compile(r"(bolt|neo4j)(\+s|\+ssc)?://", re.IGNORECASE)


def open_store(
    where: str | os.PathLike[str],
    *,
    verify: bool = False,
    read_only: bool = False,
    id_property: str | None = None,
    name_property: PropertyNames | None = None,
    text_property: str | Sequence[str] | None = None,
    options: Mapping[str, Any] | None = None,
) -> GraphStore:
    """Open the graph at `where`.

    Parameters
    ----------
    where
        A folder written by graphret (its graph opens as a `MemoryStore`), a Ladybug
        database file, or the address of a Neo4j: ``bolt://`` or ``neo4j://``, with
        ``+s`` or ``+ssc`` for TLS. User, password and database stand in the address
        (``neo4j://user:password@host/database``) or in NEO4J_USERNAME, NEO4J_PASSWORD
        and NEO4J_DATABASE.
    verify
        For a folder: verify all checksums first, see `MemoryStore.load`.
    read_only
        For a Ladybug file, see `LadybugStore`.
    id_property, name_property, text_property, options
        For a Neo4j, see `Neo4jStore`, whose constructor takes more.

    Raises
    ------
    InvalidInput
        If an option does not apply to what is at `where`.
    NotAnIndex
        If there is no graph at `where`.
    CorruptIndex, NewerVersion, StoreUnavailable, AccessDenied, MissingDependency
        If the graph exists but cannot be opened.
    """
    of_neo4j: dict[str, Any] = {
        "id_property": id_property,
        "name_property": name_property,
        "text_property": text_property,
        "options": options,
    }
    text = os.fspath(where)
    if is_address(text):
        _refuse("a Neo4j", verify=verify, read_only=read_only)
        address, login = neo4j_login(text, os.environ)
        return Neo4jStore(address, **login, **of_neo4j)
    path = Path(text)
    if path.is_dir():
        _refuse("a folder", read_only=read_only, **of_neo4j)
        return _open_folder(path, verify)
    if is_ladybug(path):
        _refuse("a Ladybug file", verify=verify, **of_neo4j)
        return LadybugStore(path, read_only=read_only)
    problem = "neither a folder written by graphret nor a Ladybug database file"
    raise NotAnIndex(
        f"{path}: {problem if path.exists() else 'no such file or folder'}"
    )


def _refuse(place: str, **options: Any) -> None:
    """Raise for the first option that is given, because `place` takes none of them."""
    for name, value in options.items():
        if value:
            raise InvalidInput(f"{name}: does not apply to {place}")


def is_address(where: str) -> bool:
    """Whether `where` is the address of a Neo4j; any other address is an error."""
    if "://" in where and not _NEO4J.match(where):
        raise InvalidInput(
            f"{where.split(':')[0]}://…: expected an address that begins with bolt://"
            " or neo4j:// (+s or +ssc for TLS)"
        )
    return "://" in where


def is_ladybug(path: Path) -> bool:
    """Whether a file is a Ladybug database, by its first bytes."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"LBUG"


def neo4j_login(
    address: str, environment: Mapping[str, str]
) -> tuple[str, dict[str, Any]]:
    """Return the bare address, and the login as keyword arguments of `Neo4jStore`."""
    parts = urlsplit(address)
    database = unquote(parts.path.strip("/")) or environment.get("NEO4J_DATABASE", "")
    try:
        malformed = not parts.hostname or parts.port == 0 or "/" in database
    except ValueError:  # a port that is no number
        malformed = True
    if malformed:
        raise InvalidInput(
            f"{parts.scheme}://…: the address is malformed: expected a host, a"
            " port and a database"
        )
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if not user:
        user, password = (
            environment.get("NEO4J_USERNAME", ""),
            environment.get("NEO4J_PASSWORD", ""),
        )
    login: dict[str, Any] = {"auth": (user, password)} if user else {}
    if database:
        login["database"] = database
    return (
        urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], path="")),
        login,
    )


def with_login(address: str, environment: Mapping[str, str]) -> str:
    """Return an address with its login, for a machine of another environment."""
    bare, login = neo4j_login(address, environment)
    parts = urlsplit(bare)
    userinfo = ":".join(quote(part, safe="") for part in login.get("auth", ()))
    host = f"{userinfo}@{parts.netloc}" if userinfo else parts.netloc
    path = quote(login.get("database", ""))
    return urlunsplit(parts._replace(netloc=host, path=path))


def _open_folder(folder: Path, verify: bool) -> MemoryStore:
    if (folder / "nodes.parquet").exists():
        raise NotAnIndex(
            f"{folder}: a graph in Parquet files, which must be imported first"
        )
    kind = storage.read_current(folder)["kind"]
    if kind not in GRAPH_KINDS:
        raise NotAnIndex(f"{folder}: an index of kind {kind!r}, which has no graph")
    bundle = storage.load(folder, kind=kind, verify=verify)
    graph = graph_from_bundle(bundle)
    if CHANGES in bundle.meta:
        graph, _ = changed_graph(graph, bundle.sub(CHANGES))
    return MemoryStore(graph)
