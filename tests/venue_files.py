"""A folder of files as people have them: a table of venues, and pages about what it names."""

from __future__ import annotations

from pathlib import Path

from graphret.sage import SageGraph

QUESTION = "Who was the architect of the stadium of the 1990 European Athletics Championships?"
_CITIES = "Turin Oslo Brussels Berne Stockholm Belgrade Budapest Athens Helsinki Rome Prague Split Stuttgart".split()
_FILLER = "It has seats, a roof and a track. Many games were held there, and concerts too. "
_PAGES = {
    "poljud.md": ("Stadion Poljud", "Poljud opened in 1979. " + _FILLER * 6 + "Its architect was Boris Magaš."),
    "neckar.md": ("Neckarstadion", "The arena opened in 1933. " + _FILLER * 6 + "Its architect was Paul Bonatz."),
    "magas.md": ("Boris Magaš", "An architect. " + _FILLER * 3 + "He built Stadion Poljud in Split."),
}


def write_venues(folder: Path) -> None:
    """Write the files; row 12 of the table says 1990 and Stadion Poljud."""
    rows = [f"{1934 + 4 * n + (n > 10) * 12},{city},Stadium of {city}" for n, city in enumerate(_CITIES)]
    rows[11:] = ["1990,Split,Stadion Poljud", "1986,Stuttgart,Neckarstadion"]
    table = "\n".join(["Year,City,Stadium", *rows])
    (folder / "European Athletics Championships.csv").write_text(table + "\n")
    for name, (title, text) in _PAGES.items():
        (folder / name).write_text(f"# {title}\n\n{text}\n")


def mentions(graph: SageGraph) -> set[tuple[str, int, str]]:
    """Return who mentions whom: the name of the source, the row of its table from 1, 0 for text, and the other name."""
    nodes, found = {node.id: node for node in graph.nodes}, set()
    for edge in graph.edges.edges(graph.nodes.ids):
        if edge.relation == "MENTIONS":
            source, row = nodes[edge.source], edge.properties.get("source_row")
            number = 0 if row is None else row + 1 + source.properties["table_row_start"]
            found.add((source.name, number, nodes[edge.target].name))
    return found
