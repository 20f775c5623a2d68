"""`Linker`: from a mention to scored nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from graphret.contracts import Lock
from graphret.errors import InvalidInput
from graphret.linking.mentions import MentionSpan, find_mentions
from graphret.linking.names import (
    ALIAS,
    NAME,
    NameIndex,
    linkable_names,
    normal_form,
)
from graphret.nodes import NodeTable
from graphret.numeric import unique
from graphret.search.arrays import ArrayIndex, CombinedTable, table_of
from graphret.search.bm25 import BM25Index
from graphret.search.dense import DenseIndex
from graphret.search.encoder import as_encoder
from graphret.search.fields import ALIASES, NodeText
from graphret.search.index import require_k, top_k
from graphret.stores.base import GraphStore
from graphret.types import Node
from graphret.where import Where, WhereLike

#: GRASP, appendix A: (K, tau) for mentions that are names, and for those that describe.
RULES = {"name": (5, 0.95), "doc": (10, 0.90)}
#: The scores of nodes that a mention names: by name, by name once normalised, by
#: another name.
EXACT, NORMALISED, OTHER_NAME = 1.0, 0.99, 0.97
#: The highest score of a name that is only similar: by GRASP's rule a name that equals
#: the mention is then returned alone.
SIMILAR = 0.9
#: The share of words in the similarity of names where there is an encoder too.
WORDS = 0.5
_CANDIDATES = 50

#: Nodes that a mention may mean, in the order of their ids, their scores and how they
#: were found.
Candidates = tuple[list[Node], NDArray[np.float32], list[str]]


@dataclass(frozen=True, slots=True)
class LinkedNode:
    """A node that a mention may mean.

    Parameters
    ----------
    node
        The node.
    score
        How sure the link is, 0 to 1.
    how
        ``exact``, ``normalised``, ``alias``, ``short`` (its name without a bracket),
        ``similar`` or ``document``.
    """

    node: Node
    score: float
    how: str

    @property
    def id(self) -> str:
        """The node's id."""
        return self.node.id


