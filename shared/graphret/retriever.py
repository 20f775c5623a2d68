"""The `Retriever` base class and the combinators of retrievers."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from graphret.errors import InvalidInput, RetrievalFailed
from graphret.fusion import filled as filled
from graphret.fusion import reciprocal_rank
from graphret.search.index import require_k
from graphret.trace import Trace
from graphret.types import Hit, Retrieval, Signals
from graphret.where import Where, WhereLike

if TYPE_CHECKING:
    from graphret.stores.base import GraphStore

T = TypeVar("T")

#: The highest confidence of an answer to a question with a doubtful part.
DOUBTFUL = 0.25


@dataclass(frozen=True, slots=True)
class Ask:
    """A step of a retrieval: a query to another retriever.

    Failures are returned as values, not raised.
    """

    retriever: Retriever
    query: str
    k: int
    where: Where | None = None

    def run(self) -> Retrieval | Exception:
        """Ask, blocking."""
        try:
            return self.retriever.retrieve(self.query, self.k, self.where)
        except Exception as error:
            return error

    async def arun(self) -> Retrieval | Exception:
        """Ask, awaited."""
        try:
            return await self.retriever.aretrieve(self.query, self.k, self.where)
        except Exception as error:
            return error


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A step of a retrieval: an outside call with a blocking and an awaitable form."""

    run: Callable[[], T]
    arun: Callable[[], Awaitable[T]]


@dataclass(frozen=True, slots=True)
class Compute:
    """A step of a retrieval: computation, which async callers move to a thread."""

    run: Callable[[], Any]

    def arun(self) -> Awaitable[Any]:
        """Do the work in a thread."""
        return asyncio.to_thread(self.run)


#: A retrieval as a generator: it yields steps, is sent their results, and returns its
#: answer.
Steps: TypeAlias = Generator[Any, Any, Retrieval]


class Retriever:
    """Finds nodes for a query, with evidence for each.

    A plain retriever overrides `_retrieve`; one that asks others overrides `_steps`,
    written once for both calls.
    """

    name: str = ""

    def retrieve(self, query: str, k: int = 10, where: WhereLike = None) -> Retrieval:
        """Return the `k` best nodes that satisfy `where`, or all if fewer qualify.

        Raises
        ------
        InvalidInput
            When the query is not a string, `k` is below 1 or the filter is malformed.
        """
        return _finished(drive(self._steps(*_checked(query, k, where))))

    async def aretrieve(
        self, query: str, k: int = 10, where: WhereLike = None
    ) -> Retrieval:
        """Do what `retrieve` does without blocking the event loop."""
        return _finished(await adrive(self._steps(*_checked(query, k, where))))

    def _steps(self, query: str, k: int, where: Where | None) -> Steps:
        result: Retrieval = yield Compute(lambda: self._retrieve(query, k, where))
        return result

    def _retrieve(self, query: str, k: int, where: Where | None) -> Retrieval:
        raise NotImplementedError(
            f"{type(self).__name__} overrides neither _retrieve nor _steps"
        )

    @property
    def graph_store(self) -> GraphStore | None:
        """The graph whose nodes it finds; `None` if unknown."""
        return None

    def __str__(self) -> str:
        return self.name or type(self).__name__


def _checked(query: Any, k: Any, where: Any) -> tuple[str, int, Where | None]:
    if not isinstance(query, str):
        raise InvalidInput(f"query: expected a string, got {type(query).__name__}")
    return query, require_k(k), Where.parse(where)


def _finished(retrieval: Retrieval) -> Retrieval:
    """Return the retrieval with the relevance of all hits, which never rises."""
    scores = [hit.score for hit in retrieval.hits]
    low, confidence = min([0.0, *scores]), retrieval.signals.confidence
    span, last = max(scores, default=0.0) - low, 1.0
    best = 1.0 if confidence is None else confidence
    hits: list[Hit] = []
    for hit in retrieval.hits:
        share = best * (hit.score - low) / span if span > 0 else 0.0
        last = float(min(last, share if hit.relevance is None else hit.relevance))
        hits.append(replace(hit, relevance=last))
    return replace(retrieval, hits=hits)


def drive(steps: Generator[Any, Any, T]) -> T:
    """Run the steps that a generator yields, blocking, and return its value.

    Each step's result is sent back to the generator; an exception is thrown into it.
    The steps of a list run one after another, and their results are a list.
    """
    result: Any = None
    error: BaseException | None = None
    while True:
        try:
            step = steps.send(result) if error is None else steps.throw(error)
        except StopIteration as finished:
            value: T = finished.value
            return value
        result = error = None
        try:
            result = [part.run() for part in step] if _is_several(step) else step.run()
        except BaseException as raised:
            error = raised


