"""`ScriptedExplorer` as a LangChain chat model."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from graphret.ark import ScriptedExplorer as Policy
from langchain_graphret.core_chat import CoreChat


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
