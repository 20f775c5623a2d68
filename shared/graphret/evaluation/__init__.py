"""How well retrieval works: measures, loaders of public benchmarks, and the runs that compare retrievers on them.

`NAMES` has the benchmarks of ``graphret bench``; each takes a folder of data and returns its result as JSON values.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "graphret.evaluation.guard": ("bench_guard",),
    "graphret.evaluation.loaders": ("bench_loaders",),
    "graphret.evaluation.metrics": ("all_at_k", "hit_at_k", "mrr", "paired_bootstrap", "recall_at_k"),
    "graphret.evaluation.metaqa": ("bench_metaqa",),
    "graphret.evaluation.multihop": ("load_multihop",),
    "graphret.evaluation.ottqa": ("load_ottqa",),
    "graphret.evaluation.runner": ("bench_multihop", "bench_ottqa"),
    "graphret.evaluation.table": ("markdown", "render"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

if TYPE_CHECKING:
    from graphret.evaluation.guard import bench_guard
    from graphret.evaluation.loaders import bench_loaders
    from graphret.evaluation.metaqa import bench_metaqa
    from graphret.evaluation.metrics import all_at_k, hit_at_k, mrr, paired_bootstrap, recall_at_k
    from graphret.evaluation.multihop import load_multihop
    from graphret.evaluation.ottqa import load_ottqa
    from graphret.evaluation.runner import bench_multihop, bench_ottqa
    from graphret.evaluation.table import markdown, render


class _Benchmarks(dict[str, Any]):
    """Benchmarks by name; a function is imported when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        return __getattr__(super().__getitem__(name))


NAMES = _Benchmarks(
    ottqa="bench_ottqa",
    multihop="bench_multihop",
    guard="bench_guard",
    metaqa="bench_metaqa",
    loaders="bench_loaders",
)

__all__ = [
    "NAMES",
    "all_at_k",
    "bench_guard",
    "bench_loaders",
    "bench_metaqa",
    "bench_multihop",
    "bench_ottqa",
    "hit_at_k",
    "load_multihop",
    "load_ottqa",
    "markdown",
    "mrr",
    "paired_bootstrap",
    "recall_at_k",
    "render",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value
