"""SPARK: plans read from any reply, and run over both databases."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import neo4j
import pytest
from spark_parts import EDGES, NODES, plan, spark_of

from graphret.errors import InvalidInput, RetrievalFailed
from graphret.expansion import Expand
from graphret.index_retriever import IndexRetriever
from graphret.llm import OpenAIChat
from graphret.rerank import Rerank
from graphret.retriever import Fallback, Fuse
from graphret.schema.text import estimate_tokens
from graphret.search import BM25Index
from graphret.spark import Spark
from graphret.spark.plan import read_plan
from graphret.stores import CypherStore, MemoryStore
from graphret.stores.ladybug import LadybugStore
from graphret.stores.neo4j import Neo4jStore
from graphret.testing.openai_server import OpenAIServer, cut, status, text
from graphret.types import Edge, Node, Retrieval


@pytest.fixture(scope="module")
def ladybug(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CypherStore]:
    with LadybugStore(tmp_path_factory.mktemp("papers") / "papers.lbug") as store:
        store.upsert(NODES, EDGES)
        yield store


@pytest.fixture(
    scope="module", params=["ladybug", pytest.param("neo4j", marks=pytest.mark.neo4j)]
)
def store(request: pytest.FixtureRequest) -> CypherStore:
    if request.param == "ladybug":
        return request.getfixturevalue("ladybug")
    driver: neo4j.Driver = request.getfixturevalue("neo4j_module")
    store = Neo4jStore.from_driver(driver)
    store.upsert(NODES, EDGES)
    return store


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CypherStore]:
    """Two films by people of several roles, of which Ladybug's queries know one."""
    from graphret.stores.ladybug import LadybugStore

    nodes = [
        Node("f0", ("Film",), "Dawn", properties={"year": 1999, "genre": "Drama"}),
        Node("f1", ("Film",), "Dusk", properties={"year": 2001, "genre": "Comedy"}),
        Node("dee", ("Director",), "Dee Dahl"),
        Node("wil", ("Writer",), "Wil Wood"),
    ]
    edges = [
        Edge("f0", "WRITTEN_BY", "dee"),
        Edge("f0", "DIRECTED_BY", "dee"),
        Edge("f1", "WRITTEN_BY", "wil"),
    ]
    path = tmp_path_factory.mktemp("films") / "films.lbug"
    with LadybugStore(path) as store:
        store.upsert(nodes, edges)
        yield store


QUERY = "MATCH (p:Paper)\nRETURN p"


@pytest.mark.parametrize(
    "reply",
    [
        plan(QUERY),
        f"Here is the plan:\n```json\n{plan(QUERY)}\n```\nIt returns papers.",
        (
            "<think>Shall I write MATCH (n) RETURN"
            f" n?</think>{plan(QUERY)}<|im_end|>\n<|im_start|>user"
        ),
        f"so I should</think>\n{QUERY}",
        f"Sure!\n```cypher\n{QUERY};\n```\nor:\n```\nMATCH (q) RETURN q\n```",
        f"{QUERY}\n\nThis query finds all papers.",
        f"{QUERY};\nMATCH (q) RETURN q;</s>",
        plan(f"```cypher\n{QUERY}\n```"),
        f'{{"steps": [{{"cypher": "{QUERY}"}}], "why": "asked"}}'.replace("\n", "\\n"),
    ],
)
def test_the_query_is_found_and_the_chatter_is_not_run(reply: str) -> None:
    spark_plan, problem = read_plan(reply, 4)
    assert spark_plan is not None, problem
    assert [step.cypher for step in spark_plan.steps] == [QUERY]


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "I cannot.",
        "<think>MATCH (n) RETURN n",
        "{}",
        '{"steps": []}',
        '{"steps": [{"text": ""}]}',
        "Match the papers.",
    ],
)
def test_what_is_no_plan_is_said(reply: str) -> None:
    assert read_plan(reply, 4) == (None, read_plan(reply, 4)[1])
    assert read_plan(reply, 4)[1]


def test_paragraphs_of_a_query_belong_to_it_and_steps_are_bounded() -> None:
    query = "MATCH (p:Paper)\n\nWHERE p.name = 'a; b'\n\nRETURN p"
    spark_plan, _ = read_plan(f"{query}\n\nNote that it is slow.", 4)
    assert spark_plan is not None
    assert spark_plan.steps[0].cypher == query.replace("\n\n", "\n")
    spark_plan, _ = read_plan(plan(*[QUERY] * 9), 4)
    assert spark_plan is not None
    assert len(spark_plan.steps) == 4


