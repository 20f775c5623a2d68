"""SPARK: a reply with one good query in it is a plan, whatever is around the query."""

from __future__ import annotations

import html
import json

import pytest

from graphret.spark.plan import read_plan

PAPERS = "MATCH (p:Paper)\nRETURN p"
NAMED = "MATCH (p:Paper) WHERE p.name = 'a; b. C' RETURN p"
OTHER = "MATCH (q) RETURN q"
ARROW = "MATCH (a)-[:WROTE]->(p) WHERE p.year < 3 AND a.name = 'x' RETURN p"
LINES = (
    "MATCH (p:Paper)\nRETURN\n  p.name AS name,\n  count(p) AS n\nORDER BY n\nLIMIT 3"
)


def found_in(reply: str) -> list[str]:
    plan, problem = read_plan(reply, 4)
    assert plan is not None, problem
    return [str(step) for step in plan.steps]


@pytest.mark.parametrize(
    "around",
    [
        "Answer: {}",
        "**Answer:** {}",
        "Final answer:\n\n{}",
        "The query is {}.",
        "Cypher: {}",
        "~~~cypher\n{}\n~~~",
        "Sure:\n~~~\n{}\n~~~\nIt's all of them; really.",
        "````opencypher\n{}\n````",
        "```cypher {}```",
        "```{}```",
        "Run `{}`, or `" + OTHER + "`.",
        "Begin with `MATCH (p)`. The query:\n{}",
        'As asked, "{}" finds them.',
        "{}; " + OTHER,
        "{}; // done",
        "{}. It's all of them; really.",
        "{} -- all papers",
        "{} # all papers",
        "{}\nThis query finds all papers.",
        "{}\n(This finds papers)",
        "{}\n\nNote: it's slow",
        "{}\nExplanation: papers",
        "1. {}\n2. " + OTHER,
        "- {}\n- it finds papers",
        "> {}",
        "neo4j> {};\n+---+",
        "EXPLAIN {}",
        "With this as a start,\n{}",
        "{}<|im_end|>",
        "{}<|eot_id|>" + OTHER,
        "{}<end_of_turn>",
        "{}<|endoftext|>Human: next",
        "<s>{}</s>",
        "\ufeff{}",
        "<answer>{}</answer>",
        "<cypher>\n{}\n</cypher> ok",
        "<think>" + OTHER + "?</think>\n{}",
        "$$\\boxed{{{}}}$$",
    ],
)
@pytest.mark.parametrize("query", [PAPERS, NAMED, LINES])
def test_a_query_is_found_in_what_is_written_around_it(around: str, query: str) -> None:
    assert found_in(around.format(query)) == [query]


@pytest.mark.parametrize(
    "value",
    [
        {"cypher": PAPERS},
        {"query": PAPERS},
        {"cypher": PAPERS.splitlines()},
        {"cypher": {"query": PAPERS}},
        {"answer": {"cypher": PAPERS}},
        {"thought": "I want papers", "statement": PAPERS},
        {"steps": PAPERS},
        {"steps": [PAPERS]},
        {"steps": {"cypher": PAPERS}},
        {"plan": {"steps": [{"cypher": PAPERS}]}, "why": OTHER},
        {"step1": {"type": "cypher", "query": PAPERS}},
        [{"cypher": PAPERS}],
        [PAPERS],
        PAPERS,
        {"name": "run_cypher", "arguments": {"query": PAPERS}},
        {"name": "run_cypher", "arguments": json.dumps({"query": PAPERS})},
    ],
)
def test_a_query_is_found_in_json_of_any_form(value: object) -> None:
    said = json.dumps(value)
    for reply in (said, f"Sure:\n```json\n{said}\n```", html.escape(said)):
        assert found_in(reply) == [PAPERS]


@pytest.mark.parametrize(
    ("reply", "query"),
    [
        (f'{{"steps": [{{"cypher": "{PAPERS}"}},]}}', PAPERS),
        (f'{{"steps": [{{"cypher": """{PAPERS}"""}}]}}', PAPERS),
        (f"{{'steps': [{{'cypher': \"{NAMED}\"}}]}}", NAMED),
        (f'{{steps: [{{cypher: "{NAMED}"}} // papers\n]}}', NAMED),
        (f'{{"steps": [{{"cypher": "{NAMED}"}}', NAMED),
        (f'{{"steps": [{{"cypher": "{NAMED}"}}}}', NAMED),
        (
            '{"steps": [{"cypher": "MATCH (n)\\nWHERE n.name = "Heat" RETURN n"}]}',
            'MATCH (n)\nWHERE n.name = "Heat" RETURN n',
        ),
        (
            '{"cypher": "MATCH (n) WHERE n.name = \\\'Heat\\\' RETURN n"}',
            "MATCH (n) WHERE n.name = 'Heat' RETURN n",
        ),
    ],
)
def test_a_query_is_found_in_json_that_is_broken(reply: str, query: str) -> None:
    assert found_in(reply) == [query]


@pytest.mark.parametrize(
    ("written", "query"),
    [
        (html.escape(ARROW), ARROW),
        (html.escape(html.escape(ARROW)).replace("&amp;", "&"), ARROW),
        (ARROW.replace("'x'", "‘x’"), ARROW),
        (ARROW.replace("'x'", "'AT&amp;T'"), ARROW.replace("'x'", "'AT&amp;T'")),
        ("MATCH (p) # the papers\nRETURN p", "MATCH (p)\nRETURN p"),
        ("`MATCH (n:`Big Label`) RETURN n`", "MATCH (n:`Big Label`) RETURN n"),
        ("match (p)\nreturn p", "match (p)\nreturn p"),
    ],
)
def test_the_text_of_a_query_is_mended_where_it_cannot_be_meant(
    written: str, query: str
) -> None:
    assert found_in(written) == [query]


@pytest.mark.parametrize(
    "query",
    [
        f"{PAPERS}\nUNION\n{OTHER}",
        "CALL {\n  MATCH (p)\n  RETURN p\n}\nRETURN p",
        "WITH 3 AS n\nMATCH (p)\nRETURN p LIMIT n",
        "MATCH (p)\nRETURN {\n  name: p.name,\n  year: p.year\n} AS m",
        "MATCH (a), (b)\nWHERE (a) -- (b) AND a.x > 1.5\nRETURN a // pairs",
        "MATCH (p)\nRETURN p.a AS a,\n  CASE WHEN p.x THEN 1 ELSE 2 END AS b",
    ],
)
def test_all_of_a_query_is_kept(query: str) -> None:
    assert found_in(query) == [query]
    assert found_in(json.dumps({"steps": [{"cypher": query}]})) == [query]
