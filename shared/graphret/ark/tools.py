"""The two operations of ARK on a graph (ARK, section 3.1), as tools for a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from graphret.ark.arguments import Arguments, Unclear, arrow, meant, relation_filter
from graphret.ark.closest import closest_nodes, no_such_name, no_such_node
from graphret.ark.columnar import Columns
from graphret.ark.definitions import EXPLORE, FINISH, SEARCH, SELECT, TOOLS, make_tools
from graphret.ark.hubs import Hubs, Kept
from graphret.ark.matching import make_ready, matching
from graphret.ark.neighborhood import CAP, Asked, Neighborhood, explore
from graphret.ark.observation import ADDED, LEVELS, Entry, Header, Observation, failure, fitting, quoted, shortened
from graphret.ark.settings import ArkSettings
from graphret.ark.snippet import query_terms
from graphret.contracts import fulfils, require_direct, require_same_view
from graphret.cypher.suggestions import nearest
from graphret.errors import InvalidInput
from graphret.llm.running import Threads
from graphret.schema import GraphSchema
from graphret.search.bm25 import BM25Index
from graphret.search.fields import NodeText
from graphret.search.index import ArrayIndex, TextIndex
from graphret.stores.base import GraphStore
from graphret.stores.memory import MemoryStore
from graphret.types import Node
from graphret.where import WhereLike

__all__ = ["TOOLS", "Toolbox", "make_tools"]

#: What runs calls: more at once than two replies of `ArkSettings.max_calls` have.
THREADS = Threads(most=128)

_LONGEST_QUERY = 2_000
_LONGEST_ID = 500
_SHOWN_QUERY = (200, 50, 0, 0)  # by how short the header must be
_SHOWN_NAME = 200
_SHOWN_LABELS = 8
_SHOWN_VIA = 8
_SHOWN_COUNTS = (30, 8, 0, 0)
_TYPE, _RELATION = "node type", "relation"


class Toolbox:
    """Runs an agent's calls on a graph; whatever a model writes comes back as an `Observation`.

    What an index in this process makes only when it is first searched by words is made here, and the nodes with most
    edges are read of a Ladybug database, and of Neo4j where the store was asked something before, so that no call waits
    for either.

    `tools` are what an agent is offered, `operations` those of them that read the graph.

    Parameters
    ----------
    store
        The graph.
    index
        What ranks nodes for a query.
    settings
        How much a call shows.
    text
        How a node becomes the text of which an excerpt is shown; without it name, text and the properties that the
        index reads.

    Raises
    ------
    InvalidInput
        When `store`, `index` or `settings` is something else, the store is one that is awaited, or one of store and
        index is a view and the other is none of the same condition.
    """

    def __init__(
        self,
        store: GraphStore,
        index: TextIndex,
        settings: ArkSettings = ArkSettings(),  # noqa: B008 -- it is frozen
        *,
        text: NodeText | None = None,
    ) -> None:
        if not fulfils(store, GraphStore):
            raise InvalidInput(f"store: a GraphStore is expected, not {type(store).__name__}")
        require_direct(store)
        if not fulfils(index, TextIndex):
            raise InvalidInput(f"index: a TextIndex is expected, not {type(index).__name__}")
        require_same_view(store, index)
        if not isinstance(settings, ArkSettings):
            raise InvalidInput(f"settings: ArkSettings are expected, not {type(settings).__name__}")
        self.store = store
        self.index = index
        self.settings = settings
        self.tools = make_tools(settings)
        self.operations = tuple(tool for tool in self.tools if tool.name in (SEARCH, EXPLORE))
        self._most = settings.observation_tokens - ADDED
        self._given_text = text
        self.text = _own_text(index) if text is None else text.bound(store)
        self._schema: GraphSchema | None = None
        self._columns = Columns(together=getattr(index, "store", None) is store)
        self._hubs = Hubs()
        # Whether calls wait for nothing, neither a database nor an encoder; a class of somebody else's may.
        self.computes = type(store) is MemoryStore and type(index) is BM25Index
        make_ready(index)
        if isinstance(store, MemoryStore):
            if isinstance(index, ArrayIndex):
                self._columns.place(store.graph, index)
        else:
            self._hubs.prepare(store, lambda around: self._columns.place_hub(around, index))

    def view(self, where: WhereLike) -> Toolbox:
        """Return the tools on that part of the graph whose nodes satisfy `where`; they show nothing of the rest."""
        return Toolbox(self.store.view(where), self.index.view(where), self.settings, text=self._given_text)

    def global_search(self, query: str, k: int | None = None) -> Observation:
        """Return the nodes of the whole graph that match a query best (ARK, section 3.1, Search).

        Where the index finds none, it is the node whose id the query is.
        """
        return self.run(SEARCH, {"query": query, "k": k})

    def explore_neighborhood(
        self,
        node: str,
        query: str | None = None,
        node_types: Sequence[str] | None = None,
        relation_types: Sequence[str] | None = None,
        k: int | None = None,
    ) -> Observation:
        """Return the neighbours of a node, filtered and ranked (ARK, section 3.1, Neighbors)."""
        given = {"node": node, "query": query, "node_types": node_types, "relation_types": relation_types, "k": k}
        return self.run(EXPLORE, given)

    def run(self, name: str, arguments: Mapping[str, Any]) -> Observation:
        """Run a call as a model made it: any name, any arguments.

        Raises
        ------
        GraphretError
            When the store or the index fails; never for what the model wrote.
        """
        tools: dict[str, tuple[Callable[[Arguments], Observation], tuple[str, ...]]] = {
            SEARCH: (self._search, ("query", "k")),
            EXPLORE: (self._explore, ("node", "query", "node_types", "relation_types", "k")),
        }
        try:
            if name not in tools:
                raise Unclear(self._unknown_tool(name))
            work, known = tools[name]
            if not isinstance(arguments, Mapping):
                raise Unclear(f"{name} takes a JSON object with the arguments {', '.join(known)}.")
            return work(Arguments(name, arguments, known))
        except Unclear as problem:
            return failure(str(problem), (), self._most)

    async def arun(self, name: str, arguments: Mapping[str, Any]) -> Observation:
        """Do as `run`, off the event loop, at once with other calls."""
        return await THREADS.do(partial(self.run, name, arguments))

    def _unknown_tool(self, name: object) -> str:
        known = [tool.name for tool in self.tools]
        if name in (SELECT, FINISH):
            return f"{name} ends with the agent that calls it; the graph has nothing to do for it."
        close = nearest(str(name)[:100], known, 1)
        hint = f" Did you mean {close[0]}?" if close else ""
        return f"There is no tool {quoted(str(name))}.{hint} There are {', '.join(known)}."

    # -- global search

    def _search(self, given: Arguments) -> Observation:
        query = given.text("query", _LONGEST_QUERY)
        if query is None:
            raise Unclear(f"{SEARCH} needs a query: words that the name or the text of a node should hold.")
        k = given.count("k", self.settings.search_k, self.settings.max_k)
        hits = matching(self.index, query, k) or [query]  # an id of words that no index keeps: a film called “They”
        nodes = [node for node in self.store.get(hits) if node is not None]
        if not nodes:
            given.notes.append("nothing matches; try other words, fewer of them, or a name")
        fit = [node for node in nodes if len(node.id) <= _LONGEST_ID]

        def header(shown: int, cut: bool, level: int) -> dict[str, Any]:
            made: dict[str, Any] = {"found": len(nodes)}
            if shown < len(nodes):
                made["shown"] = shown
            if cut:
                made["cut"] = True
            return made | _query(query, level) | _notes(given, level)

        text, shown = self._fitting(header, self._entries(fit), query)
        return Observation(text, tuple(fit[i].id for i in shown), total=len(nodes))

    # -- neighbourhood exploration

    def _explore(self, given: Arguments) -> Observation:
        wanted = given.id("node")
        kept = self._hubs.known(self.store, wanted)
        node = None if kept else self._node(given)  # a hub is read along with the neighbours that are shown
        if isinstance(node, Observation):
            return node
        wanted = wanted if node is None else node.id
        query = given.text("query", _LONGEST_QUERY)
        labels = self._labels(given.names("node_types"))
        relations = self._relations(given.names("relation_types"))
        k = given.count("k", self.settings.neighbors_k, self.settings.max_k)
        doubts = [self._doubt(_TYPE, labels or (), wanted), self._doubt(_RELATION, list(relations or ()), wanted)]
        asked = Asked(wanted, query, None if labels is None else frozenset(labels), relations, k)
        seen = self._seen(kept, asked) if kept else None
        if seen is None:
            node = node or self._node(given)
            if isinstance(node, Observation):
                return node
            seen = node, self._look(asked)
        node, found = seen
        if not found.total and any(doubts):
            raise Unclear(" ".join(filter(None, doubts)))
        fit = [(other, via) for other, via in zip(found.nodes, found.via, strict=True) if len(other.id) <= _LONGEST_ID]
        entries = [
            Entry(entry.fields | _via(via), entry.text)
            for entry, (_, via) in zip(self._entries([other for other, _ in fit]), fit, strict=True)
        ]
        text, shown = self._fitting(_explored(given, node, asked, found), entries, query)
        edges = [
            (node.id, relation, other.id) if outgoing else (other.id, relation, node.id)
            for other, via in (fit[i] for i in shown)
            for relation, outgoing in via[:_SHOWN_VIA]
        ]
        return Observation(text, tuple(fit[i][0].id for i in shown), tuple(dict.fromkeys(edges)), found.total)

    def _look(self, asked: Asked) -> Neighborhood:
        store, index = self.store, self.index
        if isinstance(store, MemoryStore) and (asked.query is None or isinstance(index, ArrayIndex)):
            return self._columns.explore(store.graph, index, asked)
        around = self._hubs.of(store, asked.node)
        if around is None:
            return explore(store, index, asked, CAP)
        chosen = self._columns.look(around, index, asked)
        return chosen.read(store.get(around.links.nodes.ids.take(chosen.positions)))

    def _seen(self, kept: Kept, asked: Asked) -> tuple[Node, Neighborhood] | None:
        """Look at a hub whose edges are kept; `None` where something was written since."""
        chosen = self._columns.look(kept.around, self.index, asked)
        ids = kept.around.links.nodes.ids.take(chosen.positions)
        hub, *others = self._hubs.read(self.store, kept, asked.node, ids) or [None]
        return None if hub is None else (hub, chosen.read(others))

    def _node(self, given: Arguments) -> Node | Observation:
        """The node that is asked for, or the answer where there is none."""
        wanted = given.id("node")
        spelled = [wanted] if wanted == wanted.strip() or not wanted.strip() else [wanted, wanted.strip()]
        for node in self.store.get(spelled):
            if node is not None:
                if node.id != wanted:
                    given.notes.append("node: the white space around it was left out")
                return node
        close = closest_nodes(self.store, self.index, wanted)
        for n in range(len(close), 0, -1):
            answer = failure(no_such_node(wanted, close[:n]), [node.id for node in close[:n]], self._most)
            if answer.nodes:
                return answer
        return failure(no_such_node(wanted, ()), (), self._most)

    def _labels(self, names: Sequence[str] | None) -> list[str] | None:
        if names is None:
            return None
        known = self._names(_TYPE)[0]
        return [meant(name, known) for name in names]

    def _relations(self, names: Sequence[str] | None) -> dict[str, str] | None:
        if names is None:
            return None
        known = self._names(_RELATION)[0]
        made: dict[str, str] = {}
        for name in names:
            relation, direction = meant(name, known), "both"
            if relation not in known:
                relation, direction = relation_filter(relation)
                relation = meant(relation, known)
            made[relation] = direction if made.get(relation, direction) == direction else "both"
        return made

    def _doubt(self, kind: str, names: Sequence[str], node: str) -> str:
        """Refuse names that the graph does not have; of those that only a sample of it lacks, say so if need be."""
        if all(name in self._names(kind)[0] for name in names):
            return ""
        known, all_known = self._names(kind, anew=True)
        wrong = [name for name in names if name not in known]
        if not wrong:
            return ""
        said = no_such_name(kind, wrong, known, self._around(kind, node))
        if all_known:
            raise Unclear(said)
        return said

    def _around(self, kind: str, node: str) -> list[str]:
        """The types or relations of a node's neighbours, the most frequent first."""
        counts: Counter[str] = Counter()
        for (relation, _, label), n in self._look(Asked(node, None, None, None, 1)).counts.items():
            counts[label if kind == _TYPE else relation] += n
        return [name for name, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])) if name]

    def _names(self, kind: str, *, anew: bool = False) -> tuple[Collection[str], bool]:
        """Return the types or the relations of the graph, and whether these are all; read once unless `anew`."""
        if isinstance(self.store, MemoryStore):
            graph = self.store.graph
            labels = {label for labels in graph.nodes.label_sets for label in labels}
            return labels if kind == _TYPE else graph.edges.relations, True
        if self._schema is None or anew:
            self._schema = self.store.schema()
        schema = self._schema
        return list(schema.labels) if kind == _TYPE else schema.relation_names, not schema.sampled_names

    # -- what is shown

    def _fitting(self, header: Header, entries: Sequence[Entry], query: str | None) -> tuple[str, list[int]]:
        return fitting(
            header,
            entries,
            query_terms(query),
            snippet_chars=self.settings.snippet_chars,
            max_tokens=self._most,
        )

    def _entries(self, nodes: Sequence[Node]) -> list[Entry]:
        """What is shown of nodes: id, name and type, and what they say besides their names."""
        texts = self.text.all_texts(nodes) if nodes else []
        return [
            Entry(_fields(node), "" if text == node.name else text.removeprefix(f"{node.name}\n"))
            for node, text in zip(nodes, texts, strict=True)
        ]


