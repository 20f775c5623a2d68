"""Labels, relations and properties of a query, held against a schema."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from cypherast.ast import AstNode, Direction

from graphret.cypher import codes
from graphret.cypher.domains import Domains
from graphret.cypher.report import ERROR, WARNING
from graphret.cypher.schema_names import Labels, SchemaNames, Triple
from graphret.cypher.semantics.values import PatternEntity
from graphret.cypher.semantics.walk import Analysis, RelationshipPattern
from graphret.cypher.tree import LabelName, Name, span, walk
from graphret.schema import GraphSchema

#: How often the relationships are gone through for what their neighbours leave them.
_SWEEPS = 4
#: How many labels a message names.
_NAMED = 10


def check_names(facts: Analysis, schema: GraphSchema) -> None:
    """Add the names that the schema lacks, or has elsewhere only, to the facts."""
    _NameChecker(facts, SchemaNames.of(schema, facts.dialect)).check()


class _NameChecker:
    def __init__(self, facts: Analysis, names: SchemaNames) -> None:
        self.facts = facts
        self.names = names
        self.domains = Domains(names)
        self._cached: dict[object, Any] = {}

    def check(self) -> None:
        """Check every name once, then how they stand together."""
        for node, entity in self.facts.labels:
            self._name(node, entity.relationship)
        self._triples()
        for use in self.facts.properties:
            if not use.of_value:
                self._property(use.name, use.entity)

    # --- single names -----------------------------------------------------

    def _name(self, node: Any, relationship: bool) -> None:
        valid = self.names.relations if relationship else self.names.labels
        if self.names.fold(node.this) in valid:
            return
        what, kind = (
            ("relation", codes.UNKNOWN_RELATION)
            if relationship
            else ("label", codes.UNKNOWN_LABEL)
        )
        message = f"the graph has no {what} {node.this!r}"
        self.facts.error(kind, message, node, self._nearest(node.this, valid))

    def _property(self, name: Name, entity: PatternEntity | None) -> None:
        key = self.names.fold(name.this)
        owners = self._owners(entity)
        if key not in self.names.all_properties:
            if entity is not None:
                suggestions = self._nearest(
                    name.this, self._keys(entity, owners or frozenset())
                )
                suggestions = suggestions or self._nearest(
                    name.this, self.names.all_properties
                )
                severity = WARNING if self._unlabelled(entity, owners) else ERROR
                message = f"the graph has no property {name.this!r}"
                self.facts.add(
                    severity, codes.UNKNOWN_PROPERTY, message, span(name), suggestions
                )
            return
        if entity is None or not owners or self._unlabelled(entity, owners):
            return
        keys, names = self._keys(entity, owners), self.names
        if key not in keys:
            message = (
                f"{self._say_some(owners)} has no property {name.this!r}; it is of"
                f" {self._holders(key)}"
            )
            sampled = (
                names.sampled_relation_properties
                if entity.relationship
                else names.sampled_properties
            )
            doubtful = self.domains.guessed(entity) or not sampled.isdisjoint(owners)
            suggestions, severity = (
                self._nearest(name.this, keys),
                WARNING if doubtful else ERROR,
            )
            self.facts.add(
                severity, codes.MISPLACED_PROPERTY, message, span(name), suggestions
            )

    def _unlabelled(self, entity: PatternEntity, owners: frozenset[str] | None) -> bool:
        """Whether it may be a node without a label whose properties are not known."""
        return (
            not entity.relationship
            and self.names.unlabelled
            and (owners is None or "" in owners)
        )

    def _holders(self, key: str) -> str:
        """Some of what has a property."""
        spelling = self.names.spelling
        labels = (
            label
            for label, keys in sorted(self.names.properties.items())
            if key in keys
        )
        relations = (
            name
            for name, keys in sorted(self.names.relation_properties.items())
            if key in keys
        )
        holders = [
            spelling.get(label, label) or "nodes without a label" for label in labels
        ]
        return ", ".join(
            [
                *holders,
                *(f"the relation {spelling.get(name, name)}" for name in relations),
            ][:3]
        )

    def _keys(self, entity: PatternEntity, owners: frozenset[str]) -> frozenset[str]:
        """All that nodes of some labels, or some relations, have."""
        key = (entity.relationship, owners)
        if key not in self._cached:
            table = (
                self.names.relation_properties
                if entity.relationship
                else self.names.properties
            )
            self._cached[key] = frozenset[str]().union(
                *(table.get(owner, ()) for owner in owners)
            )
        properties: frozenset[str] = self._cached[key]
        return properties

    def _owners(self, entity: PatternEntity | None) -> frozenset[str] | None:
        """The labels or relations that an entity may have; `None` if unknown."""
        owners = self.domains.of(entity) if entity is not None else None
        if entity is None or not owners:
            return None
        return (
            owners
            if owners
            <= (self.names.relations if entity.relationship else self.names.labels)
            else None
        )

    def _nearest(self, name: str, valid: frozenset[str]) -> tuple[str, ...]:
        return self.facts.nearest(name, valid, self.names.spelling)

    def _say_all(self, names: Iterable[str]) -> list[str]:
        """Names as the schema spells them, in order."""
        return sorted(self.names.spelling.get(name, name) for name in names)

    def _say_some(self, names: frozenset[str], most: int = _NAMED) -> str:
        """The first of some names, joined by "or"."""
        key = (most, names)
        if key not in self._cached:
            spelled = self._say_all(name or "a node without a label" for name in names)
            more = [f"{len(spelled) - most:,} more"] if len(spelled) > most else []
            self._cached[key] = " or ".join([*spelled[:most], *more])
        return str(self._cached[key])

    def _say_triples(self, triples: Iterable[Triple]) -> tuple[str, ...]:
        """The first three triples, as a query would write them."""
        spelling = self.names.spelling
        written = (
            (spelling.get(s, s), spelling.get(r, r), spelling.get(t, t))
            for s, r, t in triples
        )
        return tuple(f"({s})-[:{r}]->({t})" for s, r, t in sorted(written)[:3])

    def _say_ends(self, labels: Labels) -> str:
        return self._say_some(labels, 3) if labels else "any node"

    # --- relations between labels -----------------------------------------

    def _triples(self) -> None:
        """Check the relationships by the schema's triples, alone and together."""
        steps = [step for step in self.facts.steps if self.domains.readable(step)]
        misfits: set[int] = set()
        beside: defaultdict[int, list[RelationshipPattern]] = defaultdict(list)
        for step in steps:
            for entity in (step.left, step.entity, step.right):
                beside[id(entity)].append(step)
        waiting = {id(step) for step in steps}
        for sweep in range(_SWEEPS):
            # To and fro, so that what one end of a path says reaches the other in one
            # sweep.
            for step in reversed(steps) if sweep % 2 else steps:
                if id(step) not in waiting:
                    continue
                waiting.remove(id(step))
                if not self.domains.fits(step):
                    self._misfit(step)
                    misfits.add(id(step))
                    continue
                changed = self.domains.narrow(step)
                touched = {
                    id(other) for entity in changed for other in beside[id(entity)]
                }
                waiting |= (
                    touched - misfits
                    if step.left is step.right
                    else touched - misfits - {id(step)}
                )
            if not waiting:
                break

    def _misfit(self, step: RelationshipPattern) -> None:
        relations = self.domains.relations(step)
        typed = bool(step.entity.labels)
        # Ladybug's nodes have one label each.
        second = self.facts.dialect != "ladybug" and self.domains.doubtful(step)
        severity = WARNING if second or self.domains.sampled(step) else ERROR
        names = " or ".join(self._say_all(relations)) if typed else ""
        if step.relationship.direction is not Direction.BOTH and self.domains.fits(
            step, turned=True
        ):
            ways = self._say_triples(self.domains.fitting_turned(step))
            message = (
                f"{names if typed else 'what joins these'} goes the other way:"
                f" {', '.join(ways)}"
            )
            self.facts.add(severity, codes.WRONG_DIRECTION, message, _place(step), ways)
            return
        left, right = (
            self._say_ends(self.domains.of(step.left)),
            self._say_ends(self.domains.of(step.right)),
        )
        between = self.domains.joining(step)
        joined = ", ".join(self._ends(relations))
        if typed:
            message = f"{names} does not join {left} and {right}; it joins {joined}"
        else:
            message = f"no relation joins {left} and {right}"
        suggestions = (
            self._nearest(self._say_all(relations)[0], between) if typed else ()
        ) or tuple(self._say_all(between)[:3])
        self.facts.add(severity, codes.WRONG_ENDS, message, _place(step), suggestions)

    def _ends(self, relations: frozenset[str]) -> tuple[str, ...]:
        """Some of what the relations join."""
        key = ("ends", relations)
        if key not in self._cached:
            by_relation = self.names.by_relation
            self._cached[key] = self._say_triples(
                t for name in relations for t in by_relation.get(name, ())
            )
        joined: tuple[str, ...] = self._cached[key]
        return joined


def _place(step: RelationshipPattern) -> tuple[int, int]:
    names: list[AstNode] = [
        n for n in walk(step.relationship) if isinstance(n, LabelName)
    ]
    return span(names[0] if names else step.relationship)
