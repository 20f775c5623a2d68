"""One benchmark for any corpus: sets of three layouts, graded gold, and the gain over
the best flat row.
"""

from __future__ import annotations

import gzip
import json
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import markdown
from rich.console import Console
from tests_support import HashingEncoder

from graphret.errors import InvalidInput
from graphret.evaluation import (
    bench_general,
    hit_at_k,
    load_multihop,
    mrr,
    paired_bootstrap,
    render,
)
from graphret.evaluation.general import SetRun, best_flat_row, measure
from graphret.evaluation.metrics import (
    GoldPart,
    graded_all_at_k,
    graded_recall_at_k,
    holders,
    mean_gain,
)
from graphret.evaluation.sets import GradedQuestion, LabelledSet, find_sets, load_set
from graphret.retriever import Retriever
from graphret.types import Hit, Node, Retrieval
from graphret.where import Where

METRICS = {
    "recall@1",
    "recall@2",
    "recall@5",
    "recall@10",
    "recall@20",
    "hit@1",
    "mrr",
    "all@8",
}

PASSAGES = {
    "Owls": "Owls hunt mice at night.",
    "Grain": "Grain is what sparrows gather in barns.",
    "Pianos": "Pianos have strings of steel.",
    "Ferries": "Ferries cross lakes.",
}
ASKED_OF_PASSAGES = [
    ("Who hunts mice at night?", ["Owls"]),
    ("strings of steel, sparrows", ["Pianos", "Grain"]),
]

OWLS = (
    "The owl of the northern forest hunts by night."
    f" {'It listens to the snow for voles. ' * 6}It nests in spruces."
)
LOOM = (
    f"A loom weaves wool. {'The weaver throws a shuttle through the warp. ' * 5}Cloth"
    " is fulled at last."
)
TIDE = (
    f"The tide rises twice a day. {'The moon pulls at the water of the ocean. ' * 5}A"
    " harbor has a gauge."
)
BREAD = (
    "Bread is baked of flour."
    f" {'The baker kneads the dough until it is smooth. ' * 5}Rye keeps longest."
)
DOCUMENTS = {"nature": f"{OWLS}\n\n{LOOM}\n\n{TIDE}", "kitchen": BREAD}

HEADER = ["River", "Country", "Length"]
ROWS = [[f"Stream{nth}", f"Land{nth}", f"{100 + nth} km"] for nth in range(23)]


def write(path: Path, value: Any) -> None:
    """Write JSON, gzipped where the name says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = json.dumps(value).encode()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)


def span(document: str, said: str) -> list[Any]:
    """The place of what a document says."""
    start = DOCUMENTS[document].index(said)
    return [document, start, start + len(said)]


def across(first: str, second: str, before: int, behind: int) -> list[Any]:
    """The span of the last characters of a paragraph of ``nature``, the break, and the
    first of the next one.
    """
    break_at = DOCUMENTS["nature"].index(f"{first}\n\n{second}") + len(first)
    return ["nature", break_at - before, break_at + 2 + behind]


def passages(folder: Path, name: str, ending: str = ".json") -> None:
    questions = [
        {
            "question": text,
            "paragraphs": [
                {"title": title, "paragraph_text": PASSAGES[title]} for title in gold
            ],
        }
        for text, gold in ASKED_OF_PASSAGES
    ]
    questions[0]["paragraphs"] += [
        {"title": "A distractor", "paragraph_text": "", "is_supporting": False}
    ]  # type: ignore
    corpus = [{"title": title, "text": text} for title, text in PASSAGES.items()]
    write(folder / f"{name}{ending}", questions)
    write(folder / f"{name}_corpus{ending}", corpus)


def documents(folder: Path, ending: str = ".json") -> None:
    questions = [
        {
            "question": (
                "Which owl nests in spruces of the northern forest, and what is wool?"
            ),
            "spans": [across(OWLS, LOOM, 30, 10)],
        },
        {
            "question": "flour dough rye, and the harbor",
            "spans": [
                span("kitchen", "Rye keeps longest."),
                span("kitchen", "longest."),
                span("nature", "harbor"),
            ],
        },
    ]
    corpus = [
        {"id": name, "title": name, "text": text} for name, text in DOCUMENTS.items()
    ]
    write(folder / f"docs{ending}", corpus)
    write(folder / f"questions.spans{ending}", questions)


def tables(folder: Path, ending: str = ".json") -> None:
    rivers = {
        "id": "rivers",
        "title": "Rivers",
        "section": "By length",
        "rows": [HEADER, *ROWS],
    }
    peaks = {
        "id": "peaks",
        "title": "Peaks",
        "rows": [["Peak"], ["Aconcagua"], ["Denali"]],
    }
    questions = [
        {"question": "How long is Stream22 in Land22?", "tables": ["rivers"]},
        {
            "question": "Aconcagua",
            "tables": ["rivers"],
        },  # its first hit holds nothing of the gold
    ]
    write(folder / f"tables{ending}", [rivers, peaks])
    write(folder / f"some.tables{ending}", questions)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHRET_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with a set of each layout, one of them gzipped, and a folder that has no
    data.
    """
    root = tmp_path / "data"
    passages(root / "birds", "birds", ".json.gz")
    documents(root / "texts")
    tables(root / "waters")
    (root / "empty").mkdir()
    (root / "empty" / "README.md").write_text("Nothing here.")
    return root


