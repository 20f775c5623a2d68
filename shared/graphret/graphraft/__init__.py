"""GraphRAFT: the queries that exist around a question's entities, ranked and run.

`entities` finds what a question names, `counts` the paths around it and how much each
finds, which `candidates` makes queries of; `path_writer` ranks them without a model,
`writer` with one. `reasoner` reads what they found, and `retriever` joins all of it.
"""

from graphret.graphraft.candidates import (
    Candidate,
    CandidateFinder,
    GraphRAFTSettings,
    QueryWriter,
)
from graphret.graphraft.counts import Entity
from graphret.graphraft.entities import EntityNamer
from graphret.graphraft.path_writer import PathWriter
from graphret.graphraft.reasoner import Reasoner
from graphret.graphraft.retriever import GraphRAFT

__all__ = [
    "Candidate",
    "CandidateFinder",
    "Entity",
    "EntityNamer",
    "GraphRAFT",
    "GraphRAFTSettings",
    "PathWriter",
    "QueryWriter",
    "Reasoner",
]