def _explored(given: Arguments, node: Node, asked: Asked, found: Neighborhood) -> Header:
    counts = sorted(found.counts.items(), key=lambda item: (-item[1], item[0][0], not item[0][1], item[0][2]))

    def header(shown: int, cut: bool, level: int) -> dict[str, Any]:
        listed = counts[: _SHOWN_COUNTS[level]]
        made: dict[str, Any] = {"explored": node.id, **_kind(node)} if level < LEVELS - 1 else {}
        made |= _query(asked.query, level)
        made |= {"shown": shown, "of": f"{found.total}+" if found.partial else found.total}
        if cut:
            made["cut"] = True
        if listed:
            made["relations"] = [
                [arrow(relation, outgoing), label, f"{n}+" if found.capped else n]
                for (relation, outgoing, label), n in listed
            ]
        if rest := sum(n for _, n in counts[len(listed) :]):
            made["other_relations"] = rest
        return made | _notes(given, level)

    return header


def _query(query: str | None, level: int) -> dict[str, Any]:
    return {"query": shortened(query, _SHOWN_QUERY[level])} if query and _SHOWN_QUERY[level] else {}


def _notes(given: Arguments, level: int) -> dict[str, Any]:
    return {"note": "; ".join(given.notes)} if given.notes and level < LEVELS - 1 else {}


def _fields(node: Node) -> dict[str, Any]:
    named = {"name": shortened(node.name, _SHOWN_NAME)} if node.name and node.name != node.id else {}
    return {"id": node.id, **named, **_kind(node)}


def _kind(node: Node) -> dict[str, Any]:
    labels = [label for label in node.labels if label]
    if not labels:
        return {}
    return {"type": labels[0] if len(labels) == 1 else labels[:_SHOWN_LABELS]}


def _via(via: Sequence[tuple[str, bool]]) -> dict[str, Any]:
    more = {"more_relations": len(via) - _SHOWN_VIA} if len(via) > _SHOWN_VIA else {}
    return {"via": [arrow(*one) for one in via[:_SHOWN_VIA]], **more}


def _own_text(index: TextIndex) -> NodeText:
    """How an index reads a node, without the names of neighbours: the tools show these."""
    read = index.texts() if isinstance(index, ArrayIndex) else [getattr(index, "text", None)]
    texts = [text for text in read if isinstance(text, NodeText)]
    return NodeText(properties=tuple(dict.fromkeys(name for text in texts for name in text.properties)))
