"""`ScriptedExplorer`: a fixed policy in place of a chat model.

It walks the paths that planning finds to fit.
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
from graphret.schema import GraphSchema

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
    """A fixed policy that explores a graph with ARK's tools, in place of a chat model.

    It is not a model: it searches for the names in the question, follows the relations
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
    schema
        What a model is told of the graph. Knowing it, it searches once, for the
        likeliest name, and explores by the relation that it follows, as many nodes as
        the tools show: short trajectories, from which a small model learns. Without it,
        all the neighbours of the nodes named tell it what relations there are.
    """

    name = "scripted-explorer"

    def __init__(
        self,
        choice: int = 0,
        aliases: Aliases = None,
        *,
        schema: GraphSchema | None = None,
    ) -> None:
        self.choice, self.lexicon, self.schema = choice, Lexicon(aliases), schema

    def chat(self, messages: Sequence[Message], **options: Any) -> Reply:
        """Return the next calls, none once all is done; options change nothing."""
        transcript = Transcript.read(messages)
        planned = [] if transcript.finished else self.next_calls(transcript)
        if self.schema is not None:
            planned = [(name, _brief(arguments)) for name, arguments in planned]
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

    def next_calls(self, transcript: Transcript) -> list[Call]:
        """Return the calls to make now, which do not depend on one another."""
        question = transcript.question[:QUESTION]
        if not question.strip():
            return ending([])
        if not transcript.searches:
            names = [(part, SPAN_K) for part in spans(question, self.lexicon)]
            whole = (question, QUESTION_K)
            parts = [whole, *names] if self.schema is None else [*names, whole][:1]
            return [(SEARCH, {"query": part, "k": k}) for part, k in parts]
        names_by_id = {
            node.id: node.name for search in transcript.searches for node in search
        }
        mentions = linked_mentions(mentions_among(question, names_by_id), self.lexicon)
        fresh = [
            node
            for mention in mentions
            for node in mention.nodes
            if node not in transcript.explorations and self.schema is None
        ]
        if fresh and transcript.turns < LAST_TURN:
            return [(EXPLORE, {"node": node, "k": MAX_K}) for node in fresh]
        if itself := _property_answers(question, transcript, mentions, self.lexicon):
            return ending(itself)
        walks = _walks(question, transcript, mentions, self)
        return explorations(walks, transcript) or ending(_ranked(transcript, walks))


def _brief(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments without a number of nodes, and relations in both directions."""
    kept = {name: value for name, value in arguments.items() if name != "k"}
    if ways := kept.get("relation_types"):
        kept["relation_types"] = [read_arrow(way)[0] for way in ways]
    return kept


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


def _property_answers(
    question: str,
    transcript: Transcript,
    mentions: Sequence[LinkedMention],
    lexicon: Lexicon,
) -> list[str]:
    """Return the node that the question names first, if it asks for its property.

    Only properties that a search has shown count.
    """
    relations = transcript.space(lexicon).relations
    shown = [node for search in transcript.searches for node in search]
    answers = []
    for mention in mentions[:1]:
        place = mention.start, mention.end
        for node_id in mention.nodes:
            appearances = [node for node in shown if node.id == node_id]
            keys = {key for node in appearances for key in node.keys}
            types = {kind for node in appearances for kind in node.types}
            if asked_property(question, place, keys, types, relations, lexicon):
                answers.append(node_id)
    return answers


def _walks(
    question: str,
    transcript: Transcript,
    mentions: Sequence[LinkedMention],
    policy: ScriptedExplorer,
) -> list[PlanProgress]:
    """Follow one of the paths that fit best from each name in the question."""
    lexicon, choice, schema = policy.lexicon, policy.choice, policy.schema
    space = transcript.space(lexicon) if schema is None else _known(schema, lexicon)
    places = frozenset((mention.start, mention.end) for mention in mentions)
    ids = {node for mention in mentions for node in mention.nodes}
    walks = []
    for mention in mentions:
        place = mention.start, mention.end
        read = readings(question, *place, places - {place}, lexicon)
        options = [
            option
            for node in mention.nodes
            for option in _options(node, mention, read, space, transcript, schema)
        ]
        walks += _chosen_walk(
            sorted(options, key=_Option.order), transcript, ids, choice
        )
    return walks


