"""A bounded attack on graphret, on the embedded default: ``python tests/bounded_attack.py``.

Hostile queries go through the guard to a database, and writers of an index are killed.
What is printed is how often each was tried, and how often it got through, which must be
never: the exit status is 1 otherwise. What else was tried is in
``docs/concepts/security.md``.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import threading
import time
from itertools import product
from pathlib import Path
from socketserver import BaseRequestHandler, TCPServer
from typing import Any

from graphret.cypher import run_checked
from graphret.errors import GraphretError
from graphret.stores import LadybugStore, MemoryStore, open_store
from graphret.stores.base import GraphStore
from graphret.testing.graphs import all_edges, all_nodes
from graphret.types import Edge, Node

SECRET = "canary-6f1d0c"
#: What must not run; see `Canary.put_in`.
_STATEMENTS = (
    "CREATE (:Person {id: 'pwned'})",
    "MATCH (n) DETACH DELETE n",
    "MATCH (n) FOREACH (x IN [1] | SET n.name = 'pwned')",
    "DROP TABLE Person",
    "CREATE NODE TABLE Pwned(id STRING, PRIMARY KEY(id))",
    "LOAD FROM 'CANARY_FILE' (file_format='csv', header=false) RETURN *",
    "LOAD CSV FROM 'CANARY_URL' AS row RETURN row",
    "COPY (RETURN 1) TO 'OUT_FILE.csv'",
    "EXPORT DATABASE 'OUT_FILE'",
    "ATTACH 'OUT_FILE' AS other (dbtype ladybug)",
    "INSTALL httpfs",
    "CALL threads=1",
    "CALL db.createLabel('Pwned')",
    "RETURN read_text('CANARY_FILE')",
    "UNWIND range(1, 1000000000) AS i RETURN count(i)",
    "RETURN reduce(s = [1], i IN range(1, 60) | s + s)",
    "MATCH p = (:Person)-[*]->() RETURN count(p)",
)
#: How they are hidden.
_DISGUISES = (
    "%s",
    "/* RETURN 1 */ %s",
    "MATCH (n:Person) RETURN n.name LIMIT 1; %s",
    "MATCH (n:Person) WITH n LIMIT 1 %s",
    "RETURN 1 UNION %s",
    "CALL { %s } RETURN 1",
    "MATCH (n:Person) WHERE n.name = '' %s //' RETURN n LIMIT 1",
)


class Canary(TCPServer):
    """A secret in a file, a port that notes callers, and a file that must not appear."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), BaseRequestHandler)
        self.file, self.out, self.calls = folder / "canary.csv", folder / "out", 0
        self.file.write_text(f"{SECRET}\n", encoding="utf-8")
        self.url = f"http://127.0.0.1:{self.server_address[1]}/x.csv"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def verify_request(self, *_: Any) -> bool:
        self.calls += 1
        return True

    def put_in(self, text: str) -> str:
        for name, value in (
            ("CANARY_FILE", self.file),
            ("CANARY_URL", self.url),
            ("OUT_FILE", self.out),
        ):
            text = text.replace(name, str(value))
        return text

    @property
    def touched(self) -> bool:
        return self.calls > 0 or any(self.out.parent.glob("out*"))


class Attacked:
    """A store with a small graph, and what it held at first."""

    def __init__(self, store: Any) -> None:
        self.store = store
        people = [
            Node(name, ("Person",), name.title(), properties={"age": 40})
            for name in ("ann", "bob", "cat")
        ]
        store.upsert(people, [Edge("ann", "knows", "bob"), Edge("bob", "knows", "cat")])
        self.before = self.state()

    def state(self) -> tuple[Any, ...]:
        """All that a write would change."""
        schema = self.store.schema()
        return (
            self.store.count(),
            *_content(self.store),
            sorted(schema.labels),
            sorted(schema.relations),
        )


def _content(store: GraphStore) -> tuple[list[Node], list[Edge]]:
    return all_nodes(store), all_edges(store)


def hostile_queries(folder: Path) -> list[bool]:
    """Run disguised statements that write, read files, call out or never end."""
    held = []
    with LadybugStore(folder / "graph.lbug") as store, Canary(folder) as canary:
        attacked = Attacked(store)
        for statement, disguise, space in product(
            _STATEMENTS, _DISGUISES, (" ", "/**/")
        ):
            started, query = (
                time.monotonic(),
                disguise % canary.put_in(statement.replace(" ", space)),
            )
            try:
                answer = repr(run_checked(store, query, timeout=2).rows)
            except GraphretError as error:
                answer = str(error)
            quick = time.monotonic() - started < 10
            held.append(
                quick
                and SECRET not in answer
                and attacked.state() == attacked.before
                and not canary.touched
            )
        canary.shutdown()
    return held


def killed_writers(folder: Path, trials: int = 16) -> list[bool]:
    """Kill a writer of an index at random moments: its last saved index is found."""
    rng, held, last = random.Random(0), [], 0
    _save_numbered(folder, last)
    for _ in range(trials):
        child = os.fork()
        while not child:  # in the child: save one after the other, to the end
            last += 1
            _save_numbered(folder, last)
        time.sleep(rng.uniform(0.0, 0.1))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        numbers = {
            one.properties["number"]
            for some in _content(open_store(folder))
            for one in some
        }
        held.append(len(numbers) == 1 and min(numbers) >= last)
        last = max(numbers)
        _save_numbered(folder, last)  # which finds no lock
    return held


def _save_numbered(folder: Path, number: int) -> None:
    nodes = [Node(f"n{i}", properties={"number": number}) for i in range(1_000)]
    MemoryStore.of(
        nodes, [Edge(node.id, "R", "n0", 1.0, {"number": number}) for node in nodes]
    ).save(folder)


def main() -> int:
    """Run all, print the counts, and return the exit status."""
    failed = 0
    for attack in (hostile_queries, killed_writers):
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            held = attack(Path(folder))
        took, name, through = (
            time.monotonic() - started,
            attack.__name__.replace("_", " "),
            held.count(False),
        )
        print(
            f"{name:<16} {len(held):>5} tried {through:>3} got through  {took:5.1f} s",
            flush=True,
        )
        failed += through
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
