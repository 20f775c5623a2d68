"""How well retrieval works: measures, loaders of public benchmarks, and the runs that compare retrievers on them.

`NAMES` has the benchmarks of ``graphret bench``; each takes a folder of data and returns its result as JSON values.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphret.evaluation.guard import bench_guard
    from graphret.evaluation.metaqa import bench_metaqa
    from graphret.evaluation.metrics import all_at_k, hit_at_k, mrr, paired_bootstrap, recall_at_k
    from graphret.evaluation.multihop import load_multihop
    from graphret.evaluation.ottqa import load_ottqa
    from graphret.evaluation.paths import bench_graphraft, bench_paths
    from graphret.evaluation.runner import bench_multihop, bench_ottqa
    from graphret.evaluation.spark import bench_spark
    from graphret.evaluation.table import render

#: The benchmarks, each ``bench_<name>`` here.
NAMES = ("ottqa", "multihop", "guard", "metaqa", "spark", "paths", "graphraft")

__all__ = [
    "NAMES",
    "all_at_k",
    "bench_graphraft",
    "bench_guard",
    "bench_metaqa",
    "bench_multihop",
    "bench_ottqa",
    "bench_paths",
    "bench_spark",
    "hit_at_k",
    "load_multihop",
    "load_ottqa",
    "mrr",
    "paired_bootstrap",
    "recall_at_k",
    "render",
]
_MODULES = {
    **dict.fromkeys(("all_at_k", "hit_at_k", "mrr", "paired_bootstrap", "recall_at_k"), "metrics"),
    **dict.fromkeys(("bench_multihop", "bench_ottqa"), "runner"),
    **{f"load_{name}": name for name in ("multihop", "ottqa")},
    **{f"bench_{name}": name for name in ("guard", "metaqa", "paths", "spark")},
    "bench_graphraft": "paths",
    "render": "table",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is: benchmarks need packages that measures do without."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
