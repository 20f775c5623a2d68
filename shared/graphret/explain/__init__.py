"""A `Retrieval` explained: in the terminal, and as a page that needs nothing but a browser."""

from graphret.explain.pages import Figures, Panel, html_page, timeline_page, write_html, write_timeline
from graphret.explain.runs import Lane, Timeline, fallback_text, timeline
from graphret.explain.terminal import clean, render, render_timeline
from graphret.explain.words import Lookup, Marker, name_of, reasons, store_lookup

__all__ = [
    "Figures",
    "Lane",
    "Lookup",
    "Marker",
    "Panel",
    "Timeline",
    "clean",
    "fallback_text",
    "html_page",
    "name_of",
    "reasons",
    "render",
    "render_timeline",
    "store_lookup",
    "timeline",
    "timeline_page",
    "write_html",
    "write_timeline",
]
