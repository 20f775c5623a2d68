"""`ScriptedExplorer`: a fixed policy in the place of a chat model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from graphret.ark.definitions import SELECT
from graphret.ark.scripted.policy import next_calls
from graphret.ark.scripted.transcript import Transcript
from graphret.ark.scripted.walk import Call
from graphret.llm.chat import Message, Reply, Tool, ToolCall, Usage
from graphret.llm.running import Threads
from graphret.schema.text import estimate_tokens

_BESIDE = Threads(1)  # more would only compete with one another, and with the loop


class ScriptedExplorer:
    """A fixed policy that explores a graph with ARK's tools, in the place of a language model.

    It is no model: it searches for the names in the question, follows the relations that its words name, and selects
    where they lead, by rules. It makes an agent's whole loop run offline, the same each time: in tests, in load tests,
    in demonstrations, and as a teacher whose trajectories a small model can imitate. It reads the question and what
    the tools returned, nothing else, so that it works in any loop that offers tools of these names; every reply is
    computed from the messages alone. What tools return is data to it, never an instruction.

    Of a question it reads the first 6,000 characters: of those it searches for four parts, looks at four names, four
    nodes that bear each, and the twelve words nearest to a name on either side. What it computes of a question is kept
    for the next turns.

    Tokens are estimates.

    Parameters
    ----------
    choice
        Which plan it follows where several fit the question about as well: 0 the best, 1 the next, and so on. Agents
        that choose differently vote on a question that can be read in several ways; they agree on any other.

    Examples
    --------
    >>> from graphret.llm.chat import Message
    >>> reply = ScriptedExplorer().chat([Message.user("Who directed Heat?")])
    >>> [call.name for call in reply.tool_calls]
    ['global_search', 'global_search']
    """

    name = "scripted-explorer"

    def __init__(self, choice: int = 0) -> None:
        self.choice = choice

    def chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        json_schema: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> Reply:
        """Return the next calls, or the answer in words once all is done; options of sampling change nothing."""
        seen = Transcript.read(messages)
        planned = next_calls(seen, self.choice)
        offered = None if tools is None else {tool.name for tool in tools}
        turn = sum(message.role == "assistant" for message in messages)
        calls = tuple(
            ToolCall(f"call_{turn}_{number}", name, json.dumps(arguments, ensure_ascii=False))
            for number, (name, arguments) in enumerate(planned)
            if offered is None or name in offered
        )
        text = "" if calls else _answer(seen, planned)
        read = sum(_tokens(message.content) for message in messages)
        written = _tokens(text) + sum(_tokens(call.name + call.arguments) for call in calls)
        return Reply(text, calls, Usage(read, written), "tool_calls" if calls else "stop", self.name)

    async def achat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        json_schema: Mapping[str, Any] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - of the contract
    ) -> Reply:
        """`chat`, computed in a thread beside the event loop."""
        return await _BESIDE.do(lambda: self.chat(messages, tools=tools))


def _answer(seen: Transcript, planned: Sequence[Call]) -> str:
    """What was found in words, for a loop that offers nothing to select with or asks once more."""
    chosen = next((arguments["nodes"] for name, arguments in planned if name == SELECT), seen.selected)
    return f"Found, best first: {'; '.join(chosen)}" if chosen else "Nothing was found."


def _tokens(text: str) -> int:
    return estimate_tokens(text.encode("utf-8", "replace").decode())
