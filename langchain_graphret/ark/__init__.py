"""ARK in LangChain and LangGraph: a graph of agents, one agent, tools, a retriever."""

from __future__ import annotations

from graphret import ScriptedExplorer
from langchain_graphret.ark.agent import AgentState, create_ark_agent
from langchain_graphret.ark.graph import (
    ArkRetriever,
    ArkState,
    by_agent,
    create_ark_graph,
)
from langchain_graphret.ark.tools import ark_tools, create_ark_tool

__all__ = [
    "AgentState",
    "ArkRetriever",
    "ArkState",
    "ScriptedExplorer",
    "ark_tools",
    "by_agent",
    "create_ark_agent",
    "create_ark_graph",
    "create_ark_tool",
]
