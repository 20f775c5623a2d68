"""``graphret query`` and ``replay``: ask a graph, and show again what agents did."""

from __future__ import annotations

import json as json_
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from graphret.cli import options
from graphret.cli.console import print_json, remark, say, stderr, stdout
from graphret.cli.errors import MODEL, writing_to
from graphret.cli.options import ARK, GRASP, MODELS, SPARK, OnFailure, option
from graphret.errors import InvalidInput

if TYPE_CHECKING:
    from graphret.explain import Lookup
    from graphret.retriever import Retriever
    from graphret.search import TextIndex
    from graphret.search.encoder import Encoder
    from graphret.stores.base import GraphStore
    from graphret.types import Retrieval

_LISTED = 10  # runs
METHODS = ("sage", "ark", "spark", "grasp")
_TEXTUAL = ("STRING", "MAP", "ANY")  # what of a schema's types may hold words
#: The options that only some methods have.
_BELONG = {
    "ranking": ("sage",),
    **dict.fromkeys(("model", "base_url", "hints", "on_failure"), ("ark", "spark", "grasp")),
    **dict.fromkeys(("settings", "scorer"), ("grasp",)),
    "aliases": ("ark", "grasp"),
    "show_values": ("spark", "grasp"),
    **dict.fromkeys(("agents", "steps", "record", "verbose"), ("ark",)),
    **dict.fromkeys(("expand", "repair_calls"), ("spark",)),
}

_GRAPH = "A folder that graphret wrote, a Ladybug file or the address of a Neo4j; sage takes folders, spark databases."
_ENCODER = "'saved' (sage's default) for that of the graph, 'none' to search by words alone; for the others any other."


def query(
    context: typer.Context,
    text: Annotated[str, typer.Argument(metavar="QUESTION", help="The question.", show_default=False)],
    graph: Annotated[str, option(_GRAPH, metavar="WHERE")],
    method: Annotated[str | None, option(f"One of {', '.join(METHODS)}; sage for documents, else ark.")] = None,
    k: Annotated[int, option("How many hits, in all.", "-k", "--k")] = 10,
    ranking: Annotated[Literal["coverage", "propagate", "paper"], option("Of sage: how hits are ranked.")] = "coverage",
    where: Annotated[str | None, option('Only nodes with this, as {"year": {"$gte": 1990}}.', metavar="JSON")] = None,
    encoder: Annotated[str | None, option(_ENCODER, metavar="NAME")] = None,
    explain: Annotated[Path | None, option("Draw how the hits were found into a page.", metavar="FILE.html")] = None,
    model: options.Planning = None,
    base_url: options.PlanningUrl = None,
    agents: Annotated[int, option("How many explore at once.", panel=ARK, min=1)] = 3,
    steps: Annotated[int, option("Replies that each may take.", panel=ARK, min=1)] = 20,
    hints: Annotated[str, option("What else the model should know of the domain.", metavar="TEXT", panel=MODELS)] = "",
    on_failure: Annotated[OnFailure, option("Where a model fails: go on, or stop.", panel=MODELS)] = "fallback",
    record: Annotated[Path | None, option("Append the run, for replay.", metavar="FILE.jsonl", panel=ARK)] = None,
    verbose: Annotated[bool, option("Show every step of every agent.", "-v", "--verbose", panel=ARK)] = False,
    expand: Annotated[
        Literal["no", "+edge", "-edge", "auto"], option("When the graph around the answer is added.", panel=SPARK)
    ] = "auto",
    show_values: Annotated[bool, option("Let the model see values of the graph, as examples.", panel=MODELS)] = False,
    repair_calls: Annotated[int, option("How often the model is asked again, with the error.", panel=SPARK, min=0)] = 0,
    settings: Annotated[Path | None, option("What tune wrote.", metavar="FILE.json", panel=GRASP)] = None,
    aliases: options.Aliases = None,
    scorer: options.Scorer = None,
    json: options.JsonFlag = False,
) -> None:
    """Ask a graph, and print the hits with the evidence for each."""
    from graphret.explain import Panel, store_lookup, write_html, write_timeline
    from graphret.retriever import IndexRetriever

    told = SimpleNamespace(**context.params)
    told.method = method or ("sage" if options.holds_documents(graph) else "ark")
    if told.method not in METHODS:
        raise InvalidInput(f"--method: there is no method {method!r}; known are {', '.join(METHODS)}")
    options.refuse_others(context, told.method, _BELONG)
    if not text.strip():
        raise InvalidInput("QUESTION: it is empty")
    if told.model is None and (base_url is not None or told.method == "spark"):
        raise InvalidInput("--base-url and --method spark need --model, the name of a model")
    try:
        told.where = None if where is None else dict(json_.loads(where).items())
    except (ValueError, AttributeError):
        raise InvalidInput(f"--where: a JSON object is expected, not {where}") from None
    with opened_for(told) as (retriever, store, index):
        retrieval, lookup = retriever.retrieve(text, k, told.where), store_lookup(store)
        if explain is not None:
            with writing_to(explain):
                if told.method == "ark":
                    write_timeline(explain, retrieval, lookup=lookup)
                else:
                    flat = IndexRetriever(index, store).retrieve(text, k, told.where)
                    write_html(explain, Panel(retrieval, flat), lookup=lookup)
        _print(retrieval, lookup, told)
    _require_answers(retrieval, told)


