"""`LLMPlanner`: a plan over the graph from one model call (GRASP, section 3.1)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, TypeAdapter

from graphret.contracts import implements
from graphret.errors import InvalidInput
from graphret.llm import ChatModel, Message, Usage, aask_json, ask_json
from graphret.llm.errors import as_chat_error, usage_of
from graphret.planning.graph_plan import GraphPlan, ModedPlan
from graphret.planning.planner import PlannerResult
from graphret.schema.text import estimate_tokens
from graphret.search.bm25 import BM25Index
from graphret.stores.base import GraphStore
from graphret.types import Node

_TASK = """\
You translate a question into a plan over a graph. You do not answer it, and you cannot see the graph: the plan is run \
on it, and the nodes that its target may stand for are the answer.

{schema}

A plan is one JSON object; leave out what does not apply:
- "anchors": what the question names or describes. "var": such as "A1"; "text": its words for it; "label"; \
"match_mode": "doc" for a description.
- "hops": relations between two variables, either of which may be "from". "rel": one, or a list of which any will do; \
"to_var"; "to_label": the label of "to_var". "direction": "out" or "in", seen from "from", where a relation joins a \
label to itself, as in "whom she manages" and "who manages her"; else leave it out. "negated": true where there must be none, as in "never ordered"; several in a row are a path that \
there must not be. "where": a condition on the relation's own properties.
- "target": "var", "T" if left out; "labels"; "relevance_text": what its text should say that nothing else here does.
- "where": for a variable a condition on properties, such as {{"T": {{"year": {{"$gte": 2010, "$lt": 2020}}}}}}; \
operators are $ne $in $gt $gte $lt $lte $contains $icontains $exists, and $or with a list of conditions.
- "order": {{"by": a property, "descending": true, "limit": 5}} for the most, the first, the last; the property is the \
target's, or that of the variable "of". With "of" alone: by how many nodes it stands for, as in "most orders".
- "count": true where it is asked how many targets there are.
- "apart": true where other nodes than the anchors are asked for, as in "films that share an actor with Heat".
- "cannot": what is asked that none of this says, such as a sum; the rest then finds the nodes that it is about.
- "risk_level": how far the plan is to be trusted beside a search by text: "no_trade" (not at all), "weak", "normal" or \
"aggressive" (it says all of the question).

A condition, an order, a count or a negated hop needs no anchor: "customers who never ordered". Hops join every \
variable to the target. Use the labels, relations and properties above and no others.

An example, of another graph: Which other papers since 2015 by the authors of Deep Roots cite Quiet Water?
{{"anchors": [{{"var": "A1", "text": "Deep Roots", "label": "Paper"}}, {{"var": "A2", "text": "Quiet Water", "label": \
"Paper"}}], "hops": [{{"from": "P", "rel": "WROTE", "to_var": "A1"}}, {{"from": "P", "rel": "WROTE", "to_var": "T"}}, \
{{"from": "T", "rel": "CITES", "to_var": "A2", "direction": "out"}}], "target": {{"labels": ["Paper"]}}, "where": \
{{"T": {{"year": {{"$gte": 2015}}}}}}, "apart": true, "risk_level": "aggressive"}}"""

#: What else a plan says where its mode is asked for (appendix B.2).
_MODES = """

