"""A knowledge graph of MetaQA's size in a folder, in Ladybug and in Neo4j: imports, and a query of two hops."""

from __future__ import annotations

import random
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import bench_stores
from benchmarks.figures import Figure, Report, timed
from graphret.errors import GraphretError
from graphret.graphs import import_graph
from graphret.stores.memory import MemoryStore

#: MetaQA's relations: the share of its 129,233 triples, and how many names stand at their far end.
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
_QUERY = "MATCH (a:{label} {{id: $id}})-[:directed_by]->(d)<-[:directed_by]-(o) RETURN o.id AS id ORDER BY id"
_ASKED, _TURNS = 60, 9


def triples(seed: int = 0) -> Iterator[str]:
    """Lines of a ``kb.txt`` of MetaQA's size and shape."""
    rng = random.Random(seed)
    for relation, (share, names) in RELATIONS.items():
        seen: set[tuple[int, int]] = set()
        while len(seen) < TRIPLES * share:
            seen.add((rng.randrange(FILMS), int(names * rng.random() ** 2)))
        for film, other in sorted(seen):
            yield f"Film {film}|{relation}|{relation} {other}\n"


def databases(report: Report) -> None:
    """The part of the speed benchmark."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kb = folder / "kb.txt"
        kb.write_text("".join(triples()), encoding="utf-8")
        with kb.open(encoding="utf-8") as lines:
            report.counts["databases/triples"] = sum(1 for _ in lines)
        films = _films(kb)
        for what, where, limit in (("a folder", folder / "kb", 3.0), ("Ladybug", folder / "kb.lbug", 5.0)):
            seconds = timed(lambda to=str(where): import_graph(kb, to))  # type: ignore[misc]
            _import_figure(report, what, seconds, limit)
        _two_hops_ladybug(report, folder / "kb.lbug", films)
        try:
            with neo4j_server(folder) as uri:
                _import_figure(report, "Neo4j", timed(lambda: import_graph(kb, uri)), 30.0)
                _two_hops_neo4j(report, uri, films)
        except GraphretError as error:
            report.notes.append(f"databases: Neo4j was left out: {error}")
        _large(report, folder)


def _import_figure(report: Report, what: str, seconds: float, limit: float) -> None:
    name = f"a graph of {report.counts['databases/triples']:,} triples imported into {what}"
    report.figures[f"import {what}"] = Figure(name, seconds, unit="s", target=limit)


def _films(kb: Path) -> list[str]:
    with kb.open(encoding="utf-8") as lines:
        found = sorted({line.split("|")[0] for line in lines if "|directed_by|" in line})
    return random.Random(0).sample(found, _ASKED)


def _two_hops_ladybug(report: Report, path: Path, films: Sequence[str]) -> None:
    import ladybug

    from graphret.stores.ladybug import LadybugStore

    query = _QUERY.format(label="Movie")
    ours, bare = [], []
    for _ in range(_TURNS):  # a machine changes its pace: both meet each of them
        with LadybugStore(path) as store:
            ours.append(_each(films, lambda film, ask=store.query: ask(query, {"id": film}).rows))  # type: ignore[misc]
        with ladybug.Connection(ladybug.Database(str(path), read_only=True)) as driver:
            bare.append(_each(films, lambda film, ask=driver.execute: list(ask(query, {"id": film}))))  # type: ignore[misc]
    _ratio(report, "Ladybug", statistics.median(ours), statistics.median(bare))


def _two_hops_neo4j(report: Report, uri: str, films: Sequence[str]) -> None:
    import neo4j

    from graphret.stores.neo4j import Neo4jStore

    query = _QUERY.format(label="__Graphret__")
    with neo4j.GraphDatabase.driver(uri) as driver, Neo4jStore(uri) as store:

        def directly(film: str) -> Any:
            with driver.session(default_access_mode=neo4j.READ_ACCESS) as session:
                return session.execute_read(lambda tx: tx.run(query, id=film).values())

        contestants: list[Callable[[str], Any]] = [lambda film: store.query(query, {"id": film}).rows, directly]
        pairs = [[timed(lambda w=work, f=film: w(f)) for work in contestants] for film in films]  # type: ignore[misc]
    ours, bare = (statistics.median(column) for column in zip(*pairs[5:], strict=True))
    _ratio(report, "Neo4j", ours, bare)


def _ratio(report: Report, what: str, ours: float, bare: float) -> None:
    report.seconds |= {f"databases/two hops, {what}": ours, f"databases/two hops, {what}, bare driver": bare}
    name = f"a query of two hops through our store, against {what}'s bare driver"
    report.figures[f"two hops {what}"] = Figure(name, ours / bare, target=1.3)


def _large(report: Report, folder: Path, n_nodes: int = 1_000_000, degree: int = 10) -> None:
    from graphret.stores.ladybug import LadybugStore

    given = bench_stores.columns(n_nodes, degree)
    store = MemoryStore.from_arrays(given.pop("ids"), **given)
    with LadybugStore(folder / "large.lbug") as there:
        seconds = timed(lambda: there.load(store))
    n, m = store.count()
    report.counts |= {"databases/large, nodes": n, "databases/large, edges": m}
    name = f"a graph of {n:,} nodes and {m:,} edges into Ladybug"
    report.figures["import large"] = Figure(name, seconds, unit="s", target=180.0)


@contextmanager
def neo4j_server(folder: Path) -> Iterator[str]:
    import os

    from graphret.testing.neo4j_server import CannotStart, Neo4jServer

    server = Neo4jServer(folder / "neo4j", owner=os.getpid(), lasting=True)
    try:
        server.start()
    except CannotStart as error:
        raise GraphretError(str(error)) from error
    try:
        yield server.uri
    finally:
        server.stop()


def _each(films: Sequence[str], work: Callable[[str], Any]) -> float:
    taken = [timed(lambda f=film: work(f)) for film in films]  # type: ignore[misc]
    return statistics.median(taken[5:])
