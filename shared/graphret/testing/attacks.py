"""A bounded attack on graphret, on the embedded default: ``python -m graphret.testing.attacks``.

Hostile queries go through the guard to a database, bytes of an index are flipped, writers of an index are killed, and
views are asked at random. What is printed is how often each was tried, and how often it got through, which must be
never: the exit status is 1 otherwise. What else was tried is in ``docs/concepts/security.md``.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

from graphret.cypher import run_checked
from graphret.errors import GraphretError
from graphret.search import BM25Index
from graphret.stores import LadybugStore, MemoryStore, open_store
from graphret.types import Edge, Node

SECRET = "canary-6f1d0c"
#: What must not run; see `Canary.put_in`.
_STATEMENTS = (
    "CREATE (:Person {id: 'pwned'})",
    "MATCH (n) SET n.name = 'pwned'",
    "MATCH (n) DETACH DELETE n",
    "MATCH (n) FOREACH (x IN [1] | SET n.name = 'pwned')",
    "DROP TABLE Person",
    "CREATE NODE TABLE Pwned(id STRING, PRIMARY KEY(id))",
    "LOAD FROM 'CANARY_FILE' (file_format='csv', header=false) RETURN *",
    "LOAD FROM 'CANARY_URL' RETURN *",
    "LOAD CSV FROM 'CANARY_URL' AS row RETURN row",
    "COPY (RETURN 1) TO 'OUT_FILE.csv'",
    "COPY Person FROM 'CANARY_FILE'",
    "EXPORT DATABASE 'OUT_FILE'",
    "ATTACH 'OUT_FILE' AS other (dbtype ladybug)",
    "INSTALL httpfs",
    "CALL threads=1",
    "CALL show_tables() RETURN *",
    "CALL db.createLabel('Pwned')",
    "CHECKPOINT",
    "CREATE MACRO pwned(x) AS x + 1",
    "RETURN read_text('CANARY_FILE')",
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


class Canary:
    """A secret in a file, a port that notes who calls, and a file that must not come to be."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "canary.csv"
        self.file.write_text(f"{SECRET}\n", encoding="utf-8")
        self.out = folder / "out"
        self.calls = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/x.csv"
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                caller, _ = self._socket.accept()
            except OSError:
                return
            self.calls += 1
            with caller:
                caller.recv(4096)
                caller.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(SECRET)}\r\n\r\n{SECRET}".encode())

    def close(self) -> None:
        self._socket.close()

    def put_in(self, text: str) -> str:
        """The text with the places of this canary."""
        for name, value in (("CANARY_FILE", self.file), ("CANARY_URL", self.url), ("OUT_FILE", self.out)):
            text = text.replace(name, str(value))
        return text

    @property
    def touched(self) -> bool:
        """Whether somebody called, or wrote the file."""
        return self.calls > 0 or any(self.out.parent.glob("out*"))


class Attacked:
    """A store with a small graph, and perhaps how to run a query on its database with no guard."""

    def __init__(self, store: Any, bare: Callable[[str], Any] | None = None) -> None:
        self.store, self.bare = store, bare
        people = [Node(name, ("Person",), name.title(), properties={"age": 40}) for name in ("ann", "bob", "cat")]
        store.upsert(people, [Edge("ann", "knows", "bob"), Edge("bob", "knows", "cat")])
        self.before = self.state()

    def state(self) -> tuple[Any, ...]:
        """All that a write would change."""
        nodes = [node for block in self.store.nodes() for node in block]
        edges = sorted((e.source, e.relation, e.target, e.weight) for block in self.store.edges() for e in block)
        schema = self.store.schema()
        return self.store.count(), nodes, edges, sorted(schema.labels), sorted(schema.relations)


def hostile_queries(folder: Path) -> tuple[int, int]:
    """Run statements that write, read files, call out or never end, in disguises, and see what comes of them."""
    through, canary = 0, Canary(folder)
    with LadybugStore(folder / "graph.lbug") as store:
        attacked = Attacked(store)
        for statement, disguise in product(_STATEMENTS, _DISGUISES):
            started = time.monotonic()
            try:
                answer = repr(run_checked(store, disguise(canary.put_in(statement)), timeout=2).rows)
            except GraphretError as error:
                answer = str(error)
            late = time.monotonic() - started > 10
            through += late or SECRET in answer or attacked.state() != attacked.before or canary.touched
    canary.close()
    return len(_STATEMENTS) * len(_DISGUISES), through


