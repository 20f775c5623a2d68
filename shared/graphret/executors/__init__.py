"""The block-parallel parts of a build, and where they run: in this process, or on a Ray
cluster.
"""

from graphret.executors.blocks import LOCAL, Executor, LocalExecutor, batched, embed
from graphret.executors.cluster import RayExecutor
from graphret.search.nearest import nearest_rows, pair_similarities

__all__ = [
    "LOCAL",
    "Executor",
    "LocalExecutor",
    "RayExecutor",
    "batched",
    "embed",
    "nearest_rows",
    "pair_similarities",
]
