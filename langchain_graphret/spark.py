"""SPARK in LangChain and LangGraph: a retriever, and a graph of its steps."""

from __future__ import annotations

from typing import Any, TypeAlias

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import interrupt
from pydantic import TypeAdapter

from graphret.content import Content
from graphret.expansion import Expand, Ranking
from graphret.expansion.expand import Policy
from graphret.retriever import Retriever
from graphret.search.index import TextIndex, require_k
from graphret.spark import (
    PlanReply,
    Spark,
    SparkPlan,
    SparkRunRetriever,
    SparkSettings,
    StepResult,
)
from graphret.stores.base import CypherStore
from graphret.trace import Trace
from graphret.where import WhereLike
from langchain_graphret.chat import ChatModelLike, as_core_model
from langchain_graphret.documents import plain
from langchain_graphret.retriever import CoreRetriever, Part
from langchain_graphret.seeds import LangChainRetriever, as_seeds
from langchain_graphret.state import (
    AnswerOutput,
    Checkpointer,
    Json,
    NodeSteps,
    QuestionInput,
    QuestionState,
    accept_question,
    answer_update,
    node,
    question_of,
    retrieved,
)

_FOUND = TypeAdapter(StepResult)


class SparkOutput(AnswerOutput, total=False):
    """The output, with the plan (`SparkPlan`) or `None`."""

    plan: Json | None


class SparkState(SparkOutput, QuestionState, total=False):
    """The state of `create_spark_graph`, plain JSON.

    `reply` is the model's reply, `problem` why it cannot be used, `again` whether the
    model is asked once more. `steps` are the plan's steps as they will run, with
    repairs and what the guard refuses; `found` is what they found.
    """

    reply: str
    problem: str
    calls: int
    again: bool
    steps: list[Json]
    found: Json | None


#: A compiled graph that answers by plans.
SparkGraph: TypeAlias = CompiledStateGraph[SparkState, None, QuestionInput, SparkOutput]


def create_spark_graph(
    model: ChatModelLike,
    store: CypherStore,
    index: TextIndex,
    *,
    settings: SparkSettings | None = None,
    hints: str = "",
    expand: Policy | None = None,
    ranking: Ranking | None = None,
    fallback: LangChainRetriever | Retriever | None = None,
    fill: bool = True,
    on_failure: str = "fallback",
    k: int = 10,
    approve: bool = False,
    checkpointer: Checkpointer = None,
) -> SparkGraph:
    """Return a LangGraph graph that answers with one call of a model (SPARK).

    See the SAGE paper, section 2.2. ``plan`` asks the model, ``check`` checks its
    queries with the guard and the schema and repairs them, ``run`` runs them. If they
    find nothing, ``fallback`` answers by text; ``expand`` adds what the graph connects
    to the results. ``{"question":
    …}`` goes in, `SparkOutput` comes out; ``k`` and ``where`` of the input are used
    instead of the graph's own `k`, and to filter what is returned. As a node over
    `MessagesState` it takes the last human message for the question, and adds one that
    tells the hits.

    Parameters
    ----------
    model
        A LangChain chat model, or a graphret one.
    store, index
        A graph that answers Cypher, and what finds its nodes by text; no views.
    settings, hints
        As `graphret.Spark` has them.
    expand, ranking
        The policy and the ranking of the expansion, as `graphret.Expand` has them;
        `None` does not expand.
    fallback
        Who answers where the plan finds nothing, and fills the places below what it
        found: a LangChain or graphret retriever; by default a search of `index`.
    fill, on_failure
        As `graphret.Spark` has them.
    k
        How many hits are returned: exactly as many where they qualify.
    approve
        Whether a person must approve the queries before they run: the graph is
        interrupted with ``{"question", "steps"}``; resume with `True`, or with `False`
        or a reason for the fallback to answer. Needs a checkpointer.
    checkpointer
        As `StateGraph.compile` takes it.

    Raises
    ------
    InvalidInput
        If the store does not run Cypher or is a view, or an argument is malformed.

    Examples
    --------
    >>> graph = create_spark_graph(model, store, index, expand="auto")  # doctest: +SKIP
    >>> question = "Which papers of 2019 cite Ada Ames?"
    >>> graph.invoke({"question": question})["hits"]  # doctest: +SKIP
    """
    spark = Spark(
        as_core_model(model),
        store,
        index,
        settings=settings,
        hints=hints,
        fallback=as_seeds(fallback),
        fill=fill,
        on_failure=on_failure,
    )
    steps = _Steps(spark, expand, ranking, require_k(k), approve)
    return steps.compile(checkpointer)


