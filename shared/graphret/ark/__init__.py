"""ARK: agents that explore a graph by search and by neighbourhood, and vote (Polonuer et al. 2026)."""

from graphret.ark.settings import ArkSettings

__all__ = ["ArkSettings"]
