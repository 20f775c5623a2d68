from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from similarity_helpers import HashEncoder, added, as_set, document, record, removed, table

from graphret.errors import CorruptIndex, InvalidInput
from graphret.nodes import NodeTable
from graphret.sage.settings import SimilaritySettings, Thresholds
from graphret.sage.similarity_index import SimilarityIndex
from graphret.storage import load, save
from graphret.types import Edge, Node

WORDS = ["red", "blue", "green", "cat", "dog", "fox"]
NAMES = ["Paris", "Rome", "Oslo", "Bern"]

phrase = st.lists(st.sampled_from(WORDS), min_size=0, max_size=4).map(" ".join)
names = st.lists(st.sampled_from(NAMES), max_size=3)


@st.composite
def any_node(draw: Any) -> Node:
    id_ = f"n{draw(st.integers(0, 30)):02d}"
    kind = draw(st.sampled_from("ddttr"))
    source = {"source_id": f"s{draw(st.integers(0, 4))}", "chunk_index": draw(st.integers(0, 9))}
    entities = draw(names)
    if kind == "d":
        triples = [[draw(phrase), "is", draw(phrase)]] if draw(st.booleans()) else []
        return document(id_, draw(phrase), draw(phrase), entities, relationships=triples, events=draw(names), **source)
    if kind == "t":
        rows = draw(st.lists(st.lists(st.sampled_from([*NAMES, "1"]), min_size=2, max_size=2), max_size=3))
        header = [draw(st.sampled_from(WORDS)), draw(st.sampled_from(WORDS))]
        return table(id_, draw(phrase), header, rows, entities, description=draw(phrase), **source)
    return record(id_, draw(phrase), draw(phrase), entities)


corpora = st.lists(any_node(), min_size=1, max_size=25, unique_by=lambda node: node.id)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    first=corpora,
    more=corpora,
    gone=st.sets(st.integers(0, 30), max_size=6),
    logic=st.sampled_from(["or", "and"]),
    percentile=st.sampled_from([0.0, 50.0, 95.0]),
    with_encoder=st.booleans(),
)
def test_changing_equals_rebuilding(
    first: list[Node], more: list[Node], gone: set[int], logic: Any, percentile: float, with_encoder: bool
) -> None:
    options = SimilaritySettings(percentile=percentile, logic=logic, neighbors=3, entity_cap=6)
    encoder = HashEncoder() if with_encoder else None
    built = SimilarityIndex.build(NodeTable.of(first), encoder, options)
    changed = removed(added(built, more), [f"n{i:02d}" for i in gone])
    rebuilt = SimilarityIndex.build(changed.nodes, encoder, options, thresholds=changed.thresholds)
    assert {n.id for n in changed.nodes} == {n.id for n in [*first, *more]} - {f"n{i:02d}" for i in gone}
    for key, expected in rebuilt.tables.items():
        np.testing.assert_array_equal(changed.tables[key].positions, expected.positions)
        np.testing.assert_array_equal(changed.tables[key].similarities, expected.similarities)
    assert changed.thresholds == rebuilt.thresholds
    assert as_set(changed.edges(), changed.nodes) == as_set(rebuilt.edges(), rebuilt.nodes)
    for key, value in built.thresholds.items():
        assert changed.thresholds[key] == value


def corpus() -> list[Node]:
    return [
        document("a#0", "red cat sat", "red cat", ["Paris"], source_id="a", chunk_index=0),
        document("a#1", "red cat ran", "red dog", ["Rome"], source_id="a", chunk_index=1),
        document("b#0", "blue fox sat", "blue fox", ["Paris"], source_id="b", chunk_index=0),
        table("t#0", "red cat", ["city", "cat"], [["Oslo", "1"], ["Paris", "2"]], ["Paris", "Oslo"], description="cat"),
        table("u#0", "red fox", ["City", "fox"], [["Oslo", "1"], ["Paris", "2"]], ["Oslo", "Paris"], description="cat"),
        record("r1", "red cat", "a red cat", ["Bern"]),
        record("r2", "red cat", "a red dog", ["Bern"]),
    ]


def test_all_texts_are_embedded_once_in_one_call() -> None:
    encoder = HashEncoder()
    SimilarityIndex.build(corpus(), encoder)
    assert encoder.calls == 1
    assert len(encoder.texts) == len(set(encoder.texts))
    added(SimilarityIndex.build(corpus(), encoder), [document("c", "red cat sat", "green", ())])
    assert encoder.texts[-1] == "green"
    assert encoder.calls == 3


def test_content_vectors_are_used_as_given() -> None:
    nodes = NodeTable.of(corpus())
    encoder = HashEncoder()
    contents = encoder.encode_documents([node.text for node in nodes])
    encoder.texts.clear()
    with_given = SimilarityIndex.build(nodes, encoder, content_vectors=contents)
    assert not set(encoder.texts) & {"red cat sat", "red cat ran", "blue fox sat"}
    alone = SimilarityIndex.build(nodes, None, content_vectors=contents)
    assert {name for _, name in alone.thresholds} == {
        "content_similarity",
        "description_similarity",
        "entity_count",
        "entity_rarity",
    }
    more = added(with_given, [document("c", "red cat sat"), document("d", "blue")], contents[:2])
    side = more.vectors.index["content"]
    assert side[more.nodes.find(["c"])[0]] == side[more.nodes.find(["a#0"])[0]]
    with pytest.raises(InvalidInput, match="content_vectors"):
        SimilarityIndex.build(nodes, encoder, content_vectors=contents[:2])


