"""Published methods that users would try first, over the same stores and models.

Each is written from its paper's description, as far as the papers of SAGE (appendix C),
ARK and GRASP describe it; prompts are ours.
"""

from graphret.baselines.agents import ReAct, Reflexion
from graphret.baselines.base import Baseline
from graphret.baselines.expansion import AGR, RAR, HyDE
from graphret.baselines.focused import FocusedRetriever, FourStepFocus
from graphret.baselines.hybgrag import HybGRAG
from graphret.baselines.kar import KAR
from graphret.baselines.think_on_graph import ThinkOnGraph

__all__ = [
    "AGR",
    "KAR",
    "RAR",
    "Baseline",
    "FocusedRetriever",
    "FourStepFocus",
    "HyDE",
    "HybGRAG",
    "ReAct",
    "Reflexion",
    "ThinkOnGraph",
]
