"""`LadybugView`: the part of a `LadybugStore` that a condition leaves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from graphret.errors import QueryRefused, StoreError
from graphret.stores.base import Rows
from graphret.stores.following import Following
from graphret.stores.ladybug.reading import Reader
from graphret.types import Edge, Node
from graphret.where import Where, WhereLike, both


class LadybugView(Reader, Following):
    """The part of a `LadybugStore` that a condition leaves, for reading."""

    dialect = "ladybug"
    _is_view = True

    def view(self, where: WhereLike) -> LadybugView:
        """Return the view as far as nodes satisfy `where` too."""
        return LadybugView(self._opened, both(self.restriction, Where.parse(where)), self._changes)

    def query(
        self,
        cypher: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        max_rows: int | None = None,
    ) -> Rows:
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
