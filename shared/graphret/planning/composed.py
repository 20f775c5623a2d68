"""A plan composed of the paths around names and of the stated properties."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphret.linking.words import Lexicon, is_person
from graphret.planning.graph_plan import (
    Anchor,
    GraphPlan,
    Order,
    PlanHop,
    RiskLevel,
    Target,
)
from graphret.planning.paths import PathSpace
from graphret.planning.patterns import Hop
from graphret.planning.question import readings
from graphret.planning.stated import Ranking, Stated

#: The variable of what is asked for.
TARGET = "T"


def hops_along(begin: str, path: Sequence[Hop], number: int) -> list[PlanHop]:
    """Return the hops of a path to the target, with numbered variables in between."""
    hops, var = list[PlanHop](), begin
    for place, hop in enumerate(path):
        last = place == len(path) - 1
        to_var = TARGET if last else f"x{number}_{place + 1}"
        fields = {
            "from": var,
            "rel": hop.relation,
            "to_var": to_var,
            "to_label": hop.label or None,
            "direction": "out" if hop.outgoing else "in",
        }
        hops.append(PlanHop.model_validate(fields))
        var = to_var
    return hops


def asked_labels(stated: Stated, labels: Collection[str]) -> tuple[str, ...]:
    """Return the labels that the target may have; none for any.

    That of its noun; of "who" the labels of people, if possible those that something
    is stated of.
    """
    if stated.asked_label:
        return (stated.asked_label,)
    spoken = [condition.owner.label for condition in stated.conditions]
    if stated.ranking is not None and stated.ranking.by:
        spoken.append(stated.ranking.label)
    if stated.asks_who:
        people = [label for label in labels if is_person(label)]
        return tuple(label for label in people if label in spoken) or tuple(people)
    return tuple(spoken[:1])


@dataclass
class Composer:
    """Composes a plan, part by part.

    Parameters
    ----------
    space
        The kinds of paths that the graph has.
    stated
        What the question states.
    targets
        The labels that the target may have, none for any.
    """

    space: PathSpace
    lexicon: Lexicon
    stated: Stated
    targets: tuple[str, ...]
    anchors: list[Anchor] = field(default_factory=list)
    hops: list[PlanHop] = field(default_factory=list)
    label_of: dict[str, str] = field(default_factory=dict)
    where: dict[str, list[dict[str, Any]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    problem: str = ""
    ranked: str = TARGET

    def walk(self, text: str, path: Sequence[Hop], *, negated: bool = False) -> str:
        """Add a path from a mention's text; return its anchor's variable."""
        var = f"a{len(self.anchors) + 1}"
        label = path[0].start
        self.anchors.append(Anchor(var=var, text=text or "-", label=label or None))
        self._follow(var, label, path, negated)
        return var

    def _follow(
        self, begin: str, label: str, path: Sequence[Hop], negated: bool
    ) -> None:
        hops = hops_along(begin, path, len(self.label_of) + 1)
        self.hops += [hop.model_copy(update={"negated": negated}) for hop in hops]
        if not negated:
            self.label_of[begin] = label
            self.label_of |= {hop.to_var: hop.to_label or "" for hop in hops}
            self.targets = (path[-1].label,)

    def state(self) -> None:
        """Add the conditions, the order and what must not be there."""
        absence = self.stated.absence
        absent = "" if absence is None else absence.label
        later: list[dict[str, Any]] = []
        for condition in self.stated.conditions:
            label = condition.owner.label
            behind = absence is not None and condition.start > absence.start
            if behind and label == absent:
                later.append(condition.where)
            elif var := self.variable(label, (condition.start, condition.end)):
                self.where[var].append(condition.where)
        if self.stated.ranking is not None:
            self._rank(self.stated.ranking)
        if absent and not any(hop.negated for hop in self.hops):
            self._leave_out(absent, later)

    def _rank(self, ranking: Ranking) -> None:
        """Make sure that there is a variable for what is ranked by."""
        self.ranked = self.variable(ranking.label, self._place_of(ranking.label))

    def _leave_out(self, label: str, where: list[dict[str, Any]]) -> None:
        """Add that no node of a label may satisfy some conditions."""
        path = self._path_from(label, self._place_of(label))
        if path is None:
            self.problem = f"no path leads from {label!r} to what is asked for"
            return
        var = f"n{len(self.label_of) + 1}"
        *_, last = path
        self.targets = self.targets or (last.label,)
        hops = hops_along(var, path, len(self.label_of) + 1)
        self.hops += [hop.model_copy(update={"negated": True}) for hop in hops]
        self.where[var] += [{"label": label}, *where]

    def variable(self, label: str, place: tuple[int, int]) -> str:
        """Return the variable for nodes of a label; "" without any.

        The target, one on a path, or a new one with a path to the target.
        """
        if label in self.targets and TARGET not in self.label_of:
            self.targets = (label,)
            self.label_of[TARGET] = label
        if self.targets == (label,):
            return TARGET
        for var in reversed(self.label_of):
            if self.label_of[var] == label:
                return var
        path = self._path_from(label, place)
        if path is None:
            self.problem = f"no path leads from {label!r} to what is asked for"
            return ""
        var = f"c{len(self.label_of) + 1}"
        self._follow(var, label, path, negated=False)
        self.where[var].append({"label": label})
        return var

    def _place_of(self, label: str) -> tuple[int, int]:
        """Where the question speaks of a label, or its end."""
        end = len(self.stated.unread_text)
        return self.stated.nouns.get(label, (end, end))

    def _path_from(self, label: str, place: tuple[int, int]) -> Sequence[Hop] | None:
        """The path from nodes of a label to the target that fits the words best."""
        table = self.space.table((label,))
        if not len(table):
            return None
        start, end = self.stated.nouns.get(label, place)
        read = readings(self.stated.unread_text, start, end, frozenset(), self.lexicon)
        costs = self.space.costs(read, (label,), table)
        for row in np.argsort(costs, kind="stable").tolist():
            path = self.space.path(table[row])
            if not self.targets or path[-1].label in self.targets:
                return path
        return None

    @property
    def says_anything(self) -> bool:
        """Whether the plan asks for less than all nodes of a label."""
        return bool(self.hops or any(self.where.values()) or self.stated.ranking)

    def plan(self, about: str, risk: RiskLevel) -> GraphPlan:
        """Return the plan that was composed."""
        where = {
            var: parts[0] if len(parts) == 1 else {"$and": parts}
            for var, parts in self.where.items()
            if parts
        }
        return GraphPlan(
            anchors=self.anchors,
            hops=self.hops,
            target=Target(var=TARGET, labels=[*self.targets], relevance_text=about),
            where=where,
            order=self._order(),
            apart=True,
            risk_level=risk,
        )

    def _order(self) -> Order | None:
        ranking = self.stated.ranking
        if ranking is None:
            return None
        return Order(
            by=ranking.by,
            of=None if self.ranked == TARGET else self.ranked,
            descending=ranking.descending,
            limit=ranking.limit,
        )