def loaded(folder: Path) -> LabelledSet:
    (files,), _ = find_sets(folder)
    return load_set(files)


# -- measures


def test_graded_measures_worked_by_hand() -> None:
    parts = [GoldPart(0.75, {"a": 0.6, "b": 0.4}), GoldPart(0.25, {"c": 1.0, "d": 1.0})]
    recall = [
        graded_recall_at_k(["x", "b", "d", "c", "a"], parts, k) for k in (1, 2, 3, 4, 5)
    ]
    assert recall == pytest.approx(
        [0, 0.3, 0.55, 0.55, 1]
    )  # c says again what d has said
    assert [graded_all_at_k(["x", "b", "d", "c", "a"], parts, k) for k in (4, 5)] == [
        0,
        1,
    ]
    assert graded_recall_at_k(["b", "b"], parts, 2) == pytest.approx(0.3)
    assert holders(parts) == {"a", "b", "c", "d"}
    assert [hit_at_k([first, "x"], holders(parts), 1) for first in "bz"] == [1, 0]
    assert mrr(["x", "d"], holders(parts)) == 0.5
    thirds = [
        GoldPart(1 / 3, dict.fromkeys(names, 0.1))
        for names in ("abcdefghij", "klmnopqrst", "uvwxyzABCD")
    ]
    assert (
        graded_all_at_k([*holders(thirds)], thirds, 30) == 1
    )  # sums of tenths and thirds are not quite 1
    with pytest.raises(InvalidInput, match="gold"):
        graded_recall_at_k(["a"], [], 1)


def test_the_mean_gain_counts_sets_alike_and_draws_within_each() -> None:
    rng = np.random.default_rng(1)
    ours, theirs = rng.random(200), rng.random(200)
    assert mean_gain([ours - theirs]) == paired_bootstrap(ours, theirs)
    assert mean_gain([np.ones(3), np.zeros(300)]) == {
        "gain": 50.0,
        "low": 50.0,
        "high": 50.0,
    }
    four = mean_gain([rng.normal(0, 0.1, 400) for _ in range(4)])
    assert four["high"] - four["low"] == pytest.approx(
        2 * 1.96 * 100 * 0.1 / 20 / 2, rel=0.15
    )
    for wrong in ([], [np.zeros(0)]):
        with pytest.raises(InvalidInput, match="differences"):
            mean_gain(wrong)