def test_without_an_encoder_there_are_names_and_structure() -> None:
    index = SimilarityIndex.build(corpus(), None, SimilaritySettings(percentile=0))
    edges = index.edges([Edge("r1", "BOUGHT_WITH", "r2", 0.5, {"n": 3})])
    assert edges.relations == ["BOUGHT_WITH", "NEXT", "SAME_SOURCE", "SHARES_ENTITY"]
    found = [e for e in edges.edges(index.nodes.ids) if e.relation == "SHARES_ENTITY"]
    assert ("a#0", "t#0") in {(e.source, e.target) for e in found}
    edge = next(e for e in found if (e.source, e.target) == ("a#0", "t#0"))
    assert edge.properties == {"entities": ["Paris"], "count": 1, "column": "city", "target_row": 1}
    explicit = next(e for e in edges.edges(index.nodes.ids) if e.relation == "BOUGHT_WITH")
    assert (explicit.weight, dict(explicit.properties)) == (0.5, {"n": 3})


def test_similar_tables_name_the_columns_they_can_be_joined_by() -> None:
    index = SimilarityIndex.build(corpus(), HashEncoder(), SimilaritySettings(percentile=0))
    edge = next(e for e in index.edges().edges(index.nodes.ids) if {e.source, e.target} == {"t#0", "u#0"})
    assert edge.relation == "IS_SIMILAR"
    assert edge.properties["columns"] == [["city", "City"]]
    assert edge.properties["shared_entities"] == ["Oslo", "Paris"]
    assert set(edge.properties["signals"]) == {
        "column_similarity",
        "title_similarity",
        "description_similarity",
        "entity_count",
    }
    assert edge.weight == pytest.approx(1.0)


def test_one_edge_a_pair_from_low_to_high() -> None:
    edges = SimilarityIndex.build(corpus(), HashEncoder(), SimilaritySettings(percentile=0)).edges()
    for name in ("IS_SIMILAR", "SHARES_ENTITY", "SAME_SOURCE"):
        chosen = edges.relation == edges.relations.index(name)
        pairs = list(zip(edges.source[chosen].tolist(), edges.target[chosen].tolist(), strict=True))
        assert len(pairs) == len(set(pairs))
        assert all(low < high for low, high in pairs)


def test_saved_and_opened(tmp_path: Path) -> None:
    encoder = HashEncoder()
    index = SimilarityIndex.build(corpus(), encoder)
    save(tmp_path / "index", index.parts(), kind="similarity", version=1)
    bundle = load(tmp_path / "index", kind="similarity", version=1)
    opened = SimilarityIndex.from_bundle(bundle, index.nodes, encoder)
    assert opened.settings == index.settings
    assert as_set(opened.edges(), opened.nodes) == as_set(index.edges(), index.nodes)
    more = [document("z", "red fox ran", "red")]
    assert as_set(added(opened, more).edges(), opened.nodes.changed(more)) == as_set(
        added(index, more).edges(), index.nodes.changed(more)
    )
    bare = SimilarityIndex.from_bundle(bundle, index.nodes)
    with pytest.raises(InvalidInput, match="encoder"):
        added(bare, more)
    assert len(removed(bare, ["a#0"]).nodes) == len(index.nodes) - 1
    with pytest.raises(CorruptIndex, match="other nodes"):
        SimilarityIndex.from_bundle(bundle, NodeTable.of(more))


def test_refit_fits_to_the_nodes_there_are() -> None:
    index = SimilarityIndex.build(corpus(), HashEncoder(), SimilaritySettings(percentile=50))
    grown = added(index, [document(f"x{i}", f"green {w}", w) for i, w in enumerate(WORDS)])
    refit = grown.refit()
    assert refit.thresholds == SimilarityIndex.build(grown.nodes, HashEncoder(), index.settings).thresholds
    assert refit.thresholds != grown.thresholds
    assert Thresholds.from_dict(refit.thresholds.to_dict()) == refit.thresholds


def test_pairs_of_one_source_can_be_left_to_structure() -> None:
    options = SimilaritySettings(percentile=0, within_source=False)
    edges = SimilarityIndex.build(corpus(), HashEncoder(), options).edges()
    ids = NodeTable.of(corpus()).ids
    assert ("a#0", "a#1") not in {(e.source, e.target) for e in edges.edges(ids) if e.relation == "IS_SIMILAR"}


def test_nothing_at_all() -> None:
    index = SimilarityIndex.build([], HashEncoder())
    assert len(index.edges()) == 0
    assert len(added(index, corpus()).edges()) > 0
    assert len(removed(added(index, corpus()), [n.id for n in corpus()]).edges()) == 0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"percentile": 101}, "percentile"),
        ({"logic": "xor"}, "logic"),
        ({"neighbors": 0}, "neighbors"),
        ({"signals": {"table-table": ("speed",)}}, "speed"),
        ({"signals": {"table-chair": ()}}, "table-chair"),
    ],
)
def test_settings_are_checked(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        SimilaritySettings(**values)
