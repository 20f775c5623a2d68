"""GRASP over every store: plan, link, run, rescore, fuse, rerank; and what goes wrong
on the way.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from spark_parts import EDGES, NODES

from graphret.errors import InvalidInput, QueryTimeout, RetrievalFailed
from graphret.grasp import (
    DynamicWeights,
    Grasp,
    GraspSettings,
    LLMPlanner,
    PlannerGuidance,
    PlanRetriever,
    StaticWeights,
)
from graphret.grasp.guidance import PUBLISHED
from graphret.llm import OpenAIChat
from graphret.methods import MethodOptions, OpenGraph
from graphret.planning import GraphPlan, PlannerResult
from graphret.retriever import Retriever
from graphret.search import BM25Index, FieldIndex, HybridIndex, NodeText, TextIndex
from graphret.stores import MemoryStore
from graphret.stores.base import GraphStore
from graphret.stores.ladybug import LadybugStore
from graphret.testing.openai_server import OpenAIServer, status, text
from graphret.types import Edge, Hit, Node, Signals

#: Papers on graph retrieval, which is the field of those that Ada Ames wrote.
PLAN: dict[str, Any] = {
    "anchors": [{"var": "a", "text": "ada ames", "label": "Author"}],
    "hops": [
        {"from": "a", "rel": "WROTE", "to_var": "p"},
        {"from": "p", "rel": "ABOUT", "to_var": "T"},
    ],
    "target": {"labels": ["Field"]},
}
BY_ADA = PLAN | {
    "hops": [PLAN["hops"][0] | {"to_var": "T"}],
    "target": {"labels": ["Paper"]},
}


class Fixed:
    """A planner of one plan."""

    name = "fixed"

    def __init__(self, plan: Any, **details: Any) -> None:
        self.told = PlannerResult(
            plan if plan is None else GraphPlan.model_validate(plan), **details
        )

    def plan(self, question: str) -> PlannerResult:
        return self.told

    async def aplan(self, question: str) -> PlannerResult:
        return self.plan(question)


class Broken(Fixed):
    def plan(self, question: str) -> PlannerResult:
        raise ConnectionError("the planner is away")


ASKED = [
    pytest.param(lambda r, *a, **kw: r.retrieve(*a, **kw), id="sync"),
    pytest.param(lambda r, *a, **kw: asyncio.run(r.aretrieve(*a, **kw)), id="async"),
]
Ask = Callable[..., Any]


@pytest.mark.parametrize("ask", ASKED)
def test_a_plan_finds_its_targets_and_tells_the_path_to_them(
    papers: GraphStore, ask: Ask
) -> None:
    retrieval = ask(PlanRetriever(Fixed(PLAN), papers), "the field of Ada Ames", 5)
    assert retrieval.ids == ["f0"]
    path = [
        (edge.source_name, edge.relation, edge.target_name)
        for edge in retrieval.hits[0].evidence
        if edge.relation
    ]
    assert [(a, r) for a, r, _ in path] == [
        ("Ada Ames", "WROTE"),
        ("Graph Retrieval 0", "ABOUT"),
    ]
    assert path[-1][2] == "Graph Retrieval"
    assert retrieval.hits[0].score == pytest.approx(0.99)
    assert retrieval.signals == Signals(
        1, None, True, ("Field",), plan_valid=True, risk="normal"
    )
    stages = {stage.name: stage.details for stage in retrieval.trace.stages}
    assert stages["plan"]["reading"] == str(GraphPlan.model_validate(PLAN))
    assert stages["link"]["bindings"] == {"a": {"a0": pytest.approx(0.99)}}
    assert stages["match"]["candidates"] == 1
    assert ("MATCH" in stages["match"].get("cypher", "")) is not isinstance(
        papers, MemoryStore
    )


def test_the_trace_has_the_query_that_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    ordered = BY_ADA | {"order": {"by": "year", "limit": 2}}
    ran: list[str] = []
    with LadybugStore(":memory:") as store:
        store.upsert(NODES, EDGES)
        query = store.query
        monkeypatch.setattr(
            store,
            "query",
            lambda text, *a, **kw: ran.append(text) or query(text, *a, **kw),
        )
        retrieval = PlanRetriever(Fixed(ordered), store, limit=7).retrieve("q", 2)
    stages = {stage.name: stage.details for stage in retrieval.trace.stages}
    assert stages["match"]["cypher"] == ran[0]


def test_what_the_target_should_say_besides_ranks_what_the_hops_reach(
    papers: GraphStore,
) -> None:
    target_text = BY_ADA | {
        "target": {"labels": ["Paper"], "relevance_text": "retrieval 6"}
    }
    documents = BM25Index.of_store(papers)
    assert PlanRetriever(Fixed(target_text), papers, documents=documents).retrieve(
        "q", 3
    ).ids == ["p6", "p0", "p3"]
    assert PlanRetriever(Fixed(target_text), papers).retrieve("q", 3).ids == [
        "p0",
        "p3",
        "p6",
    ]
    ordered = target_text | {"order": {"by": "year", "limit": 2}}
    assert PlanRetriever(Fixed(ordered), papers, documents=documents).retrieve(
        "q", 3
    ).ids == ["p6", "p3"]


DESCRIBED: dict[str, Any] = {
    "anchors": [
        {
            "var": "a",
            "text": "a study of protein folding 5",
            "label": "Paper",
            "match_mode": "doc",
        }
    ],
    "hops": [{"from": "T", "rel": "WROTE", "to_var": "a"}],
    "target": {"labels": ["Author"]},
}


@pytest.mark.parametrize("labels", [None, ["Paper"]], ids=["all", "papers"])
def test_anchors_are_linked_by_an_encoder_where_the_documents_have_one(
    labels: list[str] | None, encoder: Any
) -> None:
    store = MemoryStore.of(NODES, EDGES)
    documents = HybridIndex.of_store(store, encoder, labels=labels)

    def hows(documents: TextIndex | None) -> set[str]:
        plan = PlanRetriever(Fixed(DESCRIBED), store, documents=documents)
        text, label = "a study of protein folding 5", ["Paper"]
        mode = "doc" if plan.linker.documents is not None else "name"
        return {
            linked.how for linked in plan.linker.link(text, mode=mode, labels=label)
        }

    assert PlanRetriever(Fixed(DESCRIBED), store, documents=documents).linker.dense
    assert hows(documents) == ({"document"} if labels is None else {"similar"})
    assert hows(BM25Index.of_store(store)) == hows(None) == {"similar"}


def test_linking_by_description_goes_on_after_a_write(encoder: Any) -> None:
    store = MemoryStore.of(NODES, EDGES)
    documents = HybridIndex.of_store(store, encoder)
    store.attach(documents)
    grasp = Grasp(Fixed(DESCRIBED), store, documents)
    before = grasp.plan.retrieve("q", 3).ids
    store.upsert([Node("aaa", ("Paper",), "First of all")])
    assert grasp.plan.retrieve("q", 3).ids == before != []


def test_a_condition_limits_what_is_returned_and_a_planner_may_link_itself(
    papers: GraphStore,
) -> None:
    plan = PlanRetriever(Fixed(BY_ADA, bindings={"a": {"a1": 1.0}}), papers)
    assert plan.retrieve("q", 5).ids == ["p1", "p4", "p7"]
    assert plan.retrieve("q", 5, {"year": {"$gte": 2014}}).ids == ["p4", "p7"]


@pytest.mark.parametrize("ask", ASKED)
def test_the_graph_and_the_text_are_fused_and_what_each_said_is_evidence(
    papers: GraphStore, ask: Ask
) -> None:
    grasp = Grasp(Fixed(BY_ADA), papers, FieldIndex.of_store(papers))
    retrieval = ask(grasp, "retrieval of 3 proteins", 6)
    assert set(retrieval.ids[:3]) == {"p0", "p3", "p6"}
    assert retrieval.ids[0] == "p3"
    ranks = {
        evidence.retriever: evidence.rank
        for evidence in retrieval.hits[0].evidence
        if evidence.kind == "rank"
    }
    assert ranks == {"plan": 1, "text": 1}
    assert len(retrieval) == 6
    fusion = next(stage for stage in retrieval.trace.stages if stage.name == "fuse")
    assert fusion.details["weights"] == pytest.approx([0.9, 0.1])


@pytest.mark.parametrize("ask", ASKED)
@pytest.mark.parametrize(
    ("planner", "said"),
    [
        (Fixed(None, problem="it is no JSON"), "it is no JSON"),
        (Broken(None), "ConnectionError: the planner is away"),
        (
            Fixed(
                BY_ADA
                | {
                    "hops": (
                        [
                            {
                                "from": "a",
                                "rel": "WROTE",
                                "to_var": "T",
                                "to_label": "Paper",
                            }
                        ]
                        * 2
                    )
                }
            ),
            None,
        ),
        (Fixed(BY_ADA | {"anchors": [{"var": "a", "text": "zzz"}]}), None),
    ],
)
def test_without_a_plan_that_finds_anything_the_text_answers_alone(
    papers: GraphStore, ask: Ask, planner: Fixed, said: str | None
) -> None:
    index = BM25Index.of_store(papers)
    retrieval = ask(Grasp(planner, papers, index), "speech synthesis 4", 4)
    assert len(retrieval) == 4
    notes = [stage.details["error"] for stage in retrieval.trace.fallbacks]
    assert notes == ([] if said is None else [said])
    if said is not None:
        assert (
            retrieval.ids
            == Grasp(planner, papers, index).text.retrieve("speech synthesis 4", 4).ids
        )
        with pytest.raises(RetrievalFailed, match=said):
            ask(PlanRetriever(planner, papers, on_failure="raise"), "q", 1)


def test_a_database_that_is_too_slow_leaves_the_second_stage_alone(
    papers: GraphStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*_: Any, **__: Any) -> Any:
        raise QueryTimeout("the query took longer than 30 s")

    monkeypatch.setattr("graphret.grasp.plan_retriever.find_matches", slow)
    retrieval = Grasp(Fixed(BY_ADA), papers, BM25Index.of_store(papers)).retrieve(
        "speech synthesis 4", 2
    )
    assert retrieval.ids[0] == "p4"
    assert [note.details["error"] for note in retrieval.trace.fallbacks] == [
        "QueryTimeout: the query took longer than 30 s"
    ]


def test_what_a_plan_found_is_not_lost_where_its_paths_cannot_be_read(
    papers: GraphStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*_: Any, **__: Any) -> Any:
        raise QueryTimeout("the query took longer than 30 s")

    monkeypatch.setattr(papers, "neighbors", slow)
    retrieval = PlanRetriever(Fixed(BY_ADA), papers).retrieve("q", 3)
    assert retrieval.ids == ["p0", "p3", "p6"]
    assert [
        stage.details["error"]
        for stage in retrieval.trace.stages
        if stage.name == "paths"
    ] == ["QueryTimeout: the query took longer than 30 s"]


class Backwards:
    name = "backwards"

    def scores(self, query: str, hits: Sequence[Hit]) -> list[float]:
        return [float(place) for place in range(len(hits))]


def test_a_reranker_is_the_third_stage_and_a_bad_one_changes_nothing() -> None:
    store = MemoryStore.of(NODES, EDGES)
    index = BM25Index.of_store(store)
    plain = Grasp(Fixed(BY_ADA), store, index)
    settings = GraspSettings(rerank_weight=1.0, rerank_depth=3)
    turned = Grasp(Fixed(BY_ADA), store, index, reranker=Backwards(), settings=settings)
    assert turned.retrieve("graph", 3).ids == plain.retrieve("graph", 3).ids[::-1]

    class Mute(Backwards):
        def scores(self, query: str, hits: Sequence[Hit]) -> list[float]:
            return [float("nan")] * len(hits)

    reranked = Grasp(Fixed(BY_ADA), store, index, reranker=Mute()).retrieve("graph", 3)
    assert reranked.ids == plain.retrieve("graph", 3).ids
    assert any("backwards" in str(note.details) for note in reranked.trace.fallbacks)


def test_views_hide_from_plans_what_they_hide(papers: GraphStore) -> None:
    only = {"year": {"$lt": 2014}}
    if isinstance(papers, MemoryStore):
        view = papers.view({"$or": [only, {"label": {"$in": ["Author", "Field"]}}]})
        assert PlanRetriever(Fixed(BY_ADA), view).retrieve("q", 5).ids == ["p0", "p3"]
    else:
        with pytest.raises(InvalidInput, match="view"):
            PlanRetriever(Fixed(BY_ADA), papers.view(only))


# -- weights


@pytest.mark.parametrize(
    ("candidates", "risk", "weight"),
    [
        (10, "normal", 2.0 * 1.25),
        (11, "weak", 0.8 * 0.5),
        (501, "aggressive", 0.05),
        (0, "normal", 0.0),
        (5, None, 0.0),
    ],
)
def test_dynamic_weights_are_the_papers(
    candidates: int, risk: str | None, weight: float
) -> None:
    """GRASP, section 3.2: the bucket of n_cand times the risk level."""
    signals = [Signals(candidates, plan_valid=True, risk=risk), Signals()]
    assert DynamicWeights()(signals) == [pytest.approx(weight), 1.0]
    invalid = Signals(candidates, plan_valid=False, risk=risk)
    assert DynamicWeights()([invalid, Signals()]) == [0.0, 1.0]


def test_settings_are_read_from_a_file_and_bad_ones_are_named(tmp_path: Path) -> None:
    assert StaticWeights(0.3)([Signals(plan_valid=True)]) == [0.3, 0.7]
    assert StaticWeights(0.3)([Signals(plan_valid=False)]) == [0.0, 1.0]
    file = tmp_path / "grasp.json"
    for weights in (StaticWeights(0.35), DynamicWeights(risks=(0, 0.5, 0.75, 1))):
        settings = GraspSettings(weights=weights, rrf_k=5)
        settings.save(file)
        assert GraspSettings.load(file) == settings
    file.write_text('{"weights": {"kind": "best"}}')
    with pytest.raises(InvalidInput, match=r"grasp\.json.*best"):
        GraspSettings.load(file)
    with pytest.raises(InvalidInput, match="graph"):
        StaticWeights(1.5)
    for bad in ({"risks": (1, 2)}, {"buckets": (1, 1, 1, 1, -1)}):
        with pytest.raises(InvalidInput, match=next(iter(bad))):
            DynamicWeights(**bad)


# -- the planner


def planner_of(server: OpenAIServer, **options: Any) -> LLMPlanner:
    return LLMPlanner(
        OpenAIChat("planner", server.base_url, max_retries=0, timeout=5),
        MemoryStore.of(NODES, EDGES),
        **options,
    )


@pytest.mark.parametrize(
    "ask",
    [lambda p, q: p.plan(q), lambda p, q: asyncio.run(p.aplan(q))],
    ids=["sync", "async"],
)
def test_a_model_writes_a_plan_and_is_shown_once_what_is_wrong_with_it(
    ask: Ask,
) -> None:
    wrong = json.dumps(BY_ADA).replace("WROTE", "WRITES")
    with OpenAIServer(
        [text(wrong), text(f"Here it is:\n```json\n{json.dumps(BY_ADA)}\n```")]
    ) as server:
        planned = ask(planner_of(server), "papers by Ada Ames")
        assert planned.plan == GraphPlan.model_validate(BY_ADA)
        assert planned.details["replies"] == 2
        assert (
            "there is no relation 'WRITES'; there is"
            in server.requests[-1].messages[-1]["content"]
        )


@pytest.mark.parametrize(
    "reply",
    [
        text("I cannot do that."),
        text('{"anchors": 3}'),
        text(json.dumps(BY_ADA | {"hops": BY_ADA["hops"] * 40})),
        text(json.dumps(BY_ADA | {"target": {"labels": ["Film"]}})),
        status(500, "it broke"),
    ],
)
def test_no_valid_plan_is_a_state_of_its_own(reply: Any) -> None:
    with OpenAIServer([reply, reply]) as server:
        store = MemoryStore.of(NODES, EDGES)
        retrieval = Grasp(
            planner_of(server), store, BM25Index.of_store(store)
        ).retrieve("speech synthesis 4", 2)
        assert retrieval.ids[0] == "p4"
        assert retrieval.signals.plan_valid is False
        assert len(retrieval.trace.fallbacks) == 1


def test_the_prompt_has_the_schema_the_nearest_examples_and_no_values() -> None:
    examples = [("films by Ann", BY_ADA), ("which field does Ada work in", PLAN)]
    examples += [(f"papers of {name}", BY_ADA) for name in ("Bo", "Cy", "Di", "Eli")]
    with OpenAIServer([]) as server:
        planner = planner_of(
            server, examples=examples, hints="Years are of publication."
        )
        messages = planner.messages(
            "the field of Cy O'Hara, in which field does she work"
        )
        assert "(:Author)-[:WROTE]->(:Paper)" in messages[0].content
        assert "Years are of publication." in messages[0].content
        assert "2010" not in messages[0].content.partition("A plan is")[0]
        assert "Ada" not in messages[0].content
        assert [message.content for message in messages if message.role == "user"][
            -2
        ] == examples[1][0]
        assert len(messages) == 2 + 2 * 5
        assert (
            "e.g. 2010" in planner_of(server, show_values=True).messages("q")[0].content
        )
        with pytest.raises(InvalidInput, match=r"example 0: .*'Film'"):
            planner_of(
                server, examples=[("q", BY_ADA | {"target": {"labels": ["Film"]}})]
            )


def test_a_model_is_told_what_decides_once_and_nothing_meant_for_people() -> None:
    with OpenAIServer([text(json.dumps(BY_ADA))]) as server:
        planner_of(server).plan("papers by Ada Ames")
        [system, _] = server.requests[0].messages
    for decisive in ("apart", "direction", "negated", "$icontains", "cannot", "count"):
        assert decisive in system["content"].partition("JSON schema")[0]
    assert "Attributes" not in system["content"]
    assert '"description"' not in system["content"]
    example = system["content"].partition("An example")[2].partition("\n\n")[0]
    written = GraphPlan.model_validate_json(example[example.index("{") :])
    assert (written.apart, written.hops[-1].direction) == (True, "out")


@pytest.mark.parametrize(
    ("plan", "ids"),
    [
        ({"cannot": "the sum of citations"}, None),
        (BY_ADA | {"cannot": "the sum of citations"}, ["p0", "p3", "p6"]),
    ],
)
def test_what_no_plan_can_say_is_a_doubt(
    plan: dict[str, Any], ids: list[str] | None
) -> None:
    with OpenAIServer([text(json.dumps(plan))]) as server:
        retrieval = PlanRetriever(
            planner_of(server), MemoryStore.of(NODES, EDGES)
        ).retrieve("how often were papers by Ada Ames cited", 3)
    assert retrieval.ids == (ids or [])
    assert retrieval.signals.plan_valid is (ids is not None)
    assert retrieval.signals.doubts == ("no plan can say: the sum of citations",)


@pytest.mark.parametrize(
    ("hops", "ids"),
    [
        (
            [{"from": "T", "rel": "CITES", "to_var": "x", "negated": True}],
            ["p3", "p4", "p5", "p6", "p7", "p8"],
        ),
        (
            [
                {
                    "from": "T",
                    "rel": "CITES",
                    "to_var": "x",
                    "negated": True,
                    "direction": "in",
                }
            ],
            [f"p{i}" for i in range(1, 9)],
        ),
    ],
)
def test_an_absence_needs_no_anchor(
    papers: GraphStore, hops: list[dict[str, Any]], ids: list[str]
) -> None:
    plan = GraphPlan.model_validate({"hops": hops, "target": {"labels": ["Paper"]}})
    retrieval = PlanRetriever(Fixed(plan.checked(papers.schema())), papers).retrieve(
        "q", 9
    )
    assert sorted(retrieval.ids) == ids


def test_a_number_is_an_answer(papers: GraphStore) -> None:
    planner = Fixed(BY_ADA | {"count": True})
    retrieval = PlanRetriever(planner, papers, limit=2).retrieve("how many by Ada", 3)
    assert retrieval.rows == [{"count": 3}]
    assert (retrieval.hits[0].is_row, retrieval.hits[0].node.text) == (True, "count: 3")
    assert retrieval.ids[1:] == ["p0", "p3"]
    grasp = Grasp(planner, papers, BM25Index.of_store(papers))
    since = grasp.retrieve("how many by Ada since 2013", 2, {"year": {"$gte": 2013}})
    assert (since.rows, since.hits[0].is_row) == ([{"count": 2}], True)
    nobody = Fixed(BY_ADA | {"count": True, "anchors": [{"var": "a", "text": "zzz"}]})
    assert PlanRetriever(nobody, papers).retrieve("how many by zzz", 3).rows == []
    none = Fixed(BY_ADA | {"count": True, "where": {"T": {"year": {"$gt": 3000}}}})
    assert PlanRetriever(none, papers).retrieve("q", 3).rows == [{"count": 0}]


def test_it_takes_any_retriever_for_the_text(papers: GraphStore) -> None:
    names = BM25Index.of_store(papers, text=NodeText.names())

    class Reader(Retriever):
        name = "reader"

        def _retrieve(self, query: str, k: int, where: Any) -> Any:
            return Grasp(Fixed(None), papers, names).text.retrieve(
                "protein folding 2", k, where
            )

    assert Grasp(Fixed(None), papers, Reader()).retrieve("q", 1).ids == ["p2"]


#: The labels and relations of STaRK's knowledge bases, as far as the guidance has them.
STARK_RELATIONS = {
    "amazon": [
        *(("product", f"has_{kind}", kind) for kind in ("brand", "category", "color")),
        *(("product", f"also_{kind}", "product") for kind in ("buy", "view")),
    ],
    "mag": [
        ("author", "author___writes___paper", "paper"),
        ("paper", "paper___has_topic___field_of_study", "field_of_study"),
        ("author", "author___affiliated_with___institution", "institution"),
    ],
    "prime": [
        ("gene/protein", "ppi", "gene/protein"),
        *(
            ("drug", kind, "gene/protein")
            for kind in ("carrier", "enzyme", "target", "transporter")
        ),
        *(("disease", kind, "drug") for kind in ("contraindication", "indication")),
        ("drug", "synergistic interaction", "drug"),
        ("disease", "associated with", "gene/protein"),
        ("pathway", "parent-child", "pathway"),
        ("drug", "side effect", "effect/phenotype"),
        *(
            ("gene/protein", "interacts with", kind)
            for kind in ("pathway", "biological_process", "cellular_component")
        ),
        ("anatomy", "expression present", "gene/protein"),
        ("anatomy", "expression absent", "gene/protein"),
    ],
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_the_paper_tells_its_planner_fits_starks_graphs(name: str) -> None:
    relations = STARK_RELATIONS[name]
    labels = {label for one, _, other in relations for label in (one, other)}
    nodes = [Node(label, (label,), label) for label in labels]
    store = MemoryStore.of(nodes, [Edge(one, rel, to) for one, rel, to in relations])
    guidance = PlannerGuidance.load(name)
    with OpenAIServer([]) as server:
        planner = LLMPlanner(
            OpenAIChat("planner", server.base_url),
            store,
            examples=guidance.examples,
            metapaths=guidance.metapaths,
            retrieval_modes=guidance.retrieval_modes,
        )
        [system, *shown] = planner.messages("products that are similar to a mouse")
    assert len(guidance.examples) == {"amazon": 5, "mag": 0, "prime": 19}[name]
    assert all(f"\n- {path}" in system.content for path in guidance.metapaths)
    assert all(
        label in labels for path in guidance.metapaths for label in path_labels(path)
    )
    assert ("graph_expand" in system.content) is (name == "amazon")
    assert any("also_view" in one.content for one in shown) is (name == "amazon")


def path_labels(path: str) -> list[str]:
    return [label for label in path.split() if label not in ("->", "<-")]


EXPAND = BY_ADA | {"retrieval_mode": "graph_expand"}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"retrieval_mode": "doc_search"}, "doc_search: expected no hops"),
        ({"hops": [], "anchors": []}, "graph_expand: expected a hop"),
        ({"retrieval_mode": "graph_filter_doc"}, "expected a relevance_text"),
        (
            {
                "retrieval_mode": "graph_strict",
                "target": {"labels": ["Paper"], "relevance_text": "graphs"},
            },
            "graph_strict: expected no relevance_text",
        ),
    ],
)
def test_a_plan_is_held_to_its_mode(changes: dict[str, Any], problem: str) -> None:
    wrong, right = json.dumps(EXPAND | changes), json.dumps(EXPAND)
    with OpenAIServer([text(wrong), text(right)]) as server:
        planned = planner_of(server, retrieval_modes=True).plan("papers by Ada Ames")
        assert problem in server.requests[-1].messages[-1]["content"]
    assert planned.plan is not None
    assert planned.plan.model_dump()["retrieval_mode"] == "graph_expand"


@pytest.mark.parametrize(
    ("mode", "ids"), [("doc_search", ["p4"]), ("skip", ["p4"])], ids=["text", "skip"]
)
def test_a_search_by_text_needs_no_graph(mode: str, ids: list[str]) -> None:
    query = "speech synthesis 4"
    anchor = {"var": "T", "text": query, "label": "Paper", "match_mode": "doc"}
    plan = {
        "retrieval_mode": mode,
        "anchors": [anchor] if mode == "doc_search" else [],
        "target": {"labels": ["Paper"], "relevance_text": query},
    }
    store = MemoryStore.of(NODES, EDGES)
    with OpenAIServer([text(json.dumps(plan))]) as server:
        planner = planner_of(server, retrieval_modes=True)
        retrieval = Grasp(planner, store, BM25Index.of_store(store)).retrieve(query, 1)
    assert retrieval.ids == ids
    assert retrieval.signals.plan_valid is (mode == "doc_search")


def test_guidance_is_read_from_a_file_and_a_bad_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "told.json"
    path.write_text(
        json.dumps({"metapaths": ["Author -> Paper"], "rules": ["Be brief."]})
    )
    assert PlannerGuidance.load(path) == PlannerGuidance(
        ("Author -> Paper",), ("Be brief.",)
    )
    store = MemoryStore.of(NODES, EDGES)
    with OpenAIServer([text(json.dumps(BY_ADA))]) as server:
        options = MethodOptions(
            chat=OpenAIChat("planner", server.base_url),
            guidance=str(path),
            hints="Ask first.",
        )
        graph = OpenGraph(store, BM25Index.of_store(store))
        graph.retriever("grasp", options).retrieve("papers by Ada Ames", 1)
        system = server.requests[0].messages[0]["content"]
    assert "\n- Author -> Paper\n" in system
    assert "Be brief.\nAsk first." in system
    path.write_text('{"metapath": []}')
    with pytest.raises(InvalidInput, match=r"guidance: expected amazon, .*told.json"):
        PlannerGuidance.load(path)
