"""`GraphSchema`: what kinds of nodes, relations and properties a graph has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class PropertySchema:
    """What is known of a property of the nodes of one label, or of the edges of one relation.

    Parameters
    ----------
    type
        ``STRING``, ``INTEGER``, ``FLOAT``, ``BOOLEAN``, ``DATE``, ``DATE_TIME``, ``POINT``, ``MAP``, ``LIST OF`` one
        of these, or ``ANY`` where values of several types were seen.
    coverage
        Share of the nodes or edges that have it, 0 to 1.
    examples
        A few of its values, the most frequent first.
    """

    type: str = "ANY"
    coverage: float = 1.0
    examples: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphSchema:
    """The labels, relations and properties of a graph.

    Parameters
    ----------
    labels
        How many nodes bear each label.
    relations
        How many edges join each ``(source label, relation, target label)``; an edge counts under the primary labels of
        its ends, or under every pair of their labels where the store knows no primary one.
    properties
        For each label its properties by name.
    relation_properties
        For each relation its properties by name.
    sampled
        Whether only a part of the graph was read: counts are then estimates, and a rare triple or property may be
        missing.
    """

    labels: Mapping[str, int]
    relations: Mapping[tuple[str, str, str], int]
    properties: Mapping[str, Mapping[str, PropertySchema]] = field(default_factory=dict)
    relation_properties: Mapping[str, Mapping[str, PropertySchema]] = field(default_factory=dict)
    sampled: bool = False

    @property
    def relation_names(self) -> list[str]:
        """The names of the relations, in order."""
        return sorted({relation for _, relation, _ in self.relations} | set(self.relation_properties))
