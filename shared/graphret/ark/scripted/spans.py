"""The parts of a question that may be names, to be searched for: before anything is known of the graph."""

from __future__ import annotations

import re
from collections.abc import Callable

from graphret.ark.scripted.words import is_relational
from graphret.linking.everyday import COMMON_WORDS, FUNCTION_WORDS
from graphret.linking.symbols import are_signs
from graphret.text import tokenize

#: Most parts that are searched for.
MOST = 4

_ENDS = " ,.;:?!"
_SYMBOLS = re.compile(r"(?<!\S)[^\w\s]+(?!\S)")
_MARKED = re.compile(r"\[([^\[\]]+)\]|\"([^\"]+)\"|“([^”]+)”|«([^»]+)»|(?<!\w)['‘]([^'‘’]+)['’](?!\w)")


def spans(question: str) -> list[str]:
    """Return the parts of a question that may be names, the likeliest first: what is marked as such, what stands in
    capitals, the runs of words that are not everyday ones, or at least none of those that name relations, and symbols
    between white space ("who acted in $?").
    """
    found = [next(filter(None, match.groups())) for match in _MARKED.finditer(question)]
    found += _capitals(question)
    found += _runs(question, lambda word: word not in FUNCTION_WORDS and word not in COMMON_WORDS)
    # "which films are about love"
    found = found or _runs(question, lambda word: word not in FUNCTION_WORDS and not is_relational(word))
    found += [part for part in _SYMBOLS.findall(question) if not are_signs(part)]
    cleaned = (part.strip(_ENDS) or part.strip() for part in found)  # a band is called "!!!"
    return list(dict.fromkeys(part for part in cleaned if part and part != question))[:MOST]


def _capitals(question: str) -> list[str]:
    """From the first to the last word of each run in capitals, small words between them included."""
    runs: list[tuple[int, int]] = []
    gap = ""
    for place, (word, start, end) in enumerate(tokenize(question)):
        opens = not place and (word in FUNCTION_WORDS or word in COMMON_WORDS)  # the capital of a sentence
        if (question[start].isupper() and not opens) or question[start].isdigit():
            if runs and (not gap or all(part in FUNCTION_WORDS for part in gap.split())):
                runs[-1] = runs[-1][0], end
            else:
                runs.append((start, end))
            gap = ""
        elif runs:
            gap += f" {word}"
    return [question[start:end] for start, end in sorted(runs, key=lambda run: run[0] - run[1])]


def _runs(question: str, tells: Callable[[str], bool]) -> list[str]:
    """The runs of words that tell something, the longest first."""
    runs: list[tuple[int, int]] = []
    told = False
    for word, start, end in tokenize(question):
        if tells(word):
            runs[-1:] = [(runs[-1][0], end)] if told else [*runs[-1:], (start, end)]
        told = tells(word)
    return [question[start:end] for start, end in sorted(runs, key=lambda run: run[0] - run[1])]
