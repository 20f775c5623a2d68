"""A page on similarity edges: counts, recall and signals by percentile and logic."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graphret.explain import edge_plots
from graphret.explain.edge_plots import Panel
from graphret.explain.pages import rendered, written


def edge_page(result: Mapping[str, Any], *, title: str = "graphret") -> str:
    """Return a page with plots and tables of the result of `bench_sage`.

    The same input makes the same page.
    """
    names = list(result["pairs"])
    groups: dict[str, list[str]] = {}
    for row in result["rows"]:
        groups.setdefault(row.rpartition("/")[0], []).append(row)
    places: Mapping[str, int] = result["places"]
    return rendered(
        "edges.html",
        title=title,
        lead=f"{result['counts']['questions']} questions",
        result=result,
        groups=groups,
        sections={name: _panels(result, name) for name in names},
        shade=edge_plots.shade,
        is_correlation=lambda measure: measure.startswith("("),
        shown=lambda value, measure: f"{value:,.{places.get(measure, 1)}f}",
    )


def write_edge_page(
    path: str | os.PathLike[str], result: Mapping[str, Any], *, title: str = "graphret"
) -> Path:
    """Write `edge_page` to a file, making its folder if need be; return its path."""
    return written(path, edge_page(result, title=title))


def _panels(result: Mapping[str, Any], name: str) -> dict[str, list[Panel]]:
    """Return the plots of a set, by what stands above them."""
    panels = {"edges and recall by percentile": _swept(result, name)}
    for what, by_role in result["per_node"][name].items():
        panels[f"{what} of a node"] = [
            edge_plots.numbers(role, counts, what) for role, counts in by_role.items()
        ]
    for kind, about in result["pairs"][name].items():
        panels[f"{kind}: how often signals have a value"] = [
            edge_plots.histogram(signal, drawn)
            for signal, drawn in about["histograms"].items()
        ]
        panels[f"{kind}: signals against each other, a sample of pairs"] = [
            edge_plots.scatter(pair, points)
            for pair, points in about["points"].items()
            if points
        ]
    return panels


def _swept(result: Mapping[str, Any], name: str) -> list[Panel]:
    """Return the columns of the sweep as curves over percentiles, a line a logic."""
    group, rows = f"{name}/edges", result["rows"]
    by_logic: dict[str, list[str]] = {}
    for row in rows:
        logic, _, percentile = row.removeprefix(f"{group}/").partition(" ")
        if row.startswith(f"{group}/") and percentile:
            by_logic.setdefault(logic, []).append(row)
    first: Sequence[str] = next(iter(by_logic.values()))
    percentiles = [float(row.rpartition(" ")[2]) for row in first]
    return [
        edge_plots.curves(
            measure,
            {
                logic: [rows[row][measure] for row in own]
                for logic, own in by_logic.items()
            },
            percentiles,
        )
        for measure in result["shown"][group]
    ]
