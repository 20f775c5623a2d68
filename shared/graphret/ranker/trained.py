"""`Trained`: coverage's ranking, put in order by a model that learned of questions and
answers.
"""

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

_TOLD = 3


@dataclass(frozen=True)
class LearnedRanking:
    """The first nodes of another ranking in the order of a model; those below stay as
    they are.

    ``graphret train ranking`` makes it and `SageGraph.save` keeps it; the model is
    LightGBM's text.

    Parameters
    ----------
    model
        Trees of LightGBM, as it writes them.
    features
        What it reads of a node, by name; see `graphret.ranker.features`.
    weight
        Of the score that the node had, 0 … 1, beside what the model says.
    depth
        How many nodes the model sees.
    inner
        What finds the nodes, and ranks them first.
    metrics
        What training measured.
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
        """As the ranking below has it."""
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
        rest = ranked.scores[n:]
        lifted = scores[order] - scores.min() + rest.max(initial=0)

        def explain(positions: NDArray[np.int64]) -> list[Evidence | None]:
            """Say which features moved each node, and its place before that."""
            place = {
                position: row
                for row, position in enumerate(ranked.positions[:n].tolist())
            }
            here = [place.get(position, -1) for position in positions.tolist()]
            shares = self.booster.predict(rows[here], num_threads=1, pred_contrib=True)[
                :, :-1
            ]
            return [
                self._said(one, row) if row >= 0 else None
                for one, row in zip(shares, here, strict=True)
            ]

        return RankedNodes(
            np.concatenate([ranked.positions[:n][order], ranked.positions[n:]]),
            np.concatenate([lifted, rest]).astype(np.float32),
            np.concatenate([ranked.via[:n][order], ranked.via[n:]]),
            ranked.details,
            explain,
        )

    def _said(self, shares: NDArray[np.float64], place: int) -> Evidence:
        most = np.argsort(-np.abs(shares), kind="stable")[:_TOLD].tolist()
        moved = {
            self.features[one]: round(float(shares[one]), 3)
            for one in most
            if shares[one]
        }
        return Evidence(
            "rank", rank=place + 1, retriever=self.inner.name, properties=moved
        )

    def scores(
        self, rows: NDArray[np.float64], before: NDArray[Any]
    ) -> NDArray[np.float64]:
        """Return the scores of nodes by their features and the scores that they had,
        ``(n,)``.
        """
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
        """The ranking as it is saved."""
        given = {name: value for name, value in asdict(self).items() if name != "model"}
        parts = Parts(meta=given)
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