def _print(retrieval: Retrieval, lookup: Lookup, told: Any) -> None:
    """Print the hits, of agents that were asked for what they did, and where it was drawn and recorded."""
    from graphret.explain import render, render_timeline
    from graphret.explain.runs import fallback_text

    if told.json:
        print_json(retrieval.to_dict())
        return
    for stage in retrieval.trace.fallbacks:
        remark(f"fallback: {fallback_text(stage)}")
    console = stdout()
    if told.verbose:
        console.print(render_timeline(retrieval, lookup))
        console.print()
    console.print(render(retrieval) if retrieval.hits else "nothing qualifies")
    for what, path in (("drawn", told.explain), ("recorded", told.record)):
        if path is not None:
            say(f"{what} in {path}")


def _require_answers(retrieval: Retrieval, told: Any) -> None:
    """Exit with the code of a model that failed where no agent selected anything, or no plan was made."""
    stages = retrieval.trace.stages
    if told.method in ("spark", "grasp") and all("error" in one.details for one in stages if one.name.endswith("plan")):
        raise typer.Exit(MODEL)
    failed = [one.details for one in retrieval.trace.fallbacks if "agent " in str(one.details.get("failed"))]
    selected = any(evidence.kind == "votes" for hit in retrieval for evidence in hit.evidence)
    if told.method == "ark" and told.model is not None and len(failed) == told.agents and not selected:
        why = failed[0]["error"] or "it called no tools"
        remark(f"the model {told.model!r} selected nothing, and the hits are those of plain search: {why}")
        raise typer.Exit(MODEL)


def replay(
    file: Annotated[Path, typer.Argument(metavar="RUN.jsonl", help="What query --record wrote.", show_default=False)],
    run: Annotated[str | None, option("Which, by how its id begins; the last by default.", metavar="ID")] = None,
    html: Annotated[Path | None, option("Draw it into a page.", metavar="FILE.html")] = None,
    json: options.JsonFlag = False,
) -> None:
    """Show a recorded run: each agent's steps and calls, what came back, what was selected, and the vote."""
    from rich.text import Text

    from graphret.ark.trajectory import recorded_runs
    from graphret.explain import render_timeline, write_timeline

    runs = recorded_runs(file)
    found = [id_ for id_ in runs if id_.startswith(run or "")]
    if not found:
        raise InvalidInput(f"{file}: it holds no run{f' {run!r}; there are {list(runs)[-_LISTED:]}' if run else ''}")
    chosen = runs[found[-1]]
    if html is not None:
        with writing_to(html):
            write_timeline(html, chosen)
    if json:
        agents = [session.to_dict() | {"agent": session.agent + 1} for session in chosen.sessions]
        about = {name: getattr(chosen, name) for name in ("question", "created", "seconds", "how", "cut_short")}
        votes = [vote.to_dict() for vote in chosen.votes]
        print_json({"run": found[-1], **about, "votes": votes, "agents": agents})
        return
    if run is None and len(runs) > 1:
        remark(f"the last of {len(runs)} runs; --run shows another: {', '.join(list(runs)[-2 : -2 - _LISTED : -1])}")
    console = stdout()
    console.print(Text(chosen.question, style="bold"))
    console.print(Text(f"run {found[-1]}, {chosen.created}\n", style="dim"))
    if chosen.cut_short:
        console.print(Text("It was cut short: this is what was done until then.\n", style="yellow"))
    console.print(render_timeline(chosen))
    if html is not None:
        say(f"drawn in {html}")


