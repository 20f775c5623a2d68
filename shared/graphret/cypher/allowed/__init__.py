"""What may run: lists of allowed clauses, functions and procedures, never of forbidden ones."""

from __future__ import annotations

from collections.abc import Collection

from graphret.cypher.allowed.lists import ALLOWED
from graphret.cypher.allowed.reader import Refused
from graphret.cypher.allowed.scan import Unreadable, scan
from graphret.cypher.allowed.tree import refused_nodes
from graphret.cypher.allowed.words import Words
from graphret.cypher.kinds import NOT_ALLOWED
from graphret.cypher.parsing import Parsed, place_of
from graphret.cypher.report import ERROR, Finding

__all__ = ["disallowed"]


def disallowed(parsed: Parsed, *, functions: Collection[str] = (), procedures: Collection[str] = ()) -> list[Finding]:
    """Return what in a query is not among the clauses, functions and procedures that may run on its dialect.

    The text is read anew, by rules stricter than any server's, and the tree is read besides, where there is one: a
    query runs only if both find nothing.

    Parameters
    ----------
    parsed
        The query. It need not parse.
    functions, procedures
        Names that may run as well, such as those of a plug-in; it is for the caller to know that they only read.
    """
    allowed = ALLOWED[parsed.dialect]
    try:
        refused = Words(scan(parsed.query), parsed.dialect, allowed, functions, procedures).read()
    except Unreadable as problem:
        refused = [Refused(problem.reason, problem.start, problem.end)]
    if parsed.tree is not None:
        for found in refused_nodes(parsed.tree, parsed.dialect, allowed, functions, procedures):
            if not any(found.start <= known.start < found.end for known in refused):
                refused.append(found)
    return [_finding(parsed.query, r) for r in sorted(refused, key=lambda r: r.start)]


def _finding(query: str, refused: Refused) -> Finding:
    return Finding(ERROR, NOT_ALLOWED, refused.reason, refused.start, refused.end, *place_of(query, refused.start))