def test_the_best_flat_row_is_chosen_for_each_metric() -> None:
    values = {
        "bm25": {"recall@1": np.array([1.0, 0.0]), "mrr": np.array([1.0, 0.5])},
        "dense": {
            "recall@1": np.array([1.0, 1.0]),
            "mrr": np.array([1.0, 1.0]),
        },  # no row to gain over
        "flat": {"recall@1": np.array([0.0, 1.0]), "mrr": np.array([1.0, 0.5])},
        "hybrid": {"recall@1": np.array([0.5, 0.5]), "mrr": np.array([0.8, 0.9])},
    }
    assert best_flat_row(values, "recall@1") == "bm25"  # of those that tie the first
    run = SetRun("some", dict(values))
    assert run.best() == {"recall@1": "bm25", "mrr": "hybrid"}
    assert run.differences("flat", "recall@1").tolist() == [-1.0, 1.0]


def test_a_retriever_that_chooses_by_k_is_asked_for_each_k() -> None:
    class Moody(Retriever):
        def _retrieve(self, query: str, k: int, where: Where | None) -> Retrieval:
            ids = "gx" if k == 2 else "xg"
            return Retrieval(query, k, [Hit(Node(id_), 1.0) for id_ in ids[:k]])

    question = GradedQuestion("q?", (GoldPart(1.0, {"g": 1.0}),))
    values, _ = measure(
        Moody(), [question], [1, 2], "moody", lambda stage, done, total: None
    )
    expected = {
        "recall@1": 0.0,
        "recall@2": 1.0,
        "hit@1": 0.0,
        "mrr": 1.0,
        "all@8": 1.0,
    }
    assert {metric: value.tolist() for metric, value in values.items()} == {
        m: [v] for m, v in expected.items()
    }


# -- sets


def test_passages_are_nodes_and_gold_parts_alike(data: Path) -> None:
    birds = loaded(data / "birds")
    assert birds.name == "birds"
    assert {node.id: node.text for node in birds.nodes} == PASSAGES
    first, second = birds.questions
    assert first.gold == (GoldPart(1.0, {"Owls": 1.0}),)
    assert second.gold == (
        GoldPart(0.5, {"Grain": 1.0}),
        GoldPart(0.5, {"Pianos": 1.0}),
    )
    (same,) = load_multihop(data / "birds")
    assert [question.gold for question in same.questions] == [
        holders(q.gold) for q in birds.questions
    ]


def test_a_span_is_held_in_shares_by_the_chunks_it_runs_through(data: Path) -> None:
    texts = loaded(data / "texts")
    assert [(node.id, node.text) for node in texts.nodes] == [
        ("nature#0", OWLS),
        ("nature#1", LOOM),
        ("nature#2", TIDE),
        ("kitchen#0", BREAD),
    ]
    first, second = texts.questions
    assert first.gold == (
        GoldPart(1.0, {"nature#0": 0.75, "nature#1": 0.25}),
    )  # 30, a break that none holds, and 10
    kitchen, nature = second.gold  # 18 characters, some of them named twice, and 6
    assert kitchen == GoldPart(0.75, {"kitchen#0": 1.0})
    assert nature == GoldPart(0.25, {"nature#2": 1.0})


def test_any_segment_of_a_table_is_gold(data: Path) -> None:
    waters = loaded(data / "waters")
    segments = [node for node in waters.nodes if node.id.startswith("rivers#")]
    assert len(segments) == 3
    assert segments[0].properties["table_header"] == HEADER
    assert segments[2].properties["table_rows"][-1] == ROWS[22]
    assert waters.questions[0].gold == (
        GoldPart(1.0, dict.fromkeys(["rivers#0", "rivers#1", "rivers#2"], 1.0)),
    )


