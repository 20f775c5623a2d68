"""Why there is no server."""

from __future__ import annotations

from graphret.errors import GraphretError


class CannotStart(GraphretError):
    """No Neo4j server can be started here; the message says why."""
