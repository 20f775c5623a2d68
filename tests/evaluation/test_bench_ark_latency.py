"""The benchmark of ARK's agents measures what it says: agents that explore, and models that take their time."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from benchmarks import bench_ark_latency as bench

from graphret.errors import GraphretError

pytest.importorskip("langgraph")


def test_delays_are_within_their_bounds_and_drawn_anew_for_each_reply() -> None:
    models = [bench.Simulated(agent) for agent in range(3)]
    delays = [model.delay("why", step) for model in models for step in range(bench.STEPS)]
    assert all(bench.FASTEST <= delay <= bench.SLOWEST for delay in delays)
    assert len(set(delays)) == len(delays)
    assert delays == [model.delay("why", step) for model in models for step in range(bench.STEPS)]
    assert models[0].seconds("why") == sum(delays[: bench.STEPS])
    assert bench.Simulated(0, waits=False).seconds("why") == 0.0


def test_every_system_explores_and_selects_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "_NODES", 200)
    models = [bench.Simulated(agent, 4, waits=False) for agent in range(2)]
    found = {}
    for name, system in bench.systems(*bench.graph()).items():
        stages = asyncio.run(system(models, "the old stone"))["stages"]
        summary = next(stage for stage in stages if stage["name"] == "explore")
        assert (summary["agents"], summary["steps"], summary["stopped"]) == (2, 8, {"finished": 2}), name
        found[name] = next(stage["ranking"] for stage in stages if stage["name"] == "vote")
    assert len(found) == 3
    assert len({str(ranking) for ranking in found.values()}) == 1


def test_agents_that_fail_are_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "_NODES", 200)
    for system in bench.systems(*bench.graph()).values():
        with pytest.raises(GraphretError, match="failed"):
            asyncio.run(system([bench.Simulated(0, 2, waits=False)], "no such words"))  # nothing is shown to select


def test_the_policy_answers_the_questions_of_the_load_in_every_system() -> None:
    store, index, asked = bench.films()
    assert len(set(asked)) == bench.QUESTIONS
    replies: Any = {}
    for name, system in bench.systems(store, index).items():
        models = [bench.Explorer(agent, replies, waits=False) for agent in range(2)]
        for question in asked[:3]:
            stages = asyncio.run(system(models, question))["stages"]
            summary = next(stage for stage in stages if stage["name"] == "explore")
            assert summary["stopped"] == {"finished": 2}, name
            assert next(stage["ranking"] for stage in stages if stage["name"] == "vote"), question
        thought = sum(len(model.thought) for model in models)
        assert thought == (len(replies) if name == "core" else 0)  # the same replies, whoever asks


async def test_a_question_is_measured_against_its_own_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "FASTEST", 0.001)
    monkeypatch.setattr(bench, "SLOWEST", 0.002)
    store, index, asked = bench.films()
    system = bench.systems(store, index)["core"]
    models = [bench.Explorer(agent, {}) for agent in range(2)]
    took: dict[str, float] = {}

    async def slower(given: Any, question: str) -> None:
        start = time.perf_counter()
        await system(given, question)
        await asyncio.sleep(0.05)  # longer than its models together
        took[question] = time.perf_counter() - start

    of_all, of_slowest = await bench.together(slower, models, asked[:5])
    waited = {question: [model.waited[question] for model in models] for question in asked[:5]}
    assert len(took) == 5
    assert of_all[0] >= min(took[question] / sum(waited[question]) for question in took) > 1.0
    assert of_slowest == sorted(of_slowest)
    assert all(slowest > each for slowest, each in zip(of_slowest, of_all, strict=True))
