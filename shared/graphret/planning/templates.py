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
        directions = product(
            *(product((True, False), repeat=length) for length in template)
        )
        self.text = "\nUNION ALL\n".join(map(self._branch, directions))

    def _branch(self, directions: Sequence[Sequence[bool]]) -> str:
        """Count where walks meet, each hop followed in a given direction."""
        clauses = list[str]()
        earlier = list[str]()  # the key and place of each walk so far
        for number, outgoing in enumerate(directions, 1):
            meeting = ["t", "l"] if earlier else []
            clauses += self._begin(number, directions, [*earlier, *meeting])
            clauses += self._hops(number, outgoing, earlier)
            earlier += [f"k{number}", f"p{number}"]
        node_id = self._store.id_in_cypher("t")
        hit = f"CASE WHEN {node_id} IN $answers THEN {node_id} ELSE null END"
        counts = f"count(DISTINCT {node_id}) AS size, count(DISTINCT {hit}) AS hits"
        return "\n".join([*clauses, f"RETURN {', '.join(earlier[::2])}, {counts}"])

    def _begin(
        self, number: int, directions: Sequence[Sequence[bool]], carried: list[str]
    ) -> list[str]:
        """Write where a walk begins: not where an earlier one does."""
        start, key, place = f"s{number}", f"k{number}", f"p{number}"
        begin_key, begin_place = (
            self._text.format(column) for column in ("b.key", "b.place")
        )
        *earlier, outgoing = directions[:number]
        conditions = [f"{self._store.id_in_cypher(start)} = b.id"]
        for i, other in enumerate(earlier, 1):
            order = ">" if len(other) == len(outgoing) else "<>"
            conditions.append(f"{begin_place} {order} p{i}")
        columns = [
            *carried,
            f"{begin_key} + '{SEPARATOR}' + m AS {key}",
            f"{begin_place} AS {place}",
            start,
        ]
        return [
            f"UNWIND $begins AS b MATCH {self._node(start)} WHERE"
            f" {' AND '.join(conditions)}",
            f"UNWIND {self._labels_of.format(start)} AS m",
            f"WITH DISTINCT {', '.join(columns)} WHERE {key} IN $followed",
        ]

    def _hops(
        self, number: int, outgoing: Sequence[bool], earlier: list[str]
    ) -> list[str]:
        """Write the hops of a walk, the last to ``t``, where it meets the earlier."""
        clauses = list[str]()
        key, place, source = f"k{number}", f"p{number}", f"s{number}"
        for hop, is_outgoing in enumerate(outgoing, 1):
            is_last = hop == len(outgoing)
            target, label = ("t", "l") if is_last else (f"x{number}_{hop}", "m")
            relation = "-[r]->" if is_outgoing else "<-[r]-"
            if is_last and earlier:
                clauses.append(f"MATCH ({source}){relation}({target})")
            else:
                clauses += [
                    f"MATCH ({source}){relation}{self._node(target)} WHERE NOT"
                    f" {self._store.id_in_cypher(target)} IN $named",
                    f"UNWIND {self._labels_of.format(target)} AS {label}",
                ]
            arrow = ">" if is_outgoing else "<"
            longer_key = (
                f"{key} + '{SEPARATOR}{arrow}{SEPARATOR}' + {self._type_of} +"
                f" '{SEPARATOR}' + {label} AS {key}"
            )
            meeting = ["t", "l"] if is_last or earlier else []
            ends = meeting if is_last else [*meeting, target]
            condition = "" if is_last else f" WHERE {key} IN $followed"
            columns = ", ".join([*earlier, longer_key, place, *ends])
            clauses.append(f"WITH DISTINCT {columns}{condition}")
            source = target
        return clauses

    def _node(self, variable: str) -> str:
        pattern, _, parameters = self._store.node_in_cypher(variable)
        self.parameters |= parameters
        return pattern
