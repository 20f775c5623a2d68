"""GRASP: plan, link, run, fuse, rerank (Tao et al. 2026).

`llm_planner` writes plans with a model, and `guidance` is what it is told besides;
`plan_retriever` is the first stage, `settings` weighs the second, and `retriever` joins
the three.
"""

from graphret.grasp.guidance import PlannerGuidance
from graphret.grasp.llm_planner import LLMPlanner
from graphret.grasp.plan_retriever import PlanRetriever
from graphret.grasp.retriever import Grasp
from graphret.grasp.settings import DynamicWeights, GraspSettings, StaticWeights

__all__ = [
    "DynamicWeights",
    "Grasp",
    "GraspSettings",
    "LLMPlanner",
    "PlanRetriever",
    "PlannerGuidance",
    "StaticWeights",
]
