"""Plans, read out of whatever a model replies."""

from __future__ import annotations

import pytest
from spark_parts import plan

from graphret.spark.plan import read_plan

QUERY = "MATCH (p:Paper)\nRETURN p"


@pytest.mark.parametrize(
    "reply",
    [
        plan(QUERY),
        f"Here is the plan:\n```json\n{plan(QUERY)}\n```\nIt returns papers.",
        f"<think>Shall I write MATCH (n) RETURN n?</think>{plan(QUERY)}<|im_end|>\n<|im_start|>user",
        f"so I should</think>\n{QUERY}",
        f"Sure!\n```cypher\n{QUERY};\n```\nor:\n```\nMATCH (q) RETURN q\n```",
        f"{QUERY}\n\nThis query finds all papers.",
        f"{QUERY};\nMATCH (q) RETURN q;</s>",
        plan(f"```cypher\n{QUERY}\n```"),
        f'{{"steps": [{{"cypher": "{QUERY}"}}], "why": "asked"}}'.replace("\n", "\\n"),
    ],
)
def test_the_query_is_found_and_the_chatter_is_not_run(reply: str) -> None:
    found, problem = read_plan(reply, 4)
    assert found is not None, problem
    assert [step.cypher for step in found.steps] == [QUERY]


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "I cannot.",
        "<think>MATCH (n) RETURN n",
        "{}",
        '{"steps": []}',
        '{"steps": [{"text": ""}]}',
        "Match the papers.",
    ],
)
def test_what_is_no_plan_is_said(reply: str) -> None:
    assert read_plan(reply, 4) == (None, read_plan(reply, 4)[1])
    assert read_plan(reply, 4)[1]


def test_paragraphs_of_a_query_belong_to_it_and_steps_are_bounded() -> None:
    query = "MATCH (p:Paper)\n\nWHERE p.name = 'a; b'\n\nRETURN p"
    found, _ = read_plan(f"{query}\n\nNote that it is slow.", 4)
    assert found is not None
    assert found.steps[0].cypher == query.replace("\n\n", "\n")
    found, _ = read_plan(plan(*[QUERY] * 9), 4)
    assert found is not None
    assert len(found.steps) == 4
