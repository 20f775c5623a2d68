"""Numbers and dates in a question, with where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

_MONTHS = (
    "january february march april may june july august september october november"
    " december"
).split()
_MONTH = rf"(?P<month>{'|'.join(f'{name}|{name[:3]}' for name in _MONTHS)})\.?"
_DAY, _YEAR = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?", r"(?P<year>\d{4})"
#: Ways to write a period, the longer ones before those that they contain.
_PERIODS = tuple(
    re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)
    for pattern in (
        r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})",
        rf"{_DAY}\s+(?:of\s+)?{_MONTH},?\s+{_YEAR}",
        rf"{_MONTH}\s+{_DAY},?\s+{_YEAR}",
        rf"{_MONTH},?\s+(?:of\s+)?{_YEAR}",
        r"(?P<year>\d{4})-(?P<month>\d{2})",
        rf"q(?P<quarter>[1-4])\s+(?:of\s+)?{_YEAR}",
        r"(?P<decade>\d{3}0)s",
    )
)
_NUMBER = re.compile(
    r"(?<![\w.])[$€£]?\s?(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"(?P<times>[km]\b)?(?![\w-])",
    re.IGNORECASE,
)
_WORDS = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen"
    " fifteen sixteen seventeen eighteen nineteen twenty"
).split()
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b", re.IGNORECASE)
_TIMES = {"k": 1_000, "m": 1_000_000}
#: The years that a bare number of four digits may mean.
_YEARS = range(1000, 2200)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number or a period in a question.

    Parameters
    ----------
    start, end
        Where it stands, in characters.
    number
        The number; `None` for a date.
    period
        The first day, and the first day after it, as ISO dates; `None` where it is no
        date. "2023" may be either.
    """

    start: int
    end: int
    number: float | None = None
    period: tuple[str, str] | None = None


def quantities(question: str) -> list[Quantity]:
    """Return the numbers and periods of a question from left to right."""
    accepted: list[Quantity] = []
    for read in (_periods, _numbers, _number_words):
        for quantity in read(question):
            if all(
                quantity.end <= other.start or other.end <= quantity.start
                for other in accepted
            ):
                accepted.append(quantity)
    return sorted(accepted, key=lambda quantity: quantity.start)


def _periods(question: str) -> Iterator[Quantity]:
    for pattern in _PERIODS:
        for match in pattern.finditer(question):
            try:
                period = _period_of(match.groupdict())
            except ValueError:  # there is no 31 June
                continue
            yield Quantity(*match.span(), period=period)


def _period_of(parts: dict[str, str | None]) -> tuple[str, str]:
    """The first day of a period, and the first day after it."""
    if decade := parts.get("decade"):
        return _years(int(decade), 10)
    year = int(parts["year"] or 0)
    if quarter := parts.get("quarter"):
        return _months(year, 3 * int(quarter) - 2, 3)
    month = _month_of(parts["month"] or "")
    if day := parts.get("day"):
        first = date(year, month, int(day))
        return first.isoformat(), (first + timedelta(days=1)).isoformat()
    return _months(year, month, 1)


def _month_of(text: str) -> int:
    if text.isdigit():
        return int(text)
    return [name[:3] for name in _MONTHS].index(text[:3].lower()) + 1


def _months(year: int, month: int, n: int) -> tuple[str, str]:
    after = month + n
    end = date(year + (after > 12), after - 12 * (after > 12), 1)
    return date(year, month, 1).isoformat(), end.isoformat()


def _years(year: int, n: int) -> tuple[str, str]:
    return date(year, 1, 1).isoformat(), date(year + n, 1, 1).isoformat()


def _numbers(question: str) -> Iterator[Quantity]:
    for match in _NUMBER.finditer(question):
        digits = match["number"]
        number = float(digits.replace(",", "")) * _TIMES.get(
            (match["times"] or "").lower(), 1
        )
        is_year = match[0].strip() == digits and len(digits) == 4 and digits.isdigit()
        period = _years(int(digits), 1) if is_year and int(digits) in _YEARS else None
        start = match.start() + len(match[0]) - len(match[0].lstrip())
        yield Quantity(start, match.end(), _whole(number), period)


def _whole(number: float) -> float:
    """A number without decimals as an integer, as graphs hold it."""
    return int(number) if number.is_integer() else number


def _number_words(question: str) -> Iterator[Quantity]:
    for match in _NUMBER_WORD.finditer(question):
        number = _WORDS.index(match[0].lower()) + 2
        yield Quantity(*match.span(), number=number)
