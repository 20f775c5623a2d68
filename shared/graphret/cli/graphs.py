"""``graphret import``, ``export``, ``schema``, ``inspect`` and ``cypher check``."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from graphret.cli import options
from graphret.cli.console import progress, remark, show
from graphret.cli.errors import USAGE, writing_to
from graphret.cli.options import TABLES, option
from graphret.errors import InvalidInput
from graphret.methods import holds_documents

if TYPE_CHECKING:
    from graphret.sage.report import GraphReport

_FILES = "csv, jsonl, parquet, graphml, tables, metaqa, stark, ntriples or store"


def _column(content: str) -> Any:
    return option(f"The column with {content}.", metavar="NAME", panel=TABLES)


def import_(
    context: typer.Context,
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="Files, folders, or a graph to copy.",
            show_default=False,
        ),
    ],
    out: Annotated[str, option(options.WHERE, metavar="WHERE")],
    format: Annotated[
        str | None,
        option(f"One of {_FILES}; detected by default.", metavar="F"),
    ] = None,
    id_column: Annotated[str | None, _column("the id")] = None,
    label_column: Annotated[str | None, _column("the labels")] = None,
    name_column: Annotated[str | None, _column("the name")] = None,
    text_column: Annotated[str | None, _column("the text")] = None,
    source_column: Annotated[str | None, _column("the source of an edge")] = None,
    target_column: Annotated[str | None, _column("the target of an edge")] = None,
    relation_column: Annotated[str | None, _column("the relation")] = None,
    weight_column: Annotated[str | None, _column("the weight of an edge")] = None,
    properties_column: Annotated[
        str | None, _column("properties, as JSON objects")
    ] = None,
    label: Annotated[
        str, option("The label if no column provides one.", panel=TABLES)
    ] = "Node",
    relation: Annotated[
        str | None, option("The relation if no column provides one.", panel=TABLES)
    ] = None,
    delimiter: Annotated[
        str | None, option("The field separator of CSV files.", panel=TABLES)
    ] = None,
    make_nodes: Annotated[
        bool,
        option(
            "Create nodes for ids that only edges have.", "--make-nodes", panel=TABLES
        ),
    ] = False,
    replace: Annotated[
        bool, option("Replace an existing graph in the folder.", "--replace")
    ] = False,
    language: Annotated[
        str, option("For RDF: the language of names and texts.")
    ] = "en",
    reviews: options.ReviewForm = "property",
    json: options.JsonFlag = False,
) -> None:
    """Import a graph from another format, or copy one."""
    from graphret.graphs import Columns, ReadOptions, import_graph
    from graphret.graphs.columns import USUAL

    columns = Columns(
        **{role: context.params[f"{role}_column"] for role in USUAL},
        default_label=label,
        default_relation=relation,
        delimiter=delimiter,
    )
    _require_room(out, replace)
    start = time.perf_counter()
    with progress() as report:
        read = ReadOptions(columns, make_nodes, language, reviews)
        done = import_graph(sources, out, format=format, options=read, progress=report)
    seconds = time.perf_counter() - start
    if done.merged:
        remark(
            f"{done.merged:,} edges were overwritten by a later one with the same"
            " source, relation, target and rows"
        )
    lines = (
        *_counts(done.nodes, done.edges, done.labels, done.relations),
        f"imported into {out} in {seconds:.1f} s",
    )
    show(
        json, {"source": sources, **asdict(done), "seconds": round(seconds, 3)}, *lines
    )


def export(
    graph: options.Graph,
    format: Annotated[
        Literal["parquet", "graphml"], option("The output format.", "--format")
    ],
    out: Annotated[
        Path,
        option(
            "The output folder, or file for graphml; replaced if it exists.",
            metavar="DIR|FILE",
        ),
    ],
    json: options.JsonFlag = False,
) -> None:
    """Export a graph to files of another format."""
    from graphret.graphs import export_graph
    from graphret.graphs.locations import opened

    start = time.perf_counter()
    with opened(graph) as store, progress() as report:
        done = export_graph(store, out, format, progress=report)
    seconds = time.perf_counter() - start
    about = {
        "graph": graph,
        "format": format,
        "out": str(out),
        "files": [str(file) for file in done.files],
    }
    counts = {"nodes": done.nodes, "edges": done.edges, "seconds": round(seconds, 3)}
    show(
        json,
        {**about, **counts},
        f"{done.nodes:,} nodes and {done.edges:,} edges written to {out},"
        f" {seconds:.1f} s",
    )


def schema(
    graph: options.Graph,
    name_property: options.NameProperty = None,
    max_tokens: Annotated[
        int | None, option("Leave out rare entries to fit into N tokens.", metavar="N")
    ] = None,
    json: options.JsonFlag = False,
) -> None:
    """Print a graph's labels, relations and properties, in the form used in prompts."""
    from graphret.graphs.locations import opened

    names = options.names_of(name_property)
    naming: dict[str, Any] = {} if names is None else {"name_property": names}
    with opened(graph, **naming) as store:
        schema, dialect = store.schema(), getattr(store, "dialect", None)
    about = {**schema.to_dict(), "dialect": dialect}
    show(json, about, schema.text(max_tokens=max_tokens))


