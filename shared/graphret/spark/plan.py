"""A SPARK plan, read out of whatever a model replied."""

from __future__ import annotations

import re
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter

from graphret.llm.schema import plain_schema
from graphret.llm.structured import parse_json

# Reasoning, one that was begun before the reply and one that never ended included.
_THOUGHT = re.compile(
    r"\A.*</think(?:ing)?>|<think(?:ing)?>.*\Z", re.DOTALL | re.IGNORECASE
)
_END_MARK = re.compile(r"<\|[\w ]+\|>.*|</s>.*|<end_of_turn>.*|\[/INST\].*", re.DOTALL)
_FENCE = re.compile(
    r"```(?:(?:cypher|json|sql|text|neo4j)\b)?\s*(.*?)(?:```|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_STATEMENT_END = re.compile(r";[ \t]*(?:\n|\Z)")
# Words that open a query, where something of a query follows, and those that open one
# of its clauses.
_OPENING = re.compile(
    r"^[ \t]*(?:(?:OPTIONAL["
    r" \t]+)?MATCH\s*(?:\w+\s*=\s*)?(?:\(|(?:all)?shortestPath\b|ANY\b|ALL\b)|"
    r"UNWIND\s+\S+.*\bAS\b|CALL\s*(?:\{|\(|[\w.]+\()|WITH\s+.+\bAS\b|(?:CREATE|MERGE)\s*\(|RETURN\s)",
    re.IGNORECASE | re.MULTILINE,
)
_CLAUSE = re.compile(
    r"\s*(?:(?:MATCH|OPTIONAL|WHERE|WITH|RETURN|ORDER|LIMIT|SKIP|UNWIND|CALL|UNION|AND|OR|NOT|CREATE|MERGE|SET|DELETE|"
    r"DETACH|REMOVE)\b|//|[)}|,(\[-])",
    re.IGNORECASE,
)


def bare_query(text: str) -> str:
    """Return the first Cypher query in a text, without fences, remarks around it and
    end marks; empty if none.

    Examples
    --------
    >>> bare_query("Here you are:\\n```cypher\\nMATCH (n) RETURN n;\\n```\\nIt returns
    all nodes.") 'MATCH (n) RETURN n'
    """
    text = _without_chatter(text)
    for piece in [*(match[1] for match in _FENCE.finditer(text)), text]:
        opening = _OPENING.search(piece)
        if opening is not None:
            paragraphs = re.split(
                r"\n\s*\n", piece[opening.start() :].partition("```")[0]
            )
            kept = [paragraphs[0]]
            for paragraph in paragraphs[1:]:
                if not _CLAUSE.match(paragraph):
                    break
                kept.append(paragraph)
            return _STATEMENT_END.split("\n".join(kept))[0].strip()
    return ""


def _without_chatter(text: str) -> str:
    return _END_MARK.sub("", _THOUGHT.sub("", text)).strip()


def _query(value: Any) -> Any:
    return bare_query(value) or value if isinstance(value, str) else value


class SemanticStep(BaseModel):
    """Search nodes of a label by what they say (semantic candidate generation, section
    2.2).
    """

    text: Annotated[str, Field(min_length=1)]
    label: str | None = None
    k: Annotated[int, Field(ge=1)] = 20


class CypherStep(BaseModel):
    """Run a query (structural expansion, section 2.2)."""

    cypher: Annotated[str, Field(min_length=1), BeforeValidator(_query)]


class SparkPlan(BaseModel):
    """What is done for a question: a few steps, of which the last one finds the answer.

    The ids that step 1 found are ``$step1`` in the queries of later steps.
    """

    steps: Annotated[list[CypherStep | SemanticStep], Field(min_length=1)]

    def __str__(self) -> str:
        return " → ".join(
            (
                step.cypher
                if isinstance(step, CypherStep)
                else f"search {step.label or 'all'}: {step.text!r}"
            )
            for step in self.steps
        )


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
    text = _without_chatter(reply)
    plan, problem = parse_json(text, _ADAPTER)
    if plan is None:
        query = bare_query(text)
        if not query:
            return None, f"no plan in the reply: {problem}"
        plan = SparkPlan(steps=[CypherStep(cypher=query)])
    return plan.model_copy(update={"steps": plan.steps[:max_steps]}), ""
