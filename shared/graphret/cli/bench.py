"""``graphret bench``: one command for each retrieval benchmark on public data."""

from __future__ import annotations

import json as json_
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from graphret.cli import options
from graphret.cli.console import progress, show
from graphret.cli.errors import writing_to
from graphret.cli.options import option
from graphret.methods import MethodOptions


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _decimals(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def _names(text: str) -> list[str]:
    return options.listed([text])


Folder = Annotated[
    Path,
    option("The data folder.", metavar="DIR", exists=True, file_okay=False),
]
File = Annotated[
    Path,
    option(
        "Questions with their candidate queries.",
        metavar="FILE",
        exists=True,
        dir_okay=False,
    ),
]
Cutoffs = Annotated[
    Any,
    option("The cutoffs of recall@k.", "-k", "--k", metavar="5,10,…", parser=_numbers),
]
Hops = Annotated[
    Any, option("Numbers of hops to include.", metavar="1,2,3", parser=_numbers)
]
Limit = Annotated[
    int | None, option("Ask only N questions; the corpus stays complete.", min=1)
]
Reranker = Annotated[
    str | None, option("A cross-encoder that reranks.", metavar="MODEL")
]
TrainingFile = Annotated[
    Path | None, option("A file to train the path ranking on.", metavar="FILE")
]
Seed = Annotated[int, option("The random seed.")]
Writer = Annotated[
    Path | None, option("A folder from 'train writer', for graphraft.", metavar="DIR")
]
ResultFile = Annotated[
    Path | None,
    option("Write the result as JSON; '-' is stdout.", "--json", metavar="FILE"),
]


def ottqa(
    data: Folder,
    split: Annotated[str, option("The split of the questions.")] = "dev",
    k: Cutoffs = None,
    limit: Limit = None,
    encoder: options.EncoderName = "default",
    reranker: Reranker = None,
    train: Annotated[
        str | None,
        option(
            "Train a ranking on a file of questions, or on OTT-QA's tuned half.",
            metavar="FILE|tuned",
        ),
    ] = None,
    json: ResultFile = None,
) -> None:
    """Questions over tables and passages: OTT-QA."""
    from graphret.evaluation import bench_ottqa

    with progress() as report:
        result = bench_ottqa(
            data,
            split,
            k=k,
            limit=limit,
            encoder=options.encoder_of(encoder),
            reranker=reranker,
            train=train,
            progress=report,
        )
    show_benchmark(result, json)


def multihop(
    data: Folder,
    split: Annotated[
        str | None, option("Only sets whose name ends with this.", metavar="ENDING")
    ] = None,
    k: Cutoffs = None,
    limit: Limit = None,
    encoder: options.EncoderName = "default",
    reranker: Reranker = None,
    train: Annotated[
        Path | None, option("Train a ranking on these questions.", metavar="FILE")
    ] = None,
    json: ResultFile = None,
) -> None:
    """Questions over several passages: HotpotQA, MuSiQue, 2WikiMultihopQA."""
    from graphret.evaluation import bench_multihop

    with progress() as report:
        result = bench_multihop(
            data,
            split,
            k=k,
            limit=limit,
            encoder=options.encoder_of(encoder),
            reranker=reranker,
            train=train,
            progress=report,
        )
    show_benchmark(result, json)


def general(
    data: Folder,
    sets: Annotated[
        list[str] | None,
        option("Only these sets; can be repeated.", "--set", metavar="NAME,…"),
    ] = None,
    k: Cutoffs = None,
    limit: Limit = None,
    encoder: options.EncoderName = "default",
    json: ResultFile = None,
) -> None:
    """Any corpus with labelled questions, such as your own."""
    from graphret.evaluation import bench_general

    with progress() as report:
        result = bench_general(
            data,
            k=k,
            limit=limit,
            sets=options.listed(sets or ()) or None,
            encoder=options.encoder_of(encoder),
            progress=report,
        )
    show_benchmark(result, json)


def sage(
    data: Folder,
    sets: Annotated[
        list[str] | None,
        option("Only these, several times or with commas.", "--set", metavar="NAME,…"),
    ] = None,
    split: Annotated[str, option("Of OTT-QA: the split.")] = "dev",
    k: Cutoffs = None,
    limit: Limit = None,
    percentiles: Annotated[
        Any,
        option(
            "Percentiles of similarity.",
            "--percentile",
            metavar="80,95,…",
            parser=_decimals,
        ),
    ] = "80,85,90,95,97,99",
    logics: Annotated[
        Any,
        option("By any signal, or by all.", "--logic", metavar="or,and", parser=_names),
    ] = "or,and",
    encoder: options.EncoderName = "default",
    seed: Seed = 0,
    html: Annotated[
        Path | None, option("Draw the result into a page.", metavar="FILE.html")
    ] = None,
    json: ResultFile = None,
) -> None:
    """SAGE's edges by percentile and logic: tables 3, 5 and 17 to 19."""
    from graphret.evaluation import bench_sage
    from graphret.explain import write_edge_page

    with progress() as report:
        result = bench_sage(
            data,
            k=k,
            limit=limit,
            sets=options.listed(sets or ()) or None,
            split=split,
            percentiles=percentiles,
            logics=logics,
            encoder=options.encoder_of(encoder),
            seed=seed,
            progress=report,
        )
    if html is not None:
        with writing_to(html):
            write_edge_page(html, result, title="SAGE's edges")
    show_benchmark(result, json)


def guard(
    data: Folder,
    limit: Annotated[int | None, option("Only the first N queries.", min=1)] = None,
    seed: Seed = 0,
    json: ResultFile = None,
) -> None:
    """The Cypher guard, against a server's verdicts and on seeded mistakes."""
    from graphret.evaluation import bench_guard

    with progress() as report:
        result = bench_guard(data, limit=limit, seed=seed, progress=report)
    show_benchmark(result, json)


def metaqa(
    data: Folder,
    split: Annotated[str, option("The split of the questions.")] = "dev",
    limit: Annotated[
        int | None, option("Draw N questions for each number of hops.", min=1)
    ] = None,
    method: Annotated[
        Literal["ark", "grasp", "graphraft"], option("The method to measure.")
    ] = "ark",
    hops: Hops = "1,2,3",
    aliases: Annotated[
        Path | None,
        option("Synonyms for relations and labels.", metavar="FILE.yaml"),
    ] = None,
    train: Annotated[
        float | None,
        option("Share of the training questions to train on.", min=0, max=1),
    ] = None,
    writer: Writer = None,
    model: Annotated[
        str | None, option("A chat model; without one, rules decide.", metavar="NAME")
    ] = None,
    base_url: Annotated[
        str | None, option("The model's OpenAI-compatible endpoint.", metavar="URL")
    ] = None,
    seed: Seed = 0,
    json: ResultFile = None,
) -> None:
    """Questions of one to three hops over films: MetaQA."""
    from graphret.evaluation import bench_metaqa

    chosen = MethodOptions(model=model, base_url=base_url)
    with progress() as report:
        result = bench_metaqa(
            data,
            split,
            limit,
            method=method,
            hops=hops,
            aliases=aliases,
            train=train,
            writer=writer,
            model=chosen.chat_model(),
            settings=chosen.ark_settings(),
            seed=seed,
            progress=report,
        )
    show_benchmark(result, json)


def ark(
    graph: options.Graph,
    qa: Annotated[
        Path,
        option('Questions: {"question": "…", "answers": ["id", …]}.', metavar="FILE"),
    ],
    limit: Annotated[int | None, option("Only the first N questions.", min=1)] = None,
    model: Annotated[
        str | None,
        option(
            "A chat model or a trained student; without one, rules decide.",
            metavar="NAME|DIR",
        ),
    ] = None,
    base_url: Annotated[
        str | None, option("The model's OpenAI-compatible endpoint.", metavar="URL")
    ] = None,
    agents: Annotated[
        Any, option("Numbers of agents to compare.", metavar="1,2,3", parser=_numbers)
    ] = "1,2,3",
    steps: Annotated[
        Any,
        option("Step limits per agent to compare.", metavar="10,20", parser=_numbers),
    ] = "20",
    explorations: Annotated[
        Any,
        option(
            "Variants of the neighbourhood operation to compare.",
            "--exploration",
            metavar="full,no_query,no_filters,off",
            parser=_names,
        ),
    ] = "full",
    temperature: Annotated[
        float, option("The model's sampling temperature.", min=0)
    ] = 0.7,
    aliases: Annotated[
        Path | None, option("Synonyms for names in the graph.", metavar="FILE.yaml")
    ] = None,
    seed: Seed = 0,
    json: ResultFile = None,
) -> None:
    """ARK by number of agents, steps, operations and merging: its tables 2, 3 and 8."""
    from graphret.ark import Ark, ArkSettings, ScriptedExplorer
    from graphret.evaluation import bench_ark
    from graphret.methods import opened_graph
    from graphret.training import read_questions

    questions = read_questions(qa, limit)
    chosen = MethodOptions(model=model, base_url=base_url)
    driver = chosen.chat_model() or ScriptedExplorer(aliases=aliases)
    told = chosen.ark_settings()
    with opened_graph(graph) as opened, progress() as report:

        def ark_of(settings: ArkSettings) -> Ark:
            return Ark(
                driver,
                opened.store,
                opened.index,
                settings=replace(
                    told,
                    n_agents=settings.n_agents,
                    max_steps=settings.max_steps,
                    early_stop=settings.early_stop,
                    exploration=settings.exploration,
                ),
                temperature=temperature,
            )

        result = bench_ark(
            ark_of,
            questions,
            agents=agents,
            steps=steps,
            explorations=explorations,
            seed=seed,
            progress=report,
        )
    show_benchmark(result, json)


def linking(
    graph: options.Graph,
    qa: Annotated[
        Path,
        option('Questions: {"question": "…", "answers": ["id", …]}.', metavar="FILE"),
    ],
    limit: Annotated[int | None, option("Only the first questions.", min=1)] = None,
    encoder: Annotated[
        str | None,
        option("An embedding model for nearest nodes; else words.", metavar="NAME"),
    ] = None,
    neighbors: Annotated[
        Any,
        option("Numbers of nearest nodes.", metavar="2,5", parser=_numbers),
    ] = "2,5",
    model: Annotated[
        str | None, option("A chat model that names entities.", metavar="NAME")
    ] = None,
    base_url: Annotated[
        str | None, option("An OpenAI-compatible endpoint for --model.", metavar="URL")
    ] = None,
    aliases: Annotated[
        Path | None, option("Synonyms for names in the graph.", metavar="FILE.yaml")
    ] = None,
    json: ResultFile = None,
) -> None:
    """Entities of questions: names, a model, nearest nodes (GraphRAFT's figure 5)."""
    from graphret.evaluation import bench_linking
    from graphret.methods import opened_graph
    from graphret.planning import PathPlanner
    from graphret.training import read_questions

    questions = read_questions(qa, limit)
    chat = MethodOptions(model=model, base_url=base_url).chat_model()
    with opened_graph(graph, encoder) as opened, progress() as report:
        names = opened.index if opened.store.local_graph() is None else None
        result = bench_linking(
            PathPlanner(opened.store, names, aliases=aliases),
            opened.index,
            questions,
            model=chat,
            neighbors=neighbors,
            progress=report,
        )
    show_benchmark(result, json)


def plans(
    data: Folder,
    limit: Annotated[
        int | None, option("Only the first N questions of each domain.", min=1)
    ] = None,
    json: ResultFile = None,
) -> None:
    """Plans for questions with conditions, sorting and negation."""
    from graphret.evaluation import bench_plans

    with progress() as report:
        result = bench_plans(data, limit, progress=report)
    show_benchmark(result, json)


def spark(
    data: Folder,
    limit: Annotated[
        int | None,
        option("At most N queries per database and questions per hop count.", min=1),
    ] = None,
    graph: Annotated[
        str | None,
        option("An empty Neo4j to run on; Ladybug by default.", metavar="WHERE"),
    ] = None,
    model: Annotated[
        str | None, option("A chat model that writes the plans.", metavar="NAME")
    ] = None,
    base_url: Annotated[
        str | None, option("The model's OpenAI-compatible endpoint.", metavar="URL")
    ] = None,
    hops: Hops = "1,2,3",
    seed: Seed = 0,
    json: ResultFile = None,
) -> None:
    """SPARK's queries on text2cypher, and its plans for MetaQA."""
    from graphret.evaluation import bench_spark

    chat = MethodOptions(model=model, base_url=base_url).chat_model()
    with progress() as report:
        result = bench_spark(
            data,
            limit,
            graph=graph,
            model=chat,
            hops=hops,
            seed=seed,
            progress=report,
        )
    show_benchmark(result, json)


def paths(data: File, train: TrainingFile = None, json: ResultFile = None) -> None:
    """The ranking of candidate queries, from a file in GraphRAFT's layout."""
    from graphret.evaluation import bench_paths

    with progress() as report:
        result = bench_paths(data, train, progress=report)
    show_benchmark(result, json)


def graphraft(
    data: File,
    writer: Writer = None,
    train: TrainingFile = None,
    limit: Annotated[int | None, option("Only the first N questions.", min=1)] = None,
    json: ResultFile = None,
) -> None:
    """The ranking of candidate queries by GraphRAFT's trained writer."""
    from graphret.evaluation import bench_graphraft

    with progress() as report:
        result = bench_graphraft(data, writer, train, limit, progress=report)
    show_benchmark(result, json)


#: The benchmarks, by the names of their commands.
BENCHMARKS: Mapping[str, Callable[..., None]] = {
    "ottqa": ottqa,
    "multihop": multihop,
    "general": general,
    "sage": sage,
    "guard": guard,
    "metaqa": metaqa,
    "ark": ark,
    "linking": linking,
    "plans": plans,
    "spark": spark,
    "paths": paths,
    "graphraft": graphraft,
}


def show_benchmark(result: dict[str, Any], file: Path | None) -> None:
    """Print a result, as JSON if the file is ``-``; otherwise also write the file."""
    from graphret.evaluation import render

    to_stdout = file == Path("-")
    show(to_stdout, result, render(result))
    if file is not None and not to_stdout:
        with writing_to(file):
            text = json_.dumps(result, indent=2, ensure_ascii=False) + "\n"
            file.write_text(text, encoding="utf-8")
