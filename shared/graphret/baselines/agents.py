"""Agents that search: ReAct (Yao et al. 2023) and Reflexion (Shinn et al. 2023).

SAGE compares both (appendix C.5 and C.6).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from graphret.ark import Observation, Toolbox
from graphret.ark.prompt import EXPLORE, READING, SEARCH
from graphret.baselines.base import DATA, MOST_CHARS, Baseline, Part, fenced
from graphret.llm import ChatModel, Message, aask_json, ask_json
from graphret.retriever import Call, Compute
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore, require_limit
from graphret.trace import Trace
from graphret.types import Hit
from graphret.where import Where

_TASK = (
    "Find the nodes of a graph that answer a question. Each turn, write a thought and"
    " one action: `search` finds nodes by the words of its input, `explore` shows the"
    " neighbours of the node whose id is its input, and `finish` ends with the ids of"
    f" the answers, the best first. {READING}" + DATA
)
_JUDGE = (
    "Say whether an agent has answered a question: `success` where what it selected is"
    " what is asked for. If not, write a reflection: what went wrong, and what to try"
    " instead." + DATA
)
_SHOWN_CHARS = 6_000


@dataclass(frozen=True)
class _Turn:
    thought: str
    action: Literal["search", "explore", "finish"]
    input: str = ""
    answers: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Verdict:
    success: bool
    reflection: str = ""


@dataclass
class _Episode:
    """What an agent was shown and did, and what it selected of what it has seen."""

    messages: list[Message]
    seen: dict[str, None] = field(default_factory=dict)
    selected: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(message.content for message in self.messages[1:])[
            -_SHOWN_CHARS:
        ]


class ReAct(Baseline):
    """Let an agent think, act and observe until it has the answer (ReAct).

    Parameters
    ----------
    model, store, index, on_failure
        As `Baseline` has them.
    steps
        Turns that it may take.
    """

    name = "react"

    def __init__(
        self,
        model: ChatModel,
        store: GraphStore,
        index: TextIndex,
        *,
        steps: int = 20,
        on_failure: str = "fallback",
    ) -> None:
        super().__init__(model, store, index, on_failure=on_failure)
        self.toolbox = Toolbox(store, index)
        self.steps = require_limit(steps) or 1

    def _run(
        self, query: str, k: int, where: Where | None, trace: Trace
    ) -> Part[list[Hit]]:
        episode = yield from self._episode(query, (), trace)
        return (yield from self._hits(episode.selected))

    def _episode(
        self, query: str, reflections: Sequence[str], trace: Trace
    ) -> Part[_Episode]:
        """Act until the agent finishes, or its turns are used up."""
        learned = "".join(
            f"\nLearned before: {reflection}" for reflection in reflections
        )
        messages = [Message.system(_TASK), Message.user(f"Question: {query}{learned}")]
        episode = _Episode(messages)
        for number in range(1, self.steps + 1):
            with trace.stage(f"step {number}", model=self.model.name) as stage:
                reply = yield Call(
                    partial(ask_json, self.model, messages, _Turn),
                    partial(aask_json, self.model, messages, _Turn),
                )
                turn: _Turn = reply.value
                stage.details["tokens"] = reply.usage.total_tokens
                stage.details["action"] = f"{turn.action} {turn.input}"[:100]
            if turn.action == "finish":
                answers = dict.fromkeys(turn.answers)
                episode.selected = [
                    node_id for node_id in answers if node_id in episode.seen
                ]
                break
            observed = yield Compute(partial(self._act, turn))
            episode.seen |= dict.fromkeys(observed.nodes)
            wrote = f"{turn.thought} → {turn.action}: {turn.input}"[:MOST_CHARS]
            messages += [Message.assistant(wrote), Message.user(fenced(observed.text))]
        return episode

    def _act(self, turn: _Turn) -> Observation:
        if turn.action == "search":
            return self.toolbox.run(SEARCH, {"query": turn.input})
        return self.toolbox.run(EXPLORE, {"node": turn.input})


class Reflexion(ReAct):
    """Let a ReAct agent try again with what it learned of its failures (Reflexion).

    There are no right answers to tell a failure by: the model judges the episode.

    Parameters
    ----------
    model, store, index, steps, on_failure
        As `ReAct` has them.
    episodes
        How often it may try.
    """

    name = "reflexion"

    def __init__(
        self,
        model: ChatModel,
        store: GraphStore,
        index: TextIndex,
        *,
        steps: int = 20,
        episodes: int = 3,
        on_failure: str = "fallback",
    ) -> None:
        super().__init__(model, store, index, steps=steps, on_failure=on_failure)
        self.episodes = require_limit(episodes) or 1

    def _run(
        self, query: str, k: int, where: Where | None, trace: Trace
    ) -> Part[list[Hit]]:
        reflections: list[str] = []
        selected: list[str] = []
        for number in range(1, self.episodes + 1):
            episode = yield from self._episode(query, reflections, trace)
            selected = episode.selected or selected
            if number == self.episodes:
                break
            prompt = (
                f"Question: {query}\nSelected: {episode.selected}\n"
                f"{fenced(episode.text)}"
            )
            verdict = yield from self._ask(
                _JUDGE, prompt, _Verdict, trace, f"reflect {number}"
            )
            if verdict.success and episode.selected:
                break
            reflections.append(verdict.reflection[:MOST_CHARS])
        return (yield from self._hits(selected))
