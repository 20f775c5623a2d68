"""A model can filter by every name that it is shown: in an observation, in the prompt, in a suggestion."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from ark_graphs import lines_of
from scripted_parts import FILMS, explored

from graphret.ark import ArkSettings, Toolbox, system_prompt
from graphret.ark.closest import closest_names, no_such_name
from graphret.search import BM25Index
from graphret.stores import GraphStore, MemoryStore
from graphret.stores.ladybug import LadybugStore
from graphret.types import Edge, Node

#: Names that no two tables of a Ladybug database can have, and names that are not easily copied.
NODES = [
    Node("alien", ("Film", "Classic"), "Alien"),
    Node("heat", ("film",), "Heat"),
    Node("scott", ("Director", "film.person"), "Scott"),
    Node("hurt", ("film.person",), "Hurt"),
    Node("x", ("film_person",), "named like the table of another"),
    Node("y", (" spaced ", "-[x]->"), "Y"),
    Node("z", ("back`tick",), "Z"),
    Node("none", (), "without a label"),
]
EDGES = [
    Edge("alien", "director", "scott"),
    Edge("alien", "DIRECTOR", "hurt"),
    Edge("alien", "film.actor", "hurt"),
    Edge("alien", "film_actor", "x"),
    Edge("alien", " led by ", "y"),
    Edge("alien", "back``tick", "z"),
    Edge("alien", "-[film]->", "heat"),
    Edge("none", "Film", "alien"),
    Edge("none", "_unlabelled", "none"),
]


@pytest.fixture(scope="module", params=[MemoryStore, LadybugStore])
def store(request: pytest.FixtureRequest) -> Iterator[GraphStore]:
    if request.param is MemoryStore:
        yield MemoryStore.of(NODES, EDGES)
        return
    with LadybugStore(":memory:") as store:
        store.upsert(NODES, EDGES)
        yield store


@pytest.fixture
def tools(store: GraphStore) -> Toolbox:
    return Toolbox(store, BM25Index.build(NODES), ArkSettings(max_k=50))


def bears(node: str, label: str) -> bool:
    return any(one.id == node and label in one.labels for one in NODES)


def joined(node: str, relation: str) -> set[str]:
    found = (e for e in EDGES if e.relation == relation and node in (e.source, e.target))
    return {e.target if e.source == node else e.source for e in found}


def test_every_name_of_an_observation_is_a_filter(tools: Toolbox) -> None:
    for node in NODES:
        head, *neighbors = lines_of(tools.explore_neighborhood(node.id, k=50))
        for shown, _, count in head["relations"]:
            (found, *others) = lines_of(tools.explore_neighborhood(node.id, relation_types=[shown]))
            assert found["of"] == count == len(others), shown
            assert {tuple(one["via"]) for one in others} == {(shown,)}
            relation = re.sub(r"^<?-\[|\]->?$", "", shown)
            assert set(tools.explore_neighborhood(node.id, relation_types=[relation]).nodes) == joined(
                node.id, relation
            )
        for line in neighbors:
            for label in [line["type"]] if isinstance(line.get("type"), str) else line.get("type", []):
                found = tools.explore_neighborhood(node.id, node_types=[label])
                assert line["id"] in found.nodes
                assert all(bears(other, label) for other in found.nodes)


def test_every_name_of_the_prompt_is_a_filter(store: GraphStore, tools: Toolbox) -> None:
    schema = system_prompt(store.schema()).split("The graph (")[1]
    name = r"(`(?:[^`]|``)*`|\w+)"
    labels, relations = (set(re.findall(mark + name, schema)) for mark in (r"\(:", r"\[:"))
    assert {_bare(one) for one in labels} == {label for node in NODES for label in node.labels}
    assert {_bare(one) for one in relations} == {edge.relation for edge in EDGES}
    for shown in labels:
        for written in (shown, _bare(shown)):
            found = tools.explore_neighborhood("alien", node_types=[written])
            assert not found.failed, found.text
            assert all(bears(other, _bare(shown)) for other in found.nodes)
    for shown in relations:
        for written in (shown, _bare(shown)):
            found = tools.explore_neighborhood("alien", relation_types=[written])
            assert not found.failed, found.text
            assert set(found.nodes) == joined("alien", _bare(shown))


def _bare(shown: str) -> str:
    return shown[1:-1].replace("``", "`") if shown.startswith("`") else shown


@pytest.mark.parametrize("wrong", ["director_", "Diretor", "film person", "film_", "led", "back tick", "zzz", "_"])
def test_every_name_of_a_suggestion_is_a_filter(tools: Toolbox, wrong: str) -> None:
    for what in ("relation_types", "node_types"):
        failed = tools.run("explore_neighborhood", {"node": "alien", what: [wrong]})
        assert failed.failed
        said = json.loads(failed.text)["error"].removesuffix(". Copy names exactly as the tools show them.")
        closest = json.loads(f"[{re.split('Closest: |The node has |There are ', said)[1]}]")
        assert closest
        for name in closest:
            assert not tools.run("explore_neighborhood", {"node": "alien", what: [name]}).failed, name


def test_the_scripted_explorer_follows_relations_named_like_labels() -> None:
    films = [line.replace("directed_by", "director").split("|") for line in FILMS if line]
    films += [["Dawn", "starred_actors", f"Aaron {i}"] for i in range(200)]  # too many to see the director among them
    kinds = {"director": "Director", "starred_actors": "Actor"}
    labels = {source: "Movie" for source, _, _ in films} | {t: kinds.get(r, "Thing") for _, r, t in films}
    nodes = [Node(name, (label,), name) for name, label in labels.items()]
    with LadybugStore(":memory:") as store:
        store.upsert(nodes, [Edge(*film) for film in films])
        assert store.schema().cypher_relations == {"director": "director_"}
        tools = Toolbox(store, BM25Index.build(nodes))
        session = explored(tools, "who is the director of Dawn")
    calls = [call for message in session.messages for call in message.tool_calls if call.name == "explore_neighborhood"]
    assert any("director" in call.arguments for call in calls)
    assert session.selection == ["Ann Ames"]


def test_a_name_that_is_too_long_to_be_copied_is_not_suggested() -> None:
    assert closest_names("n" * 150, ["n" * 300, "n" * 140]) == ("n" * 140,)
    assert '"' + "n" * 300 not in no_such_name("relation", ["other"], ["n" * 300, "m"])


def test_suggestions_are_what_the_node_has_before_anything_else() -> None:
    nodes = [Node(f"n{i}", (f"Type{i}",), f"n{i}") for i in range(30)]
    edges = [Edge(f"n{i}", f"rel_{i}", f"n{i + 1}") for i in range(29)]
    store = MemoryStore.of(nodes, edges)
    toolbox = Toolbox(store, BM25Index.of_store(store))

    def refused(**asked: list[str]) -> str:
        return str(json.loads(toolbox.explore_neighborhood("n1", **asked).text)["error"])

    assert 'The node has "Type0", "Type2".' in refused(node_types=["Person"])
    assert "Closest" not in refused(node_types=["Person"])
    assert 'Closest: "rel_5", "rel_0", "rel_1".' in refused(relation_types=["rel5"])
    assert 'Closest: "rel_0", "rel_1".' in refused(relation_types=["relation"])
    alone = MemoryStore.of([Node("a", ("M",), "a"), *nodes], edges)
    apart = Toolbox(alone, BM25Index.of_store(alone)).explore_neighborhood("a", relation_types=["acted"])
    assert 'There are "rel_0", "rel_1", "rel_10"' in json.loads(apart.text)["error"]
