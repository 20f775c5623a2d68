"""What kinds of values an expression may have, as far as the text of a query tells."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

NUMBERS = frozenset(("INTEGER", "FLOAT"))
TEMPORAL = frozenset(("DATE", "TIME", "LOCAL TIME", "LOCAL DATETIME", "DATETIME"))
#: What a property may hold.
STORABLE = NUMBERS | TEMPORAL | {"BOOLEAN", "STRING", "POINT", "DURATION", "LIST"}
#: What has properties or components.
WITH_PROPERTIES = TEMPORAL | {"MAP", "NODE", "RELATIONSHIP", "POINT", "DURATION"}

_WORDS = {
    "INTEGER": "an integer",
    "FLOAT": "a float",
    "BOOLEAN": "a boolean",
    "STRING": "a string",
    "NODE": "a node",
    "RELATIONSHIP": "a relationship",
    "PATH": "a path",
    "MAP": "a map",
    "INTERNAL ID": "an internal id",
    "POINT": "a point",
    "DURATION": "a duration",
    "LIST": "a list",
    "DATE": "a date",
    "TIME": "a time",
    "LOCAL TIME": "a local time",
    "LOCAL DATETIME": "a local datetime",
    "DATETIME": "a datetime",
}


@dataclass(eq=False, slots=True)
class Entity:
    """A node or a relationship of a query, under all the names that it goes by.

    Parameters
    ----------
    relationship
        Whether it is a relationship.
    labels
        The label expressions that all hold of it, or the relations.
    """

    relationship: bool = False
    labels: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """The kinds of values that an expression may have; `names` is None where nothing is known.

    Parameters
    ----------
    names
        ``INTEGER``, ``LIST`` and so on.
    inner
        Of a list, the kind of its items.
    entity
        Of a node or relationship, which one.
    """

    names: frozenset[str] | None = None
    inner: Kind | None = None
    entity: Entity | None = None

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
STRING = Kind(frozenset(("STRING",)))
MAP = Kind(frozenset(("MAP",)))
PATH = Kind(frozenset(("PATH",)))
NODE = Kind(frozenset(("NODE",)))
RELATIONSHIP = Kind(frozenset(("RELATIONSHIP",)))
PROPERTY_VALUE = Kind(STORABLE, Kind(STORABLE - {"LIST"}))


def list_of(inner: Kind) -> Kind:
    """The kind of lists of such items."""
    return Kind(frozenset(("LIST",)), inner)


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
    spoken = [word for name, word in _WORDS.items() if name in names]
    return " or ".join(filter(None, (", ".join(spoken[:-1]), spoken[-1])))
