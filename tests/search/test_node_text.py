from __future__ import annotations

import json
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
    chosen = NodeText.documents(["year"], relations=["starred_actors"]).bound(store)
    assert chosen.text(FILMS[1]) == "Film 1\nAbout 1.\nyear: 2001\nstarred_actors: Bo Ray"
    only = NodeText.relation("starred_actors").bound(store)
    assert only.all_texts(FILMS[:3]) == ["starred_actors: Bo Ray, x", "starred_actors: Bo Ray", ""]
    assert only.all_fields(FILMS[1:3]) == [{"neighbors": "Bo Ray"}, {}]
    assert text.fields(ANN) == {"title": "Ann Lee", "neighbors": "Ann Lee, Bo Ray, Film 5, Film 0, Film 1"}


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


def test_settings_survive_saving_and_what_is_none_is_refused(store: MemoryStore) -> None:
    documents = NodeText.documents(["year"], relations=["r"])
    for text in (NodeText(), NodeText.names("synonyms"), documents, NodeText(only=()), documents.bound(store)):
        assert NodeText(**json.loads(json.dumps(text.to_dict()))) == text
    settings: dict[str, Any]
    for settings in ({"properties": "year"}, {"relations": "r"}, {"only": "body"}):
        with pytest.raises(InvalidInput, match=next(iter(settings))):
            NodeText(**settings)


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


@pytest.mark.parametrize("kind", ["bm25", "dense", "fields"])
def test_a_view_names_no_neighbour_outside(kind: str, encoder: Any) -> None:
    nodes = [
        Node(id, name=name, properties={"tenant": id[0]}) for id, name in (("a1", "fig"), ("a2", "kiwi"), ("b", "lime"))
    ]
    edges = [Edge("a1", "LIKES", "a2"), Edge("b", "LIKES", "a1"), Edge("a2", "LIKES", "b")]

    def made(n_nodes: int, n_edges: int) -> ArrayIndex:
        store, text = MemoryStore.of(nodes[:n_nodes], edges[:n_edges]), NodeText.documents()
        if kind == "fields":
            read = {"name": NodeText.names(), "with": NodeText.relation("LIKES")}
            return FieldIndex.of_store(store, read, encoder=encoder)
        return (
            BM25Index.of_store(store, text=text) if kind == "bm25" else DenseIndex.of_store(store, encoder, text=text)
        )

    view, alone = made(3, 3).view({"tenant": "a"}), made(2, 1)
    assert view.table.ids.tolist() == ["a1", "a2"]
    for query in ("fig", "kiwi lime", "lime"):
        assert view.score(query, ["a1", "a2"]) == pytest.approx(alone.score(query, ["a1", "a2"]), abs=1e-5)
