"""Options that several commands share, and what they mean."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from graphret.errors import InvalidInput
from graphret.methods import BASELINES, MethodOptions, Preset, folder_of

if TYPE_CHECKING:
    from graphret.corpus import MetadataExtractor
    from graphret.sage import SageGraph
    from graphret.stores.neo4j.layout import PropertyNames

OnFailure = Literal["fallback", "raise"]


def option(
    help: str,
    *names: str,
    metavar: str | None = None,
    panel: str | None = None,
    **more: Any,
) -> Any:
    """Return an option of a command, in the group `panel` of its help.

    Without `names`, it is named after the parameter.
    """
    return typer.Option(
        *names, metavar=metavar, help=help, rich_help_panel=panel, **more
    )


#: Groups of options in the help of ``query``, by the methods that take these options.
SAGE, ARK, SPARK, GRASP, RAFT = (
    f"With --method {name}" for name in ("sage", "ark", "spark", "grasp", "graphraft")
)
PLANNERS, PATHS, HINTED = (
    f"{SPARK} or grasp",
    f"{GRASP} or graphraft",
    f"{ARK}, spark or grasp",
)
FIELDED = "With --method mfar or grasp"
AGENTS, EXPANDERS = f"{ARK}, react or reflexion", f"{SAGE}, expand or spark"
WALKERS, MODELS = (
    f"{ARK}, grasp or graphraft",
    (f"{ARK}, spark, grasp, graphraft or a baseline"),
)
TABLES, LLM = "Tables", "With --metadata llm"
WHERE = "A folder, a Ladybug file, or the address of a Neo4j."
_SOURCES = "Files (.jsonl .csv .tsv .md .txt .html .rst .ipynb) and folders of them."

Sources = Annotated[
    list[str], typer.Argument(metavar="SOURCE...", help=_SOURCES, show_default=False)
]
Encoding = Annotated[
    str | None,
    option("The files' encoding; UTF-8 or detected by default.", metavar="NAME"),
]
LiteralQuotes = Annotated[
    bool,
    option("Treat quotes in .csv and .tsv as ordinary characters.", "--literal-quotes"),
]
Strict = Annotated[
    bool,
    option("Stop at any file or row that cannot be read as it is.", "--strict"),
]
Folder = Annotated[
    str, option("A folder written by graphret.", "--graph", metavar="DIR")
]
Graph = Annotated[str, option(WHERE, "--graph", metavar="WHERE")]
NameProperty = Annotated[
    list[str] | None,
    option(
        "For Neo4j: the property that names nodes, KEY or LABEL=KEY; can be repeated.",
        "--name-property",
        metavar="KEY",
    ),
]
ReviewForm = Annotated[
    Literal["property", "table", "nodes"],
    option("What Amazon's reviews in STaRK become.", "--reviews"),
]
JsonFlag = Annotated[bool, option("Print the result as JSON.", "--json")]
EncoderName = Annotated[
    str,
    option(
        "An embedding model by name or path, 'default', or 'none' for words only.",
        metavar="NAME",
    ),
]
Cluster = Annotated[
    str | None,
    option("Run on a Ray cluster; 'local' is this machine.", metavar="ADDRESS"),
]
Extractor = Annotated[
    Literal["heuristic", "llm"],
    option("How to find topics, entities and other metadata.", "--metadata"),
]
ModelName = Annotated[str | None, option("The model's name.", "--model", panel=LLM)]
BaseUrl = Annotated[
    str | None,
    option("An OpenAI-compatible endpoint, ending in /v1.", "--base-url", panel=LLM),
]
Planning = Annotated[
    str | None,
    option(
        "A chat model; without one, rules decide.",
        "--model",
        metavar="NAME",
        panel=MODELS,
    ),
]
PlanningUrl = Annotated[
    str | None,
    option("The model's OpenAI-compatible endpoint.", "--base-url", panel=MODELS),
]
Aliases = Annotated[
    Path | None,
    option(
        "Synonyms for names in the graph.",
        "--aliases",
        metavar="FILE.yaml",
        panel=WALKERS,
    ),
]
Scorer = Annotated[
    Path | None,
    option("A file from 'train paths'.", "--scorer", metavar="FILE.npz", panel=PATHS),
]
Agents = Annotated[int, option("Number of agents.", panel=ARK, min=1)]
AgentPrompt = Annotated[
    Literal["full", "short"] | None,
    option(
        "What agents are told; 'short' is for small models. By default as a student was"
        " trained, otherwise full.",
        "--prompt",
        panel=ARK,
    ),
]
Steps = Annotated[int, option("Maximum replies per agent.", panel=AGENTS, min=1)]
ShowValues = Annotated[
    bool, option("Show the model values from the graph as examples.", panel=PLANNERS)
]
RepairCalls = Annotated[
    int,
    option("How often the model may retry, given the error.", panel=SPARK, min=0),
]
GraspFile = Annotated[
    Path | None, option("A file from 'tune'.", metavar="FILE.json", panel=GRASP)
]
WriterFolder = Annotated[
    Path | None, option("A folder from 'train writer'.", metavar="DIR", panel=RAFT)
]
Guidance = Annotated[
    str | None,
    option(
        "Metapaths, rules and example plans for --model.",
        metavar="FILE.json|amazon|mag|prime",
        panel=GRASP,
    ),
]
FieldsFolder = Annotated[
    Path | None, option("A folder from 'train fields'.", metavar="DIR", panel=FIELDED)
]
PresetName = Annotated[
    Preset, option("'paper' keeps to the papers' algorithms and defaults.", "--preset")
]
LlmCache = Annotated[
    Path | None,
    option("A folder to cache the model's replies.", "--llm-cache", panel=LLM),
]


def listed(values: Iterable[str]) -> list[str]:
    """Return the names in the values of an option, several in one with commas."""
    return [name.strip() for value in values for name in value.split(",")]


def names_of(values: list[str] | None) -> PropertyNames | None:
    """Return the properties in ``--name-property``, by label if labels are given."""
    if not values:
        return None
    by_label = [value.partition("=") for value in values if "=" in value]
    if not by_label:
        return values
    if len(by_label) < len(values):
        raise InvalidInput(
            "--name-property: expected either KEY or LABEL=KEY throughout, got both:"
            f" {', '.join(values)}"
        )
    names: dict[str, list[str]] = {}
    for label, _, key in by_label:
        names.setdefault(label, []).append(key)
    return names


def encoder_of(name: str) -> str | None:
    return None if name == "none" else name


def metadata_of(
    kind: str,
    model: str | None,
    base_url: str | None,
    cache: Path | None,
    report: Any,
    preset: Preset = "default",
) -> MetadataExtractor:
    from graphret.corpus import HeuristicMetadata
    from graphret.corpus.llm_metadata import LLMMetadata
    from graphret.corpus.metadata_prompts import DEFAULT_PROMPT, PAPER_PROMPT

    if (kind == "llm") != bool(model) or (not model and (base_url or cache)):
        raise InvalidInput(
            "--metadata llm needs --model, and --model, --base-url and --llm-cache need"
            " --metadata llm"
        )
    chat = MethodOptions(model=model, base_url=base_url).chat_model()
    if chat is None:
        return HeuristicMetadata()
    prompt = PAPER_PROMPT if preset == "paper" else DEFAULT_PROMPT
    return LLMMetadata(
        chat, cache=cache, progress=partial(report, "describe"), prompt=prompt
    )


def refuse_options_of_others(context: typer.Context, *methods: str) -> None:
    """Refuse options on the command line that none of some methods takes.

    The panel of an option in the help names the methods that take it.
    """
    names = {*methods, *(["baseline"] if {*methods} & {*BASELINES} else [])}
    for parameter in context.command.params:
        panel = getattr(parameter, "rich_help_panel", None)
        source = context.get_parameter_source(parameter.name or "")
        if (
            panel
            and names.isdisjoint(re.split(r"[ ,]+", panel))
            and source is not None
            and source.name != "DEFAULT"
        ):
            raise InvalidInput(
                f"{parameter.opts[-1]} needs {panel.removeprefix('With ')}"
            )


def open_graph(where: str, **options: Any) -> SageGraph:
    """Open the document graph at WHERE, verifying all checksums."""
    from graphret.sage import SageGraph

    return SageGraph.load(folder_of(where), **options)
