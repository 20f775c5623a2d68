"""Explain a `Retrieval`, in the terminal and as a self-contained page."""

from graphret.explain.edge_pages import edge_page, write_edge_page
from graphret.explain.pages import (
    Figures,
    Panel,
    evaluation_page,
    html_page,
    timeline_page,
    write_evaluation,
    write_html,
    write_timeline,
)
from graphret.explain.runs import timeline
from graphret.explain.terminal import Plain, render, render_timeline
from graphret.explain.words import Lookup, store_lookup

__all__ = [
    "Figures",
    "Lookup",
    "Panel",
    "Plain",
    "html_page",
    "render",
    "render_timeline",
    "store_lookup",
]
__all__ += [
    "edge_page",
    "evaluation_page",
    "timeline",
    "timeline_page",
    "write_edge_page",
    "write_evaluation",
    "write_html",
    "write_timeline",
]
