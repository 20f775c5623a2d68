"""What a question states: conditions, an order, absences and unanswerable parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from graphret.planning.properties import Property
from graphret.where import PROPERTIES

#: The fields that a node has beside its properties.
_OWN_FIELDS = ("id", "name", "text", "label")
#: What the value of a property is to be, as `Where` has it.
Test: TypeAlias = Any


class Condition(NamedTuple):
    """That nodes of a label satisfy a test of a property, or do not when negated.

    `start` and `end` are where the question says so, in characters, `first` is the
    number of the first word there.
    """

    owner: Property
    test: Test
    first: int
    start: int
    end: int
    negated: bool = False

    @property
    def where(self) -> dict[str, Any]:
        """The condition as `Where` has it."""
        name = self.owner.name
        test = {PROPERTIES + name if name in _OWN_FIELDS else name: self.test}
        return {"$not": test} if self.negated else test

    def turned(self) -> Condition:
        """The opposite condition."""
        if isinstance(self.test, bool):
            return self._replace(test=not self.test)
        return self._replace(negated=True)


class Ranking(NamedTuple):
    """That an end of an order is asked for.

    The order is by the property `by` of nodes of a label, or, where that is "", by how
    many nodes of the label go with a result.
    """

    label: str
    by: str
    descending: bool
    limit: int | None


class Absence(NamedTuple):
    """That nothing of a label, or of the names behind a place, may go with a result.

    `label` is "" where a name says of what.
    """

    label: str
    start: int


@dataclass
class Stated:
    """What a question states beside names and relations.

    Parameters
    ----------
    asked_label
        The label of what is asked for, "" where no word says it.
    asks_who
        Whether it asks for people by "who" alone.
    limit
        How many are wanted; `None` where no number says it.
    doubts
        What it asks that no condition, order or node of the graph can answer, in words.
    nouns
        Where it first speaks of each label, in characters.
    unread_text
        The question with the words that were read as spaces, so that what is left has
        its place.
    """

    asked_label: str = ""
    asks_who: bool = False
    conditions: list[Condition] = field(default_factory=list)
    ranking: Ranking | None = None
    absence: Absence | None = None
    limit: int | None = None
    doubts: list[str] = field(default_factory=list)
    nouns: dict[str, tuple[int, int]] = field(default_factory=dict)
    unread_text: str = ""

    @property
    def anything(self) -> bool:
        """Whether anything was stated that a plan can heed."""
        return bool(self.conditions or self.ranking or self.absence)
