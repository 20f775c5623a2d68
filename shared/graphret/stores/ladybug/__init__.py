"""A graph in an embedded Ladybug database."""

from graphret.stores.ladybug.store import LadybugStore

__all__ = ["LadybugStore"]
