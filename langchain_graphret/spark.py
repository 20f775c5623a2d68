"""SPARK in LangGraph: a graph of nodes that plan, check, run, fall back and expand; and
as a LangChain retriever.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import interrupt
from pydantic import TypeAdapter

from graphret.expansion import Expand, Ranking
from graphret.expansion.expand import Policy
from graphret.retriever import Retriever
from graphret.search.index import TextIndex, require_k
from graphret.spark import Answered, Found, Planned, Spark, SparkPlan
from graphret.stores.base import CypherStore
from graphret.trace import Trace
from langchain_graphret.chat import as_core_model
from langchain_graphret.documents import plain
from langchain_graphret.retriever import CoreRetriever
from langchain_graphret.state import (
    AnswerOutput,
    Asked,
    Json,
    NodeSteps,
    QuestionInput,
    asked_of,
    first_asked,
    node,
    retrieved,
)

_FOUND = TypeAdapter(Found)


class SparkOutput(AnswerOutput, total=False):
    """What comes of it, with the plan (`SparkPlan`) or `None`."""

    plan: Json | None


class SparkState(SparkOutput, Asked, total=False):
    """The state of `create_spark_graph`, plain JSON.

    `reply` is what the model said, `problem` why it cannot be used, `again` that it is
    asked once more. `steps` are those of the plan as they will run, with what was
    mended and what the guard refuses; `found` is what they found.
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
    model: Any,
    store: CypherStore,
    index: TextIndex,
    *,
    k: int = 10,
    expand: Policy | None = None,
    ranking: Ranking | None = None,
    approve: bool = False,
    checkpointer: BaseCheckpointSaver[Any] | bool | None = None,
    **options: Any,
) -> SparkGraph:
    """Return a LangGraph graph that answers a question with one call of a model (SPARK;
    SAGE paper, section 2.2).

    ``plan`` asks the model, ``check`` holds its queries against the guard and the
    schema and mends them, ``run`` runs them. Where they find nothing ``fallback``
    answers by text; ``expand`` adds what the graph connects them to. ``{"question":
    …}`` goes in, `SparkOutput` comes out; ``k`` and ``where`` of the input are used
    instead of the graph's own `k`, and to filter what is returned.

    Parameters
    ----------
    model
        A LangChain chat model, or a graphret one.
    store, index
        A graph that answers Cypher, and what finds its nodes by text; no views.
    k
        How many hits are returned: exactly as many where they qualify.
    expand, ranking
        The policy and the ranking of the expansion, as `graphret.Expand` has them;
        `None` does not expand.
    approve
        Whether a person must approve the queries before they run: the graph is
        interrupted with ``{"question", "steps"}``; resume with `True`, or with `False`
        or a reason for the fallback to answer. Needs a checkpointer.
    checkpointer
        As `StateGraph.compile` takes it.
    options
        As `graphret.spark.Spark` has them: ``settings``, ``hints``, ``fallback``,
        ``fill``, ``on_failure``.

    Raises
    ------
    InvalidInput
        When the store answers no Cypher or is a view, or an argument is malformed.

    Examples
    --------
    >>> graph = create_spark_graph(model, store, index, expand="auto")  # doctest: +SKIP
    >>> graph.invoke({"question": "Which papers of 2019 cite Ada Ames?"})["hits"]  #
    doctest: +SKIP
    """
    spark, k = Spark(as_core_model(model), store, index, **options), require_k(k)
    _expanded(
        spark, spark, expand, ranking
    )  # an option that is malformed is refused before anything is asked

    def plan(state: SparkState) -> NodeSteps:
        """Ask the model for a plan, or for a better one."""
        before, trace, calls = None, Trace(), 1
        asked: Json = {}  # a second call is for what was asked before
        if state.get("again"):
            question, before = (
                state["question"],
                Planned(None, state["problem"], state["reply"]),
            )
            trace, calls = Trace.from_dict(state["trace"]), state["calls"] + 1
        else:
            question, asked = first_asked(state, k)
        with trace.stage("plan", model=spark.model.name) as stage:
            planned = yield from spark.plan(question, before)
            stage.details.update(planned.trace_details)
        written = None if planned.plan is None else planned.plan.model_dump()
        told = {
            "plan": written,
            "reply": planned.reply,
            "problem": planned.problem,
            "trace": plain(trace.to_dict()),
        }
        return (
            told | asked | {"calls": calls, "again": False, "steps": [], "found": None}
        )

    def check(state: SparkState) -> Json:
        """Check and mend the queries, and wait for a person where one has to approve
        them.
        """
        plan = SparkPlan.model_validate(state["plan"])
        steps = [step.to_dict() for step in spark.check(plan)]
        word = (
            interrupt({"question": state["question"], "steps": steps})
            if approve
            else True
        )
        why = word if isinstance(word, str) else "it was not approved"
        return {
            "steps": steps,
            "problem": "" if word is True else f"the plan was not run: {why}",
        }

    def run(state: SparkState) -> Json:
        trace = Trace.from_dict(state["trace"])
        found = spark.run(
            state["question"],
            spark.check(SparkPlan.model_validate(state["plan"])),
            trace,
        )
        again = not found.nodes and state["calls"] <= spark.settings.repair_calls
        told = {
            "found": _FOUND.dump_python(found),
            "problem": found.problem,
            "trace": trace.to_dict(),
        }
        return {name: plain(value) for name, value in told.items()} | {"again": again}

    def after_run(state: SparkState) -> str:
        """Go on with what was found; ask once more where nothing was and that is
        allowed.
        """
        return (
            "plan"
            if state["again"]
            else "expand"
            if (state["found"] or {})["nodes"]
            else "fallback"
        )

    def answer(state: SparkState) -> NodeSteps:
        """Answer with what the plan found and what the graph connects it to, or by text
        where it found nothing.
        """
        saved = state["found"]
        found = (
            Found(problem=state["problem"])
            if saved is None
            else _FOUND.validate_python(saved)
        )
        asked: Retriever = Answered(spark, found, Trace.from_dict(state["trace"]))
        if found.nodes:
            asked = _expanded(asked, spark, expand, ranking)
        return (yield from retrieved(asked, *asked_of({**state, **state["asked"]}, k)))

    builder = StateGraph(
        SparkState, input_schema=QuestionInput, output_schema=SparkOutput
    )
    builder.add_node("plan", node(plan))
    builder.add_node("check", check)
    builder.add_node("run", run)
    builder.add_node("fallback", node(answer))
    builder.add_node("expand", node(answer))
    builder.add_edge(START, "plan")
    builder.add_conditional_edges(
        "plan",
        lambda state: "check" if state.get("plan") else "fallback",
        ["check", "fallback"],
    )
    builder.add_conditional_edges(
        "check",
        lambda state: "fallback" if state["problem"] else "run",
        ["run", "fallback"],
    )
    builder.add_conditional_edges("run", after_run, ["plan", "expand", "fallback"])
    builder.add_edge("fallback", END)
    builder.add_edge("expand", END)
    return builder.compile(checkpointer=checkpointer, name="spark")


def _expanded(
    seeds: Retriever, spark: Spark, policy: Policy | None, ranking: Ranking | None
) -> Retriever:
    """Return an expansion from seeds by a policy; the seeds themselves where there is
    none.
    """
    return (
        seeds
        if policy is None
        else Expand(seeds, spark.store, spark.index, policy=policy, ranking=ranking)
    )


class SparkRetriever(CoreRetriever):
    """Retrieve what a plan finds that a model writes with one call (SPARK), and what
    the graph connects it to.

    Exactly `k` documents come back where that many qualify; evidence and traces are as
    `SageRetriever` has them.

    Parameters
    ----------
    model, store, index, settings, hints, expand, ranking, fallback, on_failure
        As `create_spark_graph` has them.
    k, where
        As `SageRetriever` has them.
    """

    def __init__(
        self, model: Any, store: CypherStore, index: TextIndex, **options: Any
    ) -> None:
        super().__init__(_core, as_core_model(model), store, index, **options)


def _core(
    model: Any,
    store: CypherStore,
    index: TextIndex,
    *,
    expand: Policy | None = None,
    ranking: Ranking | None = None,
    **options: Any,
) -> Retriever:
    spark = Spark(model, store, index, **options)
    return _expanded(spark, spark, expand, ranking)
