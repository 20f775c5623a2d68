"""`ArkRetriever`: exploring agents as a LangChain retriever; and how LangChain's models drive the core's `Ark`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic import Field

from graphret.ark import Ark, ArkSettings
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore
from langchain_graphret.chat import as_core_model
from langchain_graphret.retriever import ModelRetriever


def core_ark(
    model: Any,
    store: GraphStore,
    index: TextIndex,
    *,
    settings: ArkSettings | None = None,
    n_agents: int | None = None,
    **options: Any,
) -> Ark:
    """Return the core's retriever over chat models of LangChain or of graphret; temperatures are the models' own."""
    settings = settings or ArkSettings()
    if n_agents is not None:
        settings = replace(settings, n_agents=n_agents)
    models = list(map(as_core_model, model)) if isinstance(model, (list, tuple)) else as_core_model(model)
    return Ark(models, store, index, settings=settings, **{"temperature": None, **options})


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
    """

    n_agents: int | None = None
    settings: ArkSettings | None = None
    temperature: Any = None
    text: Any = None
    fill: bool = True
    on_run: Any = Field(default=None, repr=False)

    def _made(self) -> Ark:
        names = "settings", "n_agents", "hints", "temperature", "text", "fallback", "fill", "on_failure", "on_run"
        return core_ark(self.model, self.store, self.index, **{name: getattr(self, name) for name in names})