def _options(
    node: str,
    mention: LinkedMention,
    read: Sequence[QuestionReading],
    space: PathSpace,
    transcript: Transcript,
    schema: GraphSchema | None,
) -> list[_Option]:
    """Return the paths from a named node that fit the question well enough."""
    types, edges = transcript.around(node, schema)
    if not edges:
        return []
    table = space.table(types or ("",))
    misspelled = mention.nodes[node] < max(mention.nodes.values())
    costs = space.costs(read, types, table) + MISSPELLED * misspelled
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
    options: Sequence[_Option],
    transcript: Transcript,
    ids: Collection[str],
    choice: int,
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
        walk = follow(option.node, option.path, transcript, ids, option.probes)
        if walk is not None:
            least = min(least, option.cost)
            fitting.append(walk)
    return fitting[-1:]


def _ranked(transcript: Transcript, walks: Sequence[PlanProgress]) -> list[str]:
    """Rank the ends of walks by the names, then the paths, that lead to them.

    Without any end, the nodes that the searches found, by votes.
    """
    names = Counter(end for walk in walks for end in walk.ends)
    paths = sum((Counter(walk.ends) for walk in walks), Counter[str]())
    if names:
        return sorted(names, key=lambda end: (-names[end], -paths[end]))[:SELECTED]
    voted = vote([[node.id for node in search] for search in transcript.searches])
    return [voted_node.id for voted_node in voted[:QUESTION_K]]


@dataclass(frozen=True, slots=True)
class PlanProgress:
    """How far a plan was followed.

    `ends` has the ends so far with the number of paths to each, `pending` the
    explorations that it waits for.
    """

    ends: Mapping[str, int] = field(default_factory=dict)
    pending: Sequence[Call] = ()


def explorations(walks: Sequence[PlanProgress], transcript: Transcript) -> list[Call]:
    """Return the explorations that walks wait for, each once, up to the limit."""
    explored = sum(map(len, transcript.explorations.values()))
    room = min(TURN, EXPLORATIONS - explored) if transcript.turns < LAST_TURN else 0
    return list({repr(call): call for walk in walks for call in walk.pending}.values())[
        : max(0, room)
    ]


def ending(chosen: Sequence[str]) -> list[Call]:
    return [*([(SELECT, {"nodes": list(chosen)})] if chosen else []), (FINISH, {})]


def follow(
    start: str,
    path: Sequence[Hop],
    transcript: Transcript,
    named_ids: Collection[str] = (),
    probes: int = 0,
) -> PlanProgress | None:
    """Follow a path from a node, never back to it, as far as the graph was explored.

    At its end, up to `probes` nodes are explored for a relation that may follow. Nodes
    that the question names are no answers. Returns `None` where the path leads nowhere,
    or no relation remains to be discovered at its open end.
    """
    frontier: dict[str, int] = {start: 1}
    for depth, hop in enumerate(path, start=1):
        pending: list[Call] = []
        reached: Counter[str] = Counter()
        for node, paths in frontier.items():
            shown, complete = _step(hop, transcript.explorations.get(node, ()))
            if not complete:
                relations = [arrow(hop.relation, hop.outgoing)]
                pending.append(
                    (EXPLORE, {"node": node, "relation_types": relations, "k": MAX_K})
                )
            for end in shown:
                reached[end] += paths
        del reached[start]
        frontier = reached
        if pending:
            last = depth == len(path) and not probes
            return PlanProgress(
                (
                    {end: n for end, n in frontier.items() if end not in named_ids}
                    if last
                    else {}
                ),
                pending,
            )
    if probes:
        fresh = [
            node
            for node in frontier
            if all(
                look.relation_types is not None
                for look in transcript.explorations.get(node, ())
            )
        ]
        size = next(
            (size for size in PROBES if len(frontier) - len(fresh) < size), probes
        )
        size = min(size, probes - len(frontier) + len(fresh))
        pending = [
            (EXPLORE, {"node": node, "k": MAX_K}) for node in fresh[: max(0, size)]
        ]
        return PlanProgress({}, pending) if pending else None
    return (
        PlanProgress(ends)
        if (ends := {end: n for end, n in frontier.items() if end not in named_ids})
        else None
    )


def _step(hop: Hop, looks: Sequence[ExploredNeighbors]) -> tuple[list[str], bool]:
    """The nodes that a hop was seen to lead to, and whether they are all there are."""
    step = hop.relation, hop.outgoing
    neighbor_ids = dict.fromkeys(
        other.id for look in looks for other in look.neighbors if step in other.via
    )
    limits = [frozenset({arrow(*step)}), frozenset({hop.relation})]
    complete = any(look.relation_types in limits for look in looks)
    if not complete and (
        full_look := next((look for look in looks if look.relation_types is None), None)
    ):
        n_edges = sum(
            count
            for relation, outgoing, _, count in full_look.relations
            if (relation, outgoing) == step
        )
        complete = len(neighbor_ids) >= min(n_edges, MAX_K)
    return list(neighbor_ids), complete


