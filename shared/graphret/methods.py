"""The methods by name: a graph that was opened for questions, and the retrievers over
it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from graphret.errors import InvalidInput, NotAnIndex, StorageError
from graphret.where import PROPERTIES, WhereLike

if TYPE_CHECKING:
    from graphret.ark.retriever import OnRun
    from graphret.llm import ChatModel
    from graphret.planning import PathPlanner
    from graphret.retriever import Retriever
    from graphret.sage import SageGraph
    from graphret.search import TextIndex
    from graphret.search.encoder import Encoder
    from graphret.stores.base import GraphStore
    from graphret.stores.neo4j.layout import PropertyNames

Method: TypeAlias = Literal["sage", "ark", "spark", "grasp", "graphraft"]
METHODS: tuple[Method, ...] = get_args(Method)

_TEXTUAL = ("STRING", "MAP", "ANY")  # what of a schema's types may hold words
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class MethodOptions:
    """How a method is to work, as the options of ``graphret query`` say; each method
    takes what is its own.

    Parameters
    ----------
    model, base_url
        The name of a chat model and its OpenAI-compatible endpoint; or the folder of a
        causal model, such as a student, which runs in this process.
    agents, steps, seconds, on_run
        Of ARK: how many agents, the replies that each may take, how long they may take
        in all, and who is told of runs.
    settings, scorer, writer
        Files that ``graphret tune`` and ``train`` wrote.
    """

    ranking: str | None = None
    model: str | None = None
    base_url: str | None = None
    agents: int = 3
    steps: int = 20
    seconds: float | None = None
    on_run: OnRun | None = None
    hints: str = ""
    on_failure: str = "fallback"
    expand: str = "auto"
    show_values: bool = False
    repair_calls: int = 0
    settings: Path | None = None
    aliases: Path | None = None
    scorer: Path | None = None
    writer: Path | None = None

    def chat_model(self) -> ChatModel | None:
        if self.model is None:
            return None
        if self.base_url is None and Path(self.model).is_dir():
            from graphret.llm.causal_chat import CausalChat

            return CausalChat(self.model)
        from graphret.llm.openai_chat import OpenAIChat

        return OpenAIChat(self.model, base_url=self.base_url)


@dataclass(frozen=True)
class OpenGraph:
    """A graph that questions are put to: its store, its text index and, of documents,
    the whole graph.
    """

    store: GraphStore
    index: TextIndex
    documents: SageGraph | None = None

    @property
    def method(self) -> Method:
        """The method that goes by the graph."""
        return "ark" if self.documents is None else "sage"

    def view(self, where: WhereLike) -> OpenGraph:
        """Return the graph as far as nodes satisfy `where`; nothing of the others can
        be read through it.
        """
        if self.documents is None:
            return OpenGraph(self.store.view(where), self.index.view(where))
        graph = self.documents.view(where)
        return OpenGraph(graph.store, graph.index, graph)

    def retriever(
        self, method: Method, options: MethodOptions = MethodOptions()
    ) -> Retriever:
        """Return the retriever of a method.

        Raises
        ------
        InvalidInput
            When the graph, or a view of it, cannot serve the method, or an option is
            malformed.
        """
        if method == "sage":
            if self.documents is None:
                raise InvalidInput(
                    "method: sage needs a graph of documents, which `graphret build`"
                    " makes"
                )
            return self.documents.retriever(options.ranking)
        return _MAKE[method](self.store, self.index, options)


@contextmanager
def opened_graph(
    where: str,
    encoder: str | None = None,
    *,
    documents: bool = False,
    name_property: PropertyNames | None = None,
    remark: Callable[[str], object] = _log.warning,
    busy: Callable[[str], AbstractContextManager[object]] = nullcontext,
) -> Iterator[OpenGraph]:
    """Open the graph at a place for questions, and close what holds a connection or a
    file.

    Parameters
    ----------
    where
        A folder that graphret wrote, a Ladybug file, or the address of a Neo4j.
    encoder
        ``"saved"`` for that of a graph of documents, which is its default; ``"none"``
        to search by words alone, the default for any other graph; or the name of one.
    documents
        Whether nothing else than a graph of documents will do.
    name_property
        Of a Neo4j: what names its nodes, as `Neo4jStore` has it.
    remark, busy
        Told what the user should know; wraps work that takes a while, given its
        description.

    Raises
    ------
    NotAnIndex, CorruptIndex, NewerVersion, StoreUnavailable, AccessDenied,
    MissingDependency
        When there is no such graph, or it cannot be opened.
    """
    from graphret.graphs.locations import opened
    from graphret.search.encoder import as_encoder

    name = None if encoder == "none" else encoder
    if documents or holds_documents(where):
        from graphret.sage import SageGraph

        graph = SageGraph.load(
            folder_of(where), encoder="saved" if encoder is None else name
        )
        yield OpenGraph(graph.store, graph.index, graph)
        return
    if name == "saved":
        raise InvalidInput(
            f"--encoder saved: {where} has none; name one, or leave it out"
        )
    with opened(where, name_property=name_property) as store:
        yield OpenGraph(store, _index(where, store, as_encoder(name), remark, busy))


def holds_documents(where: str) -> bool:
    """Whether there is a folder with a graph of documents, which has an index of its
    own.
    """
    from graphret.sage.persistence import KIND
    from graphret.storage import read_current

    with suppress(StorageError):  # what is wrong there is said when it is opened
        return bool(read_current(Path(where))["kind"] == KIND)
    return False


def folder_of(where: str) -> Path:
    """Return the folder that a place names, and raise a `NotAnIndex` where it names a
    database.
    """
    from graphret.stores.addresses import is_address

    if is_address(where):
        raise NotAnIndex(f"{where}: a database, and not a folder that graphret wrote")
    return Path(where)


def _index(
    where: str,
    store: GraphStore,
    encoder: Encoder | None,
    remark: Callable[[str], object],
    busy: Callable[[str], AbstractContextManager[object]],
) -> TextIndex:
    """Return a Neo4j's own index, or one made now of a graph's text, in properties too
    (ARK, section 3).
    """
    from graphret.errors import StoreMismatch
    from graphret.graphs.locations import NEO4J, kind_of
    from graphret.search import BM25Index, HybridIndex, NodeText

    if kind_of(where) == NEO4J:
        from graphret.search import Neo4jTextIndex

        try:
            return Neo4jTextIndex.open(store, encoder=encoder)  # type: ignore[arg-type]
        except StoreMismatch as error:
            remark(
                "the nodes are indexed here, since the database has no index of"
                f" graphret's: {error}"
            )
    nodes, _ = store.count()
    found = [
        pair
        for by_name in store.schema().properties.values()
        for pair in by_name.items()
    ]
    texts = {
        name
        for name, about in found
        if about.type.rpartition("LIST OF ")[2] in _TEXTUAL
    }
    text = NodeText(
        properties=tuple(sorted({name.removeprefix(PROPERTIES) for name in texts}))
    )
    with busy(f"indexing {nodes:,} nodes, which is done anew each time"):
        return (
            BM25Index.of_store(store, text=text)
            if encoder is None
            else HybridIndex.of_store(store, encoder, text=text)
        )


# -- the methods


def _ark(store: GraphStore, index: TextIndex, options: MethodOptions) -> Retriever:
    from graphret.ark import Ark, ArkSettings, ScriptedExplorer

    settings = ArkSettings(
        n_agents=options.agents, max_steps=options.steps, max_seconds=options.seconds
    )
    more: dict[str, Any] = {
        "hints": options.hints,
        "on_failure": options.on_failure,
        "on_run": options.on_run,
        "temperature": 0.7,  # as in the paper: agents of one model are to differ
    }
    model = options.chat_model() or ScriptedExplorer(aliases=options.aliases)
    return Ark(model, store, index, settings=settings, **more)


def _spark(store: GraphStore, index: TextIndex, options: MethodOptions) -> Retriever:
    from graphret.expansion import Expand
    from graphret.spark import Spark, SparkSettings

    if (model := options.chat_model()) is None:
        raise InvalidInput("method: spark needs the name of a model")
    settings = SparkSettings(
        show_values=options.show_values, repair_calls=options.repair_calls
    )
    more: dict[str, Any] = {
        "settings": settings,
        "hints": options.hints,
        "on_failure": options.on_failure,
    }
    spark = Spark(model, store, index, **more)  # type: ignore[arg-type]  # it refuses others
    if options.expand == "no":
        return spark
    policy: Any = options.expand  # which Expand checks
    return Expand(spark, store, index, policy=policy)


def _grasp(store: GraphStore, index: TextIndex, options: MethodOptions) -> Retriever:
    from graphret.grasp import Grasp, GraspSettings, LLMPlanner
    from graphret.planning import Planner

    settings = (
        None if options.settings is None else GraspSettings.load(options.settings)
    )
    planner: Planner
    if (model := options.chat_model()) is None:
        planner = _path_planner(store, index, options)
    else:
        planner = LLMPlanner(
            model, store, hints=options.hints, show_values=options.show_values
        )
    return Grasp(
        planner, store, index, settings=settings, on_failure=options.on_failure
    )


def _graphraft(
    store: GraphStore, index: TextIndex, options: MethodOptions
) -> Retriever:
    from graphret.graphraft import GraphRAFT

    model = options.chat_model()
    more: dict[str, Any] = {
        "planner": _path_planner(store, index, options),
        "entities": model,
        "reasoner": model,
    }
    if options.writer is not None:
        from graphret.graphraft.writer import Writer

        more["writer"] = Writer.load(options.writer)
    return GraphRAFT(store, index, on_failure=options.on_failure, **more)


def _path_planner(
    store: GraphStore, index: TextIndex, options: MethodOptions
) -> PathPlanner:
    from graphret.planning import PathPlanner

    names = index if store.local_graph() is None else None
    return PathPlanner(store, names, aliases=options.aliases, scorer=options.scorer)


_MAKE: dict[str, Callable[[GraphStore, TextIndex, MethodOptions], Retriever]] = {
    "ark": _ark,
    "spark": _spark,
    "grasp": _grasp,
    "graphraft": _graphraft,
}
