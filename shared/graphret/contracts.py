"""Whether what is given together fits together: protocols, views of one condition."""

from __future__ import annotations

import threading
from typing import Any

from typing_extensions import get_protocol_members

from graphret.errors import InvalidInput
from graphret.where import Where


class Lock:
    """A lock that a thread may take again, and that is pickled and copied as a new one,
    as what holds it may be.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[Lock], tuple[()]]:
        return Lock, ()


def implements(value: Any, contract: type) -> bool:
    """Whether an object has all members of a protocol; a store need not be able to take
    edges away.

    ``isinstance`` says so too, but from Python 3.12 on not of a wrapper that hands them
    on by ``__getattr__``.
    """
    return all(
        hasattr(value, name)
        for name in get_protocol_members(contract) - {"delete_edges"}
    )


def restriction_of(one: object) -> Where | None:
    """The condition of a view, which it keeps as `restriction`; `None` for what shows
    all.
    """
    found = getattr(one, "restriction", None)
    return found if isinstance(found, Where) else None


def require_same_view(store: object, index: object) -> None:
    """Raise an `InvalidInput` unless store and index are views of one condition, or
    neither is a view.
    """
    seen, found = restriction_of(store), restriction_of(index)
    if _parts(seen) != _parts(found):
        of_store, of_index = (
            "no view" if one is None else f"a view of {one.to_dict()}"
            for one in (seen, found)
        )
        raise InvalidInput(
            "store and index: both must be view(where) of one condition, not"
            f" {of_store} and {of_index}"
        )


def _parts(where: Where | None) -> set[Where]:
    """The conditions that must all hold, in whatever order they were joined."""
    return (
        set()
        if where is None
        else set(where.children)
        if where.operator == "$and"
        else {where}
    )
