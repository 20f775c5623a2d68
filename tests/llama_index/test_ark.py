"""`ArkRetriever`: agents explore, LlamaIndex gets nodes, evidence and events."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.schema import NodeWithScore
from llama_support import INDEX, QUESTION, STORE, ids

from graphret.ark import Ark, ArkSettings
from graphret.ark.scripted import ScriptedExplorer as Policy
from llama_index_graphret import ArkRetriever, ScriptedExplorer, evidence_of

STARRED = ["m0", "m1", "m2"]


def found_by(retriever: ArkRetriever, awaited: bool, question: str = QUESTION) -> list[NodeWithScore]:
    return asyncio.run(retriever.aretrieve(question)) if awaited else retriever.retrieve(question)


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("k", [1, 5])
def test_what_agents_select_comes_first_and_k_is_the_total(k: int, awaited: bool) -> None:
    settings = ArkSettings(early_stop=False)  # or the last of three that agree may not get to vote
    found = found_by(ArkRetriever(ScriptedExplorer(), STORE, INDEX, settings=settings, similarity_top_k=k), awaited)
    core = Ark(Policy(), STORE, INDEX, settings=settings).retrieve(QUESTION, k)
    assert ids(found) == core.ids
    assert ids(found)[:3] == STARRED[:k]
    assert [one.score for one in found] == [hit.relevance for hit in core.hits]
    assert [evidence_of(one) for one in found] == [list(hit.evidence) for hit in core.hits]
    assert evidence_of(found[0])[0].properties == {"votes": 3, "of": 3, "agents": [1, 2, 3]}


def test_the_temperature_is_the_model_s_own_unless_given() -> None:
    """Providers refuse others than theirs for models that reason."""
    heard: list[Any] = []

    def answer(messages: Any, **options: Any) -> Any:
        heard.append(options.get("temperature"))
        return ChatMessage(role="assistant", content="I give up.")

    llm = MockFunctionCallingLLM(response_generator=answer)
    one = ArkSettings(n_agents=1, max_steps=1)
    for options in ({}, {"temperature": 0.3}):
        ArkRetriever(llm, STORE, INDEX, settings=one, **options).retrieve("?")
    assert heard[0] is None
    assert heard[-1] == 0.3
