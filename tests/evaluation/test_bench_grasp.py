"""GRASP's stages, added one after another."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from cli_helpers import graphret

from graphret.errors import InvalidInput
from graphret.evaluation import bench_grasp
from graphret.evaluation.grasp import rerankers_of
from graphret.graphs import import_graph, read_metaqa
from graphret.graphs.example import ALIASES, KB
from graphret.grasp import Grasp, GraspSettings
from graphret.planning import PathPlanner, PlannerResult
from graphret.planning.graph_plan import ModedPlan
from graphret.rerank import CausalReranker
from graphret.search import BM25Index
from graphret.training import LabelledQuestion
from graphret.types import Hit

STORE = read_metaqa(KB).store()
INDEX = BM25Index.of_store(STORE)
PEOPLE = sorted(
    (node.name for block in STORE.nodes(["Director"]) for node in block),
)
DIRECTED = {
    name: frozenset(
        edge.source for edge in STORE.neighbors([name], relations=["directed_by"])
    )
    for name in PEOPLE
}
QUESTIONS = [
    LabelledQuestion(f"which films did {name} direct", DIRECTED[name])
    for name in PEOPLE
]


class Counting:
    """A planner that counts how often it is asked."""

    name = "counting"

    def __init__(self) -> None:
        self.inner, self.asked = PathPlanner(STORE, aliases=ALIASES), 0

    def plan(self, question: str) -> PlannerResult:
        self.asked += 1
        return self.inner.plan(question)

    async def aplan(self, question: str) -> PlannerResult:
        return self.plan(question)


class Knowing:
    """A reranker that knows the answers."""

    name = "knowing"

    def scores(self, query: str, hits: Sequence[Hit]) -> list[float]:
        [gold] = [one.gold for one in QUESTIONS if one.text == query]
        return [float(hit.id in gold) for hit in hits]


def test_each_stage_adds_to_the_one_above_it_and_the_planner_is_asked_once() -> None:
    planner = Counting()
    grasp = Grasp(planner, STORE, INDEX, settings=GraspSettings(rerank_weight=1.0))
    result = bench_grasp(grasp, QUESTIONS, rerankers={"+ reranker": Knowing()})
    assert planner.asked == len({question.text for question in QUESTIONS})
    rows = result["rows"]
    assert list(rows) == ["text alone", "graph alone", "+ text", "+ reranker"]
    assert rows["text alone"]["hit@1"] < rows["graph alone"]["hit@1"]
    assert rows["+ reranker"]["hit@1"] == 100
    gain = result["intervals"]["+ reranker"]["hit@1"]["gain"]
    assert gain == pytest.approx(100 - rows["+ text"]["hit@1"], abs=0.02)
    assert list(result["intervals"]) == ["+ text", "+ reranker"]
    plans = sum(sum(risks.values()) for risks in result["plans"].values())
    assert plans == len(QUESTIONS)


def test_the_fused_row_is_what_grasp_answers() -> None:
    grasp = Grasp(PathPlanner(STORE, aliases=ALIASES), STORE, INDEX)
    result = bench_grasp(grasp, QUESTIONS[:10])
    hits = [grasp.retrieve(question.text, 1).ids[0] for question in QUESTIONS[:10]]
    right = sum(
        hit in question.gold for hit, question in zip(hits, QUESTIONS[:10], strict=True)
    )
    assert result["rows"]["+ text"]["hit@1"] == 10 * right


def test_plans_are_counted_by_what_they_found_and_how_far_they_go_by_the_graph() -> (
    None
):
    class Moded(Counting):
        def plan(self, question: str) -> PlannerResult:
            found = super().plan(question)
            if found.plan is None:
                return found
            said = found.plan.model_dump() | {"retrieval_mode": "graph_strict"}
            return replace(found, plan=ModedPlan.model_validate(said))

    grasp = Grasp(Moded(), STORE, INDEX)
    life = LabelledQuestion("what is the meaning of life", frozenset({"Orson Welles"}))
    result = bench_grasp(grasp, [*QUESTIONS[:3], life])
    assert result["modes"] == {"graph_strict": 3}
    assert result["plans"]["0"] == {"invalid": 1}
    assert sum(result["plans"]["at most 10"].values()) == 3


def test_fusions_are_chosen_on_other_questions_first() -> None:
    worst = GraspSettings.from_dict(
        GraspSettings().to_dict() | {"weights": {"kind": "static", "graph": 0.0}}
    )
    grasp = Grasp(PathPlanner(STORE, aliases=ALIASES), STORE, INDEX, settings=worst)
    plain = bench_grasp(grasp, QUESTIONS)["rows"]["+ text"]
    chosen = bench_grasp(
        grasp,
        QUESTIONS,
        validation=QUESTIONS,
        rerankers={"+ reranker": Knowing()},
    )["rows"]
    assert chosen["+ text"]["hit@1"] > plain["hit@1"]
    assert chosen["+ reranker"]["hit@1"] == 100
    with pytest.raises(InvalidInput, match="at least one"):
        bench_grasp(grasp, [])


def test_a_trained_reranker_stands_below_the_model_that_it_was_made_of(
    tmp_path: Path,
) -> None:
    told = {"model": "base", "judgement": {"instruction": "Judge."}, "max_tokens": 64}
    (tmp_path / "writer.json").write_text(json.dumps(told))
    rerankers = rerankers_of(tmp_path)
    assert list(rerankers) == ["+ zero-shot reranker", "+ trained reranker"]
    assert all(isinstance(one, CausalReranker) for one in rerankers.values())
    assert [*rerankers_of("cross-encoder/ms-marco-MiniLM-L-12-v2")] == ["+ reranker"]


def test_the_command_prints_the_ladder(tmp_path: Path) -> None:
    graph = tmp_path / "films"
    import_graph(KB, str(graph))
    asked = tmp_path / "questions.jsonl"
    asked.write_text(
        "".join(
            json.dumps({"question": question.text, "answer_ids": sorted(question.gold)})
            + "\n"
            for question in QUESTIONS[:12]
        )
    )
    command = ("bench", "grasp", "--graph", graph, "--questions", asked)
    ran = graphret(*command, "--validation", asked, "--json", "-")
    assert ran.code == 0, ran.err
    assert list(ran.json["rows"]) == ["text alone", "graph alone", "+ text"]
    assert ran.json["counts"] == {"questions": 12, "validation": 12}
    shown = graphret(*command).out
    assert "gains are over the row above" in shown
