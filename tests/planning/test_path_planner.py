"""Plans without a model: names found, paths read, names joined, and confidence."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from graphret.errors import InvalidInput
from graphret.graphs import read_metaqa
from graphret.graphs.example import ALIASES, KB
from graphret.planning import PathPlanner, Planner, find_matches
from graphret.search.bm25 import BM25Index
from graphret.stores import MemoryStore
from graphret.stores.ladybug import LadybugStore
from graphret.types import Edge, Node

PAPERS = MemoryStore.of(
    [
        *(Node(name, ("institution",), name) for name in ("Ulm University", "Delft")),
        *(Node(name, ("author",), name) for name in ("Ada Ott", "Bo Berg", "Cy Cole")),
        *(
            Node(name, ("paper",), name)
            for name in ("Slow Muons", "Fast Muons", "Glass Flow", "Deep Glass")
        ),
        *(Node(name, ("topic",), name) for name in ("Particle physics", "Materials")),
    ],
    [
        Edge("Ada Ott", "affiliated_with", "Ulm University"),
        Edge("Bo Berg", "affiliated_with", "Ulm University"),
        Edge("Cy Cole", "affiliated_with", "Delft"),
        Edge("Ada Ott", "writes", "Slow Muons"),
        Edge("Bo Berg", "writes", "Glass Flow"),
        Edge("Cy Cole", "writes", "Fast Muons"),
        Edge("Cy Cole", "writes", "Glass Flow"),
        Edge("Ada Ott", "writes", "Deep Glass"),
        Edge("Fast Muons", "cites", "Slow Muons"),
        Edge("Deep Glass", "cites", "Glass Flow"),
        Edge("Glass Flow", "cites", "Fast Muons"),
        Edge("Slow Muons", "has_topic", "Particle physics"),
        Edge("Fast Muons", "has_topic", "Particle physics"),
        Edge("Glass Flow", "has_topic", "Materials"),
    ],
)
QUESTIONS = {
    "Which papers did Ada Ott write?": {"Slow Muons", "Deep Glass"},
    "Who wrote Glass Flow?": {"Bo Berg", "Cy Cole"},
    "What are the topics of the papers that Cy Cole wrote?": {
        "Particle physics",
        "Materials",
    },
    "Which papers cite Glass Flow?": {"Deep Glass"},
    "Which papers are cited by Glass Flow?": {"Fast Muons"},
    "Which papers does Glass Flow cite?": {"Fast Muons"},
    "Which institution is the author of Fast Muons affiliated with?": {"Delft"},
    "papers by authors from Ulm University": {"Slow Muons", "Glass Flow", "Deep Glass"},
    "Who are the co-authors of Cy Cole?": {"Bo Berg"},
    "papers about Particle physics by authors affiliated with Delft": {"Fast Muons"},
    "Which papers did Ada Ott write about Particle physics?": {"Slow Muons"},
}


def answers(planner: PathPlanner, question: str) -> set[str]:
    planned = planner.plan(question)
    assert planned.plan is not None, planned.problem
    planned.plan.checked(planner.store.schema())
    return {
        match.id
        for match in find_matches(planned.plan, planner.store, planned.bindings)
    }


@pytest.mark.parametrize("engine", ["memory", "ladybug"])
def test_questions_become_plans_that_find_their_answers(
    engine: str, tmp_path: Path
) -> None:
    store: Any = PAPERS
    names: Any = None
    if engine == "ladybug":
        store, names = LadybugStore(tmp_path / "g.lbug"), BM25Index.of_store(PAPERS)
        store.upsert(
            PAPERS.graph.nodes, [edge for block in PAPERS.edges() for edge in block]
        )
    planner = PathPlanner(store, names)
    assert isinstance(planner, Planner)
    assert {question: answers(planner, question) for question in QUESTIONS} == QUESTIONS
    question = next(iter(QUESTIONS))
    assert asyncio.run(planner.aplan(question)) == planner.plan(question)
    if engine == "ladybug":
        store.close()


FILMS = read_metaqa(KB).store()


def test_aliases_say_what_general_english_does_not(tmp_path: Path) -> None:
    question = "which flicks did Orson Welles helm"
    assert "directed_by" in str(PathPlanner(FILMS, aliases=ALIASES).plan(question).plan)
    own = tmp_path / "aliases.yaml"
    own.write_text("directed_by: [helm]\nMovie: [flick]\n")
    assert PathPlanner(FILMS, aliases=own).plan(question) == PathPlanner(
        FILMS, aliases=ALIASES
    ).plan(question)


def test_what_the_question_names_is_no_answer_and_may_be_misspelled() -> None:
    found = answers(
        PathPlanner(FILMS, aliases=ALIASES),
        "which films share a director with 'Citizen Cane'",
    )
    assert "Citizen Kane" not in found
    assert "The Trial" in found


@pytest.mark.parametrize(
    ("question", "levels", "about"),
    [
        ("Who wrote Glass Flow?", {"aggressive"}, ""),
        (
            (
                "Which reactor measurements with tungsten probes does Glass Flow"
                " replicate?"
            ),
            {"weak", "no_trade"},
            "tungsten",
        ),
        ("Which papers are next to Glass Flow?", {"weak"}, ""),  # it cites and is cited
        (
            "Which topics has Deep Glass?",
            {"weak", "no_trade"},
            "",
        ),  # it has none, those around it have
    ],
)
def test_risk_follows_the_fit_and_what_else_fits(
    question: str, levels: set[str], about: str
) -> None:
    plan = PathPlanner(PAPERS).plan(question).plan
    assert plan is not None
    assert plan.risk_level in levels
    assert about in plan.target.relevance_text


@pytest.mark.parametrize(
    "question", ["", "?", "who", "\ud800", "x" * 10_000, "what is the meaning of life"]
)
def test_a_question_without_a_name_has_no_plan_and_says_so(question: str) -> None:
    planned = PathPlanner(PAPERS).plan(question)
    assert planned.plan is None
    assert planned.problem


def test_what_is_malformed_is_refused(tmp_path: Path) -> None:
    with (
        LadybugStore(tmp_path / "g.lbug") as store,
        pytest.raises(InvalidInput, match="names"),
    ):
        PathPlanner(store)
    bad = tmp_path / "bad.yaml"
    bad.write_text("- a\n")
    for aliases in ({"Movie": 3}, bad, tmp_path / "absent.yaml"):
        with pytest.raises(InvalidInput, match="aliases"):
            PathPlanner(PAPERS, aliases=aliases)  # type: ignore[arg-type]
