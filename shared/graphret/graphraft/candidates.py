"""`Candidate`: a query that exists around the entities of a question, as a plan that runs and as text to write."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from graphret.planning import Bindings, GraphPlan, Hop

#: Characters of a name in a pattern.
NAME = 100


@dataclass(frozen=True)
class Candidate:
    """A query that finds something in the graph (GraphRAFT, section 4.1).

    Parameters
    ----------
    plan
        What runs; names are among its parameters and never in a query.
    bindings
        Of each anchor the nodes that it stands for, with the score of each.
    text
        The pattern that a writer writes: ``(a1:Disease {name: "x"})-[:INDICATION]-(T:Drug)``.
    size
        How many nodes it finds.
    hits
        How many of them are among given answers; `None` where none are given.
    """

    plan: GraphPlan
    bindings: Bindings
    text: str
    size: int
    hits: int | None = None

    @property
    def query(self) -> str:
        """The pattern as a query for people and models to read; what runs is the plan."""
        return f"MATCH {self.text} RETURN {self.plan.target.var}.name AS name"


@runtime_checkable
class QueryWriter(Protocol):
    """Ranks the candidates of a question, by writing them with a model or in another way."""

    name: str

    def rank(self, question: str, candidates: Sequence[Candidate], most: int) -> list[tuple[int, float]]:
        """Return the places of the best candidates, at most so many, with the probability of each, the best first."""
        ...


def shown(name: str) -> str:
    """Return a name as patterns have it: one that is very long is cut."""
    return name if len(name) <= NAME else f"{name[:NAME]}…"


def pattern_of(walks: Sequence[tuple[str, Sequence[Hop]]], hops: Collection[Hop]) -> str:
    """Return paths from named nodes that meet in one target as a pattern of Cypher, as figure 2 of the paper has it.

    A name is a string of JSON, so that nothing in it ends it. A direction is written where `hops`, those of the graph,
    have the relation both ways between the two labels.

    Examples
    --------
    >>> pattern_of([('the "x"', [Hop("TREATS", False, "Disease", "Drug")])], [])
    '(a1:Disease {name: "the \\\\"x\\\\""})-[:TREATS]-(T:Drug)'
    """
    parts = []
    for number, (name, path) in enumerate(walks, 1):
        begin = f"({_labelled(f'a{number}', path[0].start)} {{name: {json.dumps(shown(name), ensure_ascii=False)}}})"
        between = [f"({_labelled(f'x{number}_{place}', hop.label)})" for place, hop in enumerate(path[:-1], 1)]
        end = f"({_labelled('T', path[-1].label)})" if number == 1 else "(T)" if number > 2 else ""
        nodes, steps = [begin, *between, end], [_step(hop, hops) for hop in path]
        if number > 1:  # from the target on
            nodes, steps = nodes[::-1], [_step(hop.back, hops) for hop in reversed(path)]
        chain = nodes[0] + "".join(step + node for step, node in zip(steps, nodes[1:], strict=True))
        parts.append(f", {chain}" if number > 2 else chain)
    return "".join(parts)


def _labelled(var: str, label: str) -> str:
    return f"{var}:{_quoted(label)}" if label else var


def _step(hop: Hop, hops: Collection[Hop]) -> str:
    both = replace(hop, outgoing=not hop.outgoing) in hops
    return (
        f"{'<' if both and not hop.outgoing else ''}-[:{_quoted(hop.relation)}]-{'>' if both and hop.outgoing else ''}"
    )


def _quoted(name: str) -> str:
    return name if name.isidentifier() else f"`{name.replace('`', '``')}`"
