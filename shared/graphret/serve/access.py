"""API keys, and the condition of what each key may read."""

from __future__ import annotations

import hashlib
from pathlib import Path

import yaml

from graphret.errors import InvalidInput
from graphret.where import Where

#: This machine's own names, to which a service without keys may listen.
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def read_keys(key: str | None, file: Path | None) -> dict[str, Where | None]:
    """Return what each key may read: conditions by hashes of keys, `None` for all.

    `key` is for the whole graph. `file` is YAML with tenants by name, each
    ``{sha256: the hash of a key, in hex, where: the condition}``. An `InvalidInput`
    names what is malformed.
    """
    if key is not None and not key.strip():
        raise InvalidInput("GRAPHRET_API_KEY: expected a key, got an empty string")
    keys: dict[str, Where | None] = {} if key is None else {hashed(key): None}
    try:
        tenants = (
            {} if file is None else yaml.safe_load(file.read_text(encoding="utf-8"))
        )
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidInput(
            f"{file}: cannot be read: {type(error).__name__}"
        ) from None  # it may quote a secret
    if not isinstance(tenants, dict):
        raise InvalidInput(
            f"{file}: expected tenants by name, got {type(tenants).__name__}"
        )
    for name, entry in tenants.items():
        try:
            hash_, where = str(entry["sha256"]).lower(), Where.parse(entry["where"])
        except (KeyError, TypeError, InvalidInput) as error:
            raise InvalidInput(
                f"{file}: {name}: expected sha256 and where ({error})"
            ) from error
        if (
            where is None or len(hash_) != 64 or hash_ in keys
        ):  # an empty condition would show everything by mistake
            raise InvalidInput(
                f"{file}: {name}: expected a sha256 in hex that no other tenant has,"
                " and a condition"
            )
        keys[hash_] = where
    return keys


def hashed(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
