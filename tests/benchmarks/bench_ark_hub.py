"""How long it takes to explore a node with 100,000 neighbours, by store."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import ladybug
import neo4j as neo4j_driver
import numpy as np

from benchmarks import synthetic
from benchmarks.bench_databases import neo4j_server
from benchmarks.figures import Report, timed
from graphret.ark import Toolbox
from graphret.graphs import import_graph
from graphret.search import BM25Index, TextIndex
from graphret.stores import GraphStore, MemoryStore
from graphret.stores.ladybug import LadybugStore
from graphret.stores.neo4j import Neo4jStore

N, LIMIT, ROUNDS, CALLS, HEAVIEST = 100_000, 20.0, 15, 100, 100
_HUB = "hub"
_LABELS = [("Person",), ("Film",), ("Film", "Short")]
_RELATIONS = ["acted_in", "directed", "liked", "seen"]
_LADYBUG = "n.id, m.id, label(r), r.weight, r.properties"
_NEO4J = (
    "MATCH (a:__Graphret__ {id: $id})-[r]-(b) WITH r, startNode(r).id AS source,"
    " endNode(r).id AS target ORDER BY r.weight DESC, source, target, type(r) LIMIT"
    " $limit RETURN source, type(r), target, properties(r)"
)


def hub(n: int = N, seed: int = 0) -> MemoryStore:
    """Return a node with `n` edges, half of them out of it, and as many edges elsewhere."""
    rng = np.random.default_rng(seed)
    lexicon = np.asarray(synthetic.words())
    texts = [
        " ".join(row)
        for row in lexicon[
            np.minimum(rng.zipf(1.3, (n, 40)), len(lexicon)) - 1
        ].tolist()
    ]
    names = [
        f"{a} {b}".title()
        for a, b in lexicon[rng.integers(len(lexicon), size=(n, 2))].tolist()
    ]
    neighbors, out = np.arange(1, n + 1), np.arange(n) % 2 == 0
    return synthetic.store_of(
        [_HUB, *(f"n{i:07d}" for i in range(n))],
        names=["The Hub", *names],
        texts=["", *texts],
        labels=np.concatenate([[0], rng.integers(len(_LABELS), size=n)]),
        label_sets=_LABELS,
        source=np.concatenate([np.where(out, 0, neighbors), rng.integers(1, n + 1, n)]),
        target=np.concatenate([np.where(out, neighbors, 0), rng.integers(1, n + 1, n)]),
        relation=rng.integers(len(_RELATIONS), size=2 * n),
        relations=_RELATIONS,
        weight=rng.random(2 * n).round(2),
    )


def whole(report: Report, n: int = N) -> None:
    """The slowest kind of call, and heaviest edges against a database's own query."""
    store = hub(n)
    report.counts["ark hub/neighbours"] = n
    index = BM25Index.of_store(store)
    index.scores("what an index makes when it is first asked")
    what = (
        f"ARK: an exploration of a node with {n:,} neighbours, the slowest kind of call"
    )
    report.add("ark hub", what, 1000 * _slowest(store, index), unit="ms", target=LIMIT)
    _neighborhood(report, "memory", _calls(store))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "hub")
        with LadybugStore(path) as database:
            database.load(store)
            ours = _calls(database)
        query = (
            f"MATCH (n:Person {{id: $id}})-[r]-(m) RETURN {_LADYBUG} ORDER BY r.weight"
            f" DESC, m.id LIMIT {HEAVIEST}"
        )
        with ladybug.Connection(ladybug.Database(str(path), read_only=True)) as driver:
            bare = [
                timed(lambda: list(driver.execute(query, {"id": _HUB})))
                for _ in range(ROUNDS)
            ]
        _neighborhood(report, "Ladybug", ours, bare)


def neo4j(report: Report, n: int = N) -> None:
    """The same in a Neo4j."""
    store = hub(n)
    with tempfile.TemporaryDirectory() as folder, neo4j_server(Path(folder)) as uri:
        store.save(Path(folder, "hub"))
        import_graph(str(Path(folder, "hub")), uri)
        with Neo4jStore(uri) as database:
            ours = _calls(database)
        with (
            neo4j_driver.GraphDatabase.driver(uri) as driver,
            driver.session(default_access_mode="READ") as session,
        ):
            bare = [
                timed(
                    lambda: session.execute_read(
                        lambda tx: tx.run(_NEO4J, id=_HUB, limit=HEAVIEST).values()
                    )
                )
                for _ in range(ROUNDS)
            ]
        _neighborhood(report, "Neo4j", ours, bare)


def _calls(store: GraphStore) -> list[float]:
    """Time a hundred calls for the hub's heaviest edges, another node before each."""
    store.neighbors(["n0000000"], limit=HEAVIEST)
    return [
        timed(lambda: store.neighbors([_HUB], limit=HEAVIEST)) for _ in range(CALLS)
    ]


def _neighborhood(
    report: Report, name: str, ours: list[float], bare: list[float] | None = None
) -> None:
    what, typical = (
        f"the {HEAVIEST} heaviest edges of that node, {name}",
        statistics.median(ours),
    )
    if bare is None:
        report.add(f"hub {name}", what, 1000 * typical, unit="ms", target=LIMIT)
    else:
        report.add(
            f"hub {name}",
            f"{what}, against its bare query",
            typical / statistics.median(bare),
            target=2.0,
        )


def _slowest(store: GraphStore, index: TextIndex) -> float:
    """Return the median seconds of the slowest kind of call."""
    tools, words = Toolbox(store, index), synthetic.words()
    types = {"node_types": ["Film"], "relation_types": ["<-[acted_in]-", "directed"]}
    kinds: dict[str, Callable[[int], dict[str, Any]]] = {
        "no query": lambda i: {},
        "a query": lambda i: {
            "query": f"{words[5 * i]} {words[900 + i]} {words[9000 + i]}",
            "k": 100,
        },
        "types": lambda i: types,
        "a query, types": lambda i: {
            "query": f"{words[6 * i]} {words[800 + i]}",
            **types,
        },
    }

    def call(arguments: dict[str, Any]) -> None:
        assert tools.run("explore_neighborhood", {"node": _HUB, **arguments}).nodes

    rounds = [
        [timed(partial(call, make(i))) for make in kinds.values()]
        for i in range(ROUNDS)
    ]
    return max(statistics.median(seconds) for seconds in zip(*rounds, strict=True))
