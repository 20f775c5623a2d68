"""The bearers of names, as an immutable table: a change makes a new one."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from itertools import chain
from typing import Any, TypeAlias, TypeVar

import numpy as np

from graphret.columns import TextArray
from graphret.linking.layered import Layered
from graphret.storage import Bundle, Parts

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Any)

#: The id of a node, and how it spells a name.
Bearer: TypeAlias = tuple[str, str]


def with_bearers(
    table: Layered[K, tuple[V, ...]],
    gone: Collection[tuple[K, V]],
    come: Collection[tuple[K, V]],
) -> Layered[K, tuple[V, ...]]:
    """Return the table with some bearers removed and others added, each entry sorted.

    A key without bearers is left out.
    """
    changed = {key: set(table.get(key, ())) for key, _ in chain(gone, come)}
    for key, bearer in gone:
        changed[key].discard(bearer)
    for key, bearer in come:
        changed[key].add(bearer)
    return table.changed(
        {key: tuple(sorted(bearers)) or None for key, bearers in changed.items()}
    )


def bearers_parts(table: Layered[str, tuple[Bearer, ...]]) -> Parts:
    """A table of who bears names, as it is saved."""
    entries = table.as_dict()
    every = [*chain.from_iterable(entries.values())]
    parts = Parts({"counts": np.fromiter(map(len, entries.values()), np.int64)})
    parts.add_texts("names", TextArray.of_strings(entries))
    parts.add_texts("ids", TextArray.of_strings(id_ for id_, _ in every))
    parts.add_texts("spelled", TextArray.of_strings(spelled for _, spelled in every))
    return parts


def bearers_of(bundle: Bundle) -> Iterator[tuple[str, tuple[Bearer, ...]]]:
    """Yield the entries of a table of who bears names that was saved."""
    names, ids, spelled = (
        bundle.texts(column).tolist() for column in ("names", "ids", "spelled")
    )
    every = zip(ids, spelled, strict=True)
    for name, count in zip(names, bundle.arrays["counts"].tolist(), strict=True):
        yield name, tuple(next(every) for _ in range(count))
