"""A SPARK plan, read out of whatever a model replied."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, Field, TypeAdapter

from graphret.llm.schema import plain_schema
from graphret.llm.structured import parse_json
from graphret.spark.cypher_step import CypherStep
from graphret.spark.reply import bare_query, without_chatter
from graphret.spark.semantic_step import SemanticStep


class SparkPlan(BaseModel):
    """What is done for a question: a few steps, of which the last one finds the answer.

    The ids that step 1 found are ``$step1`` in the queries of later steps.
    """

    steps: Annotated[list[CypherStep | SemanticStep], Field(min_length=1)]

    def __str__(self) -> str:
        return " → ".join(map(str, self.steps))


_ADAPTER = TypeAdapter(SparkPlan)


@cache
def plan_schema(max_steps: int) -> dict[str, Any]:
    """The JSON schema of a plan, for endpoints that hold a model to one; a weak one
    writes steps for ever without.
    """
    schema = plain_schema(_ADAPTER.json_schema())
    schema["properties"]["steps"]["maxItems"] = max_steps
    return schema


def read_plan(reply: str, max_steps: int) -> tuple[SparkPlan | None, str]:
    """Return the plan in a reply, or `None` and why there is none.

    A reply that is a query, or has one in it, is a plan of one step; of several queries
    the first one counts.
    """
    text = without_chatter(reply)
    plan, problem = parse_json(text, _ADAPTER)
    if plan is None:
        query = bare_query(text)
        if not query:
            return None, f"no plan in the reply: {problem}"
        plan = SparkPlan(steps=[CypherStep(cypher=query)])
    return plan.model_copy(update={"steps": plan.steps[:max_steps]}), ""
