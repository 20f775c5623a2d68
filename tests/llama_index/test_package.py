"""The package as it is imported."""

from __future__ import annotations

import doctest
import importlib
import subprocess
import sys

import pytest

import llama_index_graphret


def test_every_public_name_is_there() -> None:
    assert sorted(llama_index_graphret.__all__) == llama_index_graphret.__all__
    for name in llama_index_graphret.__all__:
        assert getattr(llama_index_graphret, name).__doc__


@pytest.mark.parametrize("module", ["chat", "core_llm"])
def test_the_examples_of_docstrings_run(module: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(f"llama_index_graphret.{module}"))
    assert tried
    assert not failed


def test_without_llama_index_it_says_what_to_install() -> None:
    program = "import sys; sys.modules['llama_index'] = None; import llama_index_graphret"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert "pip install 'graphret[llama-index]'" in done.stderr


def test_it_needs_neither_torch_nor_langchain() -> None:
    program = (
        "import sys, llama_index_graphret; print({'torch', 'langchain_core'} & {m.split('.')[0] for m in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
