"""``graphret query``: ask a graph."""

from __future__ import annotations

import json as json_
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphret.cli import options
from graphret.cli.console import print_json, remark, stderr, stdout
from graphret.cli.errors import MODEL, writing_to
from graphret.cli.options import ARK, OnFailure, option
from graphret.errors import InvalidInput

if TYPE_CHECKING:
    from graphret.ark import ArkSession
    from graphret.ark.trajectory import Recorder
    from graphret.explain import Lookup
    from graphret.llm import ChatModel
    from graphret.retriever import Retriever
    from graphret.sage import SageGraph
    from graphret.search import TextIndex
    from graphret.search.encoder import Encoder
    from graphret.search.index import ArrayIndex
    from graphret.stores.base import GraphStore
    from graphret.stores.neo4j import Neo4jStore
    from graphret.types import Retrieval

METHODS = ("sage", "ark")
_LARGE = 20_000  # nodes whose indexing is worth a word
_TEXTUAL = ("STRING", "MAP", "ANY")  # what of a schema's types may hold words
#: The options that only one method has.
_BELONG = {"ranking": "sage"} | dict.fromkeys(
    ("model", "base_url", "agents", "steps", "hints", "on_failure", "record", "verbose"), "ark"
)


class RankingName(StrEnum):
    """How seeds and neighbours become one list."""

    coverage = "coverage"
    propagate = "propagate"
    paper = "paper"


_GRAPH = "A folder that graphret wrote; for ark also a Ladybug file, or the address of a Neo4j."
_ENCODER = "'saved' (sage's default) for that of the graph, 'none' (ark's) to search by words alone; for ark any other."
_URL = "Of --model: an OpenAI-compatible endpoint, ending in /v1; the key is read from OPENAI_API_KEY."


def query(
    context: typer.Context,
    text: Annotated[str, typer.Argument(metavar="QUESTION", help="The question.", show_default=False)],
    graph: Annotated[str, option(_GRAPH, metavar="WHERE")],
    method: Annotated[str | None, option(f"{' or '.join(METHODS)}; sage for documents, else ark, by default.")] = None,
    k: Annotated[int, option("How many hits, in all.", "-k", "--k")] = 10,
    ranking: Annotated[
        RankingName, option("Of sage: how seeds and neighbours become one list.")
    ] = RankingName.coverage,
    where: Annotated[
        str | None, option('Return only nodes that satisfy this, as {"year": {"$gte": 1990}}.', metavar="JSON")
    ] = None,
    encoder: Annotated[str | None, option(_ENCODER, metavar="NAME")] = None,
    explain: Annotated[Path | None, option("Draw how the hits were found into a page.", metavar="FILE.html")] = None,
    model: Annotated[
        str | None, option("A chat model; without one a fixed policy explores.", metavar="NAME", panel=ARK)
    ] = None,
    base_url: Annotated[str | None, option(_URL, panel=ARK)] = None,
    agents: Annotated[int, option("How many explore at once.", panel=ARK, min=1)] = 3,
    steps: Annotated[int, option("Replies that each may take.", panel=ARK, min=1)] = 20,
    hints: Annotated[str, option("What else agents should know of the domain.", metavar="TEXT", panel=ARK)] = "",
    on_failure: Annotated[
        OnFailure, option("Where a model fails: go on with what there is, or stop.", panel=ARK)
    ] = OnFailure.fallback,
    record: Annotated[
        Path | None, option("Append the run, for replay and training.", metavar="FILE.jsonl", panel=ARK)
    ] = None,
    verbose: Annotated[bool, option("Show every step of every agent.", "-v", "--verbose", panel=ARK)] = False,
    json: options.JsonFlag = False,
) -> None:
    """Ask a graph, and print the hits with the evidence for each."""
    method = method or ("sage" if options.holds_documents(graph) else "ark")
    if method not in METHODS:
        raise InvalidInput(f"--method: there is no method {method!r}; known are {', '.join(METHODS)}")
    options.refuse_others(context, method, _BELONG)
    if not text.strip():
        raise InvalidInput("QUESTION: it is empty")
    told = SimpleNamespace(**context.params)
    told.where = _condition(where)
    if method == "ark":
        told.encoder = options.encoder_of("none" if encoder is None else encoder)
        _ask_ark(text, told)
    else:
        _ask_sage(text, told)


