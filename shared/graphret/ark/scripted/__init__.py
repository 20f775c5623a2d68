"""An exploring agent without a model: the question is read by rules, and the relations that its words name followed."""

from graphret.ark.scripted.model import ScriptedExplorer

__all__ = ["ScriptedExplorer"]
