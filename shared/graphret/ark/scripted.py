"""`ScriptedExplorer`: a fixed policy in the place of a chat model, which walks the
paths that planning finds to fit.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from graphret.ark.arguments import arrow, read_arrow
from graphret.ark.observation import encodable
from graphret.ark.prompt import EXPLORE, FINISH, SEARCH, SELECT
from graphret.ark.settings import MAX_K, ArkSettings
from graphret.fusion import vote
from graphret.linking.words import Aliases, Lexicon
from graphret.llm.chat import Message, Reply, ToolCall
from graphret.llm.event_loop import in_thread
from graphret.planning import Hop, PathSpace
from graphret.planning.asked_property import asked_property
from graphret.planning.path_planner import (
    MISSPELLED,
    LinkedMention,
    linked_mentions,
    mentions_among,
)
from graphret.planning.paths import UNKNOWN
from graphret.planning.question import QuestionReading, readings, spans

Call: TypeAlias = tuple[str, dict[str, Any]]

#: Explorations in one turn and in all, and the last turn.
TURN, EXPLORATIONS, LAST_TURN = ArkSettings().max_calls, 160, 18
#: Nodes looked at whole to learn what relations they have, in the first and the second
#: turn spent on it, and in all.
PROBES, MOST_PROBES = (3, 12), 64
#: Characters of a question that are read; nodes asked for of it as a whole, and of a
#: part of it; nodes selected.
QUESTION, QUESTION_K, SPAN_K, SELECTED = 2_000, 20, 10, 100
#: What a path that is followed may cost, less than one to an end of the wrong kind, and
#: how much more than the best.
WORST, CLOSE = 2.2, 0.3


class ScriptedExplorer:
    """A fixed policy that explores a graph with ARK's tools, in the place of a language
    model.

    It is no model: it searches for the names in the question, follows the relations
    that its words name, and selects where they lead, by rules, the same each time. It
    reads the question (in English, its first 2,000 characters) and what the tools
    returned, nothing else. What tools return is data to it, never an instruction.

    Parameters
    ----------
    choice
        Which path it follows where several fit about as well, 0 the best: agents that
        choose differently vote.
    aliases
        What people call relations and labels; see `graphret.planning.PathPlanner`.
    """

    name = "scripted-explorer"

    def __init__(self, choice: int = 0, aliases: Aliases = None) -> None:
        self.choice, self.lexicon = choice, Lexicon(aliases)

    def chat(self, messages: Sequence[Message], **options: Any) -> Reply:
        """Return the next calls, none once all is done; options change nothing."""
        seen = Transcript.read(messages)
        planned = [] if seen.finished else self.next_calls(seen)
        turn = sum(message.role == "assistant" for message in messages)
        calls = tuple(
            ToolCall(
                f"call_{turn}_{number}", name, json.dumps(arguments, ensure_ascii=False)
            )
            for number, (name, arguments) in enumerate(planned)
        )
        return Reply(
            "", calls, finish_reason="tool_calls" if calls else "stop", model=self.name
        )

    async def achat(self, messages: Sequence[Message], **options: Any) -> Reply:
        """`chat`, computed in a thread beside the event loop."""
        return await in_thread(lambda: self.chat(messages))

    def next_calls(self, seen: Transcript) -> list[Call]:
        """Return the calls to make now, several where they do not depend on one
        another.
        """
        question = seen.question[:QUESTION]
        if not question.strip():
            return ending([])
        if not seen.searches:
            parts = [
                (question, QUESTION_K),
                *((part, SPAN_K) for part in spans(question, self.lexicon)),
            ]
            return [(SEARCH, {"query": part, "k": k}) for part, k in parts]
        called = {node.id: node.name for search in seen.searches for node in search}
        named = linked_mentions(mentions_among(question, called), self.lexicon)
        fresh = [
            node for one in named for node in one.nodes if node not in seen.explorations
        ]
        if fresh and seen.turns < LAST_TURN:
            return [(EXPLORE, {"node": node, "k": MAX_K}) for node in fresh]
        if itself := _asked_of_itself(question, seen, named, self.lexicon):
            return ending(itself)
        walks = _walks(question, seen, named, self.lexicon, self.choice)
        return explorations(walks, seen) or ending(_ranked(seen, walks))


class _Option(NamedTuple):
    """A path that a walk may follow from a node, and what tells in its favour.

    `probes` is how many nodes at its end may be looked at for a relation that the graph
    was not yet seen to have, 0 where the path is known as a whole.
    """

    cost: float
    edges: int
    node: str
    path: tuple[Hop, ...]
    probes: int

    def order(self) -> tuple[float, int, int, int, tuple[Hop, ...]]:
        """The best first: of paths that fit as well that which most edges allow."""
        return self.cost, -self.edges, len(self.path), self.probes, self.path


def _asked_of_itself(
    question: str, seen: Transcript, named: Sequence[LinkedMention], lexicon: Lexicon
) -> list[str]:
    """Return what the question names first, where it asks for a property of that which
    a search has shown.
    """
    relations = seen.space(lexicon).relations
    shown = [node for search in seen.searches for node in search]
    found = []
    for mention in named[:1]:
        place = mention.start, mention.end
        for node_id in mention.nodes:
            known = [node for node in shown if node.id == node_id]
            keys = {key for node in known for key in node.keys}
            types = {kind for node in known for kind in node.types}
            if asked_property(question, place, keys, types, relations, lexicon):
                found.append(node_id)
    return found


def _walks(
    question: str,
    seen: Transcript,
    named: Sequence[LinkedMention],
    lexicon: Lexicon,
    choice: int,
) -> list[PlanProgress]:
    """Follow one of the paths that fit best from each name in the question."""
    space = seen.space(lexicon)
    places = frozenset((mention.start, mention.end) for mention in named)
    ids = {node for mention in named for node in mention.nodes}
    walks = []
    for mention in named:
        place = mention.start, mention.end
        read = readings(question, *place, places - {place}, lexicon)
        options = [
            option
            for node in mention.nodes
            for option in _options(node, mention, read, space, seen)
        ]
        walks += _chosen_walk(sorted(options, key=_Option.order), seen, ids, choice)
    return walks


def _options(
    node: str,
    mention: LinkedMention,
    read: Sequence[QuestionReading],
    space: PathSpace,
    seen: Transcript,
) -> list[_Option]:
    """Return the paths from a bearer of a name that fit the question well enough."""
    looks = seen.explorations.get(node)
    if not looks:
        return []
    edges: Counter[tuple[str, bool]] = Counter()
    for relation, outgoing, _, count in looks[0].relations:
        edges[relation, outgoing] += count
    table = space.table(looks[0].types or ("",))
    misspelled = mention.nodes[node] < max(mention.nodes.values())
    costs = space.costs(read, looks[0].types, table) + MISSPELLED * misspelled
    options = []
    for i in np.flatnonzero(costs <= WORST).tolist():
        path = space.path(table[i])
        first_edges = edges[path[0].relation, path[0].outgoing]
        cost = round(costs[i], 6)
        if first_edges and path[-1].relation == UNKNOWN:
            options.append(_Option(cost, first_edges, node, path[:-1], MOST_PROBES))
        elif first_edges:
            options.append(_Option(cost, first_edges, node, path, 0))
    return options


def _chosen_walk(
    options: Sequence[_Option], seen: Transcript, ids: Collection[str], choice: int
) -> list[PlanProgress]:
    """Follow options, the best first, up to the choice among those about as good.

    Returns that walk, or the last before it; none where no option leads anywhere.
    """
    fitting: list[PlanProgress] = []
    least = math.inf
    for option in options:
        if len(fitting) > choice or option.cost > least + CLOSE:
            break
        if option.probes and fitting:
            continue
        walk = follow(option.node, option.path, seen, ids, option.probes)
        if walk is not None:
            least = min(least, option.cost)
            fitting.append(walk)
    return fitting[-1:]


def _ranked(seen: Transcript, walks: Sequence[PlanProgress]) -> list[str]:
    """The ends that most names lead to first, then by paths; without any what searches
    found, each taken in turns.
    """
    names = Counter(end for walk in walks for end in walk.ends)
    paths = sum((Counter(walk.ends) for walk in walks), Counter[str]())
    if names:
        return sorted(names, key=lambda end: (-names[end], -paths[end]))[:SELECTED]
    found = vote([[node.id for node in search] for search in seen.searches])
    return [one.id for one in found[:QUESTION_K]]


@dataclass(frozen=True, slots=True)
class PlanProgress:
    """How far a plan was followed: its ends so far with the number of paths to each,
    and what is to be explored.
    """

    ends: Mapping[str, int] = field(default_factory=dict)
    wanted: Sequence[Call] = ()


def explorations(walks: Sequence[PlanProgress], seen: Transcript) -> list[Call]:
    """Return the explorations that walks want next, each once, as far as there is room
    for them.
    """
    explored = sum(map(len, seen.explorations.values()))
    room = min(TURN, EXPLORATIONS - explored) if seen.turns < LAST_TURN else 0
    return list({repr(call): call for walk in walks for call in walk.wanted}.values())[
        : max(0, room)
    ]


def ending(chosen: Sequence[str]) -> list[Call]:
    return [*([(SELECT, {"nodes": list(chosen)})] if chosen else []), (FINISH, {})]


def follow(
    start: str,
    path: Sequence[Hop],
    seen: Transcript,
    named: Collection[str] = (),
    probes: int = 0,
) -> PlanProgress | None:
    """Follow a path from a node, never back to it, as far as what has been explored
    allows.

    At its end so many nodes are looked at for a relation that is to follow. Nodes that
    the question names are no answers. `None` where it leads nowhere, or no relation is
    left to be discovered at its open end.
    """
    frontier: dict[str, int] = {start: 1}
    for depth, hop in enumerate(path, start=1):
        wanted: list[Call] = []
        reached: Counter[str] = Counter()
        for node, paths in frontier.items():
            shown, complete = _step(hop, seen.explorations.get(node, ()))
            if not complete:
                relations = [arrow(hop.relation, hop.outgoing)]
                wanted.append(
                    (EXPLORE, {"node": node, "relation_types": relations, "k": MAX_K})
                )
            for end in shown:
                reached[end] += paths
        del reached[start]
        frontier = reached
        if wanted:
            last = depth == len(path) and not probes
            return PlanProgress(
                (
                    {end: n for end, n in frontier.items() if end not in named}
                    if last
                    else {}
                ),
                wanted,
            )
    if probes:
        fresh = [
            node
            for node in frontier
            if all(one.asked is not None for one in seen.explorations.get(node, ()))
        ]
        size = next(
            (size for size in PROBES if len(frontier) - len(fresh) < size), probes
        )
        size = min(size, probes - len(frontier) + len(fresh))
        wanted = [
            (EXPLORE, {"node": node, "k": MAX_K}) for node in fresh[: max(0, size)]
        ]
        return PlanProgress({}, wanted) if wanted else None
    return (
        PlanProgress(ends)
        if (ends := {end: n for end, n in frontier.items() if end not in named})
        else None
    )


def _step(hop: Hop, looks: Sequence[ExploredNeighbors]) -> tuple[list[str], bool]:
    """The nodes that a hop leads to from a node as far as seen, and whether there is
    nothing more to ask for.
    """
    step = hop.relation, hop.outgoing
    ends = dict.fromkeys(
        other.id for one in looks for other in one.neighbors if step in other.via
    )
    complete = any(one.asked == frozenset([arrow(*step)]) for one in looks)
    if not complete and (
        whole := next((one for one in looks if one.asked is None), None)
    ):
        there = sum(
            count
            for relation, outgoing, _, count in whole.relations
            if (relation, outgoing) == step
        )
        complete = len(ends) >= min(there, MAX_K)
    return list(ends), complete


@dataclass(frozen=True, slots=True)
class Neighbor:
    """A node as it was seen; `via` are the relations to the node explored, and whether
    they lead here, `keys` its properties.
    """

    id: str
    name: str
    types: tuple[str, ...] = ()
    via: tuple[tuple[str, bool], ...] = ()
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExploredNeighbors:
    """What was seen around a node: the `neighbors` shown, of the relations `asked` for
    or, with `None`, of all.

    `relations` has ``(relation, outgoing, type of the neighbours, count)`` over the
    whole neighbourhood.
    """

    node: str
    types: tuple[str, ...]
    relations: tuple[tuple[str, bool, str, int], ...]
    neighbors: tuple[Neighbor, ...]
    asked: frozenset[str] | None = None


@dataclass(slots=True)
class Transcript:
    """What has happened since the last question of a conversation: the nodes that each
    search found, best first, the explorations by node, and the replies given.
    """

    question: str = ""
    searches: list[tuple[Neighbor, ...]] = field(default_factory=list)
    explorations: dict[str, list[ExploredNeighbors]] = field(default_factory=dict)
    turns: int = 0
    finished: bool = False

    @classmethod
    def read(cls, messages: Sequence[Message]) -> Transcript:
        """Read a conversation; what is not as the tools write it is passed over."""
        begin = max(
            (place for place, message in enumerate(messages) if message.role == "user"),
            default=None,
        )
        if begin is None:
            return cls()
        out, since = cls(encodable(messages[begin].content)), messages[begin + 1 :]
        out.turns = sum(message.role == "assistant" for message in since)
        asked = {call.id: call for message in since for call in message.tool_calls}
        for message in since:
            call = (
                asked.get(message.tool_call_id or "")
                if message.role == "tool"
                else None
            )
            if call is not None:
                out._take(call.name, call.parsed or {}, *_shown(message.content))
        return out

    def space(self, lexicon: Lexicon) -> PathSpace:
        """The kinds of paths that the explorations have shown."""
        triples: Counter[tuple[str, str, str]] = Counter()
        totals: Counter[str] = Counter()
        explored = [one for looks in self.explorations.values() for one in looks]
        shown = {
            way for one in explored for other in one.neighbors for way in other.via
        }
        for one in explored:
            edges = [
                (way, other.types, 1) for other in one.neighbors for way in other.via
            ]
            # of what is only counted no more than the first type is said
            edges += [
                ((name, out), (kind,), n)
                for name, out, kind, n in one.relations
                if (name, out) not in shown
            ]
            for (relation, outgoing), types, n in edges:
                totals[relation] += n
                for pair in product(one.types or ("",), types or ("",)):
                    source, target = pair if outgoing else pair[::-1]
                    triples[source, relation, target] += n
        return _space(frozenset(triples.items()), frozenset(totals.items()), lexicon)

    def _take(
        self,
        tool: str,
        given: dict[str, Any],
        head: dict[str, Any] | None,
        shown: tuple[Neighbor, ...],
    ) -> None:
        if tool == SEARCH:
            self.searches.append(shown)
        elif tool == EXPLORE and head is not None:
            limits = frozenset(given.get("relation_types") or ()) or None
            explored = ExploredNeighbors(
                head["explored"], _types(head), _counts(head, shown), shown, limits
            )
            self.explorations.setdefault(explored.node, []).append(explored)
        elif tool == FINISH:
            self.finished = True


@lru_cache(maxsize=64)  # from turn to turn, little new is known
def _space(
    triples: frozenset[tuple[tuple[str, str, str], int]],
    totals: frozenset[tuple[str, int]],
    lexicon: Lexicon,
) -> PathSpace:
    unknown = {
        (end, UNKNOWN, ""): 1
        for (source, _, target), _ in triples
        for end in (source, target)
    }
    return PathSpace(dict(triples) | unknown, dict(totals), lexicon)


@lru_cache(maxsize=1024)  # a conversation is read anew in each turn
def _shown(content: str) -> tuple[dict[str, Any] | None, tuple[Neighbor, ...]]:
    """The line that says what was explored, if any, and the nodes shown."""
    lines: list[dict[str, Any]] = []
    for text in content.split("\n"):
        with suppress(ValueError):
            line = json.loads(text)
            lines += [line] if isinstance(line, dict) else []
    shown = tuple(
        Neighbor(
            line["id"],
            line.get("name", line["id"]),
            _types(line),
            tuple(map(_way, line.get("via", ()))),
            tuple(line.get("properties", ())),
        )
        for line in lines
        if "id" in line
    )
    return next((line for line in lines if "explored" in line), None), shown


def _types(line: dict[str, Any]) -> tuple[str, ...]:
    types = line.get("type", ())
    return (types,) if isinstance(types, str) else tuple(types)


def _counts(
    head: dict[str, Any], shown: Sequence[Neighbor]
) -> tuple[tuple[str, bool, str, int], ...]:
    """The relations around a node, as they were counted, or as all its neighbours show
    them.
    """
    if listed := head.get("relations"):
        return tuple(
            (*_way(way), label, int(str(n).rstrip("+"))) for way, label, n in listed
        )
    edges = Counter(
        (*way, "".join(other.types[:1])) for other in shown for way in other.via
    )
    return tuple((*kind, n) for kind, n in edges.items())


def _way(shown: str | list[Any]) -> tuple[str, bool]:
    """A relation as an arrow, or as one with what its edges say behind it."""
    relation, outgoing = read_arrow(shown if isinstance(shown, str) else shown[0])
    return relation, bool(outgoing)
