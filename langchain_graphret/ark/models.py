"""The models that drive agents: LangChain's for the core's `Ark`, and the core's policy as one of LangChain's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from pydantic import Field
from typing_extensions import TypedDict, Unpack

from graphret.ark import Ark, ArkSettings
from graphret.ark import ScriptedExplorer as Policy
from graphret.ark.retriever import OnRun
from graphret.errors import InvalidInput
from graphret.llm.chat import ChatModel
from graphret.retriever import Retriever
from graphret.search.fields import NodeText
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore
from langchain_graphret.chat import LangChainChat, is_chat_model
from langchain_graphret.core_chat import CoreChat

#: A chat model of LangChain, or what stands for one with fallbacks or a configuration, or one of graphret.
Model: TypeAlias = BaseChatModel | Runnable[Any, Any] | ChatModel

#: A chat model, or one for each agent.
Models: TypeAlias = Model | Sequence[Model]


class AgentOptions(TypedDict, total=False):
    """What can be set of agents; see `create_ark_graph`."""

    n_agents: int | None
    max_steps: int | None
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
    settings = given.pop("settings", None) or ArkSettings()
    if not isinstance(settings, ArkSettings):
        raise InvalidInput(f"settings: ArkSettings are expected, not {type(settings).__name__}")
    numbers = {name: given.pop(name, None) for name in ("n_agents", "max_steps")}
    changed = {name: value for name, value in numbers.items() if value is not None}
    return Ark(_as_core(model), store, index, settings=replace(settings, **changed), **given)


def _as_core(model: Any) -> Any:
    if isinstance(model, (list, tuple)):
        made = {id(one): _as_core(one) for one in model}  # agents of one model share it
        return [made[id(one)] for one in model]
    return LangChainChat(model) if is_chat_model(model) else model


class ScriptedExplorer(CoreChat):
    """A fixed policy that explores a graph with ARK's tools, in the place of a chat model; it is no language model.

    See `graphret.ark.ScriptedExplorer`. It drives any LangChain agent that offers `ark_tools`; where `select` and
    `finish` are not among the tools, it ends with a message that calls none.

    Examples
    --------
    >>> from langchain_graphret.ark import ScriptedExplorer
    >>> reply = ScriptedExplorer().invoke("Who directed Heat?")
    >>> reply.tool_calls[0]["name"]
    'global_search'
    """

    core: Any = Field(default_factory=Policy, repr=False)
