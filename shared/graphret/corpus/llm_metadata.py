"""Metadata written by a language model, with rules to fall back on."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from graphret.corpus.heuristics import HeuristicMetadata
from graphret.corpus.llm_prompts import (
    PROMPT_VERSION,
    DocumentAnswer,
    NodeAnswer,
    TableAnswer,
    has_content,
    is_table,
    metadata_of,
    prompt,
)
from graphret.corpus.metadata import Metadata, MetadataExtractor
from graphret.errors import InvalidInput, ModelError
from graphret.llm.cache import AnswerCache, cache_key
from graphret.llm.chat import ChatError, ChatModel, Message
from graphret.llm.running import run_sync
from graphret.llm.structured import aask_json
from graphret.types import Node

if TYPE_CHECKING:
    from pydantic import TypeAdapter

ProgressCallback = Callable[[int, int], None]
"""Called with the number of nodes done and of all, after each node."""

_log = logging.getLogger(__name__)
# Reasons to doubt the endpoint rather than the one answer, and to expect nothing of it at all.
_OUTAGE = ("rate_limit", "server", "timeout", "connection")
_HOPELESS = ("authentication", "not_found")


@dataclass(slots=True)
class LLMReport:
    """What an `LLMMetadata` has done since it was made.

    Attributes
    ----------
    nodes
        Nodes that were handed in.
    asked
        Different questions that the model was asked.
    cached
        Nodes answered from the cache on disk.
    shared
        Nodes with the same content as another of their call.
    empty
        Nodes without content, which the fallback describes.
    repaired
        Questions that took more than one reply, and were answered.
    fell_back
        Nodes with content that the fallback describes, because the model failed.
    not_asked
        Of these, the ones that were not tried, because the endpoint was given up.
    input_tokens, output_tokens
        Tokens spent, failed attempts included where the endpoint counts them.
    seconds
        Wall-clock time.
    failures
        How many questions failed, by `ChatError.reason`.
    last_failure
        The last failure's message.
    """

    nodes: int = 0
    asked: int = 0
    cached: int = 0
    shared: int = 0
    empty: int = 0
    repaired: int = 0
    fell_back: int = 0
    not_asked: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    failures: Counter[str] = field(default_factory=Counter)
    last_failure: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {**asdict(self), "failures": dict(self.failures)}


class LLMMetadata(MetadataExtractor):
    """Metadata asked of a chat model, one question a node (SAGE, section 2.1 A and appendix G).

    Questions run concurrently. An answer that is not valid JSON of the right shape is repaired once; a node for which
    that fails is described by `fallback`, and counted in `report`. When the endpoint itself is down the rest is not
    asked: at once if it refuses the key or knows no such model, else after `give_up_after` failures in a row.

    Node text is quoted to the model as untrusted data, and the answer is untrusted in turn: it is validated, cleaned
    and cut to size, and ends in nothing but `Metadata`.

    Parameters
    ----------
    model
        Any `ChatModel`; retries of single requests are its business.
    fallback
        Who describes the nodes that the model does not; one that is corpus-wide sees all nodes of the call.
    concurrency
        The most requests in flight.
    cache
        A folder that keeps each answer as it comes, by content, model and prompt version, so that a run that was
        killed goes on where it was, and unchanged nodes cost nothing; `None` keeps nothing.
    repairs
        Further replies to ask for after one that is invalid.
    max_chars
        About how many characters of a node's content are shown to the model; a mark says what was left out.
    max_tokens
        The most tokens of a reply.
    progress
        `True` for a progress bar on the terminal, or a function that is called with the nodes done and their number.
    on_failure
        ``"raise"`` makes the first failure a `ModelError`; what was answered until then stays in the cache.
    give_up_after
        Failures in a row of the endpoint after which it is asked no more in this call; `None` never gives up.

    Attributes
    ----------
    report : LLMReport
        Counts over all calls.
    corpus_wide
        False: the model sees one node at a time. What a corpus-wide fallback supplied is not renewed by updates.

    Examples
    --------
    >>> extractor = LLMMetadata(OpenAIChat("qwen3-8b", base_url="http://localhost:8000/v1"), cache="cache")
    >>> nodes = describe(nodes, extractor)  # doctest: +SKIP
    >>> extractor.report.fell_back  # doctest: +SKIP
    0
    """

    corpus_wide: bool = False

    def __init__(
        self,
        model: ChatModel,
        *,
        fallback: MetadataExtractor | None = None,
        concurrency: int = 8,
        cache: str | os.PathLike[str] | None = None,
        repairs: int = 1,
        max_chars: int = 12_000,
        max_tokens: int | None = 4_096,
        progress: ProgressCallback | bool = False,
        on_failure: Literal["fallback", "raise"] = "fallback",
        give_up_after: int | None = 20,
    ) -> None:
        for name, value in {"concurrency": concurrency, "max_chars": max_chars, "give_up_after": give_up_after}.items():
            if value is not None and value < 1:
                raise InvalidInput(f"LLMMetadata.{name}: {value} is less than 1")
        if on_failure not in ("fallback", "raise"):
            raise InvalidInput(f"LLMMetadata.on_failure: {on_failure!r} is neither 'fallback' nor 'raise'")
        self.model = model
        self.fallback: MetadataExtractor = HeuristicMetadata() if fallback is None else fallback
        self.concurrency = concurrency
        self.cache = cache
        self.repairs = repairs
        self.max_chars = max_chars
        self.max_tokens = max_tokens
        self.progress = progress
        self.on_failure = on_failure
        self.give_up_after = give_up_after
        self.report = LLMReport()

    def extract(self, nodes: Sequence[Node]) -> list[Metadata]:
        """Return the metadata of each node, in their order.

        Inside a running event loop this blocks it; await `aextract` there.

        Raises
        ------
        ModelError
            With ``on_failure="raise"``, for the first node that fails, by its id.
        StorageError
            If the cache cannot be written.
        """
        return run_sync(self.aextract(nodes))

    async def aextract(self, nodes: Sequence[Node]) -> list[Metadata]:
        """`extract` in the running event loop; cancelling it cancels the requests, and keeps what was answered."""
        start = time.perf_counter()
        self.report.nodes += len(nodes)
        try:
            with contextlib.ExitStack() as stack:
                cache = stack.enter_context(AnswerCache(self.cache)) if self.cache is not None else None
                advance = stack.enter_context(_advancing(self.progress, len(nodes)))
                found = await _Call(self, nodes, cache, advance).run()
            return self._filled(nodes, found)
        finally:
            self.report.seconds += time.perf_counter() - start

    def _filled(self, nodes: Sequence[Node], found: Sequence[Metadata | None]) -> list[Metadata]:
        """`found`, with the fallback's metadata where there is none."""
        missing = [position for position, metadata in enumerate(found) if metadata is None]
        if not missing:
            return [metadata for metadata in found if metadata is not None]
        failed = sum(has_content(nodes[position]) for position in missing)
        self.report.fell_back += failed
        if failed:
            why = self.report.last_failure
            _log.warning("%d of %d nodes have metadata from the fallback: %s", failed, len(nodes), why)
        if self.fallback.corpus_wide:
            everything = self.fallback.extract(nodes)
            supplied = [everything[position] for position in missing]
        else:
            supplied = self.fallback.extract([nodes[position] for position in missing])
        by_position = dict(zip(missing, supplied, strict=True))
        return [metadata or by_position[position] for position, metadata in enumerate(found)]


