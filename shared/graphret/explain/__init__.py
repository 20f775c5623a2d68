"""A `Retrieval` explained: in the terminal, and as a page that needs nothing but a browser."""

from graphret.explain.html import Panel, html_page, write_html
from graphret.explain.terminal import render
from graphret.explain.timeline import Lane, Timeline, timeline
from graphret.explain.timeline_html import timeline_page, write_timeline
from graphret.explain.timeline_text import render_timeline, step_text
from graphret.explain.words import Lookup, Marker, Reason, reasons, store_lookup

__all__ = [
    "Lane",
    "Lookup",
    "Marker",
    "Panel",
    "Reason",
    "Timeline",
    "html_page",
    "reasons",
    "render",
    "render_timeline",
    "step_text",
    "store_lookup",
    "timeline",
    "timeline_page",
    "write_html",
    "write_timeline",
]
