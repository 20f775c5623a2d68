"""A step whose request was given up says how its client's last attempt failed."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from ark_support import films

from graphret.ark import Ark, ArkSettings
from graphret.llm.chat import Reply
from graphret.llm.failing import note_attempt
from graphret.search.bm25 import BM25Index
from langchain_graphret.ark import create_ark_graph

STORE = films()
INDEX = BM25Index.of_store(STORE)
REFUSED = "the last answer was 429 Too Many Requests"


class Refused:
    """Is refused, and waits to ask again."""

    name = "refused"

    def __init__(self) -> None:
        self.never = threading.Event()

    def chat(self, messages: Any, **options: Any) -> Reply:
        note_attempt(REFUSED)
        self.never.wait(20)
        raise AssertionError

    async def achat(self, messages: Any, **options: Any) -> Reply:
        note_attempt(REFUSED)
        await asyncio.sleep(20)
        raise AssertionError


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("graph", [False, True])
async def test_a_step_says_how_the_last_attempt_failed(graph: bool, awaited: bool) -> None:
    settings, model = ArkSettings(n_agents=1, max_seconds=0.2), Refused()
    if graph:
        made = create_ark_graph(model, STORE, INDEX, settings=settings)
        asked = {"question": "films by Bob Bell"}
        found = await made.ainvoke(asked) if awaited else await asyncio.to_thread(made.invoke, asked)
        error, stop = found["agents"][0]["steps"][0]["error"], found["agents"][0]["stop"]
    else:
        ark = Ark(model, STORE, INDEX, settings=settings)
        ask = ark.aexplore("films by Bob Bell") if awaited else asyncio.to_thread(ark.explore, "films by Bob Bell")
        [session] = (await ask).sessions
        error, stop = session.steps[0].error, session.stop
    assert stop == "seconds"
    assert error.endswith(f"; {REFUSED}")
    model.never.set()
