"""SPARK: a plan of semantic and symbolic steps from one call of a model, run on a graph
(SAGE paper, section 2.2).
"""

from graphret.spark.cypher_step import CheckedQuery, CypherStep
from graphret.spark.plan import SparkPlan
from graphret.spark.retriever import PlanReply, Spark, SparkRunRetriever
from graphret.spark.semantic_step import SemanticStep
from graphret.spark.settings import SparkSettings
from graphret.spark.step import CheckedStep, FoundNodes, Step, StepContext

__all__ = [
    "CheckedQuery",
    "CheckedStep",
    "CypherStep",
    "FoundNodes",
    "PlanReply",
    "SemanticStep",
    "Spark",
    "SparkPlan",
    "SparkRunRetriever",
    "SparkSettings",
    "Step",
    "StepContext",
]
