"""``graphret train writer``, ``reasoner``, ``reranker``, ``student`` and their data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from graphret.cli import options
from graphret.cli.console import progress, remark, show
from graphret.cli.errors import writing_to
from graphret.cli.options import option
from graphret.cli.query import EncoderName
from graphret.cli.train import Limit, Questions
from graphret.methods import MethodOptions, opened_graph

if TYPE_CHECKING:
    from graphret.training.lora import FineTunedModel, LoRASettings
    from graphret.training.trainer import TrainingRun

Model = Annotated[
    str | None,
    option("A causal language model: a name, folder or .gguf file.", metavar="NAME"),
]
OutFolder = Annotated[Path, option("The output folder for the model.", metavar="DIR")]
Drawn = Annotated[int | None, option("Only N randomly drawn examples.", min=2)]
Epochs = Annotated[float, option("Passes over the examples.", min=0.01)]
Batch = Annotated[int, option("Examples per batch.", min=1)]
Accumulated = Annotated[int, option("Batches per optimizer step.", min=1)]
Rate = Annotated[float, option("The learning rate.")]
Rank = Annotated[int, option("The adapters' rank; alpha is twice that.", min=1)]
Tokens = Annotated[int, option("Maximum tokens of an example.", min=32)]
Merge = Annotated[
    bool, option("Write the whole model instead of the adapter.", "--merge")
]
Seed = Annotated[int, option("The random seed.")]
Pooling = Literal["words", "sage", "grasp", "graphraft"]


def writer(
    data: Annotated[Path, option("A file from 'train queries'.", metavar="FILE.jsonl")],
    out: OutFolder,
    model: Model = None,
    limit: Drawn = None,
    test: Annotated[
        float, option("Share to hold out, in DIR/test.jsonl.", min=0, max=0.9)
    ] = 0.0,
    epochs: Epochs = 3.0,
    batch: Batch = 8,
    rate: Rate = 5e-4,
    merge: Merge = False,
    seed: Seed = 0,
    json: options.JsonFlag = False,
) -> None:
    """Fine-tune GraphRAFT's writer with LoRA; run again, it continues."""
    from graphret.training import LoRASettings, train_writer

    tuning = LoRASettings(
        model or LoRASettings.model, epochs, batch, rate, merge=merge, seed=seed
    )
    with progress() as report:
        tuned = train_writer(data, out, tuning, limit=limit, test=test, progress=report)
    _show_trained("writer", tuned, tuning, out, json)


def reasoner(
    data: Annotated[
        Path, option("Conversations with the correct answer.", metavar="FILE.jsonl")
    ],
    out: OutFolder,
    model: Model = None,
    limit: Drawn = None,
    epochs: Epochs = 3.0,
    batch: Batch = 8,
    rate: Rate = 5e-4,
    merge: Merge = False,
    seed: Seed = 0,
    json: options.JsonFlag = False,
) -> None:
    """Fine-tune GraphRAFT's reasoner with LoRA; run again, it continues."""
    from graphret.training import LoRASettings, train_reasoner

    tuning = LoRASettings(
        model or LoRASettings.model, epochs, batch, rate, merge=merge, seed=seed
    )
    with progress() as report:
        tuned = train_reasoner(data, out, tuning, limit=limit, progress=report)
    _show_trained("reasoner", tuned, tuning, out, json)


def conversations(
    graph: options.Graph,
    qa: Questions,
    out: Annotated[
        Path,
        option(
            "The output file, for 'train reasoner'; an existing one is continued.",
            metavar="FILE.jsonl",
        ),
    ],
    writer: Annotated[
        Path | None, option("A folder from 'train writer'.", metavar="DIR")
    ] = None,
    aliases: Annotated[
        Path | None, option("Synonyms for names in the graph.", metavar="FILE.yaml")
    ] = None,
    limit: Limit = None,
    json: options.JsonFlag = False,
) -> None:
    """Create training conversations for GraphRAFT's reasoner (GraphRAFT, 4.3)."""
    from graphret.graphraft import GraphRAFT
    from graphret.training import read_questions, write_conversations

    questions = read_questions(qa, limit)
    with opened_graph(graph) as opened, writing_to(out), progress() as report:
        raft = opened.retriever(
            "graphraft", MethodOptions(writer=writer, aliases=aliases)
        )
        assert isinstance(raft, GraphRAFT)
        done = write_conversations(
            raft, questions, out, progress=partial(report, "conversations")
        )
    show(
        json,
        asdict(done),
        f"queries find something for {done.found:,} of {done.questions:,} questions;"
        f" for {done.kept:,} it includes a correct answer, in {out}",
    )


