"""`Linker`: a mention becomes scored nodes."""

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
from graphret.linking.names import ALIAS, NAME, NameIndex, node_names, normal_form
from graphret.nodes import NodeTable
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
#: The scores of nodes that are called just what a mention says: by name, by name once
#: normalised, by another name.
EXACT, NORMALISED, OTHER_NAME = 1.0, 0.99, 0.97
#: The highest score of a name that is only like a mention: a name that equals it stays
#: alone by GRASP's rule.
SIMILAR = 0.9
#: The share of the words in the likeness of names where there is an encoder too.
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
        How sure that is, 0 to 1.
    how
        ``exact``, ``normalised``, ``alias``, ``short`` (its name but for a bracket),
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
    """Finds the nodes that a mention means, by their names or by what they say, and the
    mentions in a question.

    A node whose name is the mention scores 1; one whose name is so once case, accents
    and punctuation are folded 0.99; one that has it as an alias, or as its name but for
    a bracket, 0.97. Any other scores 0.9 times the likeness of the mention to its name:
    the share of words in common, weighed by their rarity, and with an encoder the mean
    of that and the cosine. What comes back is chosen by GRASP's rule (section 3.1, step
    1, and appendix A).

    Parameters
    ----------
    names
        An index over names, ``NodeText.names()``; aliases are read from the property
        that its text reads them from.
    dense
        The same by embedding.
    documents
        An index over whole documents, which ``mode="doc"`` asks.
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
        self._name_index: list[
            NameIndex
            # Built when first asked for, and shared by the copies that searches take.
        ] = []
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
            Embeds names, and documents where they are asked for; `None` does without.
        documents
            How nodes become the documents of ``mode="doc"``; without it that mode is
            refused.
        aliases
            The property that holds what else a node is called, a name or a list of
            names.
        source
            The store in which neighbours are looked up.
        """
        table = nodes if isinstance(nodes, NodeTable) else NodeTable.of(nodes)
        model, called = as_encoder(encoder), NodeText.names(aliases)

        def indexed(text: NodeText) -> ArrayIndex:
            if model is None:
                return BM25Index.build(table, text=text, source=source)
            return DenseIndex.build(table, model, text=text, source=source)

        return cls(
            BM25Index.build(table, text=called),
            dense=(
                None if model is None else DenseIndex.build(table, model, text=called)
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
        """Make it of a store's nodes, or those that bear one of `labels`.

        ``store.attach(index)`` keeps it in step; the rest is as for `build`.
        """
        index = cls.build(
            table_of(store, labels),
            encoder=encoder,
            documents=documents,
            aliases=aliases,
            source=store,
        )
        return index.limited_to(labels, need_texts=False)

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
        """The property that holds what else a node is called."""
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

        Nodes that have nothing in common with the mention do not come back, so that
        there may be none.

        Parameters
        ----------
        mode
            ``name`` for a short name ("Sony"), ``doc`` for a description ("headphones
            with long battery life").
        k, tau
            At most so many nodes, which score at least `tau` times the best: (5, 0.95)
            for names, (10, 0.90) for descriptions (GRASP, appendix A).
        labels, where
            Only nodes that bear one of the labels and satisfy the condition.

        Raises
        ------
        InvalidInput
            On another mode, a mention that is not a string, or ``doc`` where there is
            no index of documents.
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
        found = (
            state._named(mention, k, mask, name_index)
            if mode == "name"
            else state._described(mention, k, mask)
        )
        nodes, scores, hows = found
        best = top_k(scores, k)
        best = best[
            (scores[best] > 0) & (scores[best] >= tau * scores.max(initial=0.0))
        ]
        return [LinkedNode(nodes[i], float(scores[i]), hows[i]) for i in best.tolist()]

    def _named(
        self,
        mention: str,
        k: int,
        mask: NDArray[np.bool_] | None,
        name_index: NameIndex,
    ) -> Candidates:
        n = max(_CANDIDATES, k)
        called = self._positions(name_index.nodes_by_name(mention), mask)
        near = (
            [self.names.top(mention, n, mask)]
            if len(self.names.term_ids(mention))
            else []
        )
        if self.dense is not None and len(self.table):
            near.append(self.dense.top(mention, n, mask))
        positions = np.unique(np.concatenate([called, *near]))
        nodes = self.table.at(positions)
        likeness = self._common_words(mention, nodes)
        if self.dense is not None and len(positions):
            cosines = np.clip(self.dense.score_at(mention, positions), 0.0, 1.0)
            likeness = np.asarray(
                WORDS * likeness + (1.0 - WORDS) * cosines, dtype=np.float32
            )
        scores, hows = SIMILAR * likeness, ["similar"] * len(nodes)
        for i in np.flatnonzero(np.isin(positions, called)).tolist():
            scores[i], hows[i] = _called(mention, nodes[i], self.aliases)
        return nodes, scores, hows

    def _common_words(self, mention: str, nodes: Sequence[Node]) -> NDArray[np.float32]:
        """Dice's coefficient of two sets of words (Dice 1945), each word weighed by its
        rarity among names, ``(n,)``.

        ``2 · Σ idf(common) / (Σ idf(mention) + Σ idf(name))``, the highest over what a
        node is called; 0 to 1.
        """
        names, positions, idf = (
            self.names,
            self.names.terms.positions,
            self.names.weights.idf,
        )
        unseen = float(np.log1p((len(self.table) + 0.5) / 0.5))

        def weighed(text: str) -> dict[str, float]:
            return {
                term: float(idf[positions[term]]) if term in positions else unseen
                for term in names.analyzer(text)
            }

        asked = weighed(mention)
        total = sum(asked.values())

        def dice(name: str) -> float:
            own = weighed(name)
            common = sum(weight for term, weight in own.items() if term in asked)
            return 2.0 * common / (total + sum(own.values())) if common else 0.0

        best = [
            max(dice(name) for _, name in node_names(node, self.aliases))
            for node in nodes
        ]
        return np.asarray(best, dtype=np.float32)

    def _described(
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
        """Return the known names in a question with the nodes that bear them; see
        `graphret.linking.mentions.find_mentions`.

        Only nodes that bear one of `labels` and satisfy `where` count.
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
            found = state.table.find(ids)
            there = found[found >= 0]  # the index may know of later ones
            if (
                len(set(state.table.names.take(there))) < 2
            ):  # such as thousands of chapters: nothing tells them apart
                return [[]] * len(ids)
            nodes = iter(state.table.at(there))
            return [
                (
                    [form for _, form in node_names(next(nodes), state.aliases)]
                    if i >= 0
                    else []
                )
                for i in found
            ]

        return find_mentions(
            question, name_index, None if mask is None else keep, forms
        )

    def _positions(
        self, ids: Sequence[str], mask: NDArray[np.bool_] | None
    ) -> NDArray[np.int64]:
        found = self.table.find(ids)
        found = found[found >= 0]
        return found if mask is None else found[mask[found]]

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


def _called(mention: str, node: Node, aliases: str) -> tuple[float, str]:
    """The score of a node that bears a name, and how."""
    if node.name.strip() == mention.strip():
        return EXACT, "exact"
    wanted = normal_form(mention)
    kinds = [
        kind
        for kind, variant in node_names(node, aliases)
        if normal_form(variant) == wanted
    ]
    if NAME in kinds:
        return NORMALISED, "normalised"
    return OTHER_NAME, "alias" if ALIAS in kinds else "short"
