"""The two operations of ARK on a graph (ARK, section 3.1), as tools for a model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from graphret.ark.arguments import Arguments, Unclear, arrow, relation_filter
from graphret.ark.closest import closest_nodes, no_such_name, no_such_node
from graphret.ark.neighborhood import Asked, Neighborhood, explore
from graphret.ark.observation import Entry, Observation, failure, fitting, quoted, shortened
from graphret.ark.settings import ArkSettings
from graphret.ark.snippet import query_terms
from graphret.cypher.suggestions import nearest
from graphret.llm.chat import Tool
from graphret.schema import GraphSchema
from graphret.search.bm25 import BM25Index
from graphret.search.fields import NodeText
from graphret.search.index import ArrayIndex, TextIndex
from graphret.stores import MemoryStore
from graphret.stores.base import GraphStore
from graphret.types import Node
from graphret.where import WhereLike

SEARCH, EXPLORE, SELECT, FINISH = "global_search", "explore_neighborhood", "select", "finish"

_LONGEST_QUERY = 2_000
_LONGEST_ID = 500
_SHOWN_QUERY = 200
_SHOWN_NAME = 200
_SHOWN_LABELS = 8
_SHOWN_VIA = 8
_SHOWN_COUNTS = 30


def make_tools(settings: ArkSettings = ArkSettings()) -> tuple[Tool, ...]:  # noqa: B008 -- it is frozen
    """Return the tools that an agent is offered, the defaults of `settings` in their descriptions."""

    def count(default: int) -> dict[str, Any]:
        return {
            "type": "integer",
            "minimum": 1,
            "maximum": settings.max_k,
            "description": f"How many nodes to show; {min(default, settings.max_k)} by default.",
        }

    def names(what: str) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string"}, "description": what}

    def schema(required: Sequence[str], **properties: Any) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": properties,
            "required": list(required),
            "additionalProperties": False,
        }

    return (
        Tool(
            SEARCH,
            "Find nodes anywhere in the graph by their names and texts, best match first. Use it to get from words to "
            "node ids, and to start again elsewhere.",
            schema(
                ["query"],
                query={"type": "string", "description": "Words that the node's name or text should hold."},
                k=count(settings.search_k),
            ),
        ),
        Tool(
            EXPLORE,
            "Show the neighbours of one node, in both directions, with the relations that join them to it, and count "
            "its relations. Narrow a large neighbourhood by type or relation, or rank it by a query.",
            schema(
                ["node"],
                node={"type": "string", "description": "The id of a node, exactly as a tool has shown it."},
                query={"type": "string", "description": "Ranks the neighbours by how well they match these words."},
                node_types=names("Show only neighbours of these types."),
                relation_types=names(
                    'Show only neighbours by these relations, such as "r"; "-[r]->" or "<-[r]-" for one direction.'
                ),
                k=count(settings.neighbors_k),
            ),
        ),
        Tool(
            SELECT,
            "Add nodes to your answer, best first. Only nodes that a tool has shown can be selected, and what is "
            "selected stays selected.",
            schema(["nodes"], nodes=names("Ids of nodes, exactly as a tool has shown them.")),
        ),
        Tool(FINISH, "End your work. Call it once what you selected answers the question.", schema([])),
    )


#: The tools with the paper's defaults.
TOOLS = make_tools()


class Toolbox:
    """Runs an agent's calls on a graph; whatever a model writes comes back as an `Observation`.

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
    """

    def __init__(
        self,
        store: GraphStore,
        index: TextIndex,
        settings: ArkSettings = ArkSettings(),  # noqa: B008 -- it is frozen
        *,
        text: NodeText | None = None,
    ) -> None:
        self.store = store
        self.index = index
        self.settings = settings
        self.tools = make_tools(settings)
        self._given_text = text
        self.text = _own_text(index) if text is None else text.bound(store)
        self._schema: GraphSchema | None = None

    @property
    def local(self) -> bool:
        """Whether calls are plain work in this process, with nothing to wait for."""
        return isinstance(self.store, MemoryStore) and isinstance(self.index, ArrayIndex)

    def view(self, where: WhereLike) -> Toolbox:
        """Return the tools on that part of the graph whose nodes satisfy `where`; they show nothing of the rest."""
        return Toolbox(self.store.view(where), self.index.view(where), self.settings, text=self._given_text)

    def global_search(self, query: str, k: int | None = None) -> Observation:
        """Return the nodes of the whole graph that match a query best (ARK, section 3.1, Search)."""
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
            return failure(str(problem))

    async def arun(self, name: str, arguments: Mapping[str, Any]) -> Observation:
        """Do as `run`, off the event loop."""
        return await asyncio.to_thread(self.run, name, arguments)

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
        matches = self.index.search(query, k)
        scores = np.asarray(matches.scores)
        positive = bool((scores > 0).any())
        hits = [
            one
            for one, score in zip(matches.ids, scores.tolist(), strict=True)
            if score > 0 or not (positive or isinstance(self.index, BM25Index))
        ]
        nodes = [node for node in (self.store.get(hits) if hits else []) if node is not None]
        if not nodes:
            given.notes.append("nothing matches; try other words, fewer of them, or a name")
        fit = [node for node in nodes if len(node.id) <= _LONGEST_ID]

        def header(shown: int, cut: bool) -> dict[str, Any]:
            made: dict[str, Any] = {"found": len(nodes)}
            if shown < len(nodes):
                made["shown"] = shown
            if cut:
                made["cut"] = True
            return made | {"query": shortened(query, _SHOWN_QUERY)} | self._notes(given)

        text, shown = self._fitting(header, self._entries(fit), query)
        return Observation(text, tuple(node.id for node in fit[:shown]), total=len(nodes))

    # -- neighbourhood exploration

    def _explore(self, given: Arguments) -> Observation:
        node = self._node(given)
        if isinstance(node, Observation):
            return node
        query = given.text("query", _LONGEST_QUERY)
        labels = given.names("node_types")
        relations = self._relations(given.names("relation_types"))
        k = given.count("k", self.settings.neighbors_k, self.settings.max_k)
        if labels is not None:
            self._require("node type", labels, lambda schema: list(schema.labels))
        asked = Asked(node.id, query, None if labels is None else frozenset(labels), relations, k)
        found = explore(self.store, self.index, asked)
        fit = [i for i, other in enumerate(found.nodes) if len(other.id) <= _LONGEST_ID]
        entries = [
            Entry(self._fields(found.nodes[i]) | _via(found.via[i]), text)
            for i, text in zip(fit, self._texts([found.nodes[i] for i in fit]), strict=True)
        ]
        text, shown = self._fitting(self._explored(given, node, asked, found), entries, query)
        edges = [
            (node.id, relation, found.nodes[i].id) if outgoing else (found.nodes[i].id, relation, node.id)
            for i in fit[:shown]
            for relation, outgoing in found.via[i][:_SHOWN_VIA]
        ]
        nodes = (found.nodes[i].id for i in fit[:shown])
        return Observation(text, tuple(nodes), tuple(dict.fromkeys(edges)), found.total)

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
        return failure(no_such_node(wanted, close), [node.id for node in close])

    def _relations(self, names: list[str] | None) -> dict[str, str] | None:
        if names is None:
            return None
        known = self.schema().relation_names
        made: dict[str, str] = {}
        for name in names:
            relation, direction = (name, "both") if name in known else relation_filter(name)
            made[relation] = direction if made.get(relation, direction) == direction else "both"
        self._require("relation", list(made), lambda schema: schema.relation_names)
        return made

    def _require(self, kind: str, names: Sequence[str], known: Callable[[GraphSchema], Collection[str]]) -> None:
        """Refuse names that the graph does not have; one that the schema may have missed is let pass."""
        if all(name in known(self.schema()) for name in names):
            return
        schema = self.schema(anew=True)
        wrong = [name for name in names if name not in known(schema)]
        if wrong and not schema.sampled:
            raise Unclear(no_such_name(kind, wrong, known(schema)))

    def schema(self, *, anew: bool = False) -> GraphSchema:
        """Return the schema of the graph, read once unless `anew`."""
        if self._schema is None or anew:
            self._schema = self.store.schema()
        return self._schema

    def _explored(
        self, given: Arguments, node: Node, asked: Asked, found: Neighborhood
    ) -> Callable[[int, bool], dict[str, Any]]:
        counts = sorted(found.counts.items(), key=lambda item: (-item[1], item[0][0], not item[0][1], item[0][2]))

        def header(shown: int, cut: bool) -> dict[str, Any]:
            made: dict[str, Any] = {"explored": node.id, **_kind(node)}
            if asked.query:
                made["query"] = shortened(asked.query, _SHOWN_QUERY)
            made |= {"shown": shown, "of": f"{found.total}+" if found.capped else found.total}
            if cut:
                made["cut"] = True
            made["relations"] = [
                [arrow(relation, outgoing), label, f"{n}+" if found.capped else n]
                for (relation, outgoing, label), n in counts[:_SHOWN_COUNTS]
            ]
            if rest := sum(n for _, n in counts[_SHOWN_COUNTS:]):
                made["other_relations"] = rest
            return made | self._notes(given)

        return header

    # -- what is shown

    def _fitting(
        self, header: Callable[[int, bool], dict[str, Any]], entries: Sequence[Entry], query: str | None
    ) -> tuple[str, int]:
        return fitting(
            header,
            entries,
            query_terms(query),
            snippet_chars=self.settings.snippet_chars,
            max_tokens=self.settings.observation_tokens,
        )

    def _entries(self, nodes: Sequence[Node]) -> list[Entry]:
        texts = self._texts(nodes)
        return [Entry(self._fields(node), text) for node, text in zip(nodes, texts, strict=True)]

    def _fields(self, node: Node) -> dict[str, Any]:
        named = {"name": shortened(node.name, _SHOWN_NAME)} if node.name and node.name != node.id else {}
        return {"id": node.id, **named, **_kind(node)}

    def _texts(self, nodes: Sequence[Node]) -> list[str]:
        """What each node says besides its name."""
        texts = self.text.all_texts(nodes) if nodes else []
        return [
            "" if text == node.name else text.removeprefix(f"{node.name}\n")
            for node, text in zip(nodes, texts, strict=True)
        ]

    def _notes(self, given: Arguments) -> dict[str, Any]:
        return {"note": "; ".join(given.notes)} if given.notes else {}


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
