"""SPARK: a plan of semantic and symbolic steps from one call of a model, run on a graph
(SAGE paper, section 2.2).
"""

from graphret.spark.plan import CypherStep, SemanticStep, SparkPlan
from graphret.spark.retriever import Answered, Found, Planned, Spark
from graphret.spark.settings import SparkSettings

__all__ = [
    "Answered",
    "CypherStep",
    "Found",
    "Planned",
    "SemanticStep",
    "Spark",
    "SparkPlan",
    "SparkSettings",
]
