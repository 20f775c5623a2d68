"""`ArkRetriever`: exploring agents as a LangChain retriever."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, PrivateAttr, model_validator

from graphret.ark import Ark, ArkSettings
from langchain_graphret.ark.models import ArkOptions, core_ark
from langchain_graphret.retriever import CoreRetriever


class ArkRetriever(CoreRetriever):
    """Let agents explore a graph for a question and retrieve what they vote for (ARK, section 3).

    Exactly `k` documents come back where that many qualify; `k`, `where`, evidence and traces are as `SageRetriever`
    has them.

    Parameters
    ----------
    model, store, index, n_agents, max_steps, hints, settings, temperature, text, fallback, fill, on_failure, on_run
        As `create_ark_graph` has them.
    k
        How many documents are returned.
    where
        A filter dictionary (see `to_where`) or a `Where`.

    Examples
    --------
    >>> retriever = ArkRetriever(model, store, index, k=5)  # doctest: +SKIP
    >>> retriever.invoke("Who directed the films that Tom Hanks starred in?")  # doctest: +SKIP
    """

    model: Any = Field(repr=False)
    store: Any = Field(repr=False)
    index: Any = Field(repr=False)
    n_agents: int | None = None
    max_steps: int | None = None
    hints: str = Field(default="", repr=False)
    settings: ArkSettings | None = None
    temperature: Any = None
    text: Any = None
    fallback: Any = None
    fill: bool = True
    on_failure: Literal["fallback", "raise"] = "fallback"
    on_run: Any = Field(default=None, repr=False)

    _core: Ark = PrivateAttr()

    def __init__(self, model: Any, store: Any, index: Any, **options: Any) -> None:
        super().__init__(**options | {"model": model, "store": store, "index": index})

    @model_validator(mode="after")
    def _build(self) -> ArkRetriever:
        options: Any = {name: getattr(self, name) for name in ArkOptions.__annotations__}
        self._core = core_ark(self.model, self.store, self.index, **options)
        return self

    @property
    def core(self) -> Ark:
        """The core's `Ark`, which also tells of whole runs: `explore`."""
        return self._core
