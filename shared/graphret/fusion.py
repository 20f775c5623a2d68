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
    """Fuse lists by weighted reciprocal ranks (Cormack et al. 2009).

    ``score(d) = Σ_l weight_l / (rrf_k + rank_l(d))``. The lists have hits, best first;
    `names` and `weights` are the name of each in the evidence, and its weight. Hits
    that only filled up a list are ranked below all others. Returns every node of any
    list, best first, ties by id; its evidence has its rank in each list, then the
    evidence of these.
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

    selected, fill_hits = (
        fused([[hit for hit in hits if hit.fill is fill] for hits in lists])
        for fill in (False, True)
    )
    return filled(selected, fill_hits, len(selected) + len(fill_hits))


def filled(
    hits: Sequence[Hit], more: Sequence[Hit], k: int, *, mark: bool = True
) -> list[Hit]:
    """Return `hits` and, below them, others from `more` up to `k`.

    The added hits get evidence ``fill`` if `mark`. Their scores keep their order and
    stay at or below the last score of `hits`.
    """
    if not hits:
        return list(more[:k])
    seen = {hit.id for hit in hits}
    out = list(hits[:k])
    floor = out[-1].score
    for hit in more:
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


#: The place of a node in a list: its position, from 1, and the number of the list.
_Place: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class VotedNode:
    """A node in a vote: its voters, from 0, and its earliest position, from 1."""

    id: str
    voters: tuple[int, ...]
    position: int

    @property
    def votes(self) -> int:
        """The number of lists with the node."""
        return len(self.voters)

    def to_dict(self) -> dict[str, Any]:
        """Return the vote as JSON values."""
        return {
            "id": self.id,
            "votes": self.votes,
            "position": self.position,
            "voters": list(self.voters),
        }


def vote(lists: Sequence[Iterable[str]]) -> list[VotedNode]:
    """Merge the voters' ordered lists of node ids into one ranking (ARK, section 3.2).

    Nodes are ranked by the number of lists that have them, then by their earliest
    position in any, then by the order of the lists. A repeated node counts at its first
    place in a list.

    Examples
    --------
    >>> [ranked.id for ranked in vote([["a", "b"], ["b"], ["c", "b"]])]
    ['b', 'a', 'c']
    """
    places = sorted(_places(lists).items(), key=lambda item: _rank(item[1]))
    return [
        VotedNode(node, tuple(number for _, number in at), min(at)[0])
        for node, at in places
    ]


def settled(lists: Sequence[Sequence[str]], running: Iterable[int]) -> bool:
    """Whether the first place of a vote is certain, however the running lists grow.

    `lists` are the selections of each voter so far, `running` the numbers of those that
    may still grow at their ends. The test is exact: if it is false, the running lists
    can continue so that another node comes first.
    """
    growing = set(running)
    if not growing:
        return True
    places = _places(lists)
    following = [(len(lists[number]) + 1, number) for number in sorted(growing)]
    leader, *challengers = sorted(places.values(), key=_rank) or [[]]
    best_ranks = [_rank(following)]  # of a node that nobody has selected yet
    for challenger in challengers:
        voters = {number for _, number in challenger}
        gained = (place for place in following if place[1] not in voters)
        best_ranks.append(_rank([*challenger, *gained]))
    return bool(leader) and _rank(leader) <= min(best_ranks)


def _rank(places: Sequence[_Place]) -> tuple[int, ...]:
    """Return the key that a vote sorts nodes by; further places never increase it."""
    return (-len(places), *min(places))


def _places(lists: Sequence[Iterable[str]]) -> dict[str, list[_Place]]:
    places: dict[str, list[_Place]] = {}
    for number, ids in enumerate(lists):
        for position, node in enumerate(dict.fromkeys(ids), start=1):
            places.setdefault(node, []).append((position, number))
    return places