def _ask_sage(text: str, told: Any) -> None:
    """Ask a graph of documents; `told` has the options of the command by name."""
    from graphret.explain import store_lookup

    encoder = "saved" if told.encoder is None else told.encoder
    opened = options.open_graph(told.graph, encoder=options.encoder_of(encoder))
    index: ArrayIndex = opened.index.lexical if encoder == "none" else opened.index
    retriever = _retriever(opened, told.ranking.value, by_words=encoder == "none")
    retrieval = retriever.retrieve(text, told.k, told.where)
    if told.explain is not None:
        _explain(opened, index, retrieval, told.where, told.explain)
    _print(retrieval, store_lookup(opened.store), told)


def _retriever(graph: SageGraph, ranking: str, *, by_words: bool) -> Retriever:
    if not by_words:
        return graph.retriever(ranking)
    from graphret.expansion import RANKINGS, Expand

    return Expand(None, graph.store, graph.index.lexical, ranking=RANKINGS[ranking]())


def _condition(where: str | None) -> dict[str, Any] | None:
    if where is None:
        return None
    try:
        condition = json_.loads(where)
    except ValueError as error:
        raise InvalidInput(f"--where: it is no JSON: {error}") from error
    if not isinstance(condition, dict):
        raise InvalidInput(f"--where: a JSON object is expected, not {where}")
    return condition


def _explain(
    graph: SageGraph, index: ArrayIndex, retrieval: Retrieval, where: dict[str, Any] | None, path: Path
) -> None:
    from graphret.explain import Panel, store_lookup, write_html
    from graphret.retriever import IndexRetriever

    flat = IndexRetriever(index).retrieve(retrieval.query, retrieval.k, where)
    with writing_to(path):
        write_html(path, Panel(retrieval, flat), title="graphret", lookup=store_lookup(graph.store), limit=retrieval.k)


# -- agents that explore


def _ask_ark(question: str, told: Any) -> None:
    """Let agents explore, print what they found and, where asked, draw and record how; for `told` see `_ask_sage`."""
    from graphret.ark import Ark, ArkSettings
    from graphret.explain import store_lookup, write_timeline

    settings = ArkSettings(n_agents=told.agents, max_steps=told.steps)
    model = _model(told)
    recorder = _recorder(told.record)
    watch = _Watch() if told.verbose and stderr().is_terminal else None
    with _opened(told) as (store, index):
        ark = Ark(
            model,
            store,
            index,
            settings=settings,
            hints=told.hints,
            on_failure=told.on_failure.value,
            on_step=watch,
            on_run=recorder,
        )
        retrieval = ark.retrieve(question, told.k, told.where)
        lookup = store_lookup(store)
        if told.explain is not None:
            with writing_to(told.explain):
                write_timeline(told.explain, retrieval, lookup=lookup)
        _print(retrieval, lookup, told, steps=watch is None)
    failed = [stage.details for stage in retrieval.trace.fallbacks if "agent " in str(stage.details.get("failed"))]
    selected = any(evidence.kind == "votes" for hit in retrieval for evidence in hit.evidence)
    if told.model is not None and len(failed) == told.agents and not selected:
        why = failed[0]["error"] or "it called no tools"
        remark(f"the model {told.model!r} selected nothing, and the hits are those of plain search: {why}")
        raise typer.Exit(MODEL)