BY_ADA = "MATCH (a:Author)-[:WROTE]->(p:Paper) WHERE a.name = 'Ada Ames' RETURN p"


def ask(
    store: CypherStore,
    *replies: Any,
    k: int = 3,
    question: str = "papers by Ada Ames",
    **options: Any,
) -> Retrieval:
    with OpenAIServer(list(replies)) as server:
        return spark_of(store, server, **options).retrieve(question, k)


def test_a_plan_finds_the_answer_and_says_how(store: CypherStore) -> None:
    retrieval = ask(store, plan(f"{BY_ADA} ORDER BY p.year DESC"))
    assert retrieval.ids == ["p6", "p3", "p0"]
    [why] = retrieval.hits[0].evidence
    assert (why.kind, why.rank, why.properties["row"]) == (
        "query",
        1,
        {"p": "Graph Retrieval 6"},
    )
    assert "ORDER BY p.year DESC" in why.properties["cypher"]
    assert retrieval.signals.walked_edges
    assert retrieval.signals.answer_labels == ("Paper",)
    assert retrieval.signals.plan_valid
    assert not retrieval.trace.fallbacks


def test_a_plan_may_be_a_search_alone(store: CypherStore) -> None:
    retrieval = ask(
        store, plan({"text": "folding", "label": "Paper", "k": 2}), fill=False
    )
    assert len(retrieval) == 2
    assert [hit.evidence[0].kind for hit in retrieval] == ["seed", "seed"]
    assert not retrieval.rows
    assert {hit.node.label for hit in retrieval} == {"Paper"}


def test_a_search_comes_first_and_its_ids_narrow_a_query(store: CypherStore) -> None:
    with OpenAIServer() as server:
        spark = spark_of(store, server)
        of_step = (
            spark.prompt()
            .partition("$step1 in later queries: WHERE ")[2]
            .partition(" IN $step1")[0]
        )
    query = (
        f"MATCH (p:Paper)-[:ABOUT]->(n:Field) WHERE {of_step} IN $step1 AND p.year <"
        " 2014 RETURN p ORDER BY p.year"
    )
    retrieval = ask(
        store,
        plan({"text": "folding of proteins", "label": "Field", "k": 1}, query),
        k=2,
    )
    assert retrieval.ids[:1] == ["p2"]
    assert retrieval.hits[0].evidence[0].properties["parameters"] == {"step1": ["f2"]}
    assert [stage.name for stage in retrieval.trace.stages][:4] == [
        "plan",
        "check",
        "step 1",
        "step 2",
    ]


