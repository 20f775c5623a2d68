"""The valid names that are closest to one that is not."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from difflib import SequenceMatcher


def nearest(name: str, valid: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """Return at most `limit` valid names like a name, the best first.

    Names that differ in case, spaces, underscores or accents only come before all
    others, then those of which one holds the other, then by the share of equal
    characters; ties break by name.
    """
    plain_name = plainly(name)
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(plain_name)
    scored = []
    for candidate in set(valid):
        plain = plainly(candidate)
        matcher.set_seq1(plain)
        contained = min(len(plain), len(plain_name)) >= 3 and (
            plain in plain_name or plain_name in plain
        )
        ratio = matcher.ratio() if matcher.real_quick_ratio() >= 0.5 else 0.0
        if plain == plain_name:
            scored.append((-3.0, candidate))
        elif contained or ratio >= 0.55:
            scored.append((-ratio - 0.5 * contained, candidate))
    return tuple(candidate for _, candidate in sorted(scored)[:limit])


def plainly(name: str) -> str:
    """Return the letters and digits of a name, without case and accents."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKD", name.casefold())))
