"""Planning without a model: what a question says around the names in it, and the paths of relations that fit its words.

`question` reads the words, `words` knows which mean the same, and `paths` aligns them with the relations of a graph.
"""

from graphret.planning.paths import Explored, Hop, Known, Neighbor, Plan, plans
from graphret.planning.question import Cue, Reading, readings, spans, unread

__all__ = [
    "Cue",
    "Explored",
    "Hop",
    "Known",
    "Neighbor",
    "Plan",
    "Reading",
    "plans",
    "readings",
    "spans",
    "unread",
]
