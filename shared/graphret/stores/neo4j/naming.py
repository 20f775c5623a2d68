"""What names a node of a graph that something else wrote, and what it says: chosen for
each label from a sample of its nodes.
"""

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
#: The share of a label's nodes that have a property, and of its values that differ,
#: from which on it names them; names proper may come more often.
_COVERED, _DISTINCT, _DISTINCT_NAMES = 0.5, 0.9, 0.5
#: Longest values on average that are names, and shortest that are texts, in characters.
_SHORT, _LONG = 80, 100
#: How keys of names end, the likeliest first.
_ENDINGS = ("name", "title", "label", "code")
#: How keys of names begin that name a part, or something else than the node.
_PARTS = frozenset(("first", "middle", "last", "given", "family"))
_OTHERS = frozenset(("contact", "ship", "bill", "parent", "file", "user"))
_IDS = ("id", "uuid", "key", "number", "no", "nr")

_log = logging.getLogger(__name__)


def with_names(graph: Graph) -> Layout:
    """Return the layout of a graph with what names the nodes of each label, and what
    they say; what was told stays.

    Raises
    ------
    InvalidInput
        When a property that was told as a name, or its label, is of no node.
    """
    layout = graph.layout
    records = _sampled(graph)
    _require_told(layout, records)
    names, texts = dict(layout.names), dict(layout.texts)
    for label, some in records.items():
        if label not in texts and _covers(some, layout.text) < _COVERED:
            texts[label] = _text_of(some)
        told = layout.told and _covers(some, layout.name) >= _COVERED
        if label not in names and not told:
            says = _covers(some, texts.get(label, layout.text)) >= _COVERED
            names[label] = _name_of(label, some, layout, by_id=not says)
    _log.info(
        "nodes are named by: %s",
        "; ".join(
            f"{label}: {', '.join(found) or 'nothing'}"
            for label, found in sorted(names.items())
        ),
    )
    return replace(layout, names=names, texts=texts)


def _sampled(graph: Graph) -> dict[str, list[Record]]:
    """Read the properties of some nodes of each label that is shown."""
    listed = graph.run("CALL db.labels() YIELD label RETURN label ORDER BY label")
    labels = [name for (name,) in listed if name not in graph.layout.unseen_labels]
    found: dict[str, list[Record]] = {}
    for start in range(0, len(labels), _LABELS):
        some = labels[start : start + _LABELS]
        parts = [_sample_of(graph, i, label) for i, label in enumerate(some)]
        for i, values in graph.run(" UNION ALL ".join(parts)):
            found.setdefault(some[i], []).append(values)
    return found


def _sample_of(graph: Graph, number: int, label: str) -> str:
    match, _, _ = graph.matching(f"n:{quote(label)}")
    values = graph.layout.values_of("n")
    return f"{match} WITH n LIMIT {SAMPLE} RETURN {number} AS i, {values} AS found"


def _require_told(layout: Layout, records: Mapping[str, Sequence[Record]]) -> None:
    """Raise an `InvalidInput` if what was told of names is nowhere."""
    if not records:
        return
    if layout.told and not any(_covers(some, layout.name) for some in records.values()):
        raise InvalidInput(
            "name_property: expected a property of the graph, got"
            f" {', '.join(layout.name)!r}; there is {_listed(records)}"
        )
    for label, keys in layout.names.items():
        if label not in records:
            raise InvalidInput(
                f"name_property: expected a label of the graph, got {label!r}; there is"
                f" {', '.join(sorted(records))}"
            )
        if not _covers(records[label], keys):
            raise InvalidInput(
                f"name_property: expected a property of {label}, got"
                f" {', '.join(keys)!r}; there is {_listed({label: records[label]})}"
            )


def _listed(records: Mapping[str, Sequence[Record]]) -> str:
    """The properties of each label, for people to read."""
    return "; ".join(
        f"{label}: {', '.join(sorted(_keys(some))) or 'none'}"
        for label, some in sorted(records.items())
    )


def _keys(records: Iterable[Record]) -> set[str]:
    return {
        key
        for record in records
        for key, value in record.items()
        if value is not None and not key.startswith("graphret_")
    }


def _covers(records: Sequence[Record], keys: Sequence[str]) -> float:
    """The share of records that have one of some properties."""
    has = [any(record.get(key) is not None for key in keys) for record in records]
    return sum(has) / len(has) if has else 0.0


def _name_of(
    label: str, records: Sequence[Record], layout: Layout, *, by_id: bool
) -> tuple[str, ...]:
    """Return the properties that name the nodes of a label: the likeliest name, then,
    with `by_id`, the id; none where there is neither.
    """
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
    return (*(key for _, key in ranked[:1]), *(one[-1] for one in ids[:1]))


def _as_name(label: str, key: str) -> tuple[bool, bool, bool, bool, int]:
    """How likely a key names a node of a label; what sorts first is likeliest."""
    *before, last = name_words(key)
    own = _own_words(label)
    return (
        key.lower() != "name",
        bool(before) and own.isdisjoint(before),
        not _OTHERS.isdisjoint(before),
        not _PARTS.isdisjoint(before) and "last" not in before,
        _ENDINGS.index(last),
    )


def _own_words(label: str) -> set[str]:
    return {word.rstrip("s") for word in name_words(label)} | set(name_words(label))


def _is_name(key: str, values: Sequence[Any]) -> bool:
    """Whether a property may name nodes: short texts that are nearly unique, under a
    key that ends as names do.
    """
    ending = name_words(key)[-1:]
    texts = [value for value in values if isinstance(value, str) and value.strip()]
    if not ending or ending[0] not in _ENDINGS or len(texts) < _COVERED * len(values):
        return False
    if sum(map(len, texts)) > _SHORT * len(texts):
        return False
    least = _DISTINCT_NAMES if ending[0] == "name" else _DISTINCT
    return key.lower() == "name" or len(set(texts)) >= least * len(texts)


def _is_id(key: str, values: Sequence[Any]) -> bool:
    """Whether a property tells nodes apart and can be shown to people."""
    ending = name_words(key)[-1:]
    shown = [value for value in values if isinstance(value, str | int)]
    return (
        bool(ending)
        and ending[0] in _IDS
        and len(shown) == len(values) == len(set(shown))
        and not any(is_opaque(str(value)) for value in shown)
    )


def _text_of(records: Sequence[Record]) -> tuple[str, ...]:
    """Return the property with the longest texts, none where no texts are long."""
    long: list[tuple[float, str]] = []
    for key in _keys(records):
        texts = [one[key] for one in records if isinstance(one.get(key), str)]
        mean = sum(map(len, texts)) / len(records)
        if mean >= _LONG and all(" " in text for text in texts if len(text) > _LONG):
            long.append((-mean, key))
    return tuple(key for _, key in sorted(long)[:1])
