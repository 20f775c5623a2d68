"""`GraphPlan`: anchors, hops between them and a target (GRASP, section 3.1)."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)

from graphret.errors import InvalidInput
from graphret.planning.plan_check import problems_of
from graphret.schema import GraphSchema

RiskLevel: TypeAlias = Literal["no_trade", "weak", "normal", "aggressive"]
#: How much a plan goes by the graph (appendix B.2); ``skip`` is no plan at all.
RetrievalMode: TypeAlias = Literal[
    "doc_search", "graph_filter_doc", "graph_expand", "graph_strict", "skip"
]

#: Most hops, and anchors, of a plan: longer ones are a model's babble, and reach
#: everything.
MOST_HOPS = 8


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _without_description(schema: dict[str, Any]) -> None:
    """Leave the docstring, which is for people, out of what a model is told."""
    schema.pop("description", None)


class _Part(BaseModel):
    model_config = ConfigDict(
        frozen=True, populate_by_name=True, json_schema_extra=_without_description
    )


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
    where
        The condition that the relation's own properties satisfy, as in "ordered more
        than 20 pieces of".
    """

    source: str = Field(alias="from", min_length=1)
    rel: Annotated[list[str], BeforeValidator(_listed), Field(min_length=1)]
    to_var: str = Field(min_length=1)
    to_label: str | None = None
    direction: Literal["any", "out", "in"] = "any"
    negated: bool = False
    where: dict[str, Any] = {}

    def ends(self, placed: Collection[str]) -> tuple[str, str]:
        """The variables, one that is among those seen before the other."""
        return (
            (self.source, self.to_var)
            if self.source in placed
            else (self.to_var, self.source)
        )

    def __str__(self) -> str:
        arrow = {"any": ("–", "–"), "out": ("–", "→"), "in": ("←", "–")}[self.direction]
        return (
            f"{'no ' if self.negated else ''}{self.source}"
            f" {arrow[0]}{'|'.join(self.rel)}{arrow[1]} {self.to_var}"
            f"{f' where {self.where}' if self.where else ''}"
        )


class Target(_Part):
    """What is asked for.

    Attributes
    ----------
    var
        The variable that stands for it.
    labels
        The labels that it may have; none for all.
    relevance_text
        What its text should say besides, which hops cannot express.
    """

    var: str = Field(default="T", min_length=1)
    labels: Annotated[list[str], BeforeValidator(_listed)] = []
    relevance_text: str = ""


