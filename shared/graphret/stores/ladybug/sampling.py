"""The schema of a Ladybug database: counted where that is quick, and estimated from nodes drawn by a hash where not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphret.schema import GraphSchema, SchemaBuilder
from graphret.stores.ladybug.catalog import Catalog, NodeGroup, NodeTable, RelationTable
from graphret.stores.ladybug.engine import Session
from graphret.stores.ladybug.names import EDGE_COLUMNS, NODE_COLUMNS, quoted
from graphret.stores.ladybug.records import EdgeReader, NodeReader

#: About so many nodes of each label, and edges of each relation, are read for their properties,
SAMPLE = 1_000
#: in all of so many labels and relations; where there are more, each gives less, down to the last.
_OWNERS, _LEAST = 10, 20
#: Edges are counted one by one where the tables of their sources have no more rows than this, each taken as often as
#: a relation leaves it for a table; a million takes some 30 ms. Labels are counted where the nodes are no more than
#: this; a million takes half a second, and so does the question whether any has a second label.
COUNTED = 10_000_000
#: The edges of a relation are read for their properties from its most frequent pairs of tables,
_PAIRS = 4
#: and pairs of which no edge was drawn are counted, so many at the most.
_LOOKED_UP = 100
#: Fibonacci hashing (Knuth, The Art of Computer Programming 3, section 6.4), which scatters numbers evenly whatever
#: their period; the database's own hash takes fifty times as long.
_WHOLE, _SPREAD = 2**32, 2654435769

Triple = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition written for a group of tables, with its parameters."""

    group: NodeGroup
    text: str
    parameters: dict[str, Any]


