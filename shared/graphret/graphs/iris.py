"""Short names for IRIs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote

_SPLIT = re.compile(r"[#/:]")
_DULL = {"", "http", "https", "urn", "ns", "www", "core", "terms", "elements", "1.1", "0.1", "ontology", "schema"}


def local_name(iri: str) -> str:
    """Return what stands behind the last ``#``, ``/`` or ``:`` of an IRI; the IRI where nothing does."""
    parts = [part for part in _SPLIT.split(iri) if part]
    return unquote(parts[-1]) if parts else iri


def short_names(iris: Iterable[str], reserved: Iterable[str] = ()) -> dict[str, str]:
    """Return a short name for each IRI, all different, whatever their order.

    It is the local name where no other IRI has it and it is not `reserved`; otherwise the part of the IRI before it
    comes in front, and where even that is not unique a number behind, in the order of the IRIs.
    """
    distinct = sorted(set(iris))
    sharing: dict[str, list[str]] = {}
    for iri in distinct:
        sharing.setdefault(local_name(iri), []).append(iri)
    kept = set(reserved)
    names = {same[0]: name for name, same in sharing.items() if len(same) == 1 and name not in kept}
    taken = kept | set(sharing)
    for name, same in sorted(sharing.items()):
        if same[0] in names:
            continue
        for iri in same:
            longer = wanted = f"{_space(iri)}_{name}"
            number = 2
            while longer in taken:
                longer, number = f"{wanted}_{number}", number + 1
            taken.add(longer)
            names[iri] = longer
    return names


def _space(iri: str) -> str:
    """Return the part of an IRI that says most about its vocabulary: ``foaf``, ``rdf-schema``, ``schema.org``."""
    parts = [part for part in _SPLIT.split(iri) if part][:-1]
    telling = [part for part in parts if part not in _DULL and not part.isdigit()]
    return telling[-1] if telling else "iri"
