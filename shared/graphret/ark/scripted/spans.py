"""The parts of a question that may be names, to be searched for: before anything is known of the graph."""

from __future__ import annotations

import re

from graphret.linking.everyday import COMMON_WORDS, FUNCTION_WORDS
from graphret.text import tokenize

#: Most parts that are searched for.
MOST = 4

_MARKED = re.compile(r"\[([^\[\]]+)\]|\"([^\"]+)\"|“([^”]+)”|«([^»]+)»|(?<!\w)['‘]([^'‘’]+)['’](?!\w)")


def spans(question: str) -> list[str]:
    """Return the parts of a question that may be names, the likeliest first: what is marked as such, what stands in
    capitals, and the runs of words that are not everyday ones.
    """
    found = [next(filter(None, match.groups())) for match in _MARKED.finditer(question)]
    found += _capitals(question)
    found += _uncommon(question)
    cleaned = (part.strip(" ,.;:?!") for part in found)
    return list(dict.fromkeys(part for part in cleaned if part and part != question))[:MOST]


def _capitals(question: str) -> list[str]:
    """From the first to the last word of each run in capitals, small words between them included."""
    runs: list[tuple[int, int]] = []
    gap = ""
    for place, (word, start, end) in enumerate(tokenize(question)):
        opens = not place and word in FUNCTION_WORDS  # the capital of a sentence
        if (question[start].isupper() and not opens) or question[start].isdigit():
            if runs and (not gap or all(part in FUNCTION_WORDS for part in gap.split())):
                runs[-1] = runs[-1][0], end
            else:
                runs.append((start, end))
            gap = ""
        elif runs:
            gap += f" {word}"
    return [question[start:end] for start, end in sorted(runs, key=lambda run: run[0] - run[1])]


def _uncommon(question: str) -> list[str]:
    """The runs of words that are not everyday ones, the longest first."""
    tokens = tokenize(question)
    rare = [word not in FUNCTION_WORDS and word not in COMMON_WORDS for word, _, _ in tokens]
    runs: list[tuple[int, int]] = []
    for place, (_, start, end) in enumerate(tokens):
        if rare[place]:
            if place and rare[place - 1]:
                runs[-1] = runs[-1][0], end
            else:
                runs.append((start, end))
    return [question[start:end] for start, end in sorted(runs, key=lambda run: run[0] - run[1])]
