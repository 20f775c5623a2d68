"""``graphret build``, ``add``, ``remove``, ``list``: graphs of documents and tables."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import quote

import typer

from graphret.cli import metadata as metadata_
from graphret.cli import options
from graphret.cli.console import progress, remark, show
from graphret.cli.errors import MODEL
from graphret.cli.options import option
from graphret.methods import Preset, folder_of

if TYPE_CHECKING:
    from graphret.corpus import Corpus, MetadataExtractor
    from graphret.corpus.llm_metadata import LLMMetadata
    from graphret.executors import Executor, Progress
    from graphret.sage import SageGraph, SageSettings
    from graphret.sage.report import GraphReport

Chunker = Literal["default", "semantic", "sentence", "none"]


def _settings(preset: Preset, rows_per_segment: int, percentile: float) -> SageSettings:
    """Return the settings of a preset, with the values of the options."""
    from graphret.sage import SageSettings

    defaults = SageSettings.paper() if preset == "paper" else SageSettings()
    return replace(
        defaults,
        rows_per_segment=rows_per_segment,
        similarity=replace(defaults.similarity, percentile=percentile),
    )


def _described_ahead(
    context: typer.Context,
    corpus: Corpus,
    extractor: LLMMetadata,
    settings: SageSettings,
) -> None:
    """Tell what metadata by a model take, of the chunks that a build would make."""
    from graphret.cli.evaluate import prices_of
    from graphret.corpus import to_nodes
    from graphret.corpus.chunkers import named_chunker
    from graphret.corpus.metadata import undescribed
    from graphret.search.encoder import as_encoder

    given = context.params
    encoder = as_encoder(options.encoder_of(given["encoder"]))
    chunks = to_nodes(
        corpus,
        chunker=named_chunker(given["chunker"], encoder),
        rows_per_segment=settings.rows_per_segment,
    )
    metadata_.tell_ahead(
        extractor,
        [*undescribed(chunks)],
        given["batch_out"],
        prices_of(given["price"]),
        given["json"],
    )


def build(
    context: typer.Context,
    sources: options.Sources,
    out: Annotated[
        str,
        option(
            "The output folder, whose graph is replaced; or a database (.lbug,"
            " neo4j://), where nodes and edges with the same ids are.",
            metavar="WHERE",
        ),
    ],
    encoder: options.EncoderName = "default",
    chunker: Annotated[
        Chunker,
        option("How to split texts; by default semantic, or sentence without encoder."),
    ] = "default",
    rows_per_segment: Annotated[int, option("Rows per table segment, 5 to 10.")] = 10,
    percentile: Annotated[
        float,
        option("Similarities at or above this percentile become edges."),
    ] = 95.0,
    preset: options.PresetName = "default",
    metadata: options.Extractor = "heuristic",
    model: options.ModelName = None,
    base_url: options.BaseUrl = None,
    llm_cache: options.LlmCache = None,
    estimate: metadata_.Estimate = False,
    price: metadata_.MetadataPrice = None,
    batch_out: metadata_.BatchOut = None,
    batch_in: metadata_.BatchIn = None,
    ray: options.Cluster = None,
    encoding: options.Encoding = None,
    literal_quotes: options.LiteralQuotes = False,
    strict: options.Strict = False,
    json: options.JsonFlag = False,
) -> None:
    """Build a graph of documents, tables and records."""
    from graphret.corpus import read
    from graphret.executors import LOCAL, RayExecutor
    from graphret.graphs.locations import FOLDER, kind_of, place_of

    where = out if kind_of(out) == FOLDER else place_of(out)  # without a password
    start = time.perf_counter()
    with progress() as report:
        settings = _settings(preset, rows_per_segment, percentile)
        extractor = options.metadata_of(
            metadata, model, base_url, llm_cache, report, preset
        )
        asking = metadata_.asking_model(extractor, context.params)
        source = partial(
            read,
            sources,
            encoding=encoding,
            literal_quotes=literal_quotes,
            strict=strict,
        )
        if asking is not None and (estimate or batch_out is not None):
            _described_ahead(context, source(), asking, settings)
            return
        _require_writable(out)  # fail before the work, not after it
        built = _run_build(
            out,
            source,
            report,
            executor=RayExecutor(ray, blocks=_blocks_of(out)) if ray else LOCAL,
            encoder=options.encoder_of(encoder),
            chunker=chunker,
            metadata=extractor,
            settings=settings,
        )
    seconds = time.perf_counter() - start
    if not json:
        show(False, {}, str(built.report))
    about = {
        "encoder": built.encoder,
        "seconds": round(seconds, 3),
        "skipped": list(built.skipped),
        **metadata_.cost_of(asking, price),
    }
    _finish(
        built.report,
        where,
        about,
        f"written to {where} in {seconds:.1f} s",
        json,
        extractor,
    )


@dataclass(frozen=True, slots=True)
class _Built:
    """What a build says of its graph, which may be on another machine."""

    report: GraphReport
    encoder: str | None
    skipped: tuple[str, ...]


def _run_build(
    out: str,
    source: Callable[[], Corpus],
    report: Progress,
    *,
    executor: Executor,
    encoder: str | None,
    chunker: Chunker,
    metadata: MetadataExtractor,
    settings: SageSettings,
) -> _Built:
    """Build a graph and write it: here, or where a cluster has the most memory.

    A folder is here, and so are the key of a model and the cache of its answers.
    """
    from graphret.corpus.llm_metadata import LLMMetadata
    from graphret.executors import RayExecutor
    from graphret.graphs.locations import NEO4J, kind_of
    from graphret.stores.addresses import with_login

    make = partial(
        _build_into,
        executor=executor,
        encoder=encoder,
        chunker=chunker,
        metadata=metadata,
        settings=settings,
    )
    asks_model = isinstance(metadata, LLMMetadata)
    if isinstance(executor, RayExecutor) and kind_of(out) == NEO4J and not asks_model:
        return executor.run(partial(make, with_login(out, os.environ)), source, report)
    return make(out, source(), report)


def _build_into(
    out: str, corpus: Corpus, report: Progress, *, executor: Executor, **how: Any
) -> _Built:
    """Build a graph and write it, and remove the blocks that a cluster has finished."""
    from graphret.executors import RayExecutor
    from graphret.sage import SageGraph

    graph = SageGraph.build(corpus, progress=report, executor=executor, **how)
    _write(graph, out, report)
    if isinstance(executor, RayExecutor) and executor.blocks is not None:
        shutil.rmtree(executor.blocks, ignore_errors=True)
    encoder = graph.encoder.name if graph.encoder else None
    return _Built(graph.report(), encoder, corpus.skipped)


def _require_writable(out: str) -> None:
    """Raise where a graph cannot be written now: another writes, a server is away."""
    from graphret import storage
    from graphret.graphs.locations import FOLDER, kind_of, opened

    if kind_of(out) != FOLDER:
        with opened(out, create=True) as database:
            database.count()
    elif Path(out).exists():
        with storage.writing(Path(out)):
            pass


def _write(graph: SageGraph, out: str, report: Progress) -> None:
    """Save a graph in a folder, or copy its nodes and edges into a database."""
    from graphret.graphs import copy
    from graphret.graphs.locations import FOLDER, kind_of, opened

    if kind_of(out) == FOLDER:
        graph.save(out)
    else:
        with opened(out, create=True) as database:
            copy(graph.store, database, progress=report)


def _blocks_of(out: str) -> Path:
    """Return where finished blocks are kept: beside the output; of a server, here.

    The folder is absolute, as another machine may build.
    """
    from graphret.graphs.locations import NEO4J, kind_of, place_of

    if kind_of(out) == NEO4J:
        return Path(f".{quote(place_of(out), safe='')}.blocks").absolute()
    return Path(out).with_name(f".{Path(out).name}.blocks").absolute()


def add(
    sources: options.Sources,
    graph: options.Folder,
    metadata: options.Extractor = "heuristic",
    model: options.ModelName = None,
    base_url: options.BaseUrl = None,
    llm_cache: options.LlmCache = None,
    preset: options.PresetName = "default",
    encoding: options.Encoding = None,
    literal_quotes: options.LiteralQuotes = False,
    strict: options.Strict = False,
    json: options.JsonFlag = False,
) -> None:
    """Add items to a graph, replacing those with the same id."""
    from graphret.corpus import read

    corpus = read(
        sources, encoding=encoding, literal_quotes=literal_quotes, strict=strict
    )
    with progress() as report:
        extractor = options.metadata_of(
            metadata, model, base_url, llm_cache, report, preset
        )
        with _changed(graph, metadata=extractor) as opened:
            before = opened.nodes
            added = opened.add(corpus)
    held = [*zip(before.get(added), opened.nodes.get(added), strict=True)]
    n_new = sum(old is None for old, _ in held)
    n_changed = sum(old != new for old, new in held) - n_new
    about = {"added": added, "skipped": list(corpus.skipped)}
    done = f"added {n_new:,} nodes, changed {n_changed:,}"
    _finish(opened.report(), graph, about, done, json, extractor)


def remove(
    ids: Annotated[
        list[str],
        typer.Argument(
            metavar="ID...",
            help="Ids of documents, tables, records or nodes.",
            show_default=False,
        ),
    ],
    graph: options.Folder,
    json: options.JsonFlag = False,
) -> None:
    """Remove items or nodes from a graph, or nothing if one of them does not exist."""
    with _changed(graph) as opened:
        removed = opened.remove(ids)
    done = f"removed {len(removed):,} nodes"
    _finish(opened.report(), graph, {"removed": removed}, done, json)


def compact(graph: options.Folder, json: options.JsonFlag = False) -> None:
    """Write a graph and the changes that are saved beside it as one."""
    with _changed(graph, whole=True) as opened:
        pass
    _finish(opened.report(), graph, {}, "written in whole", json)


def list_(graph: options.Folder, json: options.JsonFlag = False) -> None:
    """List a graph's documents, tables and records: id, kind, chunk count and name."""
    items: dict[str, dict[str, Any]] = {}
    for node in options.open_graph(graph).nodes:
        id_ = str(node.properties.get("source_id", node.id))
        about = {
            "id": id_,
            "name": node.name,
            "kind": next(iter(node.labels), ""),
            "chunks": 0,
        }
        items.setdefault(id_, about)["chunks"] += 1
    width = max(map(len, items))
    lines = [
        f"{item['id']:<{width}}  {item['kind']:<8}  {item['chunks']:>4}  {item['name']}"
        for item in items.values()
    ]
    show(json, {"folder": graph, "items": list(items.values())}, *lines)


