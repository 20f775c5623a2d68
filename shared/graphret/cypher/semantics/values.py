"""What kinds of values an expression may have, as far as the text of a query tells."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

STRINGS = frozenset(("STRING",))
LISTS = frozenset(("LIST",))
NUMBERS = frozenset(("INTEGER", "FLOAT"))
TEMPORAL = frozenset(("DATE", "TIME", "LOCAL TIME", "LOCAL DATETIME", "DATETIME"))
#: What a property may hold.
STORABLE = NUMBERS | TEMPORAL | {"BOOLEAN", "STRING", "POINT", "DURATION", "LIST"}
#: What has properties or components.
WITH_PROPERTIES = TEMPORAL | {"MAP", "NODE", "RELATIONSHIP", "POINT", "DURATION"}

#: In the order in which people are told of them.
_SPOKEN = (
    *(
        "INTEGER",
        "FLOAT",
        "BOOLEAN",
        "STRING",
        "NODE",
        "RELATIONSHIP",
        "PATH",
        "MAP",
        "POINT",
    ),
    *("DURATION", "LIST", "DATE", "TIME", "LOCAL TIME", "LOCAL DATETIME", "DATETIME"),
)


@dataclass(eq=False, slots=True)
class PatternEntity:
    """A node or a relationship of a query under all its names.

    All its label expressions hold.
    """

    relationship: bool = False
    labels: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """The kinds of values that an expression may have; `names` is `None` if unknown.

    `inner` is the kind of a list's items, and `entity` the node or relationship that it
    is.
    """

    names: frozenset[str] | None = None
    inner: Kind | None = None
    entity: PatternEntity | None = None

    def may_be(self, allowed: frozenset[str]) -> bool:
        """Whether some of its values are of an allowed kind."""
        return self.names is None or not self.names.isdisjoint(allowed)

    def is_only(self, name: str) -> bool:
        """Whether all its values are of one kind."""
        return self.names is not None and self.names == {name}

    def item(self) -> Kind:
        """The kind of its items."""
        return self.inner or ANYTHING


ANYTHING = Kind()
BOOLEAN = Kind(frozenset(("BOOLEAN",)))
INTEGER = Kind(frozenset(("INTEGER",)))
FLOAT = Kind(frozenset(("FLOAT",)))
STRING = Kind(STRINGS)
MAP = Kind(frozenset(("MAP",)))
PATH = Kind(frozenset(("PATH",)))
NODE = Kind(frozenset(("NODE",)))
RELATIONSHIP = Kind(frozenset(("RELATIONSHIP",)))
PROPERTY_VALUE = Kind(STORABLE, Kind(STORABLE - {"LIST"}))


def list_of(inner: Kind) -> Kind:
    """The kind of lists of such items."""
    return Kind(LISTS, inner)


def union(kinds: list[Kind]) -> Kind:
    """The kind of what may be of any of the kinds."""
    if not kinds or any(k.names is None for k in kinds):
        return ANYTHING
    if len(kinds) == 1:
        return kinds[0]
    names = frozenset().union(*(k.names or () for k in kinds))
    inners = [k.inner for k in kinds if k.names and "LIST" in k.names]
    inner = union([i or ANYTHING for i in inners]) if inners else None
    entities = {id(k.entity): k.entity for k in kinds}
    return Kind(names, inner, kinds[0].entity if len(entities) == 1 else None)


def words(names: frozenset[str] | None) -> str:
    """Kinds as people say them: ``a node or a relationship``."""
    if names is None:
        return "anything"
    if names >= STORABLE:
        return "the value of a property"
    spoken = [
        f"{'an' if name[0] == 'I' else 'a'} {name.lower()}"
        for name in _SPOKEN
        if name in names
    ]
    return " or ".join(filter(None, (", ".join(spoken[:-1]), spoken[-1])))
