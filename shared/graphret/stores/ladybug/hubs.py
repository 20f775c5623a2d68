"""The edges around nodes, of hubs no more than a limit asks for, in a number of statements that does not grow."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphret.stores.ladybug.catalog import NodeTable
from graphret.stores.ladybug.engine import Session
from graphret.stores.ladybug.keys import key_expression, keys_of, match_by_key
from graphret.stores.ladybug.records import (
    EdgeReader,
    end_text,
    id_expression,
    node_id,
)
from graphret.stores.ladybug.sampling import Condition, drawn

#: A hub has so many edges more than the limit: to hold them back takes as long as to read them.
WORTH_A_QUERY = 200

#: Of the nodes at the far ends, one of so many is drawn to find where a hub's edges may be cut.
_DRAWN = 16

#: No node has so many edges.
_UNLIMITED = 2**40

Row = list[Any]


@dataclass(frozen=True, slots=True)
class Around:
    """Reads the edges ``r`` between nodes ``n`` of a table and nodes ``m`` that satisfy a condition.

    The match of the edges is optional only in form: it makes the database start from the nodes, where otherwise it
    goes through every edge of the table.

    Parameters
    ----------
    table
        That of the anchors.
    reader
        Of the edges.
    condition
        On ``m``.
    direction
        ``out`` or ``in``.
    """

    session: Session
    table: NodeTable
    reader: EdgeReader
    condition: Condition
    direction: str

    def rows(self, keys: Sequence[Any], limit: int | None) -> Iterator[Row]:
        """Go through the edges of nodes; of a hub, those that come first and some more, some of them twice.

        The edges of a node are ordered by weight, the heaviest first, then by the id at the far end; those that a
        limit leaves are among the rows.
        """
        text = end_text(self.condition.group.first)
        if limit is None or limit >= _UNLIMITED or text is None:
            yield from self._edges({"i": keys})
            return
        most = limit + WORTH_A_QUERY
        if len(keys) == 1:
            rows = self._edges({"i": keys}, tail=f" LIMIT {most + 1}")
            if len(rows) <= most:
                yield from rows
                return
        others, floors, ties = self._cuts(keys, limit, most)
        if others:
            yield from self._edges({"i": others})
        yield from self._heavy(floors)
        yield from self._tied(ties, text, limit)

    def _cuts(self, keys: Sequence[Any], limit: int, most: int) -> tuple[list[Any], dict[Any, float], dict[Any, float]]:
        """Cut the edges of hubs by weight.

        Returns
        -------
        tuple
            The anchors that are no hubs; for hubs, the weight down to which all edges are read; and for those of which
            very many edges weigh as much as the last one in the limit, that weight.
        """
        rows = self._rows(
            {"i": keys},
            f"WITH {key_expression(self.table, 'n')} AS i, list_sort(collect({self.reader.weight}), 'DESC') AS w "
            f"RETURN i, size(w), w[1:1], w[{limit}:{limit}], w[{most}:{most}]",
        )
        others: list[Any] = []
        floors: dict[Any, float] = {}
        ties: dict[Any, float] = {}
        for key, n, first, cut, after in rows:
            if n <= most:
                others.append(key)
            elif after != cut:
                floors[key] = cut[0]
            else:
                ties[key] = cut[0]
                if first != cut:
                    floors[key] = math.nextafter(cut[0], math.inf)
        return others, floors, ties

    def _heavy(self, floors: Mapping[Any, float]) -> list[Row]:
        """The edges that weigh no less than what is given for each anchor."""
        if not floors:
            return []
        weight, given = self.reader.weight, {"i": [*floors], "floor_of": [*floors.values()]}
        return self._edges(given, f"{weight} >= $lowest AND {weight} >= floor_of", {"lowest": min(floors.values())})

    def _tied(self, ties: Mapping[Any, float], text: str, limit: int) -> Iterator[Row]:
        """The edges of one weight for each anchor that come first by the id at the far end: at least `limit`.

        To read the ids of all far ends takes ten times as long as the rest. So first some of them are drawn, such that
        the limit lies before the chosen one, but for one hub in 100,000, and for hubs with few far ends; for these
        all are read.
        """
        expected = limit / _DRAWN
        places = {_DRAWN: math.ceil(expected + 4 * math.sqrt(expected)) + 2, 1: limit}
        for step, place in places.items():
            last = self._last(ties, text, step, place)
            if last:
                given = {"i": [*last], "tie": [ties[key] for key in last], "last": [*last.values()]}
                where = f"{self.reader.weight} = tie AND {text} <= $highest AND {text} <= last"
                rows = self._edges(given, where, {"highest": max(last.values())})
                yield from rows
                found = Counter(node_id(row[0]) for row in rows)
                enough = {*keys_of(self.table, [own for own, n in found.items() if n >= limit])}
                ties = {key: weight for key, weight in ties.items() if key not in enough}
        yield from self._heavy(ties)

    def _last(self, ties: Mapping[Any, float], text: str, step: int, place: int) -> dict[Any, str]:
        """The id in a place among those of the drawn far ends, for each anchor with so many."""
        if not ties:
            return {}
        rows = self._rows(
            {"i": [*ties], "tie": [*ties.values()]},
            f"WITH {key_expression(self.table, 'n')} AS i, list_sort(collect(DISTINCT {text})) AS far "
            f"WHERE size(far) >= {place} RETURN i, far[{place}]",
            f"{self.reader.weight} = tie" + (f" AND {drawn('m', step)}" if step > 1 else ""),
        )
        return dict(rows)

    def _edges(
        self,
        given: Mapping[str, Sequence[Any]],
        where: str = "",
        parameters: Mapping[str, Any] | None = None,
        tail: str = "",
    ) -> list[Row]:
        """Run a statement that returns edges, each with its anchor's id and that of its other end before it."""
        ends = f"{id_expression(self.table, 'n')}, {id_expression(self.condition.group.first, 'm')}"
        of_edge = ", ".join(part for part in (ends, self.reader.expressions("r"), self.reader.place("r")) if part)
        return self._rows(given, f"RETURN {of_edge}{tail}", where, parameters)

    def _rows(
        self,
        given: Mapping[str, Sequence[Any]],
        returned: str,
        where: str = "",
        parameters: Mapping[str, Any] | None = None,
    ) -> list[Row]:
        """Run a statement on the edges of anchors.

        Parameters
        ----------
        given
            What there is for each anchor: its key, ``i``, and what else `where` compares with.
        """
        pattern = f"[{self.reader.pattern('r')}]"
        arrow = f"-{pattern}->" if self.direction == "out" else f"<-{pattern}-"
        conditions = [where] if where else []
        if self.condition.text != "true":  # as one case, or the database may decide its parts for every node `m`
            conditions.append(f"CASE WHEN {self.condition.text} THEN true ELSE false END")
        head = "UNWIND $i AS i "
        if len(given) > 1:
            of_place = ", ".join(f"${name}[place] AS {name}" for name in given)
            head = f"UNWIND range(1, size($i)) AS place WITH {of_place} "
        return self.session.rows(
            f"{head}{match_by_key(self.table)} OPTIONAL MATCH (n){arrow}({self.condition.group.pattern('m')}) "
            + (f"WHERE {' AND '.join(conditions)} " if conditions else "")
            + f"WITH n, r, m WHERE r IS NOT NULL {returned}",
            {**given, **self.condition.parameters, **(parameters or {})},
        )
