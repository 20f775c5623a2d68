"""A benchmark's result as a table: for the terminal, and as Markdown for the docs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Group


def render(result: Mapping[str, Any]) -> Group:
    """Return a result as rich tables: each row with its gain over flat search, then the halves where there are some."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    if "mutations" in result["rows"]:
        from graphret.evaluation.guard import render_cypher_guard

        return render_cypher_guard(result)
    parts: list[Any] = []
    for title, rows, intervals in _sections(result):
        metrics = result.get("shown") or _shown(rows)
        for group, members in _grouped(rows).items():
            asked = result["counts"].get(f"{group}/questions")
            heading = f"{group}, {asked} questions" if asked else title
            table = Table(title=heading, title_justify="left", header_style="bold", box=box.SIMPLE, pad_edge=False)
            table.add_column("", no_wrap=True)
            for metric in metrics:
                table.add_column(metric, justify="right", no_wrap=True)
            for row in members:
                cells = [_cell(rows[row].get(m), intervals.get(row, {}).get(m)) for m in metrics]
                table.add_row(row.rpartition("/")[2], *map(Text.from_markup, cells))
            parts.append(table)
    if result.get("losses"):
        losses = ", ".join(f"{variant} {loss:g}" for variant, loss in result["losses"].items())
        parts.append(Text(f"points under flat search at worst: {losses}"))
    counts = ", ".join(f"{name} {count:,}" for name, count in result["counts"].items())
    parts += [Text(counts, style="dim"), *(Text(note, style="yellow") for note in result.get("notes", ()))]
    return Group(*parts)


def markdown(result: Mapping[str, Any], *, metrics: list[str] | None = None) -> str:
    """Return a result as Markdown tables: each figure with its gain over flat search, below them that of the default
    with its 95 % bootstrap interval.
    """
    lines: list[str] = []
    for title, rows, intervals in _sections(result):
        columns = metrics or result.get("shown") or _shown(rows)
        for group, members in _grouped(rows).items():
            asked = result["counts"].get(f"{group}/questions")
            lines += [f"**{f'{group}, {asked} questions' if asked else title}**", ""]
            lines += [f"| | {' | '.join(columns)} |", "| --- |" + " ---: |" * len(columns)]
            for row in members:
                gains = intervals.get(row, {})
                cells = [_figure(rows[row].get(metric), gains.get(metric)) for metric in columns]
                lines.append(f"| {row.rpartition('/')[2]} | {' | '.join(cells)} |")
            default = intervals.get(f"{group}/default" if group else "default", {})
            if default:
                sure = [f"{g['low']:+.1f} … {g['high']:+.1f}" if (g := default.get(m)) else "" for m in columns]
                lines.append(f"| *default over {result['baseline']}, 95 %* | {' | '.join(sure)} |")
            lines.append("")
    if result.get("losses"):
        losses = ", ".join(f"{variant} {loss:g}" for variant, loss in result["losses"].items())
        lines += [f"Points under the best flat search, at worst: {losses}.", ""]
    counts = ", ".join(f"{name} {count:,}" for name, count in result["counts"].items() if "/" not in name)
    return "\n".join([*lines, f"Counts: {counts}."])


def _figure(value: float | None, gain: Mapping[str, float] | None) -> str:
    if value is None:
        return ""
    return f"{value:.1f} ({gain['gain']:+.1f})" if gain else f"{value:.1f}"


def _sections(result: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    questions = result["counts"].get("questions", 0)
    sections = [(f"{result['name']}, {questions} questions", result["rows"], result.get("intervals", {}))]
    for half, part in result.get("halves", {}).items():
        what = "settings were chosen on these" if half == "tuned" else "nothing was chosen on these"
        sections.append((f"{half} half, {part['questions']} questions: {what}", part["rows"], part["intervals"]))
    return sections


def _shown(rows: Mapping[str, Mapping[str, float]]) -> list[str]:
    names = dict.fromkeys(metric for row in rows.values() for metric in row)
    return [name for name in names if name.startswith(("recall@", "all@"))]


def _grouped(rows: Mapping[str, Any]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for row in rows:
        groups.setdefault(row.rpartition("/")[0], []).append(row)
    return groups


def _cell(value: float | None, interval: Mapping[str, float] | None) -> str:
    if value is None:
        return ""
    if not interval:
        return f"{value:.1f}"
    sure = interval["low"] > 0 or interval["high"] < 0
    color = "dim" if not sure else "green" if interval["gain"] > 0 else "red"
    return f"{value:.1f} [{color}]{interval['gain']:+5.1f}[/{color}]"
