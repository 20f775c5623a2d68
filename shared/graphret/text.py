"""Names and words, normalised the same way for metadata, linking and matching."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from graphret.stopwords import RELATION_STOP_WORDS

Token = tuple[str, int, int]
"""A normalised word with its start and end in the text it came from."""

_LETTERS = {
    "ø": "o",
    "ł": "l",
    "đ": "d",
    "ð": "d",
    "þ": "th",
    "æ": "ae",
    "œ": "oe",
    "ı": "i",
}  # no NFKD form
_PART_OF_LETTER = (
    7,
    8,
    9,
)  # combining classes of nukta, kana voicing and virama: another letter, not an accent
#: Where the names of relations, labels and properties are split into words.
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
_BRACKET = re.compile(r"(?<!\s)\s*+\([^()]*\)")
# Characters that are a word each, and in ASCII those between words.
_CHARACTER_WORDS = "\u3041-\u3098\u309b-\u30ff\u3400-\u9fff\U00020000-\U0003ffff"
_BETWEEN = r"\0-/:-@\[-`{-\x7f"
_UNSPACED = re.compile(f"[{_CHARACTER_WORDS}]")
# A piece of a text that can be read by itself: no word goes beyond it.
_PIECE = re.compile(f"[^{_BETWEEN}][^{_BETWEEN}{_CHARACTER_WORDS}]*+")
_NOT_ASCII, _FEW = re.compile("[^\0-\x7f]+"), 10
_SHAPE = re.compile(r"cz*|[xz]+")


def normalize_name(text: str) -> str:
    """Return a name for comparison, with case, accents, punctuation and space folded.

    Examples
    --------
    >>> normalize_name("  Beyoncé Knowles-Carter ")
    'beyonce knowles carter'
    """
    return " ".join(text.translate(_FOLD).split())


def alias_list(value: object) -> list[str]:
    """Return the aliases that a property holds: one name, or a list of names."""
    names = value if isinstance(value, list | tuple) else [value]
    return [name for name in names if isinstance(name, str) and name]


@lru_cache(maxsize=4096)
def name_words(name: str) -> tuple[str, ...]:
    """Return the words of a relation's or label's name, without linking words."""
    parts = [part.lower() for part in CAMEL.split(name) if part]
    return tuple(part for part in parts if part not in RELATION_STOP_WORDS) or tuple(
        parts
    )


def short_names(name: str) -> list[str]:
    """Return a name's shorter forms: without brackets, and cut at the first comma.

    Examples
    --------
    >>> short_names("Leeds, Alabama (city)")
    ['Leeds, Alabama', 'Leeds']
    """
    bare = _BRACKET.sub("", name).strip()
    candidates = dict.fromkeys((bare, bare.split(",")[0].strip()))
    return [short for short in candidates if short and short != name]


@lru_cache(maxsize=200_000)
def spoken_forms(name: str) -> tuple[str, ...]:
    """Return a name's normalised forms in texts: the full name, then short ones."""
    forms = (normalize_name(form) for form in (name, *short_names(name)))
    return tuple(dict.fromkeys(form for form in forms if form))


def tokenize(text: str) -> list[Token]:
    """Return the normalised words of a text, each with its place in the text.

    Chinese characters and kana, which are written without spaces, count as a word each.
    """
    tokens: list[Token] = []
    if text.isascii():
        start = 0
        # Each character of ASCII is folded to one, so that the places stay.
        for word in text.translate(_FOLD).split(" "):
            end = start + len(word)
            if word:
                tokens.append((word, start, end))
            start = end + 1
        return tokens
    for piece in _PIECE.finditer(text):
        start = piece.start()
        if piece[0].isascii():
            tokens.append((piece[0].lower(), start, piece.end()))
            continue
        for word, word_start, word_end in _tokens_of(piece[0]):
            tokens.append((word, start + word_start, start + word_end))
    return tokens


def words(text: str) -> list[str]:
    """Return the normalised words of a text, as `tokenize` does, without places."""
    if text.isascii():
        return text.translate(_FOLD).split()
    if _UNSPACED.search(text):
        pieces = map(_tokens_of, _PIECE.findall(text))
        return [word for tokens in pieces for word, _, _ in tokens]
    return _in_ascii(text).translate(_FOLD).split()


def _in_ascii(text: str) -> str:
    """Return a text with the characters folded that are not ASCII, if they are few.

    A text in ASCII is translated several times as fast.
    """
    n_more_bytes = len(text.encode(errors="surrogatepass")) - len(text)
    if n_more_bytes * _FEW > len(text):
        return text
    folded = _NOT_ASCII.sub(lambda run: run[0].translate(_FOLD), text)
    return folded if folded.isascii() else text


@lru_cache(maxsize=1 << 15)
def _tokens_of(piece: str) -> tuple[Token, ...]:
    """Return the words of a piece of a text; the pieces of a language repeat."""
    shapes = _SHAPE.finditer(piece.translate(_SHAPES))
    return tuple(
        (word, shape.start(), shape.end())
        for shape in shapes
        for word in piece[slice(*shape.span())].translate(_FOLD).split()
    )


def _fold(character: str) -> str:
    decomposed = unicodedata.normalize(
        "NFKD", unicodedata.normalize("NFKD", character).casefold()
    )
    return "".join(map(_fold_decomposed, decomposed))


def _fold_decomposed(character: str) -> str:
    if (
        unicodedata.combining(character) not in (0, *_PART_OF_LETTER)
        or unicodedata.category(character) == "Cf"
    ):
        return ""
    if "VARIATION SELECTOR" in unicodedata.name(character, ""):  # only how it is drawn
        return ""
    if character.isalnum() or unicodedata.category(character)[0] == "M":
        return _LETTERS.get(character, character)
    return " "


class _Folds(dict[int, str]):
    def __missing__(self, code: int) -> str:
        return self.setdefault(code, _fold(chr(code)))


class _Shapes(dict[int, str]):
    """One letter a character: space, `z` (zero width), `c` (a word), `x` (other)."""

    def __missing__(self, code: int) -> str:
        folded = _FOLD[code]
        if not folded or unicodedata.category(chr(code))[0] == "M":
            shape = "z"
        elif folded.isspace():
            shape = " "
        else:
            shape = "c" if _UNSPACED.match(chr(code)) else "x"
        return self.setdefault(code, shape)


_FOLD = _Folds()
_SHAPES = _Shapes()
