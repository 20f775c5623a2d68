"""The package as it is imported."""

from __future__ import annotations

import doctest
import importlib

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
