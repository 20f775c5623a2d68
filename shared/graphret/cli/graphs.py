"""``graphret import``, ``export``, ``schema``, ``inspect`` and ``cypher check``: graphs, and queries that fit them."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from graphret.cli import options
from graphret.cli.console import print_json, progress, remark, say, stdout
from graphret.cli.errors import USAGE, writing_to
from graphret.cli.options import TABLES, option
from graphret.errors import InvalidInput

_FILES = "csv, jsonl, parquet, tables, metaqa, stark, ntriples or store"


def _column(holds: str) -> Any:
    return option(f"Of tables: the column with {holds}.", metavar="NAME", panel=TABLES)


def import_(
    context: typer.Context,
    sources: Annotated[
        list[str], typer.Argument(metavar="SOURCE...", help="Files, folders, or a graph to copy.", show_default=False)
    ],
    to: Annotated[str, option(options.WHERE, "--to", metavar="WHERE")],
    format: Annotated[str | None, option(f"One of {_FILES}; as the source looks by default.", metavar="F")] = None,
    id_column: Annotated[str | None, _column("the id")] = None,
    label_column: Annotated[str | None, _column("the labels")] = None,
    name_column: Annotated[str | None, _column("the name")] = None,
    text_column: Annotated[str | None, _column("the text")] = None,
    source_column: Annotated[str | None, _column("the source of an edge")] = None,
    target_column: Annotated[str | None, _column("the target of an edge")] = None,
    relation_column: Annotated[str | None, _column("the relation")] = None,
    weight_column: Annotated[str | None, _column("the weight of an edge")] = None,
    properties_column: Annotated[str | None, _column("properties, as JSON objects")] = None,
    label: Annotated[str, option("The label where no column has one.", panel=TABLES)] = "Node",
    relation: Annotated[str | None, option("The relation where no column has one.", panel=TABLES)] = None,
    delimiter: Annotated[str | None, option("What stands between the fields of CSV.", panel=TABLES)] = None,
    make_nodes: Annotated[bool, option("Make nodes of ids that edges have.", "--make-nodes", panel=TABLES)] = False,
    replace: Annotated[bool, option("Replace the graph that the folder holds.", "--replace")] = False,
    language: Annotated[str, option("Of RDF: the language of names and texts.")] = "en",
    json: options.JsonFlag = False,
) -> None:
    """Read a graph in another format, or copy one, to where graphret can open it."""
    from graphret.graphs import Columns, ReadOptions, import_graph
    from graphret.graphs.columns import USUAL

    columns = Columns(
        **{role: context.params[f"{role}_column"] for role in USUAL},
        default_label=label,
        default_relation=relation,
        delimiter={"tab": "\t", r"\t": "\t"}.get(delimiter, delimiter) if delimiter else None,
    )
    _require_room(to, replace)
    start = time.perf_counter()
    with progress() as report:
        read = ReadOptions(columns, make_nodes, language)
        done = import_graph(sources, to, format=format, options=read, progress=report)
    seconds = time.perf_counter() - start
    for said in done.remarks:
        remark(said)
    if done.merged:
        remark(f"{done.merged:,} edges are not there: a later one has the same source, relation, target and rows")
    if json:
        print_json({"source": sources, **asdict(done), "seconds": round(seconds, 3)})
        return
    stdout().print(_summary(done.nodes, done.edges, done.labels, done.relations))
    say(f"imported into {to} in {seconds:.1f} s")


def export(
    graph: options.Graph,
    format: Annotated[Literal["parquet", "graphml"], option("What to write.", "--format")],
    out: Annotated[Path, option("The folder, or for graphml the file; replaced if there.", metavar="DIR|FILE")],
    json: options.JsonFlag = False,
) -> None:
    """Write a graph as files of another format."""
    from graphret.graphs import export_graph
    from graphret.graphs.locations import opened

    start = time.perf_counter()
    with opened(graph) as store, progress() as report:
        done = export_graph(store, out, format, progress=report)
    seconds = time.perf_counter() - start
    if json:
        about = {"graph": graph, "format": format, "out": str(out), "files": list(map(str, done.files))}
        print_json({**about, "nodes": done.nodes, "edges": done.edges, "seconds": round(seconds, 3)})
        return
    say(f"{done.nodes:,} nodes and {done.edges:,} edges written to {out} in {seconds:.1f} s")


def schema(
    graph: options.Graph,
    max_tokens: Annotated[int | None, option("Leave out what is rare, to fit into N tokens.", metavar="N")] = None,
    json: options.JsonFlag = False,
) -> None:
    """Print the labels, relations and properties of a graph, as for a prompt."""
    from graphret.graphs.locations import opened

    with opened(graph) as store:
        found, dialect = store.schema(), getattr(store, "dialect", None)
    if json:
        print_json({**found.to_dict(), "dialect": dialect})
        return
    say(found.text(max_tokens=max_tokens))


def check(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The query; '-' reads it from stdin.")],
    graph: Annotated[str | None, option("The graph with the schema.", metavar="WHERE")] = None,
    dialect: Annotated[Literal["neo4j", "ladybug"] | None, option("That of the graph by default, or neo4j.")] = None,
    json: options.JsonFlag = False,
) -> None:
    """Say what is wrong with a query, and what may not run; without a graph its names are taken as right.

    The exit code is 2 where there is an error.
    """
    from graphret.cypher.check import check as check_query
    from graphret.explain.runs import counted
    from graphret.graphs.locations import opened

    text, schema, spoken = sys.stdin.read() if query == "-" else query, None, None
    if graph is not None:
        with opened(graph) as store:
            schema, spoken = store.schema(), getattr(store, "dialect", None)
    report = check_query(text, schema, dialect=dialect or spoken or "neo4j")
    if json:
        print_json(report.to_dict())
    else:
        for finding in report.findings:
            say(str(finding))
        found = counted(len(report.errors), "error"), counted(len(report.warnings), "warning")
        say(f"the query may {'' if report.ok else 'not '}run: {', '.join(found)}")
    if not report.ok:
        raise typer.Exit(USAGE)


def inspect(
    where: options.Where,
    plot: Annotated[Path | None, option("Of a folder: draw degrees and relations, .pdf, .png or .svg.")] = None,
    json: options.JsonFlag = False,
) -> None:
    """Check every checksum of a graph and report what it holds."""
    from graphret.graphs.locations import FOLDER, kind_of, opened
    from graphret.graphs.transfer import relation_counts

    if kind_of(where) == FOLDER:
        _inspect_folder(Path(where), plot, json)
        return
    if plot is not None:
        raise InvalidInput("--plot: is for folders; a database is not read as a whole")
    with opened(where) as store:
        nodes, edges = store.count()
        labels = {label: n for label, n in store.schema().labels.items() if n}
        relations = relation_counts(store)
    if json:
        print_json({"where": where, "nodes": nodes, "edges": edges, "labels": labels, "relations": relations})
    else:
        stdout().print(_summary(nodes, edges, labels, relations))


def _inspect_folder(folder: Path, plot: Path | None, json: bool) -> None:
    from graphret import storage
    from graphret.sage.report import GraphReport
    from graphret.stores import MemoryStore

    written, encoder = storage.verify(folder), None
    if options.holds_documents(str(folder)):
        documents = options.open_graph(str(folder), verify=False)
        report, encoder = documents.report(), documents.encoder.name if documents.encoder else None
    else:
        plain = MemoryStore.load(folder, verify=False).graph
        report = GraphReport.of(plain.nodes, plain.edges)
    if plot is not None:
        if plot.suffix.lower() not in (".pdf", ".png", ".svg"):
            raise InvalidInput(f"--plot: a .pdf, .png or .svg file is expected, not {plot}")
        with writing_to(plot):
            report.plot(plot)
    if json:
        about = {key: written[key] for key in ("version", "graphret", "generation", "files", "bytes")}
        print_json({"folder": str(folder), **report.to_dict(), "encoder": encoder, **about})
        return
    stdout().print(report)
    size = f"{written['files']} files, {written['bytes']:,} bytes, every checksum right"
    say(f"{size}; written by graphret {written['graphret']}, encoder {encoder or 'none'}")


def _require_room(to: str, replace: bool) -> None:
    """Raise where a folder's graph would be replaced unasked; a database keeps its own."""
    from graphret.graphs.locations import FOLDER, kind_of
    from graphret.storage import CURRENT
    from graphret.stores import MemoryStore

    if kind_of(to) != FOLDER:
        if replace:
            raise InvalidInput("--replace: it is for folders; in a database what has the same ids is written over")
    elif not replace and (Path(to) / CURRENT).is_file():
        nodes, edges = MemoryStore.load(to, verify=False).count()
        if nodes:
            raise InvalidInput(f"--to {to}: --replace replaces the graph there, of {nodes:,} nodes and {edges:,} edges")


def _summary(nodes: int, edges: int, labels: dict[str, int], relations: dict[str, int]) -> object:
    """Draw the counts of a graph."""
    from rich.table import Column, Table
    from rich.text import Text

    table = Table(Column(), Column(justify="right"), title="Graph", title_justify="left", show_header=False)
    rows = [("nodes", nodes), *labels.items(), ("edges", edges), *relations.items()]
    for at, (name, number) in enumerate(rows):
        table.add_row(name if at in (0, len(labels) + 1) else Text(f"  {name}"), f"{number:,}")
    return table
