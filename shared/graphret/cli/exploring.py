"""``graphret query --method ark``: agents explore a graph that is anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from graphret.cli import options
from graphret.cli.output import print_json, remark, stderr, stdout
from graphret.cli.running import MODEL, writing_to
from graphret.errors import InvalidInput, StorageError

if TYPE_CHECKING:
    from graphret.ark import ArkSession
    from graphret.ark.trajectory import Recorder
    from graphret.explain import Lookup
    from graphret.llm import ChatModel
    from graphret.nodes import NodeTable
    from graphret.search import BM25Index, TextIndex
    from graphret.search.encoder import Encoder
    from graphret.stores.base import GraphStore
    from graphret.stores.neo4j import Neo4jStore
    from graphret.types import Retrieval

_LARGE = 20_000  # nodes whose indexing is worth a word, and whose index is worth keeping
_WORDS = "words"
_TEXTUAL = ("STRING", "MAP", "ANY")  # what of a schema's types may hold words


@dataclass(frozen=True, slots=True)
class Exploring:
    """What the command was told."""

    graph: str
    k: int
    where: dict[str, Any] | None
    encoder: str | None
    model: str | None
    base_url: str | None
    agents: int
    steps: int
    hints: str
    on_failure: str
    record: Path | None
    explain: Path | None
    verbose: bool
    json: bool


def explore(question: str, told: Exploring) -> None:
    """Let agents explore, print what they found and, where asked, draw and record how."""
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
            on_failure=told.on_failure,
            on_step=watch,
            on_run=recorder,
        )
        retrieval = ark.retrieve(question, told.k, told.where)
        lookup = store_lookup(store)
        if told.explain is not None:
            with writing_to(told.explain):
                write_timeline(told.explain, retrieval, lookup=lookup)
        if told.json:
            print_json(retrieval.to_dict())
        else:
            _print(retrieval, lookup, told, steps=watch is None)
    failed = [stage.details for stage in retrieval.trace.fallbacks if "agent " in str(stage.details.get("failed"))]
    selected = any(evidence.kind == "votes" for hit in retrieval for evidence in hit.evidence)
    if told.model is not None and len(failed) == told.agents and not selected:
        why = failed[0]["error"] or "it called no tools"
        remark(f"the model {told.model!r} selected nothing, and the hits are those of plain search: {why}")
        raise typer.Exit(MODEL)


def _print(retrieval: Retrieval, lookup: Lookup, told: Exploring, *, steps: bool) -> None:
    from graphret.explain import fallback_text, render, render_timeline

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


def _model(told: Exploring) -> ChatModel:
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
def _opened(told: Exploring) -> Iterator[tuple[GraphStore, TextIndex]]:
    """Open a graph and an index over it: its own, where it has one that does."""
    from graphret.graphs.locations import FOLDER, kind_of, opened, path_of
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
        yield store, own or _index(store, encoder, path_of(told.graph) if kind_of(told.graph) == FOLDER else None)


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


def _index(store: GraphStore, encoder: Encoder | None, folder: Path | None) -> TextIndex:
    """Index a graph; the words of a large one in a folder are kept beside it, until the graph changes."""
    from graphret.search import BM25Index, DenseIndex, HybridIndex, NodeText
    from graphret.search.index import table_of

    nodes, _ = store.count()
    kept = _Kept.of_graph(folder, _texts(store)) if folder is not None and nodes >= _LARGE else None
    table = table_of(store)
    lexical = kept.opened(table) if kept is not None else None
    with stderr().status(f"indexing {nodes:,} nodes"):
        text = NodeText(properties=_texts(store)).bound(store)
        if lexical is None:
            if nodes >= _LARGE:
                again = "which is done anew for each query" if kept is None else f"to be kept in {kept.place}"
                remark(f"indexing the text of {nodes:,} nodes, {again}")
            lexical = BM25Index.build(table, text=text)
            if kept is not None:
                kept.keep(lexical)
        if encoder is None:
            return lexical
        return HybridIndex(lexical, DenseIndex.build(table, encoder, text=text))


@dataclass(frozen=True, slots=True)
class _Kept:
    """The index of a saved graph's words, beside the graph; `of` says of which state of it, and how it was made."""

    place: Path
    of: dict[str, Any]

    @classmethod
    def of_graph(cls, folder: Path, properties: Sequence[str]) -> _Kept:
        from importlib.metadata import version

        from graphret._current import read_current

        whole, graph = folder.resolve(), read_current(folder)["manifest"]
        state = {"graph": graph, "properties": list(properties), "graphret": version("graphret")}
        return cls(whole.with_name(f"{whole.name}.bm25"), state)

    def opened(self, table: NodeTable) -> BM25Index | None:
        """Return the index, unless there is none of this state."""
        from graphret import storage
        from graphret.search import BM25Index

        try:
            bundle = storage.load(self.place, kind=_WORDS, version=1, verify=None)
        except StorageError:  # absent, damaged or of another graphret: it is made anew
            return None
        return BM25Index.from_bundle(bundle.sub("lexical"), table) if bundle.meta.get("of") == self.of else None

    def keep(self, index: BM25Index) -> None:
        """Write the index; where that cannot be, say so and go on."""
        from graphret import storage

        parts = storage.Parts(meta={"of": self.of})
        parts.add("lexical", index.parts())
        try:
            storage.save(self.place, parts, kind=_WORDS, version=1)
        except StorageError as error:
            remark(f"the index was not kept: {error}")


def _texts(store: GraphStore) -> tuple[str, ...]:
    """The properties that hold text, in lists and nested too (ARK, section 3: an index over textual attributes)."""
    from graphret.where import PROPERTIES

    found = [pair for by_name in store.schema().properties.values() for pair in by_name.items()]
    texts = {name for name, about in found if about.type.rpartition("LIST OF ")[2] in _TEXTUAL}
    return tuple(sorted({name.removeprefix(PROPERTIES) for name in texts}))
