"""A `Retrieval` explained: in the terminal, and as a page that needs nothing but a browser."""

from graphret.explain.html import Panel, html_page, write_html
from graphret.explain.terminal import render
from graphret.explain.words import Lookup, Marker, Reason, reasons, store_lookup

__all__ = ["Lookup", "Marker", "Panel", "Reason", "html_page", "reasons", "render", "store_lookup", "write_html"]
