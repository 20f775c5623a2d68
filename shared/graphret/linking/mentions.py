"""Find known names in a question by their words alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from graphret.linking.names import SIGNS, NameIndex
from graphret.stopwords import FUNCTION_WORDS, STOP_WORDS
from graphret.text import Token, tokenize, words

#: Longer names count even if all their words are everyday words.
GUARDED_WORDS = 2
#: The score of an everyday word that is spotted where nothing else is.
DOUBTFUL = 0.5
#: Factor on the score of a node where the question has the form of another's name.
OTHER_FORM = 0.99

MARKED_TEXT = re.compile(
    r"\[([^\[\]]+)\]|\"([^\"]+)\"|“([^”]+)”|«([^»]+)»|(?<!\w)['‘]([^'‘’]+)['’](?!\w)"
)
SYMBOLS = re.compile(r"(?<!\S)[^\w\s]+(?!\S)")
_AROUND = "".join(SIGNS - set("?!.,;:…。、！？：；"))

#: Which of the nodes with a name count, and the names of each of several nodes.
Keep = Callable[[tuple[str, ...]], tuple[str, ...]]
Forms = Callable[[tuple[str, ...]], Sequence[Iterable[str]]]


@dataclass(frozen=True, slots=True)
class MentionSpan:
    """A known name in a question.

    Parameters
    ----------
    start, end
        Where it is in the question, in characters.
    text
        What the question says there.
    ids
        The nodes with the name: those first whose name is written just so, then by id.
    score
        1, or `DOUBTFUL` for an everyday word that nothing in the question's form marks
        as a name.
    scores
        The score of each node: less than `score` for one whose name differs in case,
        accents or punctuation from `text`, if another node's does not ("C" and "C#"
        where the question says "C++").
    """

    start: int
    end: int
    text: str
    ids: tuple[str, ...]
    score: float = 1.0
    scores: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class _MentionCandidate:
    """A name at its place in the question, its length counted in words."""

    start: int
    end: int
    ids: tuple[str, ...]
    marked: bool
    length: int = 0
    content: int = 0  # words other than function words
    #: Whether it begins with a small letter before a capitalised word: "the Joe".
    drags: bool = False


def find_mentions(
    question: str,
    name_index: NameIndex,
    keep: Keep | None = None,
    forms: Forms | None = None,
) -> list[MentionSpan]:
    """Return the known names in a question, from left to right, none overlapping.

    Of overlapping names, one in quotes or square brackets comes first, then the one
    with the most words other than function words; among equals, one that does not begin
    with a small letter before a capitalised word ("Killer Joe" rather than "the
    Killer"), then the one with the most words, then the first. So a longer name always
    wins over one inside it.

    A name of one or two everyday words ("it", "the one", "love") counts where it is
    marked so, or capitalised other than by style. Otherwise it counts, with a lower
    score, only where nothing but everyday words is found: then common words ("love")
    before function words ("it"). A name of symbols alone ("$") counts where it stands
    by itself, one of punctuation ("???") where it is marked.

    Parameters
    ----------
    keep
        Returns which of the nodes with a name count; a name without any is skipped.
    forms
        Returns the names of each of several nodes with one name, to tell names apart
        that differ in case, accents or punctuation alone.
    """

    def nodes_with(name: int | str) -> tuple[str, ...]:
        ids = name_index.nodes_by_name(name)
        return ids if keep is None else keep(ids)

    marks = {
        _stripped(question, *match.span(match.lastindex or 0))
        for match in MARKED_TEXT.finditer(question)
    }
    sure: list[_MentionCandidate] = []
    doubtful: dict[str, list[_MentionCandidate]] = {"common": [], "function": []}
    for match, kind in _word_matches(question, name_index, marks, nodes_with):
        (doubtful[kind] if kind else sure).append(match)
    for start, end, marked in _symbols(question, name_index, marks):
        if ids := nodes_with(question[start:end]):
            sure.append(_MentionCandidate(start, end, ids, marked))
    if sure:
        chosen = _without_overlaps(sure)
        return [_mention_span(question, match, 1.0, forms) for match in chosen]
    best = _longest(doubtful["common"]) or _last(doubtful["function"])
    chosen = _without_overlaps(best)
    return [_mention_span(question, match, DOUBTFUL, forms) for match in chosen]


def _word_matches(
    question: str,
    name_index: NameIndex,
    marks: Collection[tuple[int, int]],
    nodes_with: Callable[[int | str], tuple[str, ...]],
) -> Iterator[tuple[_MentionCandidate, str]]:
    """Yield the names made of words, each with the kind of its everyday words, if any.

    A kind other than the empty string makes a name doubtful.
    """
    tokens = tokenize(question)
    run = [word for word, _, _ in tokens]
    spans = {_span(tokens, start, end) for start, end in marks}
    names = [
        (name, first, last, _everyday_kind(run[first:last]))
        for name, first, last in name_index.find_every(run)
    ]
    name_places: set[int] = set()
    for _, first, last, kind in names:
        if not kind:
            name_places.update(range(first, last))
    capitals = _capitals(question, tokens, name_places)
    for name, first, last, kind in names:
        ids = nodes_with(name)
        if not ids:
            continue
        shown = [capital for capital in capitals[first:last] if capital is not None]
        match = _MentionCandidate(
            start=tokens[first][1],
            end=tokens[last - 1][2],
            ids=ids,
            marked=(first, last) in spans,
            length=last - first,
            content=sum(word not in FUNCTION_WORDS for word in run[first:last]),
            drags=any(shown) and first > 0 and capitals[first] is False,
        )
        is_name = match.marked or (bool(shown) and all(shown))
        yield match, "" if is_name else kind


def _symbols(
    question: str, name_index: NameIndex, marks: Collection[tuple[int, int]]
) -> Iterator[tuple[int, int, bool]]:
    """Yield the places of names of symbols alone, and whether each is marked.

    One that is not marked has to stand by itself, apart from quotes and brackets.
    """
    for start, end in marks:
        if name_index.has_symbols(question[start:end]):
            yield start, end, True
    for match in SYMBOLS.finditer(question):
        name = match[0].strip(_AROUND)
        if not name_index.has_symbols(name):
            name = name.rstrip("".join(SIGNS)).strip(_AROUND)
        start = match.start() + match[0].find(name)
        if (
            name_index.has_symbols(name)
            and not SIGNS.issuperset(name)
            and (start, start + len(name)) not in marks
        ):
            yield start, start + len(name), False


def _mention_span(
    question: str, match: _MentionCandidate, score: float, forms: Forms | None
) -> MentionSpan:
    """Return a name with its nodes, those first whose written form fits best."""
    ids, start, end = match.ids, match.start, match.end
    scores = [score] * len(ids)
    if forms is not None and len(ids) > 1:
        fit_by_node = [
            max(
                (_form_fit(form, question, start, end) for form in node_forms),
                default=(0, False),
            )
            for node_forms in forms(ids)
        ]
        best = max(fit_by_node)
        scores = [score if fit == best else score * OTHER_FORM for fit in fit_by_node]
        order = sorted(range(len(ids)), key=lambda i: (-scores[i], ids[i]))
        ids, scores = tuple(ids[i] for i in order), [scores[i] for i in order]
    return MentionSpan(start, end, question[start:end], ids, score, tuple(scores))


def _form_fit(form: str, question: str, start: int, end: int) -> tuple[int, bool]:
    """Return how many characters a written form fits at a place, and if case fits too.

    The length is 0 where the question does not have the form there.
    """
    tokens = tokenize(form)
    if not tokens:
        return (len(form), True) if form.strip() == question[start:end] else (0, False)
    if [word for word, _, _ in tokens] != words(question[start:end]):
        return 0, False
    at = start - tokens[0][1]
    text = question[at : at + len(form)] if at >= 0 else ""
    return (len(form), text == form) if text.lower() == form.lower() else (0, False)


def _stripped(question: str, start: int, end: int) -> tuple[int, int]:
    """Return a place in the text without the white space at its ends."""
    inside = question[start:end]
    return end - len(inside.lstrip()), start + len(inside.rstrip())


def _span(tokens: Sequence[Token], start: int, end: int) -> tuple[int, int] | None:
    """Return the words between two places of the text, if there are any."""
    inside = [
        i for i, (_, begin, stop) in enumerate(tokens) if start <= begin and stop <= end
    ]
    return (inside[0], inside[-1] + 1) if inside else None


def _everyday_kind(run: Sequence[str]) -> str:
    """Return ``function`` or ``common`` for everyday words alone, else an empty string.

    They are ``common`` if one of them is not a function word.
    """
    if len(run) > GUARDED_WORDS:
        return ""
    if all(
        word in FUNCTION_WORDS or (len(word) == 1 and word.isascii() and word.isalpha())
        for word in run
    ):
        return "function"
    everyday = all(
        word in STOP_WORDS or (len(word) == 1 and word.isascii()) for word in run
    )
    return "common" if everyday else ""


def _capitals(
    question: str, tokens: Sequence[Token], name_places: Collection[int]
) -> list[bool | None]:
    """Return which words begin with a capital that means something.

    The first word's capital does not, nor does any where capitals are the style: where,
    apart from the first word and the words of names, most words begin with one. Words
    without case, such as numbers, are `None`.
    """
    letters = [question[start] for _, start, _ in tokens]
    elsewhere = [
        letter
        for place, letter in enumerate(letters)
        if place and place not in name_places
    ]
    telling = sum(map(str.islower, elsewhere)) >= sum(map(str.isupper, elsewhere))
    return [
        (
            (letter.isupper() and telling and place > 0)
            if letter.isupper() or letter.islower()
            else None
        )
        for place, letter in enumerate(letters)
    ]


def _longest(candidates: list[_MentionCandidate]) -> list[_MentionCandidate]:
    """Return the names with the most words."""
    most = max((match.length for match in candidates), default=0)
    return [match for match in candidates if match.length == most]


def _last(candidates: list[_MentionCandidate]) -> list[_MentionCandidate]:
    """Return the last of the longest names: questions open with the commonest words."""
    return sorted(candidates, key=lambda match: (match.length, match.start))[-1:]


def _without_overlaps(candidates: list[_MentionCandidate]) -> list[_MentionCandidate]:
    """Choose names that do not overlap, and put them in order.

    Marked names come first, then those with the most content.
    """

    def marked(match: _MentionCandidate) -> bool:
        # A mark inside a name does not count, as in "The 'Human' Factor".
        return match.marked and not any(
            other.start <= match.start
            and match.end <= other.end
            and other.length > match.length
            for other in candidates
        )

    chosen: list[_MentionCandidate] = []
    for match in sorted(
        candidates,
        key=lambda match: (
            not marked(match),
            -match.content,
            match.drags,
            -match.length,
            match.start,
        ),
    ):
        if all(
            match.end <= other.start or other.end <= match.start for other in chosen
        ):
            chosen.append(match)
    return sorted(chosen, key=lambda match: match.start)
