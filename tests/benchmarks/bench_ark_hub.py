"""How long an exploration of a node with 100,000 neighbours takes, and how long what it returns is.

``python -m benchmarks.bench_ark_hub [--neighbors N] [--databases]``
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import synthetic
from benchmarks.bench_databases import neo4j_server
from benchmarks.figures import Figure, Report
from graphret.ark import ArkSettings, Toolbox
from graphret.errors import GraphretError
from graphret.schema.text import estimate_tokens
from graphret.search import BM25Index, DenseIndex, Neo4jTextIndex, TextIndex
from graphret.search.vectors import normalize
from graphret.stores import CypherStore, GraphStore, MemoryStore
from graphret.types import Edge, Node

N, DIMENSION = 100_000, 384
LIMIT = 20.0
_HUB = "hub"
_WORDS_A_NODE = 40
_LABELS = [("Person",), ("Film",), ("Film", "Short")]
_RELATIONS = ["acted_in", "directed", "liked", "seen"]
_TYPES = {"node_types": ["Film"], "relation_types": ["<-[acted_in]-", "directed"]}
_BEFORE, _ROUNDS, _WRITES, _FOLLOWING = 150, 15, 5, 40
_TURNS = itertools.count(1)


def hub(n: int, seed: int = 0) -> MemoryStore:
    """Return a node with `n` neighbours, edges half of them out of it and half into it, and as many edges elsewhere."""
    rng = np.random.default_rng(seed)
    lexicon = np.asarray(synthetic.words())
    ranks = np.minimum(rng.zipf(1.3, (n, _WORDS_A_NODE)), len(lexicon)) - 1
    texts = [" ".join(row) for row in lexicon[ranks].tolist()]
    names = [f"{a} {b}".title() for a, b in lexicon[rng.integers(len(lexicon), size=(n, 2))].tolist()]
    ids = [_HUB, *map(_spoke, range(n))]
    ends, out = np.arange(1, n + 1), np.arange(n) % 2 == 0
    return MemoryStore.from_arrays(
        ids,
        names=["The Hub", *names],
        texts=["", *texts],
        labels=np.concatenate([[0], rng.integers(len(_LABELS), size=n)]),
        label_sets=_LABELS,
        source=np.concatenate([np.where(out, 0, ends), rng.integers(1, n + 1, n)]),
        target=np.concatenate([np.where(out, ends, 0), rng.integers(1, n + 1, n)]),
        relation=rng.integers(len(_RELATIONS), size=2 * n),
        relations=_RELATIONS,
        weight=rng.random(2 * n).round(2),
    )


class _Vectors:
    """Gives a question a vector at once, so that only the search is timed."""

    name, dimension = "vectors", DIMENSION

    def __init__(self) -> None:
        self._rng = np.random.default_rng(1)

    def encode_queries(self, texts: Sequence[str]) -> Any:
        return normalize(self._rng.standard_normal((len(texts), DIMENSION)).astype(np.float32))

    def encode_documents(self, texts: Sequence[str], *, progress: object = None) -> Any:
        return self.encode_queries(texts)


def memory(report: Report, n: int = N) -> None:
    """The part of the speed benchmark: the hub in memory, searched by words and by vectors."""
    store = hub(n)
    report.counts |= {"ark hub/neighbours": n, "ark hub/calls of a kind": _ROUNDS}
    indexes = {"BM25": BM25Index.of_store(store), "dense": DenseIndex.of_store(store, _Vectors())}
    slowest, longest = 0.0, 0
    for name, index in indexes.items():
        index.scores("what an index makes when it is first asked")
        seconds, tokens = _calls(store, index)
        report.seconds |= {f"ark hub/{name}, {kind}": value for kind, value in seconds.items()}
        slowest, longest = max(slowest, *seconds.values()), max(longest, tokens)
    what = f"ARK: an exploration of a node with {n:,} neighbours, the slowest of {2 * len(seconds)} kinds of call"
    report.figures["ark hub"] = Figure(what, 1000 * slowest, unit="ms", target=LIMIT)
    budget = float(ArkSettings().observation_tokens)
    report.figures["ark hub tokens"] = Figure("the same: what it returns, at most", longest, "tokens", target=budget)
    store.attach(index := indexes["BM25"])
    _after_writes(report, "memory", store, index)
    _many_after_a_write(report, store, index)


def databases(report: Report, n: int = N) -> None:
    """The same hub in Ladybug and in Neo4j, the index in memory, and of Neo4j its own too."""
    store = hub(n)
    index = BM25Index.of_store(store)
    index.scores("what an index makes when it is first asked")
    with tempfile.TemporaryDirectory() as folder:
        from graphret.stores.ladybug import LadybugStore

        with LadybugStore.from_store(str(Path(folder, "hub.lbug")), store) as there:
            _database(report, "Ladybug", there, index)
        try:
            with neo4j_server(Path(folder)) as uri:
                from graphret.stores.neo4j import Neo4jStore

                with Neo4jStore(uri) as there:
                    for block in store.nodes():
                        there.upsert(block)
                    for relation in _RELATIONS:  # all at once: those that are there are not looked through
                        there.upsert((), [edge for links in store.edges([relation]) for edge in links])
                    _floor(report, there)
                    _database(report, "Neo4j", there, index)
                    _database(report, "Neo4j, its own index", there, Neo4jTextIndex.create(there))
        except GraphretError as error:
            report.notes.append(f"ark hub: Neo4j was left out: {error}")


def whole(report: Report) -> None:
    """The part of the speed benchmark: the hub in memory and in databases."""
    memory(report)
    databases(report)


def _floor(report: Report, store: CypherStore) -> None:
    """Time what Neo4j takes to count the neighbours: no call that goes through them in the server is quicker."""
    query, taken = "MATCH (hub:__Graphret__ {id: $id})--(other) RETURN count(other)", []
    for _ in range(_ROUNDS + 1):
        start = time.perf_counter()
        assert store.query(query, {"id": _HUB}).rows
        taken.append(time.perf_counter() - start)
    what = "Cypher's bare count of the same node's neighbours in Neo4j"
    report.figures["ark hub Neo4j count"] = Figure(what, 1000 * statistics.median(taken[1:]), unit="ms")


def _database(report: Report, name: str, store: GraphStore, index: TextIndex) -> None:
    """Time the calls on a hub that was read, and the first call after a write."""
    seconds, _ = _calls(store, index)
    report.seconds |= {f"ark hub/{name}, {kind}": value for kind, value in seconds.items()}
    what = f"ARK: an exploration of the same node in {name}, read before, the slowest kind of call"
    report.figures[f"ark hub {name}"] = Figure(what, 1000 * max(seconds.values()), unit="ms", target=LIMIT)
    _after_writes(report, name, store, index)


def _after_writes(report: Report, name: str, store: GraphStore, index: TextIndex) -> None:
    """Time the first call after each kind of small write, which has to find out what was written."""
    lexicon = synthetic.words()
    writes: dict[str, Callable[[int], Any]] = {
        "a node elsewhere": lambda i: store.upsert([Node(f"elsewhere {i}", ("Film",), "written")]),
        "an edge elsewhere": lambda i: store.upsert((), [Edge(_spoke(i), "seen", _spoke(i + 1))]),
        "an edge of the node": lambda i: store.upsert((), [Edge(_HUB, "seen", _spoke(i), 0.5)]),
        "a neighbour": lambda i: store.upsert([Node(_spoke(i), ("Film",), "renamed", "written")]),
        "a neighbour that goes": lambda i: store.delete([_spoke(i)]),
    }
    calls: dict[str, Callable[[int], dict[str, Any]]] = {
        "no query": lambda _: {},
        "types": lambda _: _TYPES,
        "a new query": lambda i: {"query": f"{lexicon[4 * i]} {lexicon[700 + i]}"},
        "a new query, types, k = 100": lambda i: {"query": f"{lexicon[3 * i]} {lexicon[600 + i]}", "k": 100, **_TYPES},
    }
    tools, slowest = Toolbox(store, index), 0.0
    assert tools.run("explore_neighborhood", {"node": _HUB, "query": lexicon[500], **_TYPES}).nodes  # reads the schema
    for written, write in writes.items():
        for kind, make in calls.items():
            taken = []
            for _ in range(_WRITES):
                turn = next(_TURNS)  # each writes something else, also in the same store
                write(turn)
                start = time.perf_counter()
                assert tools.run("explore_neighborhood", {"node": _HUB, **make(turn)}).nodes
                taken.append(time.perf_counter() - start)
            report.seconds[f"ark hub/{name}, after {written}, {kind}"] = statistics.median(taken)
            slowest = max(slowest, statistics.median(taken))
    what = f"the same in {name}: the first call after a small write, the slowest of {len(writes) * len(calls)} kinds"
    report.figures[f"ark hub {name} first"] = Figure(what, 1000 * slowest, unit="ms", target=LIMIT)


def _many_after_a_write(report: Report, store: GraphStore, index: TextIndex) -> None:
    """Time many calls one after another after a write, among them those beside which the index makes its weights."""
    lexicon, tools, slowest = synthetic.words(), Toolbox(store, index), []
    for turn in itertools.islice(_TURNS, _WRITES):
        store.upsert([Node(_spoke(turn), ("Film",), "renamed", "written")])
        taken = []
        for i in range(_FOLLOWING):
            start = time.perf_counter()
            query = f"{lexicon[2 * i]} {lexicon[500 + turn]}"
            assert tools.run("explore_neighborhood", {"node": _HUB, "query": query, **_TYPES}).nodes
            taken.append(time.perf_counter() - start)
        slowest.append(max(taken))
    what = f"the same in memory: {_FOLLOWING} calls after a write, each of a new query, the slowest of them"
    seconds = report.seconds["ark hub/memory, the slowest call after a write"] = statistics.median(slowest)
    report.figures["ark hub memory following"] = Figure(what, 1000 * seconds, unit="ms", target=LIMIT)


def _spoke(i: int) -> str:
    return f"n{i:07d}"


def _calls(store: GraphStore, index: TextIndex) -> tuple[dict[str, float], int]:
    """Return the median seconds of each kind of call, and the longest observation.

    Each kind is called for a while before: a server that begins, and compiles itself, takes several times as long.
    """
    tools = Toolbox(store, index)
    lexicon = synthetic.words()
    kinds: dict[str, Callable[[int], dict[str, Any]]] = {
        "no query": lambda _: {},
        "types": lambda _: _TYPES,
        "a new query": lambda i: {"query": f"{lexicon[5 * i]} {lexicon[900 + i]} {lexicon[9000 + i]}"},
        "a new query, types": lambda i: {"query": f"{lexicon[6 * i]} {lexicon[800 + i]}", **_TYPES},
        "a new query, k = 100": lambda i: {"query": f"{lexicon[7 * i]} {lexicon[1000 + i]}", "k": 100},
        "a new query, types, k = 100": lambda i: {"query": f"{lexicon[8 * i]} {lexicon[1100 + i]}", "k": 100, **_TYPES},
        "the same query, k = 100": lambda _: {"query": f"{lexicon[7]} {lexicon[1000]}", "k": 100},
        "a query without a match": lambda i: {"query": f"qqq{i}"},
    }
    taken: dict[str, list[float]] = {kind: [] for kind in kinds}
    longest = 0
    for i in range(_BEFORE + _ROUNDS):
        for kind, make in kinds.items():
            arguments = {"node": _HUB, **make(i)}
            start = time.perf_counter()
            found = tools.run("explore_neighborhood", arguments)
            taken[kind].append(time.perf_counter() - start)
            assert found.nodes, arguments
            longest = max(longest, estimate_tokens(found.text))
    return {kind: statistics.median(values[_BEFORE:]) for kind, values in taken.items()}, longest


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_ark_hub", description=__doc__)
    parser.add_argument("--neighbors", type=int, default=N, help="how many neighbours the node has")
    parser.add_argument(
        "--databases", action="store_true", help="also in Ladybug, and in Neo4j where it can be started"
    )
    chosen = parser.parse_args(arguments)
    report = Report()
    memory(report, chosen.neighbors)
    if chosen.databases:
        databases(report, chosen.neighbors)
    print(report.to_markdown())
    for name, seconds in report.seconds.items():
        print(f"{name}: {1000 * seconds:.1f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
