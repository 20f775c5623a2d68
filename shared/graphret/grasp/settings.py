"""How GRASP weighs the graph against the text (section 3.2)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from graphret.errors import InvalidInput
from graphret.retriever import load_settings
from graphret.types import Signals


@dataclass(frozen=True)
class StaticWeights:
    """The same weights for every question: ``graph`` for the plan's list, ``1 − graph``
    for the other.

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
        """Return the weights; of a plan that is invalid none."""
        return [self.graph, 1 - self.graph] if signals[0].plan_valid else [0.0, 1.0]


@dataclass(frozen=True)
class GraspSettings:
    """How GRASP fuses and reranks; `graphret tune` chooses them on labelled questions
    and writes them to a file.

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

    weights: StaticWeights = field(default_factory=lambda: StaticWeights(0.9))
    rrf_k: float = 10.0
    depth: int = 100
    rerank_depth: int = 20
    rerank_weight: float = 0.5
    rerank_k: float = 10.0

    @classmethod
    def paper(cls) -> GraspSettings:
        """Return the settings of the paper: a hundred hits reranked (section 3.3), the
        reranker's list fused by ``(w, k) = (0.5, 2)``, which are best on Prime (section
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
            json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8"
        )

    @classmethod
    def load(cls, path: str | Path) -> GraspSettings:
        """Read settings that `save` or ``graphret tune`` wrote; an `InvalidInput` says
        what is wrong with the file.
        """
        return load_settings(
            path,
            lambda given: cls(
                **{**given, "weights": StaticWeights(**given["weights"])}
            ),
        )
