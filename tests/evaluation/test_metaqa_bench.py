"""MetaQA: its questions read, and exploring agents measured on a graph small enough to know the answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripted_parts import FILMS

from graphret.errors import InvalidInput
from graphret.evaluation import bench_metaqa
from graphret.evaluation.metaqa import load_questions

ASKED = {
    1: [
        ("who directed [Dawn]", "Ann Ames", "movie_to_director"),
        ("which films are about [sunrise]", "Dawn", "tag_to_movie"),
        ("when was [Dusk] released", "2001", "movie_to_year"),
        ("what language is [Dusk] in", "German|Danish", "movie_to_language"),
    ],
    2: [
        ("who directed the films starred by [Di Dunn]", "Ann Ames|Gus Gray", "actor_to_movie_to_director"),
        ("which movies have the same director of [Dawn]", "Dusk", "movie_to_director_to_movie"),
        ("when did the movies written by [Nobody Known] release", "1998", "writer_to_movie_to_year"),
    ],
    3: [("who directed films for the writer of [Dawn]", "Gus Gray", "movie_to_writer_to_movie_to_director")],
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "kb.txt").write_text("\n".join(FILMS), encoding="utf-8")
    for hops, asked in ASKED.items():
        folder = tmp_path / f"{hops}-hop"
        (folder / "vanilla").mkdir(parents=True)
        lines = [f"{question}\t{answers}\n" for question, answers, _ in asked]
        (folder / "vanilla" / "qa_dev.txt").write_text("".join(lines), encoding="utf-8")
        (folder / "qa_dev_qtype.txt").write_text("".join(f"{kind}\n" for *_, kind in asked), encoding="utf-8")
    return tmp_path


def test_a_question_comes_without_brackets_with_its_entity_answers_and_path(data: Path) -> None:
    one = load_questions(data, 2)[1]
    assert one.text == "which movies have the same director of Dawn"
    assert (one.entity, one.gold) == ("Dawn", {"Dusk"})
    assert one.path == (("directed_by", True), ("directed_by", False))
    (data / "2-hop" / "qa_dev_qtype.txt").unlink()
    assert load_questions(data, 2)[1].path == ()


def test_agents_are_measured_beside_flat_search(data: Path) -> None:
    result = bench_metaqa(data)
    rows = result["rows"]
    assert list(rows) == ["1-hop/bm25", "1-hop/ark", "2-hop/bm25", "2-hop/ark", "3-hop/bm25", "3-hop/ark"]
    assert {name: rows["1-hop/ark"][name] for name in ("hit@1", "hit@5", "recall@20", "mrr")} == {
        "hit@1": 100.0,
        "hit@5": 100.0,
        "recall@20": 87.5,  # Danish is not in the graph
        "mrr": 100.0,
    }
    assert rows["2-hop/ark"]["hit@1"] == pytest.approx(66.67)
    assert rows["3-hop/ark"]["hit@1"] == 100.0
    assert rows["3-hop/bm25"]["hit@1"] == 0.0
    questions = {f"{hops}-hop/questions": n for hops, n in ((1, 4), (2, 3), (3, 1))}
    assert result["counts"] | {"nodes": 0} == {"nodes": 0, "edges": 21, "agents": 1, **questions}
    assert "not by a language model" in result["notes"][0]


def test_plans_are_measured_beside_flat_search(data: Path) -> None:
    result = bench_metaqa(data, method="grasp", planner="paths")
    rows = result["rows"]
    assert [rows[f"{hops}-hop/grasp"]["hit@1"] for hops in (1, 2, 3)] == [100.0, pytest.approx(66.67), 100.0]
    assert list(rows)[:2] == ["1-hop/bm25", "1-hop/grasp"]
    assert result["seconds"]["plan_1-hop"] > 0


def test_the_oracle_reaches_whatever_lies_at_the_end_of_the_path(data: Path) -> None:
    result = bench_metaqa(data, policy="oracle", hops=[2])
    row = result["rows"]["2-hop/ark"]
    assert (row["any"], row["first"], row["all"]) == (100.0, 100.0, 100.0)
    assert (result["counts"]["2-hop/questions"], result["counts"]["2-hop/answerable"]) == (3, 2)
    (data / "2-hop" / "qa_dev_qtype.txt").unlink()
    with pytest.raises(InvalidInput, match="oracle"):
        bench_metaqa(data, policy="oracle", hops=[2])
