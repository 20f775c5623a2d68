"""Metadata by a model: its cost in advance, and its questions as a file of requests.

An endpoint that answers such a file in batches takes half the price (SAGE, appendix
B.1).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from graphret.corpus.llm_metadata import (
    MAX_TOKENS,
    PASSAGE,
    TABLE,
    LLMMetadata,
    kind_of,
)
from graphret.corpus.metadata_prompts import Answer
from graphret.errors import InvalidInput
from graphret.llm.cache import AnswerCache
from graphret.llm.chat import Message, Usage
from graphret.llm.openai_chat import OpenAIChat
from graphret.llm.schema import plain_schema
from graphret.llm.structured import parse_json, with_schema
from graphret.schema.text import estimate_tokens
from graphret.types import Node

#: Tokens that a model wrote of a passage and of a table on average (SAGE, table 16 over
#: the chunks of table 8).
WRITTEN: Mapping[str, int] = {PASSAGE: 1_002, TABLE: 4_096}
#: What answers in batches cost, as a share of the price (SAGE, appendix B.1).
BATCHED = 0.5

_ENDPOINT = "/v1/chat/completions"
_KEY = re.compile(r"[0-9a-f]{64}")  # a key becomes the name of a file


@dataclass(frozen=True, slots=True)
class MetadataEstimate:
    """What a model will be asked, and the tokens that it takes.

    Parameters
    ----------
    answered
        Questions whose answers the cache has.
    asked, tokens
        By kind, ``passage`` or ``table``, how many questions are left, and their
        tokens: those read are counted rather too high than too low, those written are
        the paper's averages.
    """

    answered: int
    asked: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, Usage] = field(default_factory=dict)

    @property
    def total(self) -> Usage:
        """The tokens of all kinds."""
        return sum(self.tokens.values(), Usage())


def estimate_metadata(
    extractor: LLMMetadata, nodes: Sequence[Node]
) -> MetadataEstimate:
    """Return what an extractor would ask about nodes; nothing is asked."""
    questions = extractor.questions(nodes)
    unanswered = _unanswered(extractor, questions)
    asked: Counter[str] = Counter()
    tokens: dict[str, Usage] = {}
    for node in unanswered.values():
        kind = kind_of(node)
        read = [message.content for message in _messages(extractor, node)]
        usage = Usage(sum(map(estimate_tokens, read)), WRITTEN[kind])
        asked[kind] += 1
        tokens[kind] = tokens.get(kind, Usage()) + usage
    return MetadataEstimate(len(questions) - len(unanswered), dict(asked), tokens)


def write_batch(path: Path, extractor: LLMMetadata, nodes: Sequence[Node]) -> int:
    """Write the open questions about nodes as a file of requests; return their number.

    It has OpenAI's batch format, a line for each request, which vLLM reads too.

    Raises
    ------
    InvalidInput
        When the model is not behind an OpenAI-compatible endpoint.
    """
    model = extractor.model
    if not isinstance(model, OpenAIChat):
        raise InvalidInput(
            "a file of requests is for a model behind an OpenAI-compatible endpoint,"
            f" not for {model.name!r}"
        )
    unanswered = _unanswered(extractor, extractor.questions(nodes))
    with path.open("w", encoding="utf-8") as file:
        for key, node in unanswered.items():
            body = model.body(
                _messages(extractor, node),
                max_tokens=MAX_TOKENS,
                json_schema=_schema(extractor.prompt.of(node).answer),
            )
            line = {"custom_id": key, "method": "POST", "url": _ENDPOINT, "body": body}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    return len(unanswered)


@dataclass(slots=True)
class BatchReport:
    """Counts of a batch's replies: kept, unusable and why, and the tokens of all."""

    kept: int = 0
    failed: int = 0
    first_failure: str = ""
    usage: Usage = field(default_factory=Usage)


def read_batch(path: Path, extractor: LLMMetadata) -> BatchReport:
    """Put the replies of a batch into an extractor's cache, so that it need not ask.

    What the file lacks, or what cannot be used, is asked as usual.

    Raises
    ------
    InvalidInput
        When the extractor has no cache, or a line is no reply to a request of
        `write_batch`; the message names it, and the replies before it are kept.
    """
    if extractor.cache is None:
        raise InvalidInput("the replies of a batch need a cache that keeps them")
    cache, report = AnswerCache(extractor.cache), BatchReport()
    prompt = extractor.prompt
    shapes = list(dict.fromkeys([prompt.passage.answer, prompt.table.answer]))
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            where = f"{path}, line {number}"
            key, reply = _reply(line, where)
            answer, problem = _answer(reply, shapes)
            report.usage += _usage(reply)
            if answer is None:
                report.failed += 1
                report.first_failure = report.first_failure or f"{where}: {problem}"
                continue
            cache.put(key, answer.model_dump_json())
            report.kept += 1
    return report


def _unanswered(
    extractor: LLMMetadata, questions: Mapping[str, Node]
) -> dict[str, Node]:
    """Return the questions whose answers the cache lacks."""
    answered = extractor.answered(questions)
    return {key: node for key, node in questions.items() if key not in answered}


def _messages(extractor: LLMMetadata, node: Node) -> list[Message]:
    """Return the messages about a node as they are sent, with the schema."""
    request = extractor.prompt.of(node)
    return with_schema(request.messages(node), _schema(request.answer))


@cache  # milliseconds, and there is a question for each node
def _schema(shape: type[Answer]) -> dict[str, Any]:
    return plain_schema(TypeAdapter(shape).json_schema())


def _reply(line: str, where: str) -> tuple[str, Mapping[str, Any]]:
    """Return the key of a question and what came of it."""
    try:
        reply = json.loads(line)
        key = reply["custom_id"]
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidInput(
            f"{where}: expected an object with a custom_id, got {line[:80]!r}"
        ) from error
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise InvalidInput(f"{where}: expected a custom_id of graphret's, got {key!r}")
    return key, reply


def _answer(
    reply: Mapping[str, Any], shapes: Sequence[type[Answer]]
) -> tuple[Answer | None, str]:
    """Return the answer in a reply, or what is wrong with it."""
    if reply.get("error"):
        return None, str(reply["error"])[:200]
    try:
        text = reply["response"]["body"]["choices"][0]["message"]["content"]
    except (TypeError, KeyError, IndexError):
        return None, f"there is no answer in it: {str(reply.get('response'))[:200]}"
    problem = "it is empty"
    for shape in shapes if isinstance(text, str) else ():
        value, found = parse_json(text, TypeAdapter(shape))
        if found is None:
            return value, ""
        problem = found
    return None, problem


def _usage(reply: Mapping[str, Any]) -> Usage:
    """Return the tokens that the endpoint counted, zero where it did not."""
    try:
        counted = reply["response"]["body"]["usage"]
        return Usage(int(counted["prompt_tokens"]), int(counted["completion_tokens"]))
    except (TypeError, KeyError, ValueError):
        return Usage()
