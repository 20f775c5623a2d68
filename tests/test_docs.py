"""The documentation runs as it stands.

The ``python`` blocks of a page are one program, run from top to bottom in an empty
folder, with no network for models. A ``text`` block straight behind one is what it
prints, where a line ``…`` stands for any lines. A block below the comment ``<!--
no-run: reason -->`` is left out.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]

_BLOCK = re.compile(
    r"(?P<skip><!--"
    r" no-run(?P<reason>[^>]*)-->\s*\n)?^(?P<fence>```+)python[^\n]*\n(?P<code>.*?)^(?P=fence)["
    r" ]*\n"
    r"(?:\s*^```text[^\n]*\n(?P<out>.*?)^```[ ]*$)?",
    re.MULTILINE | re.DOTALL,
)
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


@dataclass
class Page:
    """The blocks of a page to run: where each begins, its code and expected output."""

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


def agrees(expected: str, printed: str) -> bool:
    pattern = "\n".join(
        r"(?:.*\n)*?.*" if line.strip() == "…" else re.escape(line.rstrip())
        for line in expected.strip("\n").split("\n")
    )
    return (
        re.fullmatch(
            pattern,
            "\n".join(line.rstrip() for line in printed.strip("\n").split("\n")),
        )
        is not None
    )


WITH_CODE = [page for page in map(Page.read, PAGES) if page.blocks]
#: Pages whose code wants a server, at this address.
IN_NEO4J, ADDRESS = ("docs/tutorials/graph_of_others.md",), "neo4j://localhost"


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., None]]:
    """Run the blocks of a page as one module, and compare what each prints."""
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    monkeypatch.setenv("GRAPHRET_CACHE", str(tmp_path / "cache"))
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, module.__name__, module)

    def run(page: Page, old: str = "movies.lbug", new: str = "movies.lbug") -> None:
        for line, code, expected in page.blocks:
            lines = "\n" * (line - 1) + code.replace(
                old, new
            )  # tracebacks show the lines of the page
            exec(compile(lines, str(page.path), "exec"), module.__dict__)
            printed = capsys.readouterr().out
            assert expected is None or agrees(expected, printed), (
                f"{page.name}:{line} prints\n{printed}"
            )

    yield run
    module.__dict__.clear()  # databases that a page leaves open are closed


@pytest.mark.xdist_group("torch")  # which many pages import, and which takes seconds
@pytest.mark.parametrize(
    "page",
    [page for page in WITH_CODE if page.name not in IN_NEO4J],
    ids=lambda page: page.name,
)
def test_a_page_runs_and_prints_what_it_says(
    page: Page, run: Callable[..., None]
) -> None:
    run(page)


def test_spark_runs_on_neo4j_as_on_a_file(
    run: Callable[..., None], neo4j_address: str
) -> None:
    page = Page.read(ROOT / "docs/tutorials/spark.md")
    page.blocks = [
        block for block in page.blocks if "link_similar" not in block[1]
    ]  # which needs an encoder
    assert any("movies.lbug" in code for _, code, _ in page.blocks)
    run(page, new=neo4j_address)


@pytest.mark.parametrize("name", IN_NEO4J)
def test_a_page_about_a_graph_in_neo4j_runs_on_one(
    name: str, run: Callable[..., None], neo4j_address: str
) -> None:
    run(Page.read(ROOT / name), old=ADDRESS, new=neo4j_address)


def test_the_readme_and_the_tutorials_have_code_and_what_is_left_out_has_a_reason() -> (
    None
):
    names = {page.name for page in WITH_CODE}
    assert {
        "README.md",
        *(
            f"docs/tutorials/{page.name}"
            for page in (ROOT / "docs/tutorials").glob("*.md")
        ),
    } <= names
    assert not {
        page.name: page.unexplained
        for page in map(Page.read, PAGES)
        if page.unexplained
    }


@pytest.mark.parametrize(
    "page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_relative_links_lead_somewhere(page: Path) -> None:
    links = {
        link
        for link in _LINK.findall(page.read_text(encoding="utf-8"))
        if "://" not in link
    }
    assert not {link for link in links if not (page.parent / link).exists()}
