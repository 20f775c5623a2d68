"""What shows whether a query has left the graph: files, a port, and the graph itself."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graphret.types import Edge, Node

SECRET = "canary-6f1d0c"


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
