"""Metadata written by a language model, with rules as the fallback.

See the SAGE paper, section 2.1 A and appendix G.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from graphret.corpus.metadata import HeuristicMetadata, MetadataExtractor
from graphret.corpus.metadata_prompts import (
    DEFAULT_PROMPT,
    Answer,
    MetadataPrompt,
    is_table,
)
from graphret.executors import LOCAL, Executor
from graphret.llm.cache import AnswerCache, cache_key
from graphret.llm.chat import ChatError, ChatModel, Usage
from graphret.llm.event_loop import run_sync
from graphret.llm.structured import aask_json
from graphret.types import Node

_log = logging.getLogger(__name__)
_PATIENCE = 20  # give up after so many failures in a row
#: Kinds of questions, by which tokens are counted (SAGE, table 16).
PASSAGE, TABLE = "passage", "table"
#: The longest answer, in tokens.
MAX_TOKENS = 4_096


@dataclass(slots=True)
class LLMReport:
    """Counts of questions asked and failed, and of nodes that fell back on the rules.

    `last_failure` says why the last question failed; `by_kind` has the tokens of
    passages and tables apart.
    """

    asked: int = 0
    failed: int = 0
    fell_back: int = 0
    usage: Usage = field(default_factory=Usage)
    by_kind: dict[str, Usage] = field(default_factory=dict)
    last_failure: str = ""

    def spent(self, node: Node, usage: Usage) -> None:
        """Count what a question about a node took."""
        kind = kind_of(node)
        self.usage += usage
        self.by_kind[kind] = self.by_kind.get(kind, Usage()) + usage


def kind_of(node: Node) -> str:
    """Return what kind of question a node makes."""
    return TABLE if is_table(node) else PASSAGE


@dataclass
class LLMMetadata(MetadataExtractor):
    """Asks a model about every node, with `HeuristicMetadata` where the model fails.

    `report` counts the failures; after twenty in a row no other question is asked, and
    only the requests in flight are awaited. Node text is quoted to the model as
    untrusted data, and the answer is untrusted in turn: it is validated, cleaned and
    cut to size, and becomes nothing but properties.

    Parameters
    ----------
    concurrency
        The most requests in flight.
    cache
        A folder that keeps each answer as it arrives, by content, model and prompt
        version, so that a killed run resumes where it was and unchanged nodes cost
        nothing; `None` keeps nothing.
    progress
        Called with the number of questions done, and of all questions, while the model
        is asked.
    prompt
        What is asked, `DEFAULT_PROMPT` or `PAPER_PROMPT` of
        `graphret.corpus.metadata_prompts`, or your own.
    """

    model: ChatModel
    concurrency: int = 8
    cache: str | os.PathLike[str] | None = None
    progress: Callable[[int, int], None] | None = None
    prompt: MetadataPrompt = DEFAULT_PROMPT
    report: LLMReport = field(default_factory=LLMReport, init=False)
    corpus_wide: bool = field(default=False, init=False)

    def extract(
        self, nodes: Sequence[Node], executor: Executor = LOCAL
    ) -> list[dict[str, Any]]:
        """Return the metadata of each node; the same content is asked about once.

        The model is asked from this process; only the rules run on the executor.
        """
        keys = [self.key(node) for node in nodes]
        questions = self.questions(nodes)
        answers = self.answered(questions)
        run_sync(self._ask(questions, answers))
        if failed := sum(key in questions and key not in answers for key in keys):
            self.report.fell_back += failed
            _log.warning(
                f"{failed} of {len(nodes)} nodes have metadata from the rules:"
                f" {self.report.last_failure}"
            )
        rules = []
        if len(answers) < len({*keys}):
            rules = HeuristicMetadata().extract(nodes, executor)
        return [
            answers[key].as_properties(nodes[i]) if key in answers else rules[i]
            for i, key in enumerate(keys)
        ]

    def key(self, node: Node) -> str:
        """Return what the answer about a node is kept under."""
        asked = [one.content for one in self.prompt.of(node).messages(node)]
        return cache_key(self.prompt.version, self.model.name, asked)

    def questions(self, nodes: Sequence[Node]) -> dict[str, Node]:
        """Return the nodes that say something, by `key`: the same content once."""
        return {self.key(node): node for node in nodes if node.text.strip()}

    def answered(self, questions: Mapping[str, Node]) -> dict[str, Answer]:
        """Return the answers that the cache has; what is damaged is asked again."""
        answers: dict[str, Answer] = {}
        if self.cache is None:
            return answers
        cache = AnswerCache(self.cache)
        for key, node in questions.items():
            with contextlib.suppress(ValidationError):
                shape = self.prompt.of(node).answer
                answers[key] = shape.model_validate_json(cache.get(key) or "")
        return answers

    async def _ask(
        self, questions: Mapping[str, Node], answers: dict[str, Answer]
    ) -> None:
        """Ask the model the questions that have no answer yet."""
        cache = AnswerCache(self.cache) if self.cache is not None else None
        report, remaining = (
            self.report,
            iter([key for key in questions if key not in answers]),
        )
        done, failures_in_a_row = len(answers), 0

        async def work() -> None:
            nonlocal done, failures_in_a_row
            for key in remaining:
                if failures_in_a_row >= _PATIENCE:
                    return
                report.asked += 1
                node = questions[key]
                request = self.prompt.of(node)
                try:
                    answers[key], usage, _ = await aask_json(
                        self.model,
                        request.messages(node),
                        request.answer,
                        max_tokens=MAX_TOKENS,
                    )
                    failures_in_a_row = 0
                    if cache is not None:
                        cache.put(key, answers[key].model_dump_json())
                except ChatError as error:
                    failures_in_a_row, usage = failures_in_a_row + 1, error.usage
                    report.failed += 1
                    report.last_failure = f"node {node.id!r}: {error}"
                report.spent(node, usage)
                done += 1
                if self.progress:
                    self.progress(done, len(questions))

        await asyncio.gather(*(work() for _ in range(max(1, self.concurrency))))
