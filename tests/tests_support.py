"""Shared by tests of several folders: an encoder, small corpora and real-life files."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.change import Change
from graphret.corpus import Document, Table
from graphret.edges import EdgeTable
from graphret.nodes import NodeTable
from graphret.sage import SageGraph
from graphret.sage.connections import Connections
from graphret.sage.links import Mentions
from graphret.sage.mentions import NodeNames
from graphret.sage.shared_names import SharedNames
from graphret.sage.similarity import SimilarityIndex


class HashingEncoder:
    """Embeds a text as the sum of its words' random vectors: real cosines, no model."""

    name = "hashing-48"
    dimension = 48

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def encode_queries(self, texts: list[str]) -> NDArray[np.float32]:
        return (
            np.stack([self._embed(text) for text in texts])
            if texts
            else np.zeros((0, self.dimension), np.float32)
        )

    def encode_documents(self, texts: list[str]) -> NDArray[np.float32]:
        self.encoded.extend(texts)
        return self.encode_queries(texts)

    def _embed(self, text: str) -> NDArray[np.float32]:
        total = np.zeros(self.dimension)
        for word in text.lower().split():
            total += _vector_of(word, self.dimension)
        norm = np.linalg.norm(total)
        return (total / norm if norm else total).astype(np.float32)


@cache
def _vector_of(word: str, dimension: int) -> NDArray[np.float64]:
    seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")
    return np.random.default_rng(seed).standard_normal(dimension)


def edges_of(graph: SageGraph) -> list[dict[str, Any]]:
    """Every edge as values that compare."""
    return [edge.to_dict() for edge in graph.edges.edges(graph.nodes.ids)]


def found_anew(graph: SageGraph) -> list[dict[str, Any]]:
    """The edges of all nodes at once, with the thresholds in force."""
    known, settings = graph.state.connections, graph.settings
    links, similarity = settings.links, settings.similarity
    names = NodeNames(links, rarity=known.mentions.names.rarity)
    nothing = Connections(
        EdgeTable.empty(0),
        SimilarityIndex(NodeTable.of([]), similarity, fitted=known.similarity.fitted),
        Mentions(names),
        SharedNames(links, similarity.entity_cap),
    )
    whole = nothing.changed(Change.whole(graph.nodes), graph.index.dense)
    edges = whole.with_given(graph.state.explicit)
    return [edge.to_dict() for edge in edges.edges(graph.nodes.ids)]


_PAGES: list[tuple[str, str, dict[str, object], str]] = [
    (
        *("pilots", "Seattle Pilots", {"year": 1969, "tenant": "a"}),
        (
            "The Seattle Pilots were a baseball team of the American League that played"
            " one season, in 1969."
        ),
    ),
    (
        *("sicks", "Sick's Stadium", {"year": 1938, "tenant": "b"}),
        (
            "Sick's Stadium was a ballpark in Rainier Valley. It was opened in 1938 and"
            " torn down in 1979."
        ),
    ),
    (
        *("milwaukee", "Milwaukee", {"tenant": "a"}),
        "Milwaukee is the largest city of Wisconsin, on the shore of Lake Michigan.",
    ),
    (
        *("county", "County Stadium (Milwaukee)", {"year": 1953, "tenant": "b"}),
        (
            "Milwaukee County Stadium was a ballpark that hosted baseball, football,"
            " concerts and religious gatherings."
        ),
    ),
    (
        *("opera", "Opera houses", {"year": 1778, "tenant": "a"}),
        "Opera houses of Europe are known for their acoustics and their boxes.",
    ),
]
BALLPARKS = [
    *(
        Document(text, id=id_, title=title, metadata=metadata)
        for id_, title, metadata, text in _PAGES
    ),
    Table(
        header=["Team", "Park", "City"],
        rows=[
            ["Seattle Pilots", "Sick's Stadium", "Seattle"],
            ["Milwaukee Brewers", "County Stadium", "Milwaukee"],
            ["Montreal Expos", "Jarry Park", "Montreal"],
            ["San Diego Padres", "San Diego Stadium", "San Diego"],
            ["Kansas City Royals", "Municipal Stadium", "Kansas City"],
        ],
        id="teams",
        title="Expansion teams of baseball",
        section="Teams",
        metadata={"year": 1969, "tenant": "a"},
    ),
]

QUESTION = "When was the ballpark opened in which the Seattle Pilots played?"


VENUE_QUESTION = (
    "Who was the architect of the stadium of the 1990 European Athletics Championships?"
)
_CITIES = (
    "Turin Oslo Brussels Berne Stockholm Belgrade Budapest Athens Helsinki Rome Prague"
    " Split Stuttgart".split()
)
_FILLER = (
    "It has seats, a roof and a track. Many games were held there, and concerts too. "
)
_VENUES = {
    "poljud.md": (
        "Stadion Poljud",
        "Poljud opened in 1979. " + _FILLER * 6 + "Its architect was Boris Magaš.",
    ),
    "neckar.md": (
        "Neckarstadion",
        "The arena opened in 1933. " + _FILLER * 6 + "Its architect was Paul Bonatz.",
    ),
    "magas.md": (
        "Boris Magaš",
        "An architect. " + _FILLER * 3 + "He built Stadion Poljud in Split.",
    ),
}


def write_venues(folder: Path) -> None:
    """Write the files; row 12 of the table says 1990 and Stadion Poljud."""
    rows = [
        f"{1934 + 4 * n + (n > 10) * 12},{city},Stadium of {city}"
        for n, city in enumerate(_CITIES)
    ]
    rows[11:] = ["1990,Split,Stadion Poljud", "1986,Stuttgart,Neckarstadion"]
    table = "\n".join(["Year,City,Stadium", *rows])
    (folder / "European Athletics Championships.csv").write_text(table + "\n")
    for name, (title, text) in _VENUES.items():
        (folder / name).write_text(f"# {title}\n\n{text}\n")


def mentions(graph: SageGraph) -> set[tuple[str, int, str]]:
    """Return who mentions whom: source name, row from 1 (0 for text), and other name."""
    nodes, found = {node.id: node for node in graph.nodes}, set()
    for edge in graph.edges.edges(graph.nodes.ids):
        if edge.relation == "MENTIONS":
            source, row = nodes[edge.source], edge.properties.get("source_row")
            number = (
                0 if row is None else row + 1 + source.properties["table_row_start"]
            )
            found.add((source.name, number, nodes[edge.target].name))
    return found
