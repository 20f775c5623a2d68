"""Which encoder is meant: the default, one by name, or the one that an index was saved with."""

from __future__ import annotations

from typing import Any

from graphret.errors import InvalidInput, ModelError
from graphret.search.encoder import DEFAULT_MODEL, Encoder, SentenceTransformerEncoder, as_encoder, default_encoder


def resolve_encoder(encoder: Any) -> Encoder | None:
    """Return the default encoder for ``"default"``, none for `None`, and otherwise what `as_encoder` makes of it."""
    return default_encoder() if isinstance(encoder, str) and encoder == "default" else as_encoder(encoder)


def named_encoder(name: str | None) -> Encoder | None:
    """Return the encoder that an index was saved with, loaded when it is first used; `None` for none."""
    if name is None:
        return None
    return default_encoder() if name == DEFAULT_MODEL else SavedEncoder(name, name=name)


class SavedEncoder(SentenceTransformerEncoder):
    """The encoder of an opened index, of which only the name is known.

    A name that leads back to no model, such as a function's, fails on first use, saying so: without its encoder an
    index can still be opened and inspected.
    """

    def _load(self) -> Any:
        try:
            return super()._load()
        except ModelError as error:
            raise InvalidInput(
                f"encoder: the index was built with {self.name!r}; open it with that ({error})"
            ) from error