def test_without_an_order_relevance_ranks_and_the_fallback_fills_with_the_same_label(
    store: CypherStore,
) -> None:
    retrieval = ask(
        store, plan("MATCH (p:Paper) RETURN p"), question="speech synthesis 4", k=1
    )
    assert retrieval.ids == ["p4"]
    filled = ask(
        store,
        plan("MATCH (p:Paper {name: 'Graph Retrieval 0'}) RETURN p"),
        question="graph retrieval",
        k=3,
    )
    assert filled.ids[0] == "p0"
    assert [hit.node.label for hit in filled] == ["Paper"] * 3
    assert [hit.evidence[-1].kind for hit in filled] == ["query", "fill", "fill"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (
            (
                "MATCH (p:Paper)-[:WROTE]->(a:Author) WHERE a.name = 'Ada Ames' RETURN"
                " p ORDER BY p.year"
            ),
            ["p0", "p3", "p6"],
        ),
        (
            (
                "MATCH (a:Autor)-[:WROTE]->(p:Papers) WHERE a.nam = 'Ada Ames' RETURN p"
                " ORDER BY p.year"
            ),
            ["p0", "p3", "p6"],
        ),
        (
            (
                "MATCH (a:Author {name: 'ada ames'})-[:WROTE]->(p) RETURN p ORDER BY"
                " p.year"
            ),
            ["p0", "p3", "p6"],
        ),
        (
            (
                "MATCH (a:Author)-[:WROTE]->(p) WHERE toLower(a.name) = 'bo bjork'"
                " RETURN p ORDER BY p.year"
            ),
            ["p1", "p4", "p7"],
        ),
        (
            (
                "MATCH (a:Author)-[:WROTE]->(p) WHERE a.name IN ['Cy Ohara'] RETURN"
                " p.name ORDER BY p.year"
            ),
            ["p2", "p5", "p8"],
        ),
        (
            (
                "MATCH (a:Author)-[:WROTE]->(p) WHERE a.name = 'Bo Björk' RETURN p.name,"
                " p.year ORDER BY p.year"
            ),
            ["p1", "p4", "p7"],
        ),
        (
            "MATCH (f:Field)<-[:ABOUT]-(p) WHERE f.name CONTAINS 'Speach' RETURN f",
            ["f1"],
        ),
        (
            "MATCH (p:Paper) WHERE p.name CONTAINS 'speech' RETURN p ORDER BY p.year",
            ["p1", "p4", "p7"],
        ),
        (
            "MATCH (p:Paper) WHERE p.name CONTAINS 'Sinthesis' RETURN p ORDER BY p.year",
            ["p1", "p4", "p7"],
        ),
        (
            (
                "MATCH x = (:Author {name: 'Ada Ames'})-[:WROTE]->(:Paper {year: 2013})"
                " RETURN x"
            ),
            ["a0", "p3"],
        ),
        (
            (
                "MATCH (a:Author)-[:WROTE]->(p {year: 2013}) RETURN {who: a, n: null}"
                " AS m, [p, p] AS ps"
            ),
            ["a0"],
        ),
        ("MATCH (p:Paper)-[:CITES*]->(q:Paper) RETURN DISTINCT q", ["p0"]),
        ("MATCH (a:Author) WITH a.name AS who ORDER BY who LIMIT 1 RETURN who", ["a0"]),
    ],
)
def test_queries_are_mended_and_nodes_are_read_from_what_they_return(
    store: CypherStore, query: str, found: list[str]
) -> None:
    if store.dialect == "ladybug" and "{who:" in query:
        query = query.replace("{who: a, n: null} AS m", "a")
    answer = ask(store, plan(query), question="?", k=len(found), on_failure="raise")
    assert answer.ids == found


@pytest.mark.parametrize(
    ("query", "rows", "nodes"),
    [
        ("MATCH (p:Paper) RETURN count(p) AS n", [{"n": 9}], []),
        (
            "MATCH (p:Paper) RETURN avg(p.year) AS mean, max(p.cited) AS most",
            [{"mean": 2014.0, "most": 4}],
            [],
        ),
        (
            (
                "MATCH (a:Author)-[:WROTE]->(p) WHERE p.year > 2016 RETURN a.name AS"
                " author, count(p) AS n ORDER BY author DESC"
            ),
            [{"author": "Cy O'Hara", "n": 1}, {"author": "Bo Björk", "n": 1}],
            ["a2", "a1"],
        ),
        (
            "MATCH (p:Paper {name: 'Speech Synthesis 4'}) RETURN p.cited AS cited",
            [{"cited": 3}],
            ["p4"],
        ),
        (
            (
                "MATCH (p:Paper) WHERE p.year < 2012 RETURN DISTINCT p.year AS year"
                " ORDER BY year DESC"
            ),
            [{"year": 2011}, {"year": 2010}],
            [],
        ),
        (
            "MATCH (p:Paper) WHERE p.year < 1900 RETURN count(p) AS n, max(p.year) AS y",
            [{"n": 0, "y": None}],
            [],
        ),
    ],
)
def test_rows_without_nodes_are_the_first_hits(
    store: CypherStore, query: str, rows: list[dict[str, Any]], nodes: list[str]
) -> None:
    retrieval = ask(store, plan(query), question="speech", k=5, on_failure="raise")
    n = len(rows)
    assert retrieval.rows == retrieval.to_dict()["rows"] == rows
    assert [dict(hit.node.properties) for hit in retrieval if hit.is_row] == rows
    assert retrieval.ids[n : n + len(nodes)] == nodes
    assert [hit.node.label for hit in retrieval.hits[:n]] == ["Row"] * n
    first = retrieval.hits[0]
    assert all(f"{column}: " in first.node.text for column in rows[0])
    assert query in first.evidence[0].properties["cypher"]
    assert len(retrieval) == 5


