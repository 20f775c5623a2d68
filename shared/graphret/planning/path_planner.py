"""`PathPlanner`: plans without a model, from the paths around a question's names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from graphret.errors import GraphretError, InvalidInput
from graphret.linking.linker import Linker
from graphret.linking.mentions import MentionSpan, find_mentions
from graphret.linking.names import NameIndex
from graphret.linking.words import Aliases, Lexicon
from graphret.llm.event_loop import in_thread
from graphret.planning.asked_property import asked_property
from graphret.planning.composed import Composer, asked_labels, hops_along
from graphret.planning.conditions import read_conditions
from graphret.planning.graph_plan import Anchor, GraphPlan, PlanHop, RiskLevel, Target
from graphret.planning.paths import PathSpace
from graphret.planning.patterns import Hop
from graphret.planning.planner import PlannerResult
from graphret.planning.properties import Properties
from graphret.planning.queries import find_matches
from graphret.planning.question import IDLE, readings, spans
from graphret.planning.question_words import GraphWords
from graphret.planning.scorer import UNTRAINED, PathScorer, masked
from graphret.planning.stated import Stated
from graphret.search.index import TextIndex
from graphret.stopwords import COMMON_WORDS, FUNCTION_WORDS, STOP_WORDS
from graphret.stores.base import GraphStore
from graphret.text import tokenize, words

#: Characters of a question that are read, names looked at, nodes found for a part of
#: it, and nodes with one name.
QUESTION, NAMES, FOUND, NAMESAKES = 2_000, 4, 20, 4
#: Paths that are tried around each name, those of them that lead anywhere which are
#: compared, and ends of each.
TRIED, COMPARED, ENDS = 60, 5, 5_000
#: What it costs to leave a name out, that it is spelled otherwise in the question, and
#: to go round a missing edge.
LEFT_OUT, MISSPELLED, DETOUR = 1.0, 0.2, 1.0
#: The least likeness of a name that is spelled otherwise; words left over that say what
#: an answer's text is about.
LIKE, LEFT_OVER = 0.35, 2
#: What a plan may cost at each level of risk but the last, and how much more another
#: reading then costs at least.
LEVELS: tuple[RiskLevel, ...] = ("aggressive", "normal", "weak", "no_trade")
TRUST, CLEAR = (0.6, 1.2, 2.0), 0.04


@dataclass(frozen=True, slots=True)
class LinkedMention:
    """A name in a question, and the nodes that it may mean, best first."""

    start: int
    end: int
    text: str
    nodes: Mapping[str, float]


class PathCandidate(NamedTuple):
    """A path around a name, and how ill it fits the question."""

    cost: float
    path: tuple[Hop, ...]


class MentionSubgraph:
    """The graph around a mention's nodes: the `ends` of each path.

    Paths do not pass any other node that the question names.
    """

    def __init__(
        self, store: GraphStore, starts: Mapping[str, float], named_ids: Iterable[str]
    ) -> None:
        self._store = store
        self._bindings = {"a1": starts, "named": dict.fromkeys(named_ids, 0.0)}
        self.ends = cache(self._ends)

    def _ends(self, path: tuple[Hop, ...]) -> frozenset[str]:
        matches = find_matches(
            plan_of([("", path)]), self._store, self._bindings, limit=ENDS
        )
        return frozenset(match.id for match in matches)


class MentionPaths(NamedTuple):
    """The paths around a mention, those first that fit best, and where they lead."""

    mention: LinkedMention
    candidates: list[PathCandidate]
    grounded: MentionSubgraph


#: Paths around the mentions, or some of them, that meet in one target.
_Walks: TypeAlias = "list[tuple[MentionPaths, PathCandidate]]"


def linked_mentions(
    spans: Sequence[MentionSpan], lexicon: Lexicon
) -> list[LinkedMention]:
    """Return the longest names to start from.

    Names that are words for relations only count if there are no others.
    """
    telling = [
        span
        for span in spans
        if span.score == 1 or not all(map(lexicon.is_relational, words(span.text)))
    ]
    chosen = sorted(telling or spans, key=lambda span: span.start - span.end)[:NAMES]
    return [
        LinkedMention(
            span.start,
            span.end,
            span.text,
            dict(list(zip(span.ids, span.scores, strict=True))[:NAMESAKES]),
        )
        for span in chosen
    ]


def mentions_among(question: str, names_by_id: Mapping[str, str]) -> list[MentionSpan]:
    """Return the mentions in a question of nodes whose names are given by id."""
    name_index = NameIndex(
        (node_id, name, None) for node_id, name in names_by_id.items()
    )
    return find_mentions(
        question, name_index, None, lambda ids: [[names_by_id[i]] for i in ids]
    )


class PathPlanner:
    """Plans questions without a model, in place of a model's plans.

    It replaces GRASP's planner (section 3.1), and those of SPARK and GraphRAFT.

    It spots the names in a question and links them, goes through the kinds of paths of
    up to three hops around them, reads the question's words outward from each name,
    aligns them with the relations and labels of each path, weighs whether what is asked
    for is at its end, and keeps the best path that leads anywhere; paths around several
    names are joined where they meet. It knows general English, not a data set's:
    aliases say the rest.

    Parameters
    ----------
    store
        The graph.
    names
        Finds the nodes that a question names: a `Linker`, or a text index; of a
        `MemoryStore` one is made. Keep it in step with the store as any other index.
    aliases
        What people call relations and labels, ``{"Movie": ["film", "picture"]}``, or a
        YAML file that says so.
    scorer
        What `graphret.training.train_paths` learned of questions and answers, or the
        file that holds it.

    Examples
    --------
    >>> from graphret.graphs import read_metaqa
    >>> from graphret.graphs.example import ALIASES, KB
    >>> planner = PathPlanner(read_metaqa(KB).store(), aliases=ALIASES)
    >>> print(planner.plan("films directed by Orson Welles").plan)
    T: Movie; a1 = Director “Orson Welles”; a1 ←directed_by– T
    """

    name = "paths"

    def __init__(
        self,
        store: GraphStore,
        names: Linker | TextIndex | None = None,
        *,
        aliases: Aliases = None,
        scorer: PathScorer | str | Path | None = None,
    ) -> None:
        graph = store.local_graph()
        if names is None:
            if graph is None:
                raise InvalidInput(
                    "names: a Linker or a text index over the database's nodes is"
                    " expected"
                )
            names = Linker.build(graph.nodes)
        self.store, self.names, self.lexicon = store, names, Lexicon(aliases)
        totals = None if graph is None else graph.relation_counts()
        self._schema = schema = store.schema()
        self.space = PathSpace(schema.relations, totals, self.lexicon)
        self.words = GraphWords(
            Properties(store, schema, self.lexicon),
            sorted(schema.labels),
            sorted(schema.relations),
            self.lexicon,
        )
        self.scorer = (
            PathScorer.load(scorer) if isinstance(scorer, (str, Path)) else scorer
        )
        self._parts = lru_cache(maxsize=256)(
            lambda model, labels: model.parts_of(
                [*map(self.space.path, self.space.table(labels))]
            )
        )

    def plan(self, question: str) -> PlannerResult:
        """Return the plan of a question with its anchors linked.

        Without one where no name, or no path around it, is found.

        The level of risk follows what the plan costs (words left unread, hops that no
        word names, an end of another kind than asked for) and whether another reading
        fits as well, or a better one leads nowhere.
        """
        try:
            return self._plan(question[:QUESTION])
        except GraphretError as error:
            return PlannerResult(None, problem=f"{type(error).__name__}: {error}")

    async def aplan(self, question: str) -> PlannerResult:
        """Do what `plan` does in a thread beside the event loop."""
        return await in_thread(lambda: self.plan(question))

    def _plan(self, question: str) -> PlannerResult:
        mention_spans = self._find_mentions(question)
        mentioned = self._mentioned(question, mention_spans)
        if (property_plan := self.property_plan(question, mentioned)) is not None:
            return property_plan
        sure_spans = [mention for mention in mention_spans if mention.score == 1]
        sure_mentions = linked_mentions(sure_spans, self.lexicon)
        places = [(mention.start, mention.end) for mention in sure_mentions]
        nodes = self.store.get(
            [node_id for mention in sure_mentions for node_id in mention.nodes]
        )
        labels = {label for node in nodes if node is not None for label in node.labels}
        stated = read_conditions(self.words, question, places, labels)
        if stated.anything:
            planned = self._stated_plan(stated, sure_mentions)
        else:
            planned = self._named_plan(question, mentioned)
        confidence = self._share_read(question, stated, planned)
        return replace(planned, confidence=confidence, doubts=tuple(stated.doubts))

    def _named_plan(
        self, question: str, mentions: Sequence[LinkedMention]
    ) -> PlannerResult:
        """Return the plan of the names in a question alone."""
        around = self._around_all(question, mentions, TRIED)
        way = next(self._ways(around), None)
        if way is None:
            return PlannerResult(
                None,
                problem=(
                    "the question names"
                    f" {'nothing that leads anywhere' if around else 'no node'}"
                ),
            )
        cost, walks = way
        about = self._left_over(question, around)
        risk = self._risk(cost, walks)
        plan = plan_of(
            [(mention_paths.mention.text, best.path) for mention_paths, best in walks],
            about=about,
            risk=risk,
        )
        bindings = {
            anchor.var: mention_paths.mention.nodes
            for anchor, (mention_paths, _) in zip(plan.anchors, walks, strict=True)
        }
        return PlannerResult(plan, bindings, details=_details(cost, around))

    def _stated_plan(
        self, stated: Stated, mentions: Sequence[LinkedMention]
    ) -> PlannerResult:
        """Return the plan of what a question states, around the names in it."""
        absence = stated.absence
        absent = [
            mention
            for mention in mentions
            if absence is not None and mention.start > absence.start
        ]
        composer = Composer(
            self.space,
            self.lexicon,
            stated,
            asked_labels(stated, self.space.labels),
        )
        around = self._around_each(
            stated.unread_text,
            [mention for mention in mentions if mention not in absent],
            composer.targets,
        )
        cost, walks = next(self._ways(around), (0.0, [])) if around else (0.0, [])
        if around and not walks:
            problem = "the question names nothing that leads to what it asks for"
            return PlannerResult(None, problem=problem)
        bindings = {
            composer.walk(
                mention_paths.mention.text, best.path
            ): mention_paths.mention.nodes
            for mention_paths, best in walks
        }
        without = self._around_each(stated.unread_text, absent, composer.targets)
        for mention_paths in without:
            if mention_paths.candidates:
                path = mention_paths.candidates[0].path
                var = composer.walk(mention_paths.mention.text, path, negated=True)
                bindings[var] = mention_paths.mention.nodes
        composer.state()
        if not composer.says_anything:
            problem = "what the question states leads to nothing that it asks for"
            return PlannerResult(None, problem=problem)
        if composer.problem:
            return PlannerResult(None, problem=composer.problem)
        risk = self._risk(cost, walks) if walks else LEVELS[1]
        about = self._left_over(stated.unread_text, [*around, *without])
        plan = composer.plan(about, LEVELS[-1] if stated.doubts else risk)
        return PlannerResult(plan, bindings, details=_details(cost, around))

    def _around_each(
        self, text: str, mentions: Sequence[LinkedMention], targets: Collection[str]
    ) -> list[MentionPaths]:
        """Return the paths around names to some labels, or to any."""
        return [
            mention_paths._replace(
                candidates=[
                    candidate
                    for candidate in mention_paths.candidates
                    if not targets or candidate.path[-1].label in targets
                ][:TRIED]
            )
            for mention_paths in self._around_all(text, mentions, None)
        ]

    def _share_read(
        self, question: str, stated: Stated, planned: PlannerResult
    ) -> float:
        """Return the share of the telling words that a plan heeds.

        Common words count by half. It is halved where the plan is not to be trusted.
        """
        bound = [anchor.text for anchor in planned.plan.anchors] if planned.plan else []
        anchor_words = {word for text in bound for word in words(text)}
        read = missed = 0.0
        for word, start, end in tokenize(question):
            if word in IDLE:
                continue
            heeded = not stated.unread_text[start:end].strip() or word in anchor_words
            if heeded or self.space.word(word).known:
                read += 1.0
            elif word not in FUNCTION_WORDS:
                missed += 0.5 if word in COMMON_WORDS else 1.0
        share = read / (read + missed) if read else 0.0
        trusted = planned.plan is not None and planned.plan.risk_level != LEVELS[-1]
        return round(share if trusted else share / 2, 4)

    def _find_mentions(self, question: str) -> list[MentionSpan]:
        """Return the names of nodes as a question spells them."""
        if isinstance(self.names, Linker):
            return self.names.find_mentions(question)
        parts = [question, *spans(question, self.lexicon)]
        ids = list(
            dict.fromkeys(
                node_id
                for hits in self.names.search(parts, FOUND)
                for node_id in hits.ids
            )
        )
        names_by_id = {
            node.id: node.name for node in self.store.get(ids) if node is not None
        }
        return mentions_among(question, names_by_id)

    def property_plan(
        self, question: str, mentions: Sequence[LinkedMention]
    ) -> PlannerResult | None:
        """Return the plan whose answer is the node that a question names.

        `None` where it does not ask for a property of that node.
        """
        for mention in mentions[:1]:
            nodes = [node for node in self.store.get(list(mention.nodes)) if node]
            labels = sorted({label for node in nodes for label in node.labels})
            keys = {
                key
                for label in labels
                for key in self._schema.properties.get(label, ())
            }
            relations = self._schema.relation_names
            place = (mention.start, mention.end)
            key = asked_property(question, place, keys, labels, relations, self.lexicon)
            having = [node for node in nodes if key in node.properties]
            if key is None or not having:
                continue
            itself = Target(labels=[having[0].label] if having[0].label else [])
            anchor = Anchor(var=itself.var, text=mention.text)
            plan = GraphPlan(anchors=[anchor], target=itself, risk_level="aggressive")
            scores = {node.id: mention.nodes[node.id] for node in having}
            return PlannerResult(
                plan, {itself.var: scores}, details={"property": key}, confidence=1.0
            )
        return None

    def mentions(self, question: str) -> list[LinkedMention]:
        """Return the names in a question with their possible nodes, longest first."""
        return self._mentioned(question, self._find_mentions(question))

    def _mentioned(
        self, question: str, mention_spans: Sequence[MentionSpan]
    ) -> list[LinkedMention]:
        """Return the mentions that some names are, or of none what is like a name."""
        exact = linked_mentions(mention_spans, self.lexicon)
        if exact or not isinstance(self.names, Linker):
            return exact
        for part in spans(question, self.lexicon):
            if linked := {
                node.id: node.score
                for node in self.names.link(part)
                if node.score >= LIKE
            }:
                start = question.find(part)
                return [LinkedMention(start, start + len(part), part, linked)]
        return []

    def around(self, question: str, most: int | None = TRIED) -> list[MentionPaths]:
        """Return the paths around each name in a question, at most so many."""
        return self._around_all(question, self.mentions(question), most)

    def _around_all(
        self, question: str, mentions: Sequence[LinkedMention], most: int | None
    ) -> list[MentionPaths]:
        places = frozenset((mention.start, mention.end) for mention in mentions)
        named_ids = [node_id for mention in mentions for node_id in mention.nodes]
        return [
            self._around(question, mention, places, named_ids, most)
            for mention in mentions
        ]

    def _around(
        self,
        question: str,
        mention: LinkedMention,
        places: frozenset[tuple[int, int]],
        named_ids: list[str],
        most: int | None,
    ) -> MentionPaths:
        read = readings(
            question,
            mention.start,
            mention.end,
            places - {(mention.start, mention.end)},
            self.lexicon,
        )
        nodes = [
            node for node in self.store.get(list(mention.nodes)) if node is not None
        ]
        labels = tuple(
            sorted({label for node in nodes for label in node.labels or ("",)})
        )
        table = self.space.table(labels)
        costs = self.space.costs(read, labels, table)
        if self.scorer is not None:
            facts = np.pad(costs[:, None], ((0, 0), (0, len(UNTRAINED) - 1)))
            parts = self._parts(self.scorer, labels)
            costs = self.scorer.costs(masked(question, places), parts, facts)
        order = np.argsort(costs, kind="stable")[:most].tolist()
        candidates = [
            PathCandidate(float(costs[i]), self.space.path(table[i])) for i in order
        ]
        return MentionPaths(
            mention, candidates, MentionSubgraph(self.store, mention.nodes, named_ids)
        )

    def _ways(self, around: Sequence[MentionPaths]) -> Iterator[tuple[float, _Walks]]:
        """The ways to follow paths around names to common nodes, with their costs."""
        options: list[list[tuple[float, MentionPaths, PathCandidate | None]]] = []
        for mention_paths in around:
            ends_of = mention_paths.grounded.ends
            grounded = (best for best in mention_paths.candidates if ends_of(best.path))
            leading = list(islice(grounded, COMPARED if len(around) > 1 else 1))
            if mention_paths.candidates and (
                not leading
                or leading[0].cost > mention_paths.candidates[0].cost + DETOUR
            ):
                leading[:0] = self._detour(mention_paths)
            options.append(
                [
                    *((best.cost, mention_paths, best) for best in leading),
                    (LEFT_OUT, mention_paths, None),
                ]
            )
        for chosen in sorted(
            product(*options), key=lambda chosen: sum(cost for cost, _, _ in chosen)
        ):
            walks = [
                (mention_paths, best)
                for _, mention_paths, best in chosen
                if best is not None
            ]
            kinds = {best.path[-1].label for _, best in walks}
            if len(kinds) == 1 and frozenset.intersection(
                *(
                    mention_paths.grounded.ends(best.path)
                    for mention_paths, best in walks
                )
            ):
                yield sum(cost for cost, _, _ in chosen), walks

    @staticmethod
    def _risk(cost: float, walks: _Walks) -> RiskLevel:
        """How far a plan is to be trusted, by its cost and by rival paths."""
        (mention_paths, best), *more = walks
        near = [
            other
            for other in mention_paths.candidates
            if other.path != best.path and other.cost < best.cost + CLEAR
        ]
        close = not more and any(
            other.cost < best.cost or mention_paths.grounded.ends(other.path)
            for other in near
        )
        return LEVELS[min(sum(cost > most for most in TRUST) + 2 * close, len(TRUST))]

    def _detour(self, mention_paths: MentionPaths) -> list[PathCandidate]:
        """The best path around a missing last edge, by way of similar nodes."""
        best = mention_paths.candidates[0]
        *begin, last = best.path
        paths = [
            (*begin, hop, hop.back, last)
            for hop in self.space.hops
            if hop.start == last.start and hop != last
        ]
        detours = [
            (n, path) for path in paths if (n := len(mention_paths.grounded.ends(path)))
        ]
        return [PathCandidate(best.cost + DETOUR, min(detours)[1])] if detours else []

    def _left_over(self, question: str, around: Sequence[MentionPaths]) -> str:
        """The words besides names, relations and kinds: what an answer is about."""
        places = [
            (mention_paths.mention.start, mention_paths.mention.end)
            for mention_paths in around
        ]
        unread_words = [
            question[start:end]
            for word, start, end in tokenize(question)
            if word not in STOP_WORDS and not self.space.word(word).known
            if not any(first < end and start < last for first, last in places)
        ]
        return " ".join(unread_words) if len(unread_words) >= LEFT_OVER else ""


def _details(cost: float, around: Sequence[MentionPaths]) -> dict[str, Any]:
    """What a trace keeps of a plan: its cost, and the other paths that were likely."""
    likely_paths = {
        " ".join(map(str, best.path)): round(best.cost, 2)
        for mention_paths in around
        for best in mention_paths.candidates[:3]
    }
    return {"cost": round(cost, 2), "paths": likely_paths}


def plan_of(
    walks: Sequence[tuple[str, Sequence[Hop]]],
    *,
    about: str = "",
    risk: RiskLevel = "normal",
) -> GraphPlan:
    """Return the plan of paths from mentions' texts that meet in one target."""
    anchors, hops = list[Anchor](), list[PlanHop]()
    for number, (text, path) in enumerate(walks, 1):
        var = f"a{number}"
        anchors.append(Anchor(var=var, text=text or "-", label=path[0].start or None))
        hops += hops_along(var, path, number)
    label = walks[0][1][-1].label
    target = Target(labels=[label] if label else [], relevance_text=about)
    return GraphPlan(
        anchors=anchors, hops=hops, target=target, apart=True, risk_level=risk
    )
