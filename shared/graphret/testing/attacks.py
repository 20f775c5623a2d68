"""A bounded attack on graphret, on the embedded default: ``python -m graphret.testing.attacks``.

Hostile queries go through the guard to a database, bytes of an index are flipped, writers of an index are killed, and
views are asked at random. What is printed is how often each was tried, and how often it got through, which must be
never: the exit status is 1 otherwise. What else was tried is in ``docs/concepts/security.md``.
"""

from __future__ import annotations

import random
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

from graphret.cypher import run_checked
from graphret.errors import GraphretError
from graphret.search import BM25Index
from graphret.stores import LadybugStore, MemoryStore, open_store
from graphret.testing import kills
from graphret.types import Edge, Node

_SECRET = "canary-6f1d0c"
#: What must not run. FILE holds a secret, PORT notes who calls, and OUT must not come to be.
_STATEMENTS = (
    "CREATE (:Person {id: 'pwned'})",
    "MERGE (:Person {id: 'pwned'})",
    "MATCH (n) SET n.name = 'pwned'",
    "MATCH (n) DETACH DELETE n",
    "MATCH (n) REMOVE n.name",
    "MATCH (n) FOREACH (x IN [1] | SET n.name = 'pwned')",
    "DROP TABLE Person",
    "ALTER TABLE Person DROP name",
    "CREATE NODE TABLE Pwned(id STRING, PRIMARY KEY(id))",
    "LOAD FROM 'FILE' (file_format='csv', header=false) RETURN *",
    "LOAD FROM 'http://127.0.0.1:PORT/x.csv' RETURN *",
    "LOAD CSV FROM 'http://127.0.0.1:PORT/x.csv' AS row RETURN row",
    "COPY (RETURN 1) TO 'OUT.csv'",
    "COPY Person FROM 'FILE'",
    "EXPORT DATABASE 'OUT'",
    "IMPORT DATABASE 'OUT'",
    "ATTACH 'OUT' AS other (dbtype ladybug)",
    "INSTALL httpfs",
    "LOAD EXTENSION httpfs",
    "CALL threads=1",
    "CALL show_tables() RETURN *",
    "CALL db.createLabel('Pwned')",
    "CHECKPOINT",
    "BEGIN TRANSACTION",
    "CREATE MACRO pwned(x) AS x + 1",
    "RETURN read_text('FILE')",
    "UNWIND range(1, 1000000000) AS i RETURN count(i)",
    "RETURN reduce(s = [1], i IN range(1, 60) | s + s)",
    "MATCH p = (:Person)-[*]->() RETURN count(p)",
)
#: How they are hidden.
_DISGUISES: tuple[Callable[[str], str], ...] = (
    str,
    str.lower,
    lambda text: f"/* RETURN 1 */ {text}",
    lambda text: text.replace(" ", "/**/"),
    lambda text: text.replace(" ", "\n// a comment\n"),
    lambda text: f"MATCH (n:Person) RETURN n.name LIMIT 1; {text}",
    lambda text: f"MATCH (n:Person) WITH n LIMIT 1 {text}",
    lambda text: f"RETURN 1 UNION {text}",
    lambda text: f"CALL {{ {text} }} RETURN 1",
    lambda text: f"MATCH (n:Person) WHERE n.name = '' {text} //' RETURN n LIMIT 1",
)


def hostile_queries(folder: Path) -> dict[str, int]:
    """Run statements that write, read files, call out or never end, in disguises, and see what comes of them."""
    file, out = folder / "secret.csv", folder / "out"
    file.write_text(f"{_SECRET}\n", encoding="utf-8")
    through = 0
    people = [Node(name, ("Person",), name.title(), properties={"age": 40}) for name in ("ann", "bob", "cat")]
    with socket.create_server(("127.0.0.1", 0)) as listening, LadybugStore(folder / "graph.lbug") as store:
        listening.setblocking(False)
        places = {"FILE": str(file), "PORT": str(listening.getsockname()[1]), "OUT": str(out)}
        store.upsert(people, [Edge("ann", "knows", "bob"), Edge("bob", "knows", "cat")])
        before = _content(store)
        for statement, disguise in product(_STATEMENTS, _DISGUISES):
            query = statement
            for place, value in places.items():
                query = query.replace(place, value)
            started, answer = time.monotonic(), ""
            try:
                answer = repr(run_checked(store, disguise(query), timeout=2).rows)
            except GraphretError as error:
                answer = str(error).replace(str(file), "")
            late = time.monotonic() - started > 10
            through += late or _SECRET in answer or _content(store) != before or bool(list(folder.glob("out*")))
        with suppress(BlockingIOError):
            listening.accept()
            through += 1
    return {"tried": len(_STATEMENTS) * len(_DISGUISES), "got through": through}


