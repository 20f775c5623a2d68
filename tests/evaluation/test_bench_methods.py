"""Plans, agents and the guard measured on graphs and queries small enough to know the
answer.
"""

from __future__ import annotations

import csv
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from oracle import measured
from rich.console import Console
from scripted_parts import FILMS

from graphret.errors import InvalidInput
from graphret.evaluation import bench_guard, bench_metaqa, bench_spark, render
from graphret.evaluation.metaqa import load_questions
from graphret.evaluation.mutations import MUTATIONS
from graphret.graphs import read_metaqa
from graphret.llm import OpenAIChat
from graphret.testing.openai_server import (
    Behaviour,
    OpenAIServer,
    Request,
    json_text,
    tool_calls,
)

ASKED = {
    1: [
        ("who directed [Dawn]", "Ann Ames", "movie_to_director"),
        ("which films are about [sunrise]", "Dawn", "tag_to_movie"),
        ("when was [Dusk] released", "2001", "movie_to_year"),
        ("what language is [Dusk] in", "German|Danish", "movie_to_language"),
    ],
    2: [
        (
            "who directed the films starred by [Di Dunn]",
            "Ann Ames|Gus Gray",
            "actor_to_movie_to_director",
        ),
        (
            "which movies have the same director of [Dawn]",
            "Dusk",
            "movie_to_director_to_movie",
        ),
        (
            "when did the movies written by [Nobody Known] release",
            "1998",
            "writer_to_movie_to_year",
        ),
    ],
    3: [
        (
            "who directed films for the writer of [Dawn]",
            "Gus Gray",
            "movie_to_writer_to_movie_to_director",
        )
    ],
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "kb.txt").write_text("\n".join(FILMS), encoding="utf-8")
    for hops, asked in ASKED.items():
        folder = tmp_path / f"{hops}-hop"
        (folder / "vanilla").mkdir(parents=True)
        lines = [f"{question}\t{answers}\n" for question, answers, _ in asked]
        (folder / "vanilla" / "qa_dev.txt").write_text("".join(lines), encoding="utf-8")
        (folder / "qa_dev_qtype.txt").write_text(
            "".join(f"{kind}\n" for *_, kind in asked), encoding="utf-8"
        )
    return tmp_path


def test_a_question_comes_without_brackets_with_its_entity_answers_and_path(
    data: Path,
) -> None:
    one = load_questions(data, 2)[1]
    assert one.text == "which movies have the same director of Dawn"
    assert (one.entity, one.gold) == ("Dawn", {"Dusk"})
    assert one.path == (("directed_by", True), ("directed_by", False))
    (data / "2-hop" / "qa_dev_qtype.txt").unlink()
    assert load_questions(data, 2)[1].path == ()


def test_agents_are_measured_beside_flat_search(data: Path) -> None:
    result = bench_metaqa(data)
    rows = result["rows"]
    assert list(rows) == [
        "1-hop/bm25",
        "1-hop/ark",
        "2-hop/bm25",
        "2-hop/ark",
        "3-hop/bm25",
        "3-hop/ark",
    ]
    assert {
        name: rows["1-hop/ark"][name] for name in ("hit@1", "hit@5", "recall@20", "mrr")
    } == {
        "hit@1": 100.0,
        "hit@5": 100.0,
        "recall@20": 87.5,  # Danish is not in the graph
        "mrr": 100.0,
    }
    assert rows["2-hop/ark"]["hit@1"] == pytest.approx(66.67)
    assert rows["3-hop/ark"]["hit@1"] == 100.0
    assert rows["3-hop/bm25"]["hit@1"] == 0.0
    questions = {f"{hops}-hop/questions": n for hops, n in ((1, 4), (2, 3), (3, 1))}
    assert result["counts"] | {"nodes": 0} == {"nodes": 0, "edges": 21, **questions}
    assert "not by a language model" in result["notes"][0]


def test_plans_are_measured_beside_flat_search(data: Path) -> None:
    result = bench_metaqa(data, method="grasp")
    rows = result["rows"]
    assert [rows[f"{hops}-hop/grasp"]["hit@1"] for hops in (1, 2, 3)] == [
        100.0,
        pytest.approx(66.67),
        100.0,
    ]
    assert list(rows)[:2] == ["1-hop/bm25", "1-hop/grasp"]
    assert result["seconds"]["plan_1-hop"] > 0


