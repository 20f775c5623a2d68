"""One agent's state: its conversation, steps and selection, and why it stopped."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from graphret.ark.arguments import InvalidCall, SelectArguments, read, separate
from graphret.ark.observation import (
    LONGEST_ERROR,
    Observation,
    encodable,
    failure,
    json_line,
    quoted,
    shortened,
)
from graphret.ark.prompt import EXPLORE, FINISH, SELECT
from graphret.ark.settings import MAX_FAILURES, ArkSettings
from graphret.ark.tools import CallOutcome
from graphret.cypher.suggestions import nearest
from graphret.errors import InvalidInput
from graphret.llm.chat import MOST_CHARS, Message, Reply, ToolCall, Usage
from graphret.llm.errors import usage_of
from graphret.schema.text import estimate_tokens

#: Why an agent stopped: it called `finish`, it used up its steps, it was given up
#: (`MAX_FAILURES`), its model or the graph failed, its run ended
#: (`ArkRun.reason_to_stop`: tokens or seconds used up, the vote settled), or it was
#: cancelled.
STOPS = (
    "finished",
    "steps",
    "silent",
    "failed",
    "tokens",
    "seconds",
    "settled",
    "cancelled",
)

# Calls of a reply beyond `ArkSettings.max_calls` that are answered, by one line each.
ANSWERED = 64
_WARN_BELOW = 4  # steps left
_NAMED = 5  # nodes that an error names
_SHOWN = 200  # characters of an id that was never shown
_NUDGE = (
    "Call a tool: `select` with the ids of the nodes that answer the question, `finish`"
    " when you are done."
)


@dataclass
class CallRecord:
    """A tool call and its outcome.

    `tokens` is the estimated size of the observation, `error` its message.
    """

    tool: str
    arguments: Any
    seconds: float = 0.0
    tokens: int = 0
    shown: int = 0
    total: int = 0
    failed: bool = False
    remembered: bool = False
    nodes: list[str] = field(default_factory=list)
    edges: list[list[str]] = field(default_factory=list)
    error: str = ""

    @property
    def explored(self) -> str | None:
        """The node whose neighbours were asked for."""
        node = (
            self.arguments.get("node")
            if self.tool == EXPLORE and isinstance(self.arguments, Mapping)
            else None
        )
        return None if node is None else str(node)


@dataclass
class StepRecord:
    """A reply of the model and its calls, or why a request brought none.

    `started` counts seconds since the run began, `seconds` those that the model took;
    `selected` holds the nodes that the agent added to its selection. `error` says why
    there was no reply, `finish_reason` why the reply ended before its end (``length``,
    ``content_filter``); both are empty where nothing of the kind happened.
    """

    number: int
    started: float = 0.0
    seconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    text: str = ""
    calls: list[CallRecord] = field(default_factory=list)
    selected: list[str] = field(default_factory=list)
    error: str = ""
    finish_reason: str = ""

    @property
    def tokens(self) -> int:
        """Tokens that the model read and wrote."""
        return self.input_tokens + self.output_tokens

    @property
    def ended(self) -> float:
        """Seconds from the run's start to the step's end, concurrent calls added up."""
        return self.started + self.seconds + sum(call.seconds for call in self.calls)

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON values; its lists are not copied, for speed."""
        return vars(self) | {"calls": [{**vars(call)} for call in self.calls]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> StepRecord:
        """The inverse of `to_dict`."""
        return cls(**{**data, "calls": [CallRecord(**call) for call in data["calls"]]})


class ArkSession:
    """One agent at work: its conversation, selection and steps.

    It does no I/O. A loop asks the model with `messages`, gives the reply to `receive`,
    runs the calls that this returns, and gives what came of them to `observe`, until
    `stop` is set; a request that brings no reply goes to `fail`::

        while session.stop is None:
            calls = session.receive(model.chat(session.messages, tools=toolbox.tools))
            session.observe(toolbox.run_calls(calls))

    Selecting, finishing, repeated calls, and calls that make no sense are settled here:
    the model is told. `Ark.ask` and `Ark.answer` are the two halves of the loop that
    `Ark` and the LangGraph graphs share.

    Parameters
    ----------
    question, prompt
        What the agent looks for, and the system message.
    agent, model
        The agent's number, from 0, and the name of its model, for the record.
    """

    def __init__(
        self,
        question: str,
        prompt: str,
        *,
        agent: int = 0,
        settings: ArkSettings = ArkSettings(),
        model: str = "",
    ) -> None:
        if not isinstance(question, str) or not question.strip():
            raise InvalidInput(f"question: expected words, got {question!r}")
        self.question = question
        self.agent = agent
        self.settings = settings
        self.model = model
        self.messages: list[Message] = [
            Message.system(encodable(prompt)),
            Message.user(encodable(question)),
        ]
        self.selection: list[str] = []
        self.steps: list[StepRecord] = []
        self.stop: str | None = None
        self.error: str | None = None

    @property
    def failed(self) -> bool:
        """Whether the model failed, or the agent was given up without a selection."""
        return self.stop == "failed" or (self.stop == "silent" and not self.selection)

    @property
    def tokens(self) -> int:
        """Tokens that the agent's model has read and written."""
        return sum(step.tokens for step in self.steps)

    @property
    def seconds(self) -> float:
        """Seconds from the start of the run to the end of the agent's last step."""
        return self.steps[-1].ended if self.steps else 0.0

    @property
    def unanswered(self) -> bool:
        """Whether the calls of the last reply are not answered yet."""
        return self.messages[-1].role == "assistant" and self.stop is None

    @property
    def pending(self) -> list[ToolCall]:
        """The calls of the last reply that the toolbox has to run.

        Without those that are settled here, broken, repeated or too many.
        """
        earlier_calls, calls = (
            self._earlier_calls(),
            self.messages[-1].tool_calls[: self.settings.max_calls],
        )
        runnable = [
            call
            for call in calls
            if call.parsed is not None and call.name not in (SELECT, FINISH)
        ]
        return [
            call
            for call in runnable
            if _key(call.name, call.parsed) not in earlier_calls
        ]

    def _earlier_calls(self) -> dict[str, int]:
        """The calls that were answered, each with its step."""
        done = [
            (call, step.number)
            for step in reversed(self.steps)
            for call in step.calls
            if not call.failed
        ]
        return {_key(call.tool, call.arguments): number for call, number in done}

    def receive(
        self, reply: Reply, *, started: float = 0.0, seconds: float = 0.0
    ) -> list[ToolCall]:
        """Take in a reply and return the calls to run; `observe` must follow."""
        text = encodable(reply.text[:MOST_CHARS])
        calls = _sendable(
            reply.tool_calls[: self.settings.max_calls + ANSWERED], len(self.steps) + 1
        )
        as_it_came = (text, calls) == (reply.text, reply.tool_calls)
        step = self._step(reply.usage, started, seconds)
        step.text = text
        step.finish_reason = (
            ""
            if reply.finish_reason in ("stop", "tool_calls")
            else encodable(reply.finish_reason)
        )
        self.messages.append(
            Message.assistant(text, calls, reply.native if as_it_came else None)
        )
        return self.pending

    def fail(
        self, error: Exception, *, started: float = 0.0, seconds: float = 0.0
    ) -> None:
        """Stop the agent, whose model did not reply, with a step that says why.

        Tokens that were spent all the same count (`ChatError.usage`). It stops for
        ``seconds`` at a `TimeoutError`, and has ``failed`` at any other.
        """
        late = isinstance(error, TimeoutError)
        reason = (
            "no reply in the time that was left"
            if late
            else encodable(str(error)) or type(error).__name__
        )
        self._step(usage_of(error), started, seconds).error = reason
        self.end("seconds" if late else "failed", None if late else reason)

    def _step(self, usage: Usage, started: float, seconds: float) -> StepRecord:
        step = StepRecord(
            len(self.steps) + 1,
            started,
            seconds,
            usage.input_tokens,
            usage.output_tokens,
        )
        self.steps.append(step)
        return step

    def observe(self, outcomes: Sequence[CallOutcome] = ()) -> None:
        """Answer every call of the last reply, and complete the step.

        An `InvalidInput` says that no reply awaits this.
        """
        if not self.unanswered:
            raise InvalidInput(
                f"agent {self.agent}: no reply awaits what came of its calls"
            )
        outcomes_by_call = {outcome.call.id: outcome for outcome in outcomes}
        calls, step, earlier_calls = (
            self.messages[-1].tool_calls,
            self.steps[-1],
            self._earlier_calls(),
        )
        shown = {
            node
            for record in self.steps
            for call in record.calls
            for node in call.nodes
        }
        shown.update(
            node for outcome in outcomes for node in outcome.observation.nodes
        )  # also of the same reply
        for number, call in enumerate(calls):
            outcome, remembered = outcomes_by_call.get(call.id), False
            if outcome is None and number >= self.settings.max_calls:
                outcome = CallOutcome(
                    call,
                    failure(f"not run: at most {self.settings.max_calls} calls a turn"),
                )
            elif outcome is None:
                earlier = earlier_calls.get(_key(call.name, call.parsed))
                outcome, remembered = (
                    CallOutcome(call, self._settled(call, shown, earlier)),
                    earlier is not None,
                )
            self.messages.append(Message.tool(call, outcome.observation.text))
            step.calls.append(_record(outcome, remembered))
        self._complete(
            finished=any(call.tool == FINISH and not call.failed for call in step.calls)
        )

    def _settled(
        self, call: ToolCall, shown: Collection[str], earlier: int | None
    ) -> Observation:
        """What answers a call that the toolbox does not run."""
        if call.parsed is None:
            return failure(f"{call.error}. Send a JSON object.")
        if call.name == SELECT:
            return self._select(call.parsed, shown)
        if earlier is not None:
            return Observation(
                f'{{"answered": "in step {earlier}, and the same call has the same'
                ' answer"}'
            )
        return (
            Observation('{"finished": true}')
            if call.name == FINISH
            else failure("this call was not run")
        )

    def _select(
        self, arguments: Mapping[str, Any], shown: Collection[str]
    ) -> Observation:
        try:
            nodes = read(SelectArguments, arguments).nodes
            selected = list(dict.fromkeys(separate(nodes, shown)))
        except InvalidCall as problem:
            return failure(str(problem))
        unknown = [node for node in selected if node not in shown]
        new = [
            node for node in selected if node in shown and node not in self.selection
        ]
        self.selection += new
        self.steps[-1].selected += new
        answer: dict[str, Any] = {"selected": len(new), "in_all": len(self.selection)}
        if unknown:
            close = {
                node: nearest(node[:_SHOWN], shown, 2) for node in unknown[:_NAMED]
            }
            problems = (
                f"No tool has shown a node {quoted(node)}."
                + (f" Closest: {', '.join(map(quoted, ids))}." if ids else "")
                for node, ids in close.items()
            )
            answer["error"] = shortened(" ".join(problems), LONGEST_ERROR)
        return Observation(
            json_line(answer),
            tuple(new),
            (),
            len(selected),
            failed=len(unknown) == len(selected),
        )

    def end(self, stop: str, error: str | None = None) -> None:
        """Stop the agent for one of `STOPS`, unless it has stopped already."""
        if self.stop is None:
            self.stop, self.error = stop, error

    def _complete(self, *, finished: bool) -> None:
        """End the agent after its last step, or tell it how many steps remain."""
        usable = [
            any(not call.failed for call in step.calls)
            for step in self.steps[-MAX_FAILURES:]
        ]
        steps_left = self.settings.max_steps - len(self.steps)
        warning = (
            f'\n{{"steps_left": {steps_left}}}'
            if steps_left < min(_WARN_BELOW, self.settings.max_steps)
            else ""
        )
        last = self.messages[-1]
        if finished:
            self.end("finished")
        elif len(usable) == MAX_FAILURES and not any(usable):
            self.end("silent", f"{MAX_FAILURES} replies in a row without a usable call")
        elif steps_left <= 0:
            self.end("steps", f"it did not finish in its {len(self.steps)} steps")
        elif last.role == "assistant":
            self.messages.append(Message.user(_NUDGE + warning))
        elif warning:
            self.messages[-1] = Message(
                last.role, last.content + warning, (), last.tool_call_id, last.name
            )

    def to_dict(self) -> dict[str, Any]:
        """The whole state as plain JSON values."""
        return vars(self) | {
            "settings": asdict(self.settings),
            "messages": [message.to_dict(native=True) for message in self.messages],
            "selection": list(self.selection),
            "steps": [step.to_dict() for step in self.steps],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ArkSession:
        """The inverse of `to_dict`; raises `InvalidInput` on malformed data."""
        try:
            settings = ArkSettings(**data["settings"])
            session = cls(
                data["question"],
                "",
                agent=int(data["agent"]),
                settings=settings,
                model=str(data["model"]),
            )
            session.messages = [
                Message.from_dict(message) for message in data["messages"]
            ]
            session.selection = [str(node) for node in data["selection"]]
            session.steps = [StepRecord.from_dict(step) for step in data["steps"]]
            session.stop, session.error = data["stop"] or None, data["error"] or None
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise InvalidInput(
                f"session: malformed, {type(problem).__name__}: {problem}"
            ) from problem
        return session


def _key(tool: str, arguments: Any) -> str:
    return f"{tool} {arguments!r}"


def _record(outcome: CallOutcome, remembered: bool) -> CallRecord:
    call, observation, seconds, _ = outcome
    return CallRecord(
        call.name,
        call.arguments if call.parsed is None else call.parsed,
        seconds,
        tokens=estimate_tokens(observation.text),
        shown=len(observation.nodes),
        total=observation.total,
        failed=observation.failed,
        remembered=remembered,
        nodes=list(observation.nodes),
        edges=[list(edge) for edge in observation.edges],
        error=json.loads(observation.text).get("error", "")
        if observation.failed
        else "",
    )


def _sendable(calls: Sequence[ToolCall], step: int) -> tuple[ToolCall, ...]:
    """The calls of a reply as endpoints accept them back.

    With distinct ids, plain names and text that can be encoded.
    """
    out: dict[str, ToolCall] = {}
    for number, call in enumerate(calls):
        call_id = call.id or f"call_{step}_{number}"
        while call_id in out:
            call_id += "_"
        name = re.sub(r"[^a-zA-Z0-9_-]", "_", call.name)[:64] or "unnamed"
        arguments = (
            "{}" if call.parsed == {} else encodable(call.arguments[: MOST_CHARS + 1])
        )
        out[call_id] = ToolCall(call_id, name, arguments)
    return tuple(out.values())
