"""The methods by name: a graph opened for questions, and the retrievers over it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from graphret.errors import InvalidInput, NotAnIndex, StorageError
from graphret.where import WhereLike

if TYPE_CHECKING:
    from graphret.ark.retriever import OnRun
    from graphret.ark.settings import ArkSettings, Prompt
    from graphret.expansion import Ranking
    from graphret.llm import ChatModel
    from graphret.planning import PathPlanner
    from graphret.rerank import Reranker
    from graphret.retriever import Retriever
    from graphret.sage import SageGraph
    from graphret.search import HybridIndex, TextIndex
    from graphret.search.encoder import Encoder
    from graphret.stores.base import GraphStore
    from graphret.stores.neo4j.layout import PropertyNames

#: Flat search by words, by embeddings, by both and over fields; expansion over any
#: graph, and over one of documents; the methods that plan or explore; and the
#: baselines.
Method: TypeAlias = Literal[
    "bm25",
    "dense",
    "hybrid",
    "mfar",
    "expand",
    "sage",
    "ark",
    "spark",
    "grasp",
    "graphraft",
    "hyde",
    "rar",
    "agr",
    "kar",
    "react",
    "reflexion",
    "think-on-graph",
    "4stepfocus",
    "focused",
    "hybgrag",
]
METHODS: tuple[Method, ...] = get_args(Method)
#: The published methods to compare with; each needs a model.
BASELINES: tuple[Method, ...] = METHODS[METHODS.index("hyde") :]
#: ``paper`` is what the papers describe, without graphret's additions.
Preset: TypeAlias = Literal["default", "paper"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class MethodOptions:
    """The options of methods, as those of ``graphret query``; each method uses its own.

    Parameters
    ----------
    model, base_url
        The name of a chat model and its OpenAI-compatible endpoint; or the folder of a
        causal model, such as a student, which runs in this process.
    agents, steps, seconds, on_run
        Of ARK: the number of agents, the most replies of each, the most time of all,
        and a callback for runs.
    prompt
        What agents of ARK are told, ``"full"`` or ``"short"``; by default what a
        student was trained with, and of any other model ``"full"``.
    settings, scorer, writer, fields
        Files and folders that ``graphret tune`` and ``train`` wrote; with `fields`,
        GRASP searches over fields in place of the graph's index.
    preset
        ``"paper"`` for the algorithms and defaults of the papers.
    reranker
        Reorders the hits of any method: a `Reranker`, a cross-encoder by name, or a
        folder that ``graphret train reranker`` wrote.
    guidance
        What GRASP's planner is told of the graph besides its schema: a file, or
        ``amazon``, ``mag`` or ``prime`` for what the paper has.
    chat
        An existing chat model, in place of one by name.
    llm_cache
        A folder that keeps the replies of the model.
    """

    preset: Preset = "default"
    ranking: str | None = None
    reranker: Reranker | str | None = None
    chat: ChatModel | None = None
    llm_cache: Path | None = None
    model: str | None = None
    base_url: str | None = None
    agents: int = 3
    steps: int = 20
    seconds: float | None = None
    on_run: OnRun | None = None
    prompt: Prompt | None = None
    hints: str = ""
    on_failure: str = "fallback"
    expand: str = "auto"
    show_values: bool = False
    repair_calls: int = 1
    settings: Path | None = None
    aliases: Path | None = None
    scorer: Path | None = None
    writer: Path | None = None
    fields: Path | None = None
    guidance: str | None = None

    @property
    def as_in_the_paper(self) -> bool:
        """Whether methods work as in their papers."""
        return self.preset == "paper"

    def chat_model(self) -> ChatModel | None:
        if self.chat is not None or self.model is None:
            return self.chat
        if self.base_url is None and Path(self.model).is_dir():
            from graphret.llm.causal_chat import CausalChat

            return CausalChat(self.model)
        from graphret.llm.cached_chat import CachedChat
        from graphret.llm.openai_chat import OpenAIChat

        model = OpenAIChat(self.model, base_url=self.base_url)
        return model if self.llm_cache is None else CachedChat(model, self.llm_cache)

    def ark_settings(self) -> ArkSettings:
        """Return the settings of ARK; a student explores as it was trained."""
        from graphret.ark import ArkSettings

        preset = ArkSettings.paper() if self.as_in_the_paper else ArkSettings()
        settings = preset
        if self.model is not None and self.base_url is None:
            settings = preset.as_trained(self.model)
        if self.prompt not in (None, settings.prompt):
            settings = ArkSettings.small() if self.prompt == "short" else preset
        return replace(
            settings,
            n_agents=self.agents,
            max_steps=self.steps,
            max_seconds=self.seconds,
            early_stop=preset.early_stop,
        )


@dataclass(frozen=True)
class OpenGraph:
    """A graph opened for questions: its store, text index and, if any, `SageGraph`."""

    store: GraphStore
    index: TextIndex
    documents: SageGraph | None = None

    @property
    def method(self) -> Method:
        """The default method for the graph."""
        return "ark" if self.documents is None else "sage"

    def view(self, where: WhereLike) -> OpenGraph:
        """Return a view of the nodes that satisfy `where`; no others can be read."""
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
            retriever: Retriever = self._sage(options)
        elif method in BASELINES:
            retriever = _baseline(method, self.store, self.index, options)
        else:
            retriever = _MAKE[method](self.store, self.index, options)
        reranker = _reranker(options)
        if reranker is None or method == "grasp":  # grasp has it inside
            return retriever
        from graphret.rerank import Rerank

        depth = 100 if options.as_in_the_paper else 20  # GRASP, section 3.3
        return Rerank(retriever, reranker, depth=depth)

    def _sage(self, options: MethodOptions) -> Retriever:
        if self.documents is None:
            raise InvalidInput(
                "method: sage needs a graph of documents, which `graphret build` makes"
            )
        return self.documents.retriever(
            _ranking(options), fill=not options.as_in_the_paper
        )


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
    """Open the graph at a location for questions, and close it afterwards.

    Parameters
    ----------
    where
        A folder that graphret wrote, a Ladybug file, or the address of a Neo4j.
    encoder
        ``"saved"`` for that of a graph of documents, which is its default; ``"none"``
        to search by words alone, the default for any other graph; or an encoder's name.
    documents
        Whether only a graph of documents is accepted.
    name_property
        Of a Neo4j: the property with the names of nodes, as for `Neo4jStore`.
    remark, busy
        Called with remarks for the user; and a context manager around slow work, called
        with its description.

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
    """Whether a location is a folder with a graph of documents and its own index."""
    from graphret.sage.persistence import KIND
    from graphret.storage import read_current

    with suppress(StorageError):  # opening it raises the error again
        return bool(read_current(Path(where))["kind"] == KIND)
    return False


