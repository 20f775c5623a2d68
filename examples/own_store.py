"""Search a graph where it is, in tables of your own: a read-only store over SQLite."""

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from graphret import BM25Index, Edge, Expand, Node
from graphret.stores.base import GraphStore
from graphret.where import WhereLike

database = sqlite3.connect(":memory:", check_same_thread=False)
database.executescript("""
    CREATE TABLE part (id TEXT PRIMARY KEY, name TEXT, text TEXT);
    CREATE TABLE fits (part TEXT, machine TEXT);
    INSERT INTO part VALUES
        ('p1', 'Pump P1', 'Moves 40 litres of coolant a minute.'),
        ('s7', 'Seal S7', 'Rubber, good up to 120 °C. Replace it every two years.'),
        ('f2', 'Fan F2', 'Runs at 12 V.');
    INSERT INTO fits VALUES ('s7', 'p1');
""")


class PartStore(GraphStore):
    """Parts and what they fit. `GraphStoreSuite` tests a store that can be written."""

    def get(self, ids: Sequence[str]) -> list[Node | None]:
        parts = {node.id: node for block in self.nodes() for node in block}
        return [parts.get(id_) for id_ in ids]

    def nodes(
        self, labels: Collection[str] | None = None, where: WhereLike = None
    ) -> Iterator[list[Node]]:
        rows = database.execute("SELECT id, name, text FROM part ORDER BY id")
        yield [Node(id_, ("Part",), name, text) for id_, name, text in rows]

    def neighbors(self, ids: Sequence[str], **limits: Any) -> list[Edge]:
        marks = ",".join("?" * len(ids))
        rows = database.execute(
            f"SELECT part, machine FROM fits WHERE part IN ({marks})"
            f" OR machine IN ({marks}) ORDER BY part, machine",
            [*ids, *ids],
        )
        return [Edge(part, "FITS", machine) for part, machine in rows]


store = PartStore()
retriever = Expand(None, store, BM25Index.of_store(store))
for hit in retriever.retrieve("What must be replaced in the coolant pump?", k=2):
    print(hit.node.name, *hit.evidence, sep=" · ")
