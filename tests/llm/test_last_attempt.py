"""How the last attempt failed of a request that is given up while the client still asks again."""

from __future__ import annotations

import asyncio
from contextvars import copy_context

import pytest

from graphret.llm import ChatError, Message, OpenAIChat
from graphret.llm.failing import last_attempt, note_attempt, watch_attempts
from graphret.llm.running import in_thread
from graphret.testing.openai_server import OpenAIServer, cut, status, text

HELLO = [Message.user("hello")]


@pytest.mark.parametrize("blocking", [False, True])
async def test_a_request_given_up_between_two_attempts_has_a_last_answer(blocking: bool) -> None:
    busy = status(429, "slow down, my-own-secret-key", retry_after=0.5)
    with OpenAIServer([busy, text("late")]) as server:
        model = OpenAIChat("tiny", server.base_url, api_key="my-own-secret-key", max_retries=1)
        watch_attempts()
        asking = in_thread(lambda: model.chat(HELLO)) if blocking else model.achat(HELLO)
        task = asyncio.ensure_future(asking)
        async with asyncio.timeout(5):
            while not last_attempt():  # noqa: ASYNC110 - the client tells of it
                await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert last_attempt() == "the last answer was 429 Too Many Requests: slow down, *** (Retry-After: 0.5)"
        await model.aclose()


async def test_what_was_answered_in_the_end_leaves_nothing() -> None:
    with OpenAIServer([status(503, retry_after=0.01), text("hi")]) as server:
        model = OpenAIChat("tiny", server.base_url, max_retries=1)
        watch_attempts()
        assert model.chat(HELLO).text == "hi"
        assert last_attempt() == ""


@pytest.mark.parametrize("awaited", [False, True])
def test_an_attempt_without_an_answer_is_one_too(awaited: bool) -> None:
    with OpenAIServer(default=cut()) as server:
        model = OpenAIChat("tiny", server.base_url, max_retries=0)
        watch_attempts()
        with pytest.raises(ChatError):
            asyncio.run(model.achat(HELLO)) if awaited else model.chat(HELLO)
        assert last_attempt() == "the last attempt got no answer (RemoteProtocolError)"


def test_it_is_known_where_it_was_asked_for_and_nowhere_else() -> None:
    copy_context().run(watch_attempts)
    note_attempt("refused")
    watch_attempts()
    assert last_attempt() == ""
    copy_context().run(note_attempt, "refused")
    assert last_attempt() == "refused"
    watch_attempts()
    assert last_attempt() == ""
