"""SPARK: a plan of searches and queries from one model call (SAGE, section 2.2)."""

from graphret.spark.cypher_step import CheckedQuery, CypherStep
from graphret.spark.plan import SparkPlan
from graphret.spark.retriever import PlanReply, Spark, SparkRunRetriever
from graphret.spark.semantic_step import SemanticStep
from graphret.spark.settings import SparkSettings
from graphret.spark.step import CheckedStep, Step, StepContext, StepResult

__all__ = [
    "CheckedQuery",
    "CheckedStep",
    "CypherStep",
    "PlanReply",
    "SemanticStep",
    "Spark",
    "SparkPlan",
    "SparkRunRetriever",
    "SparkSettings",
    "Step",
    "StepContext",
    "StepResult",
]
