"""A retrieval drawn in the terminal with rich."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from graphret.explain.words import Lookup, Marker, Piece, evidence_row, known_nodes, name_of, reasons
from graphret.types import Retrieval

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

_MARKS = {"seed": "•", "neighbor": "↳", "fill": "·"}
_CONTROLS: dict[int, str | None] = {
    **dict.fromkeys([*range(9), *range(11, 32), *range(127, 160)]),
    **dict.fromkeys(range(0xD800, 0xE000), "\N{REPLACEMENT CHARACTER}"),
}


def render(
    retrieval: Retrieval,
    lookup: Lookup | None = None,
    *,
    gold: Collection[str] = (),
    answer: str = "",
    limit: int | None = None,
    snippets: bool = True,
) -> RenderableType:
    """Return a retrieval as something that rich prints: rank, kind, name, score, why, and a marked snippet.

    Parameters
    ----------
    lookup
        Finds the nodes that edges come from where they are not among the hits; `store_lookup` makes one of a store.
    gold
        Ids of right answers, which get a star.
    answer
        The answer, which is marked where texts hold it.
    limit
        The most hits to draw.
    snippets
        Whether texts are quoted.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", style="dim", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1, overflow="fold")
    table.add_column(justify="right", style="dim", no_wrap=True)
    known = known_nodes(retrieval.hits, lookup)
    marker = Marker(retrieval.query, answer)
    for rank, hit in enumerate(retrieval.hits[:limit], start=1):
        body = Text()
        body.append(clean(name_of(hit.node)), style="bold")
        body.append(f"  {clean(hit.node.label)}", style="cyan")
        for reason in reasons(hit):
            body.append(f"\n{_MARKS.get(reason.kind, '·')} {clean(reason.text)}", style=_style(reason.kind))
            if reason.source is not None:
                source = known.get(reason.source)
                body.append(f" {reason.arrow} {clean(name_of(source) if source else reason.source)}", style="magenta")
        if snippets:
            body.append("\n")
            body.append_text(_marked(marker.snippet(hit.node, row=evidence_row(hit))))
        star = Text("★", style="bold yellow") if hit.id in gold else Text(" ")
        table.add_row(str(rank), star, body, f"{hit.score:.3f}")
    return table


def clean(text: str) -> str:
    """Return a text without the characters that steer a terminal, and with marks for what no encoding can hold."""
    return text.translate(_CONTROLS)


def _style(kind: str) -> str:
    return "green" if kind == "neighbor" else "dim"


def _marked(pieces: Iterable[Piece]) -> Text:
    from rich.text import Text

    out = Text(style="not bold")
    for text, marked in pieces:
        out.append(clean(text), style="bold yellow" if marked and text[0] == "«" else "underline" if marked else "")
    return out
