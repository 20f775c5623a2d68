"""ARK in LangChain and LangGraph: a graph of exploring agents, the agent, its tools, and a retriever."""

from __future__ import annotations

from graphret.errors import MissingDependency

try:
    import langgraph.graph  # noqa: F401
except ImportError as error:
    raise MissingDependency("langgraph", "langchain", "langchain_graphret.ark") from error

from langchain_graphret.ark.agent import create_ark_agent
from langchain_graphret.ark.graph import create_ark_graph, run_of
from langchain_graphret.ark.models import ScriptedExplorer
from langchain_graphret.ark.retriever import ArkRetriever
from langchain_graphret.ark.state import AgentState, ArkState, by_agent
from langchain_graphret.ark.tool import create_ark_tool
from langchain_graphret.ark.tools import ArkTool, ark_tools

__all__ = [
    "AgentState",
    "ArkRetriever",
    "ArkState",
    "ArkTool",
    "ScriptedExplorer",
    "ark_tools",
    "by_agent",
    "create_ark_agent",
    "create_ark_graph",
    "create_ark_tool",
    "run_of",
]
