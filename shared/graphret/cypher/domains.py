"""Which labels and relations the parts of a query may have, by a schema's triples."""

from __future__ import annotations

from typing import NamedTuple

from cypherast.ast import Direction

from graphret.cypher.schema_names import Labels, SchemaNames, Triple, labels_of
from graphret.cypher.semantics.values import PatternEntity
from graphret.cypher.semantics.walk import RelationshipPattern


class TripleFit(NamedTuple):
    """The labels and relations of the triples that fit a relationship and its ends."""

    left: frozenset[str]
    relations: frozenset[str]
    right: frozenset[str]


class Domains:
    """The labels or relations that each entity of a query may have.

    What a query says of an entity stands; of one that it says nothing of, the triples
    that may join it to its neighbours leave some.
    """

    def __init__(self, names: SchemaNames) -> None:
        self.names = names
        self._of: dict[int, Labels] = {}
        self._is_stated: dict[int, bool] = {}
        self._guessed: set[int] = set()
        # A query of a thousand hops asks the same of the triples over and over.
        self._fits: dict[object, TripleFit] = {}

    def of(self, entity: PatternEntity) -> Labels:
        """Its labels or relations, or None where nothing is known."""
        key = id(entity)
        if key not in self._of:
            valid = self.names.relations if entity.relationship else self.names.labels
            self._of[key] = labels_of(entity.labels, valid, self.names.fold)
            self._is_stated[key] = self._of[key] is not None
        return self._of[key]

    def readable(self, step: RelationshipPattern) -> bool:
        """Whether the schema has all the names around a relationship."""
        for entity, valid in (
            (step.entity, self.names.relations),
            (step.left, self.names.labels),
            (step.right, self.names.labels),
        ):
            possible = self.of(entity)
            if possible is not None and not possible <= valid:
                return False
        # A relation of which the schema has no triple says nothing, nor does a path of
        # several hops.
        return not self.relations(step).isdisjoint(
            self.names.by_relation
        ) and not _is_long(step)

    def relations(self, step: RelationshipPattern) -> frozenset[str]:
        """The relations that a relationship may be."""
        possible = self.of(step.entity)
        return self.names.relations if possible is None else possible

    def fits(self, step: RelationshipPattern, turned: bool = False) -> bool:
        """Whether some triple fits a relationship and its ends, perhaps turned."""
        return bool(self._fit(step, turned).relations)

    def fitting_turned(self, step: RelationshipPattern) -> list[Triple]:
        """The triples that would fit a relationship and its ends if it were turned."""
        fit = self._fit(step, turned=True)
        triples = [
            triple
            for name in fit.relations
            for triple in self.names.by_relation.get(name, ())
        ]
        ways = _ways(step, turned=True)
        return [
            (source, relation, target)
            for source, relation, target in triples
            if (True in ways and source in fit.left and target in fit.right)
            or (False in ways and target in fit.left and source in fit.right)
        ]

    def joining(self, step: RelationshipPattern) -> frozenset[str]:
        """The relations that join the ends of a relationship either way."""
        return self._fitted(
            self.names.relations, self.of(step.left), self.of(step.right), (True, False)
        ).relations

    def guessed(self, entity: PatternEntity) -> bool:
        """Whether a triple missing from the schema could allow an entity more names."""
        return id(entity) in self._guessed

    def sampled(self, step: RelationshipPattern) -> bool:
        """Whether a triple missing from the schema could fit a relationship."""
        return not self.names.sampled_relations.isdisjoint(self.relations(step)) or any(
            map(self.guessed, (step.left, step.entity, step.right))
        )

    def doubtful(self, step: RelationshipPattern) -> bool:
        """Whether a label beside a relationship ends no triple.

        Nodes may have it in addition to one that does.
        """
        sides = (self.of(step.left), self.of(step.right))
        return any(
            labels is not None and self.names.linked.isdisjoint(labels)
            for labels in sides
        )

    def narrow(self, step: RelationshipPattern) -> list[PatternEntity]:
        """Limit the entities without stated names to those of the fitting triples.

        Returns the entities that now have fewer.
        """
        fit = self._fit(step)
        guessed = self.sampled(step)
        left, right = fit.left, fit.right
        if step.left is step.right:
            left = right = left & right
        domains = ((step.left, left), (step.right, right), (step.entity, fit.relations))
        return [
            entity for entity, names in domains if self._leave(entity, names, guessed)
        ]

    def _leave(
        self, entity: PatternEntity, names: frozenset[str], guessed: bool
    ) -> bool:
        if self._is_stated.get(id(entity), True) or names == self._of[id(entity)]:
            return False
        self._of[id(entity)] = names
        if guessed:
            self._guessed.add(id(entity))
        return True

    def _fit(self, step: RelationshipPattern, turned: bool = False) -> TripleFit:
        return self._fitted(
            self.relations(step),
            self.of(step.left),
            self.of(step.right),
            _ways(step, turned),
        )

    def _fitted(
        self,
        relations: frozenset[str],
        left: Labels,
        right: Labels,
        ways: tuple[bool, ...],
    ) -> TripleFit:
        key = (relations, left, right, ways)
        fit = self._fits.get(key)
        if fit is None:
            one_way = [
                _join(self.names, relations, left, right, forward) for forward in ways
            ]
            fit = self._fits[key] = TripleFit(
                *(frozenset().union(*parts) for parts in zip(*one_way, strict=True))
            )
        return fit


def _join(
    schema_names: SchemaNames,
    relations: frozenset[str],
    left: Labels,
    right: Labels,
    forward: bool,
) -> TripleFit:
    """What fits one way, found from the end that may have fewer labels."""
    onward, back = (
        (schema_names.leaving, schema_names.entering)
        if forward
        else (schema_names.entering, schema_names.leaving)
    )
    turned = right is not None and (left is None or len(right) < len(left))
    near, far, joins = (right, left, back) if turned else (left, right, onward)
    first, names, last = set[str](), set[str](), set[str]()
    for label in joins if near is None else near:
        for relation, far_labels in joins.get(label, {}).items():
            met = far_labels if far is None else far_labels & far
            if met and relation in relations:
                first.add(label)
                names.add(relation)
                last |= met
    fit = (last, names, first) if turned else (first, names, last)
    return TripleFit(*map(frozenset, fit))


def _ways(step: RelationshipPattern, turned: bool) -> tuple[bool, ...]:
    """Whether triples are read forward (from left to right), backward or both."""
    if step.relationship.direction is Direction.BOTH:
        return (True, False)
    return ((step.relationship.direction is Direction.OUTGOING) != turned,)


def _is_long(step: RelationshipPattern) -> bool:
    return bool(
        step.relationship.variable_length or step.relationship.args.get("quantifier")
    )
