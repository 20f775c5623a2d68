"""Small corpora for tests: real facts, written for them."""

from __future__ import annotations

from graphret.corpus import Document, Table
from graphret.types import Node

BALLPARKS = [
    Document(
        "The Seattle Pilots were a baseball team of the American League that played one season, in 1969.",
        id="pilots",
        title="Seattle Pilots",
        metadata={"year": 1969, "tenant": "a"},
    ),
    Document(
        "Sick's Stadium was a ballpark in Rainier Valley. It was opened in 1938 and torn down in 1979.",
        id="sicks",
        title="Sick's Stadium",
        metadata={"year": 1938, "tenant": "b"},
    ),
    Document(
        "Milwaukee is the largest city of Wisconsin, on the shore of Lake Michigan.",
        id="milwaukee",
        title="Milwaukee",
        metadata={"tenant": "a"},
    ),
    Document(
        "Milwaukee County Stadium was a ballpark that hosted baseball, football, concerts and religious gatherings.",
        id="county",
        title="County Stadium (Milwaukee)",
        metadata={"year": 1953, "tenant": "b"},
    ),
    Document(
        "Opera houses of Europe are known for their acoustics and their boxes.",
        id="opera",
        title="Opera houses",
        metadata={"year": 1778, "tenant": "a"},
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


def nodes(texts: list[tuple[str, str]], prefix: str = "n") -> list[Node]:
    """Nodes of titles and texts."""
    return [Node(f"{prefix}{i:03d}", ("Document",), title, text) for i, (title, text) in enumerate(texts)]
