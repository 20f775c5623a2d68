"""The documentation runs as it stands.

The ``python`` blocks of a page are one program, run from top to bottom in an empty folder, with no network for models.
A ``text`` block straight behind one is what it prints, where a line ``…`` stands for any lines. A block below the
comment ``<!-- no-run: reason -->`` is left out.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BETWEEN = "\x1e"

_BLOCK = re.compile(
    r"(?P<skip><!-- no-run(?P<reason>[^>]*)-->\s*\n)?^(?P<fence>```+)python[^\n]*\n(?P<code>.*?)^(?P=fence)[ ]*\n"
    r"(?:\s*^```text[^\n]*\n(?P<out>.*?)^```[ ]*$)?",
    re.MULTILINE | re.DOTALL,
)
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


@dataclass
class Page:
    """The blocks of a page that are run: where each begins, its code, and what it should print."""

    path: Path
    blocks: list[tuple[int, str, str | None]] = field(default_factory=list)
    unexplained: list[int] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Page:
        page, text = cls(path), path.read_text(encoding="utf-8")
        for found in _BLOCK.finditer(text):
            line = text.count("\n", 0, found.start("code")) + 1
            if not found["skip"]:
                page.blocks.append((line, found["code"], found["out"]))
            elif not found["reason"].strip(" :"):
                page.unexplained.append(line)
        return page

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    def program(self) -> str:
        """The blocks as one program; tracebacks show the lines of the page."""
        pieces = [
            f"exec(compile({chr(10) * (line - 1) + code!r}, {self.name!r}, 'exec'))" for line, code, _ in self.blocks
        ]
        return f"\nprint({BETWEEN!r}, flush=True)\n".join(pieces)


def agrees(expected: str, printed: str) -> bool:
    pattern = "\n".join(
        r"(?:.*\n)*?.*" if line.strip() == "…" else re.escape(line.rstrip())
        for line in expected.strip("\n").split("\n")
    )
    return re.fullmatch(pattern, "\n".join(line.rstrip() for line in printed.strip("\n").split("\n"))) is not None


WITH_CODE = [page for page in map(Page.read, PAGES) if page.blocks]


def run_in(folder: Path, program: str) -> list[str]:
    """Run the program of a page in an empty folder, and return what each block prints."""
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "GRAPHRET_CACHE": str(folder / "cache")}
    (folder / "empty").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder / "empty",
        env={**os.environ, **offline, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(BETWEEN)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
def test_a_page_runs_and_prints_what_it_says(page: Page, tmp_path: Path) -> None:
    for (line, _, expected), printed in zip(page.blocks, run_in(tmp_path, page.program()), strict=True):
        if expected is not None:
            assert agrees(expected, printed), f"{page.name}:{line} prints\n{printed}"


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("neo4j_empty")
def test_spark_runs_on_neo4j_as_on_a_file(
    tmp_path: Path, neo4j_uri: str, neo4j_auth: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Page.read(ROOT / "docs/tutorials/spark.md")
    for variable, value in zip(("NEO4J_USERNAME", "NEO4J_PASSWORD"), neo4j_auth or (), strict=False):
        monkeypatch.setenv(variable, value)
    there = page.program().replace("movies.lbug", neo4j_uri)
    assert neo4j_uri in there
    for (line, _, expected), printed in zip(page.blocks, run_in(tmp_path, there), strict=True):
        assert expected is None or agrees(expected, printed), f"{page.name}:{line} prints\n{printed}"


def test_what_is_left_out_has_a_reason() -> None:
    assert not {page.name: page.unexplained for page in map(Page.read, PAGES) if page.unexplained}


def test_the_readme_and_the_tutorials_have_code() -> None:
    names = {page.name for page in WITH_CODE}
    assert "README.md" in names
    assert {page.relative_to(ROOT).as_posix() for page in (ROOT / "docs/tutorials").glob("*.md")} <= names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_relative_links_lead_somewhere(page: Path) -> None:
    links = {link for link in _LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link}
    assert not {link for link in links if not (page.parent / link).exists()}
