"""Agents by their number, steps, operations and merges, and how they use their tools."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cli_helpers import graphret

from graphret.ark import (
    Ark,
    ArkSession,
    ArkSettings,
    Recorder,
    ScriptedExplorer,
    Toolbox,
    read_runs,
)
from graphret.errors import InvalidInput
from graphret.evaluation import bench_ark, tool_use
from graphret.evaluation.ark import merged
from graphret.graphs import import_graph, read_metaqa
from graphret.graphs.example import ALIASES, KB
from graphret.search import BM25Index
from graphret.training import LabelledQuestion

STORE = read_metaqa(KB).store()
INDEX = BM25Index.of_store(STORE)
ASKED = [
    LabelledQuestion("who directed Zero Dark Thirty", frozenset({"Kathryn Bigelow"})),
    LabelledQuestion("what is the meaning of life", frozenset({"Orson Welles"})),
]


def ark_of(settings: ArkSettings) -> Ark:
    return Ark(ScriptedExplorer(aliases=ALIASES), STORE, INDEX, settings=settings)


def test_selections_are_merged_as_in_table_3() -> None:
    lists = (["a", "b"], ["c", "b"], ["b"])
    agents = [ArkSession("q", "") for _ in lists]
    for agent, selected in zip(agents, lists, strict=True):
        agent.selection = selected
    assert merged(agents) == ["b", "a", "c"]
    assert merged(agents, "ordering") == ["a", "b", "c"]
    orders = {tuple(merged(agents, "random", seed)) for seed in range(20)}
    assert len(orders) > 2
    assert {tuple(sorted(one)) for one in orders} == {("a", "b", "c")}


def test_agents_are_measured_by_number_steps_and_operations() -> None:
    result = bench_ark(
        ark_of, ASKED, agents=(1, 2), steps=(1, 8), explorations=("full", "off")
    )
    rows = result["rows"]
    assert rows["2 agents, 8 steps"] == {"hit@1": 50.0, "recall@20": 50.0, "mrr": 50.0}
    assert rows["1 agent, 1 steps"]["hit@1"] == 0  # it takes two to search and select
    assert rows["2 agents, 8 steps, off"]["hit@1"] == 0  # the name alone is found
    assert {"2 agents, 8 steps, ordering", "2 agents, 8 steps, random"} <= rows.keys()
    used = result["tools"]
    assert used["full"]["successful"]["trajectories"] == 2
    assert used["full"]["successful"]["only_search"] == 0
    assert used["off"]["all"]["explorations"] == {"0": 4}
    assert used["off"]["all"]["search_share"] == 100
    with pytest.raises(InvalidInput, match="at least one"):
        bench_ark(ark_of, [])


def test_runs_of_other_questions_are_refused(tmp_path: Path) -> None:
    ark = ark_of(ArkSettings(n_agents=1))
    ark.on_run = Recorder(tmp_path / "runs.jsonl")
    ark.explore(ASKED[0].text)
    runs = read_runs(tmp_path / "runs.jsonl")
    assert tool_use(runs)["all"]["trajectories"] == 1
    with pytest.raises(
        InvalidInput, match="got one of 'who directed Zero Dark Thirty'"
    ):
        tool_use(runs, {"another": frozenset({"x"})})


@pytest.mark.parametrize(
    ("exploration", "given", "says"),
    [
        ("off", {}, "no tool"),
        ("no_query", {"query": "x"}, "query.*The tool takes node, node_types"),
        ("no_filters", {"relation_types": ["directed_by"]}, "takes node, query, k"),
    ],
)
def test_what_is_switched_off_is_neither_offered_nor_run(
    exploration: str, given: dict[str, object], says: str
) -> None:
    settings = ArkSettings(exploration=exploration)  # type: ignore[arg-type]
    toolbox = Toolbox(STORE, INDEX, settings)
    offered = {tool.name: tool.parameters for tool in toolbox.tools}
    explore = offered.get("explore_neighborhood", {"properties": {}})
    assert not {*given} & {*explore["properties"]}
    said = toolbox.run("explore_neighborhood", {"node": "Near Dark", **given})
    assert said.failed
    assert re.search(says, said.text)
    if exploration != "off":
        assert not toolbox.run("explore_neighborhood", {"node": "Near Dark"}).failed
    with pytest.raises(InvalidInput, match="exploration: expected one of full"):
        ArkSettings(exploration="some")  # type: ignore[arg-type]


def test_the_command_prints_the_map(tmp_path: Path) -> None:
    films, qa = tmp_path / "films", tmp_path / "qa.jsonl"
    import_graph(KB, str(films))
    lines = [{"question": one.text, "answers": [*one.gold]} for one in ASKED]
    qa.write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    ran = graphret(
        *("bench", "ark", "--graph", films, "--qa", qa, "--aliases", ALIASES),
        *("--agents", "1,2", "--steps", "8", "--json", "-"),
    )
    assert ran.json["rows"]["1 agent, 8 steps"]["hit@1"] == 50, ran.err
