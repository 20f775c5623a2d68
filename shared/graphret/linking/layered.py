"""`Layered`: an immutable table, of which a changed copy costs what changes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, Generic, TypeVar, overload

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
D = TypeVar("D")

# Where more than one entry in so many has changed, a table is copied.
_SHARE = 4


class Layered(Generic[K, V]):
    """A table of entries that shares them with the tables that it was made of.

    Parameters
    ----------
    entries
        The entries, which nobody changes any more; those of a saved table are read when
        they are asked for.
    changes
        What replaces them: other values, `None` for an entry that is gone.
    """

    def __init__(
        self, entries: Mapping[K, V], changes: dict[K, V | None] | None = None
    ) -> None:
        self._entries = entries
        self._changes = changes or {}

    def changed(self, changes: Mapping[K, V | None]) -> Layered[K, V]:
        """Return the table with some entries set, and without those that are `None`."""
        after = Layered(self._entries, {**self._changes, **changes})
        if len(after._changes) * _SHARE <= len(after._entries):
            return after
        return Layered(after.as_dict())

    def as_dict(self) -> dict[K, V]:
        """Return the entries as a dictionary."""
        entries: dict[K, V | None] = dict(self._entries.items())
        entries |= self._changes
        return {key: value for key, value in entries.items() if value is not None}

    @overload
    def get(self, key: K) -> V | None: ...
    @overload
    def get(self, key: K, default: D) -> V | D: ...
    def get(self, key: K, default: Any = None) -> Any:
        """Return the value of a key, or else the default."""
        if key in self._changes:
            value = self._changes[key]
            return default if value is None else value
        return self._entries.get(key, default)

    def count(self, key: K) -> int:
        """Return how long the list of a key is, 0 where there is none."""
        entries: Any = self._entries
        if isinstance(entries, dict) or key in self._changes:
            listed: Any = self.get(key, ())
            return len(listed)
        return int(entries.count(key))

    @property
    def getter(self) -> Callable[[K], V | None]:
        """What does as `get`, for many keys: where nothing has changed a dictionary."""
        return self.get if self._changes else self._entries.get

    def __getitem__(self, key: K) -> V:
        if (value := self.get(key)) is None:
            raise KeyError(key)
        return value

    def __contains__(self, key: K) -> bool:
        return self.get(key) is not None

    def __bool__(self) -> bool:
        return bool(self._entries or self._changes)

    def __iter__(self) -> Iterator[K]:
        return iter(self.as_dict())

    def __len__(self) -> int:
        return len(self.as_dict())
