"""Who bears a name, as a table that is never changed: a change makes the next one."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from itertools import chain
from typing import Any, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Any)


def with_bearers(
    table: Mapping[K, tuple[V, ...]],
    gone: Collection[tuple[K, V]],
    come: Collection[tuple[K, V]],
) -> dict[K, tuple[V, ...]]:
    """Return a table of sorted entries in which some keys lose a bearer, and some gain
    one; a key that nobody bears is left out.
    """
    changed = {key: set(table.get(key, ())) for key, _ in chain(gone, come)}
    for key, bearer in gone:
        changed[key].discard(bearer)
    for key, bearer in come:
        changed[key].add(bearer)
    after = {**table, **{key: tuple(sorted(own)) for key, own in changed.items()}}
    for key, own in changed.items():
        if not own:
            del after[key]
    return after
