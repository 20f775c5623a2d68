"""Nodes and edges of a made-up graph, and right answers by plain Python over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Properties = Mapping[str, Any]
Test = Callable[[Properties], bool]


class Question(NamedTuple):
    """A question, its kind, and if nodes answer it their ids and a plan's Cypher."""

    text: str
    kind: str
    gold: frozenset[str] | set[str] = frozenset()
    cypher: str = ""


@dataclass
class Records:
    """The nodes by id, with their label, and the edges."""

    properties: dict[str, dict[str, Any]] = field(default_factory=dict)
    label: dict[str, str] = field(default_factory=dict)
    edges: list[tuple[str, str, str]] = field(default_factory=list)

    def node(self, label: str, name: str, **properties: Any) -> str:
        """Add a node, its id made of its label and number; return the id."""
        number = sum(label_ == label for label_ in self.label.values()) + 1
        node_id = f"{label.lower()}-{number}"
        self.label[node_id] = label
        present = {key: value for key, value in properties.items() if value is not None}
        self.properties[node_id] = {"name": name, **present}
        return node_id

    def edge(self, source: str, relation: str, target: str) -> None:
        """Add an edge, once."""
        if (source, relation, target) not in self.edges:
            self.edges.append((source, relation, target))

    def all(self, label: str, test: Test = lambda _: True) -> set[str]:
        """The nodes of a label whose properties pass a test."""
        return {
            node_id
            for node_id, node_label in self.label.items()
            if node_label == label and test(self.properties[node_id])
        }

    def named(self, name: str) -> set[str]:
        """The nodes of a name, of which there must be one."""
        ids = {i for i, fields in self.properties.items() if fields["name"] == name}
        assert len(ids) == 1, name
        return ids

    def out(self, ids: Iterable[str], relation: str) -> set[str]:
        """Where a relation leads from some nodes."""
        sources = set(ids)
        return {t for s, r, t in self.edges if s in sources and r == relation}

    def into(self, ids: Iterable[str], relation: str) -> set[str]:
        """Where a relation comes from that leads to some nodes."""
        targets = set(ids)
        return {s for s, r, t in self.edges if t in targets and r == relation}

    def top(
        self, ids: Iterable[str], key: str, n: int = 1, *, most: bool = True
    ) -> set[str]:
        """The `n` nodes of the most, or the least, of a property; all that tie."""
        having = [i for i in ids if key in self.properties[i]]
        return _first(having, lambda i: self.properties[i][key], n, most)

    def most(
        self, ids: Iterable[str], count: Callable[[str], int], *, least: bool = False
    ) -> set[str]:
        """The nodes of the highest count, or the lowest above 0; all that tie."""
        counted = [node_id for node_id in ids if count(node_id)]
        return _first(counted, count, 1, not least)


def _first(
    ids: Iterable[str], key: Callable[[str], Any], n: int, most: bool
) -> set[str]:
    listed = list(ids)
    bound = sorted(map(key, listed), reverse=most)[n - 1]
    return {i for i in listed if (key(i) >= bound if most else key(i) <= bound)}