def test_a_folder_may_be_a_set_or_hold_several(data: Path) -> None:
    sets, notes = find_sets(data)
    assert [(files.name, files.layout) for files in sets] == [
        ("birds", "passages"),
        ("texts", "documents"),
        ("waters", "tables"),
    ]
    assert notes == ["empty was left out: it contains no JSON"]
    assert [files.name for files in find_sets(data, ["waters", "birds"])[0]] == [
        "birds",
        "waters",
    ]
    passages(data / "two", "first")
    passages(data / "two", "second", ".json.gz")
    write(data / "two" / "first.json.gz", "never read, since the plain file is there")
    assert [files.name for files in find_sets(data / "two")[0]] == ["first", "second"]
    assert len(load_set(find_sets(data / "two")[0][0]).questions) == 2
    write(data / "broken" / "docs.json", [])
    assert [files.name for files in find_sets(data, ["first"])[0]] == [
        "first"
    ]  # the broken one is not asked for


BAD_TABLE = [{"id": "t", "rows": [["A", "B"], ["only one"]]}]
OUTSIDE = [["kitchen", 0, 10_000]]


@pytest.mark.parametrize(
    ("file", "value", "said"),
    [
        (
            "birds/birds.json.gz",
            [
                {
                    "question": "q?",
                    "paragraphs": [{"title": "Emus", "paragraph_text": ""}],
                }
            ],
            "'Emus'",
        ),
        (
            "birds/birds.json.gz",
            [{"question": "q?", "supporting_facts": [["Emus", 0]]}],
            "question 0: .*'Emus'",
        ),
        (
            "birds/birds.json.gz",
            [{"paragraphs": []}],
            r"birds\.json\.gz, question 0: .*'question'",
        ),
        ("birds/birds.json.gz", [], r"birds\.json\.gz: expected questions"),
        ("birds/birds.json.gz", {}, "expected a list"),
        (
            "birds/birds_corpus.json.gz",
            [{"title": "A", "text": 1}],
            r"birds_corpus\.json\.gz, passage 0",
        ),
        (
            "texts/docs.json",
            [{"id": "nature"}],
            r"docs\.json, document 0: the field 'text' is missing",
        ),
        ("texts/docs.json", [], "the corpus has no document 'nature'"),
        (
            "texts/questions.spans.json",
            [{"question": "q?"}],
            r"question 0: the field 'spans' is missing",
        ),
        (
            "texts/questions.spans.json",
            [{"question": "q?", "spans": OUTSIDE}],
            "of 'kitchen', got 0 to 10000",
        ),
        (
            "texts/questions.spans.json",
            [{"question": "q?", "spans": [["gone", 0, 1]]}],
            "no document 'gone'",
        ),
        (
            "texts/questions.spans.json",
            [{"question": "q?", "spans": [["nature", 0]]}],
            r"\[id, start, end\]",
        ),
        ("waters/tables.json", BAD_TABLE, r"tables\.json, table 0: table 't': row 1"),
        (
            "waters/some.tables.json",
            [{"question": "", "tables": ["peaks"]}],
            "'question': expected a non-empty string",
        ),
        (
            "waters/some.tables.json",
            [{"question": "q?", "tables": ["seas"]}],
            "question 0: .*no table 'seas'",
        ),
        ("waters/some.tables.json", ["q?"], "question 0: expected an object"),
    ],
)
def test_what_is_malformed_is_named_with_its_set(
    data: Path, file: str, value: Any, said: str
) -> None:
    write(data / file, value)
    name = file.partition("/")[0]
    with pytest.raises(InvalidInput, match=said) as raised:
        bench_general(data, sets=[name], encoder=None)
    assert f"the set {name}: " in str(raised.value)


