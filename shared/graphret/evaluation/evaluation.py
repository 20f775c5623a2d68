"""Methods compared on any graph, question by question, with paired intervals.

Answers are saved as they come.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from graphret.errors import GraphretError, InvalidInput, RetrievalFailed
from graphret.evaluation.journal import Answer, Answers, Journal
from graphret.evaluation.questions import EvaluationQuestion, resolve_answers
from graphret.evaluation.runner import Progress
from graphret.evaluation.summary import K, Prices, Summary
from graphret.llm.metered import MeteredChat, Spent
from graphret.methods import METHODS, Method, MethodOptions, OpenGraph
from graphret.retriever import Retriever, require_on_failure


def evaluate(
    graph: OpenGraph,
    questions: Sequence[EvaluationQuestion],
    methods: Sequence[Method],
    options: MethodOptions = MethodOptions(),
    *,
    journal: Path | None = None,
    prices: Prices | None = None,
    on_failure: str = "raise",
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Ask several methods the same questions, and measure what they answer.

    Parameters
    ----------
    graph, questions, methods, options
        What is asked what, by whom, and how the methods work; questions as
        `read_evaluation_questions` has them. The first method is the one that gains
        are over.
    journal
        A file that keeps every answer: the same call with the same file asks only what
        is not in it yet.
    prices
        Of the model's tokens, for the column ``cost``.
    on_failure
        ``"raise"`` stops when the model cannot be reached, before an answer without it
        is kept; ``"fallback"`` keeps what the method answers without it.
    progress
        Called as the work goes on, with a method, how many questions are done, and how
        many there are.

    Returns
    -------
    dict
        ``name``; ``rows`` (``kind/method``, ``all/method`` over all questions → metric
        → percent, the mean a question of calls, tokens and dollars, or the median of
        seconds);
        ``intervals`` (row → metric → gain over the first method with its 95 % bootstrap
        interval, questions paired); ``spread`` (row → metric → the interval of the
        value itself); ``recall`` (row over all → recall at 1 … 20); ``counts``,
        ``titles``, ``baseline``, ``shown``, ``places`` and ``notes``.

    Raises
    ------
    InvalidInput
        When a method cannot be had on the graph, no answer is in it, or the journal is
        of another run.
    RetrievalFailed
        When a method fails, or its model cannot be reached; what was answered until
        then is in the journal.
    """
    require_methods(methods)
    require_on_failure(on_failure)
    answerable, remarks = resolve_answers(graph.store, questions, graph.documents)
    model = options.chat_model()
    meter = None if model is None else MeteredChat(model)
    metered = replace(options, chat=meter)
    retrievers = {method: graph.retriever(method, metered) for method in methods}
    nodes, edges = graph.store.count()
    journal_file = Journal(
        journal, {"nodes": nodes, "edges": edges, **_options_given(options)}
    )
    answers = journal_file.read()
    _require_same_texts(answerable, answers, journal_file)
    report = progress or (lambda stage, done, total: None)
    for method, retriever in retrievers.items():
        for nth, question in enumerate(answerable):
            report(method, nth, len(answerable))
            if (method, question.id) not in answers:
                try:
                    answer = _measured_answer(method, retriever, question, meter)
                except GraphretError as error:
                    raise _stop_error(method, question, error, journal_file) from error
                if meter is not None and meter.outage and on_failure == "raise":
                    raise _stop_error(
                        method, question, meter.outage, journal_file
                    ) from meter.outage
                journal_file.add(answer)
                answers[method, question.id] = answer
        report(method, len(answerable), len(answerable))
    summary = Summary(
        answerable, list(retrievers), answers, prices=prices, by_model=model is not None
    )
    return summary.to_dict({"nodes": nodes, "edges": edges}, remarks)


def require_methods(methods: Sequence[str]) -> None:
    """Raise an `InvalidInput` for no method, an unknown one, or the same one twice."""
    unknown = [method for method in methods if method not in METHODS]
    if not methods or unknown or len(set(methods)) < len(methods):
        raise InvalidInput(
            f"method: expected some of {', '.join(METHODS)}, each once, got"
            f" {', '.join(methods) or 'none'}"
        )


def _options_given(options: MethodOptions) -> dict[str, Any]:
    """Return the options that decide what is answered, as far as they were given."""
    defaults = {option.name: option.default for option in fields(MethodOptions)}
    for name in ("chat", "llm_cache", "on_run", "base_url"):
        del defaults[name]
    return {
        name: value if isinstance(value, int | float) else _name(value)
        for name, default in defaults.items()
        if (value := getattr(options, name)) != default
    }


def _name(value: Any) -> str:
    """Return what a file, a name or a reranker is called."""
    return str(getattr(value, "name", value))


def _require_same_texts(
    questions: Sequence[EvaluationQuestion], answers: Answers, journal: Journal
) -> None:
    texts = {question.id: question.text for question in questions}
    for answer in answers.values():
        if texts.get(answer.question, answer.text) != answer.text:
            raise InvalidInput(
                f"{journal.path}: it contains an answer to another question"
                f" {answer.question!r} and was left unchanged: {answer.text!r}"
            )


def _stop_error(
    method: str, question: EvaluationQuestion, error: Exception, journal: Journal
) -> RetrievalFailed:
    """Return what to raise where a run cannot go on."""
    resume_hint = (
        ""
        if journal.path is None
        else f"; the answers until then are in {journal.path}, and the same command"
        " goes on from there"
    )
    return RetrievalFailed(f"{method}, question {question.id}: {error}{resume_hint}")


def _measured_answer(
    method: str,
    retriever: Retriever,
    question: EvaluationQuestion,
    meter: MeteredChat | None,
) -> Answer:
    """Ask a method a question, and measure what that takes."""
    before = Spent() if meter is None else meter.spent
    start = time.perf_counter()
    retrieval = retriever.retrieve(question.text, K)
    seconds = time.perf_counter() - start
    spent = Spent() if meter is None else meter.spent - before
    failures = tuple(
        f"{stage.details['failed']}: {stage.details.get('error', '')}"
        for stage in retrieval.trace.fallbacks
        if "failed" in stage.details
    )
    return Answer(
        method,
        question.id,
        question.text,
        tuple(retrieval.ids),
        round(seconds, 6),
        spent.calls,
        spent.usage.input_tokens,
        spent.usage.output_tokens,
        failures,
    )
