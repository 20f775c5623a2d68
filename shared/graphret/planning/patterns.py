"""Paths from named nodes as patterns of Cypher, to be read and written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

_STRING = re.compile(r'("(?:[^"\\]|\\.)*")')
_VARIABLE = re.compile(r"([(\[])\w+(?=:)")


class Hop(NamedTuple):
    """A relation followed in one direction between nodes of two labels."""

    relation: str
    outgoing: bool
    start: str = ""
    label: str = ""

    @property
    def back(self) -> Hop:
        """The same relation the other way."""
        return Hop(self.relation, not self.outgoing, self.label, self.start)

    def __str__(self) -> str:
        return f"–{self.relation}→" if self.outgoing else f"←{self.relation}–"


def pattern_of(
    walks: Sequence[tuple[str, Sequence[Hop]]],
    hops: Collection[Hop],
    name_condition: Callable[[str, str], str] | None = None,
) -> str:
    """Return paths that meet in one target as a Cypher pattern (figure 2 of the paper).

    A name is a string of JSON, so that nothing in it ends it. A direction is written
    where `hops`, those of the graph, have the relation both ways between the two
    labels. `name_condition` writes which property has a name, given the label and the
    name; ``name: "…"`` by default.

    Examples
    --------
    >>> pattern_of([('the "x"', [Hop("TREATS", False, "Disease", "Drug")])], [])
    '(a1:Disease {name: "the \\\\"x\\\\""})-[:TREATS]-(T:Drug)'
    """
    parts = []
    for number, (name, path) in enumerate(walks, 1):
        start = path[0].start
        quoted = f"name: {json.dumps(name, ensure_ascii=False)}"
        condition = quoted if name_condition is None else name_condition(start, name)
        nodes = [f"({_labelled(f'a{number}', start)} {{{condition}}})"]
        nodes += [
            f"({_labelled(f'x{number}_{place}', hop.label)})"
            for place, hop in enumerate(path[:-1], 1)
        ]
        nodes.append(
            f"({_labelled('T', path[-1].label)})"
            if number == 1
            else "(T)"
            if number > 2
            else ""
        )
        two_way = [
            Hop(hop.relation, not hop.outgoing, hop.start, hop.label) in hops
            for hop in path
        ]
        steps = [
            _step(hop if number == 1 else hop.back, way)
            for hop, way in zip(path, two_way, strict=True)
        ]
        if number > 1:  # from the target on
            nodes, steps = nodes[::-1], steps[::-1]
        chain = "".join(map(str.__add__, nodes, [*steps, ""]))
        parts.append(f", {chain}" if number > 2 else chain)
    return "".join(parts)


@lru_cache(maxsize=4096)
def _labelled(var: str, label: str) -> str:
    return f"{var}:{cypher_name(label)}" if label else var


@lru_cache(maxsize=4096)
def _step(hop: Hop, two_way: bool) -> str:
    begin, end = (
        "<" if two_way and not hop.outgoing else "",
        ">" if two_way and hop.outgoing else "",
    )
    return f"{begin}-[:{cypher_name(hop.relation)}]-{end}"


def cypher_name(name: str) -> str:
    """Return a label, a relation or a property as a query writes it."""
    return name if name.isidentifier() else f"`{name.replace('`', '``')}`"


def bare_pattern(text: str) -> str:
    """Return a pattern, or a query's, with no variable but ``T`` for the target.

    This is what a model has to write.

    Examples
    --------
    >>> query = 'MATCH (x1:Drug {name: "a"})-[r1:TREATS]-(x2:Disease) RETURN x2.name'
    >>> bare_pattern(query)
    '(:Drug {name: "a"})-[:TREATS]-(T:Disease)'
    """
    pattern, _, target = text.removeprefix("MATCH ").rpartition(" RETURN ")
    pattern, target = (pattern, target.partition(".")[0]) if pattern else (target, "T")
    parts = _STRING.split(pattern)  # what is quoted is left as it is
    parts[::2] = [
        _VARIABLE.sub(
            lambda match: f"{match[1]}T" if match[0][1:] == target else match[1], part
        )
        for part in parts[::2]
    ]
    return "".join(parts)
