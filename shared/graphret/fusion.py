"""Fusion of ranked lists, as pure functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from graphret.types import Evidence, Hit, Node


def reciprocal_rank(
    lists: Sequence[Sequence[Hit]],
    names: Sequence[str],
    weights: Sequence[float],
    rrf_k: float = 60.0,
) -> list[Hit]:
    """Fuse by weighted reciprocal ranks: ``score(d) = Σ_l weight_l / (rrf_k +
    rank_l(d))`` (Cormack et al. 2009).

    The lists have hits, best first; `names` and `weights` are what the evidence calls
    each, and how much it counts. What a list was only filled up with says nothing of
    its own, and is ranked below what any of them found. Returns every node of any list,
    best first, ties by id; its evidence has its rank in each, then what they said of
    it.
    """

    def fused(lists: Sequence[Sequence[Hit]]) -> list[Hit]:
        scores: dict[str, float] = defaultdict(float)
        nodes: dict[str, Node] = {}
        ranks: dict[str, list[Evidence]] = defaultdict(list)
        inner: dict[str, dict[Evidence, None]] = defaultdict(dict)
        for hits, weight, name in zip(lists, weights, names, strict=True):
            for rank, hit in enumerate(hits, start=1):
                scores[hit.id] += weight / (rrf_k + rank)
                nodes.setdefault(hit.id, hit.node)
                ranks[hit.id].append(Evidence("rank", rank=rank, retriever=name))
                inner[hit.id].update(dict.fromkeys(hit.evidence))
        order = sorted(scores, key=lambda node_id: (-scores[node_id], node_id))
        return [Hit(nodes[i], scores[i], (*ranks[i], *inner[i])) for i in order]

    found, rest = (
        fused([[hit for hit in hits if hit.fill is fill] for hits in lists])
        for fill in (False, True)
    )
    return filled(found, rest, len(found) + len(rest))


def filled(
    hits: Sequence[Hit], others: Sequence[Hit], k: int, *, mark: bool = True
) -> list[Hit]:
    """Return `hits` and, below them, what `others` adds up to `k`, with evidence
    ``fill`` unless told not to `mark` it.

    The scores of what is added keep its order and stay at or below the last score of
    `hits`.
    """
    if not hits:
        return list(others[:k])
    seen = {hit.id for hit in hits}
    out = list(hits[:k])
    floor = out[-1].score
    for hit in others:
        if len(out) >= k:
            break
        if hit.id not in seen:
            evidence = (
                (*hit.evidence, Evidence("fill"))
                if mark and not hit.fill
                else hit.evidence
            )
            floor = min(hit.score, floor)
            out.append(replace(hit, score=floor, evidence=evidence))
    return out


#: Where one list has a node: the position in it, from 1, and the number of the list.
_Place: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class VotedNode:
    """A node in a vote: the numbers of the lists that have it, from 0, and its earliest
    position in any, from 1.
    """

    id: str
    voters: tuple[int, ...]
    position: int

    @property
    def votes(self) -> int:
        """How many lists have it."""
        return len(self.voters)

    def to_dict(self) -> dict[str, Any]:
        """The vote as JSON values."""
        return {
            "id": self.id,
            "votes": self.votes,
            "position": self.position,
            "voters": list(self.voters),
        }


def vote(lists: Sequence[Iterable[str]]) -> list[VotedNode]:
    """Merge ordered lists of node ids, what each voter selected, into one ranking (ARK,
    section 3.2).

    It is by the number of lists that have the node, then by its earliest position in
    any of them, then by the order of the lists. A node that a list repeats counts at
    its first place.

    Examples
    --------
    >>> [v.id for v in vote([["a", "b"], ["b"], ["c", "b"]])]
    ['b', 'a', 'c']
    """
    places = sorted(_places(lists).items(), key=lambda item: _rank(item[1]))
    return [
        VotedNode(node, tuple(number for _, number in at), min(at)[0])
        for node, at in places
    ]


def settled(lists: Sequence[Sequence[str]], running: Iterable[int]) -> bool:
    """Whether the first place of a vote is certain, whatever is still appended to the
    lists that are `running`.

    `lists` are what each voter has selected so far, `running` the numbers of those that
    may still grow, at their ends. It is exact: where it is false, the running lists can
    go on so that another comes first.
    """
    growing = set(running)
    if not growing:
        return True
    places = _places(lists)
    following = [(len(lists[number]) + 1, number) for number in sorted(growing)]
    first, *others = sorted(places.values(), key=_rank) or [[]]
    best = [_rank(following)]  # of a node that nobody has selected yet
    for other in others:
        has = {number for _, number in other}
        best.append(
            _rank([*other, *(place for place in following if place[1] not in has)])
        )
    return bool(first) and _rank(first) <= min(best)


def _rank(places: Sequence[_Place]) -> tuple[int, ...]:
    """What a vote sorts nodes by: adding a place to a node never makes it greater."""
    return (-len(places), *min(places))


def _places(lists: Sequence[Iterable[str]]) -> dict[str, list[_Place]]:
    places: dict[str, list[_Place]] = {}
    for number, ids in enumerate(lists):
        for position, node in enumerate(dict.fromkeys(ids), start=1):
            places.setdefault(node, []).append((position, number))
    return places
