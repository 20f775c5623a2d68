"""Questions for numbers over a graph of a business: plans as a capable model writes
them, by the prompt, against figures that are computed from the graph's tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias

import pytest
from spark_parts import plan, spark_of

from graphret.graphs import read_tables
from graphret.graphs.transfer import copy
from graphret.stores import LadybugStore, MemoryStore
from graphret.testing.openai_server import OpenAIServer
from graphret.types import Node

BUSINESS = Path(__file__).parent.parent / "benchmarks" / "plans" / "business"
#: The values of each row, of which there are so many in no order.
Rows: TypeAlias = list[tuple[Any, ...]]


class Business:
    """The graph, its nodes by label, and what its relations join."""

    def __init__(self) -> None:
        tables = read_tables([BUSINESS / "nodes.jsonl", BUSINESS / "edges.jsonl"])
        self.graph: MemoryStore = tables.store()

    def all(self, label: str) -> list[Node]:
        return [node for block in self.graph.nodes(labels=[label]) for node in block]

    def pairs(self, relation: str) -> list[tuple[Node, Node]]:
        nodes_by_id = {node.id: node for block in self.graph.nodes() for node in block}
        edges = [edge for block in self.graph.edges([relation]) for edge in block]
        return [(nodes_by_id[edge.source], nodes_by_id[edge.target]) for edge in edges]

    def prices(self, supplier: str) -> list[float]:
        pairs = self.pairs("SUPPLIES")
        return [to.properties["unit_price"] for by, to in pairs if by.name == supplier]

    def orders_by_country(self) -> Counter[str]:
        return Counter(by.properties["country"] for by, _ in self.pairs("PLACED"))

    def orders_by_name(self) -> Counter[str]:
        return Counter(by.name for by, _ in self.pairs("PLACED"))

    def latest(self, customer: str) -> str:
        placed = [to for by, to in self.pairs("PLACED") if by.name == customer]
        last: str = max(order.properties["order_date"] for order in placed)
        return last


QUESTIONS: dict[str, tuple[str, Callable[[Business], Rows]]] = {
    "How many products are discontinued?": (
        "MATCH (p:Product) WHERE p.discontinued = true RETURN count(p) AS number",
        lambda known: [
            (sum(one.properties["discontinued"] for one in known.all("Product")),)
        ],
    ),
    "What is the average price of the products supplied by Alpine Dairy?": (
        (
            "MATCH (s:Supplier)-[:SUPPLIES]->(p:Product) WHERE toLower(s.name) ="
            " toLower('Alpine Dairy') RETURN avg(p.unit_price) AS average_price"
        ),
        lambda known: [(fmean(known.prices("Alpine Dairy")),)],
    ),
    "The lowest and the highest price of what Alpin Dairy supplies": (
        (
            "MATCH (s:Supplier)-[:SUPPLIES]->(p:Product) WHERE toLower(s.name) ="
            " toLower('Alpin Dairy') RETURN min(p.unit_price) AS lowest,"
            " max(p.unit_price) AS highest"
        ),
        lambda known: [
            (min(known.prices("Alpine Dairy")), max(known.prices("Alpine Dairy")))
        ],
    ),
    "How many orders came from each country?": (
        (
            "MATCH (c:Customer)-[:PLACED]->(o:Order) RETURN c.country AS country,"
            " count(o) AS orders ORDER BY orders DESC"
        ),
        lambda known: list(known.orders_by_country().items()),
    ),
    "How many orders did each customer place?": (
        (
            "MATCH (c:Customer)-[:PLACED]->(o:Order) RETURN c.name AS name, count(o) AS"
            " orders"
        ),
        lambda known: list(known.orders_by_name().items()),
    ),
    "When did Casa Molina order last?": (
        (
            "MATCH (c:Customer)-[:PLACED]->(o:Order) WHERE c.name = 'Casa Molina' RETURN"
            " max(o.order_date) AS last_order"
        ),
        lambda known: [(known.latest("Casa Molina"),)],
    ),
    "What does Smoked Tea cost?": (
        "MATCH (p:Product) WHERE p.name = 'Smoked Tea' RETURN p.unit_price AS price",
        lambda known: [(8.65,)],
    ),
    "How many orders from Atlantis?": (
        (
            "MATCH (c:Customer)-[:PLACED]->(o:Order) WHERE c.country = 'Atlantis'"
            " RETURN count(o) AS orders"
        ),
        lambda known: [(0,)],
    ),
    "In which countries are suppliers?": (
        "MATCH (s:Supplier) RETURN DISTINCT s.country AS country",
        lambda known: [
            (country,)
            for country in {one.properties["country"] for one in known.all("Supplier")}
        ],
    ),
}


@pytest.fixture(scope="module")
def business() -> Business:
    return Business()


@pytest.fixture(scope="module")
def store(
    business: Business, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LadybugStore]:
    path = tmp_path_factory.mktemp("business") / "business.lbug"
    with LadybugStore(path) as database:
        copy(business.graph, database)
        yield database


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_for_a_number_is_answered_by_it(
    store: LadybugStore, business: Business, question: str
) -> None:
    query, expected = QUESTIONS[question]
    with OpenAIServer([plan(query)]) as server:
        retrieval = spark_of(store, server, on_failure="raise").retrieve(question, 10)
    rows = [tuple(row.values()) for row in retrieval.rows]
    assert rounded(rows) == rounded(expected(business))
    assert retrieval.hits[0].is_row
    assert tuple(retrieval.hits[0].node.properties.values()) == rows[0]


def rounded(rows: Rows) -> Rows:
    """Rows in one order, of which the last digits of floats do not count."""
    return sorted(
        tuple(round(value, 9) if isinstance(value, float) else value for value in row)
        for row in rows
    )
