"""Labels, relations and properties as they are written in a query."""

from __future__ import annotations

from graphret.errors import InvalidInput

MAX_LENGTH = 16_383


def quote(name: str, what: str = "name") -> str:
    """Return a name as Cypher reads it back, whatever is in it.

    A backtick is doubled. A backslash is written as its own Unicode escape: Neo4j replaces such escapes before it looks
    at the text, so that ``\\u0060`` in a name would end it.

    Raises
    ------
    InvalidInput
        When it is empty, longer than `MAX_LENGTH`, holds a null character, or is no string.
    """
    if not isinstance(name, str) or not name:
        raise InvalidInput(f"{what}: a non-empty string is expected, not {name!r}")
    if len(name) > MAX_LENGTH:
        raise InvalidInput(f"{what}: {name[:40]!r}… has {len(name)} characters; Neo4j takes {MAX_LENGTH}")
    if "\0" in name:
        raise InvalidInput(f"{what}: {name!r} holds a null character, which Neo4j does not take")
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{what}: {name!r} holds half of a surrogate pair") from error
    return "`" + name.replace("`", "``").replace("\\", "\\u005C") + "`"


def quotable(names: list[str]) -> list[str]:
    """Return the names that Neo4j can hold, quoted; nothing in a database bears the others."""
    found = []
    for name in names:
        try:
            found.append(quote(name))
        except InvalidInput:
            continue
    return found
