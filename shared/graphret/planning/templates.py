"""Templates of walks that meet, as one counting query each (GraphRAFT, figure 1)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from graphret.stores.base import CypherStore

#: Separates the parts of a walk's key: that of its begin, its first label, then arrow,
#: relation and label of each hop.
SEPARATOR = "\x1f"


class TemplateQuery:
    """A query that counts the nodes in which walks of all relations and labels meet.

    Its rows are a key for each walk, how many nodes they meet in, and how many of these
    are among ``$answers``. Walks begin at nodes of ``$begins``, each with an ``id``, a
    ``key`` and a ``place``, three strings; they meet from other places, those of one
    length in their order. ``$followed`` are the keys of those that go on, and nodes of
    ``$named`` are no part of one. Nothing of these is in its text.

    Parameters
    ----------
    template
        The lengths of the walks.
    untyped
        Whether a node also counts as one of no label.

    Attributes
    ----------
    text, parameters
        In the dialect of the store, and what it needs besides those above.
    """

    def __init__(
        self, store: CypherStore, template: Sequence[int], *, untyped: bool = False
    ) -> None:
        self._store, self.parameters = store, dict[str, Any]()
        ladybug = store.dialect == "ladybug"
        self._labels_of, self._type_of = (
            ("{}.labels", "label(r)") if ladybug else ("labels({})", "type(r)")
        )
        self._labels_of += " + ['']" if untyped else ""
        self._text = (
            "string({})" if ladybug else "{}"
        )  # it does not know the types of what is in a parameter
        ways = product(*(product((True, False), repeat=length) for length in template))
        self.text = "\nUNION ALL\n".join(map(self._branch, ways))

    def _branch(self, ways: Sequence[Sequence[bool]]) -> str:
        """Count where walks meet, each hop followed in a given direction."""
        clauses, before, target = list[str](), list[str](), list[str]()
        own_key, own_place = self._text.format("b.key"), self._text.format("b.place")
        for number, way in enumerate(ways, 1):
            at, walk, place = f"s{number}", f"k{number}", f"p{number}"
            begin = [f"{self._store.id_in_cypher(at)} = b.id"]
            for i, other in enumerate(ways[: number - 1], 1):
                begin.append(
                    f"{own_place} {'>' if len(other) == len(way) else '<>'} p{i}"
                )
            clauses.append(
                f"UNWIND $begins AS b MATCH {self._node(at)} WHERE"
                f" {' AND '.join(begin)}"
            )
            clauses.append(f"UNWIND {self._labels_of.format(at)} AS m")
            begun = [
                f"{own_key} + '{SEPARATOR}' + m AS {walk}",
                f"{own_place} AS {place}",
                at,
            ]
            clauses.append(
                f"WITH DISTINCT {', '.join([*before, *target, *begun])}"
                f" WHERE {walk} IN $followed"
            )
            for nth, outgoing in enumerate(way, 1):
                last = nth == len(way)
                to, label = ("t", "l") if last else (f"x{number}_{nth}", "m")
                step = f"MATCH ({at})-[r]->" if outgoing else f"MATCH ({at})<-[r]-"
                if last and target:
                    clauses.append(f"{step}({to})")
                else:
                    clauses.append(
                        f"{step}{self._node(to)} WHERE NOT"
                        f" {self._store.id_in_cypher(to)} IN $named"
                    )
                    clauses.append(f"UNWIND {self._labels_of.format(to)} AS {label}")
                arrow = ">" if outgoing else "<"
                key = (
                    f"{walk} + '{SEPARATOR}{arrow}{SEPARATOR}' + {self._type_of} +"
                    f" '{SEPARATOR}' + {label} AS {walk}"
                )
                carried = [
                    *before,
                    key,
                    place,
                    *(["t", "l"] if last else [*target, to]),
                ]
                condition = "" if last else f" WHERE {walk} IN $followed"
                clauses.append(f"WITH DISTINCT {', '.join(carried)}{condition}")
                at = to
            before, target = [*before, walk, place], ["t", "l"]
        node_id = self._store.id_in_cypher("t")
        hit = f"CASE WHEN {node_id} IN $answers THEN {node_id} ELSE null END"
        counts = f"count(DISTINCT {node_id}) AS size, count(DISTINCT {hit}) AS hits"
        return "\n".join([*clauses, f"RETURN {', '.join(before[::2])}, {counts}"])

    def _node(self, variable: str) -> str:
        pattern, _, parameters = self._store.node_in_cypher(variable)
        self.parameters |= parameters
        return pattern