class Linker(CombinedTable):
    """Finds the mentions in a question, and the nodes that a mention means.

    A node whose name is the mention scores 1; one whose name equals it once case,
    accents and punctuation are folded 0.99; one with the mention as an alias, or as its
    name without a bracket, 0.97. Any other scores 0.9 times the similarity of the
    mention to its name: the share of words in common, weighted by their rarity, and
    with an encoder the mean of that and the cosine. GRASP's rule (section 3.1, step 1,
    and appendix A) chooses the nodes to return.

    Parameters
    ----------
    names
        An index over names, ``NodeText.names()``; aliases come from the property that
        its text reads.
    dense
        An index over the same names by embedding.
    documents
        An index over whole documents, for ``mode="doc"``.
    """

    def __init__(
        self,
        names: BM25Index,
        *,
        dense: DenseIndex | None = None,
        documents: ArrayIndex | None = None,
    ) -> None:
        parts: dict[str, ArrayIndex | None] = {
            "names": names,
            "dense": dense,
            "documents": documents,
        }
        super().__init__(
            {name: part for name, part in parts.items() if part is not None}
        )
        # Built when first needed, and shared by the copies that searches take.
        self._name_index: list[NameIndex] = []
        self._lock = Lock()

    @classmethod
    def build(
        cls,
        nodes: NodeTable | Iterable[Node],
        *,
        encoder: Any = None,
        documents: NodeText | None = None,
        aliases: str = ALIASES,
        source: GraphStore | None = None,
    ) -> Self:
        """Make a linker of nodes.

        Parameters
        ----------
        encoder
            Embeds names, and documents if there are any; `None` links by words alone.
        documents
            How nodes become the documents of ``mode="doc"``; without it that mode is
            refused.
        aliases
            The property that holds a node's other names: one name or a list.
        source
            The store in which neighbours are looked up.
        """
        table = nodes if isinstance(nodes, NodeTable) else NodeTable.of(nodes)
        model, name_text = as_encoder(encoder), NodeText.names(aliases)

        def indexed(text: NodeText) -> ArrayIndex:
            if model is None:
                return BM25Index.build(table, text=text, source=source)
            return DenseIndex.build(table, model, text=text, source=source)

        return cls(
            BM25Index.build(table, text=name_text),
            dense=(
                None
                if model is None
                else DenseIndex.build(table, model, text=name_text)
            ),
            documents=None if documents is None else indexed(documents),
        )

    @classmethod
    def of_store(
        cls,
        store: GraphStore,
        *,
        labels: Collection[str] | None = None,
        encoder: Any = None,
        documents: NodeText | None = None,
        aliases: str = ALIASES,
    ) -> Self:
        """Make a linker of a store's nodes, or of those with one of `labels`.

        ``store.attach(index)`` keeps it in step; the other parameters are as for
        `build`.
        """
        index = cls.build(
            table_of(store, labels),
            encoder=encoder,
            documents=documents,
            aliases=aliases,
            source=store,
        )
        return index.limited_to(labels, need_texts=False)

    @classmethod
    def of_index(cls, documents: DenseIndex) -> Self:
        """Make a linker of the nodes that an index of embeddings now has.

        Its encoder embeds names, and descriptions are looked up in it.
        """
        documents = copy(documents)
        by_name = cls.build(documents.table, encoder=documents.encoder)
        return cls(by_name.names, dense=by_name.dense, documents=documents)

    @property
    def names(self) -> BM25Index:
        """The index over names."""
        return self.members["names"]  # type: ignore[return-value]

    @property
    def dense(self) -> DenseIndex | None:
        """The index over embedded names, if there is one."""
        return self.members.get("dense")  # type: ignore[return-value]

    @property
    def documents(self) -> ArrayIndex | None:
        """The index over documents, if there is one."""
        return self.members.get("documents")

    @property
    def aliases(self) -> str:
        """The property that holds a node's other names."""
        return self.names.text.aliases

    @property
    def name_index(self) -> NameIndex:
        """The names of the nodes."""
        with self._lock:
            if not self._name_index:
                table = self.table
                aliases = (
                    properties.get(self.aliases) for properties in table.properties
                )
                self._name_index.append(
                    NameIndex(
                        zip(table.ids, table.names, aliases, strict=True),
                        aliases=self.aliases,
                    )
                )
            return self._name_index[0]

    # -- linking

    def link(
        self,
        mention: str,
        *,
        mode: str = "name",
        k: int | None = None,
        tau: float | None = None,
        labels: Collection[str] | None = None,
        where: WhereLike = None,
    ) -> list[LinkedNode]:
        """Return the nodes that a mention may mean: the best first, ties by id.

        Nodes with nothing in common with the mention are not returned, so there may be
        none.

        Parameters
        ----------
        mode
            ``name`` for a short name ("Sony"), ``doc`` for a description ("headphones
            with long battery life").
        k, tau
            At most `k` nodes, which score at least `tau` times the best: (5, 0.95) for
            names, (10, 0.90) for descriptions (GRASP, appendix A).
        labels, where
            Only nodes with one of the labels that satisfy the condition.

        Raises
        ------
        InvalidInput
            On another mode, a mention that is not a string, or ``doc`` without an index
            of documents.
        """
        if mode not in RULES:
            raise InvalidInput(f"mode: expected 'name' or 'doc', got {mode!r}")
        if not isinstance(mention, str):
            raise InvalidInput(
                f"mention: expected a string, got {type(mention).__name__}"
            )
        k, tau = (
            require_k(RULES[mode][0] if k is None else k),
            RULES[mode][1] if tau is None else tau,
        )
        if not 0 <= tau <= 1:
            raise InvalidInput(f"tau: expected a number from 0 to 1, got {tau!r}")
        name_index, state = self.name_index, copy(self)
        mask = state.table.mask(Where.parse(where), labels)
        nodes, scores, hows = (
            state._candidates_by_name(mention, k, mask, name_index)
            if mode == "name"
            else state._candidates_by_description(mention, k, mask)
        )
        best = top_k(scores, k)
        best = best[
            (scores[best] > 0) & (scores[best] >= tau * scores.max(initial=0.0))
        ]
        return [LinkedNode(nodes[i], float(scores[i]), hows[i]) for i in best.tolist()]

    def _candidates_by_name(
        self,
        mention: str,
        k: int,
        mask: NDArray[np.bool_] | None,
        name_index: NameIndex,
    ) -> Candidates:
        n = max(_CANDIDATES, k)
        exact = self._positions(name_index.nodes_by_name(mention), mask)
        near = (
            [self.names.top(mention, n, mask)]
            if len(self.names.term_ids(mention))
            else []
        )
        if self.dense is not None and len(self.table):
            near.append(self.dense.top(mention, n, mask))
        positions = unique(exact, *near)
        nodes = self.table.at(positions)
        similarity = self._word_overlap(mention, nodes)
        if self.dense is not None and len(positions):
            cosines = np.clip(self.dense.score_at(mention, positions), 0.0, 1.0)
            similarity = np.asarray(
                WORDS * similarity + (1.0 - WORDS) * cosines, dtype=np.float32
            )
        scores, hows = SIMILAR * similarity, ["similar"] * len(nodes)
        for i in np.flatnonzero(np.isin(positions, exact)).tolist():
            scores[i], hows[i] = _score_of_name(mention, nodes[i], self.aliases)
        return nodes, scores, hows

    def _word_overlap(self, mention: str, nodes: Sequence[Node]) -> NDArray[np.float32]:
        """Return Dice's coefficient of mention and names, words by rarity, ``(n,)``.

        ``2 · Σ idf(common) / (Σ idf(mention) + Σ idf(name))`` (Dice 1945), the highest
        over the names of a node; 0 to 1.
        """
        names, positions, idf = (
            self.names,
            self.names.terms.positions,
            self.names.weights.idf,
        )
        unseen = float(np.log1p((len(self.table) + 0.5) / 0.5))

        def weighted(text: str) -> dict[str, float]:
            return {
                term: float(idf[positions[term]]) if term in positions else unseen
                for term in names.analyzer(text)
            }

        in_mention = weighted(mention)
        total = sum(in_mention.values())

        def dice(name: str) -> float:
            in_name = weighted(name)
            common = sum(
                weight for term, weight in in_name.items() if term in in_mention
            )
            return 2.0 * common / (total + sum(in_name.values())) if common else 0.0

        best = [
            max(dice(name) for _, name in linkable_names(node, self.aliases))
            for node in nodes
        ]
        return np.asarray(best, dtype=np.float32)

    def _candidates_by_description(
        self, mention: str, k: int, mask: NDArray[np.bool_] | None
    ) -> Candidates:
        documents = self.documents
        if documents is None:
            raise InvalidInput("mode: the linker has no index of documents")
        positions, scores = documents.ranked(mention, k, mask)
        if (ceiling := documents.ceiling(mention)) is not None:
            scores = scores / max(ceiling, 1e-9)
        order = np.argsort(positions)
        nodes = self.table.at(positions[order])
        return (
            nodes,
            np.clip(scores[order], 0.0, 1.0).astype(np.float32),
            ["document"] * len(order),
        )

    def find_mentions(
        self,
        question: str,
        *,
        labels: Collection[str] | None = None,
        where: WhereLike = None,
    ) -> list[MentionSpan]:
        """Return the known names in a question with their nodes; see `find_mentions`.

        Only nodes with one of `labels` that satisfy `where` count.
        """
        if not isinstance(question, str):
            raise InvalidInput(
                f"question: expected a string, got {type(question).__name__}"
            )
        name_index, state = self.name_index, copy(self)
        mask = state.table.mask(Where.parse(where), labels)

        def keep(ids: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(state.table.ids.take(state._positions(ids, mask)))

        def forms(ids: tuple[str, ...]) -> list[list[str]]:
            positions = state.table.find(ids)
            present = positions[positions >= 0]  # the index may have newer nodes
            # Nodes of one name, such as thousands of chapters, cannot be told apart.
            if len(set(state.table.names.take(present))) < 2:
                return [[]] * len(ids)
            nodes = iter(state.table.at(present))
            return [
                (
                    [form for _, form in linkable_names(next(nodes), state.aliases)]
                    if position >= 0
                    else []
                )
                for position in positions
            ]

        return find_mentions(
            question, name_index, None if mask is None else keep, forms
        )

    def _positions(
        self, ids: Sequence[str], mask: NDArray[np.bool_] | None
    ) -> NDArray[np.int64]:
        positions = self.table.find(ids)
        positions = positions[positions >= 0]
        return positions if mask is None else positions[mask[positions]]

    # -- change

    def staged(
        self,
        upserts: Sequence[Node],
        deletes: Collection[str],
        source: GraphStore | None = None,
    ) -> Callable[[], None]:
        adopt_indexes = super().staged(upserts, deletes, source)
        ids = list({*(node.id for node in upserts), *deletes})

        def adopt() -> None:
            with self._lock:
                old = (
                    self.table.at(self._positions(ids, None))
                    if self._name_index
                    else []
                )
                adopt_indexes()
                if self._name_index:
                    self._name_index[0].change(
                        old, self.table.at(self._positions(ids, None))
                    )

        return adopt

    def induced(self, table: NodeTable, positions: NDArray[np.int64]) -> Self:
        cut = super().induced(table, positions)
        cut._name_index = []
        return cut


def _score_of_name(mention: str, node: Node, aliases: str) -> tuple[float, str]:
    """Return the score of a node that a mention names, and how it is named."""
    if node.name.strip() == mention.strip():
        return EXACT, "exact"
    mention_form = normal_form(mention)
    kinds = [
        kind
        for kind, variant in linkable_names(node, aliases)
        if normal_form(variant) == mention_form
    ]
    if NAME in kinds:
        return NORMALISED, "normalised"
    return OTHER_NAME, "alias" if ALIAS in kinds else "short"
