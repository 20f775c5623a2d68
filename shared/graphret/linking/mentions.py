"""Known names in a question, found by their words alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from graphret.linking.names import SIGNS, NameIndex
from graphret.stopwords import FUNCTION_WORDS, STOP_WORDS
from graphret.text import Token, tokenize, words

#: Names of more words than this are looked for even if all of them are everyday words.
GUARDED_WORDS = 2
#: The score of an everyday word that is spotted for want of anything else.
DOUBTFUL = 0.5
#: Times the score, where a name stands in the question in the form that another node
#: has.
OTHER_FORM = 0.99

MARKED_TEXT = re.compile(
    r"\[([^\[\]]+)\]|\"([^\"]+)\"|“([^”]+)”|«([^»]+)»|(?<!\w)['‘]([^'‘’]+)['’](?!\w)"
)
SYMBOLS = re.compile(r"(?<!\S)[^\w\s]+(?!\S)")
_AROUND = "".join(SIGNS - set("?!.,;:…。、！？：；"))

#: Which of the nodes that bear a name count, and what each of several nodes is called.
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
        The nodes that bear the name: those first that are called just as it stands
        there, then by id.
    score
        1, or `DOUBTFUL` for an everyday word that nothing in the question's form marks
        as a name.
    scores
        That of each node: less than `score` for one whose name differs in case, accents
        or punctuation from what stands there, if another node's does not ("C" and "C#"
        where "C++" is said).
    """

    start: int
    end: int
    text: str
    ids: tuple[str, ...]
    score: float = 1.0
    scores: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class _MentionCandidate:
    """A name where it stands in the question, its length counted in words."""

    start: int
    end: int
    ids: tuple[str, ...]
    marked: bool
    length: int = 0
    content: int = 0  # words that are no function words
    #: Whether it begins with a small letter before a word in capitals: "the Joe".
    drags: bool = False


def find_mentions(
    question: str,
    name_index: NameIndex,
    keep: Keep | None = None,
    forms: Forms | None = None,
) -> list[MentionSpan]:
    """Return the known names in a question, from left to right, none overlapping.

    Of names that overlap what stands in quotes or square brackets is chosen before all
    others, and then the longest, counted in words that are no function words; of those
    of as many, one that does not begin with a small letter before a word in capitals
    ("Killer Joe" rather than "the Killer"), then that of most words, then the first. So
    no name is chosen beside a longer one in which it lies.

    A name of one or two everyday words ("it", "the one", "love") counts where it is so
    marked or written in capitals that are no matter of style; and else, with less
    score, only where nothing but everyday words is found: then common words ("love")
    rather than such as hold a sentence together ("it"). A name of symbols alone ("$")
    counts where it stands by itself, one of quotes, brackets, dashes and ends of
    sentences ("???") where it is marked.

    Parameters
    ----------
    keep
        Which of the nodes that bear a name count; a name whose bearers do not is passed
        over.
    forms
        What each of several nodes that bear a name is called, so that names are told
        apart that differ in case, accents or punctuation alone.
    """

    def bearers(name: int | str) -> tuple[str, ...]:
        ids = name_index.nodes_by_name(name)
        return ids if keep is None else keep(ids)

    marks = {
        _stripped(question, *match.span(match.lastindex or 0))
        for match in MARKED_TEXT.finditer(question)
    }
    sure: list[_MentionCandidate] = []
    doubtful: dict[str, list[_MentionCandidate]] = {"common": [], "function": []}
    for match, kind in _word_matches(question, name_index, marks, bearers):
        (doubtful[kind] if kind else sure).append(match)
    for start, end, marked in _symbols(question, name_index, marks):
        if ids := bearers(question[start:end]):
            sure.append(_MentionCandidate(start, end, ids, marked))
    if sure:
        return [_spotted(question, match, 1.0, forms) for match in _apart(sure)]
    best = _longest(doubtful["common"]) or _last(doubtful["function"])
    return [_spotted(question, match, DOUBTFUL, forms) for match in _apart(best)]


