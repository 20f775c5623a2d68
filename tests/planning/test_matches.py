"""A plan gives the same matches on every engine as trying all assignments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphret.cypher import check
from graphret.planning import GraphPlan, PlanHop, PlanMatch, compile_plan, find_matches
from graphret.stores import CypherStore, MemoryStore
from graphret.stores.ladybug import LadybugStore
from graphret.stores.neo4j import Neo4jStore
from graphret.stores.neo4j.layout import MARKER
from graphret.types import Edge, Node
from graphret.where import Where

LABELS, RELATIONS, IDS = ["A", "B"], ["R", "S"], [f"n{i}" for i in range(6)]
NODES = [
    Node(node_id, (LABELS[i % 2],), node_id, properties={"size": i % 3})
    for i, node_id in enumerate(IDS)
]
VARS = ["T", "x", "y"]
Triple: TypeAlias = tuple[str, str, str]


@st.composite
def plans(draw: st.DrawFn) -> GraphPlan:
    """Plans of up to three joined variables, and one or two that may be absent."""
    joined = VARS[: draw(st.integers(1, 3))]
    hops = []
    for i, var in enumerate(joined[1:], 1):
        hops.append((draw(st.sampled_from(joined[:i])), var, False))
    if len(joined) > 1 and draw(st.booleans()):
        hops.append((*draw(st.permutations(joined))[:2], draw(st.booleans())))
    if draw(st.booleans()):
        hops.append((draw(st.sampled_from(joined)), "none", True))
        if draw(st.booleans()):
            hops.append(("none", "beyond", True))
    variables = sorted(
        {*joined, *(end for source, other, _ in hops for end in (source, other))}
    )
    rel = st.lists(st.sampled_from(RELATIONS), min_size=1, max_size=2, unique=True)
    directions = st.sampled_from(["any", "out", "in"])
    label = st.sampled_from([None, *LABELS])
    written = {
        "anchors": [
            {"var": var, "text": "?", "label": draw(label)}
            for var in variables
            if draw(st.booleans())
        ],
        "hops": [
            {
                "from": source,
                "rel": draw(rel),
                "to_var": other,
                "to_label": draw(label),
                "direction": draw(directions),
            }
            | ({"negated": True} if negated else {})
            for source, other, negated in hops
        ],
        "target": {"labels": draw(st.sampled_from([[], ["A"], ["A", "B"]]))},
        "where": {
            var: {"size": {"$gte": 1}}
            for var in variables
            if draw(st.integers(0, 3)) == 0
        },
        "apart": draw(st.booleans()),
    }
    return GraphPlan.model_validate(written)


CASES = st.tuples(
    plans(),
    st.lists(
        st.tuples(
            st.sampled_from(IDS), st.sampled_from(RELATIONS), st.sampled_from(IDS)
        ),
        max_size=12,
    ),
    st.lists(
        st.dictionaries(
            st.sampled_from(IDS), st.sampled_from([0.25, 0.5, 1.0]), max_size=4
        ),
        min_size=5,
        max_size=5,
    ),
)


def bound(
    plan: GraphPlan, given: list[dict[str, float]]
) -> dict[str, dict[str, float]]:
    return {
        anchor.var: scores for anchor, scores in zip(plan.anchors, given, strict=False)
    }


def by_trying(
    plan: GraphPlan,
    triples: set[tuple[str, str, str]],
    bindings: Mapping[str, Mapping[str, float]],
) -> list[PlanMatch]:
    """The definition: all assignments that fit, with the best score of each target."""
    labels, named_ids = (
        plan.labels_of(),
        {node_id for ids in bindings.values() for node_id in ids},
    )
    able = {
        var: [
            node.id
            for node in NODES
            if (not labels[var] or node.labels[0] in labels[var])
            and (
                node.id in bindings[var]
                if var in bindings
                else not (plan.apart and node.id in named_ids)
            )
            and (
                (where := Where.parse(plan.where.get(var))) is None
                or where.matches(node)
            )
        ]
        for var in labels
    }

    def joined(hop: PlanHop, source: str, other: str) -> bool:
        ways = [(source, other)] * (hop.direction != "in") + [(other, source)] * (
            hop.direction != "out"
        )
        return any((a, relation, b) in triples for a, b in ways for relation in hop.rel)

    positive = sorted(
        {"T"}.union(*({h.source, h.to_var} for h in plan.hops if not h.negated))
    )
    in_a_row = [h for h in plan.hops if "none" in (h.source, h.to_var)]
    absences = [[h] for h in plan.hops if h.negated and h not in in_a_row]
    absences += [in_a_row] if in_a_row else []
    best: dict[str, float] = {}
    paths: Counter[str] = Counter()
    for placed in product(*(able[var] for var in positive)):
        at = dict(zip(positive, placed, strict=True))
        fits = all(
            joined(h, at[h.source], at[h.to_var]) for h in plan.hops if not h.negated
        )
        for hops in absences if fits else ():
            free = sorted({v for h in hops for v in (h.source, h.to_var)} - at.keys())
            for node_ids in product(*(able[var] for var in free)):
                assignment = at | dict(zip(free, node_ids, strict=True))
                fits &= not all(
                    joined(h, assignment[h.source], assignment[h.to_var]) for h in hops
                )
        if fits:
            score = sum(bindings[var][at[var]] for var in positive if var in bindings)
            best[at["T"]] = max(score, best.get(at["T"], score))
            paths[at["T"]] += 1
    matches = [
        PlanMatch(node_id, score, paths[node_id]) for node_id, score in best.items()
    ]
    return sorted(matches, key=lambda match: (-match.score, -match.paths, match.id))


@given(CASES)
@settings(max_examples=150)
def test_set_joins_find_what_trying_all_finds(
    case: tuple[GraphPlan, list[Triple], list[dict[str, float]]],
) -> None:
    plan, triples, given_scores = case
    store = MemoryStore.of(NODES, [Edge(*triple) for triple in set(triples)])
    bindings = bound(plan, given_scores)
    assert find_matches(plan, store, bindings) == by_trying(
        plan, set(triples), bindings
    )


@pytest.mark.parametrize(
    ("descending", "ids"), [(True, ["n2", "n5", "n1"]), (False, ["n0", "n3", "n1"])]
)
def test_an_order_takes_the_place_of_scores(descending: bool, ids: list[str]) -> None:
    order = {"by": "size", "descending": descending, "limit": 3}
    plan = GraphPlan.model_validate(
        {"where": {"T": {"size": {"$exists": True}}}, "order": order}
    )
    matches = find_matches(plan, MemoryStore.of([*NODES, Node("z", ("A",))]), {})
    assert [match.id for match in matches] == ids


#: n0 to n5 have the sizes 0, 1, 2, 0, 1, 2.
STARS = [
    *(("n0", "R", far) for far in ("n1", "n2", "n3")),
    *(("n1", "R", far) for far in ("n4", "n5")),
    ("n2", "R", "n4"),
]


STAR_EDGES = [
    Edge(*triple, properties={"since": 2000 + place})
    for place, triple in enumerate(STARS)
]


def starred(
    where: Mapping[str, object] | None = None, negated: bool = False, **order: object
) -> GraphPlan:
    hop = {"from": "T", "rel": "R", "to_var": "x", "direction": "out"}
    conditions = {"where": where or {}, "negated": negated}
    return GraphPlan.model_validate(
        {"hops": [hop | conditions], "order": {"of": "x", "limit": 3} | order}
    )


ORDERED = [
    (starred(), ["n0", "n1", "n2"]),
    (starred(descending=False, limit=2), ["n2", "n1"]),
    (starred(by="size", limit=2), ["n0", "n1"]),
    (starred(by="size", descending=False), ["n0", "n1", "n2"]),
    (starred(where={"since": {"$gte": 2002}}), ["n1", "n0", "n2"]),
    (starred(where={"since": {"$lt": 2003}}), ["n0"]),
    (starred(where={"since": 2004}, negated=True, of="T"), ["n0", "n2", "n3"]),
    (starred(where={"weight": {"$gt": 1}}), []),
]


@pytest.mark.parametrize(("plan", "ids"), ORDERED)
def test_what_goes_with_a_result_orders_it(plan: GraphPlan, ids: list[str]) -> None:
    store = MemoryStore.of(NODES, STAR_EDGES)
    assert [match.id for match in find_matches(plan, store, {})] == ids


@pytest.fixture(
    scope="module", params=["ladybug", pytest.param("neo4j", marks=pytest.mark.neo4j)]
)
def database(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CypherStore]:
    if request.param == "neo4j":
        yield Neo4jStore.from_driver(request.getfixturevalue("neo4j_module"))
    else:
        with LadybugStore(tmp_path_factory.mktemp("plans") / "g.lbug") as store:
            yield store


def test_a_database_finds_the_same(database: CypherStore) -> None:
    every = [
        Edge(source, relation, other)
        for source in IDS
        for relation in RELATIONS
        for other in IDS
    ]
    database.upsert(NODES, every)  # so that all tables are there
    schema = database.schema()

    @given(CASES)
    @settings(max_examples=25)
    def agrees(case: tuple[GraphPlan, list[Triple], list[dict[str, float]]]) -> None:
        plan, triples, given_scores = case
        wanted_edges = {Edge(*triple) for triple in triples}
        stored_edges = {edge for block in database.edges() for edge in block}
        database.delete_edges(stored_edges - wanted_edges)
        database.upsert(edges=wanted_edges - stored_edges)
        bindings = bound(plan, given_scores)
        assert find_matches(plan, database, bindings) == by_trying(
            plan, set(triples), bindings
        )
        if all(bindings.get(anchor.var) for anchor in plan.anchors):
            query, _ = compile_plan(plan, database, bindings, schema=schema)
            checked_query = query.replace(
                f":`{MARKER}`", ""
            )  # the store finds ids by it, models may not use it
            report = check(checked_query, schema, dialect=database.dialect)
            assert report.ok, report.errors

    agrees()
    stored_edges = {edge for block in database.edges() for edge in block}
    database.delete_edges(stored_edges)
    database.upsert(edges=STAR_EDGES)
    for plan, ids in ORDERED:
        assert [match.id for match in find_matches(plan, database, {})] == ids


def test_what_is_absent_may_go_along_an_edge_and_back(database: CypherStore) -> None:
    hop = {"rel": "R", "direction": "any", "negated": True}
    plan = GraphPlan.model_validate(
        {
            "hops": [
                hop | {"from": "T", "to_var": "none"},
                hop | {"from": "none", "to_var": "beyond"},
            ]
        }
    )
    edges = [Edge("n0", "R", "n1")]
    database.upsert(NODES, edges)
    stored_edges = {edge for block in database.edges() for edge in block}
    database.delete_edges(stored_edges - set(edges))
    for store in (MemoryStore.of(NODES, edges), database):
        matches = {match.id for match in find_matches(plan, store, {})}
        assert matches == set(IDS) - {"n0", "n1"}
