"""``graphret schema`` and ``inspect``: what a graph holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from graphret.cli import options
from graphret.cli.graphs import Folder
from graphret.cli.output import print_json, stdout
from graphret.cli.running import writing_to
from graphret.errors import InvalidInput


def schema(
    graph: Annotated[
        str, typer.Option("--graph", metavar="WHERE", help="A folder, a Ladybug file, or the address of a Neo4j.")
    ],
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", metavar="N", help="Leave out what is rare, to fit into N tokens.")
    ] = None,
    json: options.JsonFlag = False,
) -> None:
    """Print the labels, relations and properties of a graph, as for a prompt."""
    from graphret.graphs.locations import opened

    with opened(graph) as store:
        found, dialect = store.schema(), getattr(store, "dialect", None)
    if json:
        print_json({**found.to_dict(), "dialect": dialect})
        return
    stdout().print(found.text(max_tokens=max_tokens), markup=False, soft_wrap=True)


def list_(folder: Folder, json: options.JsonFlag = False) -> None:
    """List the documents, tables and records of a graph: id, kind, number of chunks and name."""
    from graphret.explain import clean

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
        row = f"{item['id']:<{width}}  {item['kind']:<8}  {item['chunks']:>4}  {item['name']}"
        stdout().print(clean(row), markup=False, soft_wrap=True)


def inspect(
    where: Annotated[
        str,
        typer.Argument(
            metavar="WHERE", help="A folder, a Ladybug file, or the address of a Neo4j.", show_default=False
        ),
    ],
    plot: Annotated[
        Path | None, typer.Option(help="Of a folder: draw degrees and relations into a .pdf, .png or .svg file.")
    ] = None,
    json: options.JsonFlag = False,
) -> None:
    """Check every checksum of a graph and report what it holds."""
    from graphret.graphs.locations import FOLDER, kind_of

    if kind_of(where) == FOLDER:
        _inspect_folder(Path(where), plot, json)
        return
    if plot is not None:
        raise InvalidInput("--plot: is for folders; a database is not read as a whole")
    _inspect_database(where, json)


def _inspect_folder(folder: Path, plot: Path | None, json: bool) -> None:
    from graphret import storage

    written = storage.verify(folder)
    report, encoder = _report(folder, written["kind"])
    if plot is not None:
        _plot(report, plot)
    if json:
        about = {key: written[key] for key in ("version", "graphret", "generation", "files", "bytes")}
        print_json({"folder": str(folder), **report.to_dict(), "encoder": encoder, **about})
        return
    console = stdout()
    console.print(report)
    console.print(
        f"{written['files']} files, {written['bytes']:,} bytes, every checksum right; written by graphret "
        f"{written['graphret']}, encoder {encoder or 'none'}",
        markup=False,
        soft_wrap=True,
    )


def _report(folder: Path, kind: str) -> tuple[Any, str | None]:
    """Return the report of a graph and the name of its encoder, whose files were checked before."""
    from graphret.sage.saving import KIND

    if kind == KIND:
        graph = options.open_graph(str(folder), verify=False)
        return graph.report(), graph.encoder.name if graph.encoder else None
    from graphret.sage.report import GraphReport
    from graphret.stores import MemoryStore

    plain = MemoryStore.load(folder, verify=False).graph
    return GraphReport.of(plain.nodes, plain.edges), None


def _plot(report: Any, path: Path) -> None:
    if path.suffix.lower() not in (".pdf", ".png", ".svg"):
        raise InvalidInput(f"--plot: a .pdf, .png or .svg file is expected, not {path}")
    with writing_to(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        report.plot(path)


def _inspect_database(where: str, json: bool) -> None:
    from graphret.cli.moving import summary
    from graphret.graphs import relation_counts
    from graphret.graphs.locations import opened

    with opened(where) as store:
        nodes, edges = store.count()
        found = store.schema()
        relations = relation_counts(store)
    labels = {label: n for label, n in found.labels.items() if n}
    if json:
        counts = {"nodes": nodes, "edges": edges, "labels": labels, "relations": relations}
        print_json({"where": where, **counts})
        return
    stdout().print(summary(nodes, edges, labels, relations))
