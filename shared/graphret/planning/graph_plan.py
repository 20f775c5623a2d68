"""`GraphPlan`: what a question asks of a graph: anchors, hops between them, and a
target (GRASP, section 3.1).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)

from graphret.cypher.suggestions import nearest
from graphret.errors import InvalidInput
from graphret.schema import GraphSchema
from graphret.where import Where

RiskLevel: TypeAlias = Literal["no_trade", "weak", "normal", "aggressive"]

#: Most hops, and anchors, of a plan: longer ones are a model's babble, and reach
#: everything.
MOST_HOPS = 8


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)


class Anchor(_Part):
    """Something that the question mentions, found in the graph by its text.

    Attributes
    ----------
    var
        The variable that stands for it.
    text
        What the question calls it.
    label
        The label of the nodes among which it is looked for; `None` for all.
    match_mode
        ``name`` for short names, ``doc`` for descriptions, which are compared with
        whole texts.
    """

    var: str = Field(min_length=1)
    text: str = Field(min_length=1)
    label: str | None = None
    match_mode: Literal["name", "doc"] = "name"


class PlanHop(_Part):
    """A relation between two variables.

    Attributes
    ----------
    source, to_var
        The variables; ``from`` in JSON.
    rel
        The relation, or several of which any will do.
    to_label
        The label of the nodes that `to_var` stands for.
    direction
        ``any``, as the paper has it, or ``out`` or ``in``, seen from `source`.
    negated
        Whether there must be no such relation, as in "not expressed in"; of negated
        hops in a row, as in "never ordered tea", no path along all of them.
    """

    source: str = Field(alias="from", min_length=1)
    rel: Annotated[list[str], BeforeValidator(_listed), Field(min_length=1)]
    to_var: str = Field(min_length=1)
    to_label: str | None = None
    direction: Literal["any", "out", "in"] = "any"
    negated: bool = False

    def ends(self, seen: Collection[str]) -> tuple[str, str]:
        """The variables, one that is among those seen before the other."""
        return (
            (self.source, self.to_var)
            if self.source in seen
            else (self.to_var, self.source)
        )

    def __str__(self) -> str:
        arrow = {"any": ("–", "–"), "out": ("–", "→"), "in": ("←", "–")}[self.direction]
        return (
            f"{'no ' if self.negated else ''}{self.source}"
            f" {arrow[0]}{'|'.join(self.rel)}{arrow[1]} {self.to_var}"
        )


class Target(_Part):
    """What is asked for.

    Attributes
    ----------
    var
        The variable that stands for it.
    labels
        The labels that it may bear; none for all.
    relevance_text
        What its text should say besides, which hops cannot express.
    """

    var: str = Field(default="T", min_length=1)
    labels: Annotated[list[str], BeforeValidator(_listed)] = []
    relevance_text: str = ""


class Order(_Part):
    """By what results are ordered, as in "latest" and "most orders", and how many are
    wanted.

    Attributes
    ----------
    by
        A property, of the target or of `of`; "" orders by how many nodes `of` stands
        for.
    of
        The variable of which the property is, where several of its nodes go with a
        result the highest value, or the lowest in ascending order; `None` is the
        target.
    descending
        Whether the most comes first.
    limit
        How many results are wanted; `None` for all.
    """

    by: str = ""
    of: str | None = None
    descending: bool = True
    limit: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _says_by_what(self) -> Self:
        if not self.by and self.of is None:
            raise ValueError("order: expected a property (by) or a variable (of)")
        return self

    def __str__(self) -> str:
        measure = f"{self.of}.{self.by}" if self.of and self.by else self.by
        most = f", the first {self.limit}" if self.limit else ""
        return f"by {'most' if self.descending else 'least'} {measure or self.of}{most}"


#: A hop when it is matched, from a variable that is placed already to the other; and
#: which are of use after it.
Step: TypeAlias = tuple[PlanHop, str, str, set[str]]
#: A negated hop that goes on from another: from its nearer variable to the farther one.
Beyond: TypeAlias = tuple[PlanHop, str, str]


class GraphPlan(_Part):
    """Anchors, hops and a target, and how far the plan is to be trusted.

    Beyond the paper there are negated hops, alternatives of relations, directions,
    conditions on properties and an order. ``GraphPlan.model_validate_json`` reads one,
    ``model_dump_json(by_alias=True)`` writes it, ``str`` tells it to people in a line.

    Attributes
    ----------
    where
        For variables the condition that their nodes satisfy, as `where` has it
        everywhere.
    order
        In which order results come, in place of their scores.
    apart
        Whether the nodes that anchors may mean are no answers, nor on the way to one:
        "films that share actors with Heat" are other films.
    risk_level
        How far the planner trusts the plan; it weighs the plan in `Fuse` (section 3.2).
    """

    anchors: Annotated[list[Anchor], Field(max_length=MOST_HOPS)] = []
    hops: Annotated[list[PlanHop], Field(max_length=MOST_HOPS)] = []
    target: Target = Target()
    where: dict[str, dict[str, Any]] = {}
    order: Order | None = None
    apart: bool = False
    risk_level: RiskLevel = "normal"

    def labels_of(self) -> dict[str, list[str]]:
        """The labels that each variable may bear, none for any."""
        found: dict[str, list[str]] = {self.target.var: list(self.target.labels)}
        for anchor in self.anchors:
            found.setdefault(anchor.var, [anchor.label] if anchor.label else [])
        for hop in self.hops:
            found.setdefault(hop.source, [])
            if not found.setdefault(hop.to_var, []) and hop.to_label:
                found[hop.to_var] = [hop.to_label]
        return found

    def joined(self) -> set[str]:
        """The variables that hops join the target to, and the target."""
        reached = {self.target.var}
        for hop in [hop for hop in self.hops if not hop.negated] * len(self.hops):
            if reached & {hop.source, hop.to_var}:
                reached |= {hop.source, hop.to_var}
        return reached

    def steps(self, sizes: Mapping[str, int]) -> tuple[str, list[Step]]:
        """Return the variable to begin with, and the hops in the order in which they
        are matched.

        The anchor of the fewest nodes is the first (`sizes`); hops between variables
        that are placed come before those to an anchor, and negated ones at the end.
        """
        begin = min(
            sorted(sizes.keys() & self.joined()),
            key=sizes.__getitem__,
            default=self.target.var,
        )
        placed, found, joined = {begin}, list[Step](), self.joined()
        waiting = [hop for hop in self.hops if joined & {hop.source, hop.to_var}]
        kept = {self.target.var}
        if self.order is not None and self.order.of is not None:
            kept.add(self.order.of)

        def rank(hop: PlanHop) -> tuple[bool, bool, float]:
            far = hop.ends(placed)[1]
            return hop.negated, far not in placed, sizes.get(far, math.inf)

        while waiting:
            hop = min(
                (hop for hop in waiting if placed & {hop.source, hop.to_var}), key=rank
            )
            waiting.remove(hop)
            needed = kept.union(*({one.source, one.to_var} for one in waiting))
            found.append((hop, *hop.ends(placed), needed))
            placed |= set() if hop.negated else {hop.source, hop.to_var}
        return begin, found

    def going_on(self, var: str) -> list[Beyond]:
        """Return the negated hops that go on from a variable at the end of a negated
        hop, outward.
        """
        joined = self.joined()
        waiting = [hop for hop in self.hops if not joined & {hop.source, hop.to_var}]
        reached, found = {var}, list[Beyond]()
        while following := [
            hop for hop in waiting if reached & {hop.source, hop.to_var}
        ]:
            hop = following[0]
            waiting.remove(hop)
            near, far = hop.ends(reached)
            found.append((hop, near, far))
            reached.add(far)
        return found

    def checked(self, schema: GraphSchema) -> Self:
        """Return the plan; an `InvalidInput` says what is wrong with it, in words that
        a model can act on.
        """
        if found := [*self._problems(schema)]:
            raise InvalidInput(f"plan: {'; '.join(found)}")
        return self

    def _problems(self, schema: GraphSchema) -> Iterator[str]:
        begins = (self.anchors, self.target.relevance_text, self.where, self.order)
        if not any(begins):
            yield (
                "there is neither an anchor, a condition, an order nor a"
                " relevance_text to begin with"
            )
        bound = [anchor.var for anchor in self.anchors]
        yield from (
            f"the variable {var!r} has two anchors"
            for var in sorted({v for v in bound if bound.count(v) > 1})
        )
        labels = self.labels_of()
        named = [*self.target.labels, *(a.label for a in self.anchors if a.label)]
        named += [hop.to_label for hop in self.hops if hop.to_label]
        for label in dict.fromkeys(named):
            if label not in schema.labels:
                yield f"there is no label {label!r}{_close(label, schema.labels)}"
        for hop in self.hops:
            yield from self._hop_problems(hop, labels, schema)
        for var in sorted(labels.keys() - self._within_reach()):
            yield (
                f"the variable {var!r} is not joined to the target {self.target.var!r}"
                " by hops"
            )
        if self.order is not None and self.order.of not in {None, *self.joined()}:
            yield (
                f"order: the variable {self.order.of!r} is not joined to the target"
                f" {self.target.var!r} by hops"
            )
        for var, condition in self.where.items():
            if var not in labels:
                yield f"where: the variable {var!r} is in no anchor, hop or target"
            try:
                Where.parse(condition)
            except InvalidInput as error:
                yield f"where: {error}"

    def _within_reach(self) -> set[str]:
        """The variables that hops join the target to, negated ones too."""
        reached = self.joined()
        for hop in self.hops * len(self.hops):
            if reached & {hop.source, hop.to_var}:
                reached |= {hop.source, hop.to_var}
        return reached

    def _hop_problems(
        self, hop: PlanHop, labels: dict[str, list[str]], schema: GraphSchema
    ) -> Iterator[str]:
        for relation in hop.rel:
            joins = [
                (one, other)
                for one, name, other in schema.relations
                if name == relation
            ]
            if not joins:
                yield (
                    "there is no relation"
                    f" {relation!r}{_close(relation, schema.relation_names)}"
                )
                continue
            if relation in schema.sampled_relations:
                continue
            here, there = (
                set(labels[var]) & schema.labels.keys()
                for var in (hop.source, hop.to_var)
            )
            ways = [
                *(joins if hop.direction != "in" else []),
                *((b, a) for a, b in joins if hop.direction != "out"),
            ]
            if not any(
                (not here or a in here) and (not there or b in there) for a, b in ways
            ):
                known = ", ".join(f"{a} to {b}" for a, b in joins[:4])
                yield (
                    f"{hop}: {relation!r} leads from {known}, and not between the"
                    " labels of the two"
                )

    def __str__(self) -> str:
        told = [f"{self.target.var}: {' or '.join(self.target.labels) or 'node'}"]
        told += [
            f"{anchor.var} = {anchor.label or 'node'} “{anchor.text}”"
            for anchor in self.anchors
        ]
        told += [str(hop) for hop in self.hops]
        told += [f"{var} where {condition}" for var, condition in self.where.items()]
        if self.target.relevance_text:
            told.append(f"about “{self.target.relevance_text}”")
        if self.order is not None:
            told.append(str(self.order))
        return "; ".join(told)


def _close(name: str, known: Any) -> str:
    close = nearest(name, list(known), 3)
    return f"; there is {', '.join(map(repr, close))}" if close else ""
