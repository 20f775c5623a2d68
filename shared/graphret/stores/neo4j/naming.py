"""The name and text properties of foreign graphs, chosen by label from a sample."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from graphret.errors import InvalidInput
from graphret.stores.neo4j.graph import Graph
from graphret.stores.neo4j.layout import Layout, quote
from graphret.text import name_words
from graphret.types import is_opaque

#: The properties of a node by name, as the database has them.
Record: TypeAlias = Mapping[str, Any]

#: Nodes of a label whose properties are read, and labels asked for in one statement.
SAMPLE, _LABELS = 100, 40
#: The least share of a label's nodes that have a name property, and of distinct values
#: among them; values under a key such as "name" may repeat more often.
_COVERED, _DISTINCT, _DISTINCT_NAMES = 0.5, 0.9, 0.5
#: Longest values on average that are names, and shortest that are texts, in characters.
_SHORT, _LONG = 80, 100
#: The last word of a name's key, the likeliest first.
_ENDINGS = ("name", "title", "label", "code")
#: The first words of keys that name a part, or something else than the node.
_PARTS = frozenset(("first", "middle", "last", "given", "family"))
_OTHERS = frozenset(("contact", "ship", "bill", "parent", "file", "user"))
_IDS = ("id", "uuid", "key", "number", "no", "nr")

_log = logging.getLogger(__name__)


def with_names(graph: Graph) -> Layout:
    """Return a graph's layout with name and text properties for each label.

    Properties that the user gave stay.

    Raises
    ------
    InvalidInput
        If no node has a name property that the user gave, or its label.
    """
    layout = graph.layout
    records = _sampled(graph)
    _require_known_names(layout, records)
    names, texts = dict(layout.names), dict(layout.texts)
    for label, records_of_label in records.items():
        if label not in texts and _covers(records_of_label, layout.text) < _COVERED:
            texts[label] = _text_of(records_of_label)
        name_given = (
            layout.name_is_given and _covers(records_of_label, layout.name) >= _COVERED
        )
        if label not in names and not name_given:
            says = _covers(records_of_label, texts.get(label, layout.text)) >= _COVERED
            names[label] = _name_of(label, records_of_label, layout, by_id=not says)
    _log.info(
        "nodes are named by: %s",
        "; ".join(
            f"{label}: {', '.join(keys) or 'nothing'}"
            for label, keys in sorted(names.items())
        ),
    )
    return replace(layout, names=names, texts=texts)


def _sampled(graph: Graph) -> dict[str, list[Record]]:
    """Read the properties of some nodes of each visible label."""
    listed = graph.run("CALL db.labels() YIELD label RETURN label ORDER BY label")
    labels = [name for (name,) in listed if name not in graph.layout.unseen_labels]
    records: dict[str, list[Record]] = {}
    for start in range(0, len(labels), _LABELS):
        label_block = labels[start : start + _LABELS]
        parts = [_sample_of(graph, i, label) for i, label in enumerate(label_block)]
        for i, values in graph.run(" UNION ALL ".join(parts)):
            records.setdefault(label_block[i], []).append(values)
    return records


def _sample_of(graph: Graph, number: int, label: str) -> str:
    match, _, _ = graph.matching(f"n:{quote(label)}")
    values = graph.layout.values_of("n")
    return f"{match} WITH n LIMIT {SAMPLE} RETURN {number} AS i, {values} AS found"


def _require_known_names(
    layout: Layout, records: Mapping[str, Sequence[Record]]
) -> None:
    """Refuse name properties or labels of the user that no node has."""
    if not records:
        return
    if layout.name_is_given and not any(
        _covers(records_of_label, layout.name) for records_of_label in records.values()
    ):
        raise InvalidInput(
            "name_property: expected a property of the graph, got"
            f" {', '.join(layout.name)!r}; it has {_listed(records)}"
        )
    for label, keys in layout.names.items():
        if label not in records:
            raise InvalidInput(
                f"name_property: expected a label of the graph, got {label!r}; it has"
                f" {', '.join(sorted(records))}"
            )
        if not _covers(records[label], keys):
            raise InvalidInput(
                f"name_property: expected a property of {label}, got"
                f" {', '.join(keys)!r}; it has {_listed({label: records[label]})}"
            )


def _listed(records: Mapping[str, Sequence[Record]]) -> str:
    """Return the properties of each label as a readable text."""
    return "; ".join(
        f"{label}: {', '.join(sorted(_keys(records_of_label))) or 'none'}"
        for label, records_of_label in sorted(records.items())
    )


def _keys(records: Iterable[Record]) -> set[str]:
    return {
        key
        for record in records
        for key, value in record.items()
        if value is not None and not key.startswith("graphret_")
    }


def _covers(records: Sequence[Record], keys: Sequence[str]) -> float:
    """Return the share of records that have one of some properties."""
    has = [any(record.get(key) is not None for key in keys) for record in records]
    return sum(has) / len(has) if has else 0.0


def _name_of(
    label: str, records: Sequence[Record], layout: Layout, *, by_id: bool
) -> tuple[str, ...]:
    """Return a label's name properties: the likeliest and, with `by_id`, the id."""
    ranked = sorted(
        (_as_name(label, key), key)
        for key in _keys(records)
        if _is_name(key, [record.get(key) for record in records])
    )
    ids = sorted(
        (key != layout.id, name_words(key)[0] not in _own_words(label), len(key), key)
        for key in (_keys(records) if by_id else ())
        if _is_id(key, [record.get(key) for record in records])
    )
    return (*(key for _, key in ranked[:1]), *(candidate[-1] for candidate in ids[:1]))


def _as_name(label: str, key: str) -> tuple[bool, bool, bool, bool, int]:
    """Return the sort key of a name property; the likeliest name sorts first."""
    *before, last = name_words(key)
    label_words = _own_words(label)
    return (
        key.lower() != "name",
        bool(before) and label_words.isdisjoint(before),
        not _OTHERS.isdisjoint(before),
        not _PARTS.isdisjoint(before) and "last" not in before,
        _ENDINGS.index(last),
    )


def _own_words(label: str) -> set[str]:
    return {word.rstrip("s") for word in name_words(label)} | set(name_words(label))


def _is_name(key: str, values: Sequence[Any]) -> bool:
    """Whether a property may name nodes: nearly unique short texts under a fit key."""
    ending = name_words(key)[-1:]
    texts = [value for value in values if isinstance(value, str) and value.strip()]
    if not ending or ending[0] not in _ENDINGS or len(texts) < _COVERED * len(values):
        return False
    if sum(map(len, texts)) > _SHORT * len(texts):
        return False
    least = _DISTINCT_NAMES if ending[0] == "name" else _DISTINCT
    return key.lower() == "name" or len(set(texts)) >= least * len(texts)


def _is_id(key: str, values: Sequence[Any]) -> bool:
    """Whether a property identifies nodes and is readable."""
    ending = name_words(key)[-1:]
    shown = [value for value in values if isinstance(value, str | int)]
    return (
        bool(ending)
        and ending[0] in _IDS
        and len(shown) == len(values) == len(set(shown))
        and not any(is_opaque(str(value)) for value in shown)
    )


def _text_of(records: Sequence[Record]) -> tuple[str, ...]:
    """Return the property with the longest texts, if any are long."""
    long: list[tuple[float, str]] = []
    for key in _keys(records):
        texts = [record[key] for record in records if isinstance(record.get(key), str)]
        mean = sum(map(len, texts)) / len(records)
        if mean >= _LONG and all(" " in text for text in texts if len(text) > _LONG):
            long.append((-mean, key))
    return tuple(key for _, key in sorted(long)[:1])