def test_rows_stay_in_front_of_what_is_expanded_reranked_and_fused(
    ladybug: CypherStore,
) -> None:
    index = BM25Index.of_store(ladybug)
    count = plan("MATCH (a:Author)-[:WROTE]->(p:Paper) RETURN count(p) AS n")
    with OpenAIServer(default=count) as server:
        spark = spark_of(ladybug, server)
        text = IndexRetriever(index, ladybug)
        for retriever in (
            Expand(spark, ladybug, index, policy="+edge"),
            Expand(spark, ladybug, index, policy="auto"),
            Rerank(spark, ShortestFirst()),
            Fuse([text, spark]),
            Fallback(spark, text),
        ):
            retrieval = retriever.retrieve("speech", 4)
            assert [hit.node.text for hit in retrieval][:1] == ["n: 9"]
            assert retrieval.rows == [{"n": 9}]
            assert len(retrieval) == 4
        filtered = spark.retrieve("speech", 4, {"label": "Paper"})
    assert not filtered.rows
    assert {hit.node.label for hit in filtered} == {"Paper"}
    assert any("left_out" in stage.details for stage in filtered.trace.stages)


class ShortestFirst:
    """A reranker that prefers short names."""

    name = "shortest"

    def scores(self, query: str, hits: Any) -> list[float]:
        return [1 / (1 + len(hit.node.name)) for hit in hits]


LOOSER = [
    (
        # a person who has written and directed is a director by the first label
        "MATCH (w:Writer)<-[:WRITTEN_BY]-(f:Film) WHERE w.name = 'Dee Dahl' RETURN f",
        ["f0"],
        "without the label Writer at an end of WRITTEN_BY",
    ),
    (
        "MATCH (w:Writer)<-[:WRITTEN_BY]-(f:Film) WHERE w.name = 'de dahl' RETURN f",
        ["f0"],
        "since 'de dahl' is 'Dee Dahl' in the graph, and without the label Writer",
    ),
    (
        (
            "MATCH (f:Film) WHERE f.name CONTAINS 'Dawn' AND f.genre = 'Space opera'"
            " AND f.year > 1990 RETURN f"
        ),
        ["f0"],
        "without the condition f.genre = 'Space opera'",
    ),
    (
        (
            "MATCH (w:Writer)<-[:WRITTEN_BY]-(f:Film) WHERE w.name = 'Dee Dahl' RETURN"
            " count(f) AS n"
        ),
        [{"n": 1}],
        "without the label Writer at an end of WRITTEN_BY",
    ),
]


@pytest.mark.parametrize(("query", "found", "how"), LOOSER)
def test_a_query_that_finds_nothing_is_loosened_and_says_so(
    films: CypherStore, query: str, found: list[Any], how: str
) -> None:
    answer = ask(films, plan(query), question="?", fill=False, on_failure="raise")
    assert (answer.rows or answer.ids) == found
    [step] = [stage for stage in answer.trace.stages if stage.name == "step 1"]
    assert step.details["outcome"].startswith("The query found nothing as written; ")
    assert step.details["loosened"]
    assert how in step.details["outcome"]
    dropped = "condition" in how
    assert bool(answer.signals.doubts) is dropped
    assert (answer.signals.confidence is not None) is dropped


def test_a_relation_that_was_replaced_is_a_doubt(films: CypherStore) -> None:
    query = "MATCH (f:Film)-[:DIRECTED_BY]->(w:Writer) WHERE f.name = 'Dusk' RETURN w"
    answer = ask(films, plan(query), question="?", fill=False, on_failure="raise")
    assert answer.ids == ["wil"]
    [doubt] = answer.signals.doubts
    assert "DIRECTED_BY does not join Film and Writer" in doubt
    assert doubt.endswith("WRITTEN_BY was followed instead")


def test_a_doubt_is_told_of_what_is_expanded_too(films: CypherStore) -> None:
    query = "MATCH (f:Film) WHERE f.name = 'Dawn' AND f.genre = 'Opera' RETURN f"
    with OpenAIServer([plan(query)]) as server:
        spark, index = spark_of(films, server), BM25Index.of_store(films)
        retrieval = Expand(spark, films, index, policy="auto").retrieve("Dawn", 3)
    assert retrieval.ids[0] == "f0"
    assert retrieval.signals.doubts == (
        "nothing satisfies f.genre = 'Opera' too: it was left out",
    )
    assert retrieval.signals.confidence is not None
    assert retrieval.signals.confidence < 0.5