class _Call:
    """One call of `aextract`: workers that share an iterator over the nodes."""

    def __init__(
        self, owner: LLMMetadata, nodes: Sequence[Node], cache: AnswerCache | None, advance: Callable[[], None]
    ) -> None:
        from pydantic import TypeAdapter

        self.owner, self.nodes, self.cache, self.advance = owner, nodes, cache, advance
        self.report = owner.report
        self.found: list[Metadata | None] = [None] * len(nodes)
        self.waiting = iter(range(len(nodes)))
        self.first_with: dict[str, int] = {}
        self.copies: list[tuple[int, int]] = []
        self.failures_in_a_row = 0
        self.gave_up = False
        self.table: TypeAdapter[NodeAnswer] = TypeAdapter(TableAnswer)
        self.document: TypeAdapter[NodeAnswer] = TypeAdapter(DocumentAnswer)

    async def run(self) -> list[Metadata | None]:
        count = min(self.owner.concurrency, len(self.nodes))
        workers = [asyncio.create_task(self._work()) for _ in range(count)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        for position, original in self.copies:
            self.found[position] = self.found[original]
        return self.found

    async def _work(self) -> None:
        for position in self.waiting:
            await self._describe(position)
            self.advance()
            await asyncio.sleep(0)

    async def _describe(self, position: int) -> None:
        node = self.nodes[position]
        if not has_content(node):
            self.report.empty += 1
            return
        messages = prompt(node, self.owner.max_chars)
        key = cache_key(PROMPT_VERSION, self.owner.model.name, [message.content for message in messages])
        original = self.first_with.setdefault(key, position)
        if original != position:
            self.report.shared += 1
            self.copies.append((position, original))
            return
        adapter = self.table if is_table(node) else self.document
        answer = self._cached(key, adapter)
        if answer is None:
            answer = await self._asked(node, messages, adapter)
            if answer is not None and self.cache is not None:
                self.cache.put(key, adapter.dump_json(answer).decode())
        if answer is not None:
            self.found[position] = metadata_of(answer, node)

    def _cached(self, key: str, adapter: TypeAdapter[NodeAnswer]) -> NodeAnswer | None:
        kept = self.cache.get(key) if self.cache is not None else None
        if kept is None:
            return None
        try:
            answer = adapter.validate_json(kept)
        except ValueError:
            return None
        self.report.cached += 1
        return answer

    async def _asked(
        self, node: Node, messages: Sequence[Message], adapter: TypeAdapter[NodeAnswer]
    ) -> NodeAnswer | None:
        if self.gave_up:
            self.report.not_asked += 1
            return None
        self.report.asked += 1
        try:
            answer, usage, attempts = await aask_json(
                self.owner.model, messages, adapter, repairs=self.owner.repairs, max_tokens=self.owner.max_tokens
            )
        except ModelError as error:
            self._failed(error)
            if self.owner.on_failure == "raise":
                raise ModelError(f"node {node.id!r}: {error}") from error
            return None
        self.failures_in_a_row = 0
        self.report.repaired += attempts > 1
        self.report.input_tokens += usage.input_tokens
        self.report.output_tokens += usage.output_tokens
        return answer

    def _failed(self, error: ModelError) -> None:
        reason = error.reason if isinstance(error, ChatError) else type(error).__name__
        self.report.failures[reason] += 1
        self.report.last_failure = str(error)
        if isinstance(error, ChatError):
            self.report.input_tokens += error.usage.input_tokens
            self.report.output_tokens += error.usage.output_tokens
        self.failures_in_a_row = self.failures_in_a_row + 1 if reason in _OUTAGE else 0
        most = self.owner.give_up_after
        if most is not None and (self.failures_in_a_row >= most or reason in _HOPELESS):
            self.gave_up = True


@contextlib.contextmanager
def _advancing(progress: ProgressCallback | bool, total: int) -> Iterator[Callable[[], None]]:
    """A function to call after each node."""
    if progress is False:
        yield lambda: None
    elif progress is True:
        from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

        with Progress(*Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn()) as bar:
            task = bar.add_task("describing", total=total)
            yield lambda: bar.advance(task)
    else:
        callback, done = progress, 0

        def advance() -> None:
            nonlocal done
            done += 1
            callback(done, total)

        yield advance
