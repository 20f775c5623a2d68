"""`LLMPlanner`: one call of a model turns a question into a plan over the graph (GRASP,
section 3.1, appendix B).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, TypeAdapter

from graphret.contracts import implements
from graphret.errors import InvalidInput
from graphret.llm import ChatModel, Message, Usage, aask_json, ask_json
from graphret.llm.errors import as_chat_error, usage_of
from graphret.planning.graph_plan import GraphPlan
from graphret.planning.planner import Planned
from graphret.schema.text import estimate_tokens
from graphret.search.bm25 import BM25Index
from graphret.stores.base import GraphStore
from graphret.types import Node

_TASK = """\
You translate a question into a plan over a graph. You do not answer it, and you cannot see the graph: the plan is run \
on it, and the nodes that the target stands for are the answer.

{schema}

A plan is one JSON object:
- "anchors": what the question mentions by name or by description. "var": a new variable such as "A1"; "text": the \
words that say which node is meant; "label": its label; "match_mode": "name" for a name, "doc" for a description.
- "hops": the relations between anchors, nodes in between, and the target. "from": a variable; "rel": a relation of \
the schema, or a list of which any will do; "to_var": a variable; "to_label": its label; "negated": true for a \
relation that there must not be, as in "not expressed in"; several in a row are a path that there must not be. The \
direction does not matter.
- "target": "var": the variable of the answer; "labels": the labels that it may bear; "relevance_text": what its own \
text should say that no hop expresses, or "" where the hops say all.
- "where": for a variable a condition on properties of the schema, such as {{"T": {{"year": {{"$gte": 2010}}}}}}; \
"order": {{"by": a property of the target, "descending": true, "limit": 5}} where the question asks for the most or \
the last; with "of": a variable, "by" is its property, or, left out, how many nodes there are of it, as in "most \
orders". Leave both out otherwise.
- "risk_level": how far the plan is to be trusted beside a search by text: "no_trade" where you are not sure of it, \
"weak" where it says little of the question, "normal", or "aggressive" where it says all of it.

Every variable is joined to the target by hops. Use the labels, relations and properties above and no others."""

#: Examples that a model is shown, and about the most tokens of the system message: of a
#: large schema the rarest goes.
_EXAMPLES, _PROMPT_TOKENS = 5, 3_000


class LLMPlanner:
    """Write plans with a chat model: one call a question, one more where the first plan
    cannot be used.

    The prompt is made of the schema of any graph, in four parts as in the paper: role,
    schema, structure of a plan, and how far it is to be trusted. A plan that is invalid
    still after its repair is none: what it is fused with answers alone.

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
    show_values
        Whether the model may see values of the graph.

    Raises
    ------
    InvalidInput
        When an example is no valid plan on the graph, or an argument is malformed.

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
        show_values: bool = False,
    ) -> None:
        if not implements(model, ChatModel):
            raise InvalidInput(
                f"model: expected a chat model, got {type(model).__name__}"
            )
        self.model = model
        self.store = store
        self.hints = hints
        self.show_values = show_values
        self.refresh()
        self._examples: dict[str, tuple[str, GraphPlan]] = {}
        for number, (question, plan) in enumerate(examples):
            try:
                valid = GraphPlan.model_validate(plan).checked(self._schema)
            except ValueError as error:
                raise InvalidInput(f"example {number}: {error}") from error
            self._examples[str(number)] = question, valid
        self._index = BM25Index.build(
            [Node(at, text=asked) for at, (asked, _) in self._examples.items()]
        )

    def refresh(self) -> None:
        """Read the schema of the graph again, after it was changed."""
        self._schema = self.store.schema()
        # A reply is held against the form of a plan and the schema, and what is wrong
        # is what the model is told.
        self._adapter: TypeAdapter[GraphPlan] = TypeAdapter(
            Annotated[GraphPlan, AfterValidator(self.check)]
        )

    def plan(self, question: str) -> Planned:
        """Ask the model for a plan; what fails is told in the result."""
        try:
            answer = ask_json(self.model, self.messages(question), self._adapter)
        except Exception as error:
            return self._failed(error)
        return self._planned(answer.value, answer.usage, answer.attempts)

    async def aplan(self, question: str) -> Planned:
        """Do what `plan` does without blocking the event loop."""
        try:
            messages = await asyncio.to_thread(self.messages, question)
            answer = await aask_json(self.model, messages, self._adapter)
        except Exception as error:
            return self._failed(error)
        return self._planned(answer.value, answer.usage, answer.attempts)

    def messages(self, question: str) -> list[Message]:
        """Return what the model is asked: the task, the examples that are most like the
        question, and the question.
        """
        shown = self._index.search(question, _EXAMPLES).ids if self._examples else []
        examples = [self._examples[at] for at in reversed(shown)]  # the nearest last
        written = [
            (asked, plan.model_dump_json(by_alias=True, exclude_defaults=True))
            for asked, plan in examples
        ]
        dialogue = [
            said
            for asked, plan in written
            for said in (Message.user(asked), Message.assistant(plan))
        ]
        after = f"\n\n{self.hints}" if self.hints else ""
        left = _PROMPT_TOKENS - estimate_tokens(_TASK + after)
        schema = self._schema.text(max(left, 60), cypher=False, values=self.show_values)
        return [
            Message.system(_TASK.format(schema=schema) + after),
            *dialogue,
            Message.user(question),
        ]

    def check(self, plan: GraphPlan) -> GraphPlan:
        """Return a plan that is valid on the graph; an `InvalidInput` says what is
        wrong with it.
        """
        return plan.checked(self._schema)

    def _planned(self, plan: GraphPlan, usage: Usage, attempts: int) -> Planned:
        return Planned(
            plan, details={"tokens": usage.total_tokens, "replies": attempts}
        )

    def _failed(self, error: Exception) -> Planned:
        told = as_chat_error(error, self.model.name)
        no_reply = getattr(told, "reason", "") != "invalid_reply"
        details = {
            "tokens": usage_of(error).total_tokens,
            **({"error": str(told)} if no_reply else {}),
        }
        return Planned(None, problem=str(told), details=details)
