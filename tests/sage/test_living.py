"""A graph that changes: its edges are those of a graph that was built of everything,
with the same thresholds.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests_support import HashingEncoder, edges_of, found_anew

from graphret import Document, SageGraph, SageSettings, Table
from graphret.corpus import HeuristicMetadata, Item, MetadataExtractor
from graphret.errors import InvalidInput
from graphret.executors import LOCAL, Executor
from graphret.graphs.locations import opened as opened_store
from graphret.sage import persistence
from graphret.sage.settings import LinkSettings, SimilaritySettings
from graphret.types import Edge, Node

# Titles within titles, with brackets and commas, of everyday words and of stop words.
NAMES = [
    "Paris",
    "Rome, Italy",
    "Oslo (city)",
    "Section",
    "Next Steps",
    "New York",
    "New York City",
    "Maryland",
    "History of Maryland",
    "1911 Butler Christians football team",
    "Butler",
    "The Who",
    "東京都",
]
SENTENCES = [
    "He went to %s and back.",
    "the %s of it is here.",
    "%s is a thing.",
    "# %s",
    "and in %s they say so",
]
PEOPLE = ["Kate", "Definition", "Jules", "Section"]


def a_document(draw: random.Random, number: int) -> Document:
    said = []
    for _ in range(draw.randint(1, 6)):
        name = draw.choice(NAMES)
        said.append(
            draw.choice(SENTENCES) % (name if draw.random() < 0.6 else name.lower())
        )
    said.append(f"Seen by {draw.choice(PEOPLE)} Bram{draw.randint(0, 5)} in may.")
    given = {"aliases": [draw.choice(NAMES)]} if draw.random() < 0.1 else {}
    title = draw.choice([*NAMES, "", f"{draw.choice(NAMES)} {number}"])
    return Document(" ".join(said), id=f"d{number:03}", title=title, metadata=given)


def a_table(draw: random.Random, number: int) -> Table:
    if draw.random() < 0.4:
        rows = [[f"A-{1000 + row + 6 * number}", f"N{row}"] for row in range(6)]
        return Table(["id", "Name"], rows, id=f"t{number}", title=f"team {number}")
    rows = [
        [
            draw.choice(NAMES),
            str(1900 + draw.randint(0, 9)),
            f"A-{draw.randint(1000, 1060)}",
        ]
        for _ in range(draw.randint(1, 15))
    ]
    title = draw.choice(
        ["1911 Christians football team results", "Members of Maryland"]
    )
    header = ["Name", "Year", "team_id"]
    return Table(header, rows, id=f"t{number}", title=title, section="Results")


def items(draw: random.Random, n: int, most: int) -> dict[str, Item]:
    made = (
        a_document(draw, draw.randint(0, most))
        if draw.random() < 0.75
        else a_table(draw, draw.randint(0, most // 3))
        for _ in range(n)
    )
    return {item.id: item for item in made}


def states(
    graph: SageGraph, held: dict[str, Item], draw: random.Random, steps: int, most: int
) -> Iterator[SageGraph]:
    """Change a graph and what it holds at random, and yield it after each change."""
    for _ in range(steps):
        if draw.random() < 0.6 or len(held) < 4:
            new = items(draw, draw.choice([1, 1, 3, most // 2]), most)
            others = sorted(held.keys() - new.keys())
            same = draw.sample(others, draw.choice([0, 0, len(others) // 2]))
            graph.add([*(held[id_] for id_ in same), *new.values()])
            held.update(new)
        else:
            gone = draw.sample(sorted(held), draw.randint(1, 3))
            graph.remove(gone)
            for id_ in gone:
                del held[id_]
        yield graph


@pytest.mark.filterwarnings("ignore:the graph finds little more")
@pytest.mark.parametrize("seed", range(8))
def test_after_any_changes_the_edges_are_those_of_everything(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 3 == 0:  # nodes are read block by block, as very many are
        monkeypatch.setattr("graphret.change._MOST_HELD", 0)
    draw = random.Random(seed)
    most = (12, 30)[seed % 2]
    encoder = HashingEncoder() if seed % 4 < 2 else None
    settings = SageSettings(
        similarity=SimilaritySettings(
            percentile=draw.choice([0, 50, 90]),
            neighbors=draw.choice([1, 3]),
            entity_cap=draw.choice([4, 50]),
        ),
        # a name becomes common, and says nothing then
        links=LinkSettings(max_nodes_per_name=draw.choice([2, 50])),
    )
    held = items(draw, draw.choice([1, 4, most]), most)
    graph = SageGraph.build(held.values(), encoder=encoder, settings=settings)
    for state in states(graph, held, draw, 4, most):
        assert edges_of(state) == found_anew(state)
    graph.save(tmp_path)
    graph = SageGraph.load(tmp_path, encoder=encoder, chunker=graph.chunker)
    for state in states(graph, held, draw, 2, most):
        assert edges_of(state) == found_anew(state)
    graph.refit()
    shuffled = [held[id_] for id_ in draw.sample(sorted(held), len(held))]
    built = SageGraph.build(shuffled, encoder=encoder, settings=settings)
    assert list(graph.nodes) == list(built.nodes)
    assert edges_of(graph) == edges_of(built)
    assert graph.thresholds == built.thresholds


class OfAll:
    """Metadata that depend on more of other nodes than names."""

    corpus_wide = True

    def extract(
        self, nodes: Sequence[Node], executor: Executor = LOCAL
    ) -> list[dict[str, Any]]:
        return [{"topic": f"one of {len(nodes)}"} for _ in nodes]


@pytest.mark.parametrize(
    "metadata",
    [None, HeuristicMetadata(), HeuristicMetadata(corpus_wide=False), OfAll()],
)
def test_what_is_held_as_it_comes_stays_as_it_is(
    metadata: MetadataExtractor | None, tmp_path: Path
) -> None:
    folder = tmp_path / "graph"
    held = items(random.Random(3), 30, 40)
    SageGraph.build(held.values(), encoder=None, metadata=metadata).save(folder)
    graph = SageGraph.load(folder, encoder=None, metadata=metadata)
    state = graph.state
    graph.add(held.values())
    assert graph.state is state

    id_ = next(id_ for id_ in held if id_.startswith("d"))
    held[id_] = Document("Edited.", id=id_, title=held[id_].title)
    graph.add(held.values())
    assert edges_of(graph) == found_anew(graph)

    pieces = [
        Node(f"p{i}", ("Document",), "", text, {"source_id": f"s{i // 3}"})
        for i, text in enumerate(graph.nodes.texts)
    ]
    graph.add_nodes(pieces)
    state = graph.state
    graph.add_nodes(pieces)
    assert graph.state is state


def test_texts_that_are_held_are_neither_cut_nor_embedded_again() -> None:
    encoder = HashingEncoder()
    held = items(random.Random(5), 30, 40)
    graph = SageGraph.build(held.values(), encoder=encoder, chunker="semantic")
    encoder.encoded.clear()
    graph.add(held.values())
    assert encoder.encoded == []

    id_ = next(id_ for id_ in held if id_.startswith("d"))
    held[id_] = Document("It was. It is now.", id=id_, title="Now")
    graph.add(held.values())
    assert {"It was. It is now."} <= {*encoder.encoded}
    assert all("It is now" in text or "Now" in text for text in encoder.encoded)
    assert edges_of(graph) == found_anew(graph)


def test_a_new_item_has_edges_to_items_that_the_graph_holds() -> None:
    old = [Document("One. " * 999, id="old", title="Old"), Document("Two.", id="b")]
    graph = SageGraph.build(old, encoder=None, edges=[Edge("old", "CITES", "b")])
    edges = [Edge("new", "CITES", "old"), Edge("b", "CITES", "old#1")]
    graph.add([Document("Three.", id="new")], edges=edges)
    cites = graph.store.neighbors(["old#0", "old#1"], relations=["CITES"])
    assert sorted((edge.source, edge.target) for edge in cites) == [
        ("b#0", "old#1"),
        ("new#0", "old#0"),
        ("old#0", "b#0"),
    ]
    with pytest.raises(InvalidInput, match="'gone'"):
        graph.add([], edges=[Edge("b", "CITES", "gone")])


TEAM = "1911 Butler Christians football team"
RESULTS = Table(
    ["Opponent"], [["Wabash"], ["Butler"]], id="t", title="1911 Christians results"
)
OTHERS = [Document(f"No. {i}.", id=f"o{i}", title=f"Other {i}") for i in range(45)]


@pytest.mark.filterwarnings("ignore:the graph finds little more")
@pytest.mark.parametrize(
    ("first", "come", "relation", "before", "after"),
    [
        ([RESULTS], [Document("A team.", id="b", title=TEAM)], "MENTIONS", 0, 1),
        (
            [Document("In Paris it rained.", id="a", title="Rain")],
            [Document("A city.", id="b", title="Paris")],
            "MENTIONS",
            0,
            1,
        ),
        (  # a name that becomes common says nothing
            [Document(f"Page {i}.", id=f"b{i:02}", title="Paris") for i in range(50)]
            + [Document("In Paris it rained.", id="a", title="Rain")],
            [Document("One more.", id="b50", title="Paris")],
            "MENTIONS",
            50,
            0,
        ),
        (  # what a name is believed hangs on all links that it makes
            [
                Document("A city.", id="b", title="Paris"),
                Document(
                    "A town.", id="c", title="Paris", metadata={"aliases": ["Lutetia"]}
                ),
            ]
            + [
                Document("In Paris it rained.", id=f"a{i:02}", title=f"Rain {i}")
                for i in range(8)
            ],
            [Document("In Lutetia it snowed.", id="s", title="Snow")],
            "MENTIONS",
            16,
            17,
        ),
        (  # a word that texts come to use as a word begins no name
            [
                Document(f"They asked Section 3 of {i}.", id=f"s{i}", title=f"T {i}")
                for i in range(2)
            ],
            [
                Document("a section and a section in it.", id=f"w{i}", title=f"W {i}")
                for i in range(4)
            ],
            "SHARES_NAME",
            1,
            0,
        ),
        (  # what two texts in a hundred say is rare, in a small corpus it is not
            [
                Document(f"We met Tim Burton often in {i}.", id=f"s{i}", title=f"T {i}")
                for i in range(3)
            ],
            [
                Document(f"There is no. {i} here.", id=f"w{i}", title=f"W {i}")
                for i in range(20)
            ],
            "SHARES_NAME",
            0,
            3,
        ),
    ],
)
def test_what_comes_changes_the_links_of_what_was_there(
    first: list[Item], come: list[Item], relation: str, before: int, after: int
) -> None:
    def links(graph: SageGraph) -> int:
        assert edges_of(graph) == found_anew(graph)
        found = graph.edges.edges(graph.nodes.ids)
        return sum(edge.relation == relation for edge in found)

    graph = SageGraph.build([*first, *OTHERS], encoder=None, chunker=None)
    assert links(graph) == before
    graph.add(come)
    assert links(graph) == after
    graph.remove([item.id for item in come])
    assert links(graph) == before


@pytest.mark.filterwarnings("ignore:the graph finds little more")
def test_a_title_is_said_too_often_or_not_also_after_its_document_is_edited() -> None:
    city = Document("A city.", id="b", title="Paris")
    rain = [
        Document("In Paris it rained.", id=f"a{i:02}", title=f"Rain {i}")
        for i in range(21)
    ]
    graph = SageGraph.build([city, *rain, *OTHERS], encoder=None, chunker=None)
    for come, gone, links in (
        ([replace(city, text="An edited city.")], [], 0),
        ([], ["a00"], 20),
        ([replace(city, text="A city, edited again.")], [], 20),
        ([rain[0]], [], 0),
        ([], ["a01"], 20),
    ):
        graph.add(come)
        graph.remove(gone)
        assert edges_of(graph) == found_anew(graph)
        made = [edge["relation"] for edge in edges_of(graph)]
        assert made.count("MENTIONS") == links


@pytest.mark.filterwarnings("ignore:the graph finds little more")
def test_a_graph_that_was_built_without_names_takes_some() -> None:
    nameless = Node("n", ("Document",), "", "It rained.", {"source_id": "n"})
    graph = SageGraph.from_nodes([nameless], encoder=None, metadata=None)
    graph.add([Document("A team.", id="b", title=TEAM), RESULTS])
    assert edges_of(graph) == found_anew(graph)
    assert [edge["relation"] for edge in edges_of(graph)].count("MENTIONS") == 1


@pytest.mark.filterwarnings("ignore:the graph finds little more")
def test_given_edges_outlast_a_change_of_their_ends_and_go_with_them() -> None:
    pages = [Document(f"Page {i}.", id=f"d{i}", title=f"Page {i}") for i in range(4)]
    given = [Edge("d0", "CITES", "d1", 1.0, {"p": 1}), Edge("d2", "CITES", "d3")]
    graph = SageGraph.build(pages, encoder=None, chunker=None, edges=given)
    graph.add([Document("Altered.", id="d1", title="Page 1")])
    graph.remove(["d3"])
    cites = [edge for edge in edges_of(graph) if edge["relation"] == "CITES"]
    assert [(edge["source"], edge["target"]) for edge in cites] == [("d0", "d1")]


#: How many changes `test_after_very_many_changes` makes; none unless asked for.
CHANGES = int(os.environ.get("GRAPHRET_CHANGES", "0"))


@pytest.mark.skipif(not CHANGES, reason="GRAPHRET_CHANGES says how many")
@pytest.mark.timeout(0)
@pytest.mark.filterwarnings("ignore:the graph finds little more")
@pytest.mark.parametrize("encoder", [None, HashingEncoder()])
def test_after_very_many_changes_of_a_larger_corpus(
    encoder: HashingEncoder | None,
) -> None:
    """Enough texts that names become hubs, and postings and tables are made anew."""
    draw, most = random.Random(CHANGES), 150
    held = items(draw, most, most)
    graph = SageGraph.build(held.values(), encoder=encoder)
    for number, state in enumerate(states(graph, held, draw, CHANGES, most)):
        assert edges_of(state) == found_anew(state), f"after change {number}"


class Counting(HashingEncoder):
    """An encoder that counts the documents that it embeds."""

    embedded = 0

    def encode_documents(self, texts: list[str]) -> NDArray[np.float32]:
        self.embedded += len(texts)
        return super().encode_documents(texts)


@pytest.mark.filterwarnings("ignore:the graph finds little more")
@pytest.mark.parametrize("seed", range(4))
def test_what_changed_is_saved_beside_the_graph_and_opened_with_it(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(persistence, "ONE_IN", 1)  # half of a small graph, too
    draw, encoder = random.Random(seed), Counting() if seed % 2 else None
    held = items(draw, 30, 40)
    ids = sorted(held)
    given = [Edge(ids[0], "CITES", ids[1]), Edge(ids[2], "CITES", ids[3])]
    graph = SageGraph.build(held.values(), encoder=encoder, edges=given)
    graph.save(tmp_path)
    written = {path: path.stat().st_mtime_ns for path in tmp_path.glob("gen-*/*")}
    graph.add([], edges=[Edge(ids[1], "CITES", ids[3])])  # and no node
    graph.save(tmp_path)
    opened = SageGraph.load(tmp_path, encoder=encoder)
    assert edges_of(opened) == edges_of(graph)
    for state in states(graph, held, draw, 5, 8):
        state.save(tmp_path)
        kept = {path: path.stat().st_mtime_ns for path in written if path.exists()}
        assert kept == written, "written in whole"
        assert len([*tmp_path.glob("gen-*")]) == 2
        before = encoder.embedded if encoder else 0
        opened = SageGraph.load(tmp_path, encoder=encoder, chunker=graph.chunker)
        assert (encoder.embedded if encoder else 0) == before
        bare = SageGraph.load(tmp_path, encoder=None)
        with opened_store(str(tmp_path)) as store:
            plain = store.local_graph()
            stored = [e.to_dict() for e in plain.edges.edges(plain.nodes.ids)]
        assert edges_of(opened) == edges_of(bare) == stored == edges_of(state)
        assert [*opened.nodes] == [*bare.nodes] == [*state.nodes]
        assert opened.thresholds == state.thresholds
        question = "Who went to New York City and Maryland?"
        scores = [one.index.scores(question) for one in (opened, state)]
        np.testing.assert_allclose(*scores, rtol=1e-6)
        # What goes on from the opened graph goes on from the other.
        more = items(draw, 2, 8)
        for one in (opened, SageGraph.load(tmp_path, encoder=encoder)):
            one.chunker = graph.chunker
            one.add(more.values())
            assert edges_of(one) == found_anew(one)
    for how in ("asked for", "a file is gone"):
        if how == "a file is gone":
            next(tmp_path.glob("gen-*/*")).unlink()
            graph.add(items(draw, 1, 8).values())
        graph.save(tmp_path, whole=how == "asked for")
        assert len([*tmp_path.glob("gen-*")]) == 1
        opened = SageGraph.load(tmp_path, encoder=encoder)
        assert edges_of(opened) == edges_of(graph)


@pytest.mark.filterwarnings("ignore:the graph finds little more")
def test_a_change_that_runs_out_of_memory_leaves_the_state_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draw = random.Random(1)
    graph = SageGraph.build(items(draw, 12, 30).values(), encoder=None)
    before, edges, more = graph.state, edges_of(graph), items(draw, 6, 60).values()
    concatenate, left = np.concatenate, [0]

    def failing(*args: Any, **kwargs: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise MemoryError("there is none left")
        return concatenate(*args, **kwargs)

    monkeypatch.setattr(np, "concatenate", failing)
    fails_at = 1
    while True:
        left[0] = fails_at
        try:
            graph.add(more)
        except MemoryError:
            assert graph.state is before
            assert edges_of(graph) == edges
            fails_at += 19
        else:
            break
    left[0] = 0
    assert fails_at > 50
    assert edges_of(graph) == found_anew(graph)


class Failing(HashingEncoder):
    """An encoder that is down for a while."""

    down = False

    def encode_documents(self, texts: list[str]) -> NDArray[np.float32]:
        if self.down:
            raise ConnectionError("the model is down")
        return super().encode_documents(texts)


@pytest.mark.filterwarnings("ignore:the graph finds little more")
def test_a_change_that_fails_half_way_leaves_the_state_before() -> None:
    draw, encoder = random.Random(0), Failing()
    graph = SageGraph.build(items(draw, 12, 30).values(), encoder=encoder)
    before, edges = graph.state, edges_of(graph)
    more = items(draw, 6, 60).values()
    encoder.down = True
    with pytest.raises(ConnectionError):
        graph.add(more)
    assert graph.state is before
    assert edges_of(graph) == edges
    encoder.down = False
    graph.add(more)
    assert edges_of(graph) == found_anew(graph)
