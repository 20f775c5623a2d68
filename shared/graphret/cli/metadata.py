"""Metadata by a model on the command line: costs first, or a file of requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from graphret.cli.console import remark, show
from graphret.cli.errors import writing_to
from graphret.cli.options import LLM, option
from graphret.errors import InvalidInput

if TYPE_CHECKING:
    from graphret.corpus.llm_metadata import LLMMetadata, LLMReport
    from graphret.evaluation import Prices
    from graphret.llm import Usage
    from graphret.types import Node

Estimate = Annotated[
    bool,
    option("Say what it takes; ask and write nothing.", "--estimate", panel=LLM),
]
BatchOut = Annotated[
    Path | None,
    option(
        "Write the questions as batch requests, and stop.",
        "--batch-out",
        metavar="FILE.jsonl",
        panel=LLM,
    ),
]
BatchIn = Annotated[
    Path | None,
    option(
        "Read the replies of a batch first.",
        "--batch-in",
        metavar="FILE.jsonl",
        panel=LLM,
        exists=True,
        dir_okay=False,
    ),
]
MetadataPrice = Annotated[
    str | None,
    option(
        "Dollars for a million tokens, read and written.",
        "--price",
        metavar="IN,OUT",
        panel=LLM,
    ),
]


def asking_model(extractor: Any, given: Mapping[str, Any]) -> LLMMetadata | None:
    """Return the extractor that asks a model, with the replies of a batch if given.

    An `InvalidInput` names an option that was given without a model.
    """
    from graphret.corpus.llm_metadata import LLMMetadata

    if isinstance(extractor, LLMMetadata):
        if given["batch_in"] is not None:
            _take_batch(extractor, given["batch_in"])
        return extractor
    for name in ("estimate", "batch_out", "batch_in", "price"):
        if given[name]:
            raise InvalidInput(f"--{name.replace('_', '-')} needs --metadata llm")
    return None


def tell_ahead(
    extractor: LLMMetadata,
    nodes: Sequence[Node],
    batch_out: Path | None,
    prices: Prices | None,
    json: bool,
) -> None:
    """Print what asking about nodes would take, and write the questions if asked to."""
    from graphret.corpus.metadata_batch import (
        BATCHED,
        estimate_metadata,
        write_batch,
    )

    estimate = estimate_metadata(extractor, nodes)
    value: dict[str, Any] = {
        "nodes": len(nodes),
        "answered": estimate.answered,
        "asked": estimate.asked,
        "tokens": {kind: _tokens(usage) for kind, usage in estimate.tokens.items()},
    }
    lines = [
        f"{asked:>13,}  questions about {kind}s, about"
        f" {tokens_text(estimate.tokens[kind])}"
        for kind, asked in estimate.asked.items()
    ] or ["nothing is left to ask"]
    if estimate.answered:
        lines.append(f"{estimate.answered:>13,}  answers are in --llm-cache")
    if prices is not None:
        cost = prices.of(estimate.total)
        value |= {"cost": round(cost, 6), "cost_batched": round(cost * BATCHED, 6)}
        lines.append(
            f"about ${cost:,.2f}, and ${cost * BATCHED:,.2f} where batches cost half"
        )
    if batch_out is not None:
        with writing_to(batch_out):
            written = write_batch(batch_out, extractor, nodes)
        value["written"] = str(batch_out)
        lines.append(f"{written:,} requests in {batch_out}")
    show(json, value, *lines)


def _take_batch(extractor: LLMMetadata, file: Path) -> None:
    """Put the replies of a batch into the cache, and say how many can be used."""
    from graphret.corpus.metadata_batch import read_batch

    if extractor.cache is None:
        raise InvalidInput("--batch-in needs --llm-cache, which keeps the answers")
    taken = read_batch(file, extractor)
    remark(f"{taken.kept:,} answers of {file}, {tokens_text(taken.usage)}")
    if taken.failed:
        remark(
            f"replies that cannot be used, and are asked again: {taken.failed:,}, first"
            f" {taken.first_failure}"
        )


def cost_of(extractor: LLMMetadata | None, price: str | None) -> dict[str, float]:
    """Return what an extractor's questions cost, in dollars, where there is a price."""
    from graphret.cli.evaluate import prices_of

    prices = prices_of(price)
    if prices is None or extractor is None:
        return {}
    return {"cost": prices.of(extractor.report.usage)}


def spent_text(report: LLMReport, cost: float | None) -> str:
    """Return in words what a model was asked, and what that took."""
    priced = "" if cost is None else f", ${cost:,.2f}"
    return (
        f"questions to the model: {report.asked:,}, {tokens_text(report.usage)}{priced}"
    )


def tokens_text(usage: Usage) -> str:
    """Return tokens in words."""
    return f"{usage.input_tokens:,} tokens read and {usage.output_tokens:,} written"


def _tokens(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
    }
