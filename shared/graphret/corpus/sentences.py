"""Where sentences end and where a text may be cut, by rules that need no model and no download.

The ids of chunks hang on them: no update of a library may move every chunk of a corpus.
"""

from __future__ import annotations

import re
from itertools import pairwise

Span = tuple[int, int]
"""Start and end of a piece of text, end exclusive."""

_END = re.compile(
    r"""(?P<stop>[.!?…؟۔।॥։።]+ (?:["'”’»)\]]+ | [ ](?:''|[”»)\]])+)* (?=\s|$))  # a stop, quotes or brackets that close
      | [。！？｡]+ [」』）”’】》]*                                                # these need no space behind them
      | \n\s*\n                                                                  # a paragraph
      | (?m:^)\#{1,6}[ \t].*\n                                                    # a heading
      | \n (?=[ \t]*(?:[-*+•#|>]|\d+[.)])[ \t])                                  # a list, heading or table row
    """,
    re.VERBOSE,
)
_LAST_WORD = re.compile(r"([^\s(\[\"'“‘]+)\s?$")
_DOTTED = re.compile(r"(?:\w\.)+\w?")
_LOOK_BACK = 24
_OPENERS = "\"'“‘«([¿¡`"
# Never the end of a sentence, whatever follows.
_TITLES = frozenset(
    "mr mrs ms dr prof st rev hon gen col maj capt lt cmdr sgt cpl pvt adm gov sen rep pres supt mt ft vs "
    "univ ca cf eds e.g i.e viz feat lit arr orig hr z.b d.h u.a mme mlle".split()
)
# Not the end of a sentence before a number.
_NUMBERED = frozenset(
    "no nos fig figs eq vol vols p pp ch sec art nr ed op jan feb mar apr jun jul aug sep sept oct nov dec "
    "approx".split()
)
# The end of a sentence only before a word that begins most sentences it stands in.
_OPEN = frozenset("etc al inc jr sr ltd co corp bros esq dept ph.d".split())
_STARTERS = frozenset(
    "the a an it its he she they we you i this that these those there here his her their our in on at by for from with "
    "after before during since while when where although though however as if but and so then most many some all both "
    "one two three other another each such no not also under over between among because despite until according".split()
)


def split_sentences(text: str) -> list[Span]:
    """Return the sentences of a text, in order, without the whitespace around them.

    Knows the stops of Latin, Greek, Cyrillic, Arabic, Devanagari, Chinese and Japanese script, common abbreviations,
    initials, and text whose punctuation has been set off by spaces (``"It ended . He left ."``). Everything that is
    not whitespace lies in exactly one sentence.
    """
    ends = [match.end() for match in _END.finditer(text) if not match["stop"] or _ends(text, match)]
    sentences: list[Span] = []
    for begin, end in pairwise([0, *ends, len(text)]):
        if sentence := text[begin:end].strip():
            start = text.index(sentence, begin)
            sentences.append((start, start + len(sentence)))
    return sentences


def split_long(text: str, span: Span, max_chars: int) -> list[Span]:
    """Cut a sentence into pieces of at most `max_chars`, at whitespace where there is any."""
    if span[1] - span[0] <= max_chars:
        return [span]
    piece = re.compile(rf"\S(?:.{{,{max(0, max_chars - 2)}}}\S)?(?=\s|\Z)|\S{{{max_chars}}}", re.DOTALL)
    return [match.span() for match in piece.finditer(text, *span)]


def _ends(text: str, match: re.Match[str]) -> bool:
    following = text[match.end() : match.end() + 2 * _LOOK_BACK].lstrip().lstrip(_OPENERS)
    if following[:1].islower():
        return False
    if match["stop"][0] != "." or match["stop"].startswith(".."):
        return True
    word = _LAST_WORD.search(text[max(0, match.start() - _LOOK_BACK) : match.start()])
    if not word:
        return True
    last = word.group(1).lower()
    if last in _TITLES or (last in _NUMBERED and following[:1].isdigit()):
        return False
    if last in _OPEN or (len(last) == 1 and last.isalpha()) or _DOTTED.fullmatch(last):
        return following.split(maxsplit=1)[0].lower().rstrip(",'’") in _STARTERS if following.split() else True
    return True
