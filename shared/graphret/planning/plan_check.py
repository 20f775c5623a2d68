"""What is wrong with a plan on a graph, in words that a model can act on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from graphret.cypher.suggestions import nearest
from graphret.errors import InvalidInput
from graphret.schema import GraphSchema
from graphret.where import Where

if TYPE_CHECKING:
    from graphret.planning.graph_plan import GraphPlan, PlanHop


def problems_of(plan: GraphPlan, schema: GraphSchema) -> Iterator[str]:
    """Say what is wrong with a plan: unknown names, unjoined variables, conditions."""
    if not plan.begins and not plan.cannot:
        yield (
            "there is neither an anchor, a condition, an order, a negated hop, a count"
            " nor a relevance_text to begin with"
        )
    bound = [anchor.var for anchor in plan.anchors]
    yield from (
        f"the variable {var!r} has two anchors"
        for var in sorted({v for v in bound if bound.count(v) > 1})
    )
    labels_named = [*plan.target.labels, *(a.label for a in plan.anchors if a.label)]
    labels_named += [hop.to_label for hop in plan.hops if hop.to_label]
    for label in dict.fromkeys(labels_named):
        if label not in schema.labels:
            yield f"there is no label {label!r}{_close(label, schema.labels)}"
    labels = plan.labels_of()
    for hop in plan.hops:
        yield from _hop_problems(hop, labels, schema)
    yield from _variable_problems(plan, labels)


def _variable_problems(
    plan: GraphPlan, labels: Mapping[str, list[str]]
) -> Iterator[str]:
    """Say which variables are not joined to the target; check the conditions."""
    target = plan.target.var
    for var in sorted(labels.keys() - plan.joined(negated=True)):
        yield f"the variable {var!r} is not joined to the target {target!r} by hops"
    if plan.order is not None and plan.order.of not in {None, *plan.joined()}:
        yield (
            f"order: the variable {plan.order.of!r} is not joined to the target"
            f" {target!r} by hops"
        )
    for var, condition in plan.where.items():
        if var not in labels:
            yield f"where: the variable {var!r} is in no anchor, hop or target"
        yield from _condition_problems(condition)


def _condition_problems(condition: Mapping[str, Any]) -> Iterator[str]:
    try:
        Where.parse(condition)
    except InvalidInput as error:
        yield f"where: {error}"


def _hop_problems(
    hop: PlanHop, labels: Mapping[str, list[str]], schema: GraphSchema
) -> Iterator[str]:
    """Say which relations or properties of a hop the graph lacks between its labels."""
    yield from _condition_problems(hop.where)
    for relation in hop.rel:
        joins = [
            (source, target)
            for source, name, target in schema.relations
            if name == relation
        ]
        if not joins:
            yield (
                "there is no relation"
                f" {relation!r}{_close(relation, schema.relation_names)}"
            )
            continue
        if relation not in schema.sampled_relations:
            yield from _end_problems(hop, relation, joins, labels, schema)
        properties = schema.relation_properties.get(relation, {})
        if relation in schema.sampled_relation_properties:
            continue
        for name in hop.where:
            if not name.startswith("$") and name not in properties:
                yield (
                    f"{hop}: {relation!r} has no property {name!r}"
                    f"{_close(name, properties)}"
                )


def _end_problems(
    hop: PlanHop,
    relation: str,
    joins: list[tuple[str, str]],
    labels: Mapping[str, list[str]],
    schema: GraphSchema,
) -> Iterator[str]:
    """Say that a relation does not join the labels of a hop's two variables."""
    source_labels, target_labels = (
        set(labels[var]) & schema.labels.keys() for var in (hop.source, hop.to_var)
    )
    ways = [
        *(joins if hop.direction != "in" else []),
        *((b, a) for a, b in joins if hop.direction != "out"),
    ]
    if not any(
        (not source_labels or a in source_labels)
        and (not target_labels or b in target_labels)
        for a, b in ways
    ):
        existing = ", ".join(f"{a} to {b}" for a, b in joins[:4])
        yield (
            f"{hop}: {relation!r} leads from {existing}, not between the labels of"
            " the two variables"
        )


def _close(name: str, names: Collection[str]) -> str:
    close = nearest(name, list(names), 3)
    return f"; there is {', '.join(map(repr, close))}" if close else ""
