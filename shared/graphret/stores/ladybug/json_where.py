"""Conditions on what lies in JSON of lines, as Ladybug's Cypher, which knows no JSON but regular expressions (RE2).

`values.json_object` writes each property to a line, and a line feed between the lines alone. So what begins with a line
feed and the name of a property is its line; from there on the patterns read token by token, which JSON allows
without looking back: what is quoted is never taken for structure, nor a nested map's key for another's.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from graphret.stores.ladybug.scalars import EXACT_DIGITS, SIGNS, bound_of_doubles
from graphret.stores.ladybug.values import DEEPEST
from graphret.strings import to_json
from graphret.where import Where

# Of a pattern the database turns every two backslashes into one (0.22): a backslash is written as \x5c.
_IN_STRING = r'(?:[^"\x5c]|\x5c.)*'
_CHARACTER = r'(?:[^"\x5c]|\x5c[^u]|\x5cu....)'
_STRING = f'"{_IN_STRING}"'
_NUMBER = r"-?[0-9][-+.0-9e]*"
_END = r"[\n,}]"

#: Of an operand, and of a path. Of a pattern of some 300,000 characters the database says that it matches nothing.
_LONGEST_PATTERN = 10_000


def _any_value(depth: int) -> str:
    """What matches a JSON value of so many levels; laxer than JSON, which it is."""
    pattern = f"(?:{_STRING}|[-+.0-9a-z]+)"
    for _ in range(depth):
        pattern = rf"(?:{_STRING}|[-+.0-9a-z]+|[\[{{](?:{pattern}[,:]?)*[\]}}])"
    return pattern


_ITEM = _any_value(DEEPEST)


class JsonValue:
    """What lies at a path in JSON of lines, and conditions on it.

    Parameters
    ----------
    json
        The expression of the JSON, which is never null.
    path
        The name of a property, and keys of the maps nested in it.
    parameter
        Makes a parameter of a value. Nothing of a condition gets into a query but as one.
    """

    def __init__(self, json: str, path: tuple[str, ...], parameter: Callable[[Any], str]) -> None:
        self.json = json
        self.path = path
        self.parameter = parameter
        members = rf"\{{(?:{_STRING}:{_ITEM},)*"
        self._before = r"\n" + members.join(f"{_quoted(to_json(key))}:" for key in path)
        self._line = f"\n{to_json(path[0])}:"

    @property
    def readable(self) -> bool:
        """Whether the path is not too long for the database."""
        return len(self._before) <= _LONGEST_PATTERN

    @property
    def there(self) -> str:
        """Whether there is a value, be it null."""
        if len(self.path) == 1:
            return f"contains({self.json}, {self.parameter(self._line)})"
        return self._begins("")

    def compared(self, where: Where) -> str | None:
        """The leaf where there is a value; `None` if the database cannot decide it."""
        op, operand = where.operator, where.value
        if op == "$exists":  # nothing but null begins with an n, and null is no value
            return self._begins("[^n]" if operand else "n")
        if op == "$eq" and operand is None:
            return self._begins("n")
        if op in ("$eq", "$in"):
            return self._one_of([operand] if op == "$eq" else operand)
        if op in ("$ne", "$nin"):
            equal = self._one_of([operand] if op == "$ne" else operand)
            return equal if equal is None else f"NOT {equal}"
        if op == "$contains":
            return self._having(operand)
        if operand is None or isinstance(operand, (bool, tuple)):
            return "false"
        return self._text_range(op, operand) if isinstance(operand, str) else self._number_range(op, operand)

    def _begins(self, pattern: str) -> str:
        return f"regexp_matches({self.json}, {self.parameter(self._before + pattern)})"

    def _matches(self, patterns: list[str], end: str = "") -> str | None:
        """Whether the value begins as one of some patterns says."""
        if sum(map(len, patterns)) > _LONGEST_PATTERN:
            return None
        return self._begins(f"(?:{'|'.join(patterns)}){end}") if patterns else "false"

    def _extracted(self, pattern: str, json: str = "") -> str:
        """What the group in a pattern matches, the empty string where the value begins otherwise."""
        return f"regexp_extract({json or self.json}, {self.parameter(self._before + pattern)}, 1)"

    def _one_of(self, operands: Sequence[Any]) -> str | None:
        if len(self.path) == 1 and len(operands) == 1 and not isinstance(operands[0], tuple):
            lines = [f"{self._line}{text}\n" for text in _scalar_texts(operands[0])]
            return f"({' OR '.join(f'contains({self.json}, {self.parameter(line)})' for line in lines) or 'false'})"
        return self._matches([p for one in operands if one is not None and (p := _pattern(one)) is not None], _END)

    def _having(self, operand: Any) -> str | None:
        """Whether a list holds the operand, or a string has it in it."""
        found = [f'"{_CHARACTER}*{_quoted(to_json(operand)[1:-1])}'] if isinstance(operand, str) else []
        if (item := _pattern(operand)) is not None:
            found.append(rf"\[(?:{_ITEM},)*{item}[,\]]")
        return self._matches(found)

    def _text_range(self, op: str, operand: str) -> str | None:
        """The comparison of a string, which without its escapes has the order of its bytes, as Python's have.

        One control character is read for all of them: they precede whatever else the operand may hold.
        """
        if any(character < " " for character in operand):
            return None
        is_text, text = self._begins('"'), self._extracted(f'"({_IN_STRING})"')
        for escape, read in (("\\\\", "\x01"), ('\\"', '"'), ("\\", "\x02"), ("\x01", "\\")):
            text = f"replace({text}, {self.parameter(escape)}, {self.parameter(read)})"
        return f"({is_text} AND {text} {SIGNS[op]} {self.parameter(operand)})"

    def _number_range(self, op: str, operand: int | float) -> str | None:
        below = op in ("$lt", "$lte")
        if isinstance(operand, float) and not math.isfinite(operand):
            return self._begins(_NUMBER) if (operand > 0) == below and operand == operand else "false"
        if abs(operand) >= 10**EXACT_DIGITS:  # an integer that is near to it need not be one as a double
            return None
        sign, bound = bound_of_doubles(op, operand)
        # What is no number is read as the infinity that does not satisfy the comparison.
        nothing = "1e999" if below else "-1e999"
        nested = "".join(f"{{{to_json(key)}:" for key in self.path[1:]) + nothing + "}" * (len(self.path) - 1)
        line = f"{self._line}{nested}\n"
        json = f"concat({self.json}, {self.parameter(line)})"
        number = self._extracted(f"({_NUMBER}){_END}", json)
        return f"(CAST({number} AS DOUBLE) {sign} {self.parameter(bound)})"


def _scalar_texts(value: Any) -> list[str]:
    """The JSON of the scalars that are equal to a value; numbers are so whatever their type."""
    if value is None or isinstance(value, (bool, str)):
        return [to_json(value)]
    if value == 0:
        return ["0", "0.0", "-0.0"]
    found = set()
    with contextlib.suppress(ValueError, OverflowError):  # an integer of very many digits, an infinity, what is none
        if int(value) == value:
            found.add(to_json(int(value)))
    with contextlib.suppress(ValueError, OverflowError):
        if float(value) == value:
            found.add(to_json(float(value)))
    return sorted(found)


def _pattern(value: Any) -> str | None:
    """What matches the JSON of what is equal to a value; `None` if nothing is."""
    if not isinstance(value, tuple):
        texts = _scalar_texts(value)
        return f"(?:{'|'.join(map(_quoted, texts))})" if texts else None
    items = [*map(_pattern, value)]
    return None if None in items else rf"\[{','.join(map(str, items))}\]"


def _quoted(text: str) -> str:
    return re.escape(text).replace("\\\\", r"\x5c")
