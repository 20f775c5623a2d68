"""`TablesBuilder`: checked nodes and edges, in any order, become `GraphTables`."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphret.errors import InvalidInput
from graphret.graphs.places import Lines, place
from graphret.graphs.tables import GraphTables

_ROWS = ("source_row", "target_row")


class TablesBuilder:
    """Takes nodes and edges with the place where each was read, and refuses what cannot stand in a graph.

    Edges may come before the nodes that they join. Every refusal is an `InvalidInput` that names the place.
    """

    def __init__(self) -> None:
        self._position: dict[str, int] = {}
        self._names: list[str] = []
        self._texts: list[str] = []
        self._codes = array("i")
        self._sets: dict[tuple[str, ...], int] = {}
        self._properties: list[Mapping[str, Any]] = []
        self._node_places = Lines()
        self._sources: list[str] = []
        self._targets: list[str] = []
        self._relation = array("i")
        self._relations: dict[str, int] = {}
        self._weights = array("d")
        self._edge_properties: list[Mapping[str, Any]] = []
        self._edge_places = Lines()

    def node(
        self,
        node_id: str,
        labels: tuple[str, ...],
        name: str,
        text: str,
        properties: Mapping[str, Any],
        file: str,
        line: int,
    ) -> None:
        """Take a node."""
        if not node_id:
            raise InvalidInput(f"{place(file, line)}: the id is empty")
        first = self._position.setdefault(node_id, len(self._names))
        if first != len(self._names):
            raise InvalidInput(
                f"{place(file, line)}: the id {node_id!r} comes twice, first in {self._node_places[first]}"
            )
        code = self._sets.get(labels)
        if code is None:
            if not all(labels):
                raise InvalidInput(f"{place(file, line)}: node {node_id!r} has an empty label")
            code = self._sets[labels] = len(self._sets)
        self._names.append(name)
        self._texts.append(text)
        self._codes.append(code)
        self._properties.append(properties)
        self._node_places.add(file, line)

    def edge(
        self,
        source: str,
        relation: str,
        target: str,
        weight: float,
        properties: Mapping[str, Any],
        file: str,
        line: int,
    ) -> None:
        """Take an edge."""
        if not relation:
            raise InvalidInput(f"{place(file, line)}: the edge from {source!r} to {target!r} has no relation")
        if not math.isfinite(weight):
            raise InvalidInput(f"{place(file, line)}: the weight must be a finite number, not {weight!r}")
        if properties:
            for row in _ROWS:
                if row in properties and (isinstance(properties[row], bool) or not isinstance(properties[row], int)):
                    raise InvalidInput(f"{place(file, line)}: {row!r} is the number of a row, not {properties[row]!r}")
        self._sources.append(source)
        self._targets.append(target)
        self._relation.append(self._relations.setdefault(relation, len(self._relations)))
        self._weights.append(weight)
        self._edge_properties.append(properties)
        self._edge_places.add(file, line)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, node_id: str) -> bool:
        return node_id in self._position

    def finish(self) -> GraphTables:
        """Return the graph; an `InvalidInput` names the place of an edge to a node that is not there."""
        ends = [self._ends(self._sources), self._ends(self._targets)]
        weight = np.asarray(self._weights, dtype=np.float64)
        return GraphTables(
            ids=list(self._position),
            names=self._names,
            texts=self._texts if any(self._texts) else None,
            labels=np.asarray(self._codes, dtype=np.int32),
            label_sets=list(self._sets),
            properties=self._properties if any(self._properties) else None,
            source=ends[0],
            target=ends[1],
            relation=np.asarray(self._relation, dtype=np.int64),
            relations=list(self._relations),
            weight=weight if (weight != 1.0).any() else None,
            edge_properties=self._edge_properties if any(self._edge_properties) else None,
            node_places=self._node_places.places(),
            edge_places=self._edge_places.places(),
        ).distinct()

    def _ends(self, ids: Sequence[str]) -> Any:
        position = self._position
        found = np.fromiter((position.get(i, -1) for i in ids), dtype=np.int64, count=len(ids))
        if len(found) and found.min() < 0:
            edge = int(np.argmin(found))
            raise InvalidInput(
                f"{self._edge_places[edge]}: the edge from {self._sources[edge]!r} to {self._targets[edge]!r} dangles: "
                f"there is no node {ids[edge]!r}"
            )
        return found
