"""The data types of graphret: nodes, edges, and the results of retrievals."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias

from graphret.errors import InvalidInput
from graphret.trace import Trace

#: UUIDs, the element ids of Neo4j, and those of rows.
_OPAQUE = re.compile(
    r"(\d+:|row:)?[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}(:\d+)?", re.IGNORECASE
)


#: The label of a hit that is a row of a query's answer, not a node of the graph.
ROW = "Row"
_ROW_ID = re.compile(r"row:[0-9a-f]{32}")


def require_id(value: object, what: str) -> str:
    """Return `value` if it can be an id; otherwise `InvalidInput` names `what`."""
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"{what}: id: expected a non-empty string, got {value!r}")
    return value


def is_opaque(name: str) -> bool:
    """Whether a name means nothing to people: a UUID, or an element's or row's id."""
    return _OPAQUE.fullmatch(name) is not None


def _fields(item: Any) -> dict[str, Any]:
    return {column.name: getattr(item, column.name) for column in fields(item)}


@dataclass(frozen=True, slots=True)
class Node:
    """Something to retrieve: a chunk of a document, a table segment, a product, a gene.

    Parameters
    ----------
    id
        Unique in its store and stable across rebuilds.
    labels
        The kinds of the node; the first is the primary one.
    name
        What people call it; two nodes may share a name.
    text
        Its text.
    properties
        Everything else, as JSON values; the filters of `Where` read these.
    """

    id: str
    labels: tuple[str, ...] = ("Node",)
    name: str = ""
    text: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def label(self) -> str:
        """The primary label."""
        return self.labels[0] if self.labels else ""

    @property
    def called(self) -> str:
        """The name to show: the node's name, else its id, or label if it is opaque."""
        opaque = not self.name and self.label and is_opaque(self.id)
        return self.name or (self.label if opaque else self.id)

    @property
    def is_row(self) -> bool:
        """Whether it is a row of a query's answer, such as a number."""
        return self.labels == (ROW,) and _ROW_ID.fullmatch(self.id) is not None

    def to_dict(self) -> dict[str, Any]:
        """Return the node as JSON values."""
        return _fields(self) | {
            "labels": list(self.labels),
            "properties": dict(self.properties),
        }


#: The properties of an edge with the rows, from 0, of tables that it is about at its
#: source and its target.
ROW_KEYS = ("source_row", "target_row")
#: The key that identifies and orders an edge in a store: source, target, relation and
#: rows, -1 for none.
EdgeKey: TypeAlias = tuple[str, str, str, int, int]