def check(
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="The query; '-' reads it from stdin.")
    ],
    graph: Annotated[
        str | None, option("The graph that the query is for.", metavar="WHERE")
    ] = None,
    dialect: Annotated[
        Literal["neo4j", "ladybug"] | None,
        option("By default that of the graph, or neo4j without a graph."),
    ] = None,
    json: options.JsonFlag = False,
) -> None:
    """Report what is wrong with a query; without --graph, names are not checked.

    The exit code is 2 if there are errors.
    """
    from graphret.cypher.check import check as check_query
    from graphret.graphs.locations import opened

    text, schema, own_dialect = sys.stdin.read() if query == "-" else query, None, None
    if graph is not None:
        with opened(graph) as store:
            schema, own_dialect = store.schema(), getattr(store, "dialect", None)
    report = check_query(text, schema, dialect=dialect or own_dialect or "neo4j")
    counts = f"errors: {len(report.errors)}, warnings: {len(report.warnings)}"
    verdict = f"the query may {'' if report.ok else 'not '}run; {counts}"
    show(json, report.to_dict(), *map(str, report.findings), verdict)
    if not report.ok:
        raise typer.Exit(USAGE)


def inspect(
    graph: options.Graph,
    plot: Annotated[
        Path | None,
        option("For a folder: draw degrees and relations (.pdf, .png or .svg)."),
    ] = None,
    json: options.JsonFlag = False,
) -> None:
    """Verify all checksums of a graph and report what it contains."""
    from graphret.graphs.locations import FOLDER, kind_of

    if kind_of(graph) == FOLDER:
        _inspect_folder(graph, plot, json)
    elif plot is not None:
        raise InvalidInput(
            "--plot: expected a folder as --graph, got a database, which is not read as"
            " a whole"
        )
    else:
        _inspect_database(graph, json)


def _inspect_database(where: str, json: bool) -> None:
    from graphret.graphs.locations import opened
    from graphret.graphs.transfer import relation_counts

    with opened(where) as store:
        nodes, edges = store.count()
        labels = {label: n for label, n in store.schema().labels.items() if n}
        relations = relation_counts(store)
    counts = {
        "where": where,
        "nodes": nodes,
        "edges": edges,
        "labels": labels,
        "relations": relations,
    }
    show(json, counts, *_counts(nodes, edges, labels, relations))


def _inspect_folder(where: str, plot: Path | None, json: bool) -> None:
    from graphret import storage

    written = storage.verify(where)
    report, encoder = _report(where)
    if plot is not None:
        _plot(report, plot)
    about = {
        key: written[key]
        for key in ("version", "graphret", "generation", "files", "bytes")
    }
    size = f"{written['files']} files, {written['bytes']:,} bytes, all checksums match"
    by = f"written by graphret {written['graphret']}, encoder {encoder or 'none'}"
    show(
        json,
        {"folder": where, **report.to_dict(), "encoder": encoder, **about},
        str(report),
        f"{size}; {by}",
    )


def _report(where: str) -> tuple[GraphReport, str | None]:
    """Return the report on a folder's graph, and the name of its encoder."""
    from graphret.sage.report import GraphReport
    from graphret.stores import MemoryStore

    if holds_documents(where):
        documents = options.open_graph(where, verify=False)
        encoder = documents.encoder
        return documents.report(), encoder.name if encoder else None
    plain = MemoryStore.load(where, verify=False).graph
    return GraphReport.of(plain.nodes, plain.edges), None


def _plot(report: GraphReport, plot: Path) -> None:
    if plot.suffix.lower() not in (".pdf", ".png", ".svg"):
        raise InvalidInput(f"--plot: expected a .pdf, .png or .svg file, got {plot}")
    with writing_to(plot):
        report.plot(plot)


def _require_room(out: str, replace: bool) -> None:
    """Refuse to replace a folder's graph without ``--replace``, or any database's."""
    from graphret.graphs.locations import FOLDER, kind_of
    from graphret.storage import CURRENT

    if kind_of(out) == FOLDER:
        if not replace and (Path(out) / CURRENT).is_file():
            raise InvalidInput(
                f"--out {out}: it already contains a graph; --replace replaces it"
            )
    elif replace:
        raise InvalidInput(
            "--replace: expected a folder as --out, got a database, where nodes and"
            " edges with the same ids are overwritten"
        )


def _counts(
    nodes: int, edges: int, labels: dict[str, int], relations: dict[str, int]
) -> list[str]:
    of_nodes, of_edges = (
        [f"{n:>13,}    {name}" for name, n in counts.items()]
        for counts in (labels, relations)
    )
    return [f"{nodes:>13,}  nodes", *of_nodes, f"{edges:>13,}  edges", *of_edges]