def test_the_oracle_reaches_whatever_lies_at_the_end_of_the_path(data: Path) -> None:
    found = measured(read_metaqa(data).store(), load_questions(data, 2))
    assert (found["questions"], found["any"], found["first"], found["all"]) == (
        2,
        100.0,
        100.0,
        100.0,
    )


SCHEMA = {
    "node_props": {
        "Film": [
            {"property": "title", "type": "STRING"},
            {"property": "year", "type": "INTEGER"},
        ],
        "Person": [],
    },
    "rel_props": {},
    "relationships": [{"start": "Person", "type": "DIRECTED", "end": "Film"}],
}
QUERIES = [
    "MATCH (p:Person)-[:DIRECTED]->(f:Film {title: 'Dawn'}) RETURN p",
    "MATCH (f:Film) WHERE f.year > 5 RETURN f.title",
    "MATCH (f:Film)-[:DIRECTED]->(p:Person) RETURN p",
    "MATCH (f:Film) DETACH DELETE f",
]


def test_plans_and_queries_are_counted(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"kb\.txt"):
        bench_spark(tmp_path)
    films, queries = tmp_path / "metaqa", tmp_path / "text2cypher"
    (films / "1-hop" / "vanilla").mkdir(parents=True)
    (films / "kb.txt").write_text("\n".join(FILMS))
    (films / "1-hop" / "vanilla" / "qa_dev.txt").write_text(
        "who directed [Dawn]\tAnn Ames\n"
    )
    (films / "1-hop" / "qa_dev_qtype.txt").write_text("movie_to_director\n")
    write(queries, [{"cypher": query} for query in QUERIES], SCHEMA)
    result = json.loads(json.dumps(bench_spark(tmp_path, hops=[1])))
    assert result["rows"]["queries"] == {"ran": 75.0, "refused": 25.0, "broke": 0.0}
    assert result["rows"]["mistakes"].keys() >= {
        "label",
        "relation",
        "property",
        "direction",
        "own",
    }
    assert set(result["rows"]["mistakes"].values()) == {100.0}
    assert result["rows"]["1-hop"] == {
        "hit@1": 100.0,
        "all": 100.0,
        "parsed": 100.0,
        "ran": 100.0,
        "fell_back": 0.0,
    }


CAST = {
    "node_props": {
        "Person": [
            {"property": "name", "type": "STRING"},
            {"property": "born", "type": "INTEGER"},
        ],
        "Movie": [
            {"property": "title", "type": "STRING"},
            {"property": "year", "type": "INTEGER"},
        ],
    },
    "rel_props": {"ACTED_IN": [{"property": "roles", "type": "LIST"}]},
    "relationships": [
        {"start": "Person", "type": "ACTED_IN", "end": "Movie"},
        {"start": "Person", "type": "KNOWS", "end": "Person"},
    ],
}
RIGHT = [
    (
        "MATCH (p:Person)-[r:ACTED_IN]->(m:Movie) WHERE m.year > 1990 RETURN p.name,"
        " r.roles ORDER BY p.born LIMIT 3"
    ),
    (
        "MATCH (m:Movie)<-[:ACTED_IN]-(p:Person {name: 'Ann'}) RETURN m.title, count(p)"
        " AS actors LIMIT 3"
    ),
    (
        "MATCH (a:Person)-[:KNOWS]->(b:Person) WHERE a.name STARTS WITH 'A' AND b.born"
        " < 1950 RETURN a, b LIMIT 3"
    ),
    (
        'MATCH (p:Person) WHERE EXISTS { (p)-[:ACTED_IN]->(:Movie {title: "Dawn"}) }'
        " RETURN p.name LIMIT 3"
    ),
]


def write(folder: Path, rows: list[dict[str, Any]], schema: Any) -> Path:
    folder.mkdir(exist_ok=True)
    with (folder / "text2cypher_schemas.csv").open(
        "w", encoding="utf-8", newline=""
    ) as file:
        csv.writer(file).writerows(
            [["database", "structured_schema"], ["films", repr(schema)]]
        )
    unknown = ("labels", "relations", "properties")
    with (folder / "text2cypher_x.csv").open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(
            [
                "cypher",
                "database",
                "accepted",
                "error",
                *(f"unknown_{kind}" for kind in unknown),
            ]
        )
        for row in rows:
            names = [json.dumps(row.get(kind, [])) for kind in unknown]
            error = row.get("error", "")
            out.writerow(
                [
                    row["cypher"],
                    row.get("database", "films"),
                    str(not error),
                    error,
                    *names,
                ]
            )
    return folder


