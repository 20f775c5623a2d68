"""`Linker`: a mention becomes scored nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput
from graphret.linking.candidates import DOC, NAME, Linked, LinkRule, NameSimilarity, kept
from graphret.linking.mentions import Spot, spot
from graphret.linking.names import ALIAS, OWN, NameBook, normal_form, variants_of
from graphret.nodes import NodeTable
from graphret.search.bm25 import BM25Index
from graphret.search.dense import DenseIndex
from graphret.search.encoder import as_encoder
from graphret.search.fields import ALIASES, NodeSource, NodeText
from graphret.search.index import ArrayIndex, require_queries, table_of
from graphret.types import Node
from graphret.where import Where, WhereLike

#: The scores of nodes that are called just what a mention says: by name, by name once normalised, by another name.
EXACT, NORMALISED, OTHER_NAME = 1.0, 0.99, 0.97
#: The highest score of a name that is only like a mention: a name that equals it stays alone by GRASP's rule.
SIMILAR = 0.9
_CANDIDATES = 50


class Linker:
    """Finds the nodes that a mention means, by their names or by what they say, and the mentions in a question.

    A node whose name is the mention scores 1; one whose name is so once case, accents and punctuation are folded 0.99;
    one that has it as an alias, or as its name but for a bracket, 0.97. Any other scores 0.9 times the likeness of the
    mention to its name: the share of words in common, weighed by their rarity, and with an encoder `alpha` times that
    and ``1 − alpha`` times the cosine. What comes back is chosen by GRASP's rule (section 3.1, step 1, and appendix A).

    Parameters
    ----------
    names
        An index over names, ``NodeText.names()``; aliases are read from the property that its text reads them from.
    dense
        The same by embedding.
    documents
        An index over whole documents, which ``mode="doc"`` asks.
    alpha
        Share of the words in the likeness where there is a dense index.
    rules
        The rule of each mode; GRASP's by default.
    """

    def __init__(
        self,
        names: BM25Index,
        *,
        dense: DenseIndex | None = None,
        documents: ArrayIndex | None = None,
        alpha: float = 0.5,
        rules: Mapping[str, LinkRule] | None = None,
    ) -> None:
        if not 0 <= alpha <= 1:
            raise InvalidInput(f"alpha: a number from 0 to 1 is expected, not {alpha!r}")
        parts = [part for part in (dense, documents) if part is not None]
        if any(part.table.ids is not names.table.ids for part in parts):
            raise InvalidInput("names, dense and documents must be indexes of one table of nodes")
        self.names = names
        self.dense = dense
        self.documents = documents
        self.alpha = alpha
        self.rules = {"name": NAME, "doc": DOC} | dict(rules or {})
        self._similarity = NameSimilarity(names)
        self._book: list[NameBook] = []  # built when first asked for

    @classmethod
    def build(
        cls,
        nodes: NodeTable | Iterable[Node],
        *,
        encoder: Any = None,
        documents: NodeText | None = None,
        aliases: str = ALIASES,
        **settings: Any,
    ) -> Linker:
        """Make a linker of nodes.

        Parameters
        ----------
        encoder
            Embeds names, and documents where they are asked for; `None` does without.
        documents
            How nodes become the documents of ``mode="doc"``; without it that mode is refused.
        aliases
            The property that holds what else a node is called, a name or a list of names.
        settings
            `alpha` and `rules`.
        """
        table = nodes if isinstance(nodes, NodeTable) else NodeTable.of(nodes)
        model = as_encoder(encoder)

        def indexed(text: NodeText) -> ArrayIndex:
            return BM25Index.build(table, text=text) if model is None else DenseIndex.build(table, model, text=text)

        names = NodeText.names(aliases)
        return cls(
            BM25Index.build(table, text=names),
            dense=None if model is None else DenseIndex.build(table, model, text=names),
            documents=None if documents is None else indexed(documents),
            **settings,
        )

    @classmethod
    def of_store(
        cls,
        store: NodeSource,
        *,
        labels: Collection[str] | None = None,
        encoder: Any = None,
        documents: NodeText | None = None,
        **settings: Any,
    ) -> Linker:
        """Make a linker of a store's nodes, or of those that bear one of `labels`; see `build`.

        ``store.attach(linker)`` then keeps it in step with the store.
        """
        bound = None if documents is None else documents.bound(store)
        linker = cls.build(table_of(store, labels), encoder=encoder, documents=bound, **settings)
        for part in linker._parts():
            part.scope = None if labels is None else frozenset(labels)
        return linker

    @property
    def table(self) -> NodeTable:
        """The nodes."""
        return self.names.table

    @property
    def restriction(self) -> Where | None:
        """The condition of the view that this is; `None` where it is none."""
        return self.table.restriction

    @property
    def aliases(self) -> str:
        """The property that holds what else a node is called."""
        return self.names.text.aliases

    @property
    def book(self) -> NameBook:
        """The names of the nodes."""
        if not self._book:
            table = self.table
            aliases = (properties.get(self.aliases) for properties in table.properties)
            self._book.append(NameBook(zip(table.ids, table.names, aliases, strict=True), aliases=self.aliases))
        return self._book[0]

    # -- linking

    @overload
    def link(
        self,
        mention: str,
        *,
        mode: str = "name",
        k: int | None = None,
        tau: float | None = None,
        labels: Collection[str] | None = None,
        where: WhereLike = None,
    ) -> list[Linked]: ...
    @overload
    def link(
        self,
        mention: list[str],
        *,
        mode: str = "name",
        k: int | None = None,
        tau: float | None = None,
        labels: Collection[str] | None = None,
        where: WhereLike = None,
    ) -> list[list[Linked]]: ...
    def link(
        self,
        mention: str | list[str],
        *,
        mode: str = "name",
        k: int | None = None,
        tau: float | None = None,
        labels: Collection[str] | None = None,
        where: WhereLike = None,
    ) -> list[Linked] | list[list[Linked]]:
        """Return the nodes that a mention may mean, or each of a batch of mentions: the best first, ties by id.

        Nodes that have nothing in common with the mention do not come back, so that there may be none.

        Parameters
        ----------
        mode
            ``name`` for a short name ("Sony"), ``doc`` for a description ("headphones with long battery life").
        k, tau
            Instead of the rule of the mode.
        labels, where
            Only nodes that bear one of the labels and satisfy the condition.

        Raises
        ------
        InvalidInput
            On another mode, a mention that is not a string, or ``doc`` where there is no index of documents.
        """
        if mode not in ("name", "doc"):
            raise InvalidInput(f"mode: 'name' or 'doc' is expected, not {mode!r}")
        usual = self.rules[mode]
        rule = LinkRule(usual.k if k is None else k, usual.tau if tau is None else tau)
        mask = self.table.mask(Where.parse(where), labels)
        mentions = [mention] if isinstance(mention, str) else require_queries(mention)
        if mode == "doc":
            if self.documents is None:
                raise InvalidInput("mode: the linker has no index of documents")
            self.documents.prepare(mentions)
            found = [self._by_document(one, rule, mask, self.documents) for one in mentions]
        else:
            if self.dense is not None:
                self.dense.prepare(mentions)
            found = [self._by_name(one, rule, mask) for one in mentions]
        return found[0] if isinstance(mention, str) else found

    def _by_name(self, mention: str, rule: LinkRule, mask: NDArray[np.bool_] | None) -> list[Linked]:
        table, n = self.table, max(_CANDIDATES, rule.k)
        called = self._positions(self.book.bearers(mention), mask)
        near = [self.names.top(mention, n, mask)] if len(self.names.term_ids(mention)) else []
        if self.dense is not None and len(table):
            near.append(self.dense.top(mention, n, mask))
        positions = np.unique(np.concatenate([called, *near]))
        if not len(positions):
            return []
        nodes = table.at(positions)
        scores = SIMILAR * self._likeness(mention, nodes, positions)
        hows = ["similar"] * len(nodes)
        for i in np.flatnonzero(np.isin(positions, called)).tolist():
            scores[i], hows[i] = _called(mention, nodes[i], self.aliases)
        return kept(nodes, scores, hows, rule)

    def _likeness(self, mention: str, nodes: Sequence[Node], positions: NDArray[np.int64]) -> NDArray[np.float32]:
        said = self._similarity(mention, nodes)
        if self.dense is None:
            return said
        cosines = np.clip(self.dense.score_at(mention, positions), 0.0, 1.0)
        return np.asarray(self.alpha * said + (1.0 - self.alpha) * cosines, dtype=np.float32)

    def _by_document(
        self, mention: str, rule: LinkRule, mask: NDArray[np.bool_] | None, documents: ArrayIndex
    ) -> list[Linked]:
        positions, scores = documents.ranked(mention, rule.k, mask)
        if isinstance(documents, BM25Index):
            scores = scores / max(documents.ceiling(mention), 1e-9)
        order = np.argsort(positions)
        nodes = self.table.at(positions[order])
        return kept(nodes, np.clip(scores[order], 0.0, 1.0), ["document"] * len(nodes), rule)

    def spot(self, question: str, *, labels: Collection[str] | None = None, where: WhereLike = None) -> list[Spot]:
        """Return the known names in a question with the nodes that bear them; see `graphret.linking.mentions.spot`.

        Only nodes that bear one of `labels` and satisfy `where` count.
        """
        if not isinstance(question, str):
            raise InvalidInput(f"question: a string is expected, not {type(question).__name__}")
        mask = self.table.mask(Where.parse(where), labels)

        def keep(ids: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(self.table.ids.take(self._positions(ids, mask)))

        def forms(ids: tuple[str, ...]) -> list[list[str]]:
            found = self.table.find(ids)
            there = found[found >= 0]  # the book may know of later ones
            if len(set(self.table.names.take(there))) < 2:  # such as thousands of chapters: nothing tells them apart
                return [[]] * len(ids)
            nodes = iter(self.table.at(there))
            return [[form for _, form in variants_of(next(nodes), self.aliases)] if i >= 0 else [] for i in found]

        return spot(question, self.book, None if mask is None else keep, forms)

    def _positions(self, ids: Sequence[str], mask: NDArray[np.bool_] | None) -> NDArray[np.int64]:
        found = self.table.find(ids)
        found = found[found >= 0]
        return found if mask is None else found[mask[found]]

    # -- change

    def _parts(self) -> list[ArrayIndex]:
        return [part for part in (self.names, self.dense, self.documents) if part is not None]

    @property
    def reads_neighbors(self) -> bool:
        """Whether its documents name the neighbours of nodes."""
        return any(part.reads_neighbors for part in self._parts())

    def bind(self, store: NodeSource) -> None:
        """Look neighbours up in a store from now on."""
        for part in self._parts():
            part.bind(store)

    def upsert(self, nodes: Iterable[Node]) -> None:
        """Add nodes, or replace those of the same id."""
        self.staged(list(nodes), ())()

    def delete(self, ids: Iterable[str]) -> None:
        """Take nodes away; unknown ids are ignored."""
        self.staged((), list(ids))()

    def staged(
        self, upserts: Sequence[Node], deletes: Collection[str], source: NodeSource | None = None
    ) -> Callable[[], None]:
        """Make ready a change, and return what puts it in force; see `ArrayIndex.staged`."""
        table = self.names.changed_table(upserts, deletes)
        adopts = [part.staged_as(table, [node.id for node in upserts], source) for part in self._parts()]
        ids = list({*(node.id for node in upserts), *deletes})
        old, new = (self_or_new.at(_there(self_or_new, ids)) for self_or_new in (self.table, table))
        adopt_names = self._book[0].staged(old, new) if self._book else None

        def adopt() -> None:
            for one in adopts:
                one()
            if adopt_names is not None:
                adopt_names()
            self._similarity = NameSimilarity(self.names)

        return adopt

    def view(self, where: WhereLike) -> Self:
        """Return a linker of only the nodes that satisfy `where`; nothing of the others can be read through it."""
        state = copy(self)
        state.names = self.names.view(where)
        state.dense = None if self.dense is None else self.dense.view(where)
        state.documents = None if self.documents is None else self.documents.view(where)
        state._similarity = NameSimilarity(state.names)
        state._book = [] if state.names.table is not self.names.table else self._book
        return state


def _there(table: NodeTable, ids: Sequence[str]) -> NDArray[np.int64]:
    found = table.find(ids)
    return found[found >= 0]


def _called(mention: str, node: Node, aliases: str) -> tuple[float, str]:
    """The score of a node that bears a name, and how."""
    if node.name.strip() == mention.strip():
        return EXACT, "exact"
    said = normal_form(mention)
    kinds = [kind for kind, variant in variants_of(node, aliases) if normal_form(variant) == said]
    if OWN in kinds:
        return NORMALISED, "normalised"
    return OTHER_NAME, "alias" if ALIAS in kinds else "short"
