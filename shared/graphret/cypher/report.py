"""What the guard says of a query."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

ERROR = "error"
WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """An error or a warning about a query.

    Parameters
    ----------
    severity
        ``error`` or ``warning``; a warning stops nothing.
    kind
        What it is, in one word of the list in `graphret.cypher.codes`: ``syntax``,
        ``undefined-variable``, ``unknown-label``, ``wrong-direction``, ``not-allowed``
        and so on.
    message
        What is wrong, for a person or a model to act on.
    start, end
        Where in the query, as offsets of characters.
    line, column
        The same place for people, from 1.
    suggestions
        The closest valid names, or other text to put in its place, the best first.
    """

    severity: str
    kind: str
    message: str
    start: int = 0
    end: int = 0
    line: int = 1
    column: int = 1
    suggestions: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The finding as JSON values."""
        return {name: getattr(self, name) for name in self.__slots__} | {
            "suggestions": list(self.suggestions)
        }

    def __str__(self) -> str:
        nearest = (
            f" (nearest: {', '.join(self.suggestions)})" if self.suggestions else ""
        )
        return f"{self.line}:{self.column} {self.severity}: {self.message}{nearest}"


@dataclass(slots=True)
class CypherReport:
    """The findings of a query in text order, and its tree if it parses."""

    query: str
    dialect: str
    findings: list[Finding] = field(default_factory=list)
    tree: Any = None

    @property
    def errors(self) -> list[Finding]:
        """The findings that stop the query."""
        return [f for f in self.findings if f.severity == ERROR]

    @property
    def warnings(self) -> list[Finding]:
        """The findings that stop nothing."""
        return [f for f in self.findings if f.severity == WARNING]

    @property
    def ok(self) -> bool:
        """Whether the query may run."""
        return not self.errors

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values, as ``graphret cypher check --json`` prints it."""
        return {
            "query": self.query,
            "dialect": self.dialect,
            "ok": self.ok,
            "errors": [f.to_dict() for f in self.errors],
            "warnings": [f.to_dict() for f in self.warnings],
        }

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings)) or "nothing found"


def place_of(query: str, offset: int) -> tuple[int, int]:
    """Line and column of an offset, both from 1."""
    before = query[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
