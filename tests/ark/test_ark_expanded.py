"""`Expand` over agents: what they selected stays known by its votes."""

from __future__ import annotations

from ark_support import Follows, films, index_of, selecting

from graphret.ark import Ark, ArkSettings
from graphret.expansion import Expand
from graphret.types import Hit

STORE = films()
INDEX = index_of(STORE)


def found(selected: list[str], k: int) -> dict[str, Hit]:
    agents = Ark(Follows(selecting(*selected)), STORE, INDEX, settings=ArkSettings(early_stop=False))
    return {hit.id: hit for hit in Expand(agents, STORE, INDEX).retrieve("films by Bob Bell", k)}


def test_a_seed_keeps_its_votes_and_how_agents_came_to_it() -> None:
    hits = found(["f4", "f1"], 6)
    for place, id_ in ((1, "f4"), (2, "f1")):
        seed, *others = hits[id_].evidence
        [votes] = [one for one in others if one.kind == "votes"]
        assert (seed.kind, seed.rank, votes.kind, votes.rank) == ("seed", place, "votes", place)
        assert votes.properties == {"votes": 3, "of": 3, "agents": [1, 2, 3]}
        assert ("neighbor", "p1", "directed_by") in [(one.kind, one.source, one.relation) for one in others]
        assert [one for one in hits[id_].evidence if one.kind in ("seed", "fill")] == [seed]
    brought = [hit for hit in hits.values() if hit.id not in ("f4", "f1")]
    assert brought
    assert not [one for hit in brought for one in hit.evidence if one.kind == "votes"]


def test_each_reason_stands_once() -> None:
    for hit in found(["p1", "f1"], 5).values():
        told = [one.to_dict() for one in hit.evidence]
        assert all(told.count(one) == 1 for one in told)
