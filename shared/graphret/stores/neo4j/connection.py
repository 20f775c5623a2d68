"""What the synchronous and the asynchronous store have in common: options, and the sessions that they open."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote, urlsplit

from graphret.errors import InvalidInput, StoreUnavailable
from graphret.stores.base import require_names, require_seconds
from graphret.stores.neo4j.failures import DYNAMIC, is_at_least
from graphret.stores.neo4j.journal import Journal
from graphret.stores.neo4j.layout import FOREIGN, LLAMA_INDEX, OWN, Layout, layout_of
from graphret.stores.neo4j.preparing import Writer, require_nested

LAYOUTS = {"graphret": OWN, "llama-index": LLAMA_INDEX, "foreign": FOREIGN}


@dataclass(slots=True)
class Options:
    """What a store was told.

    Parameters
    ----------
    uri
        Where the database is, for messages.
    database, impersonated_user
        As the driver takes them.
    timeout
        Seconds after which the database gives up on any call of the store, `None` for the server's own limit.
    nested
        ``refuse`` or ``json``: what is done with values that Neo4j cannot hold.
    layout
        How the graph lies in the database, `None` while that is not known.
    writers
        What else is written with nodes.
    followers
        Indexes that are kept in step.
    strangers
        Those of them that were made with another store, and may be found to lie in another database.
    turn
        Held by the one write at a time that such indexes can follow.
    journal
        What was written to the database through the store.
    """

    uri: str
    database: str | None = None
    impersonated_user: str | None = None
    timeout: float | None = None
    nested: str = "refuse"
    layout: Layout | None = None
    writers: list[Writer] = field(default_factory=list)
    followers: list[Any] = field(default_factory=list)
    strangers: list[Any] = field(default_factory=list)
    turn: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)
    journal: Journal = field(default_factory=Journal, repr=False, compare=False)
    settled: bool = False
    constrained: bool = False
    closed: bool = False

    @classmethod
    def of(
        cls,
        uri: str,
        *,
        layout: str | Layout = "auto",
        id_property: str | None = None,
        name_property: str | Sequence[str] | None = None,
        text_property: str | Sequence[str] | None = None,
        label: str | None = None,
        hidden: Iterable[str] = (),
        nested: str = "refuse",
        writers: Iterable[Writer] = (),
        **rest: Any,
    ) -> Options:
        """Check options; see `Neo4jStore`."""
        require_seconds("timeout", rest.get("timeout"))
        for what in ("database", "impersonated_user"):
            if not isinstance(rest.get(what), str | None):
                raise InvalidInput(f"{what}: a string is expected, not {rest[what]!r}")
        told = layout_of(id_property, name_property, text_property, label)
        if isinstance(layout, str):
            if layout != "auto" and layout not in LAYOUTS:
                raise InvalidInput(f"layout: 'auto', {', '.join(map(repr, LAYOUTS))} expected, not {layout!r}")
            given = LAYOUTS.get(layout)
        else:
            given = layout
        if told is not None and given is not None and given is not FOREIGN:
            raise InvalidInput("layout: this says already where id, name and text are; leave the other options out")
        chosen = told or given
        hidden = require_names("hidden", hidden if isinstance(hidden, str) else tuple(hidden)) or ()
        if chosen is not None and hidden:
            chosen = chosen.hiding(hidden)
        return cls(uri, nested=require_nested(nested), layout=chosen, writers=list(writers), **rest)

    def settle(self, found: tuple[Layout, bool], agent: str) -> Layout:
        """Return a layout that was found with a server of this name, and remember it if there is a graph of it."""
        layout, there = found
        layout = replace(layout, dynamic=is_at_least(agent, DYNAMIC))
        if there:
            self.layout, self.settled = layout, True
        return layout

    def session(self, driver: Any, *, writes: bool, rows: int = 1000) -> dict[str, Any]:
        """What a session is opened with; one sees what the last one of the same driver wrote, on a cluster too.

        Raises
        ------
        StoreUnavailable
            When the store was closed: the driver would connect anew, and nobody close that.
        """
        import neo4j

        if self.closed:
            raise StoreUnavailable(f"{self.uri}: the store was closed")
        options = {
            "database": self.database,
            "impersonated_user": self.impersonated_user,
            "default_access_mode": neo4j.WRITE_ACCESS if writes else neo4j.READ_ACCESS,
            "fetch_size": rows,
            "notifications_min_severity": neo4j.NotificationMinimumSeverity.OFF,
            "bookmark_manager": driver.execute_query_bookmark_manager,
        }
        return {name: value for name, value in options.items() if value is not None}


def driver_options(
    uri: str,
    auth: Any,
    *,
    pool_size: int | None,
    connect_timeout: float,
    retry_time: float,
    user_agent: str | None,
    driver_options: dict[str, Any] | None,
) -> dict[str, Any]:
    """What a driver is made with."""
    _require_address(uri)
    if pool_size is not None and (isinstance(pool_size, bool) or not isinstance(pool_size, int) or pool_size < 1):
        raise InvalidInput(f"pool_size: a whole number of at least 1 is expected, not {pool_size!r}")
    require_seconds("connect_timeout", connect_timeout)
    require_seconds("retry_time", retry_time, zero=True)
    _require_trust(driver_options or {})
    options = {
        "auth": auth,
        "max_connection_pool_size": pool_size,
        "connection_timeout": connect_timeout,
        "max_transaction_retry_time": retry_time,
        "user_agent": user_agent or _user_agent(),
    }
    return {name: value for name, value in options.items() if value is not None} | (driver_options or {})


def _require_address(uri: Any) -> None:
    """Raise an `InvalidInput` if the driver would not take an address, or leave a part of it out of account."""
    if not isinstance(uri, str) or "://" not in uri:
        raise InvalidInput(f"uri: an address such as 'neo4j://localhost:7687' is expected, not {uri!r}")
    if "@" in uri.partition("?")[0]:  # not shown, for the password
        raise InvalidInput("uri: the user and the password are no part of it; pass them as auth=(user, password)")
    try:
        parts = urlsplit(uri)
        _ = parts.port  # the driver takes the rest of a port that is too large
    except ValueError as error:
        raise InvalidInput(f"uri: {uri!r}: {error}") from error
    if database := parts.path.strip("/"):
        raise InvalidInput(f"uri: {uri!r}: the database is no part of it; pass database={unquote(database)!r}")


def _require_trust(settings: dict[str, Any]) -> None:
    """Raise an `InvalidInput` if authorities are to be trusted that cannot be read, or where nothing is encrypted."""
    import neo4j

    trusted = settings.get("trusted_certificates")
    if not isinstance(trusted, neo4j.TrustCustomCAs):
        return
    if not settings.get("encrypted"):
        raise InvalidInput("options: trusted_certificates without encrypted=True, so that nothing would be encrypted")
    for file in trusted.certs:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(file)
        except OSError as error:  # the driver would say it at the first call, and not of which file
            raise InvalidInput(f"options: trusted_certificates: {file} holds no certificate: {error}") from error


def direct(uri: str) -> str:
    """The address of the same server without routing."""
    scheme, rest = uri.split("://", 1)
    return f"{scheme.replace('neo4j', 'bolt')}://{rest}"


def _user_agent() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"graphret/{version('graphret')}"
    except PackageNotFoundError:
        return "graphret"
