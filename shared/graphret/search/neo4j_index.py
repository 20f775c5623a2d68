"""`Neo4jTextIndex`: nodes found by the database's own full-text and vector indexes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from graphret.errors import InvalidInput, StoreMismatch
from graphret.search import neo4j_documents as documents
from graphret.search.encoder import Encoder, as_encoder
from graphret.search.fields import NodeText
from graphret.search.index import Matches, require_k
from graphret.search.neo4j_around import Alone, Around
from graphret.search.neo4j_asking import ABOVE, Asking
from graphret.search.neo4j_recipe import recipe, recorded_text
from graphret.search.neo4j_view import Counted, Remembered
from graphret.search.vectors import check_vectors, normalize
from graphret.stores.base import require_names
from graphret.stores.following import require_whole
from graphret.stores.neo4j import Neo4jStore
from graphret.stores.neo4j.reads import Graph
from graphret.stores.neo4j.statements import Plan, Statement, Work
from graphret.types import Node
from graphret.where import Where, WhereLike


class Neo4jTextIndex:
    """A `TextIndex` in Neo4j: full text by Lucene, vectors by HNSW with cosine; made by `create` or `open`.

    The database keeps beside each node its document (``graphret_title`` and ``graphret_text``) and, with an encoder,
    the vector of its own text (``graphret_embedding``). The index follows the store that it was made with: a write of
    the store writes these in the same transaction. Writes by others do not; `refresh` makes up for them.

    The score is Lucene's BM25 without an encoder. With one it is ``alpha · BM25 + (1 − alpha) · cosine``, each divided
    by the best of its kind for the question, so that it can be had for a few nodes without looking at all; with
    ``alpha=0`` it is the cosine alone. Filters are conditions of the query, so that k nodes come back where k qualify:
    more and more hits of the vector index are looked at, and where few nodes qualify, all of these.

    Lucene's English analyser differs from `Analyzer` in its stemmer (Porter's first) and stop words, and a field's
    length is kept in one byte: ranks of close scores may differ from those of `BM25Index`. Its statistics count deleted
    nodes until it merges its files.

    Notes
    -----
    A view scores full text by the BM25 of what may be seen, as a `BM25Index` of its nodes would, of two fields: titles
    with aliases, and all else. The database counts the nodes, the terms and the lengths of the view and scores by the
    terms it keeps beside each node (``graphret_terms``), so that only the best come back; the counts are remembered
    until the store writes, or reads what somebody else wrote. Vectors are looked for in the index as with `where`, and
    hidden hits are left out in the same query; those of a view of up to `above` nodes are all compared, in Cypher.
    Scores depend on the view's own nodes alone, and so does what is found in full text and by comparing. HNSW, being
    approximate, may miss one of the nearest nodes of a larger view, which one may depend on hidden nodes too: where
    that is too much, set `above` as high as views are large. Neither statistics nor names of the other nodes show in
    what a view finds. Where `text` reads the names of neighbours, the
    server puts them together for each node that matches, the heaviest of those in the view, as a field of their own; a
    neighbour without a name is not found by its id there.
    """

    def __init__(
        self,
        store: Neo4jStore,
        *,
        text: NodeText | None = None,
        encoder: Any = None,
        name: str = "graphret",
        alpha: float = 0.6,
        above: int = ABOVE,
    ) -> None:
        if not isinstance(store, Neo4jStore):
            raise InvalidInput(
                f"store: a Neo4jStore is expected, not {type(store).__name__}; an index of one follows the writes of "
                "an AsyncNeo4jStore once it is attached to that"
            )
        require_whole(store.is_view)
        if not 0 <= alpha <= 1:
            raise InvalidInput(f"alpha: a number from 0 to 1 is expected, not {alpha!r}")
        if isinstance(above, bool) or not isinstance(above, int) or above < 0:
            raise InvalidInput(f"above: a number of nodes is expected, not {above!r}")
        self.store = store
        self.text = text or NodeText()
        self.encoder: Encoder | None = as_encoder(encoder)
        self.alpha = alpha if self.encoder is not None else 1.0
        self.fulltext = f"{name}_fulltext"
        self.vector = f"{name}_vector" if self.encoder is not None else None
        self.above = above
        self._scope: Where | None = None
        self._remembered = Remembered()

    @classmethod
    def create(
        cls,
        store: Neo4jStore,
        *,
        text: NodeText | None = None,
        encoder: Any = None,
        name: str = "graphret",
        alpha: float = 0.6,
        above: int = ABOVE,
        timeout: float = 600.0,
    ) -> Neo4jTextIndex:
        """Write the documents of all nodes, make the indexes where there are none, and wait until they are ready.

        Parameters
        ----------
        store
            The graph. Where it has no label of its own, each node gets the label ``__GraphretText__``.
        text
            How a node becomes text. Neighbours' names are searched for, and not embedded.
        encoder
            What embeds nodes and questions; `None` for full text alone.
        name
            The indexes are ``<name>_fulltext`` and ``<name>_vector``.
        alpha
            The share of full text.
        above
            Number of nodes of a view above which its vectors are looked for by HNSW; up to it all are compared.
        timeout
            Seconds to wait for the database to fill the indexes.

        Raises
        ------
        StoreMismatch
            When an index that is there has another dimension, is over other nodes, has documents of another text (which
            this one would overwrite) or has failed, or when the nodes have their documents in another index: they can
            be in one.
        InvalidInput
            When the store is a view or asynchronous, and when it is followed by an index of another encoder, whose
            vectors this one would overwrite.
        """
        index = cls(store, text=text, encoder=encoder, name=name, alpha=alpha, above=above)
        rows = index._check(making=True)
        store.require_attachable(index)
        store.run(Work(lambda: documents.require_apart(rows, store.graph().layout)))
        dimension = index.encoder.dimension if index.encoder is not None else None
        layout = store.graph().layout
        for statements in documents.creating(layout, index.text, index.fulltext, index.vector, dimension):
            documents.first_taken(statements, lambda one: store.run(Work(lambda: documents.only(one), writes=True)))
        index._check()
        index.refresh()
        ready = Statement("CALL db.awaitIndexes($seconds)", {"seconds": int(timeout)})
        store.run(Work(lambda: documents.only(ready), timeout=timeout + 10))
        store.attach(index)
        return index

    @classmethod
    def open(
        cls,
        store: Neo4jStore,
        *,
        text: NodeText | None = None,
        encoder: Any = None,
        name: str = "graphret",
        alpha: float = 0.6,
        above: int = ABOVE,
    ) -> Neo4jTextIndex:
        """Open indexes that `create` made, with the encoder that they were made with.

        Parameters
        ----------
        text
            How a node becomes text, by default as it did when the index was made.

        Raises
        ------
        StoreMismatch
            When an index is missing, has failed, is over other nodes, of other text or of another dimension than the
            encoder.
        InvalidInput
            As for `create`.
        """
        index = cls(store, text=text, encoder=encoder, name=name, alpha=alpha, above=above)
        rows = index._check(recorded=text is None)
        if asleep := [
            name for name, _, state, *_ in rows if name in (index.fulltext, index.vector) and state != "ONLINE"
        ]:
            raise StoreMismatch(f"the index {asleep[0]!r} is still being filled; try again when the database is done")
        store.attach(index)
        return index

    def _check(self, *, making: bool = False, recorded: bool = False) -> list[list[Any]]:
        """Check the indexes in the database, and return what it shows of all that it has.

        Parameters
        ----------
        making
            Whether those that are missing will be made.
        recorded
            Whether to read nodes in the way that the index there does.
        """
        layout = self.store.graph().layout
        rows = self.store.run(Work(lambda: documents.only(documents.SHOW)))
        if recorded:
            self.text = recorded_text(rows, self.fulltext) or self.text
        dimension = self.encoder.dimension if self.encoder is not None else None
        documents.require_indexes(rows, layout, self.text, self.fulltext, self.vector, dimension, making=making)
        return rows

    # -- change

    def keeps_as(self, other: Any) -> bool:
        """Whether it keeps the same beside a node as another index does, or one of them but the words."""
        if not isinstance(other, Neo4jTextIndex) or recipe(self.text) != recipe(other.text):
            return False
        if self.encoder is None or other.encoder is None:
            return True
        return self.encoder.name == other.encoder.name and self.text.max_chars == other.text.max_chars

    @property
    def reads_neighbors(self) -> bool:
        """Whether the document of a node depends on its neighbours."""
        return self.text.reads_neighbors

    @property
    def restriction(self) -> Where | None:
        """The condition of the view that this is; `None` where it is none."""
        return self._scope

    def refresh(self) -> None:
        """Write the documents and vectors of all nodes anew."""
        text = self.text.bound(self.store)
        for block in self.store.nodes():
            graph = self.store.graph()
            placed = self.store.run(Work(partial(located, graph, block)))
            rows = documents.rows_of(placed, text, self.encoder)
            self.store.run(Work(partial(documents.documented, graph.layout, rows), writes=True))

    def written(self, graph: Graph, nodes: Sequence[Node], source: Any) -> Plan[None]:
        """Write the documents of nodes within a transaction; called by the store."""
        placed = yield from located(graph, nodes)
        yield from documents.documented(graph.layout, documents.rows_of(placed, self.text.bound(source), self.encoder))

    def upsert(self, nodes: Iterable[Node]) -> None:
        """Write nodes to the store, and their documents with them."""
        self.store.upsert(nodes)

    def delete(self, ids: Iterable[str]) -> None:
        """Take nodes away from the store; unknown ids are ignored."""
        self.store.delete(ids)

    def view(self, where: WhereLike) -> Neo4jTextIndex:
        """Return an index of only the nodes that satisfy `where`; nothing of the others can be read through it."""
        condition = Where.parse(where)
        if condition is None:
            return self
        view = Neo4jTextIndex.__new__(type(self))
        view.__dict__ = dict(self.__dict__)
        view.store = self.store.view(condition)
        view._scope = condition if self._scope is None else self._scope & condition
        return view

    # -- asking

    @overload
    def search(
        self, query: str, k: int, *, labels: Collection[str] | None = None, where: WhereLike = None
    ) -> Matches: ...
    @overload
    def search(
        self, query: list[str], k: int, *, labels: Collection[str] | None = None, where: WhereLike = None
    ) -> list[Matches]: ...
    def search(
        self, query: str | list[str], k: int, *, labels: Collection[str] | None = None, where: WhereLike = None
    ) -> Matches | list[Matches]:
        """Return the `k` best nodes that bear one of `labels` and satisfy `where`: `k`, or all there are."""
        wanted, names, condition = require_k(k), require_names("labels", labels), Where.parse(where)
        if isinstance(query, (list, tuple)):
            return [self.search(one, k, labels=labels, where=where) for one in query]
        asking = self._asking(query)
        graph = self.store.graph()
        return self.store.run(Work(lambda: asking.search(graph, wanted, names, condition)))

    @property
    def words_alone(self) -> bool:
        """Whether full text alone counts, and that of all nodes: not in a view."""
        return self.alpha == 1 and self._scope is None

    def hits(self, query: str, n: int) -> Matches:
        """Return at most `n` of the nodes in which a word of the query occurs, the best, in one pass of the server.

        Unlike `search`, it fills up with nothing, and which of the nodes that score as the last one are returned is for
        Lucene to say.

        Raises
        ------
        InvalidInput
            Where more than words count (`words_alone`); there only `search` tells the best.
        """
        if not self.words_alone:
            raise InvalidInput("hits: the best matches by words alone are not the best of a view, or of vectors")
        asking, graph, wanted = self._asking(query), self.store.graph(), require_k(n)
        return self.store.run(Work(lambda: asking.hits(graph, wanted)))

    @overload
    def score(self, query: str, ids: Sequence[str]) -> NDArray[np.float32]: ...
    @overload
    def score(self, query: list[str], ids: Sequence[str]) -> list[NDArray[np.float32]]: ...
    def score(self, query: str | list[str], ids: Sequence[str]) -> NDArray[np.float32] | list[NDArray[np.float32]]:
        """Return the scores of given nodes, in their order; an `InvalidInput` names an unknown id."""
        if isinstance(query, (list, tuple)):
            return [self.score(one, ids) for one in query]
        asking = self._asking(query)
        graph, wanted = self.store.graph(), list(ids)
        return self.store.run(Work(lambda: asking.score(graph, wanted)))

    def _asking(self, query: str) -> Asking:
        if not isinstance(query, str):
            raise InvalidInput(f"query: a string is expected, not {type(query).__name__}")
        vector = None
        if self.encoder is not None:
            made = self.encoder.encode_queries([query])
            unit = normalize(check_vectors(made, 1, self.encoder.dimension, what="query embedding"))[0]
            vector = unit.tolist() if unit.any() else None
        asking = Asking(query, self.alpha, self.fulltext, self.vector, vector, above=self.above)
        if self._scope is not None:
            bookmarks = frozenset(self.store.driver.execute_query_bookmark_manager.get_bookmarks())
            asking.statistics = self._remembered.at(bookmarks, self._scope)
            if asking.lucene is not None:
                says = Around(self.text) if self.text.reads_neighbors else Alone()
                asking.visible = Counted(query, self.fulltext, asking.statistics, says)
        return asking


def located(graph: Graph, nodes: Sequence[Node]) -> Plan[list[tuple[str, Node]]]:
    """Find out where nodes are in the database."""
    placed: dict[str, str] = {}
    if nodes:
        parameters: dict[str, Any] = {}
        among = graph.layout.among("n", [node.id for node in nodes], parameters)
        columns = f"{graph.layout.id_of('n')} AS id, elementId(n) AS place"
        statement = f"MATCH {graph.layout.node('n')} WHERE {among} RETURN {columns}"
        rows = yield Statement(statement, parameters)
        placed = dict(rows)
        if len(placed) < len(rows):
            yield from graph.get([node.id for node in nodes])  # which refuses an id of several
    return [(placed[node.id], node) for node in nodes if node.id in placed]
