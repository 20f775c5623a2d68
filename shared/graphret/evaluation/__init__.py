"""Measures, loaders of public benchmarks, and the runs that compare retrievers.

Each ``bench_<name>`` is a benchmark of ``graphret bench``: it takes a folder of data
and returns JSON values.
"""

from graphret.evaluation.ark import bench_ark, tool_use
from graphret.evaluation.evaluation import evaluate
from graphret.evaluation.general import bench_general
from graphret.evaluation.grasp import bench_grasp
from graphret.evaluation.guard import bench_guard
from graphret.evaluation.linking import bench_linking
from graphret.evaluation.metaqa import bench_metaqa
from graphret.evaluation.metrics import (
    all_at_k,
    hit_at_k,
    mrr,
    paired_bootstrap,
    recall_at_k,
)
from graphret.evaluation.multihop import load_multihop
from graphret.evaluation.ottqa import load_ottqa
from graphret.evaluation.paths import bench_graphraft, bench_paths
from graphret.evaluation.plans import bench_plans
from graphret.evaluation.questions import (
    EvaluationQuestion,
    read_evaluation_questions,
)
from graphret.evaluation.runner import bench_multihop, bench_ottqa
from graphret.evaluation.sage import bench_sage
from graphret.evaluation.spark import bench_spark
from graphret.evaluation.summary import Prices
from graphret.evaluation.table import render

__all__ = [
    "EvaluationQuestion",
    "Prices",
    "all_at_k",
    "bench_ark",
    "bench_general",
    "bench_graphraft",
    "bench_grasp",
    "bench_guard",
    "bench_linking",
    "bench_metaqa",
    "bench_multihop",
    "bench_ottqa",
    "bench_paths",
    "bench_plans",
    "bench_sage",
    "bench_spark",
    "evaluate",
    "hit_at_k",
    "load_multihop",
    "load_ottqa",
    "mrr",
    "paired_bootstrap",
    "read_evaluation_questions",
    "recall_at_k",
    "render",
    "tool_use",
]