def _word_matches(
    question: str,
    name_index: NameIndex,
    marks: Collection[tuple[int, int]],
    bearers: Callable[[int | str], tuple[str, ...]],
) -> Iterator[tuple[_MentionCandidate, str]]:
    """Yield the names of words that nodes bear, each with what makes it doubtful.

    That is the kind of its everyday words, or nothing.
    """
    tokens = tokenize(question)
    run = [word for word, _, _ in tokens]
    spans = {_span(tokens, start, end) for start, end in marks}
    names = [
        (name, first, last, _everyday(run[first:last]))
        for name, first, last in name_index.find_every(run)
    ]
    named: set[int] = set()
    for _, first, last, kind in names:
        if not kind:
            named.update(range(first, last))
    capitals = _capitals(question, tokens, named)
    for name, first, last, kind in names:
        ids = bearers(name)
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
    """Go through names of symbols alone: what is marked, and what stands by itself but
    for quotes and brackets.
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


def _spotted(
    question: str, match: _MentionCandidate, score: float, forms: Forms | None
) -> MentionSpan:
    """A name with its bearers, those first of whose forms most stands there."""
    ids, start, end = match.ids, match.start, match.end
    scores = [score] * len(ids)
    if forms is not None and len(ids) > 1:
        fits = (
            [_stands(form, question, start, end) for form in own] for own in forms(ids)
        )
        standing = [max(one, default=(0, False)) for one in fits]
        best = max(standing)
        scores = [score if one == best else score * OTHER_FORM for one in standing]
        order = sorted(range(len(ids)), key=lambda i: (-scores[i], ids[i]))
        ids, scores = tuple(ids[i] for i in order), [scores[i] for i in order]
    return MentionSpan(start, end, question[start:end], ids, score, tuple(scores))


def _stands(form: str, question: str, start: int, end: int) -> tuple[int, bool]:
    """How much of a question a name takes up around a place, 0 where it does not stand
    there, and if case fits too.
    """
    read = tokenize(form)
    if not read:
        return (len(form), True) if form.strip() == question[start:end] else (0, False)
    if [word for word, _, _ in read] != words(question[start:end]):
        return 0, False
    at = start - read[0][1]
    said = question[at : at + len(form)] if at >= 0 else ""
    return (len(form), said == form) if said.lower() == form.lower() else (0, False)


def _stripped(question: str, start: int, end: int) -> tuple[int, int]:
    """A place in the text without the white space at its ends."""
    inside = question[start:end]
    return end - len(inside.lstrip()), start + len(inside.rstrip())


def _span(tokens: Sequence[Token], start: int, end: int) -> tuple[int, int] | None:
    """The words between two places of the text, if there are any."""
    inside = [
        i for i, (_, begin, stop) in enumerate(tokens) if start <= begin and stop <= end
    ]
    return (inside[0], inside[-1] + 1) if inside else None


def _everyday(run: Sequence[str]) -> str:
    """Whether words are all everyday ones: ``function``, ``common`` if one is no
    function word, or nothing.
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
    question: str, tokens: Sequence[Token], named: Collection[int]
) -> list[bool | None]:
    """Which words begin with a capital that tells something: not the first, nor any
    where capitals are the style.

    They are where, but for the first word and the words of names, capitals are more
    than small letters. `None` is for what has no case, such as numbers.
    """
    letters = [question[start] for _, start, _ in tokens]
    others = [
        letter for place, letter in enumerate(letters) if place and place not in named
    ]
    telling = sum(map(str.islower, others)) >= sum(map(str.isupper, others))
    return [
        (
            (letter.isupper() and telling and place > 0)
            if letter.isupper() or letter.islower()
            else None
        )
        for place, letter in enumerate(letters)
    ]


def _longest(found: list[_MentionCandidate]) -> list[_MentionCandidate]:
    """Of names of common words those of most words."""
    most = max((match.length for match in found), default=0)
    return [match for match in found if match.length == most]


def _last(found: list[_MentionCandidate]) -> list[_MentionCandidate]:
    """Of names of function words alone the longest, then the last: questions open with
    the commonest.
    """
    return sorted(found, key=lambda match: (match.length, match.start))[-1:]


def _apart(found: list[_MentionCandidate]) -> list[_MentionCandidate]:
    """Choose names that do not overlap, the marked and then those that say most first,
    and put them in order.
    """

    def marked(
        one: _MentionCandidate,
    ) -> bool:  # not so a mark inside of a name, as in "The 'Human' Factor"
        return one.marked and not any(
            other.start <= one.start
            and one.end <= other.end
            and other.length > one.length
            for other in found
        )

    taken: list[_MentionCandidate] = []
    for one in sorted(
        found,
        key=lambda one: (
            not marked(one),
            -one.content,
            one.drags,
            -one.length,
            one.start,
        ),
    ):
        if all(one.end <= other.start or other.end <= one.start for other in taken):
            taken.append(one)
    return sorted(taken, key=lambda one: one.start)
