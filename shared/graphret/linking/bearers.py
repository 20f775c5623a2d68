"""The bearers of names, as an immutable table: a change makes a new one."""

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
    """Return the table with some bearers removed and others added, each entry sorted.

    A key without bearers is left out.
    """
    changed = {key: set(table.get(key, ())) for key, _ in chain(gone, come)}
    for key, bearer in gone:
        changed[key].discard(bearer)
    for key, bearer in come:
        changed[key].add(bearer)
    after = {
        **table,
        **{key: tuple(sorted(bearers)) for key, bearers in changed.items()},
    }
    for key, bearers in changed.items():
        if not bearers:
            del after[key]
    return after
