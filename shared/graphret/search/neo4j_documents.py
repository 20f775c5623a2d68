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
    embedded, so that a view need not read them.

    Parameters
    ----------
    places
        The element ids of nodes; those without one are left out.
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
    properties = ", ".join(f"n.{quote(name)}" for name in (TITLE, TEXT, NAMES, _READS + _recipe(text)))
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
    """Check that the indexes are there, of the right kind, nodes and text, filled, and as wide as the encoder.

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
        When one is not as it must be, or the nodes have their documents in another index: they can be in one.
    """
    shown = run("SHOW INDEXES YIELD name, type, state, options, labelsOrTypes, properties, failureMessage")
    found = {row[0]: row[1:] for row in shown}
    label = label_of(layout)
    wanted = [("FULLTEXT", fulltext, [TITLE, TEXT, NAMES])] + ([("VECTOR", vector, [VECTOR])] if vector else [])
    for kind, name, properties in wanted:
        if name not in found:
            same = (kind, [label], properties)
            twins = [n for n, (k, *_, on, over, _) in found.items() if (k, on, (over or [])[: len(properties)]) == same]
            if twins:
                raise StoreMismatch(
                    f"there is no index {name!r}, and the index {twins[0]!r} is over the same documents, those of the "
                    f"label {label!r}: take it by its name (name=), or drop it"
                )
            if not making:
                raise StoreMismatch(f"there is no index {name!r} in the database; Neo4jTextIndex.create makes it")
            continue
        other, state, options, labels, over, failure = found[name]
        if other != kind or labels != [label] or over[: len(properties)] != properties:
            raise StoreMismatch(
                f"the index {name!r} is of type {other}, over {over} of {labels}, not {kind} over {properties} of "
                f"{label}: give another name (name=), or drop it"
            )
        if state == "FAILED" or (state != "ONLINE" and not making):
            raise StoreMismatch(f"the index {name!r} is {state.lower()}: {failure or 'try again when it is filled'}")
        if kind == "VECTOR" and (wide := options["indexConfig"].get("vector.dimensions")) != dimension:
            raise StoreMismatch(f"the index {name!r} has vectors of {wide} numbers, the encoder makes {dimension}")
        if kind == "FULLTEXT":
            text = _recorded(name, over[len(properties) :], text)
    return text or NodeText()


def settings_of(text: NodeText) -> dict[str, Any]:
    """The settings on which the words of a document depend, as far as they are not the default."""
    return {name: value for name, value in text.to_dict().items() if name not in ("weights", "max_chars")}


def _recipe(text: NodeText) -> str:
    return json.dumps(settings_of(text), sort_keys=True)


def _recorded(name: str, more: Sequence[str], text: NodeText | None) -> NodeText:
    """Return how an index reads nodes, and raise a `StoreMismatch` that names both if that is not as `text` does."""
    drop = f"drop the index (DROP INDEX {quote(name)}) and create it again"
    said = next((one.removeprefix(_READS) for one in more if one.startswith(_READS)), None)
    if said is None:
        raise StoreMismatch(f"the index {name!r} does not say how it reads nodes: {drop}")
    found = NodeText(**json.loads(said))
    if text is None:
        return found
    if settings_of(found) != settings_of(text):
        raise StoreMismatch(
            f"the index {name!r} holds the documents of {_shown(found)}, which those of {_shown(text)} would "
            f"overwrite: take that text (text=), or {drop}"
        )
    return text


def _shown(text: NodeText) -> str:
    settings = (f"{name}={tuple(v) if isinstance(v, list) else v!r}" for name, v in settings_of(text).items())
    return f"NodeText({', '.join(settings)})"
