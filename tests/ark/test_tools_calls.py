"""The tools' calls: what a model may write, what it gets back, and what it can never see."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from ark_graphs import HOSTILE, LABELS, RELATIONS, WORDS, graphs, lines_of, toolbox
from hypothesis import given, settings
from hypothesis import strategies as st
from tests_support import HashingEncoder

from graphret.ark import ArkSettings, Toolbox
from graphret.errors import InvalidInput, StoreUnavailable
from graphret.search import BM25Index, DenseIndex, NodeText
from graphret.stores import AsyncNeo4jStore, MemoryStore
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


@pytest.fixture
def tools() -> Toolbox:
    return toolbox(NODES, EDGES)


def test_a_search_shows_what_matches(tools: Toolbox) -> None:
    found = tools.global_search("Tom Hanks", 3)
    assert lines_of(found) == [{"found": 1, "query": "Tom Hanks"}, {"id": "Tom Hanks", "type": "person"}]
    head, line = lines_of(tools.global_search("piano"))
    assert (head["found"], line["id"], line["name"], line["type"]) == (1, "m1", "Big", "movie")
    assert "floor piano" in line["text"]
    assert len(line["text"]) <= 200


def test_an_exploration_shows_neighbours_and_counts_relations(tools: Toolbox) -> None:
    found = tools.explore_neighborhood("Tom Hanks")
    head, first, second = lines_of(found)
    assert head == {
        "explored": "Tom Hanks",
        "type": "person",
        "shown": 2,
        "of": 2,
        "relations": [["<-[starred_actors]-", "movie", 2], ["<-[produced_by]-", "movie", 1]],
    }
    assert first["via"] == ["<-[produced_by]-", "<-[starred_actors]-"]
    assert first["type"] == ["movie", "award winner"]
    assert second["id"] == "m1"
    assert found.edges == (
        ("m2", "produced_by", "Tom Hanks"),
        ("m2", "starred_actors", "Tom Hanks"),
        ("m1", "starred_actors", "Tom Hanks"),
    )


def test_an_exploration_is_ranked_filtered_and_cut(tools: Toolbox) -> None:
    ranked = tools.explore_neighborhood("Tom Hanks", "piano player", k=1)
    head, line = lines_of(ranked)
    assert (head["query"], head["shown"], head["of"], line["id"]) == ("piano player", 1, 2, "m1")
    assert ranked.total == 2
    for names in (["produced_by"], ["<-[produced_by]-"]):
        head, line = lines_of(tools.explore_neighborhood("Tom Hanks", relation_types=names))
        assert (head["of"], line["id"], line["via"]) == (1, "m2", ["<-[produced_by]-"])
        assert len(head["relations"]) == 2
    assert tools.explore_neighborhood("Tom Hanks", relation_types=["-[produced_by]->"]).total == 0
    assert tools.explore_neighborhood("m1", node_types=["person"]).total == 2


def test_what_no_index_holds_is_found_by_its_id_unless_a_view_hides_it() -> None:
    tools = toolbox([Node("m1", ("movie",), "Big", "", {"tenant": "a"}), Node("m2", ("movie",), "Up", "", {})], [])
    for box, found in ((tools, {"m1", "m2"}), (tools.view({"tenant": "a"}), {"m1"})):
        assert {node for id in ("m1", "m2") for node in box.global_search(id).nodes} == found


def test_nothing_matches(tools: Toolbox) -> None:
    answer = tools.global_search("zeppelin")
    assert (answer.nodes, answer.total, answer.failed) == ((), 0, False)
    assert lines_of(answer)[0]["found"] == 0
    assert tools.run("global_search", {"query": " "}).failed


def test_what_is_no_graph_or_no_index_is_refused(tools: Toolbox) -> None:
    with pytest.raises(InvalidInput, match="store: a GraphStore is expected, not BM25Index"):
        Toolbox(tools.index, tools.store)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="index: a TextIndex is expected, not MemoryStore"):
        Toolbox(tools.store, tools.store)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="store: AsyncNeo4jStore is awaited"):
        Toolbox(AsyncNeo4jStore.__new__(AsyncNeo4jStore), tools.index)  # type: ignore[arg-type]


def test_an_empty_graph_and_a_node_alone() -> None:
    empty = toolbox([], [])
    assert lines_of(empty.global_search("x"))[0]["found"] == 0
    assert lines_of(empty.explore_neighborhood("x"))[0]["error"].startswith('There is no node "x". Find it with')
    alone = toolbox([Node("a", ())], [])
    assert lines_of(alone.explore_neighborhood("a")) == [{"explored": "a", "shown": 0, "of": 0}]
    assert alone.explore_neighborhood("a", relation_types=["r"]).failed


def test_of_nodes_of_one_name_all_are_named() -> None:
    tools = toolbox([Node("k33", ("film",), "King Kong"), Node("k05", ("film",), "King Kong")], [])
    assert set(tools.explore_neighborhood("king kong").nodes) == {"k33", "k05"}


def test_a_number_is_taken_as_an_id() -> None:
    tools = toolbox([Node("17"), Node("18")], [Edge("17", "r", "18")])
    assert tools.run("explore_neighborhood", {"node": 17}).nodes == ("18",)


def test_arun_does_what_run_does(tools: Toolbox) -> None:
    call = ("explore_neighborhood", {"node": "Tom Hanks", "k": 1})
    assert asyncio.run(tools.arun(*call)) == tools.run(*call)


def test_the_failure_of_a_store_is_raised() -> None:
    class Gone(MemoryStore):
        def get(self, ids: Sequence[str]) -> list[Node | None]:
            raise StoreUnavailable("gone")

    store = Gone.of(NODES, EDGES)
    with pytest.raises(StoreUnavailable):
        Toolbox(store, BM25Index.of_store(MemoryStore.of(NODES))).explore_neighborhood("m1")


def test_the_text_of_a_node_is_what_is_asked_for() -> None:
    nodes = [Node("p1", ("product",), "Chair", properties={"brand": "Acme", "colour": "red"})]
    store = MemoryStore.of(nodes)
    index = BM25Index.of_store(store, text=NodeText(properties=("brand",)))
    assert lines_of(Toolbox(store, index).global_search("chair"))[1]["text"] == "brand: Acme"
    other = Toolbox(store, index, text=NodeText(properties=("colour",)))
    assert lines_of(other.global_search("chair"))[1]["text"] == "colour: red"


def test_a_dense_index_ranks_too() -> None:
    store = MemoryStore.of(NODES, EDGES)
    tools = Toolbox(store, DenseIndex.of_store(store, HashingEncoder()))
    assert tools.global_search("a man and a volleyball", 1).nodes == ("m2",)
    assert tools.explore_neighborhood("Tom Hanks", "a boy wakes up in the body of an adult").nodes == ("m1", "m2")


calls = st.fixed_dictionaries(
    {},
    optional={
        "node": st.one_of(st.sampled_from(["n0", "n1", *HOSTILE, *WORDS]), st.text(max_size=20)),
        "query": st.one_of(st.none(), st.sampled_from(WORDS), st.text(max_size=60)),
        "node_types": st.one_of(st.none(), st.text(max_size=9), st.lists(st.sampled_from(LABELS), max_size=2)),
        "relation_types": st.one_of(st.none(), st.lists(st.sampled_from(RELATIONS), max_size=2)),
        "k": st.one_of(st.none(), st.integers(), st.text(max_size=5), st.floats()),
    },
)


@given(graph=graphs(), arguments=calls, budget=st.sampled_from([200, 300, 2000]), data=st.data())
@settings(max_examples=150)
def test_whatever_is_called_every_line_is_json_within_the_budget(
    graph: tuple[list[Node], list[Edge]], arguments: dict[str, Any], budget: int, data: st.DataObject
) -> None:
    within = ArkSettings(observation_tokens=budget)
    tools = toolbox(*graph, within)
    if data.draw(st.booleans()):
        arguments["node"] = data.draw(st.sampled_from(graph[0])).id
    name = data.draw(st.sampled_from(["explore_neighborhood", "global_search"]))
    if name == "global_search":
        arguments = {key: value for key, value in arguments.items() if key in ("query", "k")}
    answer = tools.run(name, arguments)
    lines_of(answer, within)
    assert {*answer.nodes} <= {node.id for node in graph[0]}
    assert {end for edge in answer.edges for end in (edge[0], edge[2])} <= {*answer.nodes, arguments.get("node")}


anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=6,
)
keys = st.one_of(st.sampled_from(["node", "query", "k", "node_types", "relation_types"]), st.text(max_size=5))


@given(name=st.sampled_from(["explore_neighborhood", "global_search"]), arguments=st.dictionaries(keys, anything))
@settings(max_examples=200)
def test_arguments_of_any_kind_get_an_answer(name: str, arguments: dict[str, Any]) -> None:
    lines_of(toolbox(NODES, EDGES).run(name, arguments))


@given(graph=graphs(), query=st.sampled_from(WORDS), data=st.data())
@settings(max_examples=100)
def test_nothing_outside_a_view_is_shown_counted_or_suggested(
    graph: tuple[list[Node], list[Edge]], query: str, data: st.DataObject
) -> None:
    nodes, edges = graph
    text = NodeText.documents() if data.draw(st.booleans()) else None
    store = MemoryStore.of(nodes, edges)
    index = BM25Index.of_store(store, text=text)
    seen = [node for node in nodes if node.properties["tenant"] == "a"]
    ids = {node.id for node in seen}
    inside = MemoryStore.of(seen, [edge for edge in edges if edge.source in ids and edge.target in ids])
    alone = Toolbox(inside, BM25Index.of_store(inside, text=text), text=text)
    view = Toolbox(store, index, text=text).view({"tenant": "a"})
    node = data.draw(st.sampled_from(nodes)).id
    for name, arguments in (
        ("global_search", {"query": query}),
        ("explore_neighborhood", {"node": node}),
        ("explore_neighborhood", {"node": node, "query": query, "relation_types": [RELATIONS[0]]}),
        ("explore_neighborhood", {"node": node, "node_types": [LABELS[0]]}),
        ("explore_neighborhood", {"node": query}),
    ):
        assert view.run(name, arguments) == alone.run(name, arguments)


def test_an_instruction_in_a_text_stays_inside_one_string() -> None:
    nodes = [Node("a", text=text, name=f"name {text}") for text in HOSTILE[:1]]
    nodes += [Node(f"a{i} {text}", ("x",), text=f"temple {text}") for i, text in enumerate(HOSTILE)]
    tools = toolbox(nodes, [Edge("a", f"r {HOSTILE[1]}", node.id) for node in nodes[1:]])
    for answer in (tools.global_search("temple", 20), tools.explore_neighborhood("a")):
        for line in lines_of(answer)[1:]:
            assert set(line) <= {"id", "name", "type", "via", "text"}
    answer = tools.explore_neighborhood(HOSTILE[0])
    assert set(json.loads(answer.text)) == {"error"}


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
        (["m1"], "global"),
    ],
)
def test_a_call_that_cannot_be_run_says_what_to_do(tools: Toolbox, arguments: Any, said: str) -> None:
    answer = tools.run("explore_neighborhood", arguments)
    assert answer.failed
    assert said in answer.text or said == "global"
    assert answer.wrong
    lines_of(answer)


@pytest.mark.parametrize(
    "arguments",
    [
        {"k": "20"},
        {"k": 20.0},
        {"k": 0},
        {"k": 10**9},
        {"k": None, "query": None, "node_types": None, "relation_types": None},
        {"query": "  ", "node_types": [], "relation_types": ""},
        {"node_types": "movie"},
        {"node_types": '["movie"]'},
        {"node_types": [" movie ", None, ""]},
        {"node_types": ["`movie`"]},
        {"node": " Tom Hanks\n"},
        {"relation_types": ["<-[starred_actors]-"]},
    ],
)
def test_a_call_whose_meaning_is_clear_is_run(tools: Toolbox, arguments: dict[str, Any]) -> None:
    answer = tools.run("explore_neighborhood", {"node": "Tom Hanks", **arguments})
    assert not answer.failed, answer.text
    assert (answer.nodes, answer.total) == (("m2", "m1"), 2)
