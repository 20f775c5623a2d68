"""A benchmark's result as tables for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

_TITLES = {
    "guard": "against a server's verdicts",
    "mutations": "seeded mistakes found",
    "queries": "queries of a model, as SPARK runs them",
    "mistakes": "queries with a mistake that find something again",
}


def render(result: Mapping[str, Any]) -> Group:
    """Return a result as rich tables: rows with their gains, and the halves if any."""
    if "missed" in result:
        return _shares(result)
    parts: list[Any] = []
    decimals: Mapping[str, int] = result.get("places", {})
    for title, rows, intervals in sections(result):
        for group, members in grouped(rows).items():
            metrics = columns_of(group, result) or shown_metrics(rows)
            table = _table(title_of(group, result) or title, metrics)
            for row in members:
                cells = [
                    _cell(
                        rows[row].get(m),
                        intervals.get(row, {}).get(m),
                        decimals.get(m, 1),
                    )
                    for m in metrics
                ]
                table.add_row(row.rpartition("/")[2], *map(Text.from_markup, cells))
            parts.append(table)
    titled = result.get("titles", {})  # a title has the counts of its rows
    counts_without_title = {
        name: count
        for name, count in result["counts"].items()
        if name.rpartition("/")[0] not in titled
    }
    counts = ", ".join(
        f"{name} {count:,}" for name, count in counts_without_title.items()
    )
    parts += [
        Text(counts, style="dim"),
        *(Text(note, style="yellow") for note in result.get("notes", ())),
    ]
    return Group(*parts)


def _shares(result: Mapping[str, Any]) -> Group:
    """Return the shares of each row with their denominators, without the queries."""
    parts: list[Any] = []
    for row, metrics in result["rows"].items():
        table = _table(_TITLES.get(row, row), ("%", "of"))
        for metric, share in metrics.items():
            table.add_row(
                metric, f"{share:.2f}", f"{result['counts'][f'{row}/{metric}']:,}"
            )
        parts.append(table)
    seconds = ", ".join(
        f"{name} {value * 1000:.2f} ms" for name, value in result["seconds"].items()
    )
    return Group(
        *parts, *map(Text, result.get("notes", ())), Text(seconds, style="dim")
    )


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(
        title=title,
        title_justify="left",
        header_style="bold",
        box=box.SIMPLE,
        pad_edge=False,
    )
    table.add_column("", no_wrap=True)
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def sections(
    result: Mapping[str, Any],
) -> list[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """Return the parts of a result: what each is, its rows and its intervals."""
    questions = result["counts"].get("questions", 0)
    sections = [
        (
            f"{result['name']}, {questions} questions",
            result["rows"],
            result.get("intervals", {}),
        )
    ]
    for half, part in result.get("halves", {}).items():
        what = "settings were chosen on these" if half == "tuned" else "held back"
        sections.append(
            (
                f"{half} half, {part['questions']} questions: {what}",
                part["rows"],
                part["intervals"],
            )
        )
    return sections


def title_of(group: str, result: Mapping[str, Any]) -> str:
    """Return the title of a group of rows, or its name and number of questions."""
    if group in result.get("titles", {}):
        return str(result["titles"][group])
    n_questions = result["counts"].get(f"{group}/questions")
    return f"{group}, {n_questions} questions" if n_questions else ""


def columns_of(group: str, result: Mapping[str, Any]) -> Sequence[str]:
    """Return a result's columns for a group's table, or for all; none if unnamed."""
    shown: Any = result.get("shown", ())
    columns: Sequence[str] = shown[group] if isinstance(shown, Mapping) else shown
    return columns


def shown_metrics(rows: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return the metrics that a table has where the result names none."""
    names = dict.fromkeys(metric for row in rows.values() for metric in row)
    return [name for name in names if name.startswith(("recall@", "all@"))]


def grouped(rows: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the rows by what stands before their last slash."""
    groups: dict[str, list[str]] = {}
    for row in rows:
        groups.setdefault(row.rpartition("/")[0], []).append(row)
    return groups


def _cell(
    value: float | None, interval: Mapping[str, float] | None, places: int
) -> str:
    if value is None:
        return ""
    if not interval:
        return f"{value:,.{places}f}"
    sure = interval["low"] > 0 or interval["high"] < 0
    color = "dim" if not sure else "green" if interval["gain"] > 0 else "red"
    return f"{value:.1f} [{color}]{interval['gain']:+5.1f}[/{color}]"
