"""How a text uses a name: as an ordinary word, or as the name of something.

Capitals tell, in every script that has them, but only within a sentence: at its
beginning, in headings and in all-capital text every word has one. So the texts of a
corpus show which of its titles are everyday words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from itertools import chain

from graphret.stopwords import COMMON_WORDS, FUNCTION_WORDS
from graphret.text import words as words_of

# What precedes the first word of a sentence, a line, a cell or a quotation.
_BEGINS_SENTENCE = re.compile(r"""(?:\A|[.!?:;"“”‘«»(—–•*#|]|[^\S ]|\s[-+>] )[ ]*\Z""")

_WORD = re.compile(r"[^\W\d_]+")
_PLAIN_WORD, _GAP = re.compile(r"[^\W_]+"), re.compile(r"[\W_]+")
_WORD_BEFORE = re.compile(r"(?<![^\W\d_])([^\W\d_]+)[ -]\Z")
_WORD_BEHIND = re.compile(r"[ -]([^\W\d_]+)")
# Next to these a word in lower case is part of another word, of a path, or of code.
_JOINS, _JOINS_BEHIND = frozenset("-_/\\.@#$"), frozenset("-_/\\@(=")
_QUOTES = {
    '"': '"',
    "'": "'",
    "`": "`",
    "_": "_",
    "*": "*",
    "“": "”",
    "„": "“”",
    "‘": "’",
    "«": "»",
    "»": "«",
    "「": "」",
    "『": "』",
    "《": "》",
}
# How many characters around a name are searched for a word that shows a sentence: one
# in lower case, of at least so many letters, that titles would capitalise.
_AROUND, _SHORTEST = 80, 3
_LOWER_IN_TITLES = frozenset(
    "and but for nor yet off per via with from into like over than that upon onto "
    "les von van der den del della dos und los las que por para con dans pour".split()
)
# A word of so many letters with a full stop is an abbreviation: Inc., Ltd., St., Mr.
_ABBREVIATION = 4


class NameUse(Enum):
    """What one occurrence of a name is."""

    WORD = auto()
    """A word among others: “two examples follow”."""
    UNCLEAR = auto()
    """Where every word would have a capital: “Examples follow”, a heading."""
    PART = auto()
    """Part of a longer name: “Time” in “Time Warner”."""
    NAME = auto()
    """The name of something: “as Examples has it”, “see `Examples`”."""


@dataclass(slots=True)
class UseCounts:
    """How often a name is used as a word, and how often as a name."""

    words: int = 0
    names: int = 0

    @classmethod
    def of(cls, name: str, text: str) -> UseCounts:
        """Count the occurrences of a name, in its node's spelling, in a text."""
        counts = cls()
        for start, end in _occurrences(name, text):
            use = use_at(text, start, end, name)
            counts.words += use is NameUse.WORD
            counts.names += use is NameUse.NAME
        return counts

    def add(self, other: UseCounts) -> None:
        """Count further occurrences."""
        self.words += other.words
        self.names += other.names

    @property
    def everyday(self) -> float:
        """The share of words among the clear occurrences; 0 where there are none."""
        return self.words / (self.words + self.names) if self.words else 0.0


def may_be_word(name: str, text: str) -> bool:
    """Whether a text with a name may use it as a word; a quick first test."""
    return name not in text if name.isupper() else name.lower() in text


def can_be_everyday(name: str) -> bool:
    """Whether a name by itself can be an everyday word.

    It has to be in a script with capitals, and a single word or made of common words:
    “next steps” can be one, “system prompt” cannot.
    """
    words = words_of(name)
    common = all(
        word in FUNCTION_WORDS or {word, word.removesuffix("s")} & COMMON_WORDS
        for word in words
    )
    return (len(words) == 1 or common) and name.lower() != name.upper()


def use_at(text: str, start: int, end: int, name: str) -> NameUse:
    """Return how a text uses a name from `start` to `end`.

    `name` is the name in its node's spelling.
    """
    occurrence = text[start:end]
    if (marked := _marked(text, start, end)) is not None:
        return marked
    # A text writes the name SEAT in capitals.
    if occurrence == occurrence.lower() or (
        name.isupper() and not occurrence.isupper()
    ):
        code = text[start - 1 : start] in _JOINS or text[end : end + 1] in _JOINS_BEHIND
        return NameUse.UNCLEAR if code else NameUse.WORD
    if occurrence.isupper() and not name.isupper():
        return NameUse.UNCLEAR
    if begins_sentence(text, start):
        content = [
            word
            for word in _WORD.findall(occurrence)
            if word.lower() not in FUNCTION_WORDS
        ]
        capitals = sum(word[0].isupper() for word in content)
        if capitals < len(content):
            return NameUse.WORD  # “Next steps are”
        if capitals < 2:
            return NameUse.UNCLEAR
    if not in_sentence(text, start, end):
        return NameUse.UNCLEAR
    is_part = " " not in occurrence and _is_part(text, start, end)
    return NameUse.PART if is_part else NameUse.NAME


def in_sentence(text: str, start: int, end: int) -> bool:
    """Whether a place is in a sentence, which has lower-case words, not a heading."""
    from_, to = max(0, start - _AROUND), end + _AROUND
    before = text[text.rfind("\n", from_, start) + 1 or from_ : start]
    if before.lstrip().startswith("#"):
        return False
    line_end = text.find("\n", end, to)
    behind = text[end : to if line_end < 0 else line_end]
    words = chain(_WORD.finditer(behind), _WORD.finditer(before))
    return any(_tells_sentence(match[0]) for match in words)


def _tells_sentence(word: str) -> bool:
    return len(word) >= _SHORTEST and word.islower() and word not in _LOWER_IN_TITLES


def stands_in_sentence(name: str, text: str, *, first_is_word: bool = False) -> bool:
    """Whether a text has a name within a sentence, or does not spell it out.

    A heading, text in capitals and an abbreviation do not count.

    Parameters
    ----------
    first_is_word
        Whether the first word of the name is an everyday word, whose capital may be
        that of a sentence's beginning.
    """
    occurs = False
    for start, end in _occurrences(name, text):
        occurs = True
        begins = begins_sentence(text, start)
        behind = text[end : end + 1]
        # A heading may have text behind it: “8. Notices. …”
        heading = begins and (not behind or behind in ".:\n")
        short = (
            end - start <= _ABBREVIATION
            and behind == "."
            and not text[start:end].isupper()
        )
        if not (heading or short or (begins and first_is_word)) and in_sentence(
            text, start, end
        ):
            return True
    return not occurs


def begins_sentence(text: str, start: int) -> bool:
    """Whether a sentence, a line, a cell or a quotation begins at `start`."""
    return _BEGINS_SENTENCE.search(text[max(0, start - 3) : start]) is not None


def _occurrences(name: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of a name in a text, in any case and with any gaps."""
    first, *following = _PLAIN_WORD.findall(name.lower()) or [name.lower()]
    lower = text.lower()
    start = lower.find(first)
    while start >= 0:
        end = start + len(first)
        for word in following:
            gap = _GAP.match(lower, end)
            end = (
                gap.end() + len(word)
                if gap and lower.startswith(word, gap.end())
                else -1
            )
            if end < 0:
                break
        if (
            end >= 0
            and not lower[start - 1 : start].isalnum()
            and not lower[end : end + 1].isalnum()
        ):
            yield start, end
        start = lower.find(first, start + len(first))


def _marked(text: str, start: int, end: int) -> NameUse | None:
    """Return the use of a name in quotes, code marks or link text; `None` elsewhere."""
    if not start:
        return None
    opening = text[start - 1]
    behind = text[end : end + 3]
    if opening == "[":
        return NameUse.NAME if behind.startswith(("](", "][", "]]")) else None
    closing = _QUOTES.get(opening)
    # Bold text is as often a heading as a name.
    if closing is None or text[start - 2 : start] == "**":
        return None
    behind = behind.lstrip(",.")
    if not behind or behind[0] not in closing:
        return None
    # The key of a record is not a name.
    return NameUse.UNCLEAR if behind[1:2] in (":", "=") else NameUse.NAME


def _is_part(text: str, start: int, end: int) -> bool:
    """Whether a capitalised word next to a name makes it part of a longer one."""
    behind = _WORD_BEHIND.match(text, end)
    if behind and _is_capital(behind[1]):
        return True
    before = _WORD_BEFORE.search(text, max(0, start - 30), start)
    if before is None or not _is_capital(before[1]):
        return False
    return not begins_sentence(text, before.start())


def _is_capital(word: str) -> bool:
    return word[0].isupper() and word.lower() not in FUNCTION_WORDS
