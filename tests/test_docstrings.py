"""The examples in docstrings give what they say."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ["shared/graphret", "llama_index_graphret", "langchain_graphret"]


def modules_with_examples() -> list[str]:
    """Return the names of the modules whose docstrings have examples."""
    return [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removeprefix("shared.")
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if ">>> " in path.read_text(encoding="utf-8")
    ]


@pytest.mark.parametrize("module", modules_with_examples())
def test_examples_in_docstrings_give_what_they_say(module: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(module))
    assert failed == 0