def folder_of(where: str) -> Path:
    """Return the folder at a location; `NotAnIndex` if it is a database."""
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
    """Return a Neo4j's own index, or build one."""
    from graphret.errors import StoreMismatch
    from graphret.graphs.locations import NEO4J, kind_of

    if kind_of(where) == NEO4J:
        from graphret.search import Neo4jTextIndex

        try:
            return Neo4jTextIndex.open(store, encoder=encoder)  # type: ignore[arg-type]
        except StoreMismatch as error:
            remark(
                "the nodes are indexed here, since the database has no index of"
                f" graphret's: {error}"
            )
    return index_of(store, encoder, busy=busy)


def index_of(
    store: GraphStore,
    encoder: Encoder | None = None,
    *,
    busy: Callable[[str], AbstractContextManager[object]] = nullcontext,
) -> TextIndex:
    """Return an index of a graph's text and, with an encoder, of its embeddings.

    The text includes properties (ARK, section 3). `busy` returns a context manager
    around the work, given its description.
    """
    from graphret.search import BM25Index, HybridIndex, NodeText

    nodes, _ = store.count()
    text = NodeText(properties=store.schema().textual_properties())
    with busy(f"indexing {nodes:,} nodes, which is done anew each time"):
        return (
            BM25Index.of_store(store, text=text)
            if encoder is None
            else HybridIndex.of_store(store, encoder, text=text)
        )


# -- the methods


def _words(index: TextIndex) -> TextIndex:
    """Return the lexical part of an index."""
    from graphret.search import HybridIndex, Neo4jTextIndex

    local = index.local_index()
    if isinstance(local, HybridIndex):
        return local.lexical
    if isinstance(index, Neo4jTextIndex) and index.encoder is not None:
        raise InvalidInput("method: bm25 needs a Neo4j opened with --encoder none")
    return index