def _content(store: Any) -> Any:
    return store.count(), store.get(["ann", "bob", "cat"]), sorted(store.schema().labels)


def flipped_bytes(folder: Path, trials: int = 300) -> dict[str, int]:
    """Flip a byte of an index at random: it is named on opening, or nothing that is read has changed."""
    graph = MemoryStore.of(*_views_graph(random.Random(0)))
    graph.save(folder)
    files, rng, through = [one for one in sorted(folder.rglob("*")) if one.stat().st_size], random.Random(0), 0
    whole = [node for block in graph.nodes() for node in block]
    for _ in range(trials):
        file = rng.choice([one for one in files if one.is_file()])
        content = file.read_bytes()
        at = rng.randrange(len(content))
        file.write_bytes(content[:at] + bytes([content[at] ^ rng.randrange(1, 256)]) + content[at + 1 :])
        with suppress(GraphretError):
            through += [node for block in open_store(folder).nodes() for node in block] != whole
        file.write_bytes(content)
    return {"tried": trials, "got through": through}


def killed_writers(folder: Path, trials: int = 24) -> dict[str, int]:
    """Kill a writer of an index at random moments: the index before it or the new one is found."""
    return {"tried": trials, "got through": kills.main(folder, trials)["neither"]}


def asked_views(folder: Path, trials: int = 2_000) -> dict[str, int]:
    """Ask views at random for what they hide: by id, by neighbour, by filter, by search, by count."""
    rng = random.Random(0)
    nodes, edges = _views_graph(rng)
    store = MemoryStore.of(nodes, edges)
    view, index = store.view({"team": "open"}), BM25Index.of_store(store).view({"team": "open"})
    ids = [node.id for node in nodes]
    open_ids = {node.id for node in nodes if node.properties["team"] == "open"}

    def answers(some: list[str]) -> Iterator[str]:
        yield from (node.id for node in view.get(some) if node is not None)
        yield from (end for edge in view.neighbors(some) for end in (edge.source, edge.target))
        yield from (end for edge in view.neighbors(some, where={"team": "hr"}) for end in (edge.source, edge.target))
        yield from index.search(" ".join(f"secret {one}" for one in some), 10).ids
        yield from (node.id for block in view.nodes(where={"team": "hr"}) for node in block)

    through = sum(not open_ids.issuperset(answers(rng.sample(ids, 5))) for _ in range(trials // 5))
    return {"tried": trials, "got through": through + (view.count()[0] != len(open_ids))}


def _views_graph(rng: random.Random) -> tuple[list[Node], list[Edge]]:
    teams = [rng.choice(["open", "hr"]) for _ in range(200)]
    nodes = [Node(f"n{i}", ("P",), f"{team} {i}", f"secret n{i}", {"team": team}) for i, team in enumerate(teams)]
    edges = [Edge(f"n{rng.randrange(200)}", "R", f"n{rng.randrange(200)}") for _ in range(600)]
    return nodes, edges


def main() -> int:
    """Run all, print the counts, and return the exit status."""
    worst = 0
    for attack in (hostile_queries, flipped_bytes, killed_writers, asked_views):
        with tempfile.TemporaryDirectory() as folder:
            started = time.monotonic()
            counts = attack(Path(folder) / attack.__name__ if attack is killed_writers else Path(folder))
        took = time.monotonic() - started
        name, tried, through = attack.__name__.replace("_", " "), counts["tried"], counts["got through"]
        print(f"{name:<16} {tried:>5} tried {through:>3} got through  {took:5.1f} s", flush=True)
        worst = max(worst, through)
    return min(worst, 1)


if __name__ == "__main__":
    sys.exit(main())