@pytest.mark.parametrize(
    "query",
    [
        "MATCH (f:Film) WHERE f.year > 2030 AND f.genre = 'Drama' RETURN f",
        "MATCH (f:Film) WHERE f.name = 'Zzyzx Road' RETURN f",
        "MATCH (f:Film) WHERE f.genre = 'Opera' AND f.year > 1990 RETURN sum(f.year)",
        "MATCH (f:Film) WHERE left(f.name, 4) = 'Down' AND f.year > 0 RETURN f",
    ],
)
def test_numbers_names_and_sums_are_never_loosened(
    films: CypherStore, query: str
) -> None:
    answer = ask(films, plan(query), question="?", fill=False)
    assert not [
        hit for hit in answer if not hit.is_row and hit.evidence[0].kind == "query"
    ]
    [step] = [stage for stage in answer.trace.stages if stage.name == "step 1"]
    assert "loosened" not in step.details
    assert step.details["outcome"].startswith("The query ran as written and found ")


@pytest.mark.parametrize(
    ("query", "outcome"),
    [
        ("MATCH (f:Film) RETURN f", "The query ran as written and found 2 rows."),
        (
            "MATCH (f:Film) WHERE f.year > 1990 AND f.genre = 'Drama'"
            " RETURN DISTINCT f.year - 1999",  # a 0 that was found is an answer
            "The query ran as written and found 1 row.",
        ),
        (
            "MATCH (f:Film)-[:WRITTEN_BY]->(:Writer) WHERE f.year > 1990"
            " RETURN f.year - 2001 AS later, sum(f.year - 2001) AS n",
            "The query ran as written and found 1 row.",
        ),
        ("MATCH (f:Films)-[:WRITTEN_BY]->(p) RETURN p", "The query was repaired ("),
        ("MATCH (f:Film) DELETE f", "The step did not run: the query was refused: "),
    ],
)
def test_the_trace_says_in_a_sentence_what_happened_to_each_query(
    films: CypherStore, query: str, outcome: str
) -> None:
    answer = ask(films, plan(query), question="?")
    [step] = [stage for stage in answer.trace.stages if stage.name == "step 1"]
    assert step.details["outcome"].startswith(outcome)
    assert step.details["outcome"].endswith(".")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (plan("MATCH (p:Paper) DETACH DELETE p"), "refused"),
        (plan("CALL dbms.components() YIELD name RETURN name"), "refused"),
        (plan("MATCH (p:Planet) RETURN p"), "no label 'Planet'"),
        (
            plan(
                "MATCH (p:Paper) RETURN p", "MATCH (p:Paper) WHERE p.year = 1 RETURN p"
            ),
            "found nothing",
        ),
        (plan("MATCH (p:Paper) WHERE p.year = 1 RETURN p.name"), "found nothing"),
        (plan("RETURN 1"), "found nothing"),
        ("no idea", "no plan in the reply"),
        (text('{"steps": [{"cyp', finish_reason="length"), "token limit"),
        (status(500), "HTTP 500"),
        (cut(), "connection"),
    ],
)
def test_what_fails_ends_in_the_fallback_and_the_trace_says_why(
    store: CypherStore, reply: Any, reason: str
) -> None:
    retrieval = ask(store, reply, question="speech synthesis 4")
    assert retrieval.ids[0] == "p4"
    assert len(retrieval) == 3
    [fallback] = retrieval.trace.fallbacks
    assert reason in fallback.details["error"]
    with pytest.raises(RetrievalFailed, match="spark failed"):
        ask(store, reply, on_failure="raise")


def test_labels_that_are_words_of_cypher_are_found(tmp_path: Any) -> None:
    from graphret.stores.ladybug import LadybugStore

    with LadybugStore(tmp_path / "orders.lbug") as store:
        store.upsert(
            [Node("o", ("Order",), "42"), Node("t", ("Table",), "Oak")],
            [Edge("o", "Group", "t")],
        )
        retrieval = ask(
            store,
            plan("MATCH (o:Order)-[:Group]->(t:Table) WHERE o.name = '42' RETURN t"),
            k=1,
            on_failure="raise",
        )
    assert retrieval.ids == ["t"]


