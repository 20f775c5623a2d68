"""SPARK on queries that models wrote (text2cypher), and on MetaQA's questions."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from graphret.cypher import check
from graphret.cypher.codes import UNKNOWN_NAMES, WRONG_DIRECTION
from graphret.errors import InvalidInput, QueryRefused, QueryTimeout
from graphret.evaluation.dataset import ShareTable
from graphret.evaluation.guard import SCHEMAS, GuardQuery, load_queries
from graphret.evaluation.metaqa import HOPS, MetaQuestion, load_questions, path_ends
from graphret.evaluation.metrics import hit_at_k
from graphret.evaluation.mutations import mutate
from graphret.evaluation.runner import Progress
from graphret.graphs import read_metaqa
from graphret.graphs.locations import opened
from graphret.graphs.transfer import copy
from graphret.llm import ChatModel, Message, Reply
from graphret.schema import GraphSchema, PropertySchema
from graphret.search.bm25 import BM25Index
from graphret.spark import CypherStep, Spark
from graphret.spark.values import compared
from graphret.stores import MemoryStore
from graphret.types import Edge, Node

_MISTAKES = ("label", "relation", "property", "direction")
_LEAST, _MOST, _DEGREE = (
    30,
    400,
    3,
)  # nodes of a label, and edges of a relation from each


class ScriptedPlanner:
    """A chat model that replies with the plan that was written for a question."""

    name = "scripted"

    def __init__(self, plans: Mapping[str, str]) -> None:
        self.plans = plans

    def chat(self, messages: Sequence[Message], **options: Any) -> Reply:
        return Reply(self.plans[messages[-1].content])

    async def achat(self, messages: Sequence[Message], **options: Any) -> Reply:
        return self.chat(messages)


def bench_spark(
    data: str | Path,
    limit: int | None = None,
    *,
    graph: str | None = None,
    model: ChatModel | None = None,
    hops: Sequence[int] = HOPS,
    seed: int = 0,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Measure SPARK without its model, and with one where one is given.

    Rows ``queries``: of the queries of text2cypher that a real server accepts, the
    shares that ``ran``, were ``refused`` with a reason, and ``broke`` anything. Rows
    ``mistakes``: of queries that find something on a database made of their schema, and
    in which a name or a direction was then made wrong, the share that finds something
    again after SPARK's repairs; ``own`` are the mistakes of the model that wrote the
    queries. Rows of MetaQA: with plans written from the types of the questions, the
    share of questions whose reachable answers all came back (``all``), and ``hit@1``;
    with a model, the shares of its plans that ``parsed``, ``ran`` and ``fell_back``.

    Parameters
    ----------
    data
        A folder with the folders ``text2cypher`` and ``metaqa``, or one of them.
    limit
        Queries of each database of text2cypher, and questions of each number of hops,
        drawn at random.
    graph
        The address of an empty Neo4j; a Ladybug database in a temporary folder by
        default.
    model
        A chat model to plan for MetaQA's questions.
    hops
        Which numbers of hops.
    seed
        Of the draws and of what is made up.
    """
    folder, run = (
        Path(data),
        _SparkMeasures(graph, Random(seed), progress or (lambda stage, done, of: None)),
    )
    folders = [
        candidate
        for candidate in (folder, folder / "text2cypher")
        if (candidate / SCHEMAS).exists()
    ]
    films = [
        candidate
        for candidate in (folder, folder / "metaqa")
        if (candidate / "kb.txt").exists()
    ]
    if not folders and not films:
        raise InvalidInput(
            f"{folder}: expected {SCHEMAS}, kb.txt, or a folder text2cypher or metaqa,"
            " found none of them"
        )
    if folders and model is None:
        run.queries(load_queries(folders[0]), limit)
    if films:
        questions = {
            n: load_questions(films[0], n, "dev", limit=limit, seed=seed) for n in hops
        }
        run.films(read_metaqa(films[0]).store(), questions, model)
    return run.result(
        "spark",
        {
            name: round(statistics.median(values), 6)
            for name, values in run.seconds.items()
        },
    )


@contextmanager
def filled(source: MemoryStore, graph: str | None) -> Iterator[Any]:
    """Give a database with a graph: an empty Neo4j, emptied again, or a new Ladybug."""
    with (
        tempfile.TemporaryDirectory() as folder,
        opened(graph or f"{folder}/g.lbug", create=True) as store,
    ):
        if store.count()[0]:
            raise InvalidInput("--graph: expected an empty database, got a graph")
        try:
            copy(source, store)
            yield store
        finally:
            if graph is not None:
                store.delete([node.id for nodes in source.nodes() for node in nodes])


