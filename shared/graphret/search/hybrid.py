"""The scores of several indexes in one: lexical and dense, and over several fields."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput
from graphret.nodes import NodeTable
from graphret.search.arrays import ArrayIndex, CombinedTable, table_of
from graphret.search.bm25 import BM25Index
from graphret.search.dense import DenseIndex
from graphret.search.encoder import as_encoder
from graphret.search.fields import NodeText
from graphret.search.index import min_max, top_k
from graphret.search.vectors import Floats
from graphret.stores.base import GraphStore
from graphret.types import Node

#: The weight of each field, or of one scorer of a field as ``field/bm25`` or
#: ``field/dense``; or what gives them for a query.
Weights: TypeAlias = Mapping[str, float] | Callable[[str], Mapping[str, float]]

#: The share of BM25 beside cosines (SAGE, appendix E).
DEFAULT_ALPHA = 0.6
# The place of a ranking that its first one is compared with.
_LEAD_OVER = 20


class CombinedIndex(CombinedTable, ArrayIndex):
    """A weighted sum of its members' scores, each scaled to 0 … 1 over the index.

    A subclass gives `shares`.
    """

    def __init__(self, members: Mapping[str, ArrayIndex]) -> None:
        CombinedTable.__init__(self, members)
        ArrayIndex.__init__(self, self.table)

    def shares(self, query: str) -> dict[str, float]:
        """Return the weight of each member, in sum 1."""
        raise NotImplementedError

    def scores(self, query: str) -> NDArray[np.float32]:
        if (
            self._table is not self.table
        ):  # it has other members, or one was changed by itself
            self._table = self.table
            self.forget()
        return super().scores(query)

    def _scores(self, query: str) -> NDArray[np.float32]:
        parts = []
        for name, share in self.shares(query).items():
            if share:
                member = self.members[name]
                scaled = min_max(member.scores(query), member.least)
                parts.append(scaled if share == 1 else np.float32(share) * scaled)
        return sum(parts[1:], start=parts[0])


class HybridIndex(CombinedIndex):
    """The score ``alpha · BM25 + (1 − alpha) · cosine``, each scaled to 0 … 1.

    Both are scaled over the index. SAGE (appendix E) weighs them 0.6 and 0.4.

    Parameters
    ----------
    lexical, dense
        Indexes of the same nodes; without a dense one the score is the scaled BM25.
    alpha
        Share of BM25; `None` to choose it for each question by how far each of the two
        tells its best node from the others (see `share_of_words`).
    dense_quality
        What embeddings are worth against words: 1 for the same, less for an encoder
        that does not know the corpus.
    """

    def __init__(
        self,
        lexical: BM25Index,
        dense: DenseIndex | None = None,
        *,
        alpha: float | None = None,
        dense_quality: float = 1.0,
    ) -> None:
        super().__init__(
            {"lexical": lexical}
            if dense is None
            else {"lexical": lexical, "dense": dense}
        )
        if alpha is not None and not 0 <= alpha <= 1:
            raise InvalidInput(
                f"alpha: expected a number from 0 to 1 or None, got {alpha!r}"
            )
        self.alpha = alpha
        self.dense_quality = dense_quality

    def dense_part(self) -> DenseIndex | None:
        return self.dense

    @classmethod
    def build(
        cls,
        nodes: NodeTable | Iterable[Node],
        encoder: Any = None,
        *,
        text: NodeText | None = None,
        alpha: float | None = None,
        source: GraphStore | None = None,
    ) -> Self:
        """Index nodes by their words and, with an encoder, by their embeddings.

        The other arguments are those of `BM25Index.build`.
        """
        lexical, model = (
            BM25Index.build(nodes, text=text, source=source),
            as_encoder(encoder),
        )
        dense = (
            None
            if model is None
            else DenseIndex.build(lexical.table, model, text=text, source=source)
        )
        return cls(lexical, dense, alpha=alpha)

    @classmethod
    def of_store(
        cls,
        store: GraphStore,
        encoder: Any = None,
        *,
        labels: Collection[str] | None = None,
        text: NodeText | None = None,
        alpha: float | None = None,
    ) -> Self:
        """Make it of a store's nodes, or those that bear one of `labels`.

        ``store.attach(index)`` keeps it in step; the rest is as for `build`.
        """
        index = cls.build(
            table_of(store, labels),
            encoder,
            text=text,
            alpha=alpha,
            source=store,
        )
        return index.limited_to(labels)

    def with_query(self, query: str, vector: Floats) -> HybridIndex:
        """Return this index with an embedding given for a query.

        The index itself does not learn of it.
        """
        dense = self.dense.with_query(query, vector) if self.dense else None
        return HybridIndex(
            self.lexical, dense, alpha=self.alpha, dense_quality=self.dense_quality
        )

    @property
    def lexical(self) -> BM25Index:
        """The index of words."""
        return self.members["lexical"]  # type: ignore[return-value]

    @property
    def dense(self) -> DenseIndex | None:
        """The index of embeddings, if there is one."""
        return self.members.get("dense")  # type: ignore[return-value]

    def share_of_words(self, query: str) -> float:
        """Return the share of BM25 in the score of a query.

        It is 1 without a dense index, else `alpha` where that is set, else chosen by
        the query as ``w / (w + q · m)``. w is how far the best node by words is above
        the 20th, as a share of the highest score that a node could have; m the same of
        the cosines; q is `dense_quality`. Whichever of the two tells its best nodes
        from the rest counts more.
        """
        if self.dense is None:
            return 1.0
        if self.alpha is not None:
            return self.alpha
        words = _lead(self.lexical.scores(query)) / max(
            self.lexical.ceiling(query), 1e-9
        )
        meaning = self.dense_quality * _lead(self.dense.scores(query))
        return words / (words + meaning) if words + meaning > 0 else DEFAULT_ALPHA

    def shares(self, query: str) -> dict[str, float]:
        """Return the share of words, and what it leaves for the cosine."""
        words = self.share_of_words(query)
        return {
            name: words if name == "lexical" else 1.0 - words for name in self.members
        }

    def dense_scores_at(
        self, query: str, positions: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Return the cosines of nodes scaled to 0 … 1 over the index, ``(p,)``.

        Without a dense index they are zeros.
        """
        if self.dense is None:
            return np.zeros(len(positions), dtype=np.float32)
        return min_max(self.dense.scores(query), at=positions)

    def confidence(self, query: str, positions: NDArray[np.int64]) -> float:
        """Return how well nodes answer together, 0 … 1.

        It is the share of the query's words that they say together and their best
        cosine, mixed as in the score.
        """
        near = self.dense.confidence(query, positions) if self.dense else 0.0
        said = self.lexical.confidence(query, positions)
        words = self.share_of_words(query)
        return words * said + (1.0 - words) * near


