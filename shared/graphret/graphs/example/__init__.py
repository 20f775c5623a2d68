"""A small real graph in the package; ATTRIBUTION.md has its source."""

from pathlib import Path

#: An excerpt of MetaQA's knowledge base: 549 triples about 44 films, CC BY 3.0.
KB = Path(__file__).parent / "kb.txt"

#: What people call its relations and labels: a model of the file that
#: `graphret.planning.PathPlanner` reads.
ALIASES = KB.with_name("aliases.yaml")
