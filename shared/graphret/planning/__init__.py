"""Plans over a graph, and planning without a model by paths that fit the words."""

from graphret.planning.graph_plan import Anchor, GraphPlan, Order, PlanHop, Target
from graphret.planning.matches import Bindings, PlanMatch
from graphret.planning.path_planner import PathPlanner
from graphret.planning.paths import PathSpace
from graphret.planning.patterns import Hop
from graphret.planning.planner import Planner, PlannerResult
from graphret.planning.queries import compile_plan, find_matches
from graphret.planning.scorer import PathScorer

__all__ = [
    "Anchor",
    "Bindings",
    "GraphPlan",
    "Hop",
    "Order",
    "PathPlanner",
    "PathScorer",
    "PathSpace",
    "PlanHop",
    "PlanMatch",
    "Planner",
    "PlannerResult",
    "Target",
    "compile_plan",
    "find_matches",
]
