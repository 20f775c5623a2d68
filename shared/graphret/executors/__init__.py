"""Executors of a build's parallel blocks: in this process, or on a Ray cluster."""

from graphret.executors.blocks import (
    LOCAL,
    Executor,
    LocalExecutor,
    Progress,
    batched,
)
from graphret.executors.cluster import RayExecutor

__all__ = ["LOCAL", "Executor", "LocalExecutor", "Progress", "RayExecutor", "batched"]
