"""A store and an index that are asked together show the same part of a graph."""

from __future__ import annotations

from graphret.errors import InvalidInput
from graphret.where import Where


def restriction_of(one: object) -> Where | None:
    """The condition of a view, which it keeps as `restriction`; `None` for what shows all."""
    found = getattr(one, "restriction", None)
    return found if isinstance(found, Where) else None


def require_same_view(store: object, index: object) -> None:
    """Raise an `InvalidInput` unless store and index are views of one condition, or neither is a view."""
    seen, found = restriction_of(store), restriction_of(index)
    if _parts(seen) == _parts(found):
        return
    if found is None:
        raise InvalidInput(
            "index: the store is a view and the index is not, which would show what the view hides; give "
            "index.view(where) with the condition of the store's view"
        )
    if seen is None:
        raise InvalidInput(
            "store: the index is a view and the store is not, which would show what the view hides; give "
            "store.view(where) with the condition of the index's view"
        )
    raise InvalidInput(
        f"index: the store is a view of {seen.to_dict()} and the index one of {found.to_dict()}; give views of both "
        "with the same condition"
    )


def _parts(where: Where | None) -> frozenset[Where]:
    """The conditions that must all hold, so that neither their order nor a view of a view makes a difference."""
    if where is None:
        return frozenset()
    if where.operator == "$and":
        return frozenset[Where]().union(*map(_parts, where.children))
    return frozenset((where,))
