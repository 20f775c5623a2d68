"""What is learned of questions and answers: which path the words of a question mean."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_helpers import graphret

from graphret.errors import InvalidInput
from graphret.evaluation import bench_paths
from graphret.planning import PathPlanner, find_matches
from graphret.stores import MemoryStore
from graphret.training import LabelledQuestion, train_paths
from graphret.types import Edge, Node

PEOPLE = [
    f"{first} {last}"
    for first in ("Ada", "Bo", "Cy")
    for last in ("Ott", "Berg", "Cole")
]
STORE = MemoryStore.of(
    [
        *(Node(name, ("P",), name) for name in PEOPLE),
        *(
            Node(f"{kind}{i}", (kind,), f"{kind} {i}")
            for kind in ("X", "Y")
            for i in range(len(PEOPLE))
        ),
    ],
    [
        Edge(name, relation, f"{kind}{i}")
        for i, name in enumerate(PEOPLE)
        for relation, kind in (("r1", "X"), ("r2", "Y"))
    ],
)
#: No word says which relation is meant; answers do.
ASKED = [
    LabelledQuestion(f"{word} {name}", frozenset({f"{kind}{i}"}))
    for i, name in enumerate(PEOPLE)
    for word, kind in (("foo", "X"), ("bar", "Y"))
]


def found(planner: PathPlanner, question: str) -> set[str]:
    planned = planner.plan(question)
    assert planned.plan is not None
    return {match.id for match in find_matches(planned.plan, STORE, planned.bindings)}


def test_words_are_learned_from_answers_alone(tmp_path: Path) -> None:
    scorer = train_paths(PathPlanner(STORE), ASKED[:12])
    scorer.save(tmp_path / "paths.npz")
    planner = PathPlanner(STORE, scorer=tmp_path / "paths.npz")
    assert [found(planner, one.text) for one in ASKED[12:]] == [
        one.gold for one in ASKED[12:]
    ]
    with pytest.raises(InvalidInput, match="expected a correct answer"):
        train_paths(
            PathPlanner(STORE), [LabelledQuestion("foo Ada Ott", frozenset({"absent"}))]
        )


def test_the_command_writes_what_a_planner_reads(tmp_path: Path) -> None:
    STORE.save(tmp_path / "graph")
    lines = [
        json.dumps({"question": one.text, "answers": sorted(one.gold)}) for one in ASKED
    ]
    (tmp_path / "qa.jsonl").write_text("\n".join(lines))
    out = tmp_path / "paths.npz"
    told = graphret(
        "train",
        "paths",
        "--graph",
        tmp_path / "graph",
        "--qa",
        tmp_path / "qa.jsonl",
        "--out",
        out,
        "--json",
    )
    assert told.code == 0, told.err
    assert found(PathPlanner(STORE, scorer=out), "bar Bo Berg") == {"Y4"}
    out.write_bytes(b"no scorer")
    with pytest.raises(InvalidInput, match="scorer"):
        PathPlanner(STORE, scorer=out)


def record(question: str, topic: str, hits: list[int], results: list[int]) -> str:
    queries = [
        f'MATCH (x1:Paper {{name: "Glass"}})-[r1:{relation}]-(x2:Paper) RETURN x2.name'
        " AS name"
        for relation in ("CITES", "EXTENDS")
    ]
    queries.append(
        f'MATCH (x1:Topic {{name: "{topic}"}})-[r1:HAS_TOPIC]-(x2:Paper) RETURN x2.name'
        " AS name"
    )
    told = {
        "question": question,
        "answer_ids": [1, 2],
        "cypher_queries": queries,
        "hits": hits,
        "num_results": results,
    }
    return json.dumps(told)


def test_candidate_queries_are_ranked(tmp_path: Path) -> None:
    data, train = tmp_path / "test.jsonl", tmp_path / "train.jsonl"
    data.write_text(record("papers that zorp “Glass”", "Tin", [0, 2, 1], [2, 4, 40]))
    lines = [
        record(f"papers that zorp “Glass” number {i}", "Tin", [0, 2, 1], [2, 4, 40])
        for i in range(4)
    ]
    train.write_text("\n".join(lines))
    result = bench_paths(data, train)
    assert result["rows"]["fewest"] == {
        "top_is_best": 0.0,
        "hit@1": 0.0,
        "recall@20": 100.0,
    }
    assert result["rows"]["trained"] == {
        "top_is_best": 100.0,
        "hit@1": 50.0,
        "recall@20": 100.0,
    }
    assert list(bench_paths(data)["rows"]) == ["untrained", "fewest"]
    data.write_text('{"question": "?"}')
    with pytest.raises(InvalidInput, match="line 1"):
        bench_paths(data)