class _Steps:
    """The nodes of `create_spark_graph`: the steps of `spark`, each on its own."""

    def __init__(
        self,
        spark: Spark,
        policy: Policy | None,
        ranking: Ranking | None,
        k: int,
        approve: bool,
    ) -> None:
        self.spark = spark
        self.policy = policy
        self.ranking = ranking
        self.k = k
        self.approve = approve
        # malformed arguments are refused before the first question
        _expanded(spark, spark, policy, ranking)

    def compile(self, checkpointer: Checkpointer) -> SparkGraph:
        builder = StateGraph(
            SparkState, input_schema=QuestionInput, output_schema=SparkOutput
        )
        builder.add_node("plan", node(self.plan))
        builder.add_node("check", self.check)
        builder.add_node("run", self.run)
        builder.add_node("fallback", node(self.answer))
        builder.add_node("expand", node(self.answer))
        builder.add_edge(START, "plan")
        builder.add_conditional_edges("plan", _after_plan, ["check", "fallback"])
        builder.add_conditional_edges("check", _after_check, ["run", "fallback"])
        builder.add_conditional_edges("run", _after_run, ["plan", "expand", "fallback"])
        builder.add_edge("fallback", END)
        builder.add_edge("expand", END)
        return builder.compile(checkpointer=checkpointer, name="spark")

    def plan(self, state: SparkState) -> NodeSteps:
        """Ask the model for a plan, or for a better one."""
        update: Json = {"again": False, "steps": [], "found": None}
        if state.get("again"):  # the same question as before
            question = state["asked"]["question"]
            trace = Trace.from_dict(state["trace"])
            previous_reply = PlanReply(None, state["problem"], state["reply"])
            update["calls"] = state["calls"] + 1
        else:
            question, question_update = accept_question(state, self.k)
            trace, previous_reply = Trace(), None
            update |= {**question_update, "calls": 1}
        with trace.stage("plan", model=self.spark.model.name) as stage:
            planned = yield from self.spark.plan(question, previous_reply)
            stage.details.update(planned.trace_details)
        return update | {
            "plan": None if planned.plan is None else planned.plan.model_dump(),
            "reply": planned.reply,
            "problem": planned.problem,
            "trace": plain(trace.to_dict()),
        }

    def check(self, state: SparkState) -> Json:
        """Check and repair the queries; wait for a person's approval if required."""
        checked = self.spark.check(SparkPlan.model_validate(state["plan"]))
        steps = [step.to_dict() for step in checked]
        decision: Any = True
        if self.approve:
            question = state["asked"]["question"]
            decision = interrupt({"question": question, "steps": steps})
        reason = decision if isinstance(decision, str) else "it was not approved"
        problem = "" if decision is True else f"the plan was not run: {reason}"
        return {"steps": steps, "problem": problem}

    def run(self, state: SparkState) -> Json:
        """Run the queries; if they find nothing, the model is asked again."""
        trace = Trace.from_dict(state["trace"])
        steps = self.spark.check(SparkPlan.model_validate(state["plan"]))
        found_nodes = self.spark.run(state["asked"]["question"], steps, trace)
        may_repair = state["calls"] <= self.spark.settings.repair_calls
        return {
            "found": plain(_FOUND.dump_python(found_nodes)),
            "problem": found_nodes.problem,
            "trace": plain(trace.to_dict()),
            "again": found_nodes.empty and may_repair,
        }

    def answer(self, state: SparkState) -> NodeSteps:
        """Answer with what the plan found and its surroundings, or by text."""
        found_nodes = StepResult(problem=state["problem"])
        if state["found"] is not None:
            found_nodes = _FOUND.validate_python(state["found"])
        trace = Trace.from_dict(state["trace"])
        retriever: Retriever = SparkRunRetriever(self.spark, found_nodes, trace)
        if not found_nodes.empty:
            retriever = _expanded(retriever, self.spark, self.policy, self.ranking)
        question, k, where = question_of({**state, **state["asked"]}, self.k)
        hits = yield from retrieved(retriever, question, k, where)
        return answer_update(state, hits, "spark")


def _after_plan(state: SparkState) -> str:
    return "check" if state.get("plan") else "fallback"


def _after_check(state: SparkState) -> str:
    return "fallback" if state["problem"] else "run"


def _after_run(state: SparkState) -> str:
    """Return the next node: plan again if possible when nothing was found."""
    if state["again"]:
        return "plan"
    found_nodes = state["found"] or {}
    return "expand" if found_nodes["rows"] or found_nodes["nodes"] else "fallback"


def _expanded(
    seeds: Retriever, spark: Spark, policy: Policy | None, ranking: Ranking | None
) -> Retriever:
    """Return an expansion of the seeds by a policy, or the seeds without one."""
    if policy is None:
        return seeds
    return Expand(seeds, spark.store, spark.index, policy=policy, ranking=ranking)


class SparkRetriever(CoreRetriever):
    """Retrieve by a plan that a model writes in one call, and expand it (SPARK).

    Exactly `k` documents come back where that many qualify; evidence and traces are as
    `SageRetriever` has them.

    Parameters
    ----------
    model, store, index, settings, hints, expand, ranking, fallback, fill, on_failure
        As `create_spark_graph` has them.
    content, k, where, name, tags, metadata
        As `SageRetriever` has them.
    """

    model: Part[ChatModelLike]
    store: Part[CypherStore]
    index: Part[TextIndex]
    settings: Part[SparkSettings | None] = None
    hints: str = ""
    expand: Part[Policy | None] = None
    ranking: Part[Ranking | None] = None
    fallback: Part[LangChainRetriever | Retriever | None] = None
    on_failure: str = "fallback"

    def __init__(
        self,
        model: ChatModelLike,
        store: CypherStore,
        index: TextIndex,
        *,
        settings: SparkSettings | None = None,
        hints: str = "",
        expand: Policy | None = None,
        ranking: Ranking | None = None,
        fallback: LangChainRetriever | Retriever | None = None,
        fill: bool = True,
        on_failure: str = "fallback",
        content: Content | None = None,
        k: int = 10,
        where: WhereLike = None,
        name: str | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(  # type: ignore[call-arg]  # fields of this class
            model=model,
            store=store,
            index=index,
            settings=settings,
            hints=hints,
            expand=expand,
            ranking=ranking,
            fallback=fallback,
            fill=fill,
            on_failure=on_failure,
            content=content,
            k=k,
            where=where,
            name=name,
            tags=tags,
            metadata=metadata,
        )
        self._check()

    def _make(self) -> Retriever:
        spark = Spark(
            as_core_model(self.model),
            self.store,
            self.index,
            settings=self.settings,
            hints=self.hints,
            fallback=as_seeds(self.fallback),
            fill=self.fill,
            on_failure=self.on_failure,
        )
        return _expanded(spark, spark, self.expand, self.ranking)
