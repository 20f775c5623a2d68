"""How a database runs the queries around a question's entities (section 5.3)."""

from __future__ import annotations

from dataclasses import dataclass

from graphret.graphraft.candidates import Candidate, CandidateFinder, GraphRAFTSettings
from graphret.graphraft.entities import mentioned_entities
from graphret.graphraft.path_writer import PathWriter
from graphret.planning import PathPlanner, compile_plan
from graphret.stores.profile import Profile, require_profiling


@dataclass(frozen=True, slots=True)
class ProfiledCandidate:
    """A candidate query, its probability by the question's words, and how it ran."""

    candidate: Candidate
    probability: float
    profile: Profile


def profile_candidates(
    planner: PathPlanner,
    question: str,
    most: int = 5,
    settings: GraphRAFTSettings = GraphRAFTSettings(),
) -> list[ProfiledCandidate]:
    """Run the likeliest queries of a question, and return how each ran in this order.

    What runs is what `GraphRAFT` runs: the plan of a candidate as one query, with ids
    as parameters.

    Parameters
    ----------
    planner
        Spots the names of a question, and ranks queries; over a database.
    most
        At most so many queries.
    settings
        Which queries are looked for, and the time-out of each.

    Raises
    ------
    InvalidInput
        When the planner's store answers no Cypher, is a view, or does not say how it
        answers.
    """
    database = require_profiling(planner.store)
    finder = CandidateFinder(database, planner.space, settings)
    candidates = finder.find(mentioned_entities(planner, question))
    writer = PathWriter(planner.space, planner.scorer)
    profiled = []
    for place, probability in writer.rank(question, candidates, most):
        one = candidates[place]
        cypher, parameters = compile_plan(
            one.plan, database, one.bindings, schema=finder.schema
        )
        profile = database.profile(cypher, parameters, timeout=settings.timeout)
        profiled.append(ProfiledCandidate(one, probability, profile))
    return profiled
