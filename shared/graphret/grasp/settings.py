"""How GRASP weighs the graph against the text (section 3.2)."""

from __future__ import annotations

import bisect
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, get_args

from graphret.errors import InvalidInput
from graphret.planning.graph_plan import RiskLevel
from graphret.retriever import load_settings
from graphret.types import Signals

#: The largest number of candidates of each bucket but the last (section 3.2).
BUCKETS = (10, 50, 100, 500)
#: The risk levels, in the order of the paper's vectors (appendix A).
RISKS: tuple[str, ...] = get_args(RiskLevel)


@dataclass(frozen=True)
class StaticWeights:
    """Fixed weights: ``graph`` for the plan's list, ``1 − graph`` for the text search.

    ``score(c) = w / (k + rank_plan(c)) + (1 − w) / (k + rank_text(c))`` (section 3.2).
    """

    graph: float = 0.5

    def __post_init__(self) -> None:
        if (
            isinstance(self.graph, bool)
            or not isinstance(self.graph, int | float)
            or not 0 <= self.graph <= 1
        ):
            raise InvalidInput(
                "StaticWeights.graph: expected a number from 0 to 1, got"
                f" {self.graph!r}"
            )

    def __call__(self, signals: Sequence[Signals]) -> list[float]:
        """Return the weights; 0 for an invalid plan."""
        return [self.graph, 1 - self.graph] if signals[0].plan_valid else [0.0, 1.0]


@dataclass(frozen=True)
class DynamicWeights:
    """Weights by what the plan found and how far the planner trusts it (section 3.2).

    They are ``buckets[b] · risks[r]`` for the plan's list, 1 for the other.

    Parameters
    ----------
    buckets
        By the number of candidates: at most 10, 50, 100, 500, or more.
    risks
        By the plan's risk level: ``no_trade``, ``weak``, ``normal``, ``aggressive``.
        The defaults of both are what the paper chose for Prime, its most relational
        graph (figure 2).
    """

    buckets: tuple[float, ...] = (2.0, 0.8, 0.2, 0.05, 0.05)
    risks: tuple[float, ...] = (0.5, 0.5, 1.25, 1.0)

    def __post_init__(self) -> None:
        for name, n in (("buckets", len(BUCKETS) + 1), ("risks", len(RISKS))):
            values = tuple(getattr(self, name))
            object.__setattr__(self, name, values)
            if len(values) != n or not all(
                isinstance(value, int | float) and 0 <= value < math.inf
                for value in values
            ):
                raise InvalidInput(
                    f"DynamicWeights.{name}: expected {n} numbers of at least 0, got"
                    f" {values}"
                )

    def __call__(self, signals: Sequence[Signals]) -> list[float]:
        """Return the weights; 0 for a plan that `cell_of` gives no say."""
        cell = cell_of(signals[0])
        if cell is None:
            return [0.0, 1.0]
        bucket, risk = cell
        return [self.buckets[bucket] * self.risks[risk], 1.0]


def cell_of(plan: Signals) -> tuple[int, int] | None:
    """Return the places of a plan's bucket and risk level in the vectors.

    `None` where the plan has no say.
    """
    if not plan.plan_valid or not plan.candidates or plan.risk not in RISKS:
        return None
    return bisect.bisect_left(BUCKETS, plan.candidates), RISKS.index(plan.risk)


#: How the plan's list is weighed against the text's.
Weighing: TypeAlias = StaticWeights | DynamicWeights
_KINDS: Mapping[str, type[StaticWeights] | type[DynamicWeights]] = {
    "static": StaticWeights,
    "dynamic": DynamicWeights,
}


@dataclass(frozen=True)
class GraspSettings:
    """How GRASP fuses and reranks.

    `graphret tune` chooses them on labelled questions and writes them to a file.

    Parameters
    ----------
    weights
        Of the plan's list and of the text's.
    rrf_k
        Constant of the fusion of the two.
    depth
        How many hits of each are fused.
    rerank_depth
        How many of the fused are reranked, where there is a reranker (section 3.3: 100;
        less is quicker).
    rerank_weight, rerank_k
        The weight of the reranker's list against the fused one's, and the constant of
        that fusion.
    """

    weights: Weighing = field(default_factory=lambda: StaticWeights(0.9))
    rrf_k: float = 10.0
    depth: int = 100
    rerank_depth: int = 20
    rerank_weight: float = 0.5
    rerank_k: float = 10.0

    @classmethod
    def paper(cls) -> GraspSettings:
        """Return the paper's settings: a hundred hits reranked (section 3.3).

        The reranker's list is fused by ``(w, k) = (0.5, 2)``, best on Prime (section
        4.5).

        Of the fusion before it the paper has ranges (appendix A) and no values: they
        are the middle of the range and the usual constant until ``graphret tune``
        chooses them on validation questions (section 3.2).
        """
        return cls(
            weights=StaticWeights(0.5),
            rrf_k=60.0,
            depth=100,
            rerank_depth=100,
            rerank_weight=0.5,
            rerank_k=2.0,
        )

    def save(self, path: str | Path) -> None:
        """Write the settings as JSON, which `load` reads and a person can."""
        Path(path).write_text(
            json.dumps(self.to_dict(), indent=2) + "\n", encoding="utf-8"
        )

    @classmethod
    def load(cls, path: str | Path) -> GraspSettings:
        """Read settings that `save` or ``graphret tune`` wrote.

        Raises `InvalidInput` on a malformed file.
        """
        return load_settings(path, cls.from_dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        [kind] = [
            name
            for name, weights_type in _KINDS.items()
            if isinstance(self.weights, weights_type)
        ]
        return asdict(self) | {"weights": {"kind": kind, **asdict(self.weights)}}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> GraspSettings:
        """Return the settings of `to_dict`."""
        weights = dict(values["weights"])
        return cls(**{**values, "weights": _KINDS[weights.pop("kind")](**weights)})
