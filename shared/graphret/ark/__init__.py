"""ARK: agents that explore a graph with two tools and vote (Polonuer et al. 2026)."""

from graphret.ark.observation import Observation, hits_text
from graphret.ark.prompt import make_tools, system_prompt
from graphret.ark.retriever import Ark, ArkRunRetriever
from graphret.ark.run import ArkRun
from graphret.ark.scripted import ScriptedExplorer
from graphret.ark.session import ArkSession, CallRecord, StepRecord
from graphret.ark.settings import ArkSettings
from graphret.ark.tool_caller import ToolCaller
from graphret.ark.tools import Toolbox
from graphret.ark.trajectory import Recorder, read_runs

__all__ = [
    "Ark",
    "ArkRun",
    "ArkRunRetriever",
    "ArkSession",
    "ArkSettings",
    "CallRecord",
    "Observation",
    "Recorder",
    "ScriptedExplorer",
    "StepRecord",
    "ToolCaller",
    "Toolbox",
    "hits_text",
    "make_tools",
    "read_runs",
    "system_prompt",
]
