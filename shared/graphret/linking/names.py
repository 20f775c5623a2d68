"""`NameIndex`: what the nodes of a graph are called, and the nodes that bear a name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from graphret.contracts import Lock
from graphret.linking.gazetteer import Gazetteer, NameMatch
from graphret.search.fields import ALIASES
from graphret.text import short_names, words
from graphret.types import Node

#: How a node is called by a variant of its name.
NAME, ALIAS, SHORT = "name", "alias", "short"
#: What holds a sentence together: marks that end it, dashes, quotes and brackets.
SIGNS = frozenset("?!.,;:…。、！？：；-–—¿¡()[]{}'\"`‘’“”‚„«»‹›")


def name_variants(name: str, aliases: Any = None) -> Iterator[tuple[str, str]]:
    """Go through what a node is called: its name, its aliases, and each of them without
    a bracket behind it.
    """
    listed = (
        [aliases]
        if isinstance(aliases, str)
        else list(aliases)
        if isinstance(aliases, (list, tuple))
        else []
    )
    called = [
        (NAME, name),
        *((ALIAS, alias) for alias in listed if isinstance(alias, str)),
    ]
    yield from called
    for _, long in called:
        if (
            "(" in long
            and (short := short_names(long))
            and words(short[0]) != words(long)
        ):
            yield SHORT, short[0]


def normal_form(name: str) -> str:
    """Return what names are compared by: their words, or where they have none their
    symbols.
    """
    return " ".join(words(name) or name.split())


def node_names(node: Node, aliases: str = ALIASES) -> Iterator[tuple[str, str]]:
    """Go through what a node is called that has its aliases in a property; see
    `name_variants`.
    """
    return name_variants(node.name, node.properties.get(aliases))


class NameIndex:
    """The names, aliases and short names of nodes, normalised; changed in place, in
    time linear in the change.

    A million names take about 0.25 GB. Several threads may read and change it at once.

    Parameters
    ----------
    called
        The id, the name and the aliases of each node.
    aliases
        The property in which the nodes of a later change have theirs.
    """

    def __init__(
        self, called: Iterable[tuple[str, str, Any]] = (), *, aliases: str = ALIASES
    ) -> None:
        self._aliases = aliases
        self._gazetteer = Gazetteer()
        # By position in the gazetteer, or by the symbols of a name without a word; most
        # names have one bearer.
        self._bearers: dict[int | str, str | set[str]] = {}
        self._lock = Lock()
        for node_id, name, aliases in called:
            for _, variant in name_variants(name, aliases):
                self._add(variant, node_id)

    def __len__(self) -> int:
        """How many different names there are."""
        return len(self._bearers)

    def nodes_by_name(self, name: int | str) -> tuple[str, ...]:
        """Return the ids of the nodes that bear a name, or that of a match, in order;
        none if it is gone meanwhile.
        """
        with self._lock:
            held = self._bearers.get(
                self._key(name) if isinstance(name, str) else name, ()
            )
            return (held,) if isinstance(held, str) else tuple(sorted(held))

    def find_every(self, run: Sequence[str]) -> list[NameMatch]:
        """Return every name in normalised words, its places those of words; see
        `Gazetteer.find_every`.
        """
        with self._lock:
            return self._gazetteer.find_every(run)

    def has_symbols(self, text: str) -> bool:
        """Whether a text of symbols alone, such as ``$``, is a name."""
        return text in self._bearers

    def change(self, old: Iterable[Node], new: Iterable[Node]) -> None:
        """Take nodes away and add others, in that order."""
        with self._lock:
            for nodes, apply in ((old, self._remove), (new, self._add)):
                for node in nodes:
                    for _, variant in node_names(node, self._aliases):
                        apply(variant, node.id)

    def _key(self, name: str) -> int | str:
        position = self._gazetteer.position(name)
        return normal_form(name) if position is None else position

    def _add(self, name: str, node_id: str) -> None:
        position = self._gazetteer.add(name)
        key = normal_form(name) if position is None else position
        if key == "":
            return
        held = self._bearers.setdefault(key, node_id)
        if isinstance(held, set):
            held.add(node_id)
        elif held != node_id:
            self._bearers[key] = {held, node_id}

    def _remove(self, name: str, node_id: str) -> None:
        key = self._key(name)
        held = self._bearers.get(key)
        if isinstance(held, set):
            held.discard(node_id)
        if held in (node_id, set()):
            del self._bearers[key]
            if isinstance(key, int):
                self._gazetteer.discard(name)
