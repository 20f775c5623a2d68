"""A SPARK plan, read out of whatever a model replied."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, Field, TypeAdapter, model_validator

from graphret.llm.json_text import read_object
from graphret.llm.schema import plain_schema
from graphret.llm.structured import parse_json
from graphret.spark.cypher_step import CypherStep
from graphret.spark.reply import bare_query
from graphret.spark.semantic_step import SemanticStep


class SparkPlan(BaseModel):
    """What is done for a question: a few steps, of which the last one finds the answer.

    The ids that step 1 found are ``$step1`` in the queries of later steps.
    """

    steps: Annotated[list[CypherStep | SemanticStep], Field(min_length=1)]

    @model_validator(mode="before")
    @classmethod
    def _steps_of_any_form(cls, written: Any) -> Any:
        steps = _steps_in(written)
        return {"steps": steps} if steps else written

    def __str__(self) -> str:
        return " → ".join(map(str, self.steps))


def _steps_in(written: Any) -> list[Any]:
    """The steps in JSON of any form: a plan, a step, a query, or a list of these."""
    written = read_object(written)
    if isinstance(written, str):
        query = bare_query(written)
        return [{"cypher": query}] if query else []
    if isinstance(written, Mapping):
        if isinstance(written.get("text"), str) or "cypher" in written:
            return [written]
        written = [written["steps"]] if "steps" in written else [*written.values()]
        nested = [part for part in written if isinstance(part, Mapping | list)]
        return _steps_in(nested) or _steps_in(
            [part for part in written if isinstance(part, str)]
        )
    parts = written if isinstance(written, list) else []
    return [step for part in parts for step in _steps_in(part)]


_ADAPTER = TypeAdapter(SparkPlan)


@cache
def plan_schema(max_steps: int) -> dict[str, Any]:
    """The JSON schema of a plan, which also keeps weak models from endless steps."""
    schema = plain_schema(_ADAPTER.json_schema())
    schema["properties"]["steps"]["maxItems"] = max_steps
    return schema


def read_plan(reply: str, max_steps: int) -> tuple[SparkPlan | None, str]:
    """Return the plan in a reply, or `None` and why there is none.

    A reply that is a query, or has one in it, is a plan of one step; of several queries
    the first one counts.
    """
    plan, problem = parse_json(reply, _ADAPTER)
    if plan is None:
        query = bare_query(reply)
        if not query:
            return None, f"no plan in the reply: {problem}"
        plan = SparkPlan(steps=[CypherStep(cypher=query)])
    return plan.model_copy(update={"steps": plan.steps[:max_steps]}), ""
