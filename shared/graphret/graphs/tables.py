"""`GraphTables`: the nodes and edges that a reader collects for a store."""

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
    """Collects nodes, then the edges between them, and refuses malformed ones."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._edges: list[Edge] = []
        # The node of each name, `None` where several have it.
        self._id_by_name: dict[str, str | None] = {}

    def id_of(self, end: str) -> str:
        """Return the id of an edge's end, given by id or unique name, or an empty string."""
        return end if end in self._nodes else self._id_by_name.get(end) or ""

    def count(self) -> tuple[int, int]:
        """Return the numbers of nodes and edges, each parallel edge counted."""
        return len(self._nodes), len(self._edges)

    def node(
        self,
        node_id: str,
        labels: tuple[str, ...],
        name: str = "",
        text: str = "",
        properties: Fields = _NONE,
    ) -> None:
        """Add a node; `InvalidInput` if its id or a label is empty, or the id repeats."""
        if not node_id:
            raise InvalidInput("the id is empty")
        if node_id in self._nodes:
            raise InvalidInput(f"the id {node_id!r} comes twice")
        if not all(labels):
            raise InvalidInput(f"node {node_id!r} has an empty label")
        self._nodes[node_id] = Node(node_id, labels, name, text, properties)
        if name:
            self._id_by_name[name] = None if name in self._id_by_name else node_id

    def edge(
        self,
        source: str,
        relation: str,
        target: str,
        weight: float = 1.0,
        properties: Fields = _NONE,
    ) -> None:
        """Add an edge; `InvalidInput` without relation, finite weight or known ends."""
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
        """Return the graph with the last of edges of equal ends, relation and rows."""
        return MemoryStore.of(self._nodes.values(), self._edges)


def required(module: str, extra: str, purpose: str) -> Any:
    """Import a module that an extra installs, or raise a `MissingDependency`."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingDependency(module.partition(".")[0], extra, purpose) from error


def parsed_json(text: str) -> Any:
    """Return the value of a JSON text; NaN is not valid JSON here."""
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidInput(f"not JSON ({error})") from error
