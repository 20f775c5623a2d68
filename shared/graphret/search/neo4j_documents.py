"""What an index in Neo4j keeps beside a node, and the indexes over it: full text (Lucene) and vectors (HNSW)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from graphret.errors import InvalidInput, QueryRefused, StoreMismatch
from graphret.search.analysis import Analyzer
from graphret.search.encoder import Encoder
from graphret.search.fields import NEIGHBORS, NodeText
from graphret.search.neo4j_recipe import recipe, require_recipe, without_recipe
from graphret.search.vectors import check_vectors, normalize
from graphret.stores.neo4j.layout import TEXT_LABEL, Layout
from graphret.stores.neo4j.names import quote
from graphret.stores.neo4j.statements import Plan, Statement
from graphret.text import words
from graphret.types import Node

TITLE, TEXT, VECTOR = "graphret_title", "graphret_text", "graphret_embedding"
#: For views: the terms of the title, of the rest and, where names of neighbours are read, of the name, each term as
#: ``|term|``; and how many they are.
TERMS, LENGTHS = "graphret_terms", "graphret_lengths"
#: HNSW as the papers have it.
HNSW = {"vector.hnsw.m": 64, "vector.hnsw.ef_construction": 128, "vector.quantization.enabled": False}
ANALYZER = "english"
BATCH = 2_000
_DOCUMENT = [TITLE, TEXT]
#: The most distinct words of a question that are looked for: Lucene takes 1,024 clauses.
WORDS = 400
#: What makes terms of words, for views; the server's own analyser cannot be asked.
TERMED = Analyzer()


def label_of(layout: Layout) -> str:
    """Return the label on which the indexes are: the graph's own, or one that `documented` adds to its nodes."""
    return layout.label or TEXT_LABEL


def rows_of(located: Sequence[tuple[str, Node]], text: NodeText, encoder: Encoder | None) -> list[list[Any]]:
    """Return what is written beside nodes, given where they are: place, title, text, vector, terms, lengths.

    Words are stored as graphret reads them, case and accents folded. Vectors are of a node's own text, without its
    neighbours' names: those that may not be seen through a view do not show in them. Nor do they in the terms: those of
    the names that may be seen are read beside the neighbours.
    """
    nodes = [node for _, node in located]
    vectors: list[Any] = [None] * len(nodes)
    if encoder is not None and nodes:
        made = encoder.encode_documents([own_text(text).text(node) for node in nodes])
        units = normalize(check_vectors(made, len(nodes), encoder.dimension, what="embedding"))
        vectors = [unit.tolist() if unit.any() else None for unit in units]  # Neo4j takes no vector of zeros
    rows: list[list[Any]] = []
    for (place, node), fields, vector in zip(located, text.all_fields(nodes), vectors, strict=True):
        own = document({name: value for name, value in fields.items() if name != NEIGHBORS or not text.reads_neighbors})
        terms, lengths = _terms(own)
        if text.reads_neighbors:  # who has no name goes by the id, which no index finds
            terms.append("".join(map(barred, TERMED(node.name))))
            lengths.append(len(TERMED(node.name or node.id)))
        rows.append([place, *document(fields), vector, terms, lengths])
    return rows


def _terms(said: Sequence[str]) -> tuple[list[str], list[int]]:
    found = [TERMED(part) for part in said]
    return ["".join(map(barred, part)) for part in found], [len(part) for part in found]


def barred(term: str) -> str:
    """Return a term as it is stored; no word holds a bar."""
    return f"|{term}|"


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
            f"SET n.{TITLE} = row[1], n.{TEXT} = row[2], n.{TERMS} = row[4], n.{LENGTHS} = row[5] "
            "WITH n, row WHERE row[3] IS NOT NULL "
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


def lucene_title(question: str) -> str | None:
    """Return a question as Lucene reads it: any of its words in the title; `None` if it has no word."""
    found = list(dict.fromkeys(words(question)))[:WORDS]
    return f"{TITLE}:({' '.join(found)})" if found else None


def hits(*, lucene: str = "$lucene", limit: str = "", node: str = "n") -> str:
    """Return Cypher that asks the index ``$index`` for nodes and scores."""
    options = f", {{limit: {limit}}}" if limit else ""
    return f"CALL db.index.fulltext.queryNodes($index, {lucene}{options}) YIELD node AS {node}, score"


def own(layout: Layout, node: str = "n") -> str:
    """Return the condition that a hit of an index is of the graph."""
    return "true" if layout.label is None else f"{node}:{quote(layout.label)}"


def place(layout: Layout) -> str:
    """Return where the node ``n`` is, by which nodes of one id are told apart; null where there can be none."""
    return "elementId(n)" if layout.may_share_ids else "null"