def test_a_query_that_never_ends_is_stopped(store: CypherStore) -> None:
    names = [f"n{i}" for i in range(9)]
    slow = (
        f"MATCH {', '.join(f'({n})' for n in names)} RETURN"
        f" max({' + '.join(f'{n}.name' for n in names)}) AS n"
    )
    retrieval = ask(store, plan(slow), timeout=1.0)
    assert len(retrieval) == 3
    assert "took longer than" in retrieval.trace.fallbacks[0].details["error"]


def test_rows_are_capped_and_the_best_kept(store: CypherStore) -> None:
    retrieval = ask(
        store,
        plan("MATCH (a:Author), (p:Paper) RETURN p, a"),
        max_rows=20,
        question="protein folding 8",
        k=2,
    )
    steps = [stage for stage in retrieval.trace.stages if stage.name == "step 1"]
    assert steps[0].details["rows"] == 20
    assert len(retrieval) == 2


def test_one_more_call_is_made_only_where_it_is_allowed(ladybug: CypherStore) -> None:
    script = [plan("MATCH (p:Planet) RETURN p"), plan(BY_ADA)]
    with OpenAIServer(script) as server:
        retrieval = spark_of(ladybug, server).retrieve("papers by Ada Ames", 3)
        asked = server.requests
    assert set(retrieval.ids) == {"p0", "p3", "p6"}
    assert "no label 'Planet'" in asked[1].messages[-1]["content"]
    with OpenAIServer(script) as server:
        spark_of(ladybug, server, repair_calls=0).retrieve("papers by Ada Ames", 3)
        assert len(server.requests) == 1


def test_async_and_where(ladybug: CypherStore) -> None:
    with OpenAIServer(default=plan(BY_ADA)) as server:
        spark = spark_of(ladybug, server)
        retrieval = asyncio.run(
            spark.aretrieve("papers by Ada Ames", 2, {"year": {"$gte": 2013}})
        )
    assert {hit.node.properties["year"] >= 2013 for hit in retrieval} == {True}
    assert set(retrieval.ids) == {"p3", "p6"}


def test_the_prompt_is_bounded_and_shows_no_values_unless_allowed(
    store: CypherStore,
) -> None:
    with OpenAIServer() as server:
        told = spark_of(store, server).prompt()
        shown = spark_of(
            store, server, show_values=True, hints="Years are of publication."
        ).prompt()
    values = ("Ada", "Retrieval", "Speech", "2011")
    assert not any(value in told for value in values)
    assert any(value in shown for value in values)
    assert shown.endswith("Years are of publication.")
    assert "(:Author)-[:WROTE]->(:Paper)" in told
    plans = [line for line in told.splitlines() if '{"steps": [{' in line]
    assert len(plans) == 4
    assert all("MATCH" in line and "LIMIT 20" not in line for line in plans)
    assert "RETURN count(DISTINCT a) AS number" in told
    with OpenAIServer() as server:
        assert (
            estimate_tokens(spark_of(store, server, prompt_tokens=900).prompt()) <= 900
        )


def test_the_prompt_of_a_wide_schema_fits(tmp_path: Any) -> None:
    from graphret.stores.ladybug import LadybugStore

    nodes = [
        Node(
            f"n{i}",
            (f"KindOfThing{i}",),
            f"thing {i}",
            properties={f"property_{i}_{j}": j for j in range(15)},
        )
        for i in range(20)
    ]
    edges = [
        Edge(f"n{i}", f"RELATES_IN_WAY_{i}_{j}", f"n{(i + j) % 20}")
        for i in range(20)
        for j in range(1, 4)
    ]
    with LadybugStore(tmp_path / "wide.lbug") as wide, OpenAIServer() as server:
        wide.upsert(nodes, edges)
        told = [
            spark_of(wide, server, **given).prompt()
            for given in ({}, {"prompt_tokens": 1800})
        ]
    assert [
        estimate_tokens(text) <= most
        for text, most in zip(told, (3000, 1800), strict=True)
    ] == [True, True]
    assert all(
        f"RELATES_IN_WAY_{i}_{j}" in told[0] for i in range(20) for j in range(1, 4)
    )
    assert all(f":KindOfThing{i}" in told[1] for i in range(20))


