"""What to do next, from what has been seen: find the names in the question, follow a plan from each, select its ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphret.ark.scripted.plan import Plan, plans
from graphret.ark.scripted.question import readings
from graphret.ark.scripted.schema import Hop, Known
from graphret.ark.scripted.spans import spans
from graphret.ark.scripted.transcript import EXPLORE, FINISH, SEARCH, SELECT, Exploration, Transcript
from graphret.linking.names import NameBook
from graphret.linking.spotting import spot

#: Nodes asked for of the question as a whole, of a part of it, and of a neighbourhood.
QUESTION_K, SPAN_K, NEIGHBORS_K = 20, 10, 100
#: Bearers of one name that are looked at, and names of one question.
BEARERS, NAMES = 4, 4
#: Nodes looked at whole to learn what relations they have, in the first and the second turn that is spent on it.
PROBES = (3, 12)
#: Explorations in one turn and in all, and nodes selected.
TURN, EXPLORATIONS, SELECTED = 64, 160, 100

_INEXACT = 0.2  # what it costs that a name is spelled otherwise in the question

Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Start:
    """A node that the question may name: where it does so, and whether letter for letter."""

    node: str
    start: int
    end: int
    exact: bool


@dataclass(slots=True)
class Walk:
    """How far a plan has been followed: the ends so far with their numbers of paths, and what is to be explored."""

    ends: dict[str, int] = field(default_factory=dict)
    wanted: list[Call] = field(default_factory=list)


def next_calls(seen: Transcript) -> list[Call]:
    """Return the calls to make now, several where they do not depend on one another; none when all is done."""
    if seen.finished or not seen.question.strip():
        return [] if seen.finished else [(FINISH, {})]
    if not seen.searches:
        return _searches(seen.question)
    starts = _starts(seen)
    if calls := _first_looks(seen, starts):
        return calls
    walks = _walks(seen, starts)
    room = min(TURN, EXPLORATIONS - len(seen.explorations))
    wanted = list({repr(call): call for walk in walks for call in walk.wanted}.values())
    if wanted and room > 0:
        return wanted[:room]
    chosen = _ranked(seen, walks)[:SELECTED]
    return ([(SELECT, {"nodes": chosen})] if chosen else []) + [(FINISH, {})]


def _searches(question: str) -> list[Call]:
    asked = question[:2000]
    return [
        (SEARCH, {"query": asked, "k": QUESTION_K}),
        *((SEARCH, {"query": part, "k": SPAN_K}) for part in spans(asked)),
    ]


def _starts(seen: Transcript) -> list[Start]:
    """The nodes that the question names, of those that searches and explorations have shown."""
    called = {node.id: node.name for search in seen.searches for node in search.nodes}
    called |= {one.node: one.node for one in seen.explorations if one.node not in called}
    book = NameBook((node, name, None) for node, name in called.items())
    found = []
    for one in spot(seen.question, book):
        starts = [Start(node, one.start, one.end, called[node] == one.text) for node in one.ids]
        found.append(sorted(starts, key=lambda start: not start.exact)[:BEARERS])
    found.sort(key=lambda starts: starts[0].start - starts[0].end)
    return [start for starts in found[:NAMES] for start in starts]


def _first_looks(seen: Transcript, starts: Sequence[Start]) -> list[Call]:
    """Look around the nodes that the question names; where a search showed none, try what stands in capitals as ids."""
    wanted = [start.node for start in starts]
    if not starts and not seen.tried:
        wanted = [part for part in spans(seen.question) if not part.islower()]
    return [(EXPLORE, {"node": node, "k": NEIGHBORS_K}) for node in wanted if node not in seen.tried]


def _walks(seen: Transcript, starts: Sequence[Start]) -> list[Walk]:
    """Follow the best plan from each name in the question, from that of its bearers which fits best."""
    known = Known(seen.explorations)
    around = _by_node(seen.explorations)
    options: dict[tuple[int, int], list[tuple[float, Start, Plan]]] = {}
    for start in starts:
        looks = around.get(start.node)
        if not looks:
            continue
        first = sorted({Hop(relation, outgoing) for one in looks for relation, outgoing, _, _ in one.relations})
        read = readings(seen.question, start.start, start.end)
        inexact = 0.0 if start.exact else _INEXACT
        options.setdefault((start.start, start.end), []).extend(
            (plan.cost + inexact, start, plan) for plan in plans(read, looks[0].types, first, known)
        )
    walks = []
    for ranked in options.values():
        for _, start, plan in sorted(ranked, key=lambda option: option[0]):
            if (walk := _walk(start.node, plan, around)) is not None:
                walks.append(walk)
                break
    return walks


def _by_node(explorations: Iterable[Exploration]) -> dict[str, list[Exploration]]:
    out: dict[str, list[Exploration]] = {}
    for one in explorations:
        out.setdefault(one.node, []).append(one)
    return out


def _walk(start: str, plan: Plan, around: Mapping[str, Sequence[Exploration]]) -> Walk | None:
    """Follow a plan as far as is seen; `None` where it leads nowhere, or all at its open end has been looked at."""
    frontier: dict[str, int] = {start: 1}
    for hop in plan.hops:
        wanted = []
        reached: Counter[str] = Counter()
        for node, paths in frontier.items():
            ends, missing = _follow(node, hop, around.get(node, ()))
            if missing:
                wanted.append((EXPLORE, {"node": node, "relation_types": [_arrow(hop)], "k": NEIGHBORS_K}))
            for end in ends:
                if end != start:
                    reached[end] += paths
        if wanted:
            return Walk(wanted=wanted)
        frontier = dict(reached)
    if plan.open:
        wanted = _probes(frontier, around)
        return Walk(wanted=wanted) if wanted else None
    return Walk(ends=frontier) if frontier else None


def _probes(frontier: Mapping[str, int], around: Mapping[str, Sequence[Exploration]]) -> list[Call]:
    """Look at nodes whole, to learn what relations they have: a few, then more, then all."""
    fresh = [node for node in frontier if all(one.asked is not None for one in around.get(node, ()))]
    size = next((size for size in PROBES if len(frontier) - len(fresh) < size), TURN)
    return [(EXPLORE, {"node": node, "k": NEIGHBORS_K}) for node in fresh[:size]]


def _follow(node: str, hop: Hop, looks: Sequence[Exploration]) -> tuple[list[str], bool]:
    """The nodes that a hop leads to from a node as far as seen, and whether there is more to be asked for."""
    step = (hop.relation, hop.outgoing)
    ends: dict[str, None] = {}
    for one in looks:
        ends.update((other.id, None) for other in one.neighbors if step in other.via)
    if any(one.asked == frozenset([_arrow(hop)]) for one in looks):
        return list(ends), False
    whole = [one for one in looks if one.asked is None]
    there = sum(count for one in whole[:1] for relation, outgoing, _, count in one.relations if (relation, outgoing) == step)
    return list(ends), not whole or len(ends) < min(there, NEIGHBORS_K)


def _arrow(hop: Hop) -> str:
    return f"-[{hop.relation}]->" if hop.outgoing else f"<-[{hop.relation}]-"


def _ranked(seen: Transcript, walks: Sequence[Walk]) -> list[str]:
    """The ends that most names lead to first, then by paths; without any, what the searches found, taken in turns."""
    names: Counter[str] = Counter()
    paths: Counter[str] = Counter()
    for walk in walks:
        for end, count in walk.ends.items():
            names[end] += 1
            paths[end] += count
    if names:
        return sorted(names, key=lambda end: (-names[end], -paths[end]))
    scores: Counter[str] = Counter()
    for search in seen.searches:
        for rank, node in enumerate(search.nodes):
            scores[node.id] += 1 / (60 + rank)
    return [node for node, _ in scores.most_common(QUESTION_K)]