# -- the methods


@contextmanager
def opened_for(told: Any) -> Iterator[tuple[Retriever, GraphStore, TextIndex]]:
    """Open a graph and make the retriever that the options of the command describe, by name in `told`."""
    from graphret.graphs.locations import opened
    from graphret.search.encoder import as_encoder

    make = {"ark": _ark, "spark": _spark, "grasp": _grasp}.get(told.method)
    encoder = options.encoder_of(told.encoder or ("none" if make else "saved"))
    if make is None or options.holds_documents(told.graph):
        graph = options.open_graph(told.graph, encoder=encoder)
        retriever = make(graph.store, graph.index, told) if make else graph.retriever(told.ranking)
        yield retriever, graph.store, graph.index
        return
    if encoder == "saved":
        raise InvalidInput(f"--encoder saved: {told.graph} has none; name one, or leave it out")
    with opened(told.graph) as store:
        index = _index(told.graph, store, as_encoder(encoder))
        yield make(store, index, told), store, index


def _ark(store: GraphStore, index: TextIndex, told: Any) -> Retriever:
    from graphret.ark import Ark, ArkSettings, ScriptedExplorer
    from graphret.ark.trajectory import Recorder

    more: dict[str, Any] = {"hints": told.hints, "on_failure": told.on_failure}
    if told.record is not None:
        with writing_to(told.record):  # before the models are asked, not after
            told.record.open("ab").close()
        more["on_run"] = Recorder(told.record)
    model = options.chat_model(told.model, told.base_url) if told.model else ScriptedExplorer(aliases=told.aliases)
    return Ark(model, store, index, settings=ArkSettings(n_agents=told.agents, max_steps=told.steps), **more)


def _spark(store: GraphStore, index: TextIndex, told: Any) -> Retriever:
    from graphret.expansion import Expand
    from graphret.spark import Spark, SparkSettings

    settings = SparkSettings(show_values=told.show_values, repair_calls=told.repair_calls)
    more: dict[str, Any] = {"settings": settings, "hints": told.hints, "on_failure": told.on_failure}
    spark = Spark(options.chat_model(told.model, told.base_url), store, index, **more)  # type: ignore[arg-type]  # it refuses others
    return spark if told.expand == "no" else Expand(spark, store, index, policy=told.expand)


def _grasp(store: GraphStore, index: TextIndex, told: Any) -> Retriever:
    from graphret.grasp import Grasp, GraspSettings, LLMPlanner
    from graphret.planning import PathPlanner, Planner
    from graphret.stores import MemoryStore

    settings = None if told.settings is None else GraspSettings.load(told.settings)
    planner: Planner
    if told.model is None:
        names = None if isinstance(store, MemoryStore) else index
        planner = PathPlanner(store, names, aliases=told.aliases, scorer=told.scorer)
    else:
        model = options.chat_model(told.model, told.base_url)
        planner = LLMPlanner(model, store, hints=told.hints, show_values=told.show_values)
    return Grasp(planner, store, index, settings=settings, on_failure=told.on_failure)


def _index(where: str, store: GraphStore, encoder: Encoder | None) -> TextIndex:
    """Return a Neo4j's own index, or one for this question of a graph's text, in properties too (ARK, section 3)."""
    from graphret.errors import StoreMismatch
    from graphret.graphs.locations import NEO4J, kind_of
    from graphret.search import BM25Index, HybridIndex, NodeText
    from graphret.where import PROPERTIES

    if kind_of(where) == NEO4J:
        from graphret.search import Neo4jTextIndex

        try:
            return Neo4jTextIndex.open(store, encoder=encoder)  # type: ignore[arg-type]
        except StoreMismatch as error:
            remark(f"the nodes are indexed here, since the database has no index of graphret's: {error}")
    nodes, _ = store.count()
    found = [pair for by_name in store.schema().properties.values() for pair in by_name.items()]
    texts = {name for name, about in found if about.type.rpartition("LIST OF ")[2] in _TEXTUAL}
    text = NodeText(properties=tuple(sorted({name.removeprefix(PROPERTIES) for name in texts})))
    with stderr().status(f"indexing {nodes:,} nodes, which is done anew for each query"):
        return (
            BM25Index.of_store(store, text=text) if encoder is None else HybridIndex.of_store(store, encoder, text=text)
        )
