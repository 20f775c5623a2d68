"""`GraphTables`: the nodes and edges that a reader finds, in columns, on their way into a store."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from pydantic_core import from_json

from graphret.edges import NO_PART, EdgeTable
from graphret.errors import InvalidInput, MissingDependency
from graphret.nodes import NodeTable
from graphret.stores.memory import Graph, MemoryStore
from graphret.types import PART_KEYS
from graphret.validation import require_part

Fields: TypeAlias = Mapping[str, Any]
_NONE: Fields = {}


class GraphTables:
    """Takes nodes, then the edges among them, and refuses what cannot stand in a graph.

    Attributes
    ----------
    remarks
        What was not read as it was meant to be, in words.
    """

    def __init__(self) -> None:
        self.remarks: list[str] = []
        self._position: dict[str, int] = {}
        self._names: list[str] = []
        self._texts: list[str] = []
        self._labels = array("i")
        self._label_sets: dict[tuple[str, ...], int] = {}
        self._properties: list[Mapping[str, Any]] = []
        self._source, self._target, self._relation = array("q"), array("q"), array("i")
        self._relations: dict[str, int] = {}
        self._weight = array("d")
        self._edge_properties: list[Mapping[str, Any]] = []

    def __contains__(self, node_id: str) -> bool:
        return node_id in self._position

    def count(self) -> tuple[int, int]:
        """Return how many nodes and how many edges were read, parallel edges counted each."""
        return len(self._names), len(self._source)

    def node(
        self, node_id: str, labels: tuple[str, ...], name: str = "", text: str = "", properties: Fields = _NONE
    ) -> None:
        """Take a node; an `InvalidInput` says that its id or a label is empty, or that the id comes twice."""
        if not node_id:
            raise InvalidInput("the id is empty")
        if self._position.setdefault(node_id, len(self._names)) != len(self._names):
            raise InvalidInput(f"the id {node_id!r} comes twice")
        if not all(labels):
            raise InvalidInput(f"node {node_id!r} has an empty label")
        self._labels.append(self._label_sets.setdefault(labels, len(self._label_sets)))
        self._names.append(name)
        self._texts.append(text)
        self._properties.append(properties or _NONE)

    def edge(self, source: str, relation: str, target: str, weight: float = 1.0, properties: Fields = _NONE) -> None:
        """Take an edge; an `InvalidInput` says that it has no relation, no finite weight, or an end that is no node."""
        if not relation or not math.isfinite(weight):
            raise InvalidInput(f"the edge from {source!r} to {target!r} has no relation, or no finite weight")
        for end in (source, target):
            if end not in self._position:
                raise InvalidInput(f"the edge from {source!r} to {target!r} dangles: there is no node {end!r}")
        for key in PART_KEYS:
            if key in properties:
                require_part(properties[key], key)
        self._source.append(self._position[source])
        self._target.append(self._position[target])
        self._relation.append(self._relations.setdefault(relation, len(self._relations)))
        self._weight.append(weight)
        self._edge_properties.append(properties or _NONE)

    def store(self) -> MemoryStore:
        """Return the graph; of edges with the same source, relation, target and rows, the last is kept."""
        labels, sets = np.asarray(self._labels, dtype=np.int32), list(self._label_sets) or [("Node",)]
        nodes, at = NodeTable.build([*self._position], self._names, self._texts, labels, sets, self._properties)
        about: list[Any] = [None, None, None]  # the rows at both ends, and what else is known
        if any(own := self._edge_properties):
            about = [np.asarray([one.get(key, NO_PART) for one in own], dtype=np.int32) for key in PART_KEYS]
            about += [[{k: v for k, v in one.items() if k not in PART_KEYS} if one else one for one in own]]
        source, target = (at[np.asarray(ends, dtype=np.int64)] for ends in (self._source, self._target))
        relation, weight = np.asarray(self._relation), np.asarray(self._weight)
        edges = EdgeTable.build(len(nodes), source, target, relation, [*self._relations], weight, *about)
        return MemoryStore(Graph(nodes, edges))


def required(module: str, extra: str, purpose: str) -> Any:
    """Import a module that an extra installs, or raise a `MissingDependency`."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingDependency(module.partition(".")[0], extra, purpose) from error


def parsed_json(text: str) -> Any:
    """Return the value of a JSON text; an `InvalidInput` refuses what is none, NaN among it."""
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidInput(f"not JSON ({error})") from error