async def arun_step(step: Any) -> Any:
    """Run a step, or the steps of a list at the same time."""
    if _is_several(step):
        return await asyncio.gather(*(part.arun() for part in step))
    return await step.arun()


async def adrive(
    steps: Generator[Any, Any, T],
    run_step: Callable[[Any], Awaitable[Any]] = arun_step,
) -> T:
    """Do what `drive` does, awaiting each step."""
    result: Any = None
    error: BaseException | None = None
    while True:
        try:
            step = steps.send(result) if error is None else steps.throw(error)
        except StopIteration as finished:
            value: T = finished.value
            return value
        result = error = None
        try:
            result = await run_step(step)
        except BaseException as raised:
            error = raised


def _is_several(step: Any) -> bool:
    return isinstance(step, list)


def unwrap_or_fallback(
    result: Any, retriever: Retriever | str, on_failure: str, trace: Trace
) -> Retrieval | None:
    """Return a retriever's answer; if it failed, note the fallback and return `None`.

    It raises `RetrievalFailed` when `on_failure` is ``"raise"``, and always the
    caller's mistakes.
    """
    if isinstance(result, Retrieval):
        return result
    if isinstance(result, InvalidInput):
        raise result
    if on_failure == "raise":
        raise RetrievalFailed(f"{retriever} failed: {result}") from result
    trace.note(
        "fallback", failed=str(retriever), error=f"{type(result).__name__}: {result}"
    )
    return None


def backfill(
    answer: Retrieval, other: Retriever, on_failure: str, where: Where | None
) -> Steps:
    """Return an answer with its free places filled by another retriever.

    Hits with the answer's labels come first. If the answer is empty, the other
    retriever answers alone, and raises if it fails.
    """
    hits, k, trace = answer.hits, answer.k, answer.trace
    if len(hits) >= k:
        return replace(answer, hits=hits[:k])
    result = yield Ask(other, answer.query, k + len(hits), where)
    if isinstance(result, Exception) and not hits:
        raise result
    if (more := unwrap_or_fallback(result, other, on_failure, trace)) is None:
        return answer
    trace.extend(more.trace, f"{other}/")
    signals = (
        answer.signals
        if hits
        else replace(
            more.signals,
            plan_valid=answer.signals.plan_valid,
            doubts=answer.signals.doubts,
            confidence=sure_of(more.signals.confidence, answer.signals.doubts),
        )
    )
    # An answer of films is better filled with films than with people.
    labels = {hit.node.label for hit in hits}
    fill = sorted(more.hits, key=lambda hit: hit.node.label not in labels)
    return replace(answer, hits=filled(hits, fill, k), signals=signals)


def sure_of(confidence: float | None, doubts: Sequence[str] | None) -> float | None:
    """Return the confidence, lowered if a part of the question is in doubt."""
    if not doubts:
        return confidence
    return DOUBTFUL if confidence is None else min(confidence, DOUBTFUL)


def require_on_failure(value: str) -> str:
    """Return `value` if it is ``"fallback"`` or ``"raise"``."""
    if value not in ("fallback", "raise"):
        raise InvalidInput(f"on_failure: expected 'fallback' or 'raise', got {value!r}")
    return value


