"""A repaired query returns the same rows as before, on random queries and databases."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import neo4j
import pytest
from generated_queries import EDGES, NODES, comparable, random_query

from graphret.cypher import run_checked
from graphret.errors import QueryRefused
from graphret.search import BM25Index
from graphret.spark import CypherStep, SparkSettings
from graphret.spark.step import StepContext
from graphret.stores import CypherStore
from graphret.stores.ladybug import LadybugStore
from graphret.stores.neo4j import Neo4jStore

#: So many seeds in turn; two thousand were run once.
_QUERIES = 20


@pytest.fixture(scope="module")
def papers() -> Iterator[LadybugStore]:
    with LadybugStore(":memory:") as store:
        store.upsert(NODES, EDGES)
        yield store


def context_of(store: CypherStore) -> StepContext:
    return StepContext(
        store, BM25Index.of_store(store), store.schema(), SparkSettings()
    )


def differences(
    original: CypherStore, repaired: CypherStore, seeds: range
) -> tuple[list[str], int]:
    """The queries whose repaired rows differ, and how many could be compared."""
    context, known = context_of(repaired), original.schema()
    different, compared = list[str](), 0
    for seed in seeds:
        query = random_query(Random(seed))
        rows = run_checked(original, query, schema=known)
        if not rows.rows:
            continue  # a query that finds nothing may be loosened
        try:
            result = CypherStep(cypher=query).check(context).rows(context, {})
        except QueryRefused:
            continue
        compared += 1
        n = len(rows.columns)
        before = comparable(rows.rows, n, query)
        if before != comparable(result.rows.rows, n, query):
            different.append(f"{query} -> {result.query.query}")
    return different, compared


def test_repairs_change_no_meaning(papers: LadybugStore) -> None:
    different, compared = differences(papers, papers, range(_QUERIES))
    assert different == []
    assert compared > _QUERIES * 0.7


@pytest.mark.neo4j
def test_a_query_means_the_same_on_both_databases(
    papers: LadybugStore, neo4j_module: neo4j.Driver
) -> None:
    store = Neo4jStore.from_driver(neo4j_module)
    store.upsert(NODES, EDGES)
    for repaired in (papers, store):
        different, compared = differences(store, repaired, range(_QUERIES))
        assert different == []
        assert compared > _QUERIES * 0.7
