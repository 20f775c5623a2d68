"""Which property of a named node a question asks for, over films and trade."""

from __future__ import annotations

import pytest
from foreign_graphs import movies, northwind

from graphret import MemoryStore
from graphret.planning import PathPlanner
from graphret.types import Edge, Node

_NAMES = ("title", "productName", "companyName", "categoryName", "lastName", "name")


@pytest.fixture(scope="module")
def planner() -> PathPlanner:
    nodes: list[Node] = []
    edges: list[Edge] = []
    for graph in (movies(), northwind()):
        ids: dict[tuple[str, str, str], str] = {}
        for label, records in graph[0].items():
            for number, record in enumerate(records):
                name = next((record[key] for key in _NAMES if key in record), "")
                name = record["orderID"] if label == "Order" else name
                name = record.get("lastName", name)
                node = Node(f"{label} {number}", (label,), name, "", record)
                nodes.append(node)
                ids |= {(label, k, str(v)): node.id for k, v in record.items()}
        for source, key, relation, target, other, rows in graph[1]:
            edges += [
                Edge(ids[source, key, row[0]], relation, ids[target, other, row[1]])
                for row in rows
            ]
    return PathPlanner(MemoryStore.of(nodes, edges))


@pytest.mark.parametrize(
    ("question", "key"),
    [
        ("What is the tagline of Top Gun?", "tagline"),
        ("Give me the tagline of the movie Top Gun", "tagline"),
        ("When was Tom Hanks born?", "born"),
        ("In which year was Apollo 13 released?", "released"),
        ("What is the unit price of Ikura?", "unitPrice"),
        ("How many units of Chai are in stock?", "unitsInStock"),
        ("Who is the contact at Alfreds Futterkiste?", "contactName"),
        ("Which country is Ernst Handel in?", "country"),
        # what stands for something around it, or for others, is left to paths
        ("Who directed The Matrix?", None),
        ("Which movies were released in the same year as Top Gun?", None),
        ("Who was born in the same year as Tom Hanks?", None),
        ("When were the movies directed by Ron Howard released?", None),
        ("Which supplier supplies Chai?", None),
        ("Which employees report to Fuller?", None),
    ],
)
def test_a_question_for_a_property_is_answered_by_what_it_names(
    planner: PathPlanner, question: str, key: str | None
) -> None:
    planned = planner.plan(question)
    assert planned.plan is not None
    assert planned.details.get("property") == key
    assert bool(planned.plan.hops) == (key is None)
