"""`GraphTables`: the nodes and edges that a reader finds, on their way into a store."""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib import import_module
from typing import Any, TypeAlias

from pydantic_core import from_json

from graphret.errors import InvalidInput, MissingDependency
from graphret.stores.memory import MemoryStore
from graphret.types import ROW_KEYS, Edge, Node
from graphret.validation import require_row

Fields: TypeAlias = Mapping[str, Any]
_NONE: Fields = {}


class GraphTables:
    """Takes nodes, then the edges among them, and refuses what cannot stand in
    a graph.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._edges: list[Edge] = []
        # The node of each name, `None` where several bear it.
        self._named: dict[str, str | None] = {}

    def id_of(self, end: str) -> str:
        """Return the id of the node that an edge names by its id or, where one node
        alone bears it, by its name; empty where there is none.
        """
        return end if end in self._nodes else self._named.get(end) or ""

    def count(self) -> tuple[int, int]:
        """Return how many nodes and how many edges were read, parallel edges counted
        each.
        """
        return len(self._nodes), len(self._edges)

    def node(
        self,
        node_id: str,
        labels: tuple[str, ...],
        name: str = "",
        text: str = "",
        properties: Fields = _NONE,
    ) -> None:
        """Take a node; an `InvalidInput` says that its id or a label is empty, or that
        the id comes twice.
        """
        if not node_id:
            raise InvalidInput("the id is empty")
        if node_id in self._nodes:
            raise InvalidInput(f"the id {node_id!r} comes twice")
        if not all(labels):
            raise InvalidInput(f"node {node_id!r} has an empty label")
        self._nodes[node_id] = Node(node_id, labels, name, text, properties)
        if name:
            self._named[name] = None if name in self._named else node_id

    def edge(
        self,
        source: str,
        relation: str,
        target: str,
        weight: float = 1.0,
        properties: Fields = _NONE,
    ) -> None:
        """Take an edge; an `InvalidInput` says that it has no relation, no finite
        weight, or an end that is no node.
        """
        if not relation or not math.isfinite(weight):
            raise InvalidInput(
                f"the edge from {source!r} to {target!r} has no relation, or no finite"
                " weight"
            )
        for end in (source, target):
            if end not in self._nodes:
                raise InvalidInput(
                    f"the edge from {source!r} to {target!r} dangles: there is no node"
                    f" {end!r}"
                )
        for key in ROW_KEYS:
            if key in properties:
                require_row(properties[key], key)
        self._edges.append(Edge(source, relation, target, weight, properties or _NONE))

    def store(self) -> MemoryStore:
        """Return the graph; of edges with the same source, relation, target and rows,
        the last is kept.
        """
        return MemoryStore.of(self._nodes.values(), self._edges)


def required(module: str, extra: str, purpose: str) -> Any:
    """Import a module that an extra installs, or raise a `MissingDependency`."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingDependency(module.partition(".")[0], extra, purpose) from error


def parsed_json(text: str) -> Any:
    """Return the value of a JSON text; an `InvalidInput` refuses what is none, NaN
    among it.
    """
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidInput(f"not JSON ({error})") from error
