"""Import and a two-hop query of a graph of MetaQA's size, in Ladybug and Neo4j."""

from __future__ import annotations

import os
import random
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import bench_stores, synthetic
from benchmarks.figures import Report, medians, timed
from graphret.errors import GraphretError
from graphret.graphs import import_graph
from graphret.planning import GraphPlan, find_matches
from graphret.stores.memory import MemoryStore
from graphret.testing.neo4j_server import Neo4jServer

#: MetaQA's relations: the share of its 129,233 triples, and how many names stand at
#: their far end.
RELATIONS = {
    "directed_by": (0.12, 6_000),
    "written_by": (0.18, 11_000),
    "starred_actors": (0.33, 14_000),
    "release_year": (0.11, 110),
    "has_genre": (0.10, 25),
    "in_language": (0.03, 120),
    "has_tags": (0.11, 3_000),
    "has_imdb_rating": (0.01, 20),
    "has_imdb_votes": (0.01, 10),
}
FILMS, TRIPLES = 16_000, 129_233
_QUERY = (
    "MATCH (a:{label} {{id: $id}})-[:directed_by]->(d)<-[:directed_by]-(o) RETURN o.id"
    " AS id ORDER BY id"
)
_ASKED, _TURNS = 60, 9


def triples(seed: int = 0) -> Iterator[str]:
    """Lines of a ``kb.txt`` of MetaQA's size and shape."""
    rng = random.Random(seed)
    for relation, (share, names) in RELATIONS.items():
        pairs: set[tuple[int, int]] = set()
        while len(pairs) < TRIPLES * share:
            pairs.add((rng.randrange(FILMS), int(names * rng.random() ** 2)))
        for film, other in sorted(pairs):
            yield f"Film {film}|{relation}|{relation} {other}\n"


def databases(report: Report) -> None:
    """The part of the speed benchmark."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kb, lines = folder / "kb.txt", list(triples())
        kb.write_text("".join(lines), encoding="utf-8")
        report.counts["databases/triples"] = len(lines)
        directed = sorted(
            {line.split("|")[0] for line in lines if "|directed_by|" in line}
        )
        films = random.Random(0).sample(directed, _ASKED)
        for what, where, limit in (
            ("a folder", folder / "kb", 3.0),
            ("Ladybug", folder / "kb.lbug", 5.0),
        ):
            _import(report, kb, what, str(where), limit)
        _two_hops_ladybug(report, folder / "kb.lbug", films)
        try:
            with neo4j_server(folder) as uri:
                _import(report, kb, "Neo4j", uri, 30.0)
                _two_hops_neo4j(report, uri, films)
                _plans(report, folder / "kb", uri, films)
        except GraphretError as error:
            report.notes.append(f"databases: Neo4j was left out: {error}")
        _large(report, folder)


def _import(report: Report, kb: Path, what: str, where: str, limit: float) -> None:
    name = (
        f"a graph of {report.counts['databases/triples']:,} triples imported into"
        f" {what}"
    )
    report.add(
        f"import {what}",
        name,
        timed(lambda: import_graph(kb, where)),
        unit="s",
        target=limit,
    )


def _two_hops_ladybug(report: Report, path: Path, films: Sequence[str]) -> None:
    import ladybug

    from graphret.stores.ladybug import LadybugStore

    query = _QUERY.format(label="Movie")
    ours, bare = [], []
    for _ in range(_TURNS):  # a machine changes its pace: both meet each of them
        with LadybugStore(path) as store:
            ours.append(
                medians(
                    {"": lambda film, ask=store.query: ask(query, {"id": film}).rows},
                    films,
                )[""]
            )
        with ladybug.Connection(ladybug.Database(str(path), read_only=True)) as driver:
            bare.append(
                medians(
                    {
                        "": lambda film, ask=driver.execute: list(
                            ask(query, {"id": film})
                        )
                    },
                    films,
                )[""]
            )
    _ratio(report, "Ladybug", statistics.median(ours), statistics.median(bare))


def _two_hops_neo4j(report: Report, uri: str, films: Sequence[str]) -> None:
    import neo4j

    from graphret.stores.neo4j import Neo4jStore

    query = _QUERY.format(label="__Graphret__")
    with neo4j.GraphDatabase.driver(uri) as driver, Neo4jStore(uri) as store:

        def directly(film: str) -> Any:
            with driver.session(default_access_mode=neo4j.READ_ACCESS) as session:
                return session.execute_read(lambda tx: tx.run(query, id=film).values())

        seconds = medians(
            {
                "ours": lambda film: store.query(query, {"id": film}).rows,
                "bare": directly,
            },
            films,
        )
    _ratio(report, "Neo4j", seconds["ours"], seconds["bare"])


def _plans(report: Report, kb: Path, uri: str, films: Sequence[str]) -> None:
    """A plan of three hops in memory, and as a query of Neo4j."""
    from graphret.stores.neo4j import Neo4jStore

    hops = [
        ("a", "directed_by", "d"),
        ("d", "directed_by", "f"),
        ("f", "starred_actors", "T"),
    ]
    hop_fields = [
        {"from": one, "rel": relation, "to_var": other} for one, relation, other in hops
    ]
    plan = GraphPlan.model_validate(
        {
            "anchors": [{"var": "a", "text": "a film", "label": "Movie"}],
            "hops": hop_fields,
        }
    )
    memory, in_memory = MemoryStore.load(kb), []
    with Neo4jStore(uri) as server:
        schema = server.schema()

        def ours(film: str) -> None:
            in_memory.append(
                timed(lambda: find_matches(plan, memory, {"a": {film: 1.0}}))
            )

        def queried(film: str) -> None:
            find_matches(plan, server, {"a": {film: 1.0}}, schema=schema)

        seconds = medians({"ours": ours, "queried": queried}, films)
    report.add(
        "plan",
        "a plan of three hops in memory, median",
        1000 * seconds["ours"],
        unit="ms",
        target=5.0,
    )
    slowest = 1000 * sorted(in_memory)[int(0.99 * len(in_memory))]
    report.add(
        "plan slowest", "the same, 99th percentile", slowest, unit="ms", target=50.0
    )
    ratio = seconds["queried"] / seconds["ours"]
    report.add(
        "plan ratio",
        "the same plan as a query of Neo4j, against memory",
        ratio,
        target=20.0,
        at_least=True,
    )


def _ratio(report: Report, what: str, ours: float, bare: float) -> None:
    name = f"a query of two hops through our store, against {what}'s bare driver"
    report.add(f"two hops {what}", name, ours / bare, target=1.3)


def _large(
    report: Report, folder: Path, n_nodes: int = 1_000_000, degree: int = 10
) -> None:
    from graphret.stores.ladybug import LadybugStore

    columns = bench_stores.columns(n_nodes, degree)
    store = synthetic.store_of(**columns)
    with LadybugStore(folder / "large.lbug") as database:
        seconds = timed(lambda: database.load(store))
    n, m = store.count()
    report.counts |= {"databases/large, nodes": n, "databases/large, edges": m}
    name = f"a graph of {n:,} nodes and {m:,} edges into Ladybug"
    report.add("import large", name, seconds, unit="s", target=180.0)


@contextmanager
def neo4j_server(folder: Path) -> Iterator[str]:
    """Start a server, and give its address."""
    with Neo4jServer(folder / "neo4j", owner=os.getpid(), lasting=True) as server:
        yield server.uri
