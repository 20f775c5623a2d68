"""What each kind of link and each part of the coverage ranking is worth, on OTT-QA.

``python tools/ablation.py --data DIR`` prints the tables of docs/concepts/expansion.md:
one thing changed at a time, and at the end everything as it is by default. Settings
were chosen on one half of the tables; the figures are of the other.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphret.edges import EdgeTable, joined
from graphret.evaluation.dataset import HELD, Dataset
from graphret.evaluation.metrics import recall_at_k
from graphret.evaluation.ottqa import load_ottqa
from graphret.expansion import Coverage, Expand, Propagate, Ranking, SageRanking
from graphret.expansion.frontier import MENTIONS, SHARES_NAME, STRENGTH
from graphret.index_retriever import IndexRetriever
from graphret.retriever import Retriever
from graphret.sage import LinkSettings, SageGraph
from graphret.sage.links import name_links
from graphret.sage.settings import KIND_WEIGHTS
from graphret.search.encoder import as_encoder
from graphret.stores.memory import Graph, MemoryStore

KS = (5, 20, 100)


def link_variants(graph: SageGraph) -> Iterator[tuple[str, Retriever]]:
    """Yield retrievers with some kinds of links alone, and with each kind left out."""
    yield "no links: flat search", IndexRetriever(graph.index)
    chosen = {
        "`exact` alone": ("exact",),
        "`exact` and `alias`": ("exact", "alias"),
        **{
            f"all but `{kind}`": tuple(k for k in KIND_WEIGHTS if k != kind)
            for kind in KIND_WEIGHTS
        },
        "all kinds": tuple(KIND_WEIGHTS),
    }
    other_edges = _without(graph.edges, MENTIONS)
    for name, kinds in chosen.items():
        links = name_links(
            graph.nodes,
            LinkSettings(kind_weights={kind: KIND_WEIGHTS[kind] for kind in kinds}),
        )
        store = MemoryStore(
            Graph(graph.nodes, joined(len(graph.nodes), [other_edges, links]))
        )
        yield f"{name} ({len(links):,} links)", Expand(None, store, graph.index)


def ranking_variants(graph: SageGraph) -> Iterator[tuple[str, Retriever]]:
    """Yield retrievers with other rankings, and with one change to the default."""
    rankings: dict[str, Ranking] = {
        "`paper`": SageRanking(),
        "`propagate`": Propagate(),
        "coverage, pairs alone": Coverage(beam=0),
        **{
            f"coverage, weight {weight:g}": Coverage(weight=weight)
            for weight in (1, 2, 8)
        },
        "coverage, 10 seeds walked": Coverage(max_seeds=10),
        "coverage, no phrases": Coverage(phrases=0.0),
        "coverage, what names a page counts in full": Coverage(
            mention_source_weight=1.0
        ),
        "coverage, repeats count in full": Coverage(redundancy_penalty=0.0),
        "coverage, links count in full in every question": Coverage(trust=1.0),
        "coverage, no links by shared names": Coverage(
            strength={**STRENGTH, SHARES_NAME: 0.0}
        ),
        **{
            f"coverage, `{name}` links count too": Coverage(
                strength={**STRENGTH, name: 1.0}
            )
            for name in STRENGTH
            if name in graph.edges.relations
        },
        "`coverage`": Coverage(),
    }
    for name, ranking in rankings.items():
        yield name, graph.retriever(ranking)


def measure(
    dataset: Dataset, retriever: Retriever, ks: Sequence[int] = KS
) -> list[float]:
    """Return recall at each k, in percent, mean over the questions."""
    rankings = [
        (retriever.retrieve(question.text, max(ks)).ids, question.gold)
        for question in dataset.questions
    ]
    return [
        100 * float(np.mean([recall_at_k(ids, gold, k) for ids, gold in rankings]))
        for k in ks
    ]


def _without(edges: EdgeTable, relation: str) -> EdgeTable:
    places = np.flatnonzero(
        np.asarray([name != relation for name in edges.relations])[edges.relation]
    )
    return edges.take(places)


def main(argv: Sequence[str] | None = None) -> None:
    """Print both tables in Markdown."""
    parser = argparse.ArgumentParser(
        prog="python tools/ablation.py", description=__doc__
    )
    parser.add_argument(
        "--data",
        required=True,
        help="a folder in the layout of the public OTT-QA repository",
    )
    parser.add_argument(
        "--encoder", default=None, help="'default', or a model; none by default"
    )
    parser.add_argument(
        "--limit", type=int, default=None, help="the first questions of the half alone"
    )
    options = parser.parse_args(argv)
    dataset = load_ottqa(options.data)
    held_questions = tuple(
        question for question in dataset.questions if question.half == HELD
    )
    dataset = replace(dataset, questions=held_questions).limited(options.limit)
    encoder: Any = as_encoder(options.encoder)
    if encoder is not None:
        from graphret.search.encoder import CachedEncoder

        encoder = CachedEncoder(encoder)
    graph = SageGraph.from_nodes(dataset.nodes, encoder=encoder, metadata=None)
    print(f"{len(dataset.questions):,} questions over {len(graph):,} nodes")
    for title, variants in (("links", link_variants), ("ranking", ranking_variants)):
        print(f"\n| {title} | " + " | ".join(f"recall@{k}" for k in KS) + " |")
        print("| --- |" + " ---: |" * len(KS))
        for name, retriever in variants(graph):
            print(
                f"| {name} | "
                + " | ".join(f"{value:.1f}" for value in measure(dataset, retriever))
                + " |",
                flush=True,
            )


if __name__ == "__main__":
    main()
