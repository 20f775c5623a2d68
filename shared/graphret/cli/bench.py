"""``graphret bench``: how well retrieval works on public data."""

from __future__ import annotations

import inspect
import json as json_
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from graphret.cli import options
from graphret.cli.console import print_json, progress, stdout
from graphret.cli.errors import writing_to
from graphret.cli.options import option
from graphret.errors import InvalidInput
from graphret.evaluation import NAMES

_CHOICES = "split k limit method policy planner aliases train hops agents seed graph model".split()


def bench(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of {', '.join(NAMES)}.", show_default=False)],
    data: Annotated[Path, option("The folder, or for paths the file, with the data.", metavar="DIR")],
    split: Annotated[str | None, option("The split; that of the benchmark by default.")] = None,
    k: Annotated[str | None, option("Where recall is taken.", "-k", "--k", metavar="5,10,…")] = None,
    limit: Annotated[int | None, option("Only so many questions; the corpus stays whole.", min=1)] = None,
    encoder: options.EncoderName = "default",
    method: Annotated[str | None, option("metaqa: ark or grasp.")] = None,
    policy: Annotated[str | None, option("metaqa: scripted, or oracle, which is told the relations.")] = None,
    planner: Annotated[str | None, option("metaqa with grasp: paths, which needs no model.")] = None,
    aliases: Annotated[Path | None, option("metaqa: what people call relations and labels, YAML.")] = None,
    train: Annotated[str | None, option("What to learn from: metaqa: a share of the questions; paths: a file.")] = None,
    hops: Annotated[str | None, option("metaqa, spark: questions of so many hops.", metavar="1,2,3")] = None,
    agents: Annotated[int | None, option("metaqa: how many agents explore at once; 1 by default.")] = None,
    seed: Annotated[int | None, option("metaqa, guard, spark: of what is drawn.")] = None,
    graph: Annotated[str | None, option("spark, stark-plans: an empty Neo4j, to run there.", metavar="WHERE")] = None,
    model: Annotated[str | None, option("spark: a chat model that plans.", metavar="NAME")] = None,
    base_url: Annotated[str | None, option("Of --model: an OpenAI-compatible endpoint.", metavar="URL")] = None,
    json: Annotated[Path | None, option("Write the result to a file; '-' is stdout.", "--json", metavar="FILE")] = None,
) -> None:
    """Measure retrieval on a benchmark, against flat search."""
    if name not in NAMES:
        raise InvalidInput(f"there is no benchmark {name!r}; known are {', '.join(NAMES)}")
    if not (data.is_file() if name == "paths" else data.is_dir()):
        raise InvalidInput(f"--data: {data}: no such {'file' if name == 'paths' else 'folder'}")
    from graphret import evaluation

    measure = getattr(evaluation, f"bench_{name.replace('-', '_')}")
    known = inspect.signature(measure).parameters
    given = {**context.params, "k": _numbers(k, "--k"), "hops": _numbers(hops, "--hops")}
    if train is not None and name == "metaqa":
        given["train"] = _share(train)
    given["model"] = None if model is None else options.chat_model(model, base_url)
    chosen = {name: given[name] for name in _CHOICES if given[name] is not None}
    if unknown := chosen.keys() - known.keys():
        raise InvalidInput(f"--{min(unknown)}: the benchmark {name} does not know it")
    if "encoder" in known:
        chosen["encoder"] = options.encoder_of(encoder)
    with progress() as report:
        result = measure(data, progress=report, **chosen)
    if json == Path("-"):
        print_json(result)
        return
    stdout().print(evaluation.render(result))
    if json is not None:
        with writing_to(json):
            json.write_text(json_.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _share(text: str) -> float:
    with suppress(ValueError):
        if 0 < (share := float(text)) <= 1:
            return share
    raise InvalidInput(f"--train: a share above 0 and up to 1 is expected, not {text!r}")


def _numbers(text: str | None, what: str) -> list[int] | None:
    try:
        return None if text is None else [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(f"{what}: whole numbers with commas are expected, as 1,2,3, not {text!r}") from None
