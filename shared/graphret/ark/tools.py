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
    condition,
    directions,
    meant,
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
        query = given.query.strip()[:_LONGEST_QUERY]
        labels, where = self._labels(given.node_types), condition(given.where)
        if not query and labels is None and where is None:
            raise InvalidCall(
                "A search needs a query, words that the name or the text of a node"
                " should hold, or node_types or where."
            )
        k = _count(given.k, self.settings.search_k)
        head: dict[str, Any]
        if query:
            nodes = self._found(query, k, labels, where)
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

    def _found(
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
        """Return the first nodes that pass the filters, how many do, and whether there
        may be more: no more than `CAP` are read.
        """
        nodes = chain.from_iterable(self.store.nodes(labels, where))
        read = list(islice(nodes, CAP + 1))
        return read[:k], min(len(read), CAP), len(read) > CAP

    def _explore(self, given: ExploreArguments) -> Observation:
        [node] = self.store.get([given.node])
        if node is None:
            message, named = no_such_node(self.store, self.index, given.node)
            return failure(message, named)
        labels, where = self._labels(given.node_types), condition(given.where)
        ways = self._separate(given.relation_types)
        relations = directions(ways) if ways else None
        query = given.query.strip()[:_LONGEST_QUERY] or None
        neighborhood = explore(
            self.store,
            self.index,
            node.id,
            query,
            labels=labels,
            relations=relations,
            where=where,
            k=_count(given.k, self.settings.neighbors_k),
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
            [tool] = [one for one in self.tools if one.name == EXPLORE]
            raise InvalidCall(
                f"{', '.join(map(quoted, wrong))}: not taken here. The tool takes"
                f" {', '.join(tool.parameters['properties'])}."
            )

    def _explored(
        self, node: Node, query: str | None, found: Neighborhood, filtered: bool
    ) -> tuple[str, list[int]]:
        """Write what is around a node.

        Its relations are counted where they do not all stand among the neighbours
        shown: where a filter lets nothing pass, or, without one, not all are shown.
        """
        head: dict[str, Any] = {"explored": node.id, **kind_of(node)}
        if query:
            head["query"] = _brief(query)
        head |= {"shown": 0, "of": f"{found.total}+" if found.partial else found.total}
        entries = neighbor_entries(node, found)
        text, shown = self._fitting(head, entries, query)
        if not found.total or (len(shown) < found.total and not filtered):
            return self._fitting(head | relation_counts(found), entries, query)
        return text, shown

    def _labels(self, names: Sequence[str]) -> frozenset[str] | None:
        return frozenset(map(meant, self._separate(names))) if names else None

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
        """Say which labels, relations and properties asked for the graph does not
        have.
        """
        schema = self.store.schema()
        problems = [
            no_such_name(kind, unknown, known)
            for kind, names, known in (
                ("node type", labels, schema.labels),
                ("relation", relations, schema.relation_names),
                ("property", _properties_in(where), _known_properties(schema)),
            )
            if (unknown := set(names) - set(known))
        ]
        if problems:
            raise InvalidCall(" ".join(problems))


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


def _brief(query: str) -> str:
    return shortened(query, SHOWN_CHARS)


def _properties_in(where: Where | None) -> set[str]:
    """The properties that a condition names, without what is nested in them."""
    if where is None:
        return set()
    named = {
        name for child in where.children for name in _properties_in(child)
    }  # of a combination
    own = where.field.removeprefix(PROPERTIES).partition(".")[0]
    return named | ({own} if own and own not in _NODE_FIELDS else set())


def _known_properties(schema: GraphSchema) -> set[str]:
    """The properties that nodes have; of a large graph those seen in a sample."""
    named = {name for own in schema.properties.values() for name in own}
    return {name.removeprefix(PROPERTIES) for name in named}.difference(_NODE_FIELDS)


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
