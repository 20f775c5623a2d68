"""The result of the Cypher guard's benchmark for the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text

_TITLES = {"guard": "against a server's verdicts", "mutations": "seeded mistakes found"}
_UNSAID = {
    "directions": "a relation in the wrong direction",
    "ends": "a relation between the wrong labels",
    "labels": "a property on the wrong label",
}


def render_cypher_guard(result: Mapping[str, Any]) -> Group:
    """Return the shares of each row with what they are shares of, then the queries to read."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    counts = result["counts"]
    parts: list[Any] = []
    for row, metrics in result["rows"].items():
        table = Table(title=_TITLES[row], title_justify="left", header_style="bold", box=box.SIMPLE, pad_edge=False)
        table.add_column("", no_wrap=True)
        table.add_column("%", justify="right")
        table.add_column("of", justify="right")
        for metric, share in metrics.items():
            table.add_row(metric, f"{share:.2f}", f"{counts[f'{row}/{metric}']:,}")
        parts.append(table)
    of = counts.get("accepted", 0)
    for name, what in _UNSAID.items():
        parts.append(Text(f"accepted queries with {what}: {counts.get(f'accepted/{name}', 0):,} of {of:,}", "bold"))
        for example in result[name]:
            parts += _example(example, Text)
    for name, examples in result["missed"].items():
        parts.append(Text(f"{name}: {len(examples)} examples", "bold"))
        for example in examples:
            parts += _example(example, Text)
    seconds = result["seconds"]
    checked = f"a check takes {seconds['check_median'] * 1000:.2f} ms (median), {seconds['check_p99'] * 1000:.2f} (p99)"
    parts.append(Text(f"{counts['queries']:,} queries, {checked}", style="dim"))
    return Group(*parts)


def _example(example: Mapping[str, str], text: type[Text]) -> list[Text]:
    query = "\n".join(f"    {line}" for line in example["query"].splitlines())
    message = f"  {_short(example['message'])}"
    return [text(message, "yellow"), text(query)]


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 200 else f"{text[:199]}…"
