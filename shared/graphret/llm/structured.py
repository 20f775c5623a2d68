"""JSON from a chat model: asked for by schema, found in whatever it answers, validated, and repaired."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar, Unpack, cast

from graphret.errors import InvalidInput
from graphret.llm.chat import ChatError, ChatModel, ChatOptions, Message, Reply, Usage
from graphret.llm.schema import plain_schema

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")

# A reply is searched for JSON up to so many characters, and from so many opening brackets.
_MAX_REPLY_CHARS, _MAX_CANDIDATES = 1_000_000, 64
_QUOTED_CHARS = 4_000
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)
_OPENING = re.compile(r"[{\[]")

_INSTRUCTION = """\
Answer with one JSON value and nothing else: no explanation, no code fence. It must be valid against this JSON schema:
{schema}"""

_REPAIR = """\
That answer cannot be used: {error}
Answer again with the corrected JSON value only, valid against the schema."""


class Answer(NamedTuple, Generic[T]):
    """A validated value, the tokens that it took, and the number of replies that were needed (1: no repair)."""

    value: T
    usage: Usage
    attempts: int


def ask_json(
    model: ChatModel,
    messages: Sequence[Message],
    schema: type[T] | TypeAdapter[T],
    *,
    repairs: int = 1,
    native: bool = True,
    **options: Unpack[ChatOptions],
) -> Answer[T]:
    """Ask a model for a value of a given type.

    The JSON schema is stated in the system message, and also handed to the model as `json_schema` for endpoints that
    enforce it. JSON is found in the reply even inside prose. Where it does not validate, the model is shown the error
    and answers again.

    Parameters
    ----------
    schema
        What to return: whatever pydantic's ``TypeAdapter`` takes, such as a dataclass, or such an adapter.
    repairs
        How many further replies to ask for after one that cannot be used.
    native
        Hand over `json_schema`; if false, rely on the instruction alone.
    options
        For each request: temperature, max_tokens, timeout.

    Returns
    -------
    Answer
        ``(value, usage, attempts)``.

    Raises
    ------
    ChatError
        If no reply could be used (``reason="invalid_reply"``), or the model failed. Its `usage` counts all replies.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Person:
    ...     name: str
    ...     born: int | None = None
    >>> value, usage, attempts = ask_json(model, [Message.user("Who wrote Emma?")], Person)  # doctest: +SKIP
    """
    dialogue = _Dialogue(model.name, messages, schema, repairs)
    options["json_schema"] = dialogue.native_schema if native else None
    while True:
        with dialogue.counting():
            reply = model.chat(dialogue.messages, **options)
        if answer := dialogue.read(reply):
            return answer


async def aask_json(
    model: ChatModel,
    messages: Sequence[Message],
    schema: type[T] | TypeAdapter[T],
    *,
    repairs: int = 1,
    native: bool = True,
    **options: Unpack[ChatOptions],
) -> Answer[T]:
    """`ask_json` without blocking the event loop."""
    dialogue = _Dialogue(model.name, messages, schema, repairs)
    options["json_schema"] = dialogue.native_schema if native else None
    while True:
        with dialogue.counting():
            reply = await model.achat(dialogue.messages, **options)
        if answer := dialogue.read(reply):
            return answer


class _Dialogue(Generic[T]):
    """The turns of one structured question: what to send next, and what to make of the reply."""

    def __init__(self, model: str, messages: Sequence[Message], schema: type[T] | TypeAdapter[T], repairs: int) -> None:
        from pydantic import TypeAdapter

        if not messages:
            raise InvalidInput("ask_json: messages is empty")
        self.model, self.repairs, self.attempts, self.usage = model, repairs, 0, Usage()
        self.adapter: TypeAdapter[T] = schema if isinstance(schema, TypeAdapter) else TypeAdapter(schema)
        plain = plain_schema(self.adapter.json_schema())
        # Endpoints that enforce a schema want an object at its root.
        self.native_schema = plain if plain.get("type") == "object" else None
        instruction = _INSTRUCTION.format(schema=json.dumps(plain, ensure_ascii=False))
        first, *rest = messages
        if first.role == "system":
            self.question = [replace(first, content=f"{first.content}\n\n{instruction}"), *rest]
        else:
            self.question = [Message.system(instruction), *messages]
        self.messages = self.question

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Add the tokens of earlier replies to an error."""
        try:
            yield
        except ChatError as error:
            error.usage += self.usage
            raise

    def read(self, reply: Reply) -> Answer[T] | None:
        """Return the answer, or set `messages` to the repair turn; raise when there is none left."""
        self.attempts += 1
        self.usage += reply.usage
        found = parse_json(reply.text, self.adapter)
        problem = found.problem
        if problem is None:
            return Answer(cast("T", found.value), self.usage, self.attempts)
        if reply.finish_reason == "length":
            problem = f"it was cut off at the token limit; be briefer ({problem})"
        if self.attempts > self.repairs:
            said = f"no usable JSON after {self.attempts} replies: {problem}"
            raise ChatError(said, model=self.model, reason="invalid_reply", usage=self.usage)
        quoted = [Message.assistant(reply.text[:_QUOTED_CHARS])] if reply.text.strip() else []
        self.messages = [*self.question, *quoted, Message.user(_REPAIR.format(error=problem))]
        return None


class Parsed(NamedTuple, Generic[T]):
    """What was found in a text: a value, or `None` and the problem."""

    value: T | None
    problem: str | None = None


def parse_json(text: str, adapter: TypeAdapter[T]) -> Parsed[T]:
    """Find the JSON value in a model's reply and validate it.

    The first value that validates wins: of what follows each opening bracket, then the whole text. Reasoning in
    ``<think>`` tags is skipped.

    Returns
    -------
    Parsed
        ``(value, None)``, or ``(None, problem)`` with what is wrong with the first candidate.
    """
    from pydantic import ValidationError

    text = _THOUGHT.sub("", text[:_MAX_REPLY_CHARS]).strip()
    problem = "" if text else "it is empty"
    for piece in (*_json_values(text), text):
        try:
            return Parsed(adapter.validate_json(piece))
        except ValidationError as error:
            problem = problem or _explained(error)
    return Parsed(None, problem)


def _json_values(text: str) -> Iterator[str]:
    decoder, position = json.JSONDecoder(), 0
    for _ in range(_MAX_CANDIDATES):
        opening = _OPENING.search(text, position)
        if opening is None:
            return
        try:
            _, position = decoder.raw_decode(text, opening.start())
            yield text[opening.start() : position]
        except (ValueError, RecursionError):
            position = opening.end()


def _explained(error: ValidationError) -> str:
    """A validation error in one line, without the values, which may be long."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(f"{'.'.join(map(str, each['loc'])) or 'the value'}: {each['msg']}" for each in found[:5])