@pytest.fixture
def model_queries(tmp_path: Path) -> Path:
    rows: list[dict[str, Any]] = [{"cypher": query} for query in RIGHT]
    rows += [
        {"cypher": "MATCH (n:Film) RETURN n LIMIT 1", "labels": ["Film"]},
        {"cypher": "MATCH (n:Movie) RETURN m", "error": "Variable `m` not defined"},
        {"cypher": "MATCH (n:Movie RETURN n", "error": "Invalid input 'RETURN'"},
        {
            "cypher": "CALL apoc.x() YIELD y RETURN y",
            "error": "There is no procedure `apoc.x` registered",
        },
        {"cypher": "MATCH (p:Person)<-[:ACTED_IN]-(m:Movie) RETURN p LIMIT 1"},
        {"cypher": "MATCH (m:Movie) RETURN m.born LIMIT 1"},
    ]
    return write(tmp_path / "text2cypher", rows, CAST)


def test_the_shares_and_what_they_are_shares_of(model_queries: Path) -> None:
    result = bench_guard(model_queries, mutants=4)
    assert result["name"] == "guard"
    assert result["rows"]["guard"] == {
        "false_alarms": 0.0,
        "errors_found": 100.0,
        "unknown_found": 100.0,
    }
    counts = result["counts"]
    assert counts["queries"] == 10
    assert [counts[f"guard/{name}"] for name in result["rows"]["guard"]] == [6, 2, 1]
    assert (
        counts["accepted"],
        counts["accepted/directions"],
        counts["accepted/labels"],
    ) == (7, 1, 1)
    assert result["rows"]["mutations"] == dict.fromkeys(MUTATIONS, 100.0)
    assert 0 < result["seconds"]["check_median"] < 1
    json.dumps(result)
    out = StringIO()
    Console(file=out, width=100).print(render(result))
    assert "false_alarms" in out.getvalue()
    assert (
        "accepted queries with a relation in the wrong direction: 1 of 7"
        in out.getvalue()
    )


def test_what_the_guard_gets_wrong_lowers_the_share_and_a_limit_is_of_queries(
    tmp_path: Path,
) -> None:
    rows = [
        {"cypher": "MATCH (n:Film) RETURN n LIMIT 1"},
        {"cypher": "MATCH (n:Movie) RETURN n LIMIT 1"},
        {
            "cypher": "MATCH (n:Movie) RETURN n.title LIMIT 2",
            "error": "the server refuses it",
        },
        {"cypher": "MATCH (n:Movie) RETURN n.year LIMIT 2", "properties": ["year"]},
    ]
    data = write(tmp_path / "data", rows, CAST)
    result = bench_guard(data)
    assert result["rows"]["guard"] == {
        "false_alarms": 50.0,
        "errors_found": 0.0,
        "unknown_found": 0.0,
    }
    wrong = {
        "false_alarms": "Film",
        "errors_found": "the server refuses it",
        "unknown_found": "year",
    }
    assert all(
        text in result["missed"][name][0]["message"] for name, text in wrong.items()
    )
    assert bench_guard(data, limit=2)["counts"]["queries"] == 2


@pytest.mark.parametrize("method", ["ark", "grasp", "graphraft"])
def test_a_model_answers_metaqa_in_place_of_the_rules(data: Path, method: str) -> None:
    asked: list[str] = []

    def replies(request: Request) -> Behaviour:
        asked.append(request.prompt)
        if method == "ark":
            select = [("select", {"nodes": ["Ann Ames"]}), ("finish", {})]
            search = [("global_search", {"query": "Ann Ames"})]
            return tool_calls(*(search if len(request.messages) < 3 else select))
        if method == "graphraft":
            return json_text({"names": ["Dawn"], "numbers": [1]})
        return json_text(PLAN)

    with OpenAIServer(replies) as server:
        model = OpenAIChat("tiny", server.base_url, api_key="none")
        found = bench_metaqa(data, hops=[1], method=method, model=model)
    assert any("who directed Dawn" in one for one in asked)
    assert found["rows"][f"1-hop/{method}"]["hit@1"] >= 25.0
    assert "tiny" in " ".join(found["notes"])


PLAN = {
    "anchors": [{"var": "a", "text": "Dawn", "label": "Movie"}],
    "hops": [
        {"from": "a", "rel": "directed_by", "to_var": "T", "to_label": "Director"}
    ],
    "target": {"var": "T", "labels": ["Director"]},
}
