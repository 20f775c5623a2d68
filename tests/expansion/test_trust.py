"""How much links count: in full where a question needs them, not at all where one node
says it.
"""

from __future__ import annotations

import pytest
from expand_parts import filler, parts

from graphret.corpus import Document, Table
from graphret.expansion import Coverage, Expand
from graphret.index_retriever import IndexRetriever
from graphret.sage import SageGraph
from graphret.types import Edge, Node, Retrieval

NODES = [
    Node(
        "film",
        name="The Lost Mirror",
        text="The Lost Mirror is a drama that Ada Quill directed.",
    ),
    Node(
        "quill", name="Ada Quill", text="Ada Quill was born in a village near Bergen."
    ),
    Node(
        "guide",
        name="Handbook",
        text="Restart the worker pool after changing the queue settings.",
    ),
    Node("menu", name="Examples", text="Settings of colors and of sounds."),
    *filler(),
]
EDGES = [Edge("film", "MENTIONS", "quill"), Edge("guide", "MENTIONS", "menu")]


def _answer(question: str) -> tuple[Retrieval, float]:
    store, index = parts(NODES, EDGES)
    answer = Expand(None, store, index, ranking=Coverage()).retrieve(
        question, len(NODES)
    )
    return answer, answer.trace.stages[-1].details["trust"]


def test_a_question_that_names_what_is_linked_is_answered_by_links() -> None:
    answer, trust = _answer(
        "Near which village was the director of The Lost Mirror born?"
    )
    assert trust > 0.5
    assert set(answer.ids[:2]) == {"film", "quill"}
    assert any(
        evidence.relation == "MENTIONS"
        for hit in answer.hits[:2]
        for evidence in hit.evidence
    )


@pytest.mark.parametrize(
    ("question", "is_named"),
    [
        ("Which drama is The Lost Mirror?", True),
        ("Which drama is the lost Mirror?", True),
        ("Which drama is about the lost mirror?", False),
        ("which drama is the lost mirror?", True),  # nobody can tell
    ],
)
def test_a_name_written_in_lower_case_may_be_none(
    question: str, is_named: bool
) -> None:
    _, trust = _answer(question)
    assert (trust > 0) == is_named


@pytest.mark.parametrize(
    "question",
    ["How do I restart the worker pool?", "after changing the queue settings"],
)
def test_what_one_node_says_is_answered_by_hybrid_search_alone(question: str) -> None:
    answer, trust = _answer(question)
    _, index = parts(NODES, EDGES)
    assert trust == 0
    assert "hybrid search alone" in answer.trace.stages[-1].details["answered_by"]
    flat = IndexRetriever(index).retrieve(question, len(NODES))
    assert answer.ids == flat.ids
    assert [hit.score for hit in answer] == pytest.approx([hit.score for hit in flat])


def test_a_row_of_a_table_that_says_nearly_as_much_as_the_best_pair_is_enough() -> None:
    ferries = Table(
        ("Ferry", "Operator", "Built"),
        (
            ("Oslo Star", "Nordic Lines", "1962"),
            ("Mistral", "Gulf Lines", "1988"),
            ("Tern", "Fjord Union", "1975"),
        ),
        title="Ferries of the coast",
    )
    pages = {
        "Nordic Lines": "Nordic Lines is a shipping company that built much.",
        # Together these two say more of the question than the row and what it names.
        "Coast guide": "See the Port almanac: its northern operator had headquarters"
        " for a ferry in 1962.",
        "Port almanac": "The almanac of the port: in 1962 the town built an operator a"
        " ferry.",
        "Travel column": "A column: the town built a ferry in 1962.",
        **{f"Note {i}": f"A sentence about gardens {i}." for i in range(6)},
    }
    documents = [Document(text, title=title) for title, text in pages.items()]
    graph = SageGraph.build([ferries, *documents], encoder=None)

    answer = graph.retriever().retrieve(
        "In which town has the operator of the northern ferry built in 1962 its"
        " headquarters?",
        4,
    )

    assert answer.trace.stages[-1].details["trust"] > 0
    assert answer.hits[0].node.name == "Ferries of the coast"
    assert "Nordic Lines" in [hit.node.name for hit in answer]
