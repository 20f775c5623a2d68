"""What to do next: find the names in the question, follow a plan from each, select the ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphret.ark.definitions import EXPLORE, FINISH, SEARCH, SELECT
from graphret.ark.scripted.plan import plans
from graphret.ark.scripted.question import readings, unread
from graphret.ark.scripted.schema import Hop, Known
from graphret.ark.scripted.spans import spans
from graphret.ark.scripted.transcript import Exploration, Transcript
from graphret.ark.scripted.walk import NEIGHBORS_K, Call, Walk, follow
from graphret.ark.scripted.words import is_relational
from graphret.ark.settings import ArkSettings
from graphret.fusion import vote
from graphret.linking.names import NameBook
from graphret.linking.spotting import spot
from graphret.text import words

#: Nodes asked for of the question as a whole, and of a part of it.
QUESTION_K, SPAN_K = 20, 10
#: Characters of a question that are read: a thousand words.
QUESTION = 6_000
#: Bearers of one name that are looked at, and names of one question.
BEARERS, NAMES = 4, 4
#: Explorations in one turn (no more are run of a reply) and in all, nodes selected, and the last turn.
TURN, EXPLORATIONS, SELECTED, LAST_TURN = ArkSettings().max_calls, 160, 100, 18
#: Paths of one length that are looked at in one turn, from all names and under all readings.
PATHS = 480
#: What a plan that is followed may cost: more than one misfit, less than two.
WORST = 1.75
#: How much more than the best a plan may cost to fit about as well.
CLOSE = 0.3

_MISSPELLED = 0.2  # what it costs that a name is spelled otherwise in the question


@dataclass(frozen=True, slots=True)
class Start:
    """A node that the question may name: where it does so, and what it costs that it is spelled otherwise there."""

    node: str
    start: int
    end: int
    cost: float


def next_calls(seen: Transcript, choice: int = 0) -> list[Call]:
    """Return the calls to make now, several where they do not depend on one another; none when all is done.

    `choice` is the plan to follow of those that fit about as well, from 0.
    """
    if seen.finished:
        return []
    question = seen.question[:QUESTION]
    last = seen.turns >= LAST_TURN or seen.turns_left == 1
    if not question.strip():
        return [(FINISH, {})]
    if not seen.searches and not last:
        return _searches(question)
    starts = _starts(question, seen)
    if not last and (looks := _first_looks(seen, starts)):
        return looks
    around = by_node(seen.explorations)
    walks = _walks(question, seen, starts, around, choice)
    room = min(TURN, EXPLORATIONS - len(seen.explorations))
    calls = {repr(call): call for walk in walks for call in walk.wanted}
    wanted = [call for call in calls.values() if is_open(call, seen, around)]
    if wanted and room > 0 and not last:
        return wanted[:room]
    chosen = _ranked(seen, walks)
    return ([(SELECT, {"nodes": chosen})] if chosen else []) + [(FINISH, {})]


def _searches(question: str) -> list[Call]:
    whole: Call = (SEARCH, {"query": question[:2000], "k": QUESTION_K})
    return [whole, *((SEARCH, {"query": part[:2000], "k": SPAN_K}) for part in spans(question))]


def _starts(question: str, seen: Transcript) -> list[Start]:
    """The nodes that the question names, of those that tools have shown, the longest names first."""
    called = {node.id: node.name for search in seen.searches for node in search.nodes}
    called |= {one.node: one.node for one in seen.explorations if one.node not in called}
    book = NameBook((node, name, None) for node, name in called.items())
    found = []
    spots = spot(question, book)
    telling = [one for one in spots if one.score == 1 or not all(map(is_relational, words(one.text)))]
    for one in telling or spots:
        literal = {node: len(called[node]) for node in one.ids if _stands(called[node], question, one.start, one.end)}
        longest = max(literal.values(), default=0)
        starts = [
            # of "Up" and "Up!" that which leaves less of the question's spelling out
            Start(node, one.start, one.end, _MISSPELLED * (1 - (1 + literal[node] / longest) / 2))
            if node in literal
            else Start(node, one.start, one.end, _MISSPELLED)
            for node in one.ids
        ]
        found.append(sorted(starts, key=lambda start: start.cost)[:BEARERS])
    found.sort(key=lambda starts: starts[0].start - starts[0].end)
    return [start for starts in found[:NAMES] for start in starts]


def _stands(name: str, question: str, start: int, end: int) -> bool:
    """Whether a name stands in a question letter for letter, around a place of it."""
    at = question.find(name, max(0, start - len(name)))
    return 0 <= at <= start and end <= at + len(name)


def _first_looks(seen: Transcript, starts: Sequence[Start]) -> list[Call]:
    """Look around the nodes that the question names."""
    return [(EXPLORE, {"node": one.node, "k": NEIGHBORS_K}) for one in starts if one.node not in seen.tried]


def _walks(
    question: str, seen: Transcript, starts: Sequence[Start], around: Mapping[str, Sequence[Exploration]], choice: int
) -> list[Walk]:
    """Follow one of the plans that fit best from each name in the question, from its bearer that fits best."""
    known = Known(seen.explorations)
    options: dict[tuple[int, int], list[Any]] = {}
    places = {(start.start, start.end) for start in starts}
    for start in starts:
        if looks := around.get(start.node):
            others = frozenset(places - {(start.start, start.end)})
            edges: Counter[Hop] = Counter()  # of hops that fit as well, that which most edges allow
            for relation, outgoing, _, count in looks[0].relations:
                edges[Hop(relation, outgoing)] += count
            read = readings(question, start.start, start.end, others)
            room = PATHS // (len(starts) * len(read))
            made = plans(read, looks[0].types, tuple(sorted(edges)), known, most_paths=room, worst=WORST)
            options.setdefault((start.start, start.end), []).extend(
                (round(plan.cost + start.cost, 6), -edges[plan.hops[0]], start.node, plan) for plan in made
            )
    query = " ".join(unread(question, places, known))
    named = {start.node for start in starts}
    walks = []
    for ranked in options.values():
        fitting: list[Walk] = []
        best = WORST
        for cost, _, node, plan in sorted(ranked, key=lambda option: option[:2]):
            if len(fitting) > choice or (fitting and cost > best + CLOSE):
                break
            if (walk := follow(node, plan, around, named=named, query=query)) is not None:
                best = min(best, cost)
                fitting.append(walk)
        walks += fitting[-1:]
    return walks


def by_node(explorations: Iterable[Exploration]) -> Mapping[str, Sequence[Exploration]]:
    """Return the explorations of each node, in order."""
    out: dict[str, list[Exploration]] = {}
    for one in explorations:
        out.setdefault(one.node, []).append(one)
    return out


def is_open(call: Call, seen: Transcript, around: Mapping[str, Sequence[Exploration]]) -> bool:
    """Whether an exploration may still show something: not one of a node for which another has shown nothing."""
    node = call[1]["node"]
    return node not in seen.tried or node in around


def _ranked(seen: Transcript, walks: Sequence[Walk]) -> list[str]:
    """The ends that most names lead to first, then by paths; without any what searches found, each taken in turns."""
    names: Counter[str] = Counter()
    paths: Counter[str] = Counter()
    for walk in walks:
        for end, count in walk.ends.items():
            names[end] += 1
            paths[end] += count
    if names:
        return sorted(names, key=lambda end: (-names[end], -paths[end]))[:SELECTED]
    found = vote([[node.id for node in search.nodes] for search in seen.searches], "reciprocal")
    return [one.id for one in found[:QUESTION_K]]