def pools(
    graph: options.Graph,
    qa: Questions,
    out: Annotated[
        Path,
        option(
            "The output file, for 'train reranker'; an existing one is continued.",
            metavar="FILE.jsonl",
        ),
    ],
    method: Annotated[
        Pooling, option("The method to collect hits from; 'words' is text search.")
    ] = "grasp",
    encoder: EncoderName = None,
    depth: Annotated[int, option("Hits per question.", min=2)] = 100,
    negatives: Annotated[int, option("Wrong hits to keep per question.", min=1)] = 30,
    key_values: Annotated[
        bool,
        option("Write nodes as lines of keys and values (GRASP, B.6).", "--key-values"),
    ] = False,
    limit: Limit = None,
    json: options.JsonFlag = False,
) -> None:
    """Collect a method's correct and highest-ranked wrong hits for questions."""
    from graphret.index_retriever import IndexRetriever
    from graphret.rerank import HitTexts, KeyValueText
    from graphret.training import collect_pools, read_questions

    questions = read_questions(qa, limit)
    with opened_graph(graph, encoder) as opened, writing_to(out), progress() as report:
        retriever = (
            IndexRetriever(opened.index, opened.store)
            if method == "words"
            else opened.retriever(method)
        )
        text: HitTexts | None = KeyValueText(opened.store) if key_values else None
        done = collect_pools(
            retriever,
            questions,
            out,
            text=text,
            depth=depth,
            negatives=negatives,
            progress=partial(report, "pools"),
        )
    summary = (
        f"{done.found:,} of {done.questions:,} questions have a correct answer among"
        f" the best {depth}; {done.kept:,} can be trained on, in {out}"
    )
    show(json, asdict(done), summary)


def reranker(
    data: Annotated[Path, option("A file from 'train pools'.", metavar="FILE.jsonl")],
    out: OutFolder,
    model: Model = None,
    instruction: Annotated[
        str | None,
        option("What to judge candidates by; amazon, mag or prime for GRASP's (B.5)."),
    ] = None,
    three_turns: Annotated[
        bool,
        option("Ask in the paper's three turns (GRASP, B.5).", "--three-turns"),
    ] = False,
    group: Annotated[int, option("Candidates compared with each other.", min=2)] = 24,
    limit: Drawn = None,
    test: Annotated[
        float,
        option("Share to hold out and measure the model on.", min=0, max=0.9),
    ] = 0.0,
    epochs: Epochs = 2.0,
    batch: Batch = 1,
    accumulated: Accumulated = 16,
    rate: Rate = 3e-5,
    rank: Rank = 32,
    max_tokens: Tokens = 1024,
    merge: Merge = False,
    seed: Seed = 0,
    json: options.JsonFlag = False,
) -> None:
    """Fine-tune a yes/no reranker with LoRA (GRASP, 3.3); run again, it continues."""
    from graphret.rerank import PAPER_INSTRUCTIONS, Judgement
    from graphret.training import LoRASettings, train_reranker

    tuning = LoRASettings(
        *(model or LoRASettings.model, epochs, batch, rate, rank, merge, seed),
        accumulated=accumulated,
        schedule="cosine",
        max_tokens=max_tokens,
    )
    criterion = instruction or Judgement().instruction
    judgement = Judgement(PAPER_INSTRUCTIONS.get(criterion, criterion), three_turns)
    with progress() as report:
        done = train_reranker(
            data,
            out,
            tuning,
            judgement=judgement,
            group=group,
            limit=limit,
            test=test,
            progress=report,
        )
    _show_trained("reranker", done.tuned, tuning, out, json, done.metrics)


