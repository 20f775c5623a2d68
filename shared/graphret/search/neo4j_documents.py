"""What an index in Neo4j keeps beside a node, and the indexes over it: full text (Lucene) and vectors (HNSW)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from graphret.errors import InvalidInput, QueryRefused, StoreMismatch
from graphret.search.encoder import Encoder
from graphret.search.fields import NodeText
from graphret.search.vectors import check_vectors, normalize
from graphret.stores.neo4j.layout import TEXT_LABEL, Layout
from graphret.stores.neo4j.names import quote
from graphret.stores.neo4j.statements import Plan, Statement
from graphret.text import words
from graphret.types import Node

TITLE, TEXT, VECTOR = "graphret_title", "graphret_text", "graphret_embedding"
#: HNSW as the papers have it.
HNSW = {"vector.hnsw.m": 64, "vector.hnsw.ef_construction": 128, "vector.quantization.enabled": False}
BATCH = 2_000
#: The most distinct words of a question that are looked for: Lucene takes 1,024 clauses.
WORDS = 400


def label_of(layout: Layout) -> str:
    """Return the label on which the indexes are: the graph's own, or one that `documented` adds to its nodes."""
    return layout.label or TEXT_LABEL


def rows_of(located: Sequence[tuple[str, Node]], text: NodeText, encoder: Encoder | None) -> list[list[Any]]:
    """Return what is written beside nodes, given where they are: place, title, text and vector.

    Words are stored as graphret reads them, case and accents folded. Vectors are of a node's own text, without its
    neighbours' names: those that may not be seen through a view do not show in them.
    """
    nodes = [node for _, node in located]
    vectors: list[Any] = [None] * len(nodes)
    if encoder is not None and nodes:
        made = encoder.encode_documents([own_text(text).text(node) for node in nodes])
        units = normalize(check_vectors(made, len(nodes), encoder.dimension, what="embedding"))
        vectors = [unit.tolist() if unit.any() else None for unit in units]  # Neo4j takes no vector of zeros
    return [
        [place, *document(fields), vector]
        for (place, _), fields, vector in zip(located, text.all_fields(nodes), vectors, strict=True)
    ]


def own_text(text: NodeText) -> NodeText:
    """Return the text of a node without its neighbours."""
    settings = text.to_dict()
    return NodeText.from_dict({name: value for name, value in settings.items() if name != "neighbors"})


def document(fields: dict[str, Any]) -> tuple[str, str]:
    """Return the title and the rest of a node's fields, word by word."""
    title: list[str] = []
    rest: list[str] = []
    for name, value in fields.items():
        read = words(value if isinstance(value, str) else " ".join(value))
        (title if name in ("title", "aliases") else rest).extend(read)
    return " ".join(title), " ".join(rest)


def documented(layout: Layout, rows: Sequence[list[Any]]) -> Plan[None]:
    """Write rows of `rows_of` beside their nodes."""
    added = "" if layout.label else f"SET n:{quote(TEXT_LABEL)} "
    for start in range(0, len(rows), BATCH):
        yield Statement(
            f"UNWIND $rows AS row MATCH (n) WHERE elementId(n) = row[0] {added}"
            f"SET n.{TITLE} = row[1], n.{TEXT} = row[2] WITH n, row WHERE row[3] IS NOT NULL "
            f"CALL db.create.setNodeVectorProperty(n, '{VECTOR}', row[3]) RETURN count(*)",
            {"rows": rows[start : start + BATCH]},
        )


def lucene(question: str, weight: float) -> str | None:
    """Return a question as Lucene reads it: any of its words, in the title for more; `None` if it has no word."""
    found = list(dict.fromkeys(words(question)))[:WORDS]
    if not found:
        return None
    any_word = " ".join(found)
    return f"{TITLE}:({any_word})^{weight:g} {TEXT}:({any_word})"


def creating(layout: Layout, fulltext: str, vector: str | None, dimension: int | None) -> list[list[Statement]]:
    """Return the statements that make the indexes; of each, the first that the server takes is enough."""
    node = f"(n:{quote(label_of(layout))})"
    wanted = [
        [
            Statement(
                f"CREATE FULLTEXT INDEX {quote(fulltext)} IF NOT EXISTS FOR {node} ON EACH [n.{TITLE}, n.{TEXT}] "
                "OPTIONS {indexConfig: {`fulltext.analyzer`: 'english'}}"
            )
        ]
    ]
    if vector is not None:
        plain = {"vector.dimensions": dimension, "vector.similarity_function": "cosine"}
        wanted.append(
            [
                Statement(
                    f"CREATE VECTOR INDEX {quote(vector)} IF NOT EXISTS FOR {node} ON (n.{VECTOR}) "
                    f"OPTIONS {{indexConfig: {_map(config)}}}"
                )
                for config in (plain | HNSW, plain)  # servers before 5.23 know no settings of HNSW
            ]
        )
    return wanted


def _map(values: dict[str, Any]) -> str:
    def written(value: Any) -> str:
        return str(value).lower() if isinstance(value, bool) else repr(value)

    return "{" + ", ".join(f"`{name}`: {written(value)}" for name, value in values.items()) + "}"


def require_indexes(rows: Iterable[Sequence[Any]], wanted: dict[str, tuple[str, int | None]]) -> None:
    """Check what ``SHOW INDEXES`` says of indexes: there, of the right kind, awake and as wide as the encoder.

    Parameters
    ----------
    rows
        Name, type, state and options of each index of the database.
    wanted
        The type and the dimension of each by name.

    Raises
    ------
    StoreMismatch
        When one is not as it must be.
    """
    found = {name: (kind, state, options) for name, kind, state, options in rows}
    for name, (kind, dimension) in wanted.items():
        if name not in found:
            raise StoreMismatch(f"there is no index {name!r} in the database; Neo4jTextIndex.create makes it")
        other, state, options = found[name]
        if other != kind:
            raise StoreMismatch(f"the index {name!r} is of type {other}, not {kind}")
        if state == "FAILED":
            raise StoreMismatch(f"the index {name!r} has failed; drop it and create it again")
        has = options.get("indexConfig", {}).get("vector.dimensions")
        if dimension is not None and has is not None and has != dimension:
            raise StoreMismatch(
                f"the vector index {name!r} holds vectors of {has} numbers, and the encoder makes {dimension}: "
                "take the encoder that it was made with, or drop the index and create it again"
            )


def only(statement: Statement) -> Plan[list[list[Any]]]:
    """Run one statement and return its rows."""
    return (yield statement)


def first_taken(statements: Sequence[Statement], run: Any) -> None:
    """Run the first statement that the server takes."""
    for nth, statement in enumerate(statements):
        try:
            run(statement)
            return
        except (QueryRefused, InvalidInput):
            if nth == len(statements) - 1:
                raise
