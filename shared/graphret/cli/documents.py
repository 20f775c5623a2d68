"""``graphret build``, ``add``, ``remove`` and ``list``: graphs of documents, tables and records."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from graphret.cli import options
from graphret.cli.console import print_json, progress, remark, say, stdout
from graphret.cli.errors import MODEL
from graphret.cli.options import option
from graphret.errors import InvalidInput

if TYPE_CHECKING:
    from graphret.sage import SageGraph


def build(
    sources: options.Sources,
    out: Annotated[str, option("The folder to write; a graph there is replaced in whole.")],
    encoder: options.EncoderName = "default",
    chunker: Annotated[
        Literal["default", "semantic", "sentence", "none"],
        option("What cuts documents; 'default' is semantic, or sentence without an encoder."),
    ] = "default",
    rows_per_segment: Annotated[int, option("Rows of a table segment, 5 to 10.")] = 10,
    percentile: Annotated[float, option("Similarities of candidates from this percentile on become edges.")] = 95.0,
    metadata: options.Extractor = "heuristic",
    model: options.ModelName = None,
    base_url: options.BaseUrl = None,
    llm_cache: options.LlmCache = None,
    on_failure: options.Failure = "fallback",
    json: options.JsonFlag = False,
) -> None:
    """Build a graph of documents, tables and records."""
    from graphret import storage
    from graphret.corpus import read
    from graphret.sage import SageGraph, SageSettings
    from graphret.sage.settings import SimilaritySettings

    folder = options.folder_of(out)
    start = time.perf_counter()
    with progress() as report:
        settings = SageSettings(rows_per_segment=rows_per_segment, similarity=SimilaritySettings(percentile=percentile))
        extractor = options.metadata_of(metadata, model, base_url, llm_cache, on_failure, report)
        corpus = read(sources)
        if folder.exists():  # before the work, not after it: whether the folder can be written
            with storage.writing(folder):
                pass
        graph = SageGraph.build(
            corpus,
            encoder=options.encoder_of(encoder),
            chunker=chunker,
            metadata=extractor,
            settings=settings,
            progress=report,
        )
        graph.save(folder)
    seconds = time.perf_counter() - start
    if not json:
        stdout().print(graph.report())
    about = {"encoder": graph.encoder.name if graph.encoder else None, "seconds": round(seconds, 3)}
    _finish(graph, folder, about, f"written to {folder} in {seconds:.1f} s", json, extractor)


def add(
    folder: options.Folder,
    sources: options.Sources,
    metadata: options.Extractor = "heuristic",
    model: options.ModelName = None,
    base_url: options.BaseUrl = None,
    llm_cache: options.LlmCache = None,
    on_failure: options.Failure = "fallback",
    json: options.JsonFlag = False,
) -> None:
    """Add items to a graph, each in place of what had its id."""
    from graphret import storage
    from graphret.corpus import read

    path = _present(folder)
    corpus = read(sources)
    if not corpus.items and not corpus.edges:
        raise InvalidInput("there is nothing to add: the sources are empty")
    with progress() as report:
        extractor = options.metadata_of(metadata, model, base_url, llm_cache, on_failure, report)
        with storage.writing(path):  # from before it is read until after it is written: two changes never cross
            graph = options.open_graph(folder, metadata=extractor)
            added = graph.add(corpus)
            graph.save(path)
    _finish(graph, path, {"added": added}, f"added {len(added):,} nodes", json, extractor)


def remove(
    folder: options.Folder,
    ids: Annotated[
        list[str], typer.Argument(metavar="ID...", help="Of documents, tables, records or nodes.", show_default=False)
    ],
    json: options.JsonFlag = False,
) -> None:
    """Take items or single nodes out of a graph; nothing is taken out where one of the ids is not there."""
    from graphret import storage

    path = _present(folder)
    with storage.writing(path):
        graph = options.open_graph(folder)
        removed = graph.remove(ids)
        graph.save(path)
    _finish(graph, path, {"removed": removed}, f"removed {len(removed):,} nodes", json)


def list_(folder: options.Folder, json: options.JsonFlag = False) -> None:
    """List the documents, tables and records of a graph: id, kind, number of chunks and name."""
    items: dict[str, dict[str, Any]] = {}
    for node in options.open_graph(folder).nodes:
        id_ = str(node.properties.get("source_id", node.id))
        about = {"id": id_, "name": node.name, "kind": next(iter(node.labels), ""), "chunks": 0}
        items.setdefault(id_, about)["chunks"] += 1
    if json:
        print_json({"folder": folder, "items": list(items.values())})
        return
    width = max(map(len, items))
    for item in items.values():
        say(f"{item['id']:<{width}}  {item['kind']:<8}  {item['chunks']:>4}  {item['name']}")


def _present(where: str) -> Path:
    """Return the folder of a graph that is there; taking the lock would make one that is not."""
    from graphret import storage

    folder = options.folder_of(where)
    storage.read_current(folder)
    return folder


def _finish(
    graph: SageGraph, folder: Path, about: dict[str, Any], done: str, json: bool, extractor: Any = None
) -> None:
    """Print what was done, and what a model did for the metadata; exit with its code where it answered nothing."""
    report, now = getattr(extractor, "report", None), graph.report()
    if report is not None and report.fell_back:
        remark(f"{report.fell_back} nodes have metadata from the rules, since the model failed: {report.last_failure}")
    if json:
        counts = {name: getattr(now, name) for name in ("nodes", "edges", "labels", "relations")}
        print_json({"folder": str(folder), **about, **counts, **({"metadata": asdict(report)} if report else {})})
    else:
        say(f"{done}; the graph has {now.nodes:,} nodes and {now.edges:,} edges")
    if report is not None and report.asked and sum(report.failures.values()) == report.asked:
        remark(f"the model {extractor.model.name!r} answered nothing")
        raise typer.Exit(MODEL)