def _lead(scores: NDArray[np.float32]) -> float:
    """Return how far the best score is above the 20th best.

    Of fewer scores it is the distance to the lowest.
    """
    if not len(scores):
        return 0.0
    best = top_k(scores, _LEAD_OVER)
    return float(scores[best[0]] - scores[best[-1]])


class FieldIndex(CombinedIndex):
    """A weighted mean of scores over fields, lexical and dense, as in mFAR.

    The method is that of Li et al. (2025); GRASP fuses with it.

    ``score = Σ weight · s / Σ weight`` over the scorers, where s is a scorer's score
    scaled to 0 … 1 over the index.

    Parameters
    ----------
    scorers
        Indexes of the same table of nodes, by ``field/bm25`` or ``field/dense``.
    weights
        The weight of each scorer, of a field (both its scorers) or of what is in
        neither (1); or a function of the query that gives them.
    """

    def __init__(
        self, scorers: Mapping[str, ArrayIndex], weights: Weights | None = None
    ) -> None:
        if not scorers:
            raise InvalidInput("fields: at least one is needed")
        super().__init__(scorers)
        self.weights: Weights = {} if weights is None else weights
        if not callable(self.weights):
            self.shares("")

    @classmethod
    def build(
        cls,
        nodes: NodeTable | Iterable[Node],
        fields: Mapping[str, NodeText] | None = None,
        *,
        encoder: Any = None,
        weights: Weights | None = None,
        source: GraphStore | None = None,
    ) -> Self:
        """Index nodes by field.

        Parameters
        ----------
        fields
            What each field reads, such as ``{"name": NodeText.names(), "brand":
            NodeText.one_field("brand"), "directed_by":
            NodeText.relation("directed_by")}``; by default names and texts.
        encoder
            Gives each field a dense scorer besides; `None` for none.
        source
            The store in which neighbours are looked up.
        """
        table = nodes if isinstance(nodes, NodeTable) else NodeTable.of(nodes)
        read = (
            {"name": NodeText.names(), "text": NodeText.one_field("body")}
            if fields is None
            else fields
        )
        model = as_encoder(encoder)
        scorers: dict[str, ArrayIndex] = {}
        for name, text in read.items():
            scorers[f"{name}/bm25"] = BM25Index.build(table, text=text, source=source)
            if model is not None:
                scorers[f"{name}/dense"] = DenseIndex.build(
                    table, model, text=text, source=source
                )
        return cls(scorers, weights)

    @classmethod
    def of_store(
        cls,
        store: GraphStore,
        fields: Mapping[str, NodeText] | None = None,
        *,
        labels: Collection[str] | None = None,
        encoder: Any = None,
        weights: Weights | None = None,
    ) -> Self:
        """Make it of a store's nodes, or those that bear one of `labels`.

        ``store.attach(index)`` keeps it in step; the rest is as for `build`.
        """
        index = cls.build(
            table_of(store, labels),
            fields,
            encoder=encoder,
            weights=weights,
            source=store,
        )
        return index.limited_to(labels)

    def shares(self, query: str) -> dict[str, float]:
        given = self.weights(query) if callable(self.weights) else self.weights
        field_of = {name: name.rpartition("/")[0] for name in self.members}
        unknown = given.keys() - {*field_of, *field_of.values()}
        weights = [
            given.get(name, given.get(field, 1.0)) for name, field in field_of.items()
        ]
        total = sum(weights)
        if unknown or min(weights) < 0 or not 0 < total < np.inf:
            raise InvalidInput(
                "weights: expected numbers of at least 0, not all of them 0, for"
                f" some of {', '.join(field_of)} or for whole fields, got {dict(given)}"
            )
        return {
            name: weight / total for name, weight in zip(field_of, weights, strict=True)
        }
