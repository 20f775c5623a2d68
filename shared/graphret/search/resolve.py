"""Which encoder is meant: the default, one by name, or the one that an index was saved with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphret.errors import GraphretError, InvalidInput, MissingDependency
from graphret.search.encoder import Encoder, Progress, as_encoder, default_encoder


def resolve_encoder(encoder: Any) -> Encoder | None:
    """Return the default encoder for ``"default"``, none for `None`, and otherwise what `as_encoder` makes of it."""
    if isinstance(encoder, str) and encoder == "default":
        return default_encoder()
    return as_encoder(encoder)


def named_encoder(name: str | None) -> Encoder | None:
    """Return the encoder that an index was saved with, loaded when it is first used; `None` for none.

    What has no name that leads back to it, such as a function, fails when it is first used, saying so: an index can be
    opened, inspected and searched by its vectors' queries without its encoder.
    """
    return None if name is None else SavedEncoder(name)


class SavedEncoder:
    """An encoder known by name, resolved when it is first used."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._inner: Encoder | None = None

    def _resolved(self) -> Encoder:
        if self._inner is None:
            message = f"encoder: the index was built with {self.name!r}; open it with that encoder"
            try:
                default = default_encoder()
                inner = default if default.name == self.name else as_encoder(self.name)
                if inner is not None:
                    _ = inner.dimension  # loads the model, so that one that cannot be had is told here
            except MissingDependency:
                raise
            except GraphretError as error:
                raise InvalidInput(f"{message} ({error})") from error
            if inner is None or inner.name != self.name:
                raise InvalidInput(message)
            self._inner = inner
        return self._inner

    @property
    def dimension(self) -> int:
        """The width of the vectors."""
        return self._resolved().dimension

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed queries, ``(n, d)``."""
        return self._resolved().encode_queries(texts)

    def encode_documents(self, texts: Sequence[str], *, progress: Progress | None = None) -> NDArray[np.float32]:
        """Embed documents, ``(n, d)``."""
        return self._resolved().encode_documents(texts, progress=progress)