@contextmanager
def _changed(where: str, *, whole: bool = False, **more: Any) -> Iterator[SageGraph]:
    """Yield a graph and save it, under one lock, so that changes never overlap."""
    from graphret import storage

    folder = folder_of(where)
    storage.read_current(folder)  # the lock would create a missing folder
    with storage.writing(folder):
        graph = options.open_graph(where, **more)
        before = graph.state
        yield graph
        if whole or graph.state is not before:
            graph.save(folder, whole=whole)


def _finish(
    now: GraphReport,
    folder: str,
    about: dict[str, Any],
    done: str,
    json: bool,
    extractor: Any = None,
) -> None:
    """Print what was done; exit with code 5 if the metadata model never answered."""
    report = getattr(extractor, "report", None)
    if about.get("skipped"):
        remark(f"files skipped: {len(about['skipped']):,} (--strict stops instead)")
    if report is not None and report.fell_back:
        remark(
            f"{report.fell_back} nodes have metadata from rules, because the model"
            f" failed: {report.last_failure}"
        )
    counts = {
        name: getattr(now, name) for name in ("nodes", "edges", "labels", "relations")
    }
    value = {
        "folder": folder,
        **about,
        **counts,
        **({"metadata": asdict(report)} if report else {}),
    }
    shown = [f"{done}; the graph has {now.nodes:,} nodes and {now.edges:,} edges"]
    if report is not None and report.asked:
        shown.append(metadata_.spent_text(report, about.get("cost")))
    show(json, value, *shown)
    if report is not None and report.asked and report.failed == report.asked:
        remark(f"the model {extractor.model.name!r} gave no usable reply")
        raise typer.Exit(MODEL)
