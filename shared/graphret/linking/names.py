"""`NameIndex`: the names of a graph's nodes, and the nodes with a name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from graphret.contracts import Lock
from graphret.linking.gazetteer import Gazetteer, NameMatch
from graphret.search.fields import ALIASES
from graphret.text import alias_list, short_names, words
from graphret.types import Node

#: The kinds of a node's names.
NAME, ALIAS, SHORT = "name", "alias", "short"
#: Punctuation of sentences: marks that end them, dashes, quotes and brackets.
SIGNS = frozenset("?!.,;:…。、！？：；-–—¿¡()[]{}'\"`‘’“”‚„«»‹›")


def name_variants(name: str, aliases: Any = None) -> Iterator[tuple[str, str]]:
    """Yield a name and its aliases with their kinds, then each without its bracket."""
    full_names = [(NAME, name), *((ALIAS, alias) for alias in alias_list(aliases))]
    yield from full_names
    for _, full_name in full_names:
        if (
            "(" in full_name
            and (short := short_names(full_name))
            and words(short[0]) != words(full_name)
        ):
            yield SHORT, short[0]


def normal_form(name: str) -> str:
    """Return a name's form for comparison: its words, or its symbols if it has none."""
    return " ".join(words(name) or name.split())


def linkable_names(node: Node, aliases: str = ALIASES) -> Iterator[tuple[str, str]]:
    """Yield the names by which a question may mention a node, with their kinds.

    This is the question that linking asks: every name counts as it stands, and the id
    does not. For the names by which other texts refer to a node see
    `graphret.sage.names.reference_names`.

    Parameters
    ----------
    aliases
        The property that holds the node's aliases.
    """
    return name_variants(node.name, node.properties.get(aliases))


class NameIndex:
    """The normalised names, aliases and short names of nodes.

    It is changed in place, in time linear in the change. A million names take about
    0.25 GB. Several threads may read and change it at once.

    Parameters
    ----------
    called
        The id, the name and the aliases of each node.
    aliases
        The property that holds the aliases of nodes in later changes.
    """

    def __init__(
        self, called: Iterable[tuple[str, str, Any]] = (), *, aliases: str = ALIASES
    ) -> None:
        self._aliases = aliases
        self._gazetteer = Gazetteer()
        # By position in the gazetteer, or by the symbols of a name without a word; most
        # names have one node.
        self._ids_by_name: dict[int | str, str | set[str]] = {}
        self._lock = Lock()
        for node_id, name, aliases in called:
            for _, variant in name_variants(name, aliases):
                self._add(variant, node_id)

    def __len__(self) -> int:
        """How many different names there are."""
        return len(self._ids_by_name)

    def nodes_by_name(self, name: int | str) -> tuple[str, ...]:
        """Return the sorted ids of the nodes with a name, or with the name of a match.

        There are none if a change has removed the name in the meantime.
        """
        with self._lock:
            ids = self._ids_by_name.get(
                self._key(name) if isinstance(name, str) else name, ()
            )
            return (ids,) if isinstance(ids, str) else tuple(sorted(ids))

    def find_every(self, run: Sequence[str]) -> list[NameMatch]:
        """Return every name in normalised words; see `Gazetteer.find_every`."""
        with self._lock:
            return self._gazetteer.find_every(run)

    def has_symbols(self, text: str) -> bool:
        """Whether a text of symbols alone, such as ``$``, is a name."""
        return text in self._ids_by_name

    def change(self, old: Iterable[Node], new: Iterable[Node]) -> None:
        """Remove old nodes, then add new ones."""
        with self._lock:
            for nodes, apply in ((old, self._remove), (new, self._add)):
                for node in nodes:
                    for _, variant in linkable_names(node, self._aliases):
                        apply(variant, node.id)

    def _key(self, name: str) -> int | str:
        position = self._gazetteer.position(name)
        return normal_form(name) if position is None else position

    def _add(self, name: str, node_id: str) -> None:
        position = self._gazetteer.add(name)
        key = normal_form(name) if position is None else position
        if key == "":
            return
        ids = self._ids_by_name.setdefault(key, node_id)
        if isinstance(ids, set):
            ids.add(node_id)
        elif ids != node_id:
            self._ids_by_name[key] = {ids, node_id}

    def _remove(self, name: str, node_id: str) -> None:
        key = self._key(name)
        ids = self._ids_by_name.get(key)
        if isinstance(ids, set):
            ids.discard(node_id)
        if ids in (node_id, set()):
            del self._ids_by_name[key]
            if isinstance(key, int):
                self._gazetteer.discard(name)
