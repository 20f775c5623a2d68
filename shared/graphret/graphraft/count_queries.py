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
    singles = [(length,) for length in range(1, max(map(max, task.templates)) + 1)]
    for template in [*singles, *(one for one in task.templates if len(one) > 1)]:
        try:
            counts = queries.counts(template, timeout)
        except GraphretError as error:
            trace.note("fallback", failed=f"paths {template}", error=f"{type(error).__name__}: {error}")
            continue
        if template in task.templates:
            yield from counts


class _Queries:
    """Queries of templates: in each branch a hop has one direction, and a walk's key begins with its entity's place."""

    def __init__(self, store: CypherStore, schema: GraphSchema, task: Task) -> None:
        self.store, self.task = store, task
        self.relations = {name: relation for relation, name in schema.cypher_relations.items()}
        ladybug = store.dialect == "ladybug"
        self.labels_of, self.type_of = ("{}.labels", "label(r)") if ladybug else ("labels({})", "type(r)")
        self.key = "string(b.key)" if ladybug else "b.key"  # Ladybug does not know the types of what is in a parameter
        if any("" in (hop.start, hop.label) for path in task.paths for hop in path):
            self.labels_of += " + ['']"
        places = sorted({one.place for one in task.entities})
        keys = [f"{places.index(one.place):03}{number}" for number, one in enumerate(task.entities)]
        both = list(zip(keys, task.entities, strict=True))
        self.parameters: dict[str, Any] = {
            "begins": [{"id": node_id, "key": key} for key, entity in both for node_id in entity.nodes],
            "followed": [f"{key}{_SEP}{label}" for key, entity in both for label in entity.labels],
            "named": task.named,
            "answers": sorted(task.answers),
        }

    def counts(self, template: Sequence[int], timeout: float | None) -> list[Count]:
        """Ask the database; walks of a single one that are short enough are those that later ones follow."""
        ways = product(*(product((True, False), repeat=length) for length in template))
        query, found = "\nUNION ALL\n".join(map(self._branch, ways)), []
        for *keys, size, hits in self.store.query(query, self.parameters, timeout=timeout).rows:
            walks = tuple(map(self._walk, keys))
            if all(walk.path in self.task.paths for walk in walks):
                found.append(Count(walks, size, hits))
                if len(keys) == 1 and size <= self.task.hub:
                    self.parameters["followed"].append(keys[0])
        return found

    def _walk(self, key: str) -> Walk:
        entity, label, *parts = key.split(_SEP)
        walk = Walk(int(entity[3:]), label)
        for arrow, relation, end in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            walk = walk.on(self.relations.get(relation, relation), arrow == ">", end)
        return walk

    def _branch(self, ways: Sequence[Sequence[bool]]) -> str:
        """Walks of which each hop is followed in a given direction, and how many nodes they meet in."""
        clauses, walks, ends = list[str](), list[str](), list[str]()
        for number, way in enumerate(ways, 1):
            at, walk = f"s{number}", f"k{number}"
            begin = [f"{self.store.id_in_cypher(at)} = b.id"]
            for other, before in zip(walks, ways, strict=False):
                begin.append(f"left({self.key}, 3) {'>' if len(before) == len(way) else '<>'} left({other}, 3)")
            clauses.append(f"UNWIND $begins AS b MATCH {self._node(at)} WHERE {' AND '.join(begin)}")
            clauses.append(f"UNWIND {self.labels_of.format(at)} AS m")
            key = f"{self.key} + '{_SEP}' + m AS {walk}"
            clauses.append(f"WITH DISTINCT {', '.join([*walks, *ends, key, at])} WHERE {walk} IN $followed")
            for nth, outgoing in enumerate(way, 1):
                last = nth == len(way)
                to, label = ("t", "l") if last else (f"x{number}_{nth}", "m")
                step = f"MATCH ({at})-[r]->" if outgoing else f"MATCH ({at})<-[r]-"
                if last and ends:
                    clauses.append(f"{step}({to})")
                else:
                    clauses.append(f"{step}{self._node(to)} WHERE NOT {self.store.id_in_cypher(to)} IN $named")
                    clauses.append(f"UNWIND {self.labels_of.format(to)} AS {label}")
                arrow = ">" if outgoing else "<"
                key = f"{walk} + '{_SEP}{arrow}{_SEP}' + {self.type_of} + '{_SEP}' + {label} AS {walk}"
                carried = [*walks, key, *(["t", "l"] if last else [*ends, to])]
                clauses.append(f"WITH DISTINCT {', '.join(carried)}{'' if last else f' WHERE {walk} IN $followed'}")
                at = to
            walks, ends = [*walks, walk], ["t", "l"]
        node_id = self.store.id_in_cypher("t")
        hit = f"CASE WHEN {node_id} IN $answers THEN {node_id} ELSE null END"
        size = f"count(DISTINCT {node_id}) AS size, count(DISTINCT {hit}) AS hits"
        return "\n".join([*clauses, f"RETURN {', '.join(walks)}, {size}"])

    def _node(self, variable: str) -> str:
        pattern, _, parameters = self.store.node_in_cypher(variable)
        self.parameters |= parameters
        return pattern
