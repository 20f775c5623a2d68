"""Labels, relations and properties of a query, held against a schema."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cypherast.ast import AstNode, Direction

from graphret.cypher import kinds
from graphret.cypher.domains import Domains, Known, Triple
from graphret.cypher.labels import Alternatives
from graphret.cypher.meaning.facts import Facts, Step
from graphret.cypher.meaning.values import Entity
from graphret.cypher.report import ERROR, WARNING
from graphret.cypher.suggestions import nearest
from graphret.cypher.tree import LabelName, Name, span, walk
from graphret.schema import GraphSchema

_ROUNDS = 4


def check_names(facts: Facts, schema: GraphSchema) -> None:
    """Add to the facts what the query names that the schema lacks, or that the schema has elsewhere only."""
    _Names(facts, Known.of(schema, facts.dialect)).check()


class _Names:
    def __init__(self, facts: Facts, known: Known) -> None:
        self.facts = facts
        self.known = known
        self.domains = Domains(known)

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
        valid = self.known.relations if relationship else self.known.labels
        if self.known.fold(node.this) in valid:
            return
        what, kind = ("relation", kinds.UNKNOWN_RELATION) if relationship else ("label", kinds.UNKNOWN_LABEL)
        message = f"the graph has no {what} {node.this!r}"
        self.facts.error(kind, message, node, nearest(node.this, self._say_all(valid)))

    def _property(self, name: Name, entity: Entity | None) -> None:
        key = self.known.fold(name.this)
        owners = self._owners(entity)
        if key not in self.known.all_properties:
            if entity is None:
                return
            valid = frozenset[str]().union(*(self._properties(entity, owner) for owner in owners or ()))
            suggestions = nearest(name.this, self._say_all(valid)) or nearest(
                name.this, self._say_all(self.known.all_properties)
            )
            self.facts.error(kinds.UNKNOWN_PROPERTY, f"the graph has no property {name.this!r}", name, suggestions)
            return
        if entity is None or not owners or any(key in self._properties(entity, owner) for owner in owners):
            return
        valid = frozenset[str]().union(*(self._properties(entity, owner) for owner in owners))
        holders = self._holders(key)
        whose = " or ".join(self._say_all(owners))
        message = f"{whose} has no property {name.this!r}" + (f"; it is of {holders}" if holders else "")
        known = self.known
        sampled = known.sampled_relation_properties if entity.relationship else known.sampled_properties
        doubtful = self.domains.guessed(entity) or not sampled.isdisjoint(owners)
        self.facts.add(
            WARNING if doubtful else ERROR,
            kinds.MISPLACED_PROPERTY,
            message,
            span(name),
            nearest(name.this, self._say_all(valid)),
        )

    def _holders(self, key: str) -> str:
        nodes = self._say_all(label for label, keys in self.known.properties.items() if key in keys)
        relations = self._say_all(name for name, keys in self.known.relation_properties.items() if key in keys)
        return ", ".join([*nodes, *(f"the relation {name}" for name in relations)][:3])

    def _properties(self, entity: Entity, owner: str) -> frozenset[str]:
        table = self.known.relation_properties if entity.relationship else self.known.properties
        return table.get(owner, frozenset())

    def _owners(self, entity: Entity | None) -> frozenset[str] | None:
        """The labels or relations that an entity may have, or None where nothing is known of it."""
        found = self.domains.of(entity) if entity is not None else None
        if entity is None or not found:
            return None
        names = frozenset[str]().union(*found)
        return names if names <= (self.known.relations if entity.relationship else self.known.labels) else None

    def _say_all(self, names: Iterable[str]) -> list[str]:
        """Names as the schema spells them, in order."""
        return sorted(self.known.spelling.get(name, name) for name in names)

    def _say_triples(self, triples: Iterable[Triple]) -> tuple[str, ...]:
        """The first three triples, as a query would write them."""
        spelling = self.known.spelling
        written = ((spelling.get(s, s), spelling.get(r, r), spelling.get(t, t)) for s, r, t in triples)
        return tuple(f"({s})-[:{r}]->({t})" for s, r, t in sorted(written)[:3])

    def _say_ends(self, ends: Alternatives) -> str:
        names = self._say_all(frozenset[str]().union(*(ends or ())))
        return " or ".join(names[:3]) or "any node"

    # --- relations between labels -----------------------------------------

    def _triples(self) -> None:
        """Whether triples of the schema fit the relationships, alone and then with what their neighbours leave."""
        steps = [step for step in self.facts.steps if self.domains.readable(step)]
        misfits: set[int] = set()
        for _ in range(_ROUNDS):
            changed = False
            for step in steps:
                if id(step) in misfits:
                    continue
                if not self.domains.fit(step):
                    misfits.add(id(step))
                    self._misfit(step)
                else:
                    changed = self.domains.narrow(step) or changed
            if not changed:
                break

    def _misfit(self, step: Step) -> None:
        relations = self.domains.relations(step)
        typed = bool(step.entity.labels)
        # Ladybug's nodes bear one label each.
        second = self.facts.dialect != "ladybug" and self.domains.doubtful(step)
        severity = WARNING if second or self.domains.sampled(step) else ERROR
        names = self._say_all(relations)
        if step.relationship.direction is not Direction.BOTH and self.domains.fit(step, turned=True):
            ways = self._say_triples(self.domains.fitting(step, turned=True)) or self._say_triples(
                triple for triple in self.known.triples if triple[1] in relations
            )
            what = f"{' or '.join(names)} goes" if typed else "what joins these goes"
            message = f"{what} the other way: {', '.join(ways)}"
            self.facts.add(severity, kinds.WRONG_DIRECTION, message, _place(step), ways)
            return
        left, right = self._say_ends(self.domains.of(step.left)), self._say_ends(self.domains.of(step.right))
        between = self._say_all({relation for _, relation, _ in self.domains.joining(step)})
        if typed:
            ends = self._say_triples(triple for triple in self.known.triples if triple[1] in relations)
            message = f"{' or '.join(names)} does not join {left} and {right}; it joins {', '.join(ends)}"
        else:
            message = f"no relation joins {left} and {right}"
        suggestions = (nearest(names[0], between) if typed else ()) or tuple(between[:3])
        self.facts.add(severity, kinds.WRONG_ENDS, message, _place(step), suggestions)


def _place(step: Step) -> tuple[int, int]:
    named: list[AstNode] = [n for n in walk(step.relationship) if isinstance(n, LabelName)]
    return span(named[0] if named else step.relationship)
