"""`LearnedRanking`: coverage's ranking, reordered by a trained model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.columns import TextArray
from graphret.errors import MissingDependency
from graphret.expansion.coverage import Coverage
from graphret.expansion.frontier import Frontier, RankedNodes
from graphret.ranker.features import Columns, features_of
from graphret.storage import Bundle, Parts
from graphret.types import Evidence

# How many features are named in the evidence of a hit.
_FEATURES_SHOWN = 3


@dataclass(frozen=True)
class LearnedRanking:
    """The first nodes of another ranking, reordered by a model; the rest stay in place.

    ``graphret train ranking`` makes it and `SageGraph.save` keeps it; the model is
    LightGBM's text.

    Parameters
    ----------
    model
        Trees of LightGBM, in its text format.
    features
        The features that it reads, by name; see `graphret.ranker.features`.
    weight
        The weight of the node's former score, 0 … 1, added to the model's.
    depth
        How many nodes the model scores.
    inner
        The ranking that finds the nodes and ranks them first.
    metrics
        The measurements of training.
    """

    model: str = field(repr=False)
    features: tuple[str, ...] = field(repr=False)
    weight: float = 0.0
    depth: int = 150
    inner: Coverage = field(default_factory=Coverage)
    metrics: Mapping[str, Mapping[str, float]] = field(
        default_factory=dict, repr=False, compare=False
    )
    name: str = "trained"

    @property
    def alpha(self) -> float | None:
        """The share of BM25 of the inner ranking."""
        return self.inner.alpha

    def n_seeds(self, k: int) -> int:
        """How many seeds are needed for `k` hits."""
        return self.inner.n_seeds(k)

    def rank(self, frontier: Frontier, k: int) -> RankedNodes:
        """Rank the seeds and what they are linked to."""
        ranked, pairs, together = self.inner.cover(frontier)
        if not len(ranked.positions):
            return ranked
        columns = features_of(frontier, ranked, pairs, together, self.depth)
        rows = self.rows(columns)
        scores = self.scores(rows, columns["score"])
        order, n = np.argsort(-scores, kind="stable"), len(rows)
        below = ranked.scores[n:]
        lifted = scores[order] - scores.min() + below.max(initial=0)

        def explain(positions: NDArray[np.int64]) -> list[Evidence | None]:
            """Return the features that moved each node, and its place before."""
            place = {
                position: row
                for row, position in enumerate(ranked.positions[:n].tolist())
            }
            places = [place.get(position, -1) for position in positions.tolist()]
            contributions = self.booster.predict(
                rows[places], num_threads=1, pred_contrib=True
            )[:, :-1]
            return [
                self._evidence(node_contributions, row) if row >= 0 else None
                for node_contributions, row in zip(contributions, places, strict=True)
            ]

        return RankedNodes(
            np.concatenate([ranked.positions[:n][order], ranked.positions[n:]]),
            np.concatenate([lifted, below]).astype(np.float32),
            np.concatenate([ranked.via[:n][order], ranked.via[n:]]),
            ranked.details,
            explain,
        )

    def _evidence(self, contributions: NDArray[np.float64], place: int) -> Evidence:
        strongest = np.argsort(-np.abs(contributions), kind="stable")[:_FEATURES_SHOWN]
        moved = {
            self.features[feature]: round(float(contributions[feature]), 3)
            for feature in strongest.tolist()
            if contributions[feature]
        }
        return Evidence(
            "rank", rank=place + 1, retriever=self.inner.name, properties=moved
        )

    def scores(
        self, rows: NDArray[np.float64], before: NDArray[Any]
    ) -> NDArray[np.float64]:
        """Return the scores of nodes by their features and former scores, ``(n,)``."""
        return np.asarray(
            self.booster.predict(rows, num_threads=1) + self.weight * before
        )

    def rows(self, columns: Columns) -> NDArray[np.float64]:
        """Return features as the model reads them, ``(n, f)``."""
        unknown = np.full(len(columns["score"]), np.nan)
        return np.column_stack(
            [columns.get(name, unknown) for name in self.features]
        ).astype(np.float64)

    @cached_property
    def booster(self) -> Any:
        """The model."""
        try:
            import lightgbm
        except ImportError as error:
            raise MissingDependency(
                "lightgbm", "train", "a trained ranking", without="ranking 'coverage'"
            ) from error
        return lightgbm.Booster(model_str=self.model)

    def parts(self) -> Parts:
        """Return the ranking for saving."""
        fields = {
            name: value for name, value in asdict(self).items() if name != "model"
        }
        parts = Parts(meta=fields)
        parts.add_texts("model", TextArray.of([self.model]))
        return parts

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> LearnedRanking:
        """Open a saved ranking."""
        meta = bundle.meta | {
            "inner": Coverage(**bundle.meta["inner"]),
            "features": tuple(bundle.meta["features"]),
        }
        return cls(bundle.texts("model").tolist()[0], **meta)
