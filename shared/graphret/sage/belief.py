"""How far a link by a name can be believed, from 0 to 1."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# A name that makes up to so many links in its relation is believed; one that makes e
# times as many loses this.
_FEW, _PER_LOG = 10, 0.005
#: What a name loses that texts use as a word only.
_EVERYDAY = 0.1


def beliefs(
    n_links: NDArray[np.integer[Any]], everyday: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Return how far to believe links of one relation, by the names that make them.

    The belief for each name, ``(names,)``, is
    ``(1 - 0.1 w) (1 - 0.005 max(0, ln(m / 10)))``, where m links are made by the name,
    and w is the share of its occurrences in which it is an everyday word. A ranking may
    well hold more against a name that makes many links: here only what no question
    would trust is told.

    Parameters
    ----------
    n_links
        How many links each name makes, ``(names,)``.
    everyday
        The share of each name, ``(names,)``; 0 where it is not known.
    """
    many = np.flatnonzero(n_links > _FEW)
    believed = np.multiply(everyday, -_EVERYDAY)
    believed += 1
    believed[many] *= 1 - _PER_LOG * np.log(n_links[many] / _FEW)
    return np.maximum(0.0, believed, out=believed).astype(np.float32)
