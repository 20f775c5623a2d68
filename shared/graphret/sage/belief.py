"""How far a link by a name can be believed, from 0 to 1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

# A name that makes up to so many links in its relation is believed; one that makes e
# times as many loses this.
_FEW, _PER_LOG = 10, 0.005
#: What a name loses that texts use as a word only.
_EVERYDAY = 0.1


def beliefs(
    names: Sequence[str], everyday: Mapping[str, float] | None = None
) -> NDArray[np.float32]:
    """Return how far links of one relation can be believed, ``(m,)``, by the names that
    make them.

    ``(1 - 0.1 w) (1 - 0.005 max(0, ln(m / 10)))``, where m links are made by the name,
    and w is the share of its occurrences in which it is an everyday word. A ranking may
    well hold more against a name that makes many links: here only what no question
    would trust is told.

    Parameters
    ----------
    everyday
        The share by name; 0 where it is not known.
    """
    made = Counter(names)
    shares = everyday or {}
    many = {name: max(0.0, float(np.log(n / _FEW))) for name, n in made.items()}
    known = {
        name: max(0.0, (1 - _EVERYDAY * shares.get(name, 0.0)) * (1 - _PER_LOG * over))
        for name, over in many.items()
    }
    return np.asarray([known[name] for name in names], dtype=np.float32)
