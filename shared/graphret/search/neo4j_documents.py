"""The document of each node in Neo4j, and its full-text and vector indexes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from graphret.errors import StoreMismatch
from graphret.search.encoder import Encoder
from graphret.search.fields import NEIGHBORS, FieldText, NodeText
from graphret.search.vectors import check_vectors, normalize
from graphret.stores.neo4j.graph import Graph
from graphret.stores.neo4j.layout import INDEXED, TEXT_LABEL, Layout, quote
from graphret.text import words
from graphret.types import Node

TITLE, TEXT, NAMES, VECTOR = INDEXED
TITLE_WEIGHT = 3.0
#: HNSW as in the papers, which servers support since 5.23.
_HNSW = (
    "`vector.hnsw.m`: 64, `vector.hnsw.ef_construction`: 128,"
    " `vector.quantization.enabled`: false"
)
#: The most distinct words of a question that are searched: Lucene takes 1,024 clauses,
#: for up to three fields.
_WORDS = 300
_BATCH = 2_000


def label_of(layout: Layout) -> str:
    """Return the label of the indexes: graphret's, or one added to others' nodes."""
    return layout.label if layout.own and layout.label else TEXT_LABEL


def rows_of(
    graph: Graph, nodes: Sequence[Node], text: NodeText, encoder: Encoder | None
) -> list[list[Any]]:
    """Return the documents of nodes: title, other text, neighbours' names, a vector.

    Words are stored as graphret reads them, case and accents folded. Neighbours' names
    are separate, and not embedded, so that a view need not read them. Unknown nodes are
    left out.
    """
    places = graph.places([node.id for node in nodes])
    nodes = [node for node in nodes if node.id in places]
    vectors: list[Any] = [None] * len(nodes)
    if encoder is not None and nodes:
        own_text = replace(text, neighbors=0)
        embeddings = encoder.encode_documents(own_text.all_texts(nodes))
        vectors = vectors_of(embeddings, len(nodes), encoder)
    documents = zip(nodes, text.all_fields(nodes), vectors, strict=True)
    return [
        [places[node.id], *_document(fields, text), vector]
        for node, fields, vector in documents
    ]


def vectors_of(embeddings: Any, n: int, encoder: Encoder) -> list[list[float] | None]:
    """Return embeddings for Neo4j, which refuses vectors of zeros."""
    units = normalize(check_vectors(embeddings, n, encoder.dimension, what="embedding"))
    return [unit.tolist() if unit.any() else None for unit in units]


def write_documents(graph: Graph, rows: Sequence[list[Any]]) -> None:
    """Write the documents of `rows_of` to their nodes."""
    added = (
        f"SET n:{quote(TEXT_LABEL)} " if label_of(graph.layout) == TEXT_LABEL else ""
    )
    for start in range(0, len(rows), _BATCH):
        graph.run(
            f"UNWIND $rows AS row MATCH (n) WHERE elementId(n) = row[0] {added}SET"
            f" n.{TITLE} = row[1], n.{TEXT} = row[2], n.{NAMES} = row[3] WITH n, row"
            " WHERE row[4] IS NOT NULL CALL db.create.setNodeVectorProperty(n,"
            f" '{VECTOR}', row[4]) RETURN count(*)",
            {"rows": rows[start : start + _BATCH]},
        )


def _document(fields: dict[str, FieldText], text: NodeText) -> list[str]:
    parts: dict[str, list[str]] = {TITLE: [], TEXT: [], NAMES: []}
    for name, value in fields.items():
        of_neighbors = name == NEIGHBORS and text.reads_neighbors
        part = (
            TITLE if name in ("title", "aliases") else NAMES if of_neighbors else TEXT
        )
        parts[part] += words(value if isinstance(value, str) else " ".join(value))
    return [" ".join(part) for part in parts.values()]


def lucene(question: str, *, names: bool) -> str | None:
    """Return a question for Lucene: any of its words, more in the title, or `None`."""
    terms = " ".join(list(dict.fromkeys(words(question)))[:_WORDS])
    if not terms:
        return None
    return (
        f"{TITLE}:({terms})^{TITLE_WEIGHT:g}"
        f" {TEXT}:({terms}){f' {NAMES}:({terms})' if names else ''}"
    )


# -- the indexes


def create_indexes(
    graph: Graph, fulltext: str, vector: str | None, dimension: int | None
) -> None:
    """Create the missing indexes."""
    node = f"(n:{quote(label_of(graph.layout))})"
    graph.run(
        f"CREATE FULLTEXT INDEX {quote(fulltext)} IF NOT EXISTS FOR {node} ON EACH"
        f" [n.{TITLE}, n.{TEXT}, n.{NAMES}] OPTIONS {{indexConfig:"
        " {`fulltext.analyzer`: 'english'}}"
    )
    if vector is not None:
        graph.run(
            f"CREATE VECTOR INDEX {quote(vector)} IF NOT EXISTS FOR {node} ON"
            f" (n.{VECTOR}) OPTIONS {{indexConfig: {{`vector.dimensions`: {dimension},"
            f" `vector.similarity_function`: 'cosine', {_HNSW}}}}}"
        )


def require_indexes(
    graph: Graph, fulltext: str, vector: str | None, dimension: int | None
) -> None:
    """Raise `StoreMismatch` if an index is missing or failed, or does not match."""
    rows = graph.run("SHOW INDEXES YIELD name, state, options, labelsOrTypes")
    indexes = {row[0]: row[1:] for row in rows}
    for name in (fulltext, vector) if vector else (fulltext,):
        if name not in indexes:
            raise StoreMismatch(
                f"there is no index {name!r} in the database; Neo4jTextIndex.create"
                " makes it"
            )
        state, options, labels = indexes[name]
        label = label_of(graph.layout)
        width = options["indexConfig"].get("vector.dimensions")
        if (
            state == "FAILED"
            or labels != [label]
            or (name == vector and width != dimension)
        ):
            numbers = f" with vectors of {width} numbers" if name == vector else ""
            raise StoreMismatch(
                f"the index {name!r} is {state.lower()}, over nodes of"
                f" {labels}{numbers}, where [{label!r}] is"
                f" expected{f' and {dimension}' if numbers else ''}: DROP INDEX"
                f" {quote(name)}, and create it again"
            )
