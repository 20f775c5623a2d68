"""`ArkRetriever` as LangChain sees it; what it shares with `SageRetriever` is tested there."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests
from langgraph_parts import FULL, INDEX, QUESTION, STORE, models
from pydantic import ValidationError

from graphret.ark import Ark, ArkSettings, Run
from langchain_graphret import ArkRetriever, ScriptedExplorer, to_hit


def retriever(model: Any = None, **options: Any) -> ArkRetriever:
    options.setdefault("settings", FULL)
    return ArkRetriever(models() if model is None else model, STORE, INDEX, **options)


class TestRetrieverSuite(RetrieversIntegrationTests):
    """LangChain's own suite."""

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return ArkRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"model": ScriptedExplorer(), "store": STORE, "index": INDEX}

    @property
    def retriever_query_example(self) -> str:
        return "which films were directed by [Bob Bell]"


async def test_it_returns_what_the_core_does_with_its_reasons() -> None:
    expected = Ark(models(), STORE, INDEX, settings=FULL).retrieve(QUESTION, 4)
    for found in (retriever(k=4).invoke(QUESTION), await retriever(k=4).ainvoke(QUESTION)):
        assert list(map(to_hit, found)) == expected.hits


def test_agents_steps_models_and_runs_can_be_set() -> None:
    runs: list[Run] = []
    one = retriever(models()[0], n_agents=2, settings=ArkSettings(max_steps=2), on_run=runs.append, fill=False)
    assert one.invoke(QUESTION) != []  # nobody selected anything, so that the fallback answers
    assert [session.stop for session in runs[0].sessions] == ["steps", "steps"]


def test_malformed_constructions_are_refused() -> None:
    for wrong, named in (({"model": "gpt-4o"}, "model"), ({"n_agents": 0}, "n_agents"), ({"depth": 3}, "depth")):
        with pytest.raises(ValidationError, match=named):
            retriever(**wrong)