class _SparkMeasures(ShareTable):
    """The rows of the benchmark, as they come."""

    def __init__(self, graph: str | None, rng: Random, progress: Progress) -> None:
        super().__init__()
        self.graph, self.rng, self.progress = graph, rng, progress
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)

    def queries(self, queries: Sequence[GuardQuery], limit: int | None) -> None:
        """Run the queries that models wrote, and the same with a mistake."""
        of: dict[int, list[GuardQuery]] = defaultdict(list)
        for query in queries:
            if query.accepted:
                of[id(query.schema)].append(query)
        outcomes, right, repaired = Counter[str](), Counter[str](), Counter[str]()
        for number, of_database in enumerate(of.values(), 1):
            chosen = (
                of_database
                if limit is None or limit >= len(of_database)
                else self.rng.sample(of_database, limit)
            )
            with filled(
                made_up(chosen[0].schema, of_database, self.rng), self.graph
            ) as store:
                spark = Spark(ScriptedPlanner({}), store, BM25Index.of_store(store))
                for place, query in enumerate(chosen, 1):
                    self.progress(f"database {number} of {len(of)}", place, len(chosen))
                    kinds = (
                        _MISTAKES
                        if self._rows(spark, query.text, "queries", outcomes)
                        else ()
                    )
                    wrong = {
                        kind: mutate(query.text, kind, query.schema, self.rng)
                        for kind in kinds
                    }
                    errors = {
                        finding.kind
                        for finding in check(query.text, query.schema).errors
                    }
                    if errors and errors <= {*UNKNOWN_NAMES, WRONG_DIRECTION}:
                        wrong = {"own": query.text}
                    for kind, text in wrong.items():
                        if text is not None:
                            right[kind] += 1
                            repaired[kind] += bool(
                                self._rows(spark, text, f"mistakes/{kind}", Counter())
                            )
        for what in ("ran", "refused", "broke"):
            self.share("queries", what, outcomes[what], outcomes.total())
        for kind in (*_MISTAKES, "own"):
            self.share("mistakes", kind, repaired[kind], right[kind])

    def _rows(self, spark: Spark, query: str, row: str, outcomes: Counter[str]) -> int:
        """How many rows with something in them a query brings, mended where need be."""
        began = time.perf_counter()
        try:
            context = spark.context()
            step = CypherStep(cypher=query).check(context)
            self.seconds["mend"].append(time.perf_counter() - began)
            rows = step.rows(context, {}).rows
        except Exception as error:
            end = (
                "refused"
                if isinstance(error, (QueryRefused, QueryTimeout))
                else "broke"
            )
            outcomes[end] += 1
            self.missed[f"{row}/{end}"].append(
                {"query": query, "why": f"{type(error).__name__}: {error}"}
            )
            return 0
        outcomes["ran"] += 1
        n_filled = sum(
            any(value not in (None, 0, "", []) for value in row_values)
            for row_values in rows.rows
        )
        if not n_filled:
            self.missed[f"{row}/empty"].append({"query": query, "ran": step.query})
        return n_filled

    def films(
        self,
        source: MemoryStore,
        questions_by_hops: Mapping[int, Sequence[MetaQuestion]],
        model: ChatModel | None,
    ) -> None:
        """Ask MetaQA's questions, by the plan of their type or by that of a model."""
        with filled(source, self.graph) as store:
            index = BM25Index.of_store(store)
            for n, questions in questions_by_hops.items():
                plans = {question.text: compiled(question) for question in questions}
                spark = Spark(model or ScriptedPlanner(plans), store, index)
                spark.prompt()
                outcomes, counts = [], Counter[str]()
                for place, question in enumerate(questions, 1):
                    self.progress(f"{n}-hop", place, len(questions))
                    right = path_ends(source, question)
                    began = time.perf_counter()
                    retrieval = spark.retrieve(question.text, max(20, len(right)))
                    self.seconds[f"query_{n}-hop"].append(time.perf_counter() - began)
                    outcomes.append(
                        (
                            hit_at_k(retrieval.ids, question.gold, 1),
                            right <= set(retrieval.ids[: len(right)]),
                        )
                    )
                    steps = [
                        stage
                        for stage in retrieval.trace.stages
                        if stage.name.startswith("step ")
                    ]
                    counts["parsed"] += bool(steps)
                    counts["ran"] += bool(steps) and not any(
                        "error" in stage.details for stage in steps
                    )
                    counts["fell_back"] += bool(retrieval.trace.fallbacks)
                self.share(
                    f"{n}-hop",
                    "hit@1",
                    int(sum(hit for hit, _ in outcomes)),
                    len(outcomes),
                )
                if model is None:
                    self.share(
                        f"{n}-hop",
                        "all",
                        sum(complete for _, complete in outcomes),
                        len(outcomes),
                    )
                for what in ("parsed", "ran", "fell_back"):
                    self.share(f"{n}-hop", what, counts[what], len(outcomes))


