"""``graphret bench``: how well retrieval works on public data."""

from __future__ import annotations

import inspect
import json as json_
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from graphret.cli import options
from graphret.cli.console import progress, show
from graphret.cli.errors import writing_to
from graphret.cli.options import option
from graphret.errors import InvalidInput
from graphret.methods import MethodOptions

#: The benchmarks, each ``bench_<name>`` in `graphret.evaluation`.
NAMES = (
    "ottqa",
    "multihop",
    "general",
    "guard",
    "metaqa",
    "spark",
    "paths",
    "graphraft",
)
_OWN = {
    "name",
    "encoder",
    "base_url",
    "json",
}  # what is not handed on to every benchmark


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _share_or_file(text: str) -> float | str:
    with suppress(ValueError):
        return float(text)
    return text


def bench(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help=f"One of {', '.join(NAMES)}.", show_default=False
        ),
    ],
    data: Annotated[
        Path,
        option(
            "The folder, or for paths and graphraft the file.",
            metavar="DIR",
            exists=True,
        ),
    ],
    split: Annotated[
        str | None, option("The split; that of the benchmark by default.")
    ] = None,
    k: Annotated[
        Any,
        option(
            "Where recall is taken.", "-k", "--k", metavar="5,10,…", parser=_numbers
        ),
    ] = None,
    limit: Annotated[
        int | None, option("Only so many questions; the corpus stays whole.", min=1)
    ] = None,
    encoder: options.EncoderName = "default",
    sets: Annotated[
        list[str] | None,
        option(
            "general: only these sets, several times or with commas.",
            "--set",
            metavar="NAME,…",
        ),
    ] = None,
    reranker: Annotated[
        str | None,
        option("ottqa, multihop: a cross-encoder to rerank with.", metavar="MODEL"),
    ] = None,
    method: Annotated[str | None, option("metaqa: ark, grasp or graphraft.")] = None,
    aliases: Annotated[
        Path | None, option("metaqa: what people call relations and labels, YAML.")
    ] = None,
    train: Annotated[
        Any,
        option(
            "metaqa: a share of the questions; else a file, of ottqa's own: tuned.",
            parser=_share_or_file,
        ),
    ] = None,
    writer: Annotated[
        Path | None, option("graphraft: what train writer wrote.", metavar="DIR")
    ] = None,
    hops: Annotated[
        Any,
        option(
            "metaqa, spark: questions of so many.", metavar="1,2,3", parser=_numbers
        ),
    ] = None,
    seed: Annotated[
        int | None, option("metaqa, guard, spark: of what is drawn.")
    ] = None,
    graph: Annotated[
        str | None, option("spark: an empty Neo4j, to run there.", metavar="WHERE")
    ] = None,
    model: Annotated[
        str | None, option("spark: a chat model that plans.", metavar="NAME")
    ] = None,
    base_url: Annotated[
        str | None, option("Of --model: an OpenAI-compatible endpoint.", metavar="URL")
    ] = None,
    json: Annotated[
        Path | None,
        option("Write the result to a file; '-' is stdout.", "--json", metavar="FILE"),
    ] = None,
) -> None:
    """Measure retrieval on a benchmark, against flat search."""
    if name not in NAMES:
        raise InvalidInput(
            f"there is no benchmark {name!r}; known are {', '.join(NAMES)}"
        )
    from graphret import evaluation

    measure = getattr(evaluation, f"bench_{name}")
    known = inspect.signature(measure).parameters
    params = context.params if sets else {**context.params, "sets": None}
    given = {
        key: value
        for key, value in params.items()
        if value is not None and key not in _OWN
    }
    if unknown := given.keys() - known.keys():
        called = {
            parameter.name: parameter.opts[-1] for parameter in context.command.params
        }
        raise InvalidInput(
            f"{called[min(unknown)]}: the benchmark {name} does not know it"
        )
    if name == "metaqa" and isinstance(train, str):
        raise InvalidInput(
            f"--train: a share of the questions is expected, not {train!r}"
        )
    if model is not None:
        given["model"] = MethodOptions(model=model, base_url=base_url).chat_model()
    if sets:
        given["sets"] = [part.strip() for one in sets for part in one.split(",")]
    if "encoder" in known:
        given["encoder"] = options.encoder_of(encoder)
    with progress() as report:
        result = measure(**given, progress=report)
    show(json == Path("-"), result, evaluation.render(result))
    if json not in (None, Path("-")):
        with writing_to(json):
            json.write_text(
                json_.dumps(result, indent=2, ensure_ascii=False) + "\n",
                encoding="utf-8",
            )