def creating(
    layout: Layout, text: NodeText, fulltext: str, vector: str | None, dimension: int | None
) -> list[list[Statement]]:
    """Return the statements that make the indexes; of each, the first that the server takes is enough."""
    node = f"(n:{quote(label_of(layout))})"
    properties = ", ".join(f"n.{quote(name)}" for name in (TITLE, TEXT, recipe(text)))
    wanted = [
        [
            Statement(
                f"CREATE FULLTEXT INDEX {quote(fulltext)} IF NOT EXISTS FOR {node} ON EACH [{properties}] "
                f"OPTIONS {{indexConfig: {_map({'fulltext.analyzer': ANALYZER})}}}"
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


SHOWN = "SHOW INDEXES YIELD name, type, state, options, labelsOrTypes, properties "
SHOW = Statement(f"{SHOWN}RETURN name, type, state, options, labelsOrTypes, properties ORDER BY name")


def require_indexes(
    rows: Sequence[Sequence[Any]],
    layout: Layout,
    text: NodeText,
    fulltext: str,
    vector: str | None,
    dimension: int | None,
    *,
    making: bool = False,
) -> None:
    """Check what `SHOW` says of indexes: there, of the right kind, nodes and text, not failed, as wide as the encoder.

    Parameters
    ----------
    rows
        Name, type, state, options, labels and properties of each index of the database.
    text
        How nodes become text.
    fulltext, vector
        The names of the indexes.
    making
        Whether those that are missing will be made.

    Raises
    ------
    StoreMismatch
        When one is not as it must be, or another is where it would be: a label has one full-text index over the
        documents and one over the vectors.
    """
    found = {row[0]: row[1:] for row in rows}
    label = label_of(layout)
    wanted = [("FULLTEXT", fulltext, _DOCUMENT)]
    if vector is not None:
        wanted.append(("VECTOR", vector, [VECTOR]))
    for kind, name, properties in wanted:
        if name not in found:
            wanted_there = kind, [label], properties
            twins = [n for n, (k, _, _, ls, on) in found.items() if (k, ls, without_recipe(on)) == wanted_there]
            if twins:
                raise StoreMismatch(
                    f"there is no index {name!r}, since the index {twins[0]!r} is over the same documents, those of "
                    f"the label {label!r}, which can have but one: take it by its name{_named(twins[0])}, or drop it"
                )
            if not making:
                raise StoreMismatch(f"there is no index {name!r} in the database; Neo4jTextIndex.create makes it")
            continue
        other, state, options, labels, on = found[name]
        if other != kind:
            raise StoreMismatch(f"the index {name!r} is of type {other}, not {kind}")
        if (labels, without_recipe(on)) != ([label], properties):
            raise StoreMismatch(
                f"the index {name!r} is over {', '.join(without_recipe(on))} of {', '.join(labels or ())}, not over "
                f"{', '.join(properties)} of {label}: take a store of those, give another name (name=), or drop it"
            )
        if state == "FAILED":
            raise StoreMismatch(f"the index {name!r} has failed; drop it and create it again")
        if kind == "FULLTEXT":
            require_recipe(rows, name, text)
        config = options.get("indexConfig", {})
        has = config.get("vector.dimensions")
        if dimension is not None and has is not None and has != dimension:
            raise StoreMismatch(
                f"the vector index {name!r} holds vectors of {has} numbers, and the encoder makes {dimension}: "
                "take the encoder that it was made with, or drop the index and create it again"
            )
        for setting, value in (("fulltext.analyzer", ANALYZER), ("vector.similarity_function", "cosine")):
            if str(config.get(setting, value)).lower() != value:
                raise StoreMismatch(f"the index {name!r} has {setting} {config[setting]!r}, not {value!r}; drop it")


def require_apart(rows: Iterable[Sequence[Any]], layout: Layout) -> Plan[None]:
    """Raise a `StoreMismatch` if nodes of the graph have their documents in an index over another label as well.

    Parameters
    ----------
    rows
        As for `require_indexes`.
    """
    own = label_of(layout)
    others = {
        label: name
        for name, _, _, _, labels, on in rows
        if without_recipe(on) == _DOCUMENT
        for label in labels
        if label != own
    }
    if others:
        shared = yield Statement(
            f"MATCH {layout.node('n')} UNWIND labels(n) AS label WITH * WHERE label IN $labels RETURN label LIMIT 1",
            {"labels": sorted(others)},
        )
        for (label,) in shared:
            raise StoreMismatch(
                f"nodes of this graph have the label {label!r} too, over which the index {others[label]!r} is: each "
                "would overwrite the documents of the other; search that one with labels=, or drop it"
            )


def _named(index: str) -> str:
    """How a `Neo4jTextIndex` of this index is called, where one can be."""
    for ending in ("_fulltext", "_vector"):
        if index.endswith(ending):
            return f" (name={index.removesuffix(ending)!r})"
    return ""


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
