"""The same counts from a database: for each template one aggregating query (GraphRAFT, figure 1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from graphret.errors import GraphretError
from graphret.graphraft.counts import Count, Task, Walk
from graphret.schema import GraphSchema
from graphret.stores.base import CypherStore
from graphret.types import Trace

#: Separates the parts of a walk as queries return it: its entity, its first label, then arrow, relation and label.
_SEP = "\x1f"


def counts_in_database(
    store: CypherStore, schema: GraphSchema, task: Task, timeout: float | None, trace: Trace
) -> Iterator[Count]:
    """Count what walks find; a template whose query fails, or takes longer than `timeout` seconds, is left out.

    A query tells walks apart by the names of relations and labels that it returns, and is given those that are followed
    further. Nothing of a question or a name is in its text.
    """
    queries = _Queries(store, schema, task)
    longest = max(map(max, task.templates))
    singles = [(length,) for length in range(1, longest + 1)]
    for template in [*singles, *(one for one in task.templates if len(one) > 1)]:
        try:
            counts = list(queries.counts(template, timeout))
        except GraphretError as error:
            trace.note("fallback", failed=f"paths {template}", error=f"{type(error).__name__}: {error}")
            continue
        if template in task.templates:
            yield from counts


class _Queries:
    def __init__(self, store: CypherStore, schema: GraphSchema, task: Task) -> None:
        self.store, self.task = store, task
        self.relations = {name: relation for relation, name in schema.cypher_relations.items()}
        ladybug = store.dialect == "ladybug"
        self.labels_of, self.type_of = ("{}.labels", "label({})") if ladybug else ("labels({})", "type({})")
        self.text = "string({})" if ladybug else "{}"  # Ladybug does not know the types of what is in a parameter
        labels = {label for path in task.paths for hop in path for label in (hop.start, hop.label)}
        self.any = " + ['']" if "" in labels else ""
        places = sorted({one.place for one in task.entities})
        begins = [
            {"id": node_id, "key": str(number), "place": f"{places.index(entity.place):03}"}
            for number, entity in enumerate(task.entities)
            for node_id in entity.nodes
        ]
        roots = [f"{number}{_SEP}{label}" for number, entity in enumerate(task.entities) for label in entity.labels]
        self.parameters: dict[str, Any] = {"begins": begins, "followed": roots, "labels": sorted(labels)}
        self.parameters |= {"named": task.named, "answers": sorted(task.answers)}

    def counts(self, template: Sequence[int], timeout: float | None) -> Iterator[Count]:
        ways = product(*(product((True, False), repeat=length) for length in template))
        query = "\nUNION ALL\n".join(self._query(way) for way in ways)
        merged: dict[tuple[Walk, ...], Count] = {}
        for *keys, size, hits in self.store.query(query, self.parameters, timeout=timeout).rows:
            walks = tuple(self._walk(key) for key in keys)
            if all(walk.path in self.task.paths for walk in walks):
                merged[walks] = Count(walks, size, hits)
                if len(keys) == 1 and size <= self.task.hub:
                    self.parameters["followed"].append(keys[0])
        yield from merged.values()

    def _walk(self, key: str) -> Walk:
        entity, label, *parts = key.split(_SEP)
        walk = Walk(int(entity), label)
        for arrow, relation, end in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            walk = walk.on(self.relations.get(relation, relation), arrow == ">", end)
        return walk

    def _query(self, ways: Sequence[Sequence[bool]]) -> str:
        """One branch of a query: walks of which each hop is followed in a given direction, and how many nodes."""
        clauses, kept = list[str](), list[str]()
        own_key, own_place = self.text.format("b.key"), self.text.format("b.place")
        for number, way in enumerate(ways, 1):
            at, walk, place = f"s{number}", f"k{number}", f"p{number}"
            apart = [
                f"{own_place} {'>' if len(other) == len(way) else '<>'} p{i}"
                for i, other in enumerate(ways[: number - 1], 1)
            ]
            begin = " AND ".join([f"{self.store.id_in_cypher(at)} = b.id", *apart])
            clauses.append(f"UNWIND $begins AS b MATCH {self._node(at)} WHERE {begin} UNWIND {self._labels(at)} AS m")
            carried = ", ".join([*kept, f"{own_key} + '{_SEP}' + m AS {walk}", f"{own_place} AS {place}", at])
            clauses.append(f"WITH DISTINCT {carried} WHERE {walk} IN $followed")
            for nth, outgoing in enumerate(way, 1):
                last, met = nth == len(way), nth == len(way) and number > 1
                to = "t" if last else f"x{number}_{nth}"
                clauses.append(self._hop(at, to, outgoing, met) + ("" if met else f" UNWIND {self._labels(to)} AS m"))
                end = [self.type_of.format("r"), "l" if met else "m"]
                longer = f" + '{_SEP}' + ".join([f"{walk} + '{_SEP}{'>' if outgoing else '<'}'", *end])
                new = [] if met else [to, "m AS l"] if last else [to]
                fits = "" if met else " WHERE l IN $labels" if last else f" WHERE {walk} IN $followed"
                clauses.append(f"WITH DISTINCT {', '.join([*kept, f'{longer} AS {walk}', place, *new])}{fits}")
                at = to
            kept = [*(one for one in kept if one not in ("t", "l")), walk, place, "t", "l"]
        node_id = self.store.id_in_cypher("t")
        keys = ", ".join(f"k{number}" for number in range(1, len(ways) + 1))
        hit = f"CASE WHEN {node_id} IN $answers THEN {node_id} ELSE null END"
        clauses.append(f"RETURN {keys}, count(DISTINCT {node_id}) AS size, count(DISTINCT {hit}) AS hits")
        return "\n".join(clauses)

    def _hop(self, at: str, to: str, outgoing: bool, known: bool) -> str:
        left, right = ("-", "->") if outgoing else ("<-", "-")
        if known:
            return f"MATCH ({at}){left}[r]{right}({to})"
        return f"MATCH ({at}){left}[r]{right}{self._node(to)} WHERE NOT {self.store.id_in_cypher(to)} IN $named"

    def _node(self, variable: str) -> str:
        pattern, _, parameters = self.store.node_in_cypher(variable)
        self.parameters |= parameters
        return pattern

    def _labels(self, variable: str) -> str:
        return self.labels_of.format(variable) + self.any
