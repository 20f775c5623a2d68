"""JSON from a chat model: asked for by schema, found, validated and repaired."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, Unpack, cast

from graphret.errors import InvalidInput
from graphret.llm.chat import ChatError, ChatModel, ChatOptions, Message, Reply, Usage
from graphret.llm.json_text import json_values, readings
from graphret.llm.reply_text import answer_candidates, answer_text
from graphret.llm.schema import plain_schema

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")

# A reply is searched for JSON up to so many characters, and quoted up to so many.
_MAX_REPLY_CHARS, _QUOTED_CHARS = 1_000_000, 4_000

_INSTRUCTION = """\
Answer with one JSON value and nothing else: no explanation, no code fence. It must be valid against this JSON schema:
{schema}"""

_REPAIR = """\
That answer cannot be used: {error}
Answer again with the corrected JSON value only, valid against the schema."""


class StructuredReply(NamedTuple, Generic[T]):
    """A validated value, the tokens that it took, and how many replies were needed."""

    value: T
    usage: Usage
    attempts: int


def ask_json(
    model: ChatModel,
    messages: Sequence[Message],
    schema: type[T] | TypeAdapter[T],
    *,
    repairs: int = 1,
    state_schema: bool = True,
    **options: Unpack[ChatOptions],
) -> StructuredReply[T]:
    """Ask a model for a value of a given type.

    The JSON schema is stated in the system message, and also handed to the model as
    `json_schema` for endpoints that enforce it. JSON is found in the reply even inside
    prose. Where it does not validate, the model is shown the error and answers again.
    Returns ``(value, usage, attempts)``.

    Parameters
    ----------
    schema
        What to return: whatever pydantic's ``TypeAdapter`` takes, such as a dataclass,
        or such an adapter.
    repairs
        How many further replies to ask for after one that cannot be used.
    state_schema
        Whether the system message is to state the schema; not where `messages` already
        say what to write.
    options
        For each request: temperature, max_tokens, timeout.

    Raises
    ------
    ChatError
        If no reply could be used (``reason="invalid_reply"``), or the model failed. Its
        `usage` counts all replies.
    """

    async def chat(
        dialogue: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> Reply:
        return model.chat(dialogue, **options)

    try:
        _dialogue(
            chat, model.name, messages, schema, repairs, state_schema, options
        ).send(None)
    except StopIteration as done:
        return cast("StructuredReply[T]", done.value)
    raise AssertionError("nothing in it waits")


async def aask_json(
    model: ChatModel,
    messages: Sequence[Message],
    schema: type[T] | TypeAdapter[T],
    *,
    repairs: int = 1,
    state_schema: bool = True,
    **options: Unpack[ChatOptions],
) -> StructuredReply[T]:
    """`ask_json` without blocking the event loop."""
    return await _dialogue(
        model.achat, model.name, messages, schema, repairs, state_schema, options
    )


async def _dialogue(
    chat: Callable[..., Awaitable[Reply]],
    model: str,
    messages: Sequence[Message],
    schema: type[T] | TypeAdapter[T],
    repairs: int,
    state_schema: bool,
    options: ChatOptions,
) -> StructuredReply[T]:
    """Ask, and ask again where the reply cannot be used; it waits for `chat` alone."""
    from pydantic import TypeAdapter

    if not messages:
        raise InvalidInput("ask_json: messages is empty")
    adapter: TypeAdapter[T] = (
        schema if isinstance(schema, TypeAdapter) else TypeAdapter(schema)
    )
    plain = plain_schema(adapter.json_schema())
    # what endpoints that enforce a schema want at its root
    if plain.get("type") == "object":
        options["json_schema"] = plain
    question = with_schema(messages, plain) if state_schema else list(messages)
    dialogue, spent, problem = question, Usage(), ""
    for attempt in range(1, repairs + 2):
        try:
            reply = await chat(dialogue, **options)
        except ChatError as error:
            error.usage += spent
            raise
        spent += reply.usage
        value, mistake = parse_json(reply.text, adapter)
        if mistake is None:
            return StructuredReply(cast("T", value), spent, attempt)
        cut = reply.finish_reason == "length"
        problem = (
            f"it was cut off at the token limit; be briefer ({mistake})"
            if cut
            else mistake
        )
        quoted = (
            [Message.assistant(reply.text[:_QUOTED_CHARS])]
            if reply.text.strip()
            else []
        )
        dialogue = [*question, *quoted, Message.user(_REPAIR.format(error=problem))]
    failure = f"no usable JSON after {repairs + 1} replies: {problem}"
    raise ChatError(failure, model=model, reason="invalid_reply", usage=spent)


def with_schema(
    messages: Sequence[Message], schema: Mapping[str, Any]
) -> list[Message]:
    """Return a conversation whose system message asks for JSON of a schema."""
    instruction = _INSTRUCTION.format(schema=json.dumps(schema, ensure_ascii=False))
    system, rest = (
        ([messages[0].content], messages[1:])
        if messages[0].role == "system"
        else ([], messages)
    )
    return [Message.system("\n\n".join([*system, instruction])), *rest]


def parse_json(text: str, adapter: TypeAdapter[T]) -> tuple[T, None] | tuple[None, str]:
    """Find the JSON value in a model's reply and validate it.

    The first value that validates wins, in what follows the model's reasoning. Returns
    ``(value, None)``, or ``(None, problem)`` with what is wrong with the first.
    """
    from pydantic import ValidationError

    schema = adapter.json_schema()
    reply = text[:_MAX_REPLY_CHARS]
    problem = ""
    for value in _values_of(reply):
        for reading in readings(value, schema):
            try:
                return adapter.validate_json(json.dumps(reading)), None
            except (ValidationError, RecursionError) as error:
                problem = problem or _explained(error)
        problem = problem or f"it has none of {', '.join(schema['properties'])}"
    return None, problem or _without_json(reply)


def _values_of(reply: str) -> Iterator[Any]:
    """The JSON values of a reply: the whole if it is JSON, else those in its answer."""
    try:
        yield json.loads(reply, strict=False)
    except (ValueError, RecursionError):
        for candidate in answer_candidates(reply):
            yield from json_values(candidate)


def _without_json(reply: str) -> str:
    if not reply.strip():
        return "it is empty"
    if not answer_text(reply):
        return "it is reasoning that never ends in an answer"
    return "Invalid JSON: no object or list in it is complete"


def _explained(error: ValidationError | RecursionError) -> str:
    """A validation error in one line, without the values, which may be long."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    problems = error.errors(
        include_url=False, include_input=False, include_context=False
    )
    return "; ".join(
        f"{'.'.join(map(str, problem['loc'])) or 'the value'}: {problem['msg']}"
        for problem in problems[:5]
    )
