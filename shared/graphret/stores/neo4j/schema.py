"""The schema of a graph in Neo4j: labels and relations counted, the rest sampled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphret.schema import GraphSchema, SchemaBuilder
from graphret.stores.neo4j.graph import Graph
from graphret.stores.neo4j.layout import quote, unescaped
from graphret.types import Edge, Node
from graphret.validation import json_value

#: Nodes of a label and edges of a relation whose properties are read.
SAMPLE = 1_000
#: Edges of a relation whose ends are read; for larger relations, the database counts
#: the edges between labels if it can.
COUNTED = 10_000
#: Nodes among which those without a label are searched: the database has no list of
#: them.
SCANNED = 50_000
_TEXT_SHOWN = 200
_COUNTS = 100

Triples = Counter[tuple[str, str, str]]


def read_schema(graph: Graph) -> GraphSchema:
    """Count labels and relations, so that none is missing, and sample the rest.

    Properties have their names in Cypher, including ``id``, ``name`` and ``text``,
    because queries are checked against this schema. An edge counts under every pair of
    its ends' labels: Neo4j has no primary label.
    """
    graph = graph.unlabelled()
    label_rows = graph.run("CALL db.labels() YIELD label RETURN label ORDER BY label")
    relation_rows = graph.run(
        "CALL db.relationshipTypes() YIELD relationshipType AS name RETURN name ORDER"
        " BY name"
    )
    shown = [name for (name,) in label_rows if name not in graph.layout.unseen_labels]
    nodes = {
        "": graph.matching()[:2],
        **{name: graph.matching(f"n:{quote(name)}")[:2] for name in shown},
    }
    labels = _counted(graph, "n", nodes)
    everything = labels.pop("", 0)
    relations = _counted(
        graph, "r", {name: graph.edge(f":{quote(name)}") for (name,) in relation_rows}
    )
    builder, triples, in_part = SchemaBuilder(), Triples(), set()
    for label in (*labels, ""):
        builder.observe_nodes(_sample(graph, label))
    for relation, n in relations.items():
        relation_triples, all_read = _triples(graph, relation, n, labels)
        triples.update(relation_triples)
        in_part.update([] if all_read else [relation])
        match, parameters = graph.edge(f":{quote(relation)}")
        rows = graph.run(
            f"{match} WITH r LIMIT {SAMPLE} RETURN properties(r)", parameters
        )
        builder.observe_edges(
            Edge("-", relation, "-", 1.0, _readable(values)) for (values,) in rows
        )
    return builder.build(
        labels,
        triples,
        cypher_names={
            label: keys[0]
            for label in labels
            if (keys := graph.layout.properties_of("name", [label]))
        },
        sampled_relations=in_part,
        sampled_properties={
            *(name for name, n in labels.items() if n > SAMPLE),
            *[""][: everything > SCANNED],
        },
        sampled_relation_properties={
            relation for relation, n in relations.items() if n > SAMPLE
        },
    )


def _counted(
    graph: Graph, what: str, patterns: Mapping[str, tuple[str, dict[str, Any]]]
) -> dict[str, int]:
    """Count the matches of each pattern, and return those above zero."""
    counts: dict[str, int] = {}
    names = list(patterns)
    for start in range(0, len(names), _COUNTS):
        block = list(enumerate(names))[start : start + _COUNTS]
        text = " UNION ALL ".join(
            f"{patterns[name][0]} RETURN {i} AS i, count({what}) AS n"
            for i, name in block
        )
        counts |= {
            names[i]: n for i, n in graph.run(text, patterns[block[0][1]][1]) if n
        }
    return counts


def _sample(graph: Graph, label: str) -> list[Node]:
    """Read some nodes of a label, or without any label if it is empty."""
    layout = graph.layout
    long = "".join(
        f", {quote(name)}: left(n.{quote(name)}, {_TEXT_SHOWN})"
        for name in layout.text
        if layout.own
    )
    values = f"{layout.values_of('n')[:-1]}{long}}}"
    match, parameters, _ = graph.matching(*([f"n:{quote(label)}"] if label else []))
    if not label:
        match += (
            f" WITH n LIMIT {SCANNED} WHERE all(label IN labels(n) WHERE label IN"
            " $unseen)"
        )
        parameters = parameters | {"unseen": sorted(layout.unseen_labels)}
    rows = graph.run(f"{match} WITH n LIMIT {SAMPLE} RETURN {values}", parameters)
    return [
        Node(
            "-", (label,) if label else (), properties=_readable(row[0], layout.hidden)
        )
        for row in rows
    ]


def _triples(
    graph: Graph, relation: str, n: int, labels: Iterable[str]
) -> tuple[Triples, bool]:
    """Count a relation's edges by their ends' labels, and whether that is exact."""
    name, layout = quote(relation), graph.layout
    if n > COUNTED and graph.scope is None and layout.label is None:
        # if one end has only one label, the database's own counts are enough
        sources = _counted(
            graph,
            "r",
            {
                label: (f"MATCH (:{quote(label)})-[r:{name}]->()", {})
                for label in labels
            },
        )
        targets = _counted(
            graph,
            "r",
            {
                label: (f"MATCH ()-[r:{name}]->(:{quote(label)})", {})
                for label in labels
            },
        )
        if (len(sources) == 1 and n in sources.values()) or (
            len(targets) == 1 and n in targets.values()
        ):
            pairs_of = (
                (s, t, min(m, k))
                for s, m in sources.items()
                for t, k in targets.items()
            )
            return Triples({(s, relation, t): m for s, t, m in pairs_of}), True
    match, parameters = graph.edge(f":{name}")
    triples = Triples()
    text = f"{match} WITH a, b LIMIT {COUNTED} RETURN labels(a), labels(b), count(*)"
    for source, target, m in graph.run(text, parameters):
        for label in layout.labels(source) or ("",):
            triples.update(
                {
                    (label, relation, other): m
                    for other in layout.labels(target) or ("",)
                }
            )
    share = n / min(n, COUNTED)
    return (
        Triples({triple: round(m * share) for triple, m in triples.items()}),
        n <= COUNTED,
    )


def _readable(values: Mapping[str, Any], hidden: Sequence[str] = ()) -> dict[str, Any]:
    """Return properties by their names in Cypher, with dates as Python objects."""
    shown = {
        key: value
        for key, value in values.items()
        if value is not None and unescaped(key, hidden)
    }
    return {
        key: native
        for key, value in shown.items()
        if (native := _native(value)) is not None
    }


def _native(value: Any) -> Any:
    if isinstance(
        value, tuple
    ):  # a point or a duration is what queries take it for, though a node shows a text
        return value
    if isinstance(value, list):
        return [_native(item) for item in value]
    return value.to_native() if hasattr(value, "to_native") else json_value(value)
