"""The contents of the wheel, and how it works without optional packages."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ["graphret", "langchain_graphret", "llama_index_graphret"]

pytestmark = pytest.mark.xdist_group("packaging")


def run(
    command: Sequence[str | Path], **options: object
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, **options
    )  # type: ignore[call-overload,no-any-return]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source distribution as a publisher's is."""
    out = tmp_path_factory.mktemp("dist")
    done = run([sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT])
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list(out.glob("graphret-*.tar.gz"))) == 1
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def empty(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with only the wheel and its dependencies."""
    folder = tmp_path_factory.mktemp("environment")
    uv = [sys.executable, "-m", "uv"]
    assert (
        run([*uv, "venv", "--python", sys.executable, folder / "venv"]).returncode == 0
    )
    python = (
        folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    )
    install = [
        *uv,
        "pip",
        "install",
        "--python",
        python,
        "--constraint",
        ROOT / "constraints.txt",
        wheel,
    ]
    done = run(
        [*install, "--offline"]
    )  # what `make install` left in uv's cache, if it did
    if done.returncode:
        done = run(install)
    assert done.returncode == 0, done.stderr
    return python


def in_empty(python: Path, code: str) -> str:
    done = run([python, "-I", "-c", code], cwd=python.parent, timeout=100)
    assert done.returncode == 0, done.stderr
    return str(done.stdout).strip()


def test_the_wheel_is_the_tree_of_three_packages_with_what_is_not_code(
    wheel: Path,
) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    top = {name.split("/")[0] for name in names}
    assert sorted(name for name in top if not name.endswith(".dist-info")) == PACKAGES
    assert len(top) == len(PACKAGES) + 1
    data = {
        f"graphret/demo/{path.name}"
        for path in (ROOT / "shared/graphret/demo").iterdir()
        if path.is_file()
    }
    assert any(name.endswith(".jsonl.gz") for name in data)
    assert data | {f"{package}/py.typed" for package in PACKAGES} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    folders = [
        ROOT / "shared/graphret",
        ROOT / "langchain_graphret",
        ROOT / "llama_index_graphret",
    ]
    tree = {
        path.relative_to(folder.parent).as_posix()
        for folder in folders
        for path in folder.rglob("*.py")
        if "neo4j_server" not in path.parts  # it serves this repository's tests
    }
    assert {name for name in names if name.endswith(".py")} == tree


def test_the_core_works_in_an_empty_environment(empty: Path) -> None:
    out = in_empty(
        empty,
        "import importlib.util, graphret\nfor name in ('torch', 'transformers',"
        " 'llama_index', 'langchain_core', 'pandas', 'pyarrow', 'usearch'):\n    assert"
        " importlib.util.find_spec(name) is None, name\nrows = [['Analytical Engine',"
        " 'Charles Babbage']]\ntable = graphret.Table(['Machine', 'Designer'], rows,"
        " title='Machines')\nperson = graphret.Document('He was born in London.',"
        " title='Charles Babbage', id='babbage')\ngraph ="
        " graphret.SageGraph.build([table, person],"
        " encoder=None)\ngraph.save('graph')\ngraph ="
        " graphret.SageGraph.load('graph')\nfound = graph.retriever().retrieve('Where"
        " was the designer of the Analytical Engine born?', k=2)\nprint([str(evidence)"
        " for hit in found if hit.id == 'babbage#0' for evidence in hit.evidence])",
    )
    assert "MENTIONS" in out
    assert "build" in run([empty.with_name("graphret"), "--help"]).stdout


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            "import llama_index_graphret as a; a.SageRetriever",
            ["graphret[llama-index]", "llama-index-core"],
        ),
        (
            "import langchain_graphret as a; a.SageRetriever",
            ["graphret[langchain]", "langchain-core"],
        ),
        (
            "graphret.SageGraph.build([graphret.Document('A')], encoder='default')",
            ["graphret[offline]"],
        ),
        (
            "open('t.csv', 'w').write('id,name\\n1,A\\n');"
            " from graphret.graphs import read_tables; read_tables('t.csv')",
            ["graphret[import]", "pyarrow"],
        ),
    ],
)
def test_what_is_not_installed_is_named_with_its_extra(
    empty: Path, code: str, said: list[str]
) -> None:
    code = (
        f"try:\n    {code}\nexcept graphret.errors.MissingDependency as error:\n   "
        " print(error)"
    )
    out = in_empty(empty, f"import graphret, graphret.errors\n{code}")
    assert not [one for one in said if one not in out]
    assert "\n" not in out or "encoder" in code


def test_the_core_with_all_that_it_needs_is_small(empty: Path) -> None:
    code = "import graphret; print(graphret.__path__[0])"
    packages = Path(in_empty(empty, code)).parent
    size = sum(file.stat().st_size for file in packages.rglob("*") if file.is_file())
    assert size < 350_000_000


def test_constraints_pin_one_version_of_everything_and_name_no_place() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = [line.split(" ;")[0].split("==") for line in lines]
    assert all(len(pin) == 2 and all(pin) for pin in pinned)
    assert len({name for name, _ in pinned}) == len(lines)
    assert not any("/" in line or line.startswith(("-", "#")) for line in lines)
