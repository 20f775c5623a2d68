"""A graph in an embedded Ladybug database."""

from graphret.stores.ladybug.store import LadybugStore, LadybugView

__all__ = ["LadybugStore", "LadybugView"]