def test_an_empty_graph_and_one_without_relations(tmp_path: Any) -> None:
    from graphret.stores.ladybug import LadybugStore

    with (
        LadybugStore(tmp_path / "empty.lbug") as empty,
        OpenAIServer(default=plan("MATCH (n) RETURN n")) as server,
    ):
        assert spark_of(empty, server).retrieve("anything", 3).hits == []
        empty.upsert([Node("x", ("Thing",), "X")])
        assert spark_of(empty, server).retrieve("anything", 3).ids == ["x"]


def test_what_it_cannot_work_on_is_refused(ladybug: CypherStore) -> None:
    memory = MemoryStore.of([Node("x")])
    with (
        OpenAIServer() as server,
        pytest.raises(InvalidInput, match="expected one that runs Cypher"),
    ):
        spark_of(memory, server)  # type: ignore[arg-type]
    view, index = ladybug.view({"label": "Paper"}), BM25Index.of_store(ladybug)
    with pytest.raises(InvalidInput, match="view"):
        Spark(
            OpenAIChat("m", "http://localhost/v1"), view, index.view({"label": "Paper"})
        )


@pytest.mark.parametrize(
    ("policy", "expanded"), [("+edge", True), ("-edge", False), ("auto", True)]
)
def test_expansion_follows_a_plan_by_policy(
    ladybug: CypherStore, policy: Any, expanded: bool
) -> None:
    ladybug_index = BM25Index.of_store(ladybug)
    with OpenAIServer(default=plan(f"{BY_ADA} ORDER BY p.year")) as server:
        spark = spark_of(ladybug, server)
        expand = Expand(spark, ladybug, ladybug_index, policy=policy)
        retrieval = expand.retrieve("papers by Ada Ames", 6)
        assert len(server.requests) == 1
        filtered = expand.retrieve("papers by Ada Ames", 2, {"year": {"$gt": 2012}})
        assert len(server.requests) == 2
        full = Expand(spark, ladybug, ladybug_index, policy="auto").retrieve(
            "papers by Ada Ames", 3
        )
    assert len(retrieval) == 6
    assert (
        any(e.kind == "neighbor" for hit in retrieval for e in hit.evidence) is expanded
    )
    assert {"p0", "p3", "p6"} <= set(retrieval.ids)
    if policy != "+edge":
        assert retrieval.ids[:3] == ["p0", "p3", "p6"]
    assert [hit.node.properties["year"] > 2012 for hit in filtered] == [True, True]
    assert full.ids == ["p0", "p3", "p6"]
    assert any("skipped" in stage.details for stage in full.trace.stages)


@pytest.mark.parametrize(("policy", "kept"), [("auto", True), ("-edge", False)])
def test_what_a_query_without_relations_found_stays_in_front(
    ladybug: CypherStore, policy: Any, kept: bool
) -> None:
    recent = plan("MATCH (p:Paper) WHERE p.year > 2014 RETURN p ORDER BY p.year DESC")
    with OpenAIServer(default=recent) as server:
        spark = spark_of(ladybug, server)
        expand = Expand(spark, ladybug, BM25Index.of_store(ladybug), policy=policy)
        retrieval = expand.retrieve("speech synthesis by Bo Björk", 6)
    assert (retrieval.ids[:4] == ["p8", "p7", "p6", "p5"]) is kept
    assert len(retrieval) == 6


def test_neighbours_of_the_answers_label_come_first() -> None:
    from graphret.retriever import Retriever
    from graphret.types import Edge, Hit, Node, Signals

    nodes = [
        Node("s", ("Film",), "start"),
        Node("x", ("Person",), "who who"),
        Node("y", ("Film",), "other"),
    ]
    store = MemoryStore.of(nodes, [Edge("s", "BY", "x"), Edge("s", "LIKE", "y")])

    class Selects(Retriever):
        def _retrieve(self, query: str, k: int, where: Any) -> Retrieval:
            return Retrieval(
                query, k, [Hit(nodes[0], 1.0)], Signals(answer_labels=self.labels)
            )

    seeds = Selects()
    for seeds.labels, first in ((("Film",), "y"), (("Person",), "x")):
        retrieval = Expand(seeds, store, BM25Index.of_store(store)).retrieve(
            "who is other", 3
        )
        assert next(i for i in retrieval.ids if i != "s") == first
