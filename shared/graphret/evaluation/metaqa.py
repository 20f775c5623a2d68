"""MetaQA (Zhang et al. 2018): questions over a graph of films that take one, two or three hops."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from graphret.errors import InvalidInput
from graphret.graphs.metaqa import OBJECTS

HOPS = (1, 2, 3)

_ENTITY = re.compile(r"\[(.*?)\]")
_CALLED = {"tags": "tag", "imdbrating": "rating", "imdbvotes": "votes"}
_RELATIONS = {label.lower(): relation for relation, label in OBJECTS.items()}


@dataclass(frozen=True, slots=True)
class MetaQuestion:
    """A question of MetaQA.

    Parameters
    ----------
    text
        The question, the brackets around its entity removed.
    entity
        The id of the node that it is about.
    gold
        The ids of the right answers.
    path
        The relations from the entity to the answers, each with whether it is followed from its source to its target;
        empty where the data does not tell.
    """

    text: str
    entity: str
    gold: frozenset[str]
    path: tuple[tuple[str, bool], ...] = ()


def load_questions(
    data: str | Path, hops: int, split: str = "dev", *, limit: int | None = None, seed: int = 0
) -> list[MetaQuestion]:
    """Read the questions of one number of hops, in the layout of the public release.

    The file is ordered by type of question, so that `limit` questions are drawn from it at random, the same for the
    same `seed`, and come in its order.

    Raises
    ------
    InvalidInput
        When the file is not there, a line is not as it should be, or the types of questions are not as many.
    """
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise InvalidInput(f"limit: a whole number of at least 1 is expected, not {limit!r}")
    path = Path(data) / f"{hops}-hop" / "vanilla" / f"qa_{split}.txt"
    kinds = Path(data) / f"{hops}-hop" / f"qa_{split}_qtype.txt"
    lines = _lines(path)
    typed = _lines(kinds) if kinds.exists() else [""] * len(lines)
    if len(typed) != len(lines):
        raise InvalidInput(f"{kinds}: {len(typed)} types of questions for {len(lines)} questions")
    places: Sequence[int] = range(len(lines))
    if limit is not None and limit < len(lines):
        places = sorted(random.Random(seed).sample(places, limit))
    return [_question(lines[place], typed[place], f"{path}, line {place + 1}") for place in places]


def _lines(path: Path) -> list[str]:
    try:
        return [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except FileNotFoundError:
        raise InvalidInput(f"{path}: there is no such file; a folder in MetaQA's layout is expected") from None
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path}: {error}") from error


def _question(line: str, kind: str, where: str) -> MetaQuestion:
    asked, tab, answers = line.partition("\t")
    entity = _ENTITY.search(asked)
    gold = frozenset(answer for answer in answers.split("|") if answer)
    if not tab or entity is None or not gold:
        raise InvalidInput(f"{where}: a question with an [entity], a tab and answers joined by '|' are expected")
    return MetaQuestion(_ENTITY.sub(r"\1", asked), entity[1], gold, path_of(kind, where) if kind else ())


def path_of(kind: str, where: str = "type of question") -> tuple[tuple[str, bool], ...]:
    """Return the relations to follow for a type of question, such as ``movie_to_actor_to_movie``.

    Examples
    --------
    >>> path_of("movie_to_actor_to_movie")
    (('starred_actors', True), ('starred_actors', False))
    """
    roles = [_CALLED.get(role, role) for role in kind.strip().split("_to_")]
    path = []
    for source, target in itertools.pairwise(roles):
        relation = _RELATIONS.get(target if source == "movie" else source)
        if relation is None or (source == "movie") == (target == "movie"):
            raise InvalidInput(f"{where}: {kind!r} is no type of question")
        path.append((relation, source == "movie"))
    return tuple(path)
