"""SPARK: a plan of semantic and symbolic steps from one call of a model, run on a graph
(SAGE paper, section 2.2).
"""

from graphret.spark.cypher_step import CheckedQuery, CypherStep
from graphret.spark.plan import SparkPlan
from graphret.spark.retriever import Answered, Planned, Spark
from graphret.spark.semantic_step import SemanticStep
from graphret.spark.settings import SparkSettings
from graphret.spark.step import CheckedStep, Found, Step, StepContext

__all__ = [
    "Answered",
    "CheckedQuery",
    "CheckedStep",
    "CypherStep",
    "Found",
    "Planned",
    "SemanticStep",
    "Spark",
    "SparkPlan",
    "SparkSettings",
    "Step",
    "StepContext",
]