@dataclass(slots=True)
class Sampler:
    """Reads how much there is in the tables of a database, and what.

    The same database gives the same schema: a node is drawn by a hash of its place in its table, which no order or
    period in the rows can follow.

    Parameters
    ----------
    conditions
        Writes for some tables of nodes, and the variable of a node, the condition on what may be read.
    restricted
        Whether there is such a condition.
    sample, counted
        See `SAMPLE` and `COUNTED`.
    """

    session: Session
    catalog: Catalog
    conditions: Callable[[Iterable[NodeTable], str], Iterable[Condition]]
    restricted: bool
    sample: int = SAMPLE
    counted: int = COUNTED
    cut: bool = False
    _drawn_tables: set[str] = field(default_factory=set)
    _second_labels: bool = False
    _missed: set[str] = field(default_factory=set)
    _relations_in_part: set[str] = field(default_factory=set)
    _written: dict[tuple[str, ...], list[Condition]] = field(default_factory=dict)
    _sizes: dict[str, int] = field(default_factory=dict)

    def schema(self) -> GraphSchema:
        """Return the schema; an edge counts under the primary labels of its ends."""
        builder = SchemaBuilder()
        labels: Counter[str] = Counter()
        for table in self.catalog.nodes.values():
            self._observe_nodes(builder, table, labels)
        triples = self.triples() if self._rows_to_count() <= self.counted else self._estimated()
        for relation in self.catalog.relations.values():
            self._observe_edges(builder, relation, triples)
        primary = {name: table.label for name, table in self.catalog.nodes.items()}
        named = {name: table.relation for name, table in self.catalog.relations.items()}
        counted: Counter[Triple] = Counter()
        for (source, name, target), n in triples.items():
            counted[primary[source], named[name], primary[target]] += n
        labels, counted = +labels, +counted
        relations = {name for _, name, _ in counted}
        tables = {label: name for name, label in primary.items()}
        whole = {label for name, label in primary.items() if name not in self._drawn_tables}
        return builder.build(
            labels,
            counted,
            sampled=self.cut,
            sampled_names=self._second_labels or bool(self._missed),
            sampled_relations={named[name] for name in self._missed} & relations,
            # A second label may be on nodes of any table.
            sampled_properties={*primary.values(), *labels} - whole if self._drawn_tables else (),
            sampled_relation_properties=self._relations_in_part,
            cypher_labels={
                label: tables.get(label) for label in sorted(labels) if label and tables.get(label) != label
            },
            cypher_relations={own: name for name, own in sorted(named.items()) if own != name and own in relations},
            columns={
                t.label: NODE_COLUMNS for t in self.catalog.nodes.values() if t.native and t.label and t.label in labels
            },
            relation_columns={
                t.relation: EDGE_COLUMNS.keys() if t.native else {"weight"}
                for t in self.catalog.relations.values()
                if t.weighs and t.relation in relations
            },
        )

    def triples(self) -> Counter[Triple]:
        """Count the edges that join the tables, all of them."""
        pairs = [(s, relation, t) for relation in self.catalog.relations.values() for s, t in relation.pairs]
        return Counter({(s, relation.name, t): self._count(s, relation, t) for s, relation, t in pairs})

    def between(self, source: str, target: str) -> tuple[str, dict[str, Any]]:
        """Return the filter of the edges from ``a`` to ``b`` by what may be read, and its parameters."""
        if not self.restricted:
            return " WHERE true", {}
        (one,), (other,) = self._conditions([source], "a"), self._conditions([target], "b")
        return f" WHERE {one.text} AND {other.text}", {**one.parameters, **other.parameters}

    def _conditions(self, tables: Sequence[str], variable: str) -> list[Condition]:
        key = variable, *tables
        if key not in self._written:
            self._written[key] = [*self.conditions([self.catalog.nodes[name] for name in tables], variable)]
        return self._written[key]

    def _count(self, source: str, relation: RelationTable, target: str) -> int:
        text, parameters = self.between(source, target)
        if not self.restricted:
            text = ""
        pattern = f"MATCH (a:{quoted(source)})-[r:{quoted(relation.name)}]->(b:{quoted(target)})"
        return int(self.session.rows(f"{pattern}{text} RETURN count(*)", parameters)[0][0])

    def _rows_to_count(self) -> int:
        return sum(self._size(source) for table in self.catalog.relations.values() for source, _ in table.pairs)

    def _size(self, table: str) -> int:
        """How many rows a table of nodes has, which the database knows."""
        if table not in self._sizes:
            self._sizes[table] = int(self.session.rows(f"MATCH (n:{quoted(table)}) RETURN count(*)")[0][0])
        return self._sizes[table]

    def _share(self, owners: int) -> int:
        return min(self.sample, max(_LEAST, _OWNERS * self.sample // max(1, owners)))

    def _observe_nodes(self, builder: SchemaBuilder, table: NodeTable, labels: Counter[str]) -> None:
        reader = NodeReader(table)
        for condition in self._conditions([table.name], "n"):
            head = f"MATCH ({condition.group.pattern('n')}) WHERE {condition.text}"
            n = self._size(table.name)
            if self.restricted:
                n = self.session.rows(f"{head} RETURN count(*)", condition.parameters)[0][0]
            step = n // self._share(len(self.catalog.nodes))
            if step > 1:
                self._drawn_tables.add(table.name)
            rows = self.session.rows(
                f"{head}{self._drawn('n', step)} RETURN {reader.expressions('n')} ORDER BY offset(id(n))",
                condition.parameters,
            )
            nodes = [reader.in_cypher(reader.node(row)) for row in rows]
            times = n / len(nodes) if nodes else 1.0
            builder.observe_nodes(nodes, times=max(1, round(times)))
            if step > 1 and table.native and sum(map(self._size, self.catalog.nodes)) <= self.counted:
                for borne, m in self.session.rows(f"{head} RETURN n.labels, count(*)", condition.parameters):
                    labels.update(dict.fromkeys(reader.labels(borne), m))
                continue
            if step > 1 and table.native and not self._second_labels:
                several = f"{head} AND size(n.labels) > 1 RETURN 1 LIMIT 1"
                self._second_labels = bool(self.session.rows(several, condition.parameters))
            found = Counter(label for node in nodes for label in dict.fromkeys(node.labels))
            if not nodes and table.label:
                found[table.label] = n
            labels.update({label: round(m * times) for label, m in found.items()})

    def _drawn(self, variable: str, step: int) -> str:
        """The condition that draws one of so many nodes."""
        if step <= 1:
            return ""
        self.cut = True
        return f" AND {drawn(variable, step)}"

    def _estimated(self) -> Counter[Triple]:
        """Count the edges of some of the sources."""
        leaving: dict[str, dict[Triple, RelationTable]] = {}
        for relation in self.catalog.relations.values():
            for source, target in relation.pairs:
                leaving.setdefault(source, {})[source, relation.name, target] = relation
        found: Counter[Triple] = Counter()
        unseen: list[tuple[Triple, RelationTable]] = []
        for source, pairs in leaving.items():
            step = max(1, self._size(source) // self._share(len(leaving)))
            for triple, m in self._leaving(source, pairs, self._drawn("a", step)):
                found[triple] += m * step
            unseen += [item for item in pairs.items() if step > 1 and item[0] not in found]
        for triple, relation in unseen[:_LOOKED_UP]:
            found[triple] = self._count(triple[0], relation, triple[2])
        self._missed = {relation.name for _, relation in unseen[_LOOKED_UP:]}
        return found

    def _leaving(self, source: str, pairs: Iterable[Triple], drawn: str) -> Iterator[tuple[Triple, int]]:
        """How many edges of each kind leave the drawn nodes of a table."""
        relations = "|".join(quoted(name) for name in dict.fromkeys(name for _, name, _ in pairs))
        (near,) = self._conditions([source], "a")
        for far in self._conditions(sorted({target for _, _, target in pairs}), "b"):
            rows = self.session.rows(  # optional: see Reader._around
                f"MATCH (a:{quoted(source)}) WHERE {near.text}{drawn} "
                f"OPTIONAL MATCH (a)-[r:{relations}]->({far.group.pattern('b')}) WHERE {far.text} "
                "WITH r, b WHERE r IS NOT NULL RETURN label(r), label(b), count(*)",
                {**near.parameters, **far.parameters},
            )
            yield from (((source, relation, target), n) for relation, target, n in rows)

    def _observe_edges(self, builder: SchemaBuilder, relation: RelationTable, triples: Counter[Triple]) -> None:
        counts = {(s, t): triples[s, relation.name, t] for s, t in relation.pairs}
        there = sorted((pair for pair, n in counts.items() if n), key=lambda pair: (-counts[pair], pair))
        in_part = len(there) > _PAIRS or relation.name in self._missed
        reader = EdgeReader([relation])
        for source, target in there[:_PAIRS]:
            n, share = counts[source, target], self._share(len(self.catalog.relations)) // min(_PAIRS, len(there))
            step = min(n // share, self._size(source) // _LEAST)
            text, parameters = self.between(source, target)
            rows = self.session.rows(
                f"MATCH (a:{quoted(source)})-[{reader.pattern('r')}]->(b:{quoted(target)}){text}"
                f"{self._drawn('a', step)} RETURN {reader.expressions('r')} "
                f"ORDER BY offset(id(r)) LIMIT {2 * share}",
                parameters,
            )
            edges = [reader.in_cypher(reader.edge("", "", row)) for row in rows]
            in_part |= step > 1 or not n <= len(edges) < 2 * share
            builder.observe_edges(edges, times=max(1, round(n / len(edges))) if edges else 1)
        if in_part and there:
            self._relations_in_part.add(relation.relation)


def drawn(variable: str, step: int) -> str:
    """Return the condition that draws one of so many nodes, by a hash of their places."""
    return f"(offset(id({variable})) * {_SPREAD} + {_WHOLE // 2}) % {_WHOLE} < {_WHOLE // step}"