def compiled(question: MetaQuestion) -> str:
    """Return the plan of a question of MetaQA: its relations, from its entity."""
    pattern = "(a0)"
    for number, (relation, outgoing) in enumerate(question.path, 1):
        pattern += (
            f"-[:{relation}]->(a{number})"
            if outgoing
            else f"<-[:{relation}]-(a{number})"
        )
    entity = question.entity.replace("\\", "\\\\").replace("'", "\\'")
    distinct = "".join(
        f" AND a{number}.name <> a0.name" for number in range(2, len(question.path) + 1)
    )
    query = (
        f"MATCH {pattern} WHERE a0.name = '{entity}'{distinct} RETURN DISTINCT"
        f" a{len(question.path)}"
    )
    return json.dumps({"steps": [{"cypher": query}]})


def made_up(
    schema: GraphSchema, queries: Iterable[GuardQuery], rng: Random
) -> MemoryStore:
    """Return a graph of a schema, with typed values and the texts in the queries."""
    texts: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for query in queries:
        if (tree := check(query.text).tree) is not None:
            for literal in compared(tree):
                texts[literal.key].setdefault(literal.text)
    nodes: list[Node] = []
    ids: dict[str, list[str]] = {}
    for label in sorted(
        {*schema.labels, *(end for s, _, t in schema.relations for end in (s, t))}
    ):
        properties = schema.properties.get(label, {})
        n_nodes = max(
            [_LEAST, *(len(texts[name]) for name in properties if name in texts)]
        )
        ids[label] = [f"{label}-{number}" for number in range(min(n_nodes, _MOST))]
        for number, node_id in enumerate(ids[label]):
            values = {
                name: _value(name, property_, list(texts.get(name, ())), number, rng)
                for name, property_ in properties.items()
            }
            name, text = (str(values.pop(field, "")) for field in ("name", "text"))
            values.pop("id", None)
            nodes.append(Node(node_id, (label,), name, text, values))
    edges: dict[tuple[str, str, str], Edge] = {}
    for source, relation, target in sorted(schema.relations):
        relation_properties = schema.relation_properties.get(relation, {})
        for start in ids[source]:
            for end in rng.sample(ids[target], min(_DEGREE, len(ids[target]))):
                values = {
                    name: _value(name, about, [], len(edges), rng)
                    for name, about in relation_properties.items()
                }
                edges[start, relation, end] = Edge(
                    start, relation, end, properties=values
                )
    return MemoryStore.of(nodes, edges.values())


def _value(
    name: str, property_: PropertySchema, texts: Sequence[str], number: int, rng: Random
) -> Any:
    kinds: dict[str, Callable[[], Any]] = {
        "INTEGER": lambda: rng.choice(
            (rng.randrange(10), rng.randrange(1900, 2024), rng.randrange(100_000))
        ),
        "FLOAT": lambda: round(rng.random() * 10 ** rng.randrange(5), 2),
        "BOOLEAN": lambda: rng.random() < 0.5,
        "LIST": lambda: [
            texts[number % len(texts)] if texts else f"{name} {number % 10}"
        ],
        "DATE": lambda: (
            f"{rng.randrange(1990, 2024)}-{rng.randrange(1, 13):02}"
            f"-{rng.randrange(1, 28):02}"
        ),
    }
    kinds |= {"DATE_TIME": lambda: f"{kinds['DATE']()}T12:00:00Z"}
    make = kinds.get(property_.type)
    return (
        make() if make else texts[number % len(texts)] if texts else f"{name} {number}"
    )
