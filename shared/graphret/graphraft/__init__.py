"""GraphRAFT: queries that exist around a question's entities, ranked by a model or without one, and run."""

from graphret.graphraft.candidates import Candidate, QueryWriter, pattern_of

__all__ = ["Candidate", "QueryWriter", "pattern_of"]
