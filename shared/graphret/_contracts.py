"""Whether an object is what a contract asks for."""

from __future__ import annotations

from typing import Any

from typing_extensions import get_protocol_members


def fulfils(value: Any, contract: type) -> bool:
    """Whether an object has all members of a protocol.

    ``isinstance`` says so too, but from Python 3.12 on not of a wrapper that hands them on by ``__getattr__``.
    """
    return all(hasattr(value, name) for name in get_protocol_members(contract))
