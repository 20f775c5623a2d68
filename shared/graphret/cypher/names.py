"""Labels, relations and properties of a query, held against a schema."""

from __future__ import annotations

from typing import Any

from cypherast.ast import AstNode, Direction

from graphret.cypher import kinds
from graphret.cypher.domains import Domains, Known
from graphret.cypher.labels import Alternatives
from graphret.cypher.meaning.facts import Facts, Step
from graphret.cypher.meaning.values import Entity
from graphret.cypher.report import ERROR, WARNING
from graphret.cypher.suggestions import nearest
from graphret.cypher.tree import LabelName, Name, span, walk
from graphret.schema import GraphSchema

_ROUNDS = 4
_LADYBUG_OWN = frozenset(("_id", "_label", "_src", "_dst", "_nodes", "_rels"))


def check_names(facts: Facts, schema: GraphSchema) -> None:
    """Add to the facts what the query names that the schema lacks, or that the schema has elsewhere only."""
    _Names(facts, Known.of(schema)).check()


class _Names:
    def __init__(self, facts: Facts, known: Known) -> None:
        self.facts = facts
        self.known = known
        self.domains = Domains(known)
        self.misplaced = WARNING if known.sampled else ERROR

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
        if node.this in valid:
            return
        what, kind = ("relation", kinds.UNKNOWN_RELATION) if relationship else ("label", kinds.UNKNOWN_LABEL)
        message = f"the graph has no {what} {node.this!r}"
        self.facts.error(kind, message, node, nearest(node.this, valid))

    def _property(self, name: Name, entity: Entity | None) -> None:
        key = name.this
        owners = self._owners(entity)
        if self.facts.dialect == "ladybug" and key in _LADYBUG_OWN:
            return
        if key not in self.known.all_properties:
            if entity is None:
                return
            valid = frozenset[str]().union(*(self._properties(entity, owner) for owner in owners or ()))
            suggestions = nearest(key, valid) or nearest(key, self.known.all_properties)
            self.facts.error(kinds.UNKNOWN_PROPERTY, f"the graph has no property {key!r}", name, suggestions)
            return
        if entity is None or not owners or any(key in self._properties(entity, owner) for owner in owners):
            return
        valid = frozenset[str]().union(*(self._properties(entity, owner) for owner in owners))
        holders = self._holders(key, entity.relationship)
        whose = " or ".join(sorted(owners))
        message = f"{whose} has no property {key!r}" + (f"; {holders} has it" if holders else "")
        self.facts.add(self.misplaced, kinds.MISPLACED_PROPERTY, message, span(name), nearest(key, valid))

    def _holders(self, key: str, relationship: bool) -> str:
        table = self.known.relation_properties if relationship else self.known.properties
        return ", ".join(sorted(owner for owner, keys in table.items() if key in keys)[:3])

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
        names = sorted(self.domains.relations(step))
        typed = self.domains.of(step.entity) is not None
        ends = [f"({s})-[:{r}]->({t})" for s, r, t in sorted(self.known.triples) if r in names]
        if step.relationship.direction is not Direction.BOTH and self.domains.fit(step, turned=True):
            fitting = self.domains.fitting(step, turned=True)
            ways = tuple(f"({s})-[:{r}]->({t})" for s, r, t in sorted(fitting))[:3]
            what = " or ".join(names) + " goes" if typed else "what joins these goes"
            message = f"{what} the other way: {', '.join(ways)}"
            self.facts.add(self.misplaced, kinds.WRONG_DIRECTION, message, _place(step), ways)
            return
        left, right = _spoken(self.domains.of(step.left)), _spoken(self.domains.of(step.right))
        between = sorted({r for s, r, t in self.domains.joining(step)})
        if typed:
            message = f"{' or '.join(names)} does not join {left} and {right}; it joins {', '.join(ends[:3])}"
        else:
            message = f"no relation joins {left} and {right}"
        suggestions = (nearest(names[0], between) if typed else ()) or tuple(between[:3])
        self.facts.add(self.misplaced, kinds.WRONG_ENDS, message, _place(step), suggestions)


def _place(step: Step) -> tuple[int, int]:
    named: list[AstNode] = [n for n in walk(step.relationship) if isinstance(n, LabelName)]
    return span(named[0] if named else step.relationship)


def _spoken(ends: Alternatives) -> str:
    names = sorted(frozenset[str]().union(*(ends or ())))
    return " or ".join(names[:3]) or "any node"
