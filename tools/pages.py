"""Write the results of benchmarks into a page of the docs, between its marks.

``python tools/pages.py docs/benchmarks/quality.md RESULT.json…``
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graphret.errors import InvalidInput
from graphret.evaluation.table import (
    columns_of,
    grouped,
    sections,
    shown_metrics,
    title_of,
)


def updated(page: str, result: dict[str, object]) -> str:
    """Return a page with a result in place of what its marks enclose.

    The marks are ``<!-- generated: NAME -->`` and ``<!-- end -->``.

    Raises
    ------
    InvalidInput
        When the page has no such place.
    """
    name = re.escape(str(result["name"]))
    place = re.compile(rf"(<!-- generated: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    if place.search(page) is None:
        raise InvalidInput(
            f"expected '<!-- generated: {result['name']} -->' … '<!-- end -->' in the"
            " page, found none"
        )
    return place.sub(
        lambda match: f"{match[1]}\n{markdown(result)}\n\n{match[2]}", page
    )


def markdown(result: Mapping[str, Any], *, metrics: list[str] | None = None) -> str:
    """Return a result as Markdown tables: figures and their gains over flat search.

    Below them are the gains of the default with their 95 % bootstrap intervals.
    """
    lines: list[str] = []
    for title, rows, intervals in sections(result):
        for group, members in grouped(rows).items():
            columns = metrics or columns_of(group, result) or shown_metrics(rows)
            lines += [f"**{title_of(group, result) or title}**", ""]
            lines += [
                f"| | {' | '.join(columns)} |",
                "| --- |" + " ---: |" * len(columns),
            ]
            for row in members:
                gains = intervals.get(row, {})
                cells = [
                    _figure(rows[row].get(metric), gains.get(metric))
                    for metric in columns
                ]
                lines.append(f"| {row.rpartition('/')[2]} | {' | '.join(cells)} |")
            default = intervals.get(f"{group}/default" if group else "default", {})
            if default:
                sure = [
                    (
                        f"{g['low']:+.1f} … {g['high']:+.1f}"
                        if (g := default.get(m))
                        else ""
                    )
                    for m in columns
                ]
                lines.append(
                    f"| *default over {result['baseline']}, 95 %* |"
                    f" {' | '.join(sure)} |"
                )
            lines.append("")
    if result.get("losses"):
        losses = ", ".join(
            f"{variant} {loss:g}" for variant, loss in result["losses"].items()
        )
        lines += [f"Points under the best flat search, at worst: {losses}.", ""]
    counts = ", ".join(
        f"{name} {count:,}"
        for name, count in result["counts"].items()
        if "/" not in name
    )
    return "\n".join([*lines, f"Counts: {counts}."])


def _figure(value: float | None, gain: Mapping[str, float] | None) -> str:
    if value is None:
        return ""
    return f"{value:.1f} ({gain['gain']:+.1f})" if gain else f"{value:.1f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python tools/pages.py", description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument(
        "results", type=Path, nargs="+", help="what graphret bench NAME --json wrote"
    )
    chosen = parser.parse_args(arguments)
    page = chosen.page.read_text(encoding="utf-8")
    for path in chosen.results:
        page = updated(page, json.loads(path.read_text(encoding="utf-8")))
    chosen.page.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
