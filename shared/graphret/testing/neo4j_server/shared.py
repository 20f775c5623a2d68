"""The servers of a whole run of the tests, started by whichever of its processes needs one first."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from filelock import FileLock

from graphret.stores.neo4j.layout import CONSTRAINT
from graphret.testing.neo4j_server.errors import CannotStart
from graphret.testing.neo4j_server.server import Neo4jServer

#: Addresses given from outside: an empty database of a server, with user and password where it asks for them.
URI, NEO4J_USER, NEO4J_PASSWORD = "NEO4J_URI", "NEO4J_USERNAME", "NEO4J_PASSWORD"
#: Set to anything, it makes a missing server a failure.
REQUIRED = "GRAPHRET_REQUIRE_NEO4J"
#: How many servers are started for processes that test side by side.
SERVERS = 2
#: So many nodes are taken away in one transaction.
_AT_ONCE = 50_000


class SharedServer:
    """The servers of a run of tests, known by a folder that all its processes see.

    Parameters
    ----------
    folder
        Where data and state are kept.
    owner
        The id of the process with which the servers end.
    """

    def __init__(self, folder: Path, owner: int) -> None:
        self.folder = folder
        self.owner = owner
        #: Whether this process left the database empty.
        self.emptied = False

    @cached_property
    def number(self) -> int:
        """Of the server for this process: one that no other has, as long as there are any, or the one given."""
        if os.environ.get(URI):
            return 0
        with FileLock(self.folder / "taken.lock"):
            taken = len(list(self.folder.glob("taken-by-*")))
            (self.folder / f"taken-by-{os.getpid()}").touch()
        return taken % SERVERS

    @cached_property
    def in_use(self) -> FileLock:
        """Held by the process whose test uses the server's database."""
        return FileLock(self.folder / f"in-use-{self.number}.lock")

    def local(self, *, password: bool = False) -> Neo4jServer:
        """Return the server that can be started here: the one for tests, or one that asks for a password."""
        return self._server(f"{'spare' if password else 'server'}-{self.number}", password)

    def _server(self, name: str, password: bool) -> Neo4jServer:
        heap = "512m" if password else "1g"
        return Neo4jServer(self.folder / name, password=password, heap=heap, owner=self.owner)

    def prepare(self) -> dict[str, Any]:
        """Start the server for tests without waiting for it, unless that was done, or one is given."""
        outcome = self.folder / f"outcome-{self.number}.json"
        with FileLock(self.folder / f"starting-{self.number}.lock"):
            if not outcome.exists():
                outcome.write_text(json.dumps(self._begin()), encoding="utf-8")
        return dict(json.loads(outcome.read_text(encoding="utf-8")))

    def address(self) -> tuple[str, tuple[str, str] | None]:
        """Return the URI of the server for tests and its user and password, once it answers.

        Raises
        ------
        CannotStart
            When there is none.
        """
        outcome = self.prepare()
        if outcome["reason"]:
            raise CannotStart(outcome["reason"])
        if outcome["uri"]:
            return outcome["uri"], tuple(outcome["auth"]) if outcome["auth"] else None
        return self.local().wait().uri, None

    def stop(self) -> None:
        """End what was started, at once: nobody needs its data."""
        for number in range(SERVERS):
            self._server(f"server-{number}", False).kill()
            self._server(f"spare-{number}", True).kill()

    def _begin(self) -> dict[str, Any]:
        uri, auth = os.environ.get(URI), None
        try:
            if uri:
                if os.environ.get(NEO4J_PASSWORD):
                    auth = [os.environ.get(NEO4J_USER, "neo4j"), os.environ[NEO4J_PASSWORD]]
                _require_empty(uri, auth)
            else:
                self.local().start(wait=False)
        except CannotStart as error:
            return {"uri": None, "auth": None, "reason": str(error)}
        return {"uri": uri, "auth": auth, "reason": None}


def _require_empty(uri: str, auth: list[str] | None) -> None:
    """The tests empty the database that they run on: one that holds anything is not theirs."""
    import neo4j
    from neo4j.exceptions import DriverError, Neo4jError

    try:
        with neo4j.GraphDatabase.driver(uri, auth=(auth[0], auth[1]) if auth else None) as driver:
            found = driver.execute_query("MATCH (n) RETURN count(n) AS n").records[0]["n"]
    except (DriverError, Neo4jError, ValueError) as error:
        raise CannotStart(f"{URI} is {uri}, which does not answer: {error}") from error
    if found:
        raise CannotStart(f"{URI} is {uri}, which holds {found} nodes; the tests empty the database they run on")


def empty(execute: Callable[..., Any]) -> None:
    """Take all nodes, constraints and indexes out of a database, but for the constraint that every store makes.

    When a constraint or an index comes or goes, the server plans all queries anew, which takes longer than most tests.

    Parameters
    ----------
    execute
        Runs a query in a transaction of its own: ``session.run``.
    """
    found = execute("SHOW INDEXES YIELD name, type, owningConstraint RETURN name, type, owningConstraint").data()
    for row in found:
        if row["type"] != "LOOKUP" and CONSTRAINT not in (row["name"], row["owningConstraint"]):
            kind, name = ("CONSTRAINT", row["owningConstraint"]) if row["owningConstraint"] else ("INDEX", row["name"])
            execute(f"DROP {kind} `{name.replace('`', '``')}` IF EXISTS").consume()
    if execute("MATCH (n) RETURN count(n)").single().value() > _AT_ONCE:
        execute("MATCH (n) CALL (n) { DETACH DELETE n } IN TRANSACTIONS OF 10000 ROWS").consume()
    execute("MATCH (n) DETACH DELETE n").consume()