A plan also has a "retrieval_mode", which says how much it goes by the graph:
- "doc_search": the question describes what it wants and names nothing of the graph. No hops; one anchor for the target \
itself, of match_mode "doc", with the description, which is the relevance_text too.
- "graph_filter_doc": hops narrow the answers, and a relevance_text says what their text should say besides.
- "graph_expand": the answers are neighbours of a node that is named, such as what is similar to it.
- "graph_strict": the hops say all that is asked; no relevance_text.
- "skip": nothing that a plan says fits the question."""

#: Examples that a model is shown, and about the most tokens of the system message: of a
#: large schema the rarest goes.
_EXAMPLES, _PROMPT_TOKENS = 5, 3_000


class LLMPlanner:
    """Write plans with a chat model: one call, and another if the first is invalid.

    The prompt is made of the schema of any graph, in parts as in the paper: role,
    schema, structure of a plan, how far it is to be trusted, and an example. A plan
    that is invalid still after its repair is none: what it is fused with answers alone.
    What the model says that no plan can say is a doubt.

    Parameters
    ----------
    model
        The chat model.
    store
        The graph; its schema is read once, and again with `refresh`.
    examples
        Questions with their plans, as `GraphPlan` or its JSON. The five most like a
        question are shown to the model.
    hints
        What else the model should know of the domain.
    metapaths
        The paths that questions over the graph follow, such as ``"institution -> author
        -> paper"`` (appendix B.3).
    retrieval_modes
        Whether each plan says how much it goes by the graph, and is held to that
        (appendix B.2).
    show_values
        Whether the model may see values of the graph.

    Raises
    ------
    InvalidInput
        When an example is not a valid plan on the graph, or an argument is malformed.

    Examples
    --------
    >>> planner = LLMPlanner(OpenAIChat("gpt-4o-mini"), store)  # doctest: +SKIP
    >>> print(planner.plan("papers of 2019 by authors from Ulm").plan)  # doctest: +SKIP
    """

    name = "llm"

    def __init__(
        self,
        model: ChatModel,
        store: GraphStore,
        *,
        examples: Sequence[tuple[str, GraphPlan | Mapping[str, Any]]] = (),
        hints: str = "",
        metapaths: Sequence[str] = (),
        retrieval_modes: bool = False,
        show_values: bool = False,
    ) -> None:
        if not implements(model, ChatModel):
            raise InvalidInput(
                f"model: expected a chat model, got {type(model).__name__}"
            )
        self.model = model
        self.store = store
        self.hints = hints
        self.metapaths = tuple(metapaths)
        self.retrieval_modes = retrieval_modes
        self.show_values = show_values
        self.refresh()
        self._examples: dict[str, tuple[str, GraphPlan]] = {}
        kind = ModedPlan if retrieval_modes else GraphPlan
        for number, (question, plan) in enumerate(examples):
            try:
                valid = kind.model_validate(plan).checked(self._schema)
            except ValueError as error:
                raise InvalidInput(f"example {number}: {error}") from error
            self._examples[str(number)] = question, valid
        self._index = BM25Index.build(
            [Node(at, text=example) for at, (example, _) in self._examples.items()]
        )

    def refresh(self) -> None:
        """Read the schema of the graph again, after it was changed."""
        self._schema = self.store.schema()
        # A reply is held against the form of a plan and the schema, and what is wrong
        # is what the model is told.
        is_checked = AfterValidator(self.check)
        self._adapter: TypeAdapter[Any] = (
            TypeAdapter(Annotated[ModedPlan, is_checked])
            if self.retrieval_modes
            else TypeAdapter(Annotated[GraphPlan, is_checked])
        )

    def plan(self, question: str) -> PlannerResult:
        """Ask the model for a plan; what fails is told in the result."""
        try:
            answer = ask_json(self.model, self.messages(question), self._adapter)
        except Exception as error:
            return self._failed(error)
        return self._planned(answer.value, answer.usage, answer.attempts)

    async def aplan(self, question: str) -> PlannerResult:
        """Do what `plan` does without blocking the event loop."""
        try:
            messages = await asyncio.to_thread(self.messages, question)
            answer = await aask_json(self.model, messages, self._adapter)
        except Exception as error:
            return self._failed(error)
        return self._planned(answer.value, answer.usage, answer.attempts)

    def messages(self, question: str) -> list[Message]:
        """Return the prompt: the task, the most similar examples and the question."""
        shown = self._index.search(question, _EXAMPLES).ids if self._examples else []
        examples = [self._examples[at] for at in reversed(shown)]  # the nearest last
        written = [
            (
                example_question,
                plan.model_dump_json(by_alias=True, exclude_defaults=True),
            )
            for example_question, plan in examples
        ]
        dialogue = [
            message
            for example_question, plan in written
            for message in (Message.user(example_question), Message.assistant(plan))
        ]
        after = self._told_besides()
        tokens_left = _PROMPT_TOKENS - estimate_tokens(_TASK + after)
        schema = self._schema.text(
            max(tokens_left, 60), cypher=False, values=self.show_values
        )
        return [
            Message.system(_TASK.format(schema=schema) + after),
            *dialogue,
            Message.user(question),
        ]

    def _told_besides(self) -> str:
        """Return what the model is told after the task: modes, metapaths and hints."""
        parts = [_MODES] if self.retrieval_modes else []
        if self.metapaths:
            paths = "\n".join(f"- {path}" for path in self.metapaths)
            parts.append(f"\n\nPaths that most questions follow:\n{paths}")
        if self.hints:
            parts.append(f"\n\n{self.hints}")
        return "".join(parts)

    def check(self, plan: GraphPlan) -> GraphPlan:
        """Return a plan that is valid on the graph; raises `InvalidInput` otherwise."""
        return plan.checked(self._schema)

    def _planned(self, plan: GraphPlan, usage: Usage, attempts: int) -> PlannerResult:
        details = {"tokens": usage.total_tokens, "replies": attempts}
        doubts = (f"no plan can say: {plan.cannot}",) if plan.cannot else ()
        skipped = isinstance(plan, ModedPlan) and plan.retrieval_mode == "skip"
        if skipped or not plan.begins:
            problem = "; ".join(doubts) or "nothing that a plan says fits the question"
            return PlannerResult(None, problem=problem, details=details, doubts=doubts)
        return PlannerResult(plan, details=details, doubts=doubts)

    def _failed(self, error: Exception) -> PlannerResult:
        chat_error = as_chat_error(error, self.model.name)
        no_reply = getattr(chat_error, "reason", "") != "invalid_reply"
        details = {
            "tokens": usage_of(error).total_tokens,
            **({"error": str(chat_error)} if no_reply else {}),
        }
        return PlannerResult(None, problem=str(chat_error), details=details)
