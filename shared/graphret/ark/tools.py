"""The two operations of ARK on a graph (ARK, section 3.1), as tools for a model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

from graphret.ark.arguments import (
    ExploreArguments,
    InvalidCall,
    SearchArguments,
    bare_name,
    condition,
    directions,
    no_such_name,
    no_such_node,
    read,
    separate,
)
from graphret.ark.entries import (
    SHOWN_CHARS,
    entry_of,
    kind_of,
    neighbor_entries,
    relation_counts,
)
from graphret.ark.neighborhood import CAP, Neighborhood, explore, matching
from graphret.ark.observation import (
    ADDED,
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
from graphret.schema import GraphSchema
from graphret.search.index import TextIndex
from graphret.stores.base import GraphStore
from graphret.types import Node
from graphret.where import PROPERTIES, Where

_LONGEST_QUERY = 2_000
_NODE_FIELDS = ("id", "name", "text", "label")  # of which conditions may be, too


class CallOutcome(NamedTuple):
    """A call, its observation and seconds, and the failure of the store or index."""

    call: ToolCall
    observation: Observation
    seconds: float = 0.0
    failure: GraphretError | None = None


class Toolbox:
    """Runs an agent's calls on a graph; whatever a model writes gets an `Observation`.

    `tools` are what an agent is offered, `operations` those of them that read the
    graph.

    Parameters
    ----------
    store, index, settings
        The graph, what ranks its nodes for a query, and how much a call shows.

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
        for what, argument, contract in (
            ("store", store, GraphStore),
            ("index", index, TextIndex),
        ):
            if not implements(argument, contract):
                raise InvalidInput(
                    f"{what}: expected a {contract.__name__}, got"
                    f" {type(argument).__name__}"
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
            names = ", ".join(tool.name for tool in self.tools)
            raise InvalidCall(f"There is no tool {quoted(name)}. There are {names}.")
        except InvalidCall as problem:
            return failure(str(problem))

    async def arun(self, name: str, arguments: Mapping[str, Any]) -> Observation:
        """Do what `run` does off the event loop, at once with other calls."""
        return await in_thread(partial(self.run, name, arguments))

    def run_calls(self, calls: Sequence[ToolCall]) -> list[CallOutcome]:
        """Run the calls of a reply in turn; a store's failure is an observation."""
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
        """Do what `run_calls` does off the event loop, with database calls at once."""
        if self.store.local_graph() is not None:
            # Python's global lock lets only one of them compute
            return await in_thread(partial(self.run_calls, calls))
        parts = await asyncio.gather(
            *(in_thread(partial(self.run_calls, [call])) for call in calls)
        )
        return [outcome for part in parts for outcome in part]

    def _search(self, arguments: SearchArguments) -> Observation:
        query = arguments.query.strip()[:_LONGEST_QUERY]
        labels, where = self._labels(arguments.node_types), condition(arguments.where)
        if not query and labels is None and where is None:
            raise InvalidCall(
                "A search needs a query, words that the name or the text of a node"
                " should hold, or node_types or where."
            )
        k = _count(arguments.k, self.settings.search_k)
        head: dict[str, Any]
        if query:
            nodes = self._nodes_matching(query, k, labels, where)
            total = len(nodes)
            head = {"found": total, "query": _brief(query)}
        else:
            nodes, total, more = self._listed(k, labels, where)
            head = {"shown": 0, "of": f"{total}+" if more else total}
        if not nodes:
            self._require_known_names(labels or (), (), where)
            head["note"] = "nothing matches; try other words, fewer of them, or a name"
        text, shown = self._fitting(head, [*map(entry_of, nodes)], query)
        return Observation(text, tuple(nodes[i].id for i in shown), total=total)

    def _nodes_matching(
        self,
        query: str,
        k: int,
        labels: frozenset[str] | None,
        where: Where | None,
    ) -> list[Node]:
        """Return the nodes that match a query, best first."""
        ids = matching(self.index, query, k, labels=labels, where=where)
        if ids:
            return [node for node in self.store.get(ids) if node is not None]
        # an id of words that no index keeps: a film called “They”
        [node] = self.store.get([query])
        passes = (
            node is not None
            and (labels is None or any(label in labels for label in node.labels))
            and (where is None or where.matches(node))
        )
        return [node] if node is not None and passes else []

    def _listed(
        self, k: int, labels: Collection[str] | None, where: Where | None
    ) -> tuple[list[Node], int, bool]:
        """Return the first nodes that pass the filters, and how many do, up to `CAP`.

        Also whether there may be more of them.
        """
        nodes = chain.from_iterable(self.store.nodes(labels, where))
        read = list(islice(nodes, CAP + 1))
        return read[:k], min(len(read), CAP), len(read) > CAP

    def _explore(self, arguments: ExploreArguments) -> Observation:
        [node] = self.store.get([arguments.node])
        if node is None:
            message, closest = no_such_node(self.store, self.index, arguments.node)
            return failure(message, closest)
        labels, where = self._labels(arguments.node_types), condition(arguments.where)
        ways = self._separate(arguments.relation_types)
        relations = directions(ways) if ways else None
        query = arguments.query.strip()[:_LONGEST_QUERY] or None
        neighborhood = explore(
            self.store,
            self.index,
            node.id,
            query,
            labels=labels,
            relations=relations,
            where=where,
            k=_count(arguments.k, self.settings.neighbors_k),
        )
        filtered = bool(labels or relations or where)
        if not neighborhood.total and filtered:
            self._require_known_names(labels or (), relations or (), where)
        text, shown = self._explored(node, query, neighborhood, filtered)
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
            [tool] = [offered for offered in self.tools if offered.name == EXPLORE]
            raise InvalidCall(
                f"{', '.join(map(quoted, wrong))}: not taken here. The tool takes"
                f" {', '.join(tool.parameters['properties'])}."
            )

    def _explored(
        self, node: Node, query: str | None, neighborhood: Neighborhood, filtered: bool
    ) -> tuple[str, list[int]]:
        """Write what is around a node.

        Its relations are counted where they do not all stand among the neighbours
        shown: where a filter lets nothing pass, or, without one, not all are shown.
        """
        head: dict[str, Any] = {"explored": node.id, **kind_of(node)}
        if query:
            head["query"] = _brief(query)
        head |= {
            "shown": 0,
            "of": f"{neighborhood.total}+"
            if neighborhood.partial
            else neighborhood.total,
        }
        entries = neighbor_entries(node, neighborhood)
        text, shown = self._fitting(head, entries, query)
        if not neighborhood.total or (len(shown) < neighborhood.total and not filtered):
            return self._fitting(head | relation_counts(neighborhood), entries, query)
        return text, shown

    def _labels(self, names: Sequence[str]) -> frozenset[str] | None:
        return frozenset(map(bare_name, self._separate(names))) if names else None

    def _separate(self, names: Sequence[str]) -> Sequence[str]:
        if not any("," in name for name in names):
            return names
        schema = self.store.schema()
        return separate(names, {*schema.labels, *schema.relation_names})

    def _require_known_names(
        self,
        labels: Collection[str],
        relations: Collection[str],
        where: Where | None,
    ) -> None:
        """Say which of some labels, relations and properties the graph lacks."""
        schema = self.store.schema()
        problems = [
            no_such_name(kind, unknown, existing)
            for kind, names, existing in (
                ("node type", labels, schema.labels),
                ("relation", relations, schema.relation_names),
                ("property", _properties_in(where), _known_properties(schema)),
            )
            if (unknown := set(names) - set(existing))
        ]
        if problems:
            raise InvalidCall(" ".join(problems))


def as_store_error(error: Exception) -> GraphretError:
    """Return an error of a store or an index as one of graphret's."""
    return (
        error
        if isinstance(error, GraphretError)
        else StoreError(f"{type(error).__name__}: {error}")
    )


def _count(k: int, default: int) -> int:
    return min(k if k > 0 else default, MAX_K)


def _brief(query: str) -> str:
    return shortened(query, SHOWN_CHARS)


def _properties_in(where: Where | None) -> set[str]:
    """The properties that a condition names, without what is nested in them."""
    if where is None:
        return set()
    nested = {
        name for child in where.children for name in _properties_in(child)
    }  # of a combination
    key = where.field.removeprefix(PROPERTIES).partition(".")[0]
    return nested | ({key} if key and key not in _NODE_FIELDS else set())


def _known_properties(schema: GraphSchema) -> set[str]:
    """The properties that nodes have; of a large graph those seen in a sample."""
    names = {name for of_label in schema.properties.values() for name in of_label}
    return {name.removeprefix(PROPERTIES) for name in names}.difference(_NODE_FIELDS)


def _edges(
    node: Node, neighborhood: Neighborhood, shown: Sequence[int]
) -> tuple[tuple[str, str, str], ...]:
    """Return the edges between a node and those of its neighbours that are shown."""
    neighbors = [(neighborhood.nodes[i].id, neighborhood.via[i]) for i in shown]
    edges = [
        (node.id, relation, other) if outgoing else (other, relation, node.id)
        for other, via in neighbors
        for relation, outgoing, _ in via
    ]
    return tuple(dict.fromkeys(edges))
