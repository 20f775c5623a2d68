"""One agent's state: what was said, what it has seen and selected, and the steps that it has left."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from graphret.ark.definitions import FINISH, NOT_RUN, SELECT
from graphret.ark.observation import ADDED, Observation, failure, json_line, quoted, shortened
from graphret.ark.records import CallRecord, StepRecord, answered_call, cut_off
from graphret.ark.sendable import encodable, sendable
from graphret.ark.settings import ArkSettings
from graphret.errors import InvalidInput, ModelError
from graphret.llm.chat import Message, Reply, ToolCall, Usage
from graphret.llm.failing import last_attempt, usage_of
from graphret.schema.text import estimate_tokens

#: Why an agent stopped: it called `finish`; its steps, the run's tokens or its seconds were used up; the others had
#: settled the vote; it called no tools any more; its model or a tool failed; the run was cancelled.
STOPS = ("finished", "steps", "tokens", "seconds", "settled", "silent", "failed", "cancelled")

#: A call, what came of it, and the seconds that it took.
Outcome: TypeAlias = tuple[ToolCall, Observation, float]

_WARN_BELOW = 4
_NAMED = 5  # selected nodes that an error names
_SHOWN = 200  # characters of the arguments of a call that was wrong
_WHOLE = ("stop", "tool_calls")  # how a reply that was not cut off ends
_IN_TIME = ("finished", "settled", "tokens", "seconds")  # an agent's own end, or one that was asked for
_LEFT = '\n{"steps_left": '
_NUDGE = (
    "Call a tool. Call `select` with the ids of the nodes that answer the question, and `finish` when you are done."
)


class ArkSession:
    """One agent at work: its conversation, its ordered selection, its steps, and why it stopped.

    It does no I/O. A loop asks the model with `messages`, gives the reply to `receive`, runs the calls that this
    returns, and gives what came of them to `observe`, until `stop` is set; a request that brings no reply goes to
    `fail`::

        while session.stop is None:
            calls = session.receive(model.chat(session.messages, tools=TOOLS))
            session.observe([(call, toolbox.run(call.name, call.parsed), 0.0) for call in calls])

    Selecting, finishing, repeated calls, and calls that make no sense are settled here: the model is told.

    Parameters
    ----------
    question
        What the agent looks for.
    prompt
        The system message.
    agent
        The agent's number, from 0.
    model
        The model's name, for the record.
    """

    def __init__(
        self,
        question: str,
        prompt: str,
        *,
        agent: int = 0,
        settings: ArkSettings = ArkSettings(),  # noqa: B008 -- it is frozen
        model: str = "",
    ) -> None:
        if not isinstance(question, str) or not question.strip():
            raise InvalidInput("question: it is empty" if isinstance(question, str) else "question: it is no string")
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
        self.seen: dict[str, None] = {}  # the ids that tools have shown, in order
        self.stop: str | None = None
        self.error: str | None = None
        self._known: dict[str, tuple[int, int]] = {}  # calls that were answered: in which step, by which message
        self._failures = 0
        self._waiting: tuple[Message, list[ToolCall]] | None = None  # a reply, and which of its calls are to be run

    @property
    def steps_left(self) -> int:
        """How often the model may still be asked."""
        return 0 if self.stop else max(0, self.settings.max_steps - len(self.steps))

    @property
    def failed(self) -> bool:
        """Whether the agent's model failed, or it was given up without anything selected."""
        return self.stop == "failed" or (self.stop == "silent" and not self.selection)

    @property
    def problem(self) -> ModelError | None:
        """What is wrong with how the agent stopped, for runs in which that is an error; `None` where nothing is.

        Each is to finish: an agent that failed, was given up or ran out of steps did not. A budget of the run and a
        settled vote are ends that were asked for.
        """
        if self.stop in (None, "cancelled", *_IN_TIME):
            return None
        return ModelError(f"agent {self.agent + 1}: {self.error or self.stop}")

    @property
    def tokens(self) -> int:
        """Tokens that the agent's model has read and written."""
        return sum(step.tokens for step in self.steps)

    @property
    def pending(self) -> list[ToolCall]:
        """The calls of the last reply that are to be run and are not yet answered."""
        last = self.messages[-1]
        if last.role != "assistant":
            return []
        if self._waiting is None or self._waiting[0] is not last:
            self._waiting = last, self._to_run(last.tool_calls)
        return list(self._waiting[1])

    def receive(self, reply: Reply, *, started: float = 0.0, seconds: float = 0.0) -> list[ToolCall]:
        """Take in a reply and return the calls to be run; `observe` must follow, with what came of these.

        Raises
        ------
        InvalidInput
            When the agent has stopped, or the calls of its last reply are not answered yet.
        """
        if self.stop is not None:
            raise InvalidInput(f"agent {self.agent}: it has stopped ({self.stop})")
        self._require_answered()
        text = encodable(reply.text)
        step = self._step(reply.usage, started, seconds)
        step.text = text
        step.finish_reason = "" if reply.finish_reason in _WHOLE else encodable(reply.finish_reason)
        calls = tuple(sendable(reply.tool_calls, len(self.steps)))
        as_it_came = (text, calls) == (reply.text, reply.tool_calls)
        self.messages.append(Message.assistant(text, calls, reply.native if as_it_came else None))
        return self.pending

    def fail(
        self, error: Exception | str, *, started: float = 0.0, seconds: float = 0.0, stop: str | None = None
    ) -> None:
        """Take in that a request to the model brought no reply: a step that says why, and the agent stops.

        Tokens that were spent all the same count (`ChatError.usage`). Of an agent that was stopped while its model was
        asked only the step is kept.

        Parameters
        ----------
        error
            What was raised, or words that say why nobody waits for the reply.
        started, seconds
            When the request was made, and how long it took.
        stop
            Why the agent stops; by default ``seconds`` for a `TimeoutError`, else ``failed``.

        Raises
        ------
        InvalidInput
            When the calls of the last reply are not answered yet.
        """
        self._require_answered()
        late = isinstance(error, TimeoutError)
        said = encodable(str(error)) or ("no reply in the time that was left" if late else type(error).__name__)
        if (late or isinstance(error, str)) and (failure := last_attempt()):
            said = f"{said}; {encodable(failure)}"
        self._step(usage_of(error), started, seconds).error = said
        stop = stop or ("seconds" if late else "failed")
        self.end(stop, said if stop == "failed" else None)

    def _step(self, usage: Usage, started: float, seconds: float) -> StepRecord:
        """Begin the next step."""
        step = StepRecord(len(self.steps) + 1, started, seconds, usage.input_tokens, usage.output_tokens)
        step.tokens_estimated = usage.estimated
        self.steps.append(step)
        return step

    def _require_answered(self) -> None:
        if self.messages[-1].role == "assistant":
            raise InvalidInput(f"agent {self.agent}: the calls of its last reply are not answered yet")

    def observe(self, outcomes: Sequence[Outcome] = ()) -> ModelError | None:
        """Answer every call of the last reply, given what came of those that were run, and complete the step.

        Returns
        -------
        wrong
            What was wrong with the reply first, by agent, step and call, for runs in which that is an error: a call
            that makes no sense, more calls than are run, none and no text, one reply too many without a usable call, or
            the last one that the agent had, without an end (see `problem`).

        Raises
        ------
        InvalidInput
            When no reply awaits this, or a call that was to be run has no outcome.
        """
        last = self.messages[-1]
        if last.role != "assistant" or self.stop is not None:
            raise InvalidInput(f"agent {self.agent}: no reply awaits observations")
        given = {call.id: (observation, took) for call, observation, took in outcomes}
        to_run = self.pending
        if missing := [call.id for call in to_run if call.id not in given]:
            raise InvalidInput(f"agent {self.agent}: call {missing[0]} was not answered")
        step, run, finished, usable = self.steps[-1], {call.id for call in to_run}, False, False
        wrong = None if last.tool_calls or last.content.strip() else self._wrong("the reply is empty")
        for call in to_run:  # first, since a selection may name what a search of the same reply has shown
            self.seen.update(dict.fromkeys(given[call.id][0].nodes))
        for call in last.tool_calls:
            took, remembered = 0.0, False
            if call.id in run:
                observation, took = given[call.id]
                if not observation.failed:
                    self._known[_key(call)] = (step.number, len(self.messages))
            elif call.parsed is None:
                observation = failure(f"{call.error}. Send a JSON object.")
            elif call.name == SELECT:
                observation = self._select(call.parsed, step)
            elif call.name == FINISH:
                observation, finished = Observation('{"finished": true}'), True
            elif self.settings.remember and _key(call) in self._known:
                observation, remembered = self._recalled(call), True
            else:
                observation = self._not_run(call, to_run)
            if observation.wrong and wrong is None:
                wrong = self._wrong(observation.wrong, call)
            usable = usable or not observation.failed
            self.messages.append(Message.tool(call, observation.text))
            step.calls.append(answered_call(call, observation, took, remembered))
        self._complete(finished, usable)
        return wrong or self.problem

    def _wrong(self, what: str, call: ToolCall | None = None) -> ModelError:
        step = self.steps[-1]
        where, early = f"agent {self.agent + 1}, step {step.number}", step.finish_reason
        if call is not None:
            given = quoted(call.arguments, _SHOWN) if call.parsed is None else shortened(json_line(call.parsed), _SHOWN)
            where = f"{where}, {call.name} {given}"
        return ModelError(f"{where}: {what}" + (f" (the reply ended early: {early})" if early else ""))

    def end(self, stop: str, error: str | None = None) -> None:
        """Stop the agent with what it has selected.

        Where the calls of its last reply are not answered, those that select, which need no answer, are applied all
        the same, in their order; the others are recorded as cut off.
        """
        if stop not in STOPS:
            raise InvalidInput(f"stop: one of {', '.join(STOPS)} is expected, not {stop!r}")
        if self.stop is None:
            self.stop, self.error = stop, error
            last = self.messages[-1]
            for call in last.tool_calls if last.role == "assistant" else ():
                step = self.steps[-1]
                if call.name == SELECT and call.parsed is not None:
                    step.calls.append(answered_call(call, self._select(call.parsed, step), 0.0, remembered=False))
                else:
                    step.calls.append(cut_off(call))

    def out_of_steps(self, why: str = "") -> None:
        """Stop the agent, which has not finished and may not be asked again."""
        chosen = ", ".join(map(quoted, self.selection[:_NAMED])) or "nothing"
        more = f" and {len(self.selection) - _NAMED} more" if len(self.selection) > _NAMED else ""
        steps = f"{len(self.steps)} step{'s' * (len(self.steps) != 1)}"
        self.end(
            "steps", f"it did not finish in its {steps}, with {chosen}{more} selected" + (f": {why}" if why else "")
        )

    def _not_run(self, call: ToolCall, run: Sequence[ToolCall]) -> Observation:
        """What answers a call that stands twice in a reply, the first time in vain, or is one too many."""
        if self.settings.remember and _key(call) in map(_key, run):
            return failure(f"{NOT_RUN}: it stands twice in this reply.", wrong="")
        most = self.settings.max_calls
        return failure(
            f"{NOT_RUN}: of one reply only the first {most} calls are run. If you still need it, make it "
            f"again in a later reply, with no more than {most} calls in each.",
            wrong=f"the reply has more than {most} calls, and this one was not run",
        )

    def _recalled(self, call: ToolCall) -> Observation:
        """What the same call was answered with before."""
        step, at = self._known[_key(call)]
        answer = self.messages[at].content.split(_LEFT)[0]
        return Observation(f'{{"answered": "from memory, as in step {step}"}}\n{answer}')

    def _complete(self, finished: bool, usable: bool) -> None:
        self._failures = 0 if usable else self._failures + 1
        if finished:
            self.end("finished")
        elif self._failures >= self.settings.max_failures:
            self.end("silent", f"{self._failures} replies in a row without a usable call")
        elif len(self.steps) >= self.settings.max_steps:
            self.out_of_steps()
        elif self.messages[-1].role == "assistant":
            self.messages.append(Message.user(_NUDGE + self._warning()))
        elif warning := self._warning():
            last = self.messages[-1]
            self.messages[-1] = Message(last.role, last.content + warning, (), last.tool_call_id, last.name)

    def _warning(self) -> str:
        left = self.steps_left
        return f"{_LEFT}{left}}}" if left < min(_WARN_BELOW, self.settings.max_steps) else ""

    def _select(self, arguments: Mapping[str, Any], step: StepRecord) -> Observation:
        given = arguments.get("nodes")
        asked = [given] if isinstance(given, str) else given
        if not isinstance(asked, list) or not asked or not all(isinstance(node, str) for node in asked):
            return failure('select takes {"nodes": ["id", …]}: the ids of nodes that a tool has shown, best first.')
        known = [node for node in dict.fromkeys(asked) if node in self.seen]
        new = [node for node in known if node not in set(self.selection)]
        self.selection.extend(new)
        step.selected.extend(new)
        said: dict[str, Any] = {"selected": len(new), "in_all": len(self.selection)}
        if len(new) < len(known):
            said["selected_before"] = len(known) - len(new)
        if unknown := [node for node in dict.fromkeys(asked) if node not in self.seen]:
            said["error"] = " ".join(map(self._unknown, unknown[:5])) + (
                f" And {len(unknown) - 5} more." if len(unknown) > 5 else ""
            )
        wrong = said.get("error", "")
        while "error" in said and estimate_tokens(json_line(said)) > self.settings.observation_tokens - ADDED:
            said["error"] = shortened(said["error"], len(said["error"]) // 2)
        return Observation(json_line(said), tuple(new), total=len(asked), failed=not known, wrong=wrong)

    def _unknown(self, node: str) -> str:
        close = difflib.get_close_matches(node[:200], self.seen, n=2)
        hint = f" Closest: {', '.join(map(quoted, close))}." if close else ""
        return f"No tool has shown a node {quoted(node)}.{hint}"

    def _to_run(self, calls: Sequence[ToolCall]) -> list[ToolCall]:
        """The calls that go to the toolbox: neither settled here, nor broken, repeated or too many."""
        found: dict[str, ToolCall] = {}
        for number, call in enumerate(calls):
            if call.parsed is None or call.name in (SELECT, FINISH):
                continue
            key = _key(call) if self.settings.remember else str(number)
            if not (self.settings.remember and key in self._known):
                found.setdefault(key, call)
        return list(found.values())[: self.settings.max_calls]

    def to_dict(self) -> dict[str, Any]:
        """The whole state as plain JSON values."""
        return {
            "question": self.question,
            "agent": self.agent,
            "model": self.model,
            "settings": self.settings.to_dict(),
            "messages": [message.to_dict(native=True) for message in self.messages],
            "selection": list(self.selection),
            "steps": [step.to_dict() for step in self.steps],
            "seen": list(self.seen),
            "stop": self.stop,
            "error": self.error,
            "known": {key: list(value) for key, value in self._known.items()},
            "failures": self._failures,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ArkSession:
        """The inverse of `to_dict`.

        Raises
        ------
        InvalidInput
            When a field is missing or malformed.
        """
        try:
            messages = [Message.from_dict(message) for message in data["messages"]]
            settings = ArkSettings.from_dict(data["settings"])
            session = cls(data["question"], "", agent=int(data["agent"]), settings=settings, model=str(data["model"]))
            session.messages = messages
            session.selection = [str(node) for node in data["selection"]]
            session.steps = [
                StepRecord(**{**step, "calls": [CallRecord(**call) for call in step["calls"]]})
                for step in data["steps"]
            ]
            session.seen = dict.fromkeys(map(str, data["seen"]))
            session.stop, session.error = data["stop"], data["error"]
            session._known = {key: (int(step), int(at)) for key, (step, at) in data["known"].items()}
            session._failures = int(data["failures"])
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise InvalidInput(f"session: malformed, {type(problem).__name__}: {problem}") from problem
        return session


def _key(call: ToolCall) -> str:
    """The same for calls that ask for the same."""
    arguments = {name: value for name, value in (call.parsed or {}).items() if value is not None}
    return f"{call.name} {json.dumps(arguments, sort_keys=True, ensure_ascii=False)}"
