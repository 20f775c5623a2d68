"""The schema of a graph in Neo4j: counts from the database's own, the rest from samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from graphret.schema import GraphSchema, SchemaBuilder
from graphret.stores.neo4j.layout import RESERVED
from graphret.stores.neo4j.names import quote
from graphret.stores.neo4j.reads import Graph
from graphret.stores.neo4j.statements import Plan, Statement
from graphret.stores.neo4j.temporal import is_unreadable
from graphret.stores.neo4j.values import json_value
from graphret.types import Edge, Node

#: Nodes of a label and edges of a relation that are looked at.
SAMPLE = 1_000
#: Edges of a relation whose labels are counted one by one, and of all relations together.
COUNTED, ALL_COUNTED = 10_000, 500_000
#: Nodes among which those without a label are looked for: the database keeps no count of them.
SCANNED = 50_000
#: Counts in one statement, and in all for one schema.
_COUNTS, _MOST_COUNTS = 100, 4_000
_TEXT_SHOWN = 200


class Sampler:
    """Reads the schema of a graph.

    Properties have the names that Cypher knows them by, ``id``, ``name`` and ``text`` among them, since that is what a
    schema is held against here. An edge counts under every pair of its ends' labels: Neo4j knows no primary one.
    """

    def __init__(self, graph: Graph, sample: int = SAMPLE, counted: int = COUNTED, scanned: int = SCANNED) -> None:
        self.graph = graph
        self.sample = sample
        self.counted = counted
        self.scanned = scanned
        self.sampled_relations: set[str] = set()
        self.sampled_properties: set[str] = set()
        self.sampled_relation_properties: set[str] = set()

    def schema(self) -> Plan[GraphSchema]:
        """Count labels and relations, so that none is missing, and sample the rest."""
        everything, whole = yield from self.graph.whole()
        if self.graph.scope is not None:  # how many there are besides a view must not show
            clause, parameters = self.graph.conditions("n")
            (everything,) = yield from _counted([f"MATCH {self.graph.layout.node('n')}{clause}"], parameters)
        labels = yield from self._labels(whole)
        relations = yield from self._relations(whole)
        self.counted = max(self.counted, ALL_COUNTED // max(1, len(relations)))
        triples: Counter[tuple[str, str, str]] = Counter()
        builder = SchemaBuilder()
        for label, n in labels.items():
            builder.observe_nodes((yield from self._nodes(label, n)))
        if not (whole and self._all_labelled(everything, labels)):
            builder.observe_nodes((yield from self._unlabelled(everything)))
        for relation, n in relations.items():
            triples.update((yield from self._triples(relation, n, list(labels), whole)))
            builder.observe_edges((yield from self._edges(relation, n)))
        return builder.build(
            labels,
            triples,
            sampled_relations=self.sampled_relations,
            sampled_properties=self.sampled_properties,
            sampled_relation_properties=self.sampled_relation_properties,
        )

    def _labels(self, whole: bool) -> Plan[dict[str, int]]:
        rows = yield Statement("CALL db.labels() YIELD label RETURN label ORDER BY label")
        names = [name for (name,) in rows if name not in self.graph.layout.unseen_labels]
        patterns = []
        parameters: dict[str, Any] = {}
        for name in names:
            if whole:
                patterns.append(f"MATCH (n:{quote(name)})")
            else:
                clause, parameters = self.graph.conditions("n", f"n:{quote(name)}")
                patterns.append(f"MATCH {self.graph.layout.node('n')}{clause}")
        found = dict(zip(names, (yield from _counted(patterns, parameters)), strict=True))
        return {name: n for name, n in found.items() if n}  # a database lists labels that only an index names, too

    def _relations(self, whole: bool) -> Plan[dict[str, int]]:
        rows = yield Statement(
            "CALL db.relationshipTypes() YIELD relationshipType AS relation RETURN relation ORDER BY relation"
        )
        names = [name for (name,) in rows]
        patterns = []
        parameters: dict[str, Any] = {}
        for name in names:
            if whole:
                patterns.append(f"MATCH ()-[r:{quote(name)}]->()")
            else:
                pattern, parameters = self.graph.edge(f":{quote(name)}")
                patterns.append(pattern)
        found = zip(names, (yield from _counted(patterns, parameters, "r")), strict=True)
        return {name: n for name, n in found if n}

    def _nodes(self, label: str, n: int) -> Plan[list[Node]]:
        if n > self.sample:
            self.sampled_properties.add(label)
        layout = self.graph.layout
        clause, parameters = self.graph.conditions("n", f"n:{quote(label)}")
        text = f"MATCH {layout.node('n')}{clause} WITH n LIMIT $sample RETURN {self._values()}"
        rows = yield Statement(text, parameters | {"sample": self.sample})
        return [Node("-", (label,), properties=_readable(values, layout.hidden)) for (values,) in rows]

    def _all_labelled(self, everything: int, labels: dict[str, int]) -> bool:
        """Whether the counts of labels say that every node has one.

        They do where one label is on every node; and in a large graph where they add up to the nodes, one label each.
        """
        return everything in labels.values() or (everything > self.scanned and sum(labels.values()) == everything)

    def _unlabelled(self, everything: int) -> Plan[list[Node]]:
        """Nodes that show no label, of the first so many in the database."""
        layout = self.graph.layout
        clause, parameters = self.graph.conditions("n")
        bare = "all(label IN labels(n) WHERE label IN $unseen)"
        text = (
            f"MATCH {layout.node('n')}{clause} WITH n LIMIT $scanned "
            f"WITH n WHERE {bare} WITH n LIMIT $sample RETURN {self._values()}"
        )
        limits = {"scanned": self.scanned, "sample": self.sample + 1, "unseen": sorted(layout.unseen_labels)}
        rows = yield Statement(text, parameters | limits)
        if everything > self.scanned or len(rows) > self.sample:
            self.sampled_properties.add("")
        return [Node("-", (), properties=_readable(values, layout.hidden)) for (values,) in rows]

    def _values(self) -> str:
        """The properties of a node, a long text cut."""
        layout = self.graph.layout
        long = "".join(f", {quote(name)}: left(n.{quote(name)}, {_TEXT_SHOWN})" for name in layout.text if layout.own)
        return layout.values_of("n")[:-1] + long + "}"

    def _edges(self, relation: str, n: int) -> Plan[list[Edge]]:
        if n > self.sample:
            self.sampled_relation_properties.add(relation)
        pattern, parameters = self.graph.edge(f":{quote(relation)}")
        text = f"{pattern} WITH r LIMIT $sample RETURN properties(r)"
        rows = yield Statement(text, parameters | {"sample": self.sample})
        return [Edge("-", relation, "-", 1.0, _readable(values)) for (values,) in rows]

    def _triples(
        self, relation: str, n: int, labels: Sequence[str], whole: bool
    ) -> Plan[Counter[tuple[str, str, str]]]:
        if n > self.counted and whole and 2 * len(labels) <= _MOST_COUNTS:
            return (yield from self._by_ends(relation, labels))
        pattern, parameters = self.graph.edge(f":{quote(relation)}")
        taken = min(n, self.counted)
        if taken < n:
            self.sampled_relations.add(relation)
        text = f"{pattern} WITH a, b LIMIT $sample RETURN labels(a), labels(b), count(*)"
        rows = yield Statement(text, parameters | {"sample": taken})
        found: Counter[tuple[str, str, str]] = Counter()
        for sources, targets, m in rows:
            for source in self._shown(sources):
                found.update({(source, relation, target): m for target in self._shown(targets)})
        return Counter({triple: round(m * n / taken) for triple, m in found.items()})

    def _by_ends(self, relation: str, labels: Sequence[str]) -> Plan[Counter[tuple[str, str, str]]]:
        """Count by the label of one end, which the database does at once, and sample the other."""
        name = quote(relation)
        leaving = yield from _counted([f"MATCH (:{quote(label)})-[r:{name}]->()" for label in labels], {}, "r")
        entering = yield from _counted([f"MATCH ()-[r:{name}]->(:{quote(label)})" for label in labels], {}, "r")
        sources = {label: m for label, m in zip(labels, leaving, strict=True) if m}
        targets = {label: m for label, m in zip(labels, entering, strict=True) if m}
        if len(sources) == 1 or len(targets) == 1:  # then all of the one end are with all of the other
            return Counter({(s, relation, t): min(m, n) for s, m in sources.items() for t, n in targets.items()})
        found: Counter[tuple[str, str, str]] = Counter()
        for source, m in sources.items():
            taken = min(m, self.counted)
            if taken < m:
                self.sampled_relations.add(relation)
            text = f"MATCH (:{quote(source)})-[r:{name}]->(b) WITH b LIMIT $sample RETURN labels(b), count(*)"
            for others, k in (yield Statement(text, {"sample": taken})):
                found.update({(source, relation, target): round(k * m / taken) for target in self._shown(others)})
        return found

    def _shown(self, labels: Iterable[str]) -> list[str]:
        return sorted(set(labels) - self.graph.layout.unseen_labels) or [""]


def _counted(patterns: Sequence[str], parameters: dict[str, Any], what: str = "n") -> Plan[list[int]]:
    """Count what each pattern finds, many to a statement."""
    counts = [0] * len(patterns)
    for start in range(0, len(patterns), _COUNTS):
        parts = [
            f"{pattern} RETURN {start + i} AS i, count({what}) AS n"
            for i, pattern in enumerate(patterns[start : start + _COUNTS])
        ]
        for i, n in (yield Statement(" UNION ALL ".join(parts), parameters)):
            counts[i] = n
    return counts


def _readable(values: dict[str, Any], hidden: Sequence[str] = ()) -> dict[str, Any]:
    """Properties by the names that Cypher knows, with dates as Python has them."""
    shown = {k: v for k, v in values.items() if v is not None and not k.startswith(RESERVED) and k not in hidden}
    return {key: native for key, value in shown.items() if (native := _native(value)) is not None}


def _native(value: Any) -> Any:
    if isinstance(value, tuple):  # a point or a duration is what queries take it for, though a node shows a map or text
        return value
    if isinstance(value, list):
        return [_native(v) for v in value]
    if hasattr(value, "to_native"):
        try:
            return value.to_native()
        except ValueError:  # the day before the year 1, which the driver has and Python lacks
            return json_value(value)
    if isinstance(value, float) or is_unreadable(value):
        return json_value(value)
    return value