def _with_embeddings(index: TextIndex, method: Method) -> HybridIndex:
    """Return an index with both words and embeddings in this process."""
    from graphret.search import HybridIndex

    local = index.local_index()
    if not isinstance(local, HybridIndex) or local.dense is None:
        raise InvalidInput(
            f"method: {method} needs a graph opened with an encoder, whose embeddings"
            " are in this process; --encoder names one"
        )
    return local


def _reranker(options: MethodOptions) -> Reranker | None:
    if not isinstance(options.reranker, str):
        return options.reranker
    from graphret.rerank import load_reranker

    return load_reranker(options.reranker)


def _bm25(store: GraphStore, index: TextIndex, options: MethodOptions) -> Retriever:
    from graphret.index_retriever import IndexRetriever

    return IndexRetriever(_words(index), store, name="bm25")


def _dense(store: GraphStore, index: TextIndex, options: MethodOptions) -> Retriever:
    from graphret.index_retriever import IndexRetriever

    dense = _with_embeddings(index, "dense").dense
    assert dense is not None
    return IndexRetriever(dense, store, name="dense")


def _hybrid(store: GraphStore, index: TextIndex, options: MethodOptions) -> Retriever:
    from graphret.index_retriever import IndexRetriever
    from graphret.search import HybridIndex
    from graphret.search.hybrid import DEFAULT_ALPHA

    hybrid = _with_embeddings(index, "hybrid")
    if options.as_in_the_paper:
        hybrid = HybridIndex(hybrid.lexical, hybrid.dense, alpha=DEFAULT_ALPHA)
    return IndexRetriever(hybrid, store, name="hybrid")


def _mfar(store: GraphStore, index: TextIndex, options: MethodOptions) -> Retriever:
    from graphret.index_retriever import IndexRetriever

    if options.fields is None:
        raise InvalidInput(
            "method: mfar needs the folder that train fields wrote; --fields names it"
        )
    return IndexRetriever(_over_fields(store, options.fields), store, name="mfar")


def _over_fields(store: GraphStore, folder: Path) -> TextIndex:
    """Return an index over the trained fields, with its many embeddings on disk."""
    from graphret.search import AdaptiveFieldIndex, TrainedFields
    from graphret.search.encoder import CachedEncoder

    trained = TrainedFields.load(folder)
    encoder = CachedEncoder(trained.opened_encoder())
    return AdaptiveFieldIndex.of_store(store, trained, encoder=encoder)


def _ranking(options: MethodOptions) -> Ranking | None:
    """Return the ranking of an expansion, `None` where nothing names one."""
    from graphret.expansion import SageRanking, ranking_of

    if not options.as_in_the_paper:
        return None if options.ranking is None else ranking_of(options.ranking)
    if options.ranking not in (None, "paper"):
        raise InvalidInput(
            f"ranking: the preset 'paper' has the paper's, not {options.ranking!r}"
        )
    return SageRanking.paper()


def _expand(store: GraphStore, index: TextIndex, options: MethodOptions) -> Retriever:
    from graphret.expansion import Expand

    return Expand(
        None,
        store,
        index,
        ranking=_ranking(options),
        fill=not options.as_in_the_paper,
    )


def _ark(store: GraphStore, index: TextIndex, options: MethodOptions) -> Retriever:
    from graphret.ark import Ark, ScriptedExplorer

    settings = options.ark_settings()
    schema = store.schema() if settings.prompt == "short" else None
    # Section 4.3: agents of one model should differ. One alone need not.
    differ = settings.n_agents > 1 or options.as_in_the_paper
    temperature = 0.7 if differ else 0.0
    rules = ScriptedExplorer(aliases=options.aliases, schema=schema)
    return Ark(
        options.chat_model() or rules,
        store,
        _words(index) if options.as_in_the_paper else index,  # section 3: BM25
        settings=settings,
        hints=options.hints,
        temperature=temperature,
        fill=not options.as_in_the_paper,
        on_failure=options.on_failure,
        on_run=options.on_run,
    )


