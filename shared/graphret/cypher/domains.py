"""Which labels the nodes of a query may have, and which relations join them, by a schema's triples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from cypherast.ast import Direction

from graphret.cypher.labels import Alternatives, alternatives
from graphret.cypher.meaning.facts import Step
from graphret.cypher.meaning.values import Entity
from graphret.schema import GraphSchema

Triple = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Known:
    """The names of a schema, and of which of them it may not know all."""

    labels: frozenset[str]
    relations: frozenset[str]
    triples: frozenset[Triple]
    properties: dict[str, frozenset[str]]
    relation_properties: dict[str, frozenset[str]]
    all_properties: frozenset[str]
    sampled_names: bool
    sampled_relations: AbstractSet[str]
    sampled_properties: AbstractSet[str]
    sampled_relation_properties: AbstractSet[str]
    fold: Callable[[str], str]
    spelling: dict[str, str]

    @classmethod
    def of(cls, schema: GraphSchema, dialect: str) -> Known:
        """The names of this schema; in small letters for Ladybug, which does not tell them apart."""
        fold: Callable[[str], str] = str.lower if dialect == "ladybug" else str
        spelling: dict[str, str] = {}
        if dialect == "ladybug":
            spelling = _spelling(schema)
            schema = _folded(schema)
        ends = {end for source, _, target in schema.relations for end in (source, target)}
        properties = {label: frozenset(of_label) for label, of_label in schema.properties.items()}
        relation_properties = {name: frozenset(of_name) for name, of_name in schema.relation_properties.items()}
        return cls(
            frozenset(schema.labels) | frozenset(properties) | ends,
            frozenset(schema.relation_names),
            frozenset(schema.relations),
            properties,
            relation_properties,
            frozenset[str]().union(*properties.values(), *relation_properties.values()),
            schema.sampled_names,
            schema.sampled_relations,
            schema.sampled_properties,
            schema.sampled_relation_properties,
            fold,
            spelling,
        )


def _spelling(schema: GraphSchema) -> dict[str, str]:
    names = [*schema.labels, *(name for triple in schema.relations for name in triple)]
    for table in (schema.properties, schema.relation_properties):
        names += [name for owner, found in table.items() for name in (owner, *found)]
    return {name.lower(): name for name in names}


def _folded(schema: GraphSchema) -> GraphSchema:
    return GraphSchema(
        {label.lower(): n for label, n in schema.labels.items()},
        {(s.lower(), r.lower(), t.lower()): n for (s, r, t), n in schema.relations.items()},
        {label.lower(): {k.lower(): p for k, p in found.items()} for label, found in schema.properties.items()},
        {name.lower(): {k.lower(): p for k, p in found.items()} for name, found in schema.relation_properties.items()},
        schema.sampled,
        schema.sampled_names,
        {name.lower() for name in schema.sampled_relations},
        {label.lower() for label in schema.sampled_properties},
        {name.lower() for name in schema.sampled_relation_properties},
    )


class Domains:
    """The labels or relations that each entity of a query may have.

    What a query says of an entity stands; of one that it says nothing of, the triples that may join it to its
    neighbours leave some.
    """

    def __init__(self, known: Known) -> None:
        self.known = known
        self._of: dict[int, Alternatives] = {}
        self._said: dict[int, bool] = {}
        self._guessed: set[int] = set()

    def of(self, entity: Entity) -> Alternatives:
        """Its sets of labels, or None where nothing is known."""
        key = id(entity)
        if key not in self._of:
            valid = self.known.relations if entity.relationship else self.known.labels
            self._of[key] = alternatives(entity.labels, valid, self.known.fold)
            self._said[key] = self._of[key] is not None
        return self._of[key]

    def readable(self, step: Step) -> bool:
        """Whether the schema has all the names about a relationship, so that its triples can be asked."""
        for entity, valid in (
            (step.entity, self.known.relations),
            (step.left, self.known.labels),
            (step.right, self.known.labels),
        ):
            found = self.of(entity)
            if found is not None and not frozenset[str]().union(*found) <= valid:
                return False
        # A relation of which the schema has no triple, or a path that may be of no hop, says nothing.
        relations = {relation for _, relation, _ in self.known.triples}
        return bool(self.relations(step) & relations) and not (_is_long(step) and _least(step) == 0)

    def relations(self, step: Step) -> frozenset[str]:
        """The relations that a relationship may be."""
        found = self.of(step.entity)
        return self.known.relations if found is None else frozenset[str]().union(*found)

    def fit(self, step: Step, turned: bool = False) -> bool:
        """Whether some triple fits a relationship and its ends, as it is written or turned."""
        if not _is_long(step):
            return any(True for _ in self.fitting(step, turned))
        named = [t for t in self.known.triples if t[1] in self.relations(step)]
        left, right = self.of(step.left), self.of(step.right)
        ways = [(left, right)] if _forward(step, turned) else [(right, left)]
        if step.relationship.direction is Direction.BOTH:
            ways = [(left, right), (right, left)]
        return any(
            any(_fits(first, source) for source, _, _ in named) and any(_fits(last, target) for _, _, target in named)
            for first, last in ways
        )

    def fitting(self, step: Step, turned: bool = False) -> Iterator[Triple]:
        """The triples that fit a relationship and its ends."""
        relations = self.relations(step)
        both = step.relationship.direction is Direction.BOTH
        forward = _forward(step, turned)
        left, right = self.of(step.left), self.of(step.right)
        for source, relation, target in self.known.triples:
            if relation not in relations:
                continue
            if ((both or forward) and _fits(left, source) and _fits(right, target)) or (
                (both or not forward) and _fits(left, target) and _fits(right, source)
            ):
                yield source, relation, target

    def guessed(self, entity: Entity) -> bool:
        """Whether a triple that the schema may lack could leave an entity more labels or relations."""
        return id(entity) in self._guessed

    def sampled(self, step: Step) -> bool:
        """Whether a triple that the schema may lack could fit a relationship and its ends."""
        return (
            not self.known.sampled_relations.isdisjoint(self.relations(step))
            or (self.known.sampled_names and not step.entity.labels)
            or any(map(self.guessed, (step.left, step.entity, step.right)))
        )

    def doubtful(self, step: Step) -> bool:
        """Whether a label beside a relationship ends no triple: nodes may bear it besides another."""
        linked = {end for source, _, target in self.known.triples for end in (source, target)}
        found = (self.of(step.left), self.of(step.right))
        return any(ends is not None and linked.isdisjoint(frozenset[str]().union(*ends)) for ends in found)

    def joining(self, step: Step) -> Iterator[Triple]:
        """The triples that join the ends of a relationship either way, whatever their relation."""
        left, right = self.of(step.left), self.of(step.right)
        for source, relation, target in self.known.triples:
            if (_fits(left, source) and _fits(right, target)) or (_fits(left, target) and _fits(right, source)):
                yield source, relation, target

    def narrow(self, step: Step) -> bool:
        """Leave to an entity of which nothing is said what the triples leave; return whether that is less."""
        if _is_long(step):
            return False
        left: set[str] = set()
        right: set[str] = set()
        relations: set[str] = set()
        both = step.relationship.direction is Direction.BOTH
        forward = _forward(step, turned=False)
        ends = self.of(step.left), self.of(step.right)
        for source, relation, target in self.fitting(step):
            relations.add(relation)
            if (both or forward) and _fits(ends[0], source) and _fits(ends[1], target):
                left.add(source)
                right.add(target)
            if (both or not forward) and _fits(ends[0], target) and _fits(ends[1], source):
                left.add(target)
                right.add(source)
        guessed = self.sampled(step)
        changed = self._leave(step.left, left, guessed)
        changed = self._leave(step.right, right, guessed) or changed
        return self._leave(step.entity, relations, guessed) or changed

    def _leave(self, entity: Entity, names: set[str], guessed: bool) -> bool:
        if self._said.get(id(entity), True):
            return False
        left = tuple(frozenset((name,)) for name in sorted(names))
        if left == self._of[id(entity)]:
            return False
        self._of[id(entity)] = left
        if guessed:
            self._guessed.add(id(entity))
        return True


def _forward(step: Step, turned: bool) -> bool:
    return (step.relationship.direction is Direction.OUTGOING) != turned


def _is_long(step: Step) -> bool:
    return bool(step.relationship.variable_length or step.relationship.args.get("quantifier"))


def _least(step: Step) -> int:
    quantifier = step.relationship.args.get("quantifier")
    return int(quantifier[0] if quantifier else step.relationship.min_hops)


def _fits(ends: Alternatives, label: str) -> bool:
    """Whether a node with one of these sets of labels may be an end that the schema gives by one label."""
    return ends is None or any(not labels or label in labels for labels in ends)
