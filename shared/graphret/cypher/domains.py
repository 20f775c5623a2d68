"""Which labels the nodes of a query may have, and which relations join them, by a
schema's triples.
"""

from __future__ import annotations

from typing import NamedTuple

from cypherast.ast import Direction

from graphret.cypher.known import Labels, SchemaNames, Triple, labels_of
from graphret.cypher.semantics.values import PatternEntity
from graphret.cypher.semantics.walk import RelationshipPattern


class TripleFit(NamedTuple):
    """What the triples that fit a relationship leave to its left node, to itself and to
    its right node.
    """

    left: frozenset[str]
    relations: frozenset[str]
    right: frozenset[str]


class Domains:
    """The labels or relations that each entity of a query may have.

    What a query says of an entity stands; of one that it says nothing of, the triples
    that may join it to its neighbours leave some.
    """

    def __init__(self, known: SchemaNames) -> None:
        self.known = known
        self._of: dict[int, Labels] = {}
        self._said: dict[int, bool] = {}
        self._guessed: set[int] = set()
        # A query of a thousand hops asks the same of the triples over and over.
        self._fits: dict[object, TripleFit] = {}

    def of(self, entity: PatternEntity) -> Labels:
        """Its labels or relations, or None where nothing is known."""
        key = id(entity)
        if key not in self._of:
            valid = self.known.relations if entity.relationship else self.known.labels
            self._of[key] = labels_of(entity.labels, valid, self.known.fold)
            self._said[key] = self._of[key] is not None
        return self._of[key]

    def readable(self, step: RelationshipPattern) -> bool:
        """Whether the schema has all the names about a relationship, so that its
        triples can be asked.
        """
        for entity, valid in (
            (step.entity, self.known.relations),
            (step.left, self.known.labels),
            (step.right, self.known.labels),
        ):
            found = self.of(entity)
            if found is not None and not found <= valid:
                return False
        # A relation of which the schema has no triple says nothing, nor does a path of
        # several hops.
        return not self.relations(step).isdisjoint(
            self.known.by_relation
        ) and not _is_long(step)

    def relations(self, step: RelationshipPattern) -> frozenset[str]:
        """The relations that a relationship may be."""
        found = self.of(step.entity)
        return self.known.relations if found is None else found

    def fits(self, step: RelationshipPattern, turned: bool = False) -> bool:
        """Whether some triple fits a relationship and its ends, as written or
        turned.
        """
        return bool(self._fit(step, turned).relations)

    def fitting_turned(self, step: RelationshipPattern) -> list[Triple]:
        """The triples that would fit a relationship and its ends if it were turned."""
        fit = self._fit(step, turned=True)
        found = [
            triple
            for name in fit.relations
            for triple in self.known.by_relation.get(name, ())
        ]
        ways = _ways(step, turned=True)
        return [
            (source, relation, target)
            for source, relation, target in found
            if (True in ways and source in fit.left and target in fit.right)
            or (False in ways and target in fit.left and source in fit.right)
        ]

    def joining(self, step: RelationshipPattern) -> frozenset[str]:
        """The relations that join the ends of a relationship either way."""
        return self._fitted(
            self.known.relations, self.of(step.left), self.of(step.right), (True, False)
        ).relations

    def guessed(self, entity: PatternEntity) -> bool:
        """Whether a triple that the schema may lack could leave an entity more labels
        or relations.
        """
        return id(entity) in self._guessed

    def sampled(self, step: RelationshipPattern) -> bool:
        """Whether a triple that the schema may lack could fit a relationship and its
        ends.
        """
        return not self.known.sampled_relations.isdisjoint(self.relations(step)) or any(
            map(self.guessed, (step.left, step.entity, step.right))
        )

    def doubtful(self, step: RelationshipPattern) -> bool:
        """Whether a label beside a relationship ends no triple: nodes may bear it
        besides another.
        """
        found = (self.of(step.left), self.of(step.right))
        return any(
            ends is not None and self.known.linked.isdisjoint(ends) for ends in found
        )

    def narrow(self, step: RelationshipPattern) -> list[PatternEntity]:
        """Leave to the entities of which nothing is said what the triples leave; return
        those that now have less.
        """
        fit = self._fit(step)
        guessed = self.sampled(step)
        left, right = fit.left, fit.right
        if step.left is step.right:
            left = right = left & right
        rest = ((step.left, left), (step.right, right), (step.entity, fit.relations))
        return [entity for entity, names in rest if self._leave(entity, names, guessed)]

    def _leave(
        self, entity: PatternEntity, names: frozenset[str], guessed: bool
    ) -> bool:
        if self._said.get(id(entity), True) or names == self._of[id(entity)]:
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
                _join(self.known, relations, left, right, forward) for forward in ways
            ]
            fit = self._fits[key] = TripleFit(
                *(frozenset().union(*parts) for parts in zip(*one_way, strict=True))
            )
        return fit


def _join(
    known: SchemaNames,
    relations: frozenset[str],
    left: Labels,
    right: Labels,
    forward: bool,
) -> TripleFit:
    """What fits one way, found from the end that may have fewer labels."""
    there, back = (
        (known.leaving, known.entering) if forward else (known.entering, known.leaving)
    )
    turned = right is not None and (left is None or len(right) < len(left))
    near, far, joins = (right, left, back) if turned else (left, right, there)
    first, names, last = set[str](), set[str](), set[str]()
    for label in joins if near is None else near:
        for relation, ends in joins.get(label, {}).items():
            met = ends if far is None else ends & far
            if met and relation in relations:
                first.add(label)
                names.add(relation)
                last |= met
    fit = (last, names, first) if turned else (first, names, last)
    return TripleFit(*map(frozenset, fit))


def _ways(step: RelationshipPattern, turned: bool) -> tuple[bool, ...]:
    """Whether the triples are read forward, backward or both: from the left node to the
    right one is forward.
    """
    if step.relationship.direction is Direction.BOTH:
        return (True, False)
    return ((step.relationship.direction is Direction.OUTGOING) != turned,)


def _is_long(step: RelationshipPattern) -> bool:
    return bool(
        step.relationship.variable_length or step.relationship.args.get("quantifier")
    )
