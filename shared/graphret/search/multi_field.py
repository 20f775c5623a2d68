"""Search over several fields, each with a weight that the query may decide."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput
from graphret.nodes import NodeTable
from graphret.search.bm25 import BM25Index
from graphret.search.dense import DenseIndex
from graphret.search.encoder import as_encoder
from graphret.search.fields import NodeSource, NodeText
from graphret.search.index import ArrayIndex, CombinedIndex, min_max, table_of

#: The weight of each field, or of one scorer of a field as ``field/bm25`` or ``field/dense``; or what gives them for a
#: query.
Weights: TypeAlias = Mapping[str, float] | Callable[[str], Mapping[str, float]]

BM25, DENSE = "bm25", "dense"


class FieldIndex(CombinedIndex):
    """A weighted mean of scores over fields, lexical and dense, as in mFAR (Li et al. 2025), which GRASP fuses with.

    ``score = Σ weight · s / Σ weight`` over the scorers, where s is a scorer's score scaled to 0 … 1 over the index.

    Parameters
    ----------
    scorers
        Indexes of the same table of nodes, by ``field/bm25`` or ``field/dense``.
    weights
        The weight of each scorer, of a field (both its scorers) or of what is in neither (1); or a function of the
        query that gives them.
    """

    def __init__(self, scorers: Mapping[str, ArrayIndex], weights: Weights | None = None) -> None:
        if not scorers:
            raise InvalidInput("fields: at least one is needed")
        super().__init__(scorers)
        self.weights: Weights = {} if weights is None else weights
        if not callable(self.weights):
            self._shares("")

    @classmethod
    def build(
        cls,
        nodes: NodeTable | Sequence[Any],
        fields: Mapping[str, NodeText] | None = None,
        *,
        encoder: Any = None,
        lexical: bool = True,
        weights: Weights | None = None,
    ) -> FieldIndex:
        """Index nodes by field.

        Parameters
        ----------
        fields
            What each field reads, such as ``{"name": NodeText.names(), "brand": NodeText.one_field("brand"),
            "directed_by": NodeText.relation("directed_by")}``; by default names and texts.
        encoder
            Gives each field a dense scorer besides; `None` for none.
        lexical
            Whether each field has a BM25 scorer.
        """
        table = nodes if isinstance(nodes, NodeTable) else NodeTable.of(nodes)
        read = {"name": NodeText.names(), "text": NodeText.one_field("body")} if fields is None else fields
        model = as_encoder(encoder)
        scorers: dict[str, ArrayIndex] = {}
        for name, text in read.items():
            if "/" in name:
                raise InvalidInput(f"fields: {name!r} holds a '/', which parts the field from its scorer")
            if lexical:
                scorers[f"{name}/{BM25}"] = BM25Index.build(table, text=text)
            if model is not None:
                scorers[f"{name}/{DENSE}"] = DenseIndex.build(table, model, text=text)
        return cls(scorers, weights)

    @classmethod
    def of_store(
        cls,
        store: NodeSource,
        fields: Mapping[str, NodeText] | None = None,
        *,
        labels: Collection[str] | None = None,
        **options: Any,
    ) -> FieldIndex:
        """Index the nodes of a store by field, or those that bear one of `labels`; `options` as for `build`."""
        bound = None if fields is None else {name: text.bound(store) for name, text in fields.items()}
        index = cls.build(table_of(store, labels), bound, **options)
        index.scope = None if labels is None else frozenset(labels)
        return index

    @property
    def fields(self) -> list[str]:
        """The names of the fields, in order."""
        return list(dict.fromkeys(name.split("/")[0] for name in self.members))

    def _shares(self, query: str) -> dict[str, float]:
        """The weight of each scorer, in sum 1."""
        given = self.weights(query) if callable(self.weights) else self.weights
        for name, weight in given.items():
            if name not in self.members and name not in self.fields:
                raise InvalidInput(f"weights: there is no field {name!r}; known are {', '.join(self.members)}")
            if isinstance(weight, bool) or not np.isfinite(weight) or weight < 0:
                raise InvalidInput(f"weights: {name!r} needs a number of at least 0, not {weight!r}")
        shares = {name: float(given.get(name, given.get(name.split("/")[0], 1.0))) for name in self.members}
        total = sum(shares.values())
        if total <= 0:
            raise InvalidInput("weights: all are 0")
        return {name: share / total for name, share in shares.items()}

    def _scores(self, query: str) -> NDArray[np.float32]:
        total = np.zeros(len(self.table), dtype=np.float32)
        for name, share in self._shares(query).items():
            if share:
                total += np.float32(share) * min_max(self.members[name].scores(query))
        return total

    def weighted(self, weights: Weights) -> FieldIndex:
        """Return this index with other weights, as for one search; an `InvalidInput` says what is wrong with them."""
        state = copy(self)
        FieldIndex.__init__(state, state.members, weights)
        return state
