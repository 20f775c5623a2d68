"""`ArkRetriever`: exploring agents as a LangChain retriever; and how LangChain's models drive the core's `Ark`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from pydantic import Field
from typing_extensions import TypedDict, Unpack

from graphret.ark import Ark, ArkSettings, OnRun
from graphret.llm.chat import ChatModel
from graphret.retriever import Retriever
from graphret.search.fields import NodeText
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore
from langchain_graphret.chat import as_core_model
from langchain_graphret.retriever import ModelRetriever

#: A chat model of LangChain, or what stands for one with fallbacks or a configuration, or one of graphret.
Model: TypeAlias = BaseChatModel | Runnable[Any, Any] | ChatModel

#: A chat model, or one for each agent.
Models: TypeAlias = Model | Sequence[Model]


class AgentOptions(TypedDict, total=False):
    """What can be set of agents; see `create_ark_graph`."""

    n_agents: int | None
    hints: str
    settings: ArkSettings | None
    temperature: float | Sequence[float | None] | None
    text: NodeText | None
    on_failure: str


class ArkOptions(AgentOptions, total=False):
    """What can be set of agents that vote."""

    fallback: Retriever | None
    fill: bool
    on_run: OnRun | None


def core_ark(model: Models, store: GraphStore, index: TextIndex, **options: Unpack[ArkOptions]) -> Ark:
    """Return the core's retriever."""
    given: dict[str, Any] = {"temperature": None, **options}
    settings, n_agents = given.pop("settings", None) or ArkSettings(), given.pop("n_agents", None)
    if n_agents is not None:
        settings = replace(settings, n_agents=n_agents)
    models = list(map(as_core_model, model)) if isinstance(model, (list, tuple)) else as_core_model(model)
    return Ark(models, store, index, settings=settings, **given)


class ArkRetriever(ModelRetriever):
    """Let agents explore a graph for a question and retrieve what they vote for (ARK, section 3).

    Exactly `k` documents come back where that many qualify; `k`, `where`, evidence and traces are as `SageRetriever`
    has them.

    Parameters
    ----------
    model, store, index, n_agents, hints, settings, temperature, text, fallback, fill, on_failure, on_run
        As `create_ark_graph` has them.
    k
        How many documents are returned.
    where
        A filter dictionary (see `to_where`) or a `Where`.

    Notes
    -----
    `core` is the core's `Ark`, which also tells of whole runs: `explore`.

    Examples
    --------
    >>> retriever = ArkRetriever(model, store, index, k=5)  # doctest: +SKIP
    >>> retriever.invoke("Who directed the films that Tom Hanks starred in?")  # doctest: +SKIP
    """

    n_agents: int | None = None
    settings: ArkSettings | None = None
    temperature: Any = None
    text: Any = None
    fill: bool = True
    on_run: Any = Field(default=None, repr=False)

    def _made(self) -> Ark:
        options: Any = {name: getattr(self, name) for name in ArkOptions.__annotations__}
        return core_ark(self.model, self.store, self.index, **options)