def _print(retrieval: Retrieval, lookup: Lookup, told: Any, *, steps: bool = True) -> None:
    """Print the hits, of agents that were asked for what they did, and where it was drawn and recorded."""
    from graphret.explain import fallback_text, render, render_timeline

    if told.json:
        print_json(retrieval.to_dict())
        return
    for stage in retrieval.trace.fallbacks:
        remark(f"fallback: {fallback_text(stage)}")
    console = stdout()
    if told.verbose:
        console.print(render_timeline(retrieval, lookup, steps=steps))
        console.print()
    console.print(render(retrieval, lookup) if retrieval.hits else "nothing qualifies")
    for what, path in (("drawn", told.explain), ("recorded", told.record)):
        if path is not None:
            console.print(f"{what} in {path}", markup=False, soft_wrap=True)


class _Watch:
    """Shows the steps of agents as they happen."""

    def __init__(self) -> None:
        self._console = stderr()
        self._shown: dict[int, tuple[int, str | None]] = {}

    def __call__(self, session: ArkSession) -> None:
        from graphret.explain import step_text

        now = len(session.steps), session.stop
        before = self._shown.get(session.agent, (0, None))
        if now != before:
            self._shown[session.agent] = now
            self._console.print(step_text(session, before[0]))


def _model(told: Any) -> ChatModel:
    if told.model is None:
        if told.base_url is not None:
            raise InvalidInput("--base-url: it needs --model, the name of a model there")
        from graphret.ark import ScriptedExplorer

        return ScriptedExplorer()
    return options.chat_model(told.model, told.base_url)


def _recorder(path: Path | None) -> Recorder | None:
    if path is None:
        return None
    from graphret.ark.trajectory import Recorder

    with writing_to(path):  # before the models are asked, not after
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
    return Recorder(path)


@contextmanager
def _opened(told: Any) -> Iterator[tuple[GraphStore, TextIndex]]:
    """Open a graph and an index over it: its own, where it has one that does."""
    from graphret.graphs.locations import opened
    from graphret.stores.neo4j import Neo4jStore

    if options.holds_documents(told.graph):
        graph = options.open_graph(told.graph, encoder=told.encoder)
        yield graph.store, graph.index.lexical if told.encoder is None else graph.index
        return
    if told.encoder == "saved":
        raise InvalidInput(f"--encoder saved: {told.graph} has none; name one, or leave it out")
    encoder = _encoder(told.encoder)
    with opened(told.graph) as store:
        own = _neo4j_index(store, encoder) if isinstance(store, Neo4jStore) else None
        yield store, own or _index(store, encoder)


def _encoder(name: str | None) -> Encoder | None:
    from graphret.search.encoder import as_encoder, default_encoder

    return default_encoder() if name == "default" else as_encoder(name)


def _neo4j_index(store: Neo4jStore, encoder: Encoder | None) -> TextIndex | None:
    from graphret.errors import StoreMismatch
    from graphret.search import Neo4jTextIndex

    try:
        return Neo4jTextIndex.open(store, encoder=encoder)
    except StoreMismatch as error:
        remark(f"the nodes are read and indexed here, since the database has no index of graphret's: {error}")
        return None


def _index(store: GraphStore, encoder: Encoder | None) -> TextIndex:
    """Index a graph for this one question."""
    from graphret.search import BM25Index, DenseIndex, HybridIndex, NodeText
    from graphret.search.index import table_of

    nodes, _ = store.count()
    table = table_of(store)
    if nodes >= _LARGE:
        remark(f"indexing the text of {nodes:,} nodes, which is done anew for each query")
    with stderr().status(f"indexing {nodes:,} nodes"):
        text = NodeText(properties=_texts(store)).bound(store)
        lexical = BM25Index.build(table, text=text)
        if encoder is None:
            return lexical
        return HybridIndex(lexical, DenseIndex.build(table, encoder, text=text))


def _texts(store: GraphStore) -> tuple[str, ...]:
    """The properties that hold text, in lists and nested too (ARK, section 3: an index over textual attributes)."""
    from graphret.where import PROPERTIES

    found = [pair for by_name in store.schema().properties.values() for pair in by_name.items()]
    texts = {name for name, about in found if about.type.rpartition("LIST OF ")[2] in _TEXTUAL}
    return tuple(sorted({name.removeprefix(PROPERTIES) for name in texts}))