class Order(_Part):
    """The order of results, as in "latest", and how many are wanted.

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
    count
        Whether not the nodes but their number is asked for.
    apart
        Whether the nodes that anchors may mean are no answers, nor on the way to one:
        "films that share actors with Heat" are other films.
    cannot
        What the question asks that no plan can say, such as a sum: the plan finds the
        nodes that it is about, if anything.
    risk_level
        How far the planner trusts the plan; it weighs the plan in `Fuse` (section 3.2).
    """

    anchors: Annotated[list[Anchor], Field(max_length=MOST_HOPS)] = []
    hops: Annotated[list[PlanHop], Field(max_length=MOST_HOPS)] = []
    target: Target = Target()
    where: dict[str, dict[str, Any]] = {}
    order: Order | None = None
    count: bool = False
    apart: bool = False
    cannot: str = ""
    risk_level: RiskLevel = "normal"

    def labels_of(self) -> dict[str, list[str]]:
        """The labels that each variable may have, none for any."""
        labels_by_var: dict[str, list[str]] = {
            self.target.var: list(self.target.labels)
        }
        for anchor in self.anchors:
            labels_by_var.setdefault(anchor.var, [anchor.label] if anchor.label else [])
        for hop in self.hops:
            labels_by_var.setdefault(hop.source, [])
            if not labels_by_var.setdefault(hop.to_var, []) and hop.to_label:
                labels_by_var[hop.to_var] = [hop.to_label]
        return labels_by_var

    def joined(self, *, negated: bool = False) -> set[str]:
        """The target and the variables joined to it by hops, or by `negated` ones."""
        reached = {self.target.var}
        hops = [hop for hop in self.hops if negated or not hop.negated]
        for hop in hops * len(self.hops):
            if reached & {hop.source, hop.to_var}:
                reached |= {hop.source, hop.to_var}
        return reached

    @property
    def begins(self) -> bool:
        """Whether it asks for less than all nodes, or for their number or order."""
        absences = any(hop.negated for hop in self.hops)
        narrowed = self.anchors or self.where or self.target.relevance_text
        return bool(narrowed or self.order or self.count or absences)

    @property
    def reads_relations(self) -> bool:
        """Whether it asks for properties of relations."""
        return any(hop.where for hop in self.hops)

    def steps(self, sizes: Mapping[str, int]) -> tuple[str, list[Step]]:
        """Return the first variable, and the hops in the order of matching.

        The anchor of the fewest nodes is the first (`sizes`); hops between variables
        that are placed come before those to an anchor, and negated ones at the end.
        """
        begin = min(
            sorted(sizes.keys() & self.joined()),
            key=sizes.__getitem__,
            default=self.target.var,
        )
        placed, ordered_hops, joined = {begin}, list[Step](), self.joined()
        waiting = [hop for hop in self.hops if joined & {hop.source, hop.to_var}]
        always_needed = {self.target.var}
        if self.order is not None and self.order.of is not None:
            always_needed.add(self.order.of)

        def rank(hop: PlanHop) -> tuple[bool, bool, float]:
            far = hop.ends(placed)[1]
            return hop.negated, far not in placed, sizes.get(far, math.inf)

        while waiting:
            hop = min(
                (hop for hop in waiting if placed & {hop.source, hop.to_var}), key=rank
            )
            waiting.remove(hop)
            needed = always_needed.union(
                *({later.source, later.to_var} for later in waiting)
            )
            ordered_hops.append((hop, *hop.ends(placed), needed))
            placed |= set() if hop.negated else {hop.source, hop.to_var}
        return begin, ordered_hops

    def going_on(self, var: str) -> list[Beyond]:
        """Return the negated hops behind the end of a negated hop, outward."""
        joined = self.joined()
        waiting = [hop for hop in self.hops if not joined & {hop.source, hop.to_var}]
        reached, beyond = {var}, list[Beyond]()
        while following := [
            hop for hop in waiting if reached & {hop.source, hop.to_var}
        ]:
            hop = following[0]
            waiting.remove(hop)
            near, far = hop.ends(reached)
            beyond.append((hop, near, far))
            reached.add(far)
        return beyond

    def checked(self, schema: GraphSchema) -> Self:
        """Return the plan if it is valid on a graph.

        The message of the `InvalidInput` is one that a model can act on.
        """
        if problems := [*problems_of(self, schema)]:
            raise InvalidInput(f"plan: {'; '.join(problems)}")
        return self

    def __str__(self) -> str:
        parts = [f"{self.target.var}: {' or '.join(self.target.labels) or 'node'}"]
        parts += [
            f"{anchor.var} = {anchor.label or 'node'} “{anchor.text}”"
            for anchor in self.anchors
        ]
        parts += [str(hop) for hop in self.hops]
        parts += [f"{var} where {condition}" for var, condition in self.where.items()]
        if self.target.relevance_text:
            parts.append(f"about “{self.target.relevance_text}”")
        if self.order is not None:
            parts.append(str(self.order))
        if self.cannot:
            parts.append(f"cannot say: {self.cannot}")
        return f"{'how many ' if self.count else ''}{'; '.join(parts)}"


class ModedPlan(GraphPlan):
    """A plan that says how much it relies on the graph (appendix B.2).

    Attributes
    ----------
    retrieval_mode
        A search by text alone (``doc_search``), a text filtered by the graph
        (``graph_filter_doc``), what is next to a node that is named
        (``graph_expand``), or the graph alone (``graph_strict``).
    """

    retrieval_mode: RetrievalMode

    def checked(self, schema: GraphSchema) -> Self:
        """Return the plan; an `InvalidInput` also says if its mode does not fit."""
        if self.retrieval_mode == "skip":
            return self
        if problem := self._mode_problem():
            raise InvalidInput(f"plan: {self.retrieval_mode}: {problem}")
        return super().checked(schema)

    def _mode_problem(self) -> str:
        """Say where the plan is not what its mode says; "" where it is."""
        mode, text = self.retrieval_mode, self.target.relevance_text
        if mode == "doc_search":
            return "expected no hops in a search by text" if self.hops else ""
        if not self.hops:
            return "expected a hop; without one it is doc_search"
        if mode == "graph_filter_doc" and not text:
            return "expected a relevance_text; without one it is graph_strict"
        if mode == "graph_strict" and text:
            return "expected no relevance_text; with one it is graph_filter_doc"
        return ""