def trajectories(
    graph: options.Graph,
    qa: Annotated[
        Path,
        option('Questions, JSON Lines of {"question": "…"}.', metavar="FILE.jsonl"),
    ],
    out: Annotated[
        Path,
        option(
            "The output file, for 'train student'; an existing one is continued.",
            metavar="FILE.jsonl",
        ),
    ],
    model: Annotated[
        str | None,
        option("The teacher, a chat model; without one, rules decide.", metavar="NAME"),
    ] = None,
    base_url: Annotated[
        str | None, option("The model's OpenAI-compatible endpoint.", metavar="URL")
    ] = None,
    runs: Annotated[int, option("Trajectories per question.", min=1)] = 3,
    temperature: Annotated[
        float, option("The teacher's sampling temperature.", min=0)
    ] = 0.7,
    steps: Annotated[int, option("Maximum replies per trajectory.", min=1)] = 20,
    prompt: Annotated[
        Literal["full", "short"],
        option("What the agent is told; 'short' is for students with few parameters."),
    ] = "full",
    limit: Annotated[
        int, option("Maximum number of questions, drawn at random.", min=1)
    ] = 6_000,
    seed: Seed = 0,
    aliases: Annotated[
        Path | None, option("Synonyms for names in the graph.", metavar="FILE.yaml")
    ] = None,
    json: options.JsonFlag = False,
) -> None:
    """Record how a teacher explores a graph, to distil it (ARK, 4.3)."""
    from graphret.ark import Ark, ArkSettings, ScriptedExplorer
    from graphret.training.student import collect_trajectories, read_texts

    questions = read_texts(qa, limit, seed)
    chat = MethodOptions(model=model, base_url=base_url).chat_model()
    short = prompt == "short"
    settings = replace(
        ArkSettings.small() if short else ArkSettings(),
        n_agents=runs,
        max_steps=steps,
        early_stop=False,
    )
    with opened_graph(graph) as opened, writing_to(out), progress() as report:
        schema = opened.store.schema() if short else None
        teacher = Ark(
            chat or ScriptedExplorer(aliases=aliases, schema=schema),
            opened.store,
            opened.index,
            settings=settings,
            temperature=temperature,
        )
        done = collect_trajectories(
            teacher, questions, out, progress=partial(report, "explore")
        )
    show(
        json,
        asdict(done),
        f"{done.trajectories:,} trajectories of {done.questions:,} questions are in"
        f" {out}; {done.finished:,} were finished by the agent",
    )


def student(
    data: Annotated[
        Path,
        option(
            "A file from 'train trajectories' or 'query --record'.",
            metavar="FILE.jsonl",
        ),
    ],
    out: OutFolder,
    model: Model = None,
    limit: Drawn = None,
    epochs: Epochs = 1.0,
    batch: Batch = 1,
    accumulated: Accumulated = 1,
    rate: Rate = 1e-5,
    rank: Rank = 16,
    max_tokens: Tokens = 16_384,
    merge: Merge = False,
    seed: Seed = 0,
    json: options.JsonFlag = False,
) -> None:
    """Distil an exploring agent with LoRA (ARK, 4.3); 'query --model DIR' runs it."""
    from graphret.training import LoRASettings
    from graphret.training.student import train_student

    tuning = LoRASettings(
        *(model or LoRASettings.model, epochs, batch, rate, rank, merge, seed),
        accumulated=accumulated,
        max_tokens=max_tokens,
    )
    with progress() as report:
        tuned = train_student(data, out, tuning, limit=limit, progress=report)
    _show_trained("student", tuned, tuning, out, json)


def show_run(
    json: bool,
    first_line: str,
    run: TrainingRun,
    metrics: Mapping[str, Mapping[str, float]],
    about: Mapping[str, Any],
) -> None:
    """Print how a training went, and the metrics on the held-out questions, if any.

    The JSON has what is known `about` it besides.
    """
    milliseconds = 1000 * run.seconds / max(run.counts["trained"], 1)
    most = f", at most {run.memory / 2**20:,.0f} MiB" if run.memory else ""
    lines = [
        first_line,
        f"{run.seconds:,.1f} s, {milliseconds:,.1f} ms per example{most}",
    ]
    for name, values in metrics.items():
        figures = ", ".join(f"{metric} {value:.1f}" for metric, value in values.items())
        lines.append(f"{name}, on the held-out questions: {figures}")
    value = {
        "counts": run.counts,
        "curve": run.curve,
        "seconds": round(run.seconds, 1),
        "memory": run.memory,
    }
    show(json, value | dict(about), "\n".join(lines))


def _show_trained(
    what: str,
    tuned: FineTunedModel,
    requested: LoRASettings,
    out: Path,
    json: bool,
    metrics: Mapping[str, Mapping[str, float]] | None = None,
) -> None:
    """Print how the training went."""
    if tuned.tuning.batch < requested.batch:
        remark(
            f"a batch of {requested.batch} did not fit in memory: batches of"
            f" {tuned.tuning.batch} were used"
        )
    first_line = (
        f"the {what}, trained on {tuned.run.counts['trained']:,} examples, is in {out}"
    )
    about = {"metrics": metrics} if metrics else {}
    show_run(json, first_line, tuned.run, metrics or {}, about)
