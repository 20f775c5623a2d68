"""A real Neo4j for tests: a server, the pytest fixtures that share one, and ``python -m`` to start and stop one.

::

    with Neo4jServer(folder) as server:
        store = Neo4jStore(server.uri, auth=server.auth)

A suite of tests loads the fixtures with ``pytest_plugins = ["graphret.testing.neo4j_server.fixtures"]``.
"""

from graphret.testing.neo4j_server.server import CannotStart, Neo4jServer

__all__ = ["CannotStart", "Neo4jServer"]
