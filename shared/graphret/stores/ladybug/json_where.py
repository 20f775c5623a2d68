"""Conditions on what lies in JSON, as Ladybug's Cypher, which knows no JSON but regular expressions (RE2).

`values.json_object` writes each property to a line, and a line feed between the lines alone. So what begins with a line
feed and the name of a property is its line; from there on, and from the start of JSON without lines, the patterns read
token by token, which JSON allows without looking back: what is quoted is never taken for structure, nor a nested map's
key for another's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from graphret.columns import to_json
from graphret.stores.ladybug.json_marks import Marks
from graphret.stores.ladybug.scalars import EXACT_DIGITS, SIGNS, bound_of_doubles, bound_of_whole, scalar_texts
from graphret.stores.ladybug.values import DEEPEST, KEPT
from graphret.where import Where

# Of a pattern the database turns every two backslashes into one (0.22): a backslash is written as \x5c.
_IN_STRING = r'(?:[^"\x5c]|\x5c.)*'
_CHARACTER = r'(?:[^"\x5c]|\x5c[^u]|\x5cu....)'
_STRING = f'"{_IN_STRING}"'
_NUMBER = r"-?[0-9][-+.0-9e]*"
_FRACTION = r"-?[0-9]+[.e][-+.0-9e]*"
_END = r"[\n,}]"

#: Bytes of a pattern. Of one of some 600,000 the database says that it matches nothing.
LONGEST_PATTERN = 100_000

#: How a string that is read from JSON gets the order of its characters: what stands for what, one after the other.
#: Control characters, which JSON only has behind a backslash, precede all others, and each other by their numbers.
_READ = (("\\\\", "\x02"), ('\\"', '"'))
_CONTROLS = (*((to_json(chr(c))[1:-1], f"\x01{c:02x}") for c in (8, 9, 10, 12, 13)), ("\\u00", "\x01"))


def _any_value(depth: int) -> str:
    """What matches a JSON value of so many levels; laxer than JSON, which it is."""
    pattern = f"(?:{_STRING}|[-+.0-9a-z]+)"
    for _ in range(depth):
        pattern = rf"(?:{_STRING}|[-+.0-9a-z]+|[\[{{](?:{pattern}[,:]?)*[\]}}])"
    return pattern


_ITEMS = {True: _any_value(DEEPEST), False: _any_value(KEPT)}


class JsonValue:
    """What lies at a path in JSON, and conditions on it.

    Parameters
    ----------
    json
        The expression of the JSON, which is never null.
    path
        The name of a property, and keys of the maps nested in it.
    parameter
        Makes a parameter of a value. Nothing of a condition gets into a query but as one.
    lined
        Whether all that there is has lines.
    """

    def __init__(self, json: str, path: tuple[str, ...], parameter: Callable[[Any], str], lined: bool) -> None:
        self.path = path
        self.parameter = parameter
        self.lined = lined
        self._item = _ITEMS[lined]
        self._marks = Marks(_STRING, parameter)
        self._line = f"\n{to_json(path[0])}:"
        self._whole = json
        self.json, keys = self._marks.shortened(json, path, LONGEST_PATTERN // 10)
        members = rf"\{{(?:{_STRING}:{self._item},)*"
        self._before = (r"\n" if lined else rf"(?:\n|^{members})") + f"{_quoted(keys[0])}:"
        for key in keys[1:]:
            step = f"{members}{_quoted(key)}:"
            if _size(self._before + step) > LONGEST_PATTERN // 2:
                self.json, self._before = self._extracted("((?s:.*))"), "^"
            self._before += step

    @property
    def there(self) -> str:
        """Whether there is a value, be it null."""
        if len(self.path) == 1 and self.lined:
            return f"contains({self._whole}, {self.parameter(self._line)})"
        return self._begins("")

    def compared(self, where: Where) -> str:
        """The leaf where there is a value."""
        op, operand = where.operator, where.value
        if op == "$exists":  # nothing but null begins with an n, and null is no value
            return self._begins("[^n]" if operand else "n")
        if op == "$eq" and operand is None:
            return self._begins("n")
        if op in ("$eq", "$in"):
            return self._one_of([operand] if op == "$eq" else operand)
        if op in ("$ne", "$nin"):
            return f"NOT {self._one_of([operand] if op == '$ne' else operand)}"
        if op == "$contains":
            return self._having(operand)
        if operand is None or isinstance(operand, (bool, tuple)):
            return "false"
        return self._text_range(op, operand) if isinstance(operand, str) else self._number_range(op, operand)

    def _begins(self, pattern: str) -> str:
        return f"regexp_matches({self.json}, {self.parameter(self._before + pattern)})"

    def _extracted(self, pattern: str) -> str:
        """What the group in a pattern matches, the empty string where the value begins otherwise.

        After UNWIND `regexp_extract` repeats for what does not match what it gave before (0.22).
        """
        return f"list_to_string('', regexp_extract_all({self.json}, {self.parameter(self._before + pattern)}, 1))"

    def _one_of(self, operands: Sequence[Any]) -> str:
        if len(self.path) == 1 and self.lined and len(operands) == 1 and not isinstance(operands[0], tuple):
            lines = [f"{self._line}{text}\n" for text in scalar_texts(operands[0])]
            return _any_of(f"contains({self._whole}, {self.parameter(line)})" for line in lines)
        short: list[str] = []
        long: list[Any] = []
        for operand in operands:
            if operand is not None and (pattern := _pattern(operand)) is not None:
                if _size(pattern) > LONGEST_PATTERN:
                    long.append(operand)
                else:
                    short.append(pattern)
        parts = [self._begins(f"(?:{'|'.join(found)}){_END}") for found in _grouped(short)]
        if long:
            parts.append(self._marks.equal(self._extracted(f"({self._item}){_END}"), long))
        return _any_of(parts)

    def _having(self, operand: Any) -> str:
        """Whether a list holds the operand, or a string has it in it."""
        found = [f'"{_CHARACTER}*{_quoted(to_json(operand)[1:-1])}'] if isinstance(operand, str) else []
        if (item := _pattern(operand)) is not None:
            found.append(rf"\[(?:{self._item},)*{item}[,\]]")
        if not any(_size(pattern) > LONGEST_PATTERN for pattern in found):
            return self._begins(f"(?:{'|'.join(found)})") if found else "false"
        text = self._extracted(rf'("{_IN_STRING}"|\[(?:{self._item},?)*\]){_END}')
        parts = [] if item is None else [self._marks.having(text, operand)]
        if isinstance(operand, str):
            parts.append(self._marks.within(text, to_json(operand)[1:-1], _CHARACTER))
        return _any_of(parts)

    def _text_range(self, op: str, operand: str) -> str:
        """The comparison of a string, which without its escapes has the order of its bytes, as Python's have.

        Where the operand has no control character, it does not matter which one another string has at its place.
        """
        controlled = any(character < " " for character in operand)
        is_text, text = self._begins('"'), self._extracted(f'"({_IN_STRING})"')
        for escape, read in (*_READ, *(_CONTROLS if controlled else (("\\", "\x01"),)), ("\x02", "\\")):
            text = f"replace({text}, {self.parameter(escape)}, {self.parameter(read)})"
        bound = "".join(f"\x01{ord(c):02x}" if c < " " else c for c in operand)
        return f"({is_text} AND {text} {SIGNS[op]} {self.parameter(bound)})"

    def _number_range(self, op: str, operand: int | float) -> str:
        below = op in ("$lt", "$lte")
        if isinstance(operand, float) and not math.isfinite(operand):
            return self._begins(_NUMBER) if (operand > 0) == below and operand == operand else "false"
        if abs(operand) < 10**EXACT_DIGITS:
            return self._double_range(op, operand, _NUMBER)
        return f"({self._double_range(op, operand, _FRACTION)} OR {self._whole_range(op, operand)})"

    def _double_range(self, op: str, operand: int | float, numbers: str) -> str:
        """The comparison of a number that is read as a double, true of none that is another."""
        sign, bound = bound_of_doubles(op, operand)
        # What is no such number is read as the infinity that does not satisfy the comparison.
        nothing = "1e999" if op in ("$lt", "$lte") else "-1e999"
        number = f"regexp_replace({self._extracted(f'({numbers}){_END}')}, '^$', {self.parameter(nothing)})"
        return f"(CAST({number} AS DOUBLE) {sign} {self.parameter(bound)})"

    def _whole_range(self, op: str, operand: int | float) -> str:
        """The comparison of a whole number, by sign, number of digits and digits, with one of many digits."""
        least, bound = bound_of_whole(op, operand)
        try:
            digits = str(abs(bound))
        except ValueError:  # more digits than Python writes or reads
            return self._begins(f"-?[0-9]+{_END}") if least == (bound < 0) else "false"
        sign, other = ("-", "") if bound < 0 else ("", "-")
        found = self._extracted(f"{sign}([0-9]+){_END}")
        size = f"lpad(CAST(size({found}) AS STRING), 9, '0')"
        greater = least == (bound > 0)
        compared = f"concat({size}, {found}) {'>=' if greater else '<='} {self.parameter(f'{len(digits):09}{digits}')}"
        if greater:
            return f"({compared})"
        is_whole, is_other = self._begins(f"{sign}[0-9]+{_END}"), self._begins(f"{other}[0-9]+{_END}")
        return f"({is_other} OR ({is_whole} AND {compared}))"


def _any_of(parts: Iterator[str] | Sequence[str]) -> str:
    return f"({' OR '.join(parts) or 'false'})"


def _size(pattern: str) -> int:
    return len(pattern.encode())


def _grouped(patterns: Sequence[str]) -> Iterator[list[str]]:
    """Patterns, as many together as the database takes."""
    group: list[str] = []
    size = 0
    for pattern in patterns:
        if group and size + _size(pattern) > LONGEST_PATTERN:
            yield group
            group, size = [], 0
        group.append(pattern)
        size += _size(pattern)
    if group:
        yield group


def _pattern(value: Any) -> str | None:
    """What matches the JSON of what is equal to a value; `None` if nothing is."""
    if not isinstance(value, tuple):
        texts = scalar_texts(value)
        return f"(?:{'|'.join(map(_quoted, texts))})" if texts else None
    items = [*map(_pattern, value)]
    return None if None in items else rf"\[{','.join(map(str, items))}\]"


def _quoted(text: str) -> str:
    return re.escape(text).replace("\\\\", r"\x5c")
