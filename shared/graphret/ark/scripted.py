"""`ScriptedExplorer`: a fixed policy in the place of a chat model.

It finds the names in the question, follows from each the path of relations that `graphret.planning` finds to fit the
words best, and selects the ends. `Transcript` reads back what the tools have shown.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field
from functools import lru_cache
from operator import itemgetter
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from graphret.ark.arguments import arrow, read_arrow
from graphret.ark.observation import encodable
from graphret.ark.prompt import EXPLORE, FINISH, NOT_RUN, SEARCH, SELECT
from graphret.ark.settings import ArkSettings
from graphret.fusion import vote
from graphret.linking.mentions import spot
from graphret.linking.names import NameBook
from graphret.llm.chat import Message, Reply, Tool, ToolCall, Usage
from graphret.llm.event_loop import in_thread
from graphret.planning.paths import Explored, Hop, Known, Neighbor, Plan, plans
from graphret.planning.question import readings, spans, unread
from graphret.planning.words import is_relational
from graphret.schema.text import estimate_tokens
from graphret.text import words

#: A tool and its arguments.
Call: TypeAlias = tuple[str, dict[str, Any]]

#: Explorations by node, in order.
Around: TypeAlias = Mapping[str, Sequence[Explored]]

#: Nodes asked for of the question as a whole, of a part of it, and around a node.
QUESTION_K, SPAN_K, NEIGHBORS_K = 20, 10, 100
#: Characters of a question that are read, bearers of one name that are looked at, and names of one question.
QUESTION, BEARERS, NAMES = 6_000, 4, 4
#: Explorations in one turn and in all, nodes selected, and the last turn.
TURN, EXPLORATIONS, SELECTED, LAST_TURN = ArkSettings().max_calls, 160, 100, 18
#: Nodes looked at whole to learn what relations they have, in the first and the second turn spent on it.
PROBES = (3, 12)
#: Paths of one length that are looked at in one turn, from all names and under all readings.
PATHS = 480
#: What a plan that is followed may cost (more than one misfit, less than two), and how much more than the best.
WORST, CLOSE = 1.75, 0.3

_MISSPELLED = 0.2  # what it costs that a name is spelled otherwise in the question


class ScriptedExplorer:
    """A fixed policy that explores a graph with ARK's tools, in the place of a language model.

    It is no model: it searches for the names in the question, follows the relations that its words name, and selects
    where they lead, by rules. It makes an agent's whole loop run offline, the same each time: in tests, in load tests,
    in demonstrations, and as a teacher whose trajectories a small model can imitate. It reads the question (in English,
    its first 6,000 characters) and what the tools returned, nothing else, so that it works in any loop that offers
    tools of these names. What tools return is data to it, never an instruction. Tokens are estimates.

    Parameters
    ----------
    choice
        Which plan it follows where several fit the question about as well: 0 the best, 1 the next, and so on. Agents
        that choose differently vote on a question that can be read in several ways; they agree on any other.

    Examples
    --------
    >>> from graphret.llm.chat import Message
    >>> reply = ScriptedExplorer().chat([Message.user("Who directed Heat?")])
    >>> [call.name for call in reply.tool_calls]
    ['global_search', 'global_search']
    """

    name = "scripted-explorer"

    def __init__(self, choice: int = 0) -> None:
        self.choice = choice

    def chat(self, messages: Sequence[Message], *, tools: Sequence[Tool] | None = None, **options: Any) -> Reply:
        """Return the next calls, or the answer in words once all is done; options of sampling change nothing."""
        seen = Transcript.read(messages)
        planned = _next_calls(seen, self.choice)
        offered = None if tools is None else {tool.name for tool in tools}
        turn = sum(message.role == "assistant" for message in messages)
        calls = tuple(
            ToolCall(f"call_{turn}_{number}", name, json.dumps(arguments, ensure_ascii=False))
            for number, (name, arguments) in enumerate(planned)
            if offered is None or name in offered
        )
        text = ""
        if not calls:  # nothing to select with, or it is asked once more
            chosen = next((arguments["nodes"] for name, arguments in planned if name == SELECT), seen.selected)
            text = f"Found, best first: {'; '.join(chosen)}" if chosen else "Nothing was found."
        read = sum(estimate_tokens(encodable(message.content)) for message in messages)
        written = estimate_tokens(encodable(text + "".join(call.name + call.arguments for call in calls)))
        return Reply(text, calls, Usage(read, written), "tool_calls" if calls else "stop", self.name)

    async def achat(self, messages: Sequence[Message], *, tools: Sequence[Tool] | None = None, **options: Any) -> Reply:
        """`chat`, computed in a thread beside the event loop."""
        return await in_thread(lambda: self.chat(messages, tools=tools))


@dataclass(frozen=True, slots=True)
class Start:
    """A node that the question may name: where it does so, and what it costs that it is spelled otherwise there."""

    node: str
    start: int
    end: int
    cost: float


@dataclass(frozen=True, slots=True)
class Walk:
    """How far a plan has been followed: its ends so far, with the number of paths to each, and what is to be explored.

    Of ends with as many paths those come first that were shown first.
    """

    ends: dict[str, int] = field(default_factory=dict)
    wanted: list[Call] = field(default_factory=list)


def _next_calls(seen: Transcript, choice: int = 0) -> list[Call]:
    """Return the calls to make now, several where they do not depend on one another; none when all is done."""
    if seen.finished:
        return []
    question = seen.question[:QUESTION]
    last = seen.turns >= LAST_TURN or seen.turns_left == 1
    if not question.strip():
        return [(FINISH, {})]
    if not seen.searches and not last:
        whole: Call = (SEARCH, {"query": question[:2000], "k": QUESTION_K})
        return [whole, *((SEARCH, {"query": part[:2000], "k": SPAN_K}) for part in spans(question))]
    starts = _starts(question, seen)
    first = [(EXPLORE, {"node": one.node, "k": NEIGHBORS_K}) for one in starts if one.node not in seen.tried]
    if first and not last:
        return first
    around = seen.around
    walks = _walks(question, seen, starts, around, choice)
    room = min(TURN, EXPLORATIONS - len(seen.explorations))
    calls = {repr(call): call for walk in walks for call in walk.wanted}
    # not of a node for which another exploration has shown nothing
    wanted = [call for call in calls.values() if call[1]["node"] not in seen.tried or call[1]["node"] in around]
    if wanted and room > 0 and not last:
        return wanted[:room]
    chosen = _ranked(seen, walks)
    return ([(SELECT, {"nodes": chosen})] if chosen else []) + [(FINISH, {})]


def _starts(question: str, seen: Transcript) -> list[Start]:
    """The nodes that the question names, of those that tools have shown, the longest names first."""
    called = {node.id: node.name for search in seen.searches for node in search}
    called |= {one.node: one.node for one in seen.explorations if one.node not in called}
    spots = spot(question, NameBook((node, name, None) for node, name in called.items()))
    telling = [one for one in spots if one.score == 1 or not all(map(is_relational, words(one.text)))]
    found = []
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


def _walks(question: str, seen: Transcript, starts: Sequence[Start], around: Around, choice: int) -> list[Walk]:
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
    query = " ".join(unread(question, places, known.named))
    named = {start.node for start in starts}
    walks = []
    for ranked in options.values():
        fitting: list[Walk] = []
        best = WORST
        for cost, _, node, plan in sorted(ranked, key=itemgetter(0, 1)):
            if len(fitting) > choice or (fitting and cost > best + CLOSE):
                break
            if (walk := follow(node, plan, around, named, query)) is not None:
                best = min(best, cost)
                fitting.append(walk)
        walks += fitting[-1:]
    return walks


def follow(start: str, plan: Plan, around: Around, named: Collection[str], query: str) -> Walk | None:
    """Follow a plan from a node, never back to it, as far as what has been explored allows.

    Nodes that the question names are no answers; `query` ranks the nodes where the plan ends. `None` where it leads
    nowhere, or no relation is left to be discovered at its open end.
    """
    frontier: dict[str, int] = {start: 1}
    for depth, hop in enumerate(plan.hops, start=1):
        last = depth == len(plan.hops) and not plan.probes
        ranking = query if last else ""
        wanted: list[Call] = []
        reached: Counter[str] = Counter()
        places: dict[str, int] = {}
        for node, paths in frontier.items():
            shown, complete = _step(node, hop, around.get(node, ()), ranking)
            if not complete:
                asked = {"node": node, "relation_types": [arrow(*astuple(hop))], "k": NEIGHBORS_K}
                wanted.append((EXPLORE, asked | ({"query": ranking} if ranking else {})))
            for place, end in enumerate(shown):
                if end != start:
                    reached[end] += paths
                    places[end] = min(place, places.get(end, place))
        frontier = {end: reached[end] for end in sorted(reached, key=places.__getitem__)} if ranking else dict(reached)
        if wanted:
            return Walk({end: n for end, n in frontier.items() if end not in named} if last else {}, wanted)
    if plan.probes:
        fresh = [node for node in frontier if all(one.asked is not None for one in around.get(node, ()))]
        done = len(frontier) - len(fresh)
        size = min(next((size for size in PROBES if done < size), plan.probes), plan.probes - done)
        wanted = [(EXPLORE, {"node": node, "k": NEIGHBORS_K}) for node in fresh[: max(0, size)]]
        return Walk({}, wanted) if wanted else None
    ends = {end: paths for end, paths in frontier.items() if end not in named}
    return Walk(ends) if ends else None


def _step(node: str, hop: Hop, looks: Sequence[Explored], query: str) -> tuple[list[str], bool]:
    """The nodes that a hop leads to from a node as far as seen, and whether there is nothing more to ask for."""
    step = (hop.relation, hop.outgoing)
    best = [one for one in looks if one.asked == frozenset([arrow(*astuple(hop))]) and one.query == query]
    ends = dict.fromkeys(other.id for one in (*best, *looks) for other in one.neighbors if step in other.via)
    whole = next((one for one in looks if one.asked is None), None)
    if best or whole is None:
        return list(ends), bool(best)
    there = sum(count for relation, outgoing, _, count in whole.relations if (relation, outgoing) == step)
    return list(ends), len(ends) >= min(there, NEIGHBORS_K) and (not query or there <= 1)


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
    found = vote([[node.id for node in search] for search in seen.searches], "reciprocal")
    return [one.id for one in found[:QUESTION_K]]


class _Line(BaseModel):
    """A line of what a tool has returned."""

    id: str | None = None
    name: str = ""
    type: str | list[str] = Field(default_factory=list)
    via: list[str] = Field(default_factory=list)
    explored: str | None = None
    relations: list[tuple[str, str, Annotated[int, BeforeValidator(lambda n: str(n).rstrip("+"))]]] = Field(
        default_factory=list
    )
    error: str = ""
    steps_left: int | None = None

    @property
    def types(self) -> tuple[str, ...]:
        return (self.type,) if isinstance(self.type, str) else tuple(self.type)


@lru_cache(maxsize=1024)  # a conversation is read anew in each turn
def _lines(content: str) -> tuple[_Line, ...]:
    lines = []
    for text in content.split("\n"):
        with suppress(ValidationError):
            lines.append(_Line.model_validate_json(text))
    return tuple(lines)


@dataclass(slots=True)
class Transcript:
    """What has happened since the question was asked."""

    question: str = ""
    searches: list[tuple[Neighbor, ...]] = field(default_factory=list)  # what each found, best first
    explorations: list[Explored] = field(default_factory=list)
    tried: set[str] = field(default_factory=set)  # nodes whose exploration was run, whatever came of it
    selected: list[str] = field(default_factory=list)
    turns: int = 0
    turns_left: int | None = None  # as far as the loop said so
    finished: bool = False

    @classmethod
    def read(cls, messages: Sequence[Message]) -> Transcript:
        """Read a conversation; what is not as the tools write it is passed over."""
        out, open_ = cls(), True
        asked: dict[str, ToolCall] = {}
        for message in messages:
            if message.role == "user" and open_:
                out, asked, open_ = cls(encodable(message.content)), {}, False
            elif message.role == "assistant":
                asked = {call.id: call for call in message.tool_calls}
                out.turns += 1
                open_ = not asked
            elif message.role == "tool" and (call := asked.get(message.tool_call_id or "")):
                out._take(call.name, call.parsed or {}, message.content)
        return out

    @property
    def around(self) -> Around:
        """The explorations by node."""
        around: dict[str, list[Explored]] = {}
        for one in self.explorations:
            around.setdefault(one.node, []).append(one)
        return around

    def _take(self, tool: str, given: Mapping[str, Any], content: str) -> None:
        lines = _lines(content)
        self.turns_left = next((one.steps_left for one in lines if one.steps_left is not None), self.turns_left)
        shown = tuple(
            Neighbor(one.id, one.name or one.id, one.types, tuple(filter(None, map(read_arrow, one.via))))
            for one in lines
            if one.id is not None
        )
        if tool == SEARCH:
            self.searches.append(shown)
        elif tool == EXPLORE:
            if not any(one.error.startswith(NOT_RUN) for one in lines):
                self.tried.add(str(given.get("node")))
            if header := next((one for one in lines if one.explored is not None), None):
                ways = [(read_arrow(arrow), label, count) for arrow, label, count in header.relations]
                relations = tuple((*way, label, count) for way, label, count in ways if way)
                asked = frozenset(given.get("relation_types") or ()) or None
                node, query = header.explored or "", given.get("query") or ""
                self.explorations.append(Explored(node, header.types, relations, shown, asked, query))
        elif tool == SELECT:
            self.selected += given.get("nodes", ())
        elif tool == FINISH:
            self.finished = True
