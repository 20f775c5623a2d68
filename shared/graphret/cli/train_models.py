"""``graphret train writer``, ``reasoner``, ``reranker`` and ``student``: language
models that are fine-tuned, and what two of them learn of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
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

Model = Annotated[
    str | None,
    option("A causal model: a name, a folder or a .gguf file.", metavar="NAME"),
]
OutFolder = Annotated[Path, option("Where the model goes.", metavar="DIR")]
Drawn = Annotated[int | None, option("Only so many examples, drawn at random.", min=2)]
Epochs = Annotated[float, option("How often each example is read.", min=0.01)]
Batch = Annotated[int, option("Examples at once.", min=1)]
Accumulated = Annotated[int, option("Batches that make one step.", min=1)]
Rate = Annotated[float, option("The learning rate.")]
Rank = Annotated[int, option("Of the adapters; alpha is twice it.", min=1)]
Tokens = Annotated[int, option("The longest example.", min=32)]
Merge = Annotated[bool, option("Write the whole model, not the adapter.", "--merge")]
Seed = Annotated[int, option("Of what is drawn.")]
Pooling = Literal["words", "sage", "grasp", "graphraft"]


def writer(
    data: Annotated[Path, option("What train queries wrote.", metavar="FILE.jsonl")],
    out: OutFolder,
    model: Model = None,
    limit: Drawn = None,
    test: Annotated[
        float, option("A share to keep apart, in DIR/test.jsonl.", min=0, max=0.9)
    ] = 0.0,
    epochs: Epochs = 3.0,
    batch: Batch = 8,
    rate: Rate = 5e-4,
    merge: Merge = False,
    seed: Seed = 0,
    json: options.JsonFlag = False,
) -> None:
    """Fine-tune a language model by LoRA, as GraphRAFT's writer; run again, it goes on
    where it was.
    """
    from graphret.training import LoRASettings, train_writer

    tuning = LoRASettings(
        model or LoRASettings.model, epochs, batch, rate, merge=merge, seed=seed
    )
    with progress() as report:
        tuned = train_writer(data, out, tuning, limit=limit, test=test, progress=report)
    _show_trained("writer", tuned, tuning, out, json)


def reasoner(
    data: Annotated[
        Path, option("Conversations with the right answer.", metavar="FILE.jsonl")
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
    """Fine-tune a language model by LoRA, as GraphRAFT's reasoner; run again, it goes
    on where it was.
    """
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
            "Where they go, for train reasoner; a file that is there is gone on with.",
            metavar="FILE.jsonl",
        ),
    ],
    writer: Annotated[
        Path | None, option("What train writer wrote.", metavar="DIR")
    ] = None,
    aliases: Annotated[
        Path | None, option("What people call things.", metavar="FILE.yaml")
    ] = None,
    limit: Limit = None,
    json: options.JsonFlag = False,
) -> None:
    """Write conversations in which the right nodes are chosen of those that queries
    found (GraphRAFT, 4.3).
    """
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
        f"of {done.found:,} of {done.questions:,} questions queries find something;"
        f" {done.kept:,} have a right answer in it, in {out}",
    )


def pools(
    graph: options.Graph,
    qa: Questions,
    out: Annotated[
        Path,
        option(
            "Where they go, for train reranker; a file that is there is gone on with.",
            metavar="FILE.jsonl",
        ),
    ],
    method: Annotated[
        Pooling, option("Whose hits are to be reranked; words searches the text.")
    ] = "grasp",
    encoder: EncoderName = None,
    depth: Annotated[int, option("Hits of a question.", min=2)] = 100,
    negatives: Annotated[int, option("Wrong ones that are kept.", min=1)] = 30,
    key_values: Annotated[
        bool,
        option("Nodes as lines of keys and values (GRASP, B.6).", "--key-values"),
    ] = False,
    limit: Limit = None,
    json: options.JsonFlag = False,
) -> None:
    """Collect what a method finds for labelled questions: right answers and the
    hardest wrong ones.
    """
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
    said = (
        f"{done.found:,} of {done.questions:,} questions have a right answer among the"
        f" best {depth}"
    )
    show(json, asdict(done), f"{said}; {done.kept:,} can be learned of, in {out}")


def reranker(
    data: Annotated[Path, option("What train pools wrote.", metavar="FILE.jsonl")],
    out: OutFolder,
    model: Model = None,
    instruction: Annotated[
        str | None,
        option("What a candidate is judged by; or amazon, mag or prime (GRASP, B.5)."),
    ] = None,
    three_turns: Annotated[
        bool,
        option("Ask by the paper's three turns (GRASP, B.5).", "--three-turns"),
    ] = False,
    group: Annotated[int, option("Candidates against each other.", min=2)] = 24,
    limit: Drawn = None,
    test: Annotated[
        float,
        option("A share to keep apart, which is measured on.", min=0, max=0.9),
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
    """Fine-tune a yes/no reranker listwise by LoRA (GRASP, 3.3); run again, it goes on
    where it was.
    """
    from graphret.rerank import PAPER_INSTRUCTIONS, Judgement
    from graphret.training import LoRASettings, train_reranker

    tuning = LoRASettings(
        *(model or LoRASettings.model, epochs, batch, rate, rank, merge, seed),
        accumulated=accumulated,
        schedule="cosine",
        max_tokens=max_tokens,
    )
    said = instruction or Judgement().instruction
    judgement = Judgement(PAPER_INSTRUCTIONS.get(said, said), three_turns)
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
            "Where they go, for train student; a file that is there is gone on with.",
            metavar="FILE.jsonl",
        ),
    ],
    model: Annotated[
        str | None,
        option("The teacher, a chat model; else rules decide.", metavar="NAME"),
    ] = None,
    base_url: Annotated[
        str | None, option("Of --model: an OpenAI-compatible endpoint.", metavar="URL")
    ] = None,
    runs: Annotated[int, option("Trajectories of a question.", min=1)] = 3,
    temperature: Annotated[float, option("Of the teacher.", min=0)] = 0.7,
    steps: Annotated[int, option("Replies of a trajectory.", min=1)] = 20,
    limit: Annotated[int, option("Questions at most, drawn at random.", min=1)] = 6_000,
    seed: Seed = 0,
    aliases: Annotated[
        Path | None, option("What people call things.", metavar="FILE.yaml")
    ] = None,
    json: options.JsonFlag = False,
) -> None:
    """Record how a teacher explores a graph (ARK, 4.3): 3 runs of a question at 0.7,
    nothing filtered.
    """
    from graphret.ark import Ark, ArkSettings, ScriptedExplorer
    from graphret.training.student import collect_trajectories, read_texts

    questions = read_texts(qa, limit, seed)
    chat = MethodOptions(model=model, base_url=base_url).chat_model()
    settings = ArkSettings(n_agents=runs, max_steps=steps, early_stop=False)
    with opened_graph(graph) as opened, writing_to(out), progress() as report:
        teacher = Ark(
            chat or ScriptedExplorer(aliases=aliases),
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
            "What train trajectories or query --record wrote.", metavar="FILE.jsonl"
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
    """Distil an exploring agent by LoRA (ARK, 4.3): ``query --method ark --model DIR``
    runs it.
    """
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


def spent(counts: Mapping[str, int], seconds: float, memory: int) -> str:
    """Say what a training took."""
    each = 1000 * seconds / max(counts["trained"], 1)
    held = f", at most {memory / 2**20:,.0f} MiB" if memory else ""
    return f"{seconds:,.1f} s, {each:,.1f} ms for each example{held}"


def _show_trained(
    what: str,
    tuned: FineTunedModel,
    asked: LoRASettings,
    out: Path,
    json: bool,
    metrics: Mapping[str, Mapping[str, float]] | None = None,
) -> None:
    """Print how a training went."""
    if tuned.tuning.batch < asked.batch:
        remark(
            f"a batch of {asked.batch} did not fit in memory: batches of"
            f" {tuned.tuning.batch} were used"
        )
    about: dict[str, Any] = {
        "counts": tuned.counts,
        "curve": tuned.curve,
        "seconds": round(tuned.seconds, 1),
        "memory": tuned.memory,
    }
    lines = [
        f"the {what} that {tuned.counts['trained']:,} examples made is in {out}",
        spent(tuned.counts, tuned.seconds, tuned.memory),
    ]
    for name, values in (metrics or {}).items():
        figures = ", ".join(f"{metric} {value:.1f}" for metric, value in values.items())
        lines.append(f"{name}, on the questions kept apart: {figures}")
    show(json, about | {"metrics": metrics} if metrics else about, "\n".join(lines))
