"""A graph in an embedded Ladybug database."""

from graphret.stores.ladybug.store import LadybugStore
from graphret.stores.ladybug.view import LadybugView

__all__ = ["LadybugStore", "LadybugView"]
