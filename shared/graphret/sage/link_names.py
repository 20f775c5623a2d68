"""Which names make the links of a graph: the commonest, and the least believed.

Each comes with an example.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphret.edges import EdgeTable
from graphret.expansion.frontier import MENTIONS, SHARES_NAME
from graphret.nodes import NodeTable

_MOST = 10
_BLOCK = 1 << 14


@dataclass(slots=True)
class _NameLinks:
    """The links that one name makes in one relation."""

    example: int
    edges: int = 0
    believed: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)


def link_names(nodes: NodeTable, edges: EdgeTable) -> dict[str, list[dict[str, Any]]]:
    """Return the ten names that make most links, and the ten that are least believed.

    They are under ``commonest`` and ``doubtful``. Each has ``name``, ``relation``,
    ``kind`` (the commonest of `KIND_WEIGHTS`, where it has one), ``edges``, ``weight``
    (their mean, how far they can be believed), and as an example ``source`` and
    ``target``, by name.
    """
    found = _by_name(edges)
    common = sorted(found, key=lambda key: (-found[key].edges, key))[:_MOST]
    doubtful = sorted(
        found, key=lambda key: (_weight(found[key]), -found[key].edges, key)
    )[:_MOST]
    return {
        "commonest": [_told(*key, found[key], nodes, edges) for key in common],
        "doubtful": [_told(*key, found[key], nodes, edges) for key in doubtful],
    }


def lines_of(names: Iterable[dict[str, Any]]) -> list[str]:
    """Return names as lines of text: links, weight, name, kind, and the example."""
    lines = []
    for one in names:
        by = one["relation"] + (f" {one['kind']}" if one["kind"] else "")
        example = f"{one['source']} → {one['target']}"
        lines.append(
            f"{one['edges']:>9,}  {one['weight']:.2f}  {one['name']}  ({by}: {example})"
        )
    return lines


def _by_name(edges: EdgeTable) -> dict[tuple[str, str], _NameLinks]:
    """Return the links by relation and name, of the relations that names make."""
    found: dict[tuple[str, str], _NameLinks] = {}
    for relation in (MENTIONS, SHARES_NAME):
        code = edges.relations.index(relation) if relation in edges.relations else -1
        positions = np.flatnonzero(edges.relation == code)
        for start in range(0, len(positions), _BLOCK):
            block = positions[start : start + _BLOCK]
            told: Sequence[dict[str, Any]] = edges.properties.take(block)
            for at, weight, given in zip(
                block.tolist(), edges.weight[block].tolist(), told, strict=True
            ):
                if not isinstance(name := given.get("name"), str):
                    continue
                links = found.setdefault((relation, name), _NameLinks(at))
                links.edges += 1
                links.believed += weight
                links.kinds[str(given.get("kind", ""))] += 1
    return found


def _weight(links: _NameLinks) -> float:
    return round(links.believed / links.edges, 4)


def _told(
    relation: str, name: str, links: _NameLinks, nodes: NodeTable, edges: EdgeTable
) -> dict[str, Any]:
    source, target = nodes.at(
        [int(edges.source[links.example]), int(edges.target[links.example])]
    )
    return {
        "name": name,
        "relation": relation,
        "kind": links.kinds.most_common(1)[0][0],
        "edges": links.edges,
        "weight": _weight(links),
        "source": source.name or source.id,
        "target": target.name or target.id,
    }
