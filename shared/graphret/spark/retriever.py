"""`Spark`: one model call, a plan of searches and queries, and the nodes they find."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from graphret.contracts import implements, require_same_view
from graphret.errors import GraphretError, InvalidInput, RetrievalFailed
from graphret.index_retriever import IndexRetriever
from graphret.llm.chat import ChatModel, Message, Reply, Usage
from graphret.llm.errors import as_chat_error, usage_of
from graphret.retriever import (
    Call,
    Compute,
    Retriever,
    Steps,
    backfill,
    require_on_failure,
    sure_of,
)
from graphret.schema import GraphSchema
from graphret.search.index import TextIndex
from graphret.spark.plan import SparkPlan, plan_schema, read_plan
from graphret.spark.prompt import system_prompt
from graphret.spark.settings import SparkSettings
from graphret.spark.step import RETRIEVER, CheckedStep, StepContext, StepResult
from graphret.stores.base import CypherStore, GraphStore, require_cypher
from graphret.trace import Trace
from graphret.types import Hit, Node, Retrieval, Signals
from graphret.where import Where

_AGAIN = """\
That plan cannot be used: {problem}
Answer again with a corrected plan, the JSON object only."""

_UNMATCHED = "a row whose columns do not satisfy the condition is not returned"


@dataclass(frozen=True, slots=True)
class PlanReply:
    """What a model replied: its plan, or `None` and the problem.

    `failed` is true where it gave no reply at all.
    """

    plan: SparkPlan | None
    problem: str = ""
    reply: str = ""
    usage: Usage = field(default_factory=Usage)
    failed: bool = False

    @property
    def trace_details(self) -> dict[str, Any]:
        """What a trace keeps of it."""
        error = {"error": self.problem} if self.failed else {}
        return {
            "tokens": self.usage.total_tokens,
            "plan": str(self.plan or self.problem),
            **error,
        }


class Spark(Retriever):
    """Answer with one model call that writes a plan of searches and queries (SPARK).

    The model sees the schema of the graph. Its queries pass the guard and run in read
    transactions with a time-out and a cap on rows; where they are wrong by the schema,
    or name values as the graph does not spell them, they are repaired without asking
    again. (SAGE paper, sections 2.2, 3.4 and appendix C.7.)

    Parameters
    ----------
    model
        The chat model that plans.
    store
        A graph that answers Cypher, and no view: a query could read past one.
    index
        What finds its nodes by text, for semantic steps and for ranking.
    settings
        Steps, sizes and limits.
    hints
        What else the model should know of the domain, such as units.
    fallback
        Who answers where the plan finds nothing, and fills the places below what it
        found; by default a search of `index`.
    fill
        Whether it fills: exactly k hits come back then where that many qualify.
    on_failure
        ``"fallback"`` goes on with the fallback where the model, the plan or the graph
        fails, and says so in the trace; ``"raise"`` raises `RetrievalFailed`.

    Raises
    ------
    InvalidInput
        When the store answers no Cypher or is a view, or an argument is malformed.

    Examples
    --------
    >>> model = OpenAIChat("gpt-4o-mini")  # doctest: +SKIP
    >>> spark = Spark(model, store, BM25Index.of_store(store))  # doctest: +SKIP
    >>> spark.retrieve("papers of 2019 by authors from Ulm").hits  # doctest: +SKIP
    """

    name = RETRIEVER

    def __init__(
        self,
        model: ChatModel,
        store: CypherStore,
        index: TextIndex,
        *,
        settings: SparkSettings | None = None,
        hints: str = "",
        fallback: Retriever | None = None,
        fill: bool = True,
        on_failure: str = "fallback",
    ) -> None:
        require_cypher(store, whole=True)
        require_same_view(store, index)
        if not implements(model, ChatModel):
            raise InvalidInput(
                f"model: expected a chat model, got {type(model).__name__}"
            )
        self.model = model
        self.store = store
        self.index = index
        self.settings = settings or SparkSettings()
        self.hints = hints
        self.fallback = IndexRetriever(index, store) if fallback is None else fallback
        self.fill = fill
        self.on_failure = require_on_failure(on_failure)

    def schema(self) -> GraphSchema:
        """Return the schema that plans are checked against; it is read once."""
        return self._schema_and_prompt[0]

    def prompt(self) -> str:
        """Return the system message, which describes the graph; it is made once."""
        return self._schema_and_prompt[1]

    @cached_property
    def _schema_and_prompt(self) -> tuple[GraphSchema, str]:
        schema = self.store.schema()
        return schema, system_prompt(self.store, schema, self.settings, self.hints)

    # -- the model

    def plan(
        self, question: str, before: PlanReply | None = None
    ) -> Generator[Any, Any, PlanReply]:
        """Have the model write a plan; with what it replied `before`, a better one.

        What fails is in the result.
        """
        try:
            messages = yield Compute(partial(self._messages, question, before))
        except GraphretError as error:
            return PlanReply(None, str(error))
        request: Any = {
            "messages": messages,
            "json_schema": plan_schema(self.settings.max_steps),
        }
        try:
            reply: Reply = yield Call(
                partial(self.model.chat, **request),
                partial(self.model.achat, **request),
            )
        except Exception as error:
            return PlanReply(
                None,
                _with_first_problem(before, str(as_chat_error(error, self.model.name))),
                usage=usage_of(error),
                failed=True,
            )
        plan, problem = read_plan(reply.text, self.settings.max_steps)
        if plan is None and reply.finish_reason == "length":
            problem = f"the reply was cut off at the token limit ({problem})"
        if plan is None:
            problem = _with_first_problem(before, problem)
        return PlanReply(plan, problem, reply.text[:4000], reply.usage)

    def _messages(self, question: str, before: PlanReply | None) -> list[Message]:
        messages = [Message.system(self.prompt()), Message.user(question)]
        if before is not None:
            again = Message.user(_AGAIN.format(problem=before.problem))
            messages += (
                [Message.assistant(before.reply), again] if before.reply else [again]
            )
        return messages

    # -- the plan

    def context(self) -> StepContext:
        """Return what the steps of a plan are checked against and run on."""
        return StepContext(self.store, self.index, self.schema(), self.settings)

    def check(self, plan: SparkPlan) -> list[CheckedStep]:
        """Return the steps as they will run, checked and repaired."""
        context = self.context()
        return [step.check(context) for step in plan.steps]

    def run(
        self, question: str, steps: Sequence[CheckedStep], trace: Trace
    ) -> StepResult:
        """Run the steps of a plan and rank what the last one found.

        What goes wrong is in the result and the trace.
        """
        context = self.context()
        result, problems = StepResult(), list[str]()
        ids: dict[str, list[str]] = {}
        for number, step in enumerate(steps, 1):
            walked = result.walked
            with trace.stage(f"step {number}") as stage:
                try:
                    result = step.run(context, ids, stage)
                except GraphretError as error:
                    result = StepResult()
                    stage.details["error"] = f"{type(error).__name__}: {error}"
                    stage.details["outcome"] = f"The step did not run: {error}."
                    problems.append(f"step {number}: {error}")
                stage.details["found"] = len(result.rows) + len(result.nodes)
            result.walked |= walked
            ids[f"step{number}"] = [node.id for node in result.nodes]
        with trace.stage("rank", by="the query" if result.ordered else "relevance"):
            if not result.ordered:
                result.nodes = self._by_relevance(question, result.nodes)
        result.problem = "; ".join(problems) or (
            "the plan found nothing" if result.empty else ""
        )
        return result

    def _by_relevance(self, question: str, nodes: list[Node]) -> list[Node]:
        """Return nodes by their scores in the index, as they came where those tie."""
        if len(nodes) < 2:
            return nodes
        scores = self.index.score(question, [node.id for node in nodes]).tolist()
        order = sorted(range(len(nodes)), key=lambda place: -scores[place])
        return [nodes[place] for place in order]

    # -- the answer

    @property
    def graph_store(self) -> GraphStore | None:
        return self.store

    def _steps(self, query: str, k: int, where: Where | None) -> Steps:
        trace, before, result = (
            Trace(),
            None,
            StepResult(problem="the question is empty"),
        )
        for _ in range(1 + self.settings.repair_calls if query.strip() else 0):
            with trace.stage("plan", model=self.model.name) as stage:
                planned = yield from self.plan(query, before)
                stage.details.update(planned.trace_details)
            plan, result = planned.plan, StepResult(problem=planned.problem)
            if plan is not None:
                with trace.stage("check"):
                    steps = self.check(plan)
                result = yield Compute(partial(self.run, query, steps, trace))
            if not result.empty or planned.failed:
                break
            before = replace(planned, problem=result.problem)
        answer: Retrieval = yield from SparkRunRetriever(self, result, trace)._steps(
            query, k, where
        )
        return answer


def _with_first_problem(before: PlanReply | None, problem: str) -> str:
    """Return why there is no plan, after why the one before it could not be used."""
    return problem if before is None else f"{before.problem}; asked again: {problem}"


class SparkRunRetriever(Retriever):
    """The hits of a plan that has run, filled up by the fallback.

    For frameworks that run the steps in their own way, and as seeds of an `Expand`.
    """

    name = RETRIEVER

    def __init__(
        self, spark: Spark, result: StepResult, trace: Trace | None = None
    ) -> None:
        self.spark = spark
        self.result = result
        self.trace = trace

    def _steps(self, query: str, k: int, where: Where | None) -> Steps:
        spark, result, trace = self.spark, self.result, self.trace or Trace()
        if result.problem and spark.on_failure == "raise":
            raise RetrievalFailed(f"spark failed: {result.problem}")
        rows, nodes = (
            [node for node in candidates if where is None or where.matches(node)]
            for candidates in (result.rows, result.nodes)
        )
        if len(rows) < len(result.rows):
            trace.note("rows", left_out=len(result.rows) - len(rows), reason=_UNMATCHED)
        n = len(rows) + len(nodes)
        hits = [
            Hit(node, 1 - place / n, (result.evidence[node.id],))
            for place, node in enumerate([*rows, *nodes])
        ]
        labels = tuple(dict.fromkeys(node.label for node in nodes))
        signals = Signals(
            n,
            sure_of(None, result.doubts),
            result.walked and n > 0,
            labels or None,
            plan_valid=not result.problem,
            doubts=tuple(result.doubts) or None,
        )
        values = [dict(row.properties) for row in rows]
        answer = Retrieval(query, k, hits[:k], signals, trace, values)
        if hits and not spark.fill:
            return answer
        if not hits:
            trace.note(
                "fallback",
                failed=self.name,
                error=result.problem or "nothing that the plan found qualifies",
            )
        return (yield from backfill(answer, spark.fallback, spark.on_failure, where))
