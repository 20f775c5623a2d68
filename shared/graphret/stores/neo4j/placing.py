"""Which property of a node is its name, and which its text, where a database of others has them in several places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from graphret.errors import InvalidInput
from graphret.stores.neo4j.layout import NULLS, Layout
from graphret.stores.neo4j.values import field_of, json_value


class Said(NamedTuple):
    """What a node of others is to say, which is put where the database has it.

    Parameters
    ----------
    id, name, text
        Its own.
    doubtful
        Its properties that are called as a field is: in the database there may be one that is no string or number.
        That of the id is among them where the node goes by its element id.
    """

    id: str
    name: str
    text: str
    doubtful: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Held:
    """What the database holds of a node.

    Parameters
    ----------
    odd
        The values that are read as something else, or as properties though a field has their name.
    name, text
        The property that is read as the name and the text, and what it holds; `None` where no property is, and no
        value where a string is in the first property that it may be in.
    """

    odd: Mapping[str, Any] = field(default_factory=dict)
    name: tuple[str, Any] | None = None
    text: tuple[str, Any] | None = None


#: Of a node that is not there.
NOTHING = Held()


def conflicts(layout: Layout, values: Mapping[str, Any], said: Said) -> bool:
    """Whether properties say something else than a name or a text does that may be one of them."""
    fields = (layout.name, said.name), (layout.text, said.text)
    return any(value and names[0] in values and field_of(values, names) != value for names, value in fields)


def placed(layout: Layout, values: dict[str, Any], said: Said, held: Held) -> dict[str, Any]:
    """Return properties with the name and the text in the properties that the database has them in, else in the first.

    Raises
    ------
    InvalidInput
        When there is no place for one of them, or for a property that is called as they are.
    """
    what = f"node {said.id!r}"
    found = values | {name: v for name, v in held.odd.items() if name in values and says(values[name], v)}
    taken = {"name": said.name, "text": said.text} if layout.lossless else {}
    for name, value in said.doubtful.items():
        if name in held.odd and says(value, held.odd[name]) and not taken.get(name):
            found.pop(layout.place(name), None)
            found[name] = held.odd[name]
        elif not layout.lossless:
            raise (
                lost(what, name, "id")
                if name == layout.id
                else InvalidInput(f"{what}: property {name!r} cannot be stored under this name here")
            )
    fields = ("name", layout.name, said.name, held.name), ("text", layout.text, said.text, held.text)
    for _, candidates, value, source in fields:
        if value:
            found = _with(found, candidates, value, source, layout.id)
    for named, candidates, value, _ in fields:  # which may be one property
        if value and field_of(found, candidates) != value:
            raise lost(what, candidates[0], named)
    return found


def _with(
    values: dict[str, Any],
    candidates: tuple[str, ...],
    value: str,
    source: tuple[str, Any] | None,
    node_id: str | None,
) -> dict[str, Any]:
    """Return properties of which one says a name or a text, or as they are where none can."""
    nulls = values.get(NULLS) or ()
    if source is not None and source[0] not in (node_id, *nulls):
        at, held = source
        given = values.get(at)
        if given is None or field_of({at: given}, (at,)) == value or says(given, held):
            kept = next((one for one in (given, held) if field_of({at: one}, (at,)) == value), value)
            trial = values | {at: kept}
            if field_of(trial, candidates) == value:
                return trial
    first = candidates[0]
    return values | {first: value} if values.get(first) is None and first not in nulls else values


def says(given: Any, held: Any) -> bool:
    """Whether a value is what is read of one that the database holds."""
    given, held = json_value(given), json_value(held)
    return type(given) is type(held) and bool(given == held)


def lost(what: str, name: str, field: str) -> InvalidInput:
    """Return the error that a property is where a field would be, and says something else."""
    return InvalidInput(
        f"{what}: property {name!r} is where nodes have their {field} here, and says something else; one would be lost"
    )
