"""The tools' calls: what a model may write, what it gets back, and what it can never see."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from ark_graphs import HOSTILE, LABELS, RELATIONS, WORDS, OnlyContract, graphs, lines_of, toolbox
from hypothesis import given, settings
from hypothesis import strategies as st
from tests_support import HashingEncoder

from graphret.ark import ArkSettings, Observation, Toolbox
from graphret.errors import InvalidInput, StoreUnavailable
from graphret.search import BM25Index, DenseIndex, NodeText
from graphret.stores import MemoryStore
from graphret.types import Edge, Node

NODES = [
    Node("Tom Hanks", ("person",), "Tom Hanks"),
    Node("m1", ("movie",), "Big", "A boy wakes up in the body of an adult. " * 9 + "He plays a floor piano."),
    Node("m2", ("movie", "award winner"), "Cast Away", "A man and a volleyball on an island."),
    Node("Penny Marshall", ("person",), "Penny Marshall"),
]
EDGES = [
    Edge("m1", "starred_actors", "Tom Hanks"),
    Edge("m2", "starred_actors", "Tom Hanks", 2.0),
    Edge("m2", "produced_by", "Tom Hanks"),
    Edge("m1", "directed_by", "Penny Marshall"),
]
TOOLS = toolbox(NODES, EDGES)


def search(query: str, tools: Toolbox = TOOLS, **arguments: Any) -> Observation:
    return tools.run("global_search", {"query": query, **arguments})


def explore(node: Any, tools: Toolbox = TOOLS, **arguments: Any) -> Observation:
    return tools.run("explore_neighborhood", {"node": node, **arguments})


def test_a_search_shows_what_matches() -> None:
    expected = [{"found": 1, "query": "Tom Hanks"}, {"id": "Tom Hanks", "type": "person"}]
    assert lines_of(search("Tom Hanks", k=3)) == expected
    head, line = lines_of(search("piano"))
    assert (head["found"], line["id"], line["name"], line["type"]) == (1, "m1", "Big", "movie")
    assert "floor piano" in line["text"]
    assert len(line["text"]) <= 200
    nothing = search("zeppelin")
    assert (nothing.nodes, nothing.total, nothing.failed) == ((), 0, False)
    assert lines_of(nothing)[0]["found"] == 0
    assert search(" ").failed


def test_an_exploration_shows_neighbours_and_counts_relations() -> None:
    found = explore("Tom Hanks")
    head, first, second = lines_of(found)
    assert head == {
        "explored": "Tom Hanks",
        "type": "person",
        "shown": 2,
        "of": 2,
        "relations": [["<-[starred_actors]-", "movie", 2], ["<-[produced_by]-", "movie", 1]],
    }
    assert first["via"] == ["<-[produced_by]-", "<-[starred_actors]-"]
    assert (first["type"], second["id"]) == (["movie", "award winner"], "m1")
    assert found.edges == (
        ("m2", "produced_by", "Tom Hanks"),
        ("m2", "starred_actors", "Tom Hanks"),
        ("m1", "starred_actors", "Tom Hanks"),
    )
    assert asyncio.run(TOOLS.arun("explore_neighborhood", {"node": "Tom Hanks"})) == found


def test_an_exploration_is_ranked_filtered_and_cut() -> None:
    ranked = explore("Tom Hanks", query="piano player", k=1)
    head, line = lines_of(ranked)
    assert (head["query"], head["shown"], head["of"], line["id"]) == ("piano player", 1, 2, "m1")
    assert ranked.total == 2
    for names in (["produced_by"], ["<-[produced_by]-"]):
        head, line = lines_of(explore("Tom Hanks", relation_types=names))
        assert (head["of"], line["id"], line["via"]) == (1, "m2", ["<-[produced_by]-"])
        assert len(head["relations"]) == 2
    assert explore("Tom Hanks", relation_types=["-[produced_by]->"]).total == 0
    assert explore("m1", node_types=["person"]).total == 2


def test_ids_and_names_that_words_do_not_find() -> None:
    tools = toolbox([Node("m1", ("movie",), "Big", "", {"tenant": "a"}), Node("m2", ("movie",), "Up")], [])
    for box, found in ((tools, {"m1", "m2"}), (tools.view({"tenant": "a"}), {"m1"})):
        assert {node for id in ("m1", "m2") for node in search(id, box).nodes} == found
    kongs = toolbox([Node("k33", ("film",), "King Kong"), Node("k05", ("film",), "King Kong")], [])
    assert set(explore("king kong", kongs).nodes) == {"k33", "k05"}  # of nodes of one name all are named
    numbers = toolbox([Node("17"), Node("18")], [Edge("17", "r", "18")])
    assert explore(17, numbers).nodes == ("18",)


def test_what_is_no_graph_or_no_index_is_refused_and_a_failing_one_raises() -> None:
    index = BM25Index.build(NODES)
    for store, given_index, said in (
        (index, MemoryStore(), "store: a GraphStore is expected, not BM25Index"),
        (MemoryStore(), MemoryStore(), "index: a TextIndex is expected, not MemoryStore"),
    ):
        with pytest.raises(InvalidInput, match=said):
            Toolbox(store, given_index)  # type: ignore[arg-type]

    class Gone(MemoryStore):
        def get(self, ids: Sequence[str]) -> list[Node | None]:
            raise StoreUnavailable("gone")

    with pytest.raises(StoreUnavailable):
        explore("m1", Toolbox(Gone.of(NODES, EDGES), index))


def test_texts_and_ranks_are_those_of_the_index_or_what_is_asked_for() -> None:
    nodes = [Node("p1", ("product",), "Chair", properties={"brand": "Acme", "colour": "red"})]
    store = MemoryStore.of(nodes)
    index = BM25Index.of_store(store, text=NodeText(properties=("brand",)))
    assert lines_of(search("chair", Toolbox(store, index)))[1]["text"] == "brand: Acme"
    other = Toolbox(store, index, text=NodeText(properties=("colour",)))
    assert lines_of(search("chair", other))[1]["text"] == "colour: red"
    films = MemoryStore.of(NODES, EDGES)
    dense = Toolbox(films, DenseIndex.of_store(films, HashingEncoder()))
    assert search("a man and a volleyball", dense, k=1).nodes == ("m2",)
    assert explore("Tom Hanks", dense, query="a boy wakes up in the body of an adult").nodes == ("m1", "m2")


names = st.one_of(st.none(), st.text(max_size=9), st.lists(st.sampled_from([*LABELS, *RELATIONS]), max_size=2))
calls = st.fixed_dictionaries(
    {},
    optional={
        "node": st.one_of(st.sampled_from(["n0", "n1", *HOSTILE, *WORDS]), st.text(max_size=20)),
        "query": st.one_of(st.none(), st.sampled_from(WORDS), st.text(max_size=60)),
        "node_types": names,
        "relation_types": names,
        "k": st.one_of(st.none(), st.integers(), st.text(max_size=5), st.floats(), st.lists(st.text(), max_size=1)),
    },
)


@given(graph=graphs(), arguments=calls, budget=st.sampled_from([500, 2000]), place=st.none() | st.integers(0, 11))
@settings(max_examples=25)
def test_whatever_is_called_every_line_is_json_within_the_budget(
    graph: tuple[list[Node], list[Edge]], arguments: dict[str, Any], budget: int, place: int | None
) -> None:
    within = ArkSettings(observation_tokens=budget)
    tools = toolbox(*graph, within)
    if place is not None:
        arguments["node"] = graph[0][place % len(graph[0])].id
    for name, given_ in (
        ("explore_neighborhood", arguments),
        ("global_search", {key: value for key, value in arguments.items() if key in ("query", "k")}),
    ):
        answer = tools.run(name, given_)
        lines_of(answer, within)
        assert {*answer.nodes} <= {node.id for node in graph[0]}
        assert {end for edge in answer.edges for end in (edge[0], edge[2])} <= {*answer.nodes, arguments.get("node")}
        assert Toolbox(OnlyContract(tools.store), tools.index, within).run(name, given_) == answer  # type: ignore[arg-type]


@given(graph=graphs(), query=st.sampled_from(WORDS), place=st.integers(0, 11), documents=st.booleans())
@settings(max_examples=25)
def test_nothing_outside_a_view_is_shown_counted_or_suggested(
    graph: tuple[list[Node], list[Edge]], query: str, place: int, documents: bool
) -> None:
    nodes, edges = graph
    text = NodeText.documents() if documents else None
    store = MemoryStore.of(nodes, edges)
    index = BM25Index.of_store(store, text=text)
    seen = [node for node in nodes if node.properties["tenant"] == "a"]
    ids = {node.id for node in seen}
    inside = MemoryStore.of(seen, [edge for edge in edges if edge.source in ids and edge.target in ids])
    alone = Toolbox(inside, BM25Index.of_store(inside, text=text), text=text)
    view = Toolbox(store, index, text=text).view({"tenant": "a"})
    node = nodes[place % len(nodes)].id
    for name, arguments in (
        ("global_search", {"query": query}),
        ("explore_neighborhood", {"node": node}),
        ("explore_neighborhood", {"node": node, "query": query, "relation_types": [RELATIONS[0]]}),
        ("explore_neighborhood", {"node": node, "node_types": [LABELS[0]]}),
        ("explore_neighborhood", {"node": query}),
    ):
        assert view.run(name, arguments) == alone.run(name, arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"node": "m3"}, "There is no node"),
        ({"node": "tom hanks"}, 'Closest: \\"Tom Hanks\\"'),
        ({"node": ["m1", "m2"]}, "valid string"),
        ({}, "Field required"),
        ({"node": "m1", "relations": ["r"]}, "It takes node, query"),
        ({"node": "m1", "k": "many"}, "valid integer"),
        ({"node": "m1", "node_types": {"a": 1}}, "valid list"),
        ({"node": "m1", "node_types": ["movies"]}, 'Closest: \\"movie\\"'),
        ({"node": "m1", "relation_types": ["directed"]}, 'Closest: \\"directed_by\\"'),
        (["m1"], "valid dictionary"),
    ],
)
def test_a_call_that_cannot_be_run_says_what_to_do(arguments: Any, said: str) -> None:
    answer = TOOLS.run("explore_neighborhood", arguments)
    assert answer.failed
    assert said in answer.text
    lines_of(answer)


def test_a_call_whose_meaning_is_clear_is_run() -> None:
    arguments: dict[str, Any]
    for arguments in (
        *({"k": k} for k in ("20", 20.0, 0, 10**9)),
        {"k": None, "query": None, "node_types": None, "relation_types": None},
        {"query": "  ", "node_types": []},
        {"node_types": "movie"},
        {"node_types": ["`movie`"]},
        {"relation_types": ["<-[starred_actors]-"]},
    ):
        answer = explore("Tom Hanks", **arguments)
        assert (answer.failed, answer.nodes, answer.total) == (False, ("m2", "m1"), 2), answer.text
