"""Which columns hold the properties of a batch: the types that they get, and what no column can hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphret.errors import InvalidInput
from graphret.stores.ladybug.engine import Session
from graphret.stores.ladybug.names import NULLS, OVERFLOW, column_of, folded, quoted, require_name
from graphret.stores.ladybug.values import EMPTY, OPENING, fits, json_object, merged_type, type_of

_HINT = "; nested='json' keeps such values as JSON"


@dataclass(slots=True)
class Columns:
    """The columns of a table while a batch is planned.

    Parameters
    ----------
    pattern
        What matches all nodes or edges of the table, as ``x``; `None` for a table that is yet to be made.
    stored
        The columns that there are, with their types.
    nested
        ``refuse`` or ``json``.
    """

    pattern: str | None
    stored: Mapping[str, str]
    nested: str
    #: Whether some JSON of the batch has no lines.
    unlined: bool = False
    types: dict[str, str] = field(default_factory=dict)
    _folded: dict[str, str] = field(default_factory=dict)
    _settled: set[str] = field(default_factory=set)
    _large: set[str] = field(default_factory=set)
    #: The type of the values of the batch so far, by column.
    _placed: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.types = dict(self.stored)
        self._folded = {folded(column): column for column in self.stored}

    def place(self, session: Session, what: str, properties: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of the columns of one node or edge, and widen the columns to hold them.

        Raises
        ------
        InvalidInput
            Names the node or edge and the property that cannot be held.
        """
        row: dict[str, Any] = {}
        beside: dict[str, Any] = {}
        nulls: list[str] = []
        for name, value in properties.items():
            if not isinstance(name, str):
                raise InvalidInput(f"{what}: the name of a property must be a string, not {name!r}")
            if value is None:
                nulls.append(require_name(name, f"{what}, property {name[:80]!r}"))
                continue
            problem = self._problem(session, what, name, value)
            if problem is None:
                row[column_of(name)] = value
            elif self.nested == "json":
                beside[name] = value
            else:
                raise InvalidInput(f"{what}, property {name[:80]!r}: {problem}{_HINT}")
        if nulls:
            row[NULLS] = nulls
            self.types.setdefault(NULLS, "STRING[]")
        if beside:
            try:
                row[OVERFLOW] = json_object(beside)
                row[OVERFLOW].encode()
            except (TypeError, ValueError, RecursionError) as error:
                raise InvalidInput(f"{what}, properties {sorted(beside)}: cannot be kept as JSON: {error}") from error
            self.unlined |= not row[OVERFLOW].startswith(OPENING)
            self.types.setdefault(OVERFLOW, "STRING")
        return row

    def _problem(self, session: Session, what: str, name: str, value: Any) -> str | None:
        """Why no column can hold a value; if one can, it is there and of a fitting type afterwards."""
        kind = type_of(value)
        if kind is None:
            return f"no column of a Ladybug database can hold {_short(value)}"
        column = column_of(name)
        known = self.types.get(column)
        if known is None:
            if folded(column) in self._folded:
                return f"there is a property {self._folded[folded(column)]!r}, from which only the case differs"
            require_name(name, f"{what}, property {name[:80]!r}")
            self._folded[folded(column)] = column
            self.types[column] = kind
            self._note(column, kind, value)
            return None
        merged = merged_type(known, kind)
        if merged is None and column in self.stored and known == self.stored[column]:
            merged = self._retyped(session, column, kind)
        if merged is None:
            return f"{_short(value)} does not go with the column's type, {known}"
        if not fits(value, merged):
            return f"{_short(value)} is not exact as a floating-point number, the column's type"
        if merged != known:
            if merged.startswith("DOUBLE") and (column in self._large or not self._widens(session, column, merged)):
                return f"{_short(value)} does not go with the large integers of the column"
            self.types[column] = merged
        self._note(column, kind, value)
        return None

    def _note(self, column: str, kind: str, value: Any) -> None:
        self._placed[column] = merged_type(self._placed.get(column, kind), kind) or kind
        if self.types[column] in ("INT64", "INT64[]") and not fits(
            value, self.types[column].replace("INT64", "DOUBLE")
        ):
            self._large.add(column)

    def _widens(self, session: Session, column: str, kind: str) -> bool:
        """Whether all that is stored is exact as doubles, where integers become such."""
        if column not in self.stored or not kind.startswith("DOUBLE") or column in self._settled:
            return True
        if self.stored[column] == "INT64":
            value = f"x.{quoted(column)}"
            query = f"MATCH {self.pattern} WHERE {value} > $high OR {value} < $low RETURN 1 LIMIT 1"
            fine = not session.rows(query, {"high": 2**53, "low": -(2**53)})
        else:
            values = session.rows(
                f"MATCH {self.pattern} WHERE x.{quoted(column)} IS NOT NULL RETURN x.{quoted(column)}"
            )
            fine = all(fits(row[0], kind) for row in values)
        if fine:
            self._settled.add(column)
        return fine

    def _retyped(self, session: Session, column: str, kind: str) -> str | None:
        """The new type of a stored column that holds nothing, or for a column of lists nothing but empty ones.

        What the batch has put into it must go with the new type too.
        """
        merged = merged_type(self._placed.get(column, kind), kind)
        if merged is None:
            return None
        value = f"x.{quoted(column)}"
        held = f"{value} IS NOT NULL"
        if self.stored[column].endswith("[]") and kind.endswith("[]"):
            held += f" AND size({value}) > 0"
        return None if session.rows(f"MATCH {self.pattern} WHERE {held} RETURN 1 LIMIT 1") else merged

    def statements(self, table: str) -> Iterable[str]:
        """Return what gives the table its columns, for a table that there is."""
        for column, kind in self.final().items():
            if column not in self.stored:
                yield f"ALTER TABLE {quoted(table)} ADD {quoted(column)} {kind}"
            elif kind != self.stored[column]:
                yield from self._change(table, column, kind)

    def _change(self, table: str, column: str, kind: str) -> Iterable[str]:
        fresh = quoted(f"{OVERFLOW}.{OVERFLOW}.new")
        old = f"x.{quoted(column)}"
        yield f"ALTER TABLE {quoted(table)} ADD {fresh} {kind}"
        if self.stored[column].endswith("[]") and not (self.stored[column] == "INT64[]" and kind == "DOUBLE[]"):
            if kind.endswith("[]"):  # of lists none has an item
                yield f"MATCH {self.pattern} WHERE {old} IS NOT NULL SET x.{fresh} = CAST([] AS {kind})"
        elif self.stored[column] in ("INT64", "INT64[]") and kind.startswith("DOUBLE"):
            yield f"MATCH {self.pattern} SET x.{fresh} = CAST({old} AS {kind})"
        yield f"ALTER TABLE {quoted(table)} DROP {quoted(column)}"
        yield f"ALTER TABLE {quoted(table)} RENAME {fresh} TO {quoted(column)}"

    def final(self) -> dict[str, str]:
        """The type of each column; lists of which none has an item are lists of text."""
        return {column: "STRING[]" if kind == EMPTY else kind for column, kind in self.types.items()}


def require_nested(nested: str) -> str:
    """Return the option, and raise an `InvalidInput` if it is none."""
    if nested not in ("refuse", "json"):
        raise InvalidInput(f"nested: 'refuse' or 'json' is expected, not {nested!r}")
    return nested


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except RecursionError:
        return "what is nested so deeply"
    return text if len(text) <= 80 else text[:79] + "…"