def test_a_folder_that_is_no_set_is_named(data: Path, tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInput, match="sets: expected some of birds, texts, waters, got 'fish'"
    ):
        find_sets(data, ["fish"])
    with pytest.raises(
        InvalidInput, match=r"empty: there is no set in it: expected NAME\.json with"
    ):
        find_sets(data / "empty")
    with pytest.raises(InvalidInput, match="expected a folder of sets"):
        find_sets(data / "nowhere")
    write(data / "half" / "docs.json", [])
    with pytest.raises(
        InvalidInput, match=r"half: there is no set in it: .*questions\.spans\.json"
    ):
        find_sets(data)
    (data / "half" / "docs.json").write_text("{")
    write(data / "half" / "questions.spans.json", [])
    with pytest.raises(InvalidInput, match=r"the set half: .*docs\.json"):
        bench_general(data, sets=["half"], encoder=None)
    for name in ("one", "two"):
        passages(tmp_path / "twins" / name, "birds")
        passages(tmp_path / "twins" / name, "fish")
    with pytest.raises(InvalidInput, match="two sets are called 'birds'"):
        find_sets(tmp_path / "twins")


# -- the benchmark


def test_figures_worked_by_hand(data: Path) -> None:
    result = bench_general(data, encoder=None)
    rows = result["rows"]
    names = ("birds", "texts", "waters")
    assert set(rows) == {
        f"{name}/{row}"
        for name in (*names, "all")
        for row in ("bm25", "hybrid", "default")
    }
    assert all(set(values) == METRICS for values in rows.values())
    expected = {
        "recall@1": 75.0,
        "recall@2": 100.0,
        "hit@1": 100.0,
        "mrr": 100.0,
        "all@8": 100.0,
    }
    assert (
        rows["birds/bm25"].items() >= expected.items()
    )  # one of one passage, and one of two
    assert (
        rows["texts/bm25"].items() >= expected.items()
    )  # 30 characters of 40, and 18 of 24
    missed = {
        "recall@1": 50.0,
        "recall@2": 100.0,
        "hit@1": 50.0,
        "mrr": 75.0,
        "all@8": 100.0,
    }
    assert rows["waters/bm25"].items() >= missed.items()
    overall = {
        "recall@1": 66.67,
        "recall@2": 100.0,
        "hit@1": 83.33,
        "mrr": 91.67,
        "all@8": 100.0,
    }
    assert rows["all/bm25"].items() >= overall.items()

    assert (
        result["counts"].items()
        >= {
            "sets": 3,
            "questions": 6,
            "nodes": 12,
            "texts/nodes": 4,
        }.items()
    )
    assert set(result["best"]) == set(names)
    assert set(result["intervals"]) == set(rows)
    for key, gains in result["intervals"].items():
        assert set(gains) == METRICS
        assert all(
            gain["low"] <= gain["gain"] <= gain["high"] for gain in gains.values()
        )
        name, _, row = key.partition("/")
        for metric, best in result["best"].get(name, {}).items():
            difference = rows[key][metric] - rows[f"{name}/{best}"][metric]
            assert gains[metric]["gain"] == pytest.approx(difference, abs=0.02)
        of_sets = [result["intervals"][f"{one}/{row}"]["mrr"]["gain"] for one in names]
        if name == "all":
            assert gains["mrr"]["gain"] == pytest.approx(sum(of_sets) / 3, abs=0.02)
    assert {"birds/load", "birds/build", "birds/query_default"} <= set(
        result["seconds"]
    )
    assert json.loads(json.dumps(result)) == result


def test_a_set_alone_with_an_encoder_has_every_row_and_draws_them(data: Path) -> None:
    stages: list[str] = []
    result = bench_general(
        data / "texts",
        k=(1, 3),
        limit=1,
        encoder=HashingEncoder(),
        progress=lambda stage, done, total: stages.append(stage),
    )
    assert list(result["rows"]) == [
        f"texts/{row}" for row in ("bm25", "dense", "flat", "hybrid", "default")
    ]
    assert result["counts"]["texts/questions"] == result["counts"]["questions"] == 1
    assert {"texts", "bm25", "default"} <= set(stages)
    assert set(result["best"]["texts"].values()) <= {"bm25", "flat", "hybrid"}
    out = StringIO()
    Console(file=out, width=80).print(render(result))
    for shown in ("texts, ", "1 questions", "recall@3", "default", "+0.0"):
        assert shown in out.getvalue()
    assert "| *default over best flat row, 95 %* |" in markdown(result)
