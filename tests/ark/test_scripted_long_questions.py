"""What `ScriptedExplorer` does with a question has a bound, however long the question is."""

from __future__ import annotations

import asyncio
import random
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from scripted_parts import explored, films

from graphret.ark.scripted import ScriptedExplorer, policy
from graphret.ark.scripted.plan import plans
from graphret.ark.scripted.question import readings
from graphret.ark.scripted.schema import Hop, Known
from graphret.ark.scripted.transcript import Exploration
from graphret.llm.chat import Message, Reply

FILMS = films()
WORDS = ["Dawn", "Ann Ames", "Cy Cole", "Dusk", "directed by", "starred actors", "release year", "genre", "1999"]


def work(do: Callable[[], Any]) -> int:
    """How many functions were called: work that no load on the machine changes."""
    count = 0

    def called(frame: Any, event: str, about: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(called)
    try:
        do()
    finally:
        sys.setprofile(None)
    return count


def words(n: int) -> str:
    chance = random.Random(5)
    return " ".join(chance.choice(WORDS) for _ in range(n))


@pytest.mark.parametrize("n", [1_000, 10_000])
def test_a_long_question_costs_no_more_than_a_bounded_one(n: int) -> None:
    question = words(n)
    readings.cache_clear()
    plans.cache_clear()
    assert work(lambda: explored(FILMS, question)) < 600_000  # it was three millions


def test_what_was_computed_of_a_question_is_used_again_in_the_next_turns() -> None:
    question = words(1_000)
    readings.cache_clear()
    plans.cache_clear()
    first = work(lambda: explored(FILMS, question))
    assert plans.cache_info().misses > 0
    made = plans.cache_info().misses, readings.cache_info().misses
    again = work(lambda: explored(FILMS, question))
    assert (plans.cache_info().misses, readings.cache_info().misses) == made
    assert again < first


def test_paths_are_as_many_as_a_turn_has_room_for_those_first_on_which_nodes_play_their_parts() -> None:
    relations = tuple((f"{kind}_{i}", True, "Movie", 1) for i in range(40) for kind in ("written", "directed"))
    known = Known([Exploration("Dawn", ("Movie",), relations, (), 80)])
    first = tuple(Hop(relation, True) for relation, *_ in relations)
    read = readings("who wrote and directed Dawn", 23, 27)
    made = plans(read, ("Movie",), first, known, most_paths=50)
    lengths = [len(plan.hops) for plan in made if not plan.probes]
    assert [lengths.count(length) for length in (1, 2, 3)] == [50, 50, 50]
    assert policy.PATHS // (policy.NAMES * policy.BEARERS * len(read)) > 0


def test_waiting_for_it_leaves_the_event_loop_free() -> None:
    computed: list[int] = []

    class Watched(ScriptedExplorer):
        def chat(self, *given: Any, **named: Any) -> Reply:
            computed.append(threading.get_ident())
            return super().chat(*given, **named)

    reply = asyncio.run(Watched().achat([Message.user("who directed Dawn")], tools=FILMS.tools))
    assert reply.tool_calls
    assert computed
    assert threading.get_ident() not in computed