@dataclass(frozen=True, slots=True)
class Neighbor:
    """A node as a tool showed it.

    `via` has the relations to the explored node, and whether they lead from it to this
    one; `keys` are the names of its properties.
    """

    id: str
    name: str
    types: tuple[str, ...] = ()
    via: tuple[tuple[str, bool], ...] = ()
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExploredNeighbors:
    """What was seen around a node: its `neighbors` by some `relation_types`, or all.

    `relations` has ``(relation, outgoing, type of the neighbours, count)`` over the
    whole neighbourhood.
    """

    node: str
    types: tuple[str, ...]
    relations: tuple[tuple[str, bool, str, int], ...]
    neighbors: tuple[Neighbor, ...]
    relation_types: frozenset[str] | None = None


@dataclass(slots=True)
class Transcript:
    """What has happened since the last question of a conversation.

    `searches` has the nodes that each search found, best first, `explorations` what
    was seen around each node, `turns` the number of replies.
    """

    question: str = ""
    searches: list[tuple[Neighbor, ...]] = field(default_factory=list)
    explorations: dict[str, list[ExploredNeighbors]] = field(default_factory=dict)
    turns: int = 0
    finished: bool = False

    @classmethod
    def read(cls, messages: Sequence[Message]) -> Transcript:
        """Read a conversation; messages in another form than the tools' are skipped."""
        begin = max(
            (place for place, message in enumerate(messages) if message.role == "user"),
            default=None,
        )
        if begin is None:
            return cls()
        out, since = cls(encodable(messages[begin].content)), messages[begin + 1 :]
        out.turns = sum(message.role == "assistant" for message in since)
        calls_by_id = {
            call.id: call for message in since for call in message.tool_calls
        }
        for message in since:
            call = (
                calls_by_id.get(message.tool_call_id or "")
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
        explored = [look for looks in self.explorations.values() for look in looks]
        shown = {
            way for look in explored for other in look.neighbors for way in other.via
        }
        for look in explored:
            edges = [
                (way, other.types, 1) for other in look.neighbors for way in other.via
            ]
            # of what is only counted no more than the first type is said
            edges += [
                ((name, out), (kind,), n)
                for name, out, kind, n in look.relations
                if (name, out) not in shown
            ]
            for (relation, outgoing), types, n in edges:
                totals[relation] += n
                for pair in product(look.types or ("",), types or ("",)):
                    source, target = pair if outgoing else pair[::-1]
                    triples[source, relation, target] += n
        return _space(frozenset(triples.items()), frozenset(totals.items()), lexicon)

    def around(
        self, node: str, schema: GraphSchema | None
    ) -> tuple[tuple[str, ...], Counter[tuple[str, bool]]]:
        """Return the types of a node, and its edges by relation and direction.

        Of a node that was not looked at whole, as many as the schema has of its types.
        """
        edges = Counter[tuple[str, bool]]()
        looks = self.explorations.get(node, ())
        whole = next((look for look in looks if look.relation_types is None), None)
        if whole is not None:
            for relation, outgoing, _, count in whole.relations:
                edges[relation, outgoing] += count
            return whole.types, edges
        found = (each for search in self.searches for each in search)
        types = next((each.types for each in found if each.id == node), ())
        triples = {} if schema is None else schema.relations
        for (source, relation, target), count in triples.items():
            edges[relation, True] += count * (source in types)
            edges[relation, False] += count * (target in types)
        return types, edges

    def _take(
        self,
        tool: str,
        arguments: dict[str, Any],
        head: dict[str, Any] | None,
        shown: tuple[Neighbor, ...],
    ) -> None:
        if tool == SEARCH:
            self.searches.append(shown)
        elif tool == EXPLORE and head is not None:
            limits = frozenset(arguments.get("relation_types") or ()) or None
            explored = ExploredNeighbors(
                head["explored"], _types(head), _counts(head, shown), shown, limits
            )
            self.explorations.setdefault(explored.node, []).append(explored)
        elif tool == FINISH:
            self.finished = True


def _known(schema: GraphSchema, lexicon: Lexicon) -> PathSpace:
    """The kinds of paths that a schema tells of."""
    return _space(frozenset(schema.relations.items()), frozenset(), lexicon)


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
    """The relations around a node, as counted or as its neighbours show them."""
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
