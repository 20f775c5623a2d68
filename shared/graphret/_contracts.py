"""Whether an object is what a contract asks for."""

from __future__ import annotations

from inspect import iscoroutinefunction
from typing import Any

from typing_extensions import get_protocol_members

from graphret.errors import InvalidInput


def fulfils(value: Any, contract: type) -> bool:
    """Whether an object has all members of a protocol.

    ``isinstance`` says so too, but from Python 3.12 on not of a wrapper that hands them on by ``__getattr__``.
    """
    return all(hasattr(value, name) for name in get_protocol_members(contract))


def is_awaited(store: Any) -> bool:
    """Whether a store is an `AsyncGraphStore`, of which a call that nobody awaits does nothing at all."""
    return iscoroutinefunction(getattr(store, "get", None))


def require_direct(store: Any, what: str = "store") -> None:
    """Raise an `InvalidInput` where a store's calls would have to be awaited."""
    if is_awaited(store):
        raise InvalidInput(f"{what}: {type(store).__name__} is awaited; a store is needed here whose calls are not")
