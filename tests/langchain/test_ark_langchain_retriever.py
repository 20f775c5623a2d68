"""`ArkRetriever` as LangChain sees it; what it shares with `SageRetriever` is tested there."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests
from langgraph_parts import FULL, INDEX, QUESTION, STORE, models
from pydantic import ValidationError

from graphret.ark import Ark, ArkSettings, Run
from langchain_graphret import KEY, ArkRetriever, ScriptedExplorer, evidence_of


def retriever(model: Any = None, **options: Any) -> ArkRetriever:
    options.setdefault("settings", FULL)
    return ArkRetriever(models() if model is None else model, STORE, INDEX, **options)


def ids(documents: Any) -> list[Any]:
    return [document.id for document in documents]


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
        assert [(one.id, one.metadata[KEY]["score"]) for one in found] == [(hit.id, hit.score) for hit in expected]
        votes, reached = evidence_of(found[0])
        assert (votes.kind, votes.properties["votes"]) == ("votes", 3)
        assert (reached.source, reached.relation) == ("p1", "directed_by")
        assert found[0].page_content == "Dark Red is film number 4."


def test_agents_steps_models_and_runs_can_be_set() -> None:
    runs: list[Run] = []
    one = retriever(models()[0], n_agents=2, settings=ArkSettings(max_steps=2), on_run=runs.append, fill=False)
    assert one.invoke(QUESTION) != []  # nobody selected anything, so that the fallback answers
    assert [session.stop for session in runs[0].sessions] == ["steps", "steps"]


@pytest.mark.parametrize(
    ("wrong", "named"),
    [({"model": "gpt-4o"}, "model"), ({"n_agents": 0}, "n_agents"), ({"k": 0}, "k"), ({"depth": 3}, "depth")],
)
def test_malformed_constructions_are_refused(wrong: Any, named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        retriever(**wrong)
