"""Chunkers by name."""

from __future__ import annotations

from graphret.corpus import Chunker, SemanticChunker, SentenceChunker
from graphret.errors import InvalidInput
from graphret.search.encoder import Encoder


def named_chunker(name: str, encoder: Encoder | None) -> Chunker | None:
    """Return the chunker that is meant: the paper's semantic one by default, sentences where there is no encoder."""
    if name == "default":
        name = "semantic" if encoder is not None else "sentence"
    if name == "none":
        return None
    if name == "sentence":
        return SentenceChunker()
    if name == "semantic":
        if encoder is None:
            raise InvalidInput("chunker: semantic chunking needs an encoder")
        return SemanticChunker(encoder)
    raise InvalidInput(f"chunker: 'default', 'semantic', 'sentence' or 'none' is expected, not {name!r}")


def chunker_name(chunker: Chunker | None) -> str:
    """Return the name under which `named_chunker` finds a chunker of this kind."""
    if chunker is None:
        return "none"
    return "semantic" if isinstance(chunker, SemanticChunker) else "sentence"
