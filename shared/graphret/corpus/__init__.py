"""Turn documents, tables and records into nodes with metadata (SAGE, section 2.1 A)."""

from graphret.corpus.chunkers import Chunker, SemanticChunker, SentenceChunker
from graphret.corpus.chunks import from_chunks
from graphret.corpus.items import (
    Corpus,
    Document,
    Item,
    Record,
    Table,
    to_edges,
    to_nodes,
)
from graphret.corpus.metadata import HeuristicMetadata, MetadataExtractor, describe
from graphret.corpus.readers import Reader, read, register_reader

__all__ = [
    "Chunker",
    "Corpus",
    "Document",
    "HeuristicMetadata",
    "Item",
    "MetadataExtractor",
    "Reader",
    "Record",
    "SemanticChunker",
    "SentenceChunker",
    "Table",
    "describe",
    "from_chunks",
    "read",
    "register_reader",
    "to_edges",
    "to_nodes",
]