def flipped_bytes(folder: Path, trials: int = 300) -> tuple[int, int]:
    """Flip a byte of an index at random: it is named on opening, or nothing that is read has changed."""
    rng = random.Random(0)
    MemoryStore.of(*_two_teams(rng)).save(folder)
    files, whole, through = [one for one in sorted(folder.rglob("*")) if one.is_file()], _content(folder), 0
    files = [one for one in files if one.stat().st_size]
    for _ in range(trials):
        file = rng.choice(files)
        content = file.read_bytes()
        at = rng.randrange(len(content))
        file.write_bytes(content[:at] + bytes([content[at] ^ rng.randrange(1, 256)]) + content[at + 1 :])
        with suppress(GraphretError):
            through += _content(folder) != whole
        file.write_bytes(content)
    return trials, through


def _content(folder: Path) -> tuple[list[Node], list[Edge]]:
    store = open_store(folder)
    return [node for block in store.nodes() for node in block], [edge for block in store.edges() for edge in block]


def killed_writers(folder: Path, trials: int = 24) -> tuple[int, int]:
    """Kill a writer of an index at random moments: the last index that it saved is found, and none older or mixed."""
    rng, through, last = random.Random(0), 0, 0
    _numbered(last).save(folder)
    for _ in range(trials):
        child = os.fork()
        while not child:  # in the child: save one after the other, to the end
            last += 1
            _numbered(last).save(folder)
        time.sleep(rng.uniform(0.0, 0.2))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        nodes, edges = _content(folder)
        numbers = {one.properties["number"] for some in (nodes, edges) for one in some}
        through += len(numbers) != 1 or min(numbers) < last
        last = max(numbers)
        _numbered(last).save(folder)  # which finds no lock
    return trials, through


def _numbered(number: int) -> MemoryStore:
    nodes = [Node(f"n{i}", ("P",), properties={"number": number}) for i in range(2_000)]
    return MemoryStore.of(nodes, [Edge(node.id, "R", "n0", 1.0, {"number": number}) for node in nodes])


def asked_views(folder: Path, trials: int = 400) -> tuple[int, int]:
    """Ask views at random for what they hide, in five ways: by id, neighbour, filter of each, and search."""
    rng = random.Random(0)
    nodes, edges = _two_teams(rng)
    store = MemoryStore.of(nodes, edges)
    view, index = store.view({"team": "open"}), BM25Index.of_store(store).view({"team": "open"})
    ids = [node.id for node in nodes]
    open_ids = {node.id for node in nodes if node.properties["team"] == "open"}

    def answers(some: list[str]) -> Iterator[Iterable[str]]:
        yield (node.id for node in view.get(some) if node is not None)
        yield (end for edge in view.neighbors(some) for end in (edge.source, edge.target))
        yield (end for edge in view.neighbors(some, where={"team": "hr"}) for end in (edge.source, edge.target))
        yield (node.id for block in view.nodes(where={"team": "hr"}) for node in block)
        yield index.search(" ".join(f"secret {one}" for one in some), 10).ids

    shown = [open_ids.issuperset(answer) for _ in range(trials) for answer in answers(rng.sample(ids, 5))]
    return len(shown), shown.count(False)


def _two_teams(rng: random.Random) -> tuple[list[Node], list[Edge]]:
    teams = [rng.choice(["open", "hr"]) for _ in range(200)]
    nodes = [Node(f"n{i}", ("P",), f"{team} {i}", f"secret n{i}", {"team": team}) for i, team in enumerate(teams)]
    edges = [Edge(f"n{rng.randrange(200)}", "R", f"n{rng.randrange(200)}") for _ in range(600)]
    return nodes, edges


def main() -> int:
    """Run all, print the counts, and return the exit status."""
    held = True
    for attack in (hostile_queries, flipped_bytes, killed_writers, asked_views):
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            tried, through = attack(Path(folder))
        took, name = time.monotonic() - started, attack.__name__.replace("_", " ")
        print(f"{name:<16} {tried:>5} tried {through:>3} got through  {took:5.1f} s", flush=True)
        held = held and not through
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