def _spark(store: GraphStore, index: TextIndex, options: MethodOptions) -> Retriever:
    from graphret.expansion import Expand
    from graphret.spark import Spark, SparkSettings

    if (model := options.chat_model()) is None:
        raise InvalidInput("method: spark needs the name of a model")
    paper = options.as_in_the_paper
    preset = SparkSettings.paper()
    if not paper:
        preset = SparkSettings(repair_calls=options.repair_calls)
    settings = replace(preset, show_values=options.show_values)
    spark = Spark(
        model,
        store,  # type: ignore[arg-type]  # it refuses others
        index,
        settings=settings,
        hints=options.hints,
        fill=not paper,
        on_failure=options.on_failure,
    )
    if options.expand == "no":
        return spark
    policy: Any = options.expand  # which Expand checks
    if paper and policy == "auto":
        policy = "-edge"  # SAGE-Edge of section 3.2, the better of the paper's two
    return Expand(
        spark,
        store,
        index,
        ranking=_ranking(options),
        policy=policy,
        fill=not paper,
    )


def _grasp(store: GraphStore, index: TextIndex, options: MethodOptions) -> Retriever:
    from graphret.grasp import Grasp, GraspSettings, LLMPlanner, PlannerGuidance
    from graphret.planning import Planner

    settings = GraspSettings.paper() if options.as_in_the_paper else GraspSettings()
    if options.settings is not None:
        settings = GraspSettings.load(options.settings)
    planner: Planner
    if (model := options.chat_model()) is None:
        planner = _path_planner(store, index, options)
    else:
        guidance = PlannerGuidance()
        if options.guidance is not None:
            guidance = PlannerGuidance.load(options.guidance)
        planner = LLMPlanner(
            model,
            store,
            examples=guidance.examples,
            hints="\n".join(filter(None, [*guidance.rules, options.hints])),
            metapaths=guidance.metapaths,
            retrieval_modes=guidance.retrieval_modes,
            show_values=options.show_values,
        )
    return Grasp(
        planner,
        store,
        index if options.fields is None else _over_fields(store, options.fields),
        documents=index,
        reranker=_reranker(options),
        settings=settings,
        on_failure=options.on_failure,
    )


def _graphraft(
    store: GraphStore, index: TextIndex, options: MethodOptions
) -> Retriever:
    from graphret.graphraft import GraphRAFT, GraphRAFTSettings

    paper, model = options.as_in_the_paper, options.chat_model()
    writer = None
    if options.writer is not None:
        from graphret.graphraft.writer import Writer

        # the paper ranks by the probability of a query alone (section 4.3)
        writer = (
            Writer.load(options.writer, prior_weight=0, size_weight=0, length_power=0)
            if paper
            else Writer.load(options.writer)
        )
    return GraphRAFT(
        store,
        index,
        writer=writer,
        planner=_path_planner(store, index, options),
        entities=model,
        reasoner=model,
        settings=GraphRAFTSettings.paper() if paper else None,
        fill=not paper,
        on_failure=options.on_failure,
    )


def _baseline(
    method: Method, store: GraphStore, index: TextIndex, options: MethodOptions
) -> Retriever:
    from graphret import baselines

    if (model := options.chat_model()) is None:
        raise InvalidInput(f"method: {method} needs the name of a model")
    agents = {"react": baselines.ReAct, "reflexion": baselines.Reflexion}
    if method in agents:
        return agents[method](
            model, store, index, steps=options.steps, on_failure=options.on_failure
        )
    classes: dict[str, type[baselines.Baseline]] = {
        "hyde": baselines.HyDE,
        "rar": baselines.RAR,
        "agr": baselines.AGR,
        "kar": baselines.KAR,
        "think-on-graph": baselines.ThinkOnGraph,
        "4stepfocus": baselines.FourStepFocus,
        "focused": baselines.FocusedRetriever,
        "hybgrag": baselines.HybGRAG,
    }
    return classes[method](model, store, index, on_failure=options.on_failure)


def _path_planner(
    store: GraphStore, index: TextIndex, options: MethodOptions
) -> PathPlanner:
    from graphret.planning import PathPlanner

    names = index if store.local_graph() is None else None
    return PathPlanner(store, names, aliases=options.aliases, scorer=options.scorer)


_MAKE: dict[str, Callable[[GraphStore, TextIndex, MethodOptions], Retriever]] = {
    "bm25": _bm25,
    "dense": _dense,
    "hybrid": _hybrid,
    "mfar": _mfar,
    "expand": _expand,
    "ark": _ark,
    "spark": _spark,
    "grasp": _grasp,
    "graphraft": _graphraft,
}