def load_settings(path: str | Path, make: Callable[[Any], T]) -> T:
    """Return settings made from a JSON file; `InvalidInput` says what is wrong."""
    try:
        return make(json.loads(Path(path).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InvalidInput(f"{path}: expected a file of settings: {error!r}") from error


#: The weight of each retriever, or a function that returns them for a question.
Weights: TypeAlias = Sequence[float] | Callable[[Sequence[Signals]], Sequence[float]]


class Fuse(Retriever):
    """Ask several retrievers at once and fuse their rankings by reciprocal ranks.

    Hits that only filled up a retriever's answer are ranked below all others.

    Parameters
    ----------
    retrievers
        The retrievers to ask.
    weights
        The weight of each; 1 by default. Or a function that returns the weights for a
        question from the signals of each retriever, such as
        `graphret.grasp.StaticWeights`; one that failed has an empty `Signals`.
    rrf_k
        Constant of reciprocal rank fusion (Cormack et al. 2009; 60 there).
    depth
        The number of hits that each is asked for, at least `k`.
    on_failure
        ``"fallback"`` continues with those that answered; ``"raise"`` raises.
    """

    name = "fuse"

    def __init__(
        self,
        retrievers: Sequence[Retriever],
        *,
        weights: Weights | None = None,
        rrf_k: float = 60.0,
        depth: int = 50,
        on_failure: str = "fallback",
    ) -> None:
        if not retrievers:
            raise InvalidInput("retrievers: there are none to fuse")
        self.retrievers = list(retrievers)
        self.weights: Weights = (
            [1.0] * len(self.retrievers) if weights is None else weights
        )
        if not callable(self.weights):
            self._checked(self.weights)
        self.rrf_k = rrf_k
        self.depth = depth
        self.on_failure = require_on_failure(on_failure)

    def _checked(self, weights: Sequence[float]) -> list[float]:
        if len(weights) != len(self.retrievers) or not all(
            0 <= weight < math.inf for weight in weights
        ):
            raise InvalidInput(
                f"weights: expected {len(self.retrievers)} numbers of at least 0,"
                f" got {weights}"
            )
        return list(weights)

    @property
    def graph_store(self) -> GraphStore | None:
        stores = (retriever.graph_store for retriever in self.retrievers)
        return next((store for store in stores if store is not None), None)

    def _steps(self, query: str, k: int, where: Where | None) -> Steps:
        trace = Trace()
        with trace.stage("ask", retrievers=[str(r) for r in self.retrievers]):
            results = yield [
                Ask(r, query, max(k, self.depth), where) for r in self.retrievers
            ]
        lists, all_signals = list[Sequence[Hit]](), list[Signals]()
        rows = list[dict[str, Any]]()
        for retriever, result in zip(self.retrievers, results, strict=True):
            answer = unwrap_or_fallback(result, retriever, self.on_failure, trace)
            lists.append(answer.hits if answer is not None else [])
            all_signals.append(answer.signals if answer is not None else Signals())
            if answer is not None:
                trace.extend(answer.trace, f"{retriever}/")
                rows += answer.rows
        if not any(lists) and all(isinstance(r, Exception) for r in results):
            raise RetrievalFailed(
                f"every retriever failed; the first: {results[0]}"
            ) from results[0]
        with trace.stage("fuse") as stage:
            weights = (
                self._checked(self.weights(all_signals))
                if callable(self.weights)
                else list(self.weights)
            )
            stage.details["weights"] = weights
            hits = reciprocal_rank(
                lists, [str(r) for r in self.retrievers], weights, self.rrf_k
            )
        signals = Signals(
            len(hits), walked_edges=any(part.walked_edges for part in all_signals)
        )
        for name in ("answer_labels", "plan_valid", "risk", "doubts"):
            values = (getattr(part, name) for part in all_signals)
            first = next((value for value in values if value is not None), None)
            setattr(signals, name, first)
        signals.confidence = sure_of(_best_relevance(hits, lists), signals.doubts)
        # Rows are computed: they are not worse for being in one list alone.
        hits.sort(key=lambda hit: not hit.is_row)
        return Retrieval(query, k, hits[:k], signals, trace, rows)


def _best_relevance(hits: Sequence[Hit], lists: Sequence[Sequence[Hit]]) -> float:
    """Return the highest relevance in any list of the first of the fused hits."""
    return max(
        (
            hit.relevance or 0.0
            for listed in lists
            for hit in listed
            if hit.id == hits[0].id
        ),
        default=0.0,
    )


class Fallback(Retriever):
    """Ask a second retriever if the first fails, or to fill its free places."""

    name = "fallback"

    def __init__(self, first: Retriever, second: Retriever) -> None:
        self.first = first
        self.second = second

    @property
    def graph_store(self) -> GraphStore | None:
        store = self.first.graph_store
        return self.second.graph_store if store is None else store

    def _steps(self, query: str, k: int, where: Where | None) -> Steps:
        trace = Trace()
        result = yield Ask(self.first, query, k, where)
        answer = unwrap_or_fallback(result, self.first, "fallback", trace)
        if answer is not None:
            trace.extend(answer.trace, f"{self.first}/")
            if len(answer.hits) < k:
                trace.note("fallback", reason="too few hits", found=len(answer.hits))
        partial = (
            Retrieval(query, k, [], trace=trace)
            if answer is None
            else replace(answer, trace=trace)
        )
        return (yield from backfill(partial, self.second, "fallback", where))
