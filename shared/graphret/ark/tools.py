"""The two operations of ARK on a graph (ARK, section 3.1), as tools for a model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from graphret.ark.arguments import (
    ExploreArguments,
    InvalidCall,
    SearchArguments,
    arrow,
    directions,
    meant,
    no_such_name,
    no_such_node,
    read,
)
from graphret.ark.neighborhood import Neighborhood, explore, matching
from graphret.ark.observation import (
    ADDED,
    NodeEntry,
    Observation,
    failure,
    fitting,
    quoted,
    shortened,
)
from graphret.ark.prompt import EXPLORE, SEARCH, make_tools, switched_off
from graphret.ark.settings import MAX_K, ArkSettings
from graphret.contracts import implements, require_same_view
from graphret.errors import GraphretError, InvalidInput, StoreError
from graphret.llm.chat import ToolCall
from graphret.llm.event_loop import in_thread
from graphret.search.fields import NodeText
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore
from graphret.types import Node

_LONGEST_QUERY = 2_000
_SHOWN_CHARS = 200  # of a query and of a name
_SHOWN_COUNTS = 30


class CallOutcome(NamedTuple):
    """A call, what came of it, the seconds that it took, and the failure of the store
    or the index, if it failed.
    """

    call: ToolCall
    observation: Observation
    seconds: float = 0.0
    failure: GraphretError | None = None


class Toolbox:
    """Runs an agent's calls on a graph; whatever a model writes comes back as an
    `Observation`.

    `tools` are what an agent is offered, `operations` those of them that read the
    graph.

    Parameters
    ----------
    store, index, settings
        The graph, what ranks its nodes for a query, and how much a call shows; excerpts
        are of the text and the properties that the index reads.

    Raises
    ------
    InvalidInput
        When one of these is something else, or store and index are not views of the
        same condition.
    """

    def __init__(
        self,
        store: GraphStore,
        index: TextIndex,
        settings: ArkSettings = ArkSettings(),
    ) -> None:
        for what, given, contract in (
            ("store", store, GraphStore),
            ("index", index, TextIndex),
        ):
            if not implements(given, contract):
                raise InvalidInput(
                    f"{what}: expected a {contract.__name__}, got"
                    f" {type(given).__name__}"
                )
        require_same_view(store, index)
        if not isinstance(settings, ArkSettings):
            raise InvalidInput(
                f"settings: expected ArkSettings, got {type(settings).__name__}"
            )
        self.store = store
        self.index = index
        self.settings = settings
        self.tools = make_tools(settings)
        self.operations = tuple(
            tool for tool in self.tools if tool.name in (SEARCH, EXPLORE)
        )
        self.text = _own_text(index).bound(store)
        chars, tokens = settings.snippet_chars, settings.observation_tokens - ADDED
        self._fitting = partial(fitting, snippet_chars=chars, max_tokens=tokens)

    def run(self, name: str, arguments: Mapping[str, Any]) -> Observation:
        """Run a call as a model made it: any name, any arguments.

        Only a store or an index that fails raises, nothing that the model wrote.
        """
        try:
            if name == SEARCH:
                return self._search(read(SearchArguments, arguments))
            if name == EXPLORE and self.settings.exploration != "off":
                self._require_switched_on(arguments)
                return self._explore(read(ExploreArguments, arguments))
            known = ", ".join(tool.name for tool in self.tools)
            raise InvalidCall(f"There is no tool {quoted(name)}. There are {known}.")
        except InvalidCall as problem:
            return failure(str(problem))

    async def arun(self, name: str, arguments: Mapping[str, Any]) -> Observation:
        """Do as `run`, off the event loop, at once with other calls."""
        return await in_thread(partial(self.run, name, arguments))

    def run_calls(self, calls: Sequence[ToolCall]) -> list[CallOutcome]:
        """Run the calls of a reply one after the other; one that the store or the index
        fails is told to the model.
        """
        outcomes = []
        for call in calls:
            began, problem = time.perf_counter(), None
            try:
                observation = self.run(call.name, call.parsed or {})
            except Exception as error:
                problem = as_store_error(error)
                observation = failure(f"The graph could not be read: {problem}")
            outcomes.append(
                CallOutcome(call, observation, time.perf_counter() - began, problem)
            )
        return outcomes

    async def arun_calls(self, calls: Sequence[ToolCall]) -> list[CallOutcome]:
        """Do as `run_calls`, off the event loop; calls that wait for a database are
        under way at once.
        """
        if self.store.local_graph() is not None:
            # Python's lock lets but one of them compute
            return await in_thread(partial(self.run_calls, calls))
        parts = await asyncio.gather(
            *(in_thread(partial(self.run_calls, [call])) for call in calls)
        )
        return [outcome for part in parts for outcome in part]

    def _search(self, given: SearchArguments) -> Observation:
        if not (query := given.query.strip()[:_LONGEST_QUERY]):
            raise InvalidCall(
                "A search needs a query: words that the name or the text of a node"
                " should hold."
            )
        # an id of words that no index keeps: a film called “They”
        hits = matching(self.index, query, _count(given.k, self.settings.search_k)) or [
            query
        ]
        nodes = [node for node in self.store.get(hits) if node is not None]
        head = {"found": len(nodes), "query": shortened(query, _SHOWN_CHARS)}
        if not nodes:
            head["note"] = "nothing matches; try other words, fewer of them, or a name"
        text, shown = self._fitting(head, self._entries(nodes), query)
        return Observation(text, tuple(nodes[i].id for i in shown), total=len(nodes))

    def _explore(self, given: ExploreArguments) -> Observation:
        [node] = self.store.get([given.node])
        if node is None:
            message, named = no_such_node(self.store, self.index, given.node)
            return failure(message, named)
        labels = frozenset(map(meant, given.node_types)) if given.node_types else None
        relations = directions(given.relation_types) if given.relation_types else None
        query = given.query.strip()[:_LONGEST_QUERY] or None
        neighborhood = explore(
            self.store,
            self.index,
            node.id,
            query,
            labels=labels,
            relations=relations,
            k=_count(given.k, self.settings.neighbors_k),
        )
        if not neighborhood.total:
            self._require_known_names(labels or (), relations or ())
        text, shown = self._fitting(
            _explored(node, query, neighborhood),
            self._neighbor_entries(neighborhood),
            query,
        )
        return Observation(
            text,
            tuple(neighborhood.nodes[i].id for i in shown),
            _edges(node, neighborhood, shown),
            neighborhood.total,
        )

    def _require_switched_on(self, arguments: Mapping[str, Any]) -> None:
        """Say which arguments an exploration does not take here."""
        off = switched_off(self.settings)
        if wrong := sorted(name for name in off if arguments.get(name)):
            [tool] = [one for one in self.tools if one.name == EXPLORE]
            raise InvalidCall(
                f"{', '.join(map(quoted, wrong))}: not taken here. The tool takes"
                f" {', '.join(tool.parameters['properties'])}."
            )

    def _require_known_names(
        self, labels: Collection[str], relations: Collection[str]
    ) -> None:
        """Say which labels and relations asked for the graph does not have."""
        if not labels and not relations:
            return
        schema = self.store.schema()
        problems = [
            no_such_name(kind, unknown, known)
            for kind, names, known in (
                ("node type", labels, schema.labels),
                ("relation", relations, schema.relation_names),
            )
            if (unknown := set(names) - set(known))
        ]
        if problems:
            raise InvalidCall(" ".join(problems))

    def _neighbor_entries(self, neighborhood: Neighborhood) -> list[NodeEntry]:
        """What is shown of neighbours: also by which relations they are joined."""
        entries = self._entries(neighborhood.nodes)
        return [
            NodeEntry(entry.fields | {"via": [arrow(*way) for way in via]}, entry.text)
            for entry, via in zip(entries, neighborhood.via, strict=True)
        ]

    def _entries(self, nodes: Sequence[Node]) -> list[NodeEntry]:
        """What is shown of nodes: id, name and type, and what they say besides their
        names.
        """
        entries = []
        for node, text in zip(nodes, self.text.all_texts(nodes), strict=True):
            named = (
                {"name": shortened(node.name, _SHOWN_CHARS)}
                if node.name not in ("", node.id)
                else {}
            )
            own = "" if text == node.name else text.removeprefix(f"{node.name}\n")
            entries.append(NodeEntry({"id": node.id, **named, **_kind(node)}, own))
        return entries


def as_store_error(error: Exception) -> GraphretError:
    """Return what a store or an index raised as an error of ours: those of others raise
    their own.
    """
    return (
        error
        if isinstance(error, GraphretError)
        else StoreError(f"{type(error).__name__}: {error}")
    )


def _count(asked: int, default: int) -> int:
    return min(asked if asked > 0 else default, MAX_K)


def _explored(
    node: Node, query: str | None, neighborhood: Neighborhood
) -> dict[str, Any]:
    """What an exploration says first: of which node, and how much is around it."""
    head = {"explored": node.id, **_kind(node)}
    if query:
        head["query"] = shortened(query, _SHOWN_CHARS)
    total = neighborhood.total
    head |= {"shown": 0, "of": f"{total}+" if neighborhood.partial else total}
    return head | _counts(neighborhood)


def _edges(
    node: Node, neighborhood: Neighborhood, shown: Sequence[int]
) -> tuple[tuple[str, str, str], ...]:
    """Return the edges between a node and those of its neighbours that are shown."""
    neighbors = [(neighborhood.nodes[i].id, neighborhood.via[i]) for i in shown]
    edges = [
        (node.id, relation, other) if outgoing else (other, relation, node.id)
        for other, via in neighbors
        for relation, outgoing in via
    ]
    return tuple(dict.fromkeys(edges))


def _counts(found: Neighborhood) -> dict[str, Any]:
    """The most frequent relations with the type of the neighbour, and how many edges
    there are of others.
    """
    counts = sorted(
        found.counts.items(),
        key=lambda item: (-item[1], item[0][0], not item[0][1], item[0][2]),
    )
    listed = [
        [arrow(relation, outgoing), label, f"{n}+" if found.capped else n]
        for (relation, outgoing, label), n in counts[:_SHOWN_COUNTS]
    ]
    rest = sum(n for _, n in counts[_SHOWN_COUNTS:])
    return ({"relations": listed} if listed else {}) | (
        {"other_relations": rest} if rest else {}
    )


def _kind(node: Node) -> dict[str, Any]:
    labels = [label for label in node.labels if label]
    return {"type": labels[0] if len(labels) == 1 else labels} if labels else {}


def _own_text(index: TextIndex) -> NodeText:
    """How an index reads a node, without the names of neighbours: the tools
    show these.
    """
    properties = dict.fromkeys(
        name for text in index.node_texts() for name in text.properties
    )
    return NodeText(properties=tuple(properties))