@dataclass(frozen=True, slots=True)
class Edge:
    """A typed relation between two nodes, with a weight and properties."""

    source: str
    relation: str
    target: str
    weight: float = 1.0
    properties: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def identity(self) -> EdgeKey:
        """The key that identifies the edge in a store, and orders it there."""
        return (
            self.source,
            self.target,
            self.relation,
            self.properties.get("source_row", -1),
            self.properties.get("target_row", -1),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the edge as JSON values."""
        return _fields(self) | {"properties": dict(self.properties)}


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why a hit was returned.

    `kind` is one of ``seed`` (found by the query itself), ``neighbor`` (brought by an
    edge from the node `source`), ``rank`` (its place in a fused list, or before a
    trained model moved it, with the strongest features among the properties), ``path``
    (an edge on the path of a plan to the hit, from `source` to `target`, or the plan
    itself among the properties), ``votes``, ``query`` (row `rank` of the Cypher query
    among the properties) and ``fill`` (below the hits that the method selected).

    An edge was walked from the node `source` to the hit, `target`; its `direction` is
    ``"out"`` if it points that way itself, ``"in"`` if it points to `source`. Its rows,
    among the properties, are those of whole tables, from 1. `node` is the node
    `source`, if it is at hand; it is not part of the JSON.
    """

    kind: str
    source: str | None = None
    relation: str | None = None
    weight: float | None = None
    rank: int | None = None
    retriever: str | None = None
    properties: Mapping[str, Any] = field(default_factory=dict, hash=False)
    target: str | None = None
    direction: str | None = None
    source_name: str | None = None
    target_name: str | None = None
    node: Node | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of_edge(cls, edge: Edge, hit: Node, other: Node) -> Evidence:
        """Return the evidence for a hit from an edge between it and another node."""
        # The other end is the hit, or the chunk that stands for the hit's source.
        out = edge.source == other.id
        properties = dict(edge.properties)
        for key, node in zip(
            ROW_KEYS, (other, hit) if out else (hit, other), strict=True
        ):
            if isinstance(row := properties.get(key), int):  # from 0 in its segment
                first = node.properties.get("table_row_start")
                properties[key] = row + 1 + (first if isinstance(first, int) else 0)
        evidence = cls(
            "neighbor",
            other.id,
            edge.relation,
            edge.weight,
            properties=properties,
            target=hit.id,
            direction="out" if out else "in",
            node=other,
        )
        return evidence.named({hit.id: hit, other.id: other})

    def named(self, nodes: Mapping[str, Node]) -> Evidence:
        """Return the evidence with the names of its two nodes, if they have any."""
        names = {id_: node.called for id_, node in nodes.items() if node.called != id_}
        return replace(
            self,
            source_name=names.get(self.source or ""),
            target_name=names.get(self.target or ""),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the evidence as JSON values, without the fields that do not apply."""
        left_out = ("properties", "node")
        values = {
            key: value
            for key, value in _fields(self).items()
            if value is not None and key not in left_out
        }
        return values | (
            {"properties": dict(self.properties)} if self.properties else {}
        )

    def __str__(self) -> str:
        if self.kind in ("neighbor", "path") and self.relation:
            return self._edge()
        if self.kind == "rank":
            moved = ", ".join(
                f"{name} {value:+.2f}" for name, value in self.properties.items()
            )
            return (
                f"rank {self.rank} in"
                f" {self.retriever}{f'; moved by {moved}' if moved else ''}"
            )
        if self.kind == "path":
            return f"plan {self.properties.get('plan')}"
        if self.kind == "query":
            query = " ".join(str(self.properties.get("cypher")).split())
            row = self.properties.get("row") or {}
            values = "; ".join(f"{column}: {value}" for column, value in row.items())
            # a single column is the hit itself
            return f"row {self.rank}{f' ({values})' * (len(row) > 1)} of {query}"
        if self.kind == "votes" and self.properties:
            return (
                f"{self.properties.get('votes')} of {self.properties.get('of')} votes,"
                f" place {self.rank}"
            )
        return self.kind

    def _edge(self) -> str:
        """Return the edge in its own direction, with its rows and other properties."""
        names = [self.source_name or self.source, self.target_name or self.target]
        shown = {
            key: value
            for key, value in self.properties.items()
            if value not in (None, "", [], *names) and key not in ROW_KEYS
        }
        parts = [
            f"{value}" if key == "kind" else f"{key} {value}"
            for key, value in shown.items()
        ]
        about = f" ({', '.join(parts)})" if shown else ""
        if self.direction is None:
            return f"{self.relation} of {self.source}{about}"
        if names[0] == names[1]:
            names = [self.source, self.target]
        source, target = names if self.direction == "out" else names[::-1]
        rows = [
            (
                f" row {self.properties[key]}"
                if self.properties.get(key) is not None
                else ""
            )
            for key in ROW_KEYS
        ]
        return f"{source}{rows[0]} -{self.relation}→ {target}{rows[1]}{about}"


@dataclass(frozen=True, slots=True)
class Hit:
    """A node, its score and the evidence for it.

    Parameters
    ----------
    score
        The score that the method ranks by: higher is better, on any scale, comparable
        within one retrieval.
    relevance
        How well the node answers, 0 … 1, in the order of the scores and comparable
        between retrievals: the score as a share of the best hit's, times
        `Signals.confidence`. `None` until a retrieval is done.
    """

    node: Node
    score: float
    evidence: tuple[Evidence, ...] = ()
    relevance: float | None = None

    @property
    def id(self) -> str:
        """The node's id."""
        return self.node.id

    @property
    def is_row(self) -> bool:
        """Whether it is a row of a query's answer, not a node of the graph."""
        return self.node.is_row

    @property
    def fill(self) -> bool:
        """Whether it only fills a place below the others, not reranked since."""
        return bool(self.evidence) and self.evidence[-1].kind == "fill"

    def to_dict(self) -> dict[str, Any]:
        """Return the hit as JSON values, as ``graphret query --json`` prints it."""
        return {
            "id": self.node.id,
            "name": self.node.name,
            "labels": list(self.node.labels),
            "score": float(self.score),
            **({} if self.relevance is None else {"relevance": self.relevance}),
            **({"fill": True} if self.fill else {}),
            "text": self.node.text,
            "evidence": [evidence.to_dict() for evidence in self.evidence],
        }


@dataclass(slots=True)
class Signals:
    """What a combinator may need to know of a retrieval; `None` for unknown.

    `confidence` is how well the best hit answers, 0 … 1: the share of the question's
    words, by rarity, in it and the node that led to it, with an encoder combined with
    their cosine; for agents, the share that selected it. `risk` is the risk level that
    a planner gave its plan (GRASP, section 3.1). `doubts` are parts of the question
    that the method cannot answer by nodes, in words: a count, an order or a condition
    that fits no property; `confidence` is then low.
    """

    candidates: int | None = None
    confidence: float | None = None
    walked_edges: bool | None = None
    answer_labels: tuple[str, ...] | None = None
    plan_valid: bool | None = None
    risk: str | None = None
    doubts: tuple[str, ...] | None = None


@dataclass(slots=True)
class Retrieval:
    """The answer of a `Retriever`: ranked hits, signals for combinators, and a trace.

    `rows` are the rows of a query for values, not nodes, such as a count: each a
    dictionary of columns and JSON values. They are also the first hits, up to `k`; see
    `Hit.is_row`.
    """

    query: str
    k: int
    hits: list[Hit]
    signals: Signals = field(default_factory=Signals)
    trace: Trace = field(default_factory=Trace)
    rows: list[dict[str, Any]] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        """The ids of the hits, best first."""
        return [hit.node.id for hit in self.hits]

    def to_dict(self) -> dict[str, Any]:
        """Return the retrieval as JSON, as ``graphret query --json`` prints it."""
        return {
            "query": self.query,
            "k": self.k,
            "hits": [hit.to_dict() for hit in self.hits],
            "rows": self.rows,
            "trace": self.trace.to_dict(),
        }

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)
