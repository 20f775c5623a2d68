"""Plans without a model: names found, paths read, several names joined, and how far the plan is to be trusted."""

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
        *(Node(name, ("paper",), name) for name in ("Slow Muons", "Fast Muons", "Glass Flow", "Deep Glass")),
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
        Edge("Slow Muons", "has_topic", "Particle physics"),
        Edge("Fast Muons", "has_topic", "Particle physics"),
        Edge("Glass Flow", "has_topic", "Materials"),
    ],
)
QUESTIONS = {
    "Which papers did Ada Ott write?": {"Slow Muons", "Deep Glass"},
    "Who wrote Glass Flow?": {"Bo Berg", "Cy Cole"},
    "What are the topics of the papers that Cy Cole wrote?": {"Particle physics", "Materials"},
    "Which papers are cited by Deep Glass?": {"Glass Flow"},
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
    return {match.id for match in find_matches(planned.plan, planner.store, planned.bindings)}


@pytest.mark.parametrize("engine", ["memory", "ladybug"])
def test_questions_become_plans_that_find_their_answers(engine: str, tmp_path: Path) -> None:
    store: Any = PAPERS
    names: Any = None
    if engine == "ladybug":
        store, names = LadybugStore(tmp_path / "g.lbug"), BM25Index.of_store(PAPERS)
        store.upsert(PAPERS.graph.nodes, [edge for block in PAPERS.edges() for edge in block])
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
    assert PathPlanner(FILMS, aliases=own).plan(question) == PathPlanner(FILMS, aliases=ALIASES).plan(question)


def test_what_the_question_names_is_no_answer() -> None:
    planner = PathPlanner(FILMS, aliases=ALIASES)
    planned = planner.plan("which films share a director with Citizen Kane")
    assert planned.plan is not None
    found = [match.id for match in find_matches(planned.plan, FILMS, planned.bindings)]
    assert "Citizen Kane" not in found
    assert "The Trial" in found


def test_a_name_that_is_misspelled_is_linked_by_its_likeness() -> None:
    planned = PathPlanner(FILMS).plan("who directed 'Citizen Cane'")
    assert planned.plan is not None
    assert "Citizen Kane" in next(iter(planned.bindings.values()))


def test_what_no_path_says_is_left_to_the_text_and_risk_follows_the_fit() -> None:
    planner = PathPlanner(PAPERS)
    sure = planner.plan("Who wrote Glass Flow?").plan
    doubtful = planner.plan("Which reactor measurements with tungsten probes does Glass Flow replicate?").plan
    assert sure is not None
    assert doubtful is not None
    assert (sure.risk_level, sure.target.relevance_text) == ("aggressive", "")
    assert doubtful.risk_level in ("weak", "no_trade")
    assert "tungsten" in doubtful.target.relevance_text


@pytest.mark.parametrize("question", ["", "?", "who", "\ud800", "x" * 10_000, "what is the meaning of life"])
def test_a_question_without_a_name_has_no_plan_and_says_so(question: str) -> None:
    planned = PathPlanner(PAPERS).plan(question)
    assert planned.plan is None
    assert planned.problem


def test_what_is_malformed_is_refused(tmp_path: Path) -> None:
    with LadybugStore(tmp_path / "g.lbug") as store, pytest.raises(InvalidInput, match="names"):
        PathPlanner(store)
    bad = tmp_path / "bad.yaml"
    bad.write_text("- a\n")
    for aliases in ({"Movie": 3}, bad, tmp_path / "absent.yaml"):
        with pytest.raises(InvalidInput, match="aliases"):
            PathPlanner(PAPERS, aliases=aliases)  # type: ignore[arg-type]
