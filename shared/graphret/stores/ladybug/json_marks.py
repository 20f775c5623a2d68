"""Conditions on JSON whose operands are too long for a pattern.

Every string and number of the JSON is put between two control characters, of which JSON has none itself. What is so
marked is compared, searched and replaced as a whole, whatever its length and wherever it lies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from graphret.columns import to_json
from graphret.errors import InvalidInput
from graphret.stores.ladybug.scalars import scalar_texts
from graphret.stores.ladybug.values import KEPT

_BEGIN, _END, _SHORT = "\x02", "\x03", "\x04"
_MARKED = rf"{_BEGIN}\1{_END}"

#: The most different whole numbers of 17 digits and more in operands of such a length: a function each, one in another.
MOST_LARGE = 100


def _item(depth: int) -> str:
    pattern = f"{_BEGIN}[^{_END}]*{_END}"
    for _ in range(depth):
        pattern = rf"(?:{_BEGIN}[^{_END}]*{_END}|[\[{{](?:{pattern}[,:]?)*[\]}}])"
    return pattern


_ITEM = _item(KEPT)


class Marks:
    """Writes conditions on marked JSON.

    Parameters
    ----------
    string
        The pattern of a string.
    parameter
        Makes a parameter of a value.
    """

    def __init__(self, string: str, parameter: Callable[[Any], str]) -> None:
        self.string = string
        self.parameter = parameter

    def shortened(self, json: str, keys: Sequence[str], longest: int) -> tuple[str, list[str]]:
        """Return JSON with short names in the places of long keys, and the keys as they then stand there."""
        long = {k: f'"{_SHORT * n}"' for n, k in enumerate(dict.fromkeys(k for k in keys if len(k) > longest), 1)}
        if long:
            json = self._marked(json)
            for key, short in long.items():
                json = self._replaced(json, f"{_BEGIN}{to_json(key)}{_END}:", f"{short}:")
            json = self._replaced(self._replaced(json, _BEGIN, ""), _END, "")
        return json, [long.get(key) or to_json(key) for key in keys]

    def equal(self, text: str, operands: Sequence[Any]) -> str:
        """Whether the JSON of a value is that of one of the operands."""
        return f"{self._normal(text, operands)} IN {self.parameter([*map(_shown, operands)])}"

    def having(self, text: str, operand: Any) -> str:
        """Whether the JSON of a list has that of the operand among its items."""
        marked = self._normal(text, [operand])
        items = f"regexp_extract_all(substring({marked}, 2, size({marked})), {self.parameter(_ITEM)})"
        return f"(starts_with({text}, '[') AND list_contains({items}, {self.parameter(_shown(operand))}))"

    def within(self, text: str, part: str, character: str) -> str:
        """Whether the JSON of a string has a part in it that begins where one of its characters does."""
        pattern, mark = self.parameter(f"({character})"), self.parameter(rf"{_BEGIN}\1")
        marked = f"regexp_replace({text}, {pattern}, {mark}, 'g')"
        return f"(starts_with({text}, '\"') AND contains({marked}, {self.parameter(_each(part, character))}))"

    def _marked(self, text: str) -> str:
        token = self.parameter(rf"({self.string}|[-+.0-9a-z]+)")
        return f"regexp_replace({text}, {token}, {self.parameter(_MARKED)}, 'g')"

    def _normal(self, text: str, operands: Iterable[Any]) -> str:
        """Marked JSON in which numbers that equal one of the operands' are written alike."""
        whole = self.parameter(f"{_BEGIN}(-?[0-9]+)[.]0{_END}")
        text = f"regexp_replace({self._marked(text)}, {whole}, {self.parameter(_MARKED)}, 'g')"
        others = {other: texts[0] for texts in map(_texts, _scalars(operands)) for other in texts[1:]}
        if len(others) > MOST_LARGE:
            raise InvalidInput(f"where: an operand of more than {MOST_LARGE} whole numbers of 17 digits and more")
        for other, one in others.items():
            text = self._replaced(text, f"{_BEGIN}{other}{_END}", f"{_BEGIN}{one}{_END}")
        return text

    def _replaced(self, text: str, old: str, new: str) -> str:
        return f"replace({text}, {self.parameter(old)}, {self.parameter(new)})"


def _each(part: str, character: str) -> str:
    return re.sub(character, lambda found: _BEGIN + found[0], part)


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{','.join(map(_shown, value))}]"
    return f"{_BEGIN}{_texts(value)[0]}{_END}"


def _texts(value: Any) -> list[str]:
    """The texts of a scalar that `_normal` tells apart, the one that it keeps first."""
    texts = scalar_texts(value)
    if not isinstance(value, str):
        texts = [text.removesuffix(".0") for text in texts]
    return sorted({*texts}) or [""]


def _scalars(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, tuple):
            yield from _scalars(value)
        else:
            yield value
