"""What an index in Neo4j keeps beside a node, and the indexes over it: full text (Lucene) and vectors (HNSW)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphret.errors import StoreMismatch
from graphret.search.encoder import Encoder
from graphret.search.fields import NEIGHBORS, NodeText
from graphret.search.vectors import check_vectors, normalize
from graphret.stores.neo4j.connection import Run
from graphret.stores.neo4j.layout import INDEXED, TEXT_LABEL, Layout, quote
from graphret.text import words
from graphret.types import Node

TITLE, TEXT, NAMES, VECTOR = INDEXED
TITLE_WEIGHT = 3.0
#: HNSW as the papers have it, which servers know since 5.23.
_HNSW = "`vector.hnsw.m`: 64, `vector.hnsw.ef_construction`: 128, `vector.quantization.enabled`: false"
#: The most distinct words of a question that are looked for: Lucene takes 1,024 clauses, and asks up to three fields.
_WORDS = 300
_BATCH = 2_000
#: A full-text index is over one property more than its documents: one that no node has, whose name says how nodes are
#: read. So it is there from the moment the index is, goes with it, and puts nothing into the graph.
_READS = "graphret_reads "


def label_of(layout: Layout) -> str:
    """Return the label on which the indexes are: graphret's, or one that `write_documents` adds to nodes of others."""
    return layout.label if layout.own and layout.label else TEXT_LABEL


def rows_of(
    places: Mapping[str, str], nodes: Sequence[Node], text: NodeText, encoder: Encoder | None
) -> list[list[Any]]:
    """Return what is written beside nodes: title, the rest of their text, their neighbours' names, and a vector.

    Words are stored as graphret reads them, case and accents folded. Neighbours' names are kept apart, and not
    embedded, so that a view need not read them. Nodes without a place (an element id) are left out.
    """
    nodes = [node for node in nodes if node.id in places]
    vectors: list[Any] = [None] * len(nodes)
    if encoder is not None and nodes:
        own = replace(text, neighbors=0)
        made = encoder.encode_documents([own.text(node) for node in nodes])
        units = normalize(check_vectors(made, len(nodes), encoder.dimension, what="embedding"))
        vectors = [unit.tolist() if unit.any() else None for unit in units]  # Neo4j takes no vector of zeros
    fields = text.all_fields(nodes)
    return [
        [places[node.id], *_document(said, text), vector]
        for node, said, vector in zip(nodes, fields, vectors, strict=True)
    ]


def write_documents(run: Run, layout: Layout, rows: Sequence[list[Any]]) -> None:
    """Write rows of `rows_of` beside their nodes."""
    added = f"SET n:{quote(TEXT_LABEL)} " if label_of(layout) == TEXT_LABEL else ""
    for start in range(0, len(rows), _BATCH):
        run(
            f"UNWIND $rows AS row MATCH (n) WHERE elementId(n) = row[0] {added}"
            f"SET n.{TITLE} = row[1], n.{TEXT} = row[2], n.{NAMES} = row[3] WITH n, row WHERE row[4] IS NOT NULL "
            f"CALL db.create.setNodeVectorProperty(n, '{VECTOR}', row[4]) RETURN count(*)",
            {"rows": rows[start : start + _BATCH]},
        )


def _document(fields: dict[str, Any], text: NodeText) -> list[str]:
    parts: dict[str, list[str]] = {TITLE: [], TEXT: [], NAMES: []}
    for name, value in fields.items():
        of_neighbors = name == NEIGHBORS and text.reads_neighbors
        part = TITLE if name in ("title", "aliases") else NAMES if of_neighbors else TEXT
        parts[part] += words(value if isinstance(value, str) else " ".join(value))
    return [" ".join(part) for part in parts.values()]


def lucene(question: str, *, names: bool) -> str | None:
    """Return a question as Lucene reads it: any of its words, in the title for more; `None` if it has no word."""
    found = " ".join(list(dict.fromkeys(words(question)))[:_WORDS])
    if not found:
        return None
    return f"{TITLE}:({found})^{TITLE_WEIGHT:g} {TEXT}:({found}){f' {NAMES}:({found})' if names else ''}"


# -- the indexes


def indexes_of(
    layout: Layout, text: NodeText, fulltext: str, vector: str | None, dimension: int | None
) -> Iterator[Callable[[Run], Any]]:
    """Return what makes the indexes that are not there, each in a transaction of its own."""
    node = f"(n:{quote(label_of(layout))})"
    properties = ", ".join(f"n.{quote(name)}" for name in (TITLE, TEXT, NAMES, _READS + recipe_of(text)))
    yield lambda run: run(
        f"CREATE FULLTEXT INDEX {quote(fulltext)} IF NOT EXISTS FOR {node} ON EACH [{properties}] "
        "OPTIONS {indexConfig: {`fulltext.analyzer`: 'english'}}"
    )
    if vector is not None:
        yield lambda run: run(
            f"CREATE VECTOR INDEX {quote(vector)} IF NOT EXISTS FOR {node} ON (n.{VECTOR}) OPTIONS {{indexConfig: "
            f"{{`vector.dimensions`: {dimension}, `vector.similarity_function`: 'cosine', {_HNSW}}}}}"
        )


def require_indexes(
    run: Run,
    layout: Layout,
    text: NodeText | None,
    fulltext: str,
    vector: str | None,
    dimension: int | None,
    *,
    making: bool = False,
) -> NodeText:
    """Check that the indexes are there, over the right nodes and text, filled, and as wide as the encoder.

    Parameters
    ----------
    text
        How nodes become text; `None` for what the index says of it.
    making
        Whether those that are missing will be made.

    Returns
    -------
    NodeText
        How nodes become text.

    Raises
    ------
    StoreMismatch
        When one is not as it must be.
    """
    shown = run("SHOW INDEXES YIELD name, state, options, labelsOrTypes, properties")
    found = {row[0]: row[1:] for row in shown}
    for name in (fulltext, vector) if vector else (fulltext,):
        if name not in found:
            if making:
                continue
            raise StoreMismatch(f"there is no index {name!r} in the database; Neo4jTextIndex.create makes it")
        state, options, labels, properties = found[name]
        drop = f"drop it (DROP INDEX {quote(name)}) and create it again"
        if labels != [label_of(layout)]:
            raise StoreMismatch(f"the index {name!r} is over nodes of {labels}, not of {label_of(layout)}: {drop}")
        if state == "FAILED" or (state != "ONLINE" and not making):
            raise StoreMismatch(f"the index {name!r} is {state.lower()}: try again when it is filled, or {drop}")
        if name == vector and (wide := options["indexConfig"].get("vector.dimensions")) != dimension:
            raise StoreMismatch(f"the index {name!r} has vectors of {wide} numbers, the encoder makes {dimension}")
        if name == fulltext:
            recorded = next((one.removeprefix(_READS) for one in properties if one.startswith(_READS)), None)
            if recorded is None or (text is not None and recorded != recipe_of(text)):
                wanted = "none of graphret's" if text is None else recipe_of(text)
                raise StoreMismatch(
                    f"the index {name!r} holds the documents of NodeText {recorded}, which those of {wanted} would "
                    f"overwrite: take that text (text=), or {drop}"
                )
            text = text or NodeText(**json.loads(recorded))
    return text or NodeText()


def recipe_of(text: NodeText) -> str:
    """The settings on which the words of a document depend, as far as they are not the default, as JSON."""
    settings = {name: value for name, value in text.to_dict().items() if name not in ("weights", "max_chars")}
    return json.dumps(settings, sort_keys=True)
