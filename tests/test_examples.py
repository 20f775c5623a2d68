"""Every script of `examples/` runs, offline, and prints the line that proves it."""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
NEO4J = "neo4j_existing_graph.py"
TORCH = "llama_index_expand_my_retriever.py"

#: What a line of each script's output proves: that it found more than words do.
PRINTS = {
    "llama_index_query_engine.py": r"The model was told of 35 days: True",
    TORCH: r"ledger\.md · .*MENTIONS→ Ledger.*",
    "langchain_retriever.py": r"ledger\.md",
    "langgraph_ark_agent.py": r"Abbie Cornish .*'source': 'Bright Star'.*",
    "langgraph_spark_graph.py": r"ran: .*<-\[:directed_by\]-.*",
    NEO4J: r"Boris Magaš · .*Boris Magaš -DESIGNED→ Stadion Poljud.*",
    "plan_without_model.py": r" *\| Blue Steel \| Near Dark -directed_by→ .*",
    "own_ranking.py": r".* · Ledger · .*services row 1.*",
    "own_store.py": r"Seal S7 · .*Seal S7 -FITS→ Pump P1",
    "own_file_reader.py": r"Ledger · .*Checkout -DEPENDS_ON→ Ledger",
    "chat_model.py": r"asked: 2 failed: 0",
    "service_client.py": r"ledger\.md#0 \[.*'neighbor'.*\]",
}


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., None]:
    """Run a script in this process, in an empty folder, and look for its line."""

    def run(name: str, *arguments: str) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        printed = capsys.readouterr().out
        assert re.search(f"^{PRINTS[name]}$", printed, re.MULTILINE), printed

    return run


@pytest.mark.xdist_group("torch")  # which takes seconds to import
@pytest.mark.parametrize("name", sorted(PRINTS.keys() - {NEO4J}))
def test_a_script_prints_what_proves_that_it_worked(
    name: str, run: Callable[..., None]
) -> None:
    run(name)


def test_the_script_for_neo4j(run: Callable[..., None], neo4j_address: str) -> None:
    run(NEO4J, neo4j_address)


def test_each_script_is_listed_and_run() -> None:
    scripts = {path.name for path in EXAMPLES.glob("*.py")}
    assert scripts == PRINTS.keys()
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert scripts == set(re.findall(r"\((\w+\.py)\)", listed))
