from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from graphret.errors import InvalidInput
from graphret.search import BM25Index, DenseIndex, FieldIndex, NodeText
from graphret.search.arrays import ArrayIndex
from graphret.stores import MemoryStore
from graphret.types import Edge, Node

FILMS = [Node(f"f{i}", ("Film",), f"Film {i}", f"About {i}.", {"year": 2000 + i}) for i in range(8)]
ANN = Node("ann", ("Person",), "Ann Lee")
NODES = [*FILMS, ANN, Node("bo", ("Person",), "Bo Ray"), Node("x", ("Person",))]
EDGES = [
    *(Edge(film.id, "directed_by", "ann", weight=float(i == 5)) for i, film in enumerate(FILMS)),
    Edge("f0", "starred_actors", "bo"),
    Edge("f0", "starred_actors", "x"),
    Edge("f1", "starred_actors", "bo"),
    Edge("ann", "knows", "bo"),
    Edge("ann", "knows", "ann"),
]


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore.of(NODES, EDGES)


def test_neighbours_are_named_by_relation_and_direction(store: MemoryStore) -> None:
    text = NodeText.documents(neighbors=3).bound(store)
    assert text.text(ANN) == ("Ann Lee\nknows: Ann Lee, Bo Ray\ndirected_by of: Film 5, Film 0, Film 1, and 5 more")
    assert text.text(FILMS[0]) == "Film 0\nAbout 0.\ndirected_by: Ann Lee\nstarred_actors: Bo Ray, x"
    assert text.fields(ANN) == {"title": "Ann Lee", "neighbors": "Ann Lee, Bo Ray, Film 5, Film 0, Film 1"}


def test_properties_come_before_neighbours(store: MemoryStore) -> None:
    text = NodeText.documents(["year"], relations=["starred_actors"]).bound(store)
    assert text.text(FILMS[1]) == "Film 1\nAbout 1.\nyear: 2001\nstarred_actors: Bo Ray"


def test_one_relation_alone(store: MemoryStore) -> None:
    only = NodeText.relation("starred_actors").bound(store)
    assert only.all_texts(FILMS[:3]) == ["starred_actors: Bo Ray, x", "starred_actors: Bo Ray", ""]
    assert only.all_fields(FILMS[:3]) == [{"neighbors": "Bo Ray, x"}, {"neighbors": "Bo Ray"}, {}]


def test_a_text_that_is_too_long_keeps_some_neighbours(store: MemoryStore) -> None:
    node = Node("f0", name="Film 0", text="word " * 1000)
    text = NodeText.documents(max_chars=100).bound(store).text(node)
    assert len(text) == 100
    assert text.startswith("Film 0\nword")
    assert text.endswith("\ndirected_by: Ann Lee\nstarred_actors: Bo Ray, x")
    many = NodeText.documents(neighbors=8, max_chars=40).bound(store).text(Node("ann", name="Ann " * 30))
    assert len(many) == 40
    assert "knows" in many


def test_without_a_store_neighbours_cannot_be_read() -> None:
    for read in (NodeText.documents().text, NodeText.documents().fields, NodeText.relation("r").text):
        with pytest.raises(InvalidInput, match="bound"):
            read(ANN)
    plain = NodeText()
    assert plain.bound(MemoryStore()) is plain


def test_one_field_and_names_alone() -> None:
    node = Node("n", name="Ann", text="Says.", properties={"aliases": ["Annie"], "brand": ["A", "B"]})
    assert NodeText.names().fields(node) == {"title": "Ann", "aliases": "Annie"}
    assert NodeText.names().text(node) == "Ann"
    assert NodeText.one_field("body").fields(node) == {"body": "Says."}
    assert NodeText.one_field("brand").text(node) == "A B"
    assert NodeText.one_field("colour").fields(node) == {}


@pytest.mark.parametrize(
    "text",
    [
        NodeText(),
        NodeText.names(),
        NodeText.documents(["year"], relations=["r"]),
        NodeText(only=()),
        NodeText.names("synonyms"),
    ],
)
def test_settings_survive_saving(text: NodeText) -> None:
    assert NodeText(**json.loads(json.dumps(text.to_dict()))) == text
    assert "neighbors" not in NodeText().to_dict()


@pytest.mark.parametrize("settings", [{"properties": "year"}, {"relations": "r"}, {"only": "body"}])
def test_settings_that_are_none_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(settings))):
        NodeText(**settings)
    with pytest.raises(InvalidInput, match="properties"):
        NodeText.documents("year")


def test_a_property_never_takes_the_place_of_a_field_of_the_node() -> None:
    given = {"title": "Prop", "body": "Other", "neighbors": "Next", "x": 0, "sequel": False, "none": None, "list": []}
    node = Node("n", ("F",), "Solaris", "ocean", given)
    text = NodeText(properties=tuple(given))
    assert text.fields(node) == {
        "title": "Solaris",
        "body": "ocean",
        "properties.title": "Prop",
        "properties.body": "Other",
        "properties.neighbors": "Next",
        "x": "0",
        "sequel": "False",
    }
    assert text.text(node) == "Solaris\nocean\ntitle: Prop\nbody: Other\nneighbors: Next\nx: 0\nsequel: False"
    index = BM25Index.build([node, ANN], text=text)
    assert all(index.score(word, ["n"])[0] > 0 for word in ("solaris", "ocean", "prop", "other"))


MAKERS: dict[str, Callable[[Any, Any], ArrayIndex]] = {
    "bm25": lambda store, _: BM25Index.of_store(store, text=NodeText.documents()),
    "dense": lambda store, encoder: DenseIndex.of_store(store, encoder, text=NodeText.documents()),
    "fields": lambda store, encoder: FieldIndex.of_store(
        store, {"name": NodeText.names(), "with": NodeText.relation("LIKES")}, encoder=encoder
    ),
}


def random_graph(seed: int) -> tuple[list[Node], list[Edge]]:
    rng = random.Random(seed)
    words = ["fig", "kiwi", "lime", "plum"]
    nodes = [
        Node(f"n{i:02d}", (rng.choice("AB"),), " ".join(rng.choices(words, k=2)), "", {"tenant": rng.choice("ab")})
        for i in range(30)
    ]
    ends = [(rng.choice(nodes).id, rng.choice(nodes).id) for _ in range(60)]
    return nodes, [Edge(a, rng.choice(["LIKES", "KNOWS"]), b, rng.choice([0.5, 1.0])) for a, b in dict.fromkeys(ends)]


def scores(index: ArrayIndex, ids: list[str]) -> Iterator[Any]:
    for query in ("fig", "kiwi lime", "plum"):
        yield pytest.approx(index.score(query, ids), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_view_names_no_neighbour_outside(make: Any, encoder: Any) -> None:
    nodes, edges = random_graph(1)
    store = MemoryStore.of(nodes, edges)
    view = make(store, encoder).view({"tenant": "a"})
    seen = [node.id for node in nodes if node.properties["tenant"] == "a"]
    alone = make(MemoryStore.of(*_among(nodes, edges, set(seen))), encoder)
    assert view.table.ids.tolist() == seen
    assert [p.expected.tolist() for p in scores(view, seen)] == list(scores(alone, seen))


def _among(nodes: list[Node], edges: list[Edge], ids: set[str]) -> tuple[list[Node], list[Edge]]:
    return [n for n in nodes if n.id in ids], [e for e in edges if {e.source, e.target} <= ids]
