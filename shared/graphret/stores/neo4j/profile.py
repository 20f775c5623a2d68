"""Neo4j's ``PROFILE`` as operators: it comes as a tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphret.stores.profile import Operator


def operators_of(plan: Mapping[str, Any]) -> list[Operator]:
    """Return the operators of a profiled plan, the last one to run first."""
    told = plan.get("args") or {}
    estimated = told.get("EstimatedRows")
    first = Operator(
        name=str(plan.get("operatorType", "")).partition("@")[0],
        details=str(told.get("Details", "")),
        rows=int(plan.get("rows", told.get("Rows", 0))),
        estimated_rows=None if estimated is None else float(estimated),
        db_hits=int(plan.get("dbHits", told.get("DbHits", 0))),
    )
    found = [first]
    for child in plan.get("children") or ():
        found += operators_of(child)
    return found


def memory_of(plan: Mapping[str, Any]) -> int | None:
    """Return the bytes that a profiled plan allocated; `None` where it does not say."""
    told = plan.get("args") or {}
    memory = told.get("GlobalMemory", told.get("Memory"))
    return None if memory is None else int(memory)
