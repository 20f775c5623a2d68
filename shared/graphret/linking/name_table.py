"""The nodes of each name, as an immutable table: a change makes a new one."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, TypeAlias, TypeVar

from graphret.columns import TextArray
from graphret.linking.layered import Layered
from graphret.storage import Bundle, Parts
from graphret.text_index import SavedLists, TextIndex, starts_of

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Any)

#: The id of a node, and how it spells a name.
NamedNode: TypeAlias = tuple[str, str]


def updated_postings(
    table: Layered[K, tuple[V, ...]],
    removed: Collection[tuple[K, V]],
    added: Collection[tuple[K, V]],
) -> Layered[K, tuple[V, ...]]:
    """Return a table of sorted postings with some removed and others added.

    A key without postings is left out.
    """
    keys = dict.fromkeys(key for key, _ in chain(removed, added))
    known = {(key, posting) for key in keys for posting in table.get(key, ())}
    postings = sorted((known - {*removed}) | {*added})
    changed: dict[K, tuple[V, ...] | None] = dict.fromkeys(keys)
    for key, of_key in groupby(postings, itemgetter(0)):
        changed[key] = tuple(posting for _, posting in of_key)
    return table.changed(changed)


def name_table_parts(table: Layered[str, tuple[NamedNode, ...]]) -> Parts:
    """Return the parts that a table of names is saved as."""
    entries = table.as_dict()
    named_nodes = [*chain.from_iterable(entries.values())]
    parts = Parts({"starts": starts_of(entries.values())})
    parts.add("names", TextIndex.of(TextArray.of_strings(entries)).parts())
    parts.add_texts("ids", TextArray.of_strings(id_ for id_, _ in named_nodes))
    parts.add_texts(
        "spelled", TextArray.of_strings(spelled for _, spelled in named_nodes)
    )
    return parts


def saved_name_table(bundle: Bundle) -> Layered[str, tuple[NamedNode, ...]]:
    """Open a table of names that was saved."""
    ids, spelled = (bundle.texts(column) for column in ("ids", "spelled"))

    def named_nodes(at: slice) -> list[NamedNode]:
        return [*zip(ids[at].tolist(), spelled[at].tolist(), strict=True)]

    names = TextIndex.from_bundle(bundle.sub("names"))
    return Layered(SavedLists(names, bundle.arrays["starts"], named_nodes))
