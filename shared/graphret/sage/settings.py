"""How similarity edges are chosen, and the thresholds that come of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from graphret.errors import InvalidInput
from graphret.sage.signals import PAIR_KINDS, PAPER_SIGNALS, SIGNALS


@dataclass(frozen=True)
class SimilaritySettings:
    """How the similarity half of a SAGE graph is built.

    Parameters
    ----------
    percentile
        An edge needs a signal at or above this percentile of the signal's distribution over the candidates of its kind
        (SAGE, section 2.1 B and table 5: 95).
    logic
        ``"or"``: one signal suffices; ``"and"``: all that the corpus has are needed (SAGE, section 3.3: or).
    neighbors
        Nearest neighbours of a node by each signal that become candidates, and most edges a node proposes by shared
        entities. The paper bounds candidates without saying how (table 5 counts 3.1 million for 22,700 nodes); 20 is
        graphret's.
    entity_cap
        An entity that more nodes bear says nothing (graphret's).
    hnsw_above
        Number of texts on a side above which neighbours are looked up by HNSW, M = 64 (SAGE, appendix E), which is
        approximate, instead of exactly.
    block_mb
        Memory for one block of similarities, in MiB; no result depends on it.
    within_source
        Whether chunks of one document, or segments of one table, may be candidates of each other (as in the paper).
    signals
        Names of the signals to use for each kind of pair (SAGE, section 2.1 B and appendix B).

    Raises
    ------
    InvalidInput
        If a value is out of range, or there is no signal of a name.
    """

    percentile: float = 95.0
    logic: Literal["or", "and"] = "or"
    neighbors: int = 20
    entity_cap: int = 50
    hnsw_above: int = 200_000
    block_mb: int = 64
    within_source: bool = True
    signals: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: dict(PAPER_SIGNALS), hash=False)

    def __post_init__(self) -> None:
        if not 0 <= self.percentile <= 100:
            raise InvalidInput(f"percentile: a number from 0 to 100 is expected, not {self.percentile!r}")
        if self.logic not in ("or", "and"):
            raise InvalidInput(f"logic: 'or' or 'and' is expected, not {self.logic!r}")
        for name, least in (("neighbors", 1), ("entity_cap", 0), ("hnsw_above", 0), ("block_mb", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InvalidInput(f"{name}: an integer of at least {least} is expected, not {value!r}")
        known = {(signal.kind, signal.name) for signal in SIGNALS}
        for kind, names in self.signals.items():
            if kind not in PAIR_KINDS:
                raise InvalidInput(f"signals: there is no kind of pair {kind!r}, but {', '.join(PAIR_KINDS)}")
            for name in names:
                if (kind, name) not in known:
                    raise InvalidInput(f"signals: {kind!r} pairs have no signal {name!r}")

    def to_dict(self) -> dict[str, Any]:
        """The settings as JSON values."""
        return asdict(self) | {"signals": {kind: list(names) for kind, names in self.signals.items()}}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> SimilaritySettings:
        """Read what `to_dict` wrote."""
        return cls(**{**values, "signals": {kind: tuple(names) for kind, names in values["signals"].items()}})


class Thresholds(Mapping[tuple[str, str], float]):
    """The least value of each signal that makes an edge, by ``(kind of pair, signal)``."""

    def __init__(self, values: Mapping[tuple[str, str], float] | None = None) -> None:
        self._values = dict(sorted((values or {}).items()))

    def __getitem__(self, key: tuple[str, str]) -> float:
        return self._values[key]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Thresholds({self._values!r})"

    def to_dict(self) -> dict[str, dict[str, float]]:
        """The thresholds as JSON values: ``{kind: {signal: value}}``."""
        out: dict[str, dict[str, float]] = {}
        for (kind, name), value in self._values.items():
            out.setdefault(kind, {})[name] = value
        return out

    @classmethod
    def from_dict(cls, values: Mapping[str, Mapping[str, float]]) -> Thresholds:
        """Read what `to_dict` wrote."""
        return cls({(kind, name): float(value) for kind, named in values.items() for name, value in named.items()})


def percentile_of(values: Any, percentile: float) -> float | None:
    """Return a percentile of the values that are known, interpolated linearly as numpy does; `None` if none is."""
    known = np.asarray(values, dtype=np.float64)
    known = known[~np.isnan(known)]
    return float(np.percentile(known, percentile)) if len(known) else None
