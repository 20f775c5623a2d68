"""Options that several commands have, and what they mean."""

from __future__ import annotations

import re
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
    """Return an option of a command: `names` where they are not the parameter's,
    `panel` the group in the help.
    """
    return typer.Option(
        *names, metavar=metavar, help=help, rich_help_panel=panel, **more
    )


#: Groups of options in the help of ``query``: the methods that one names are those that
#: have its options.
SAGE, ARK, SPARK, GRASP, RAFT = (
    f"With --method {name}" for name in ("sage", "ark", "spark", "grasp", "graphraft")
)
PLANNERS, PATHS, HINTED = (
    f"{SPARK} or grasp",
    f"{GRASP} or graphraft",
    f"{ARK}, spark or grasp",
)
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
    option("Of the files; by default UTF-8, or what is found.", metavar="NAME"),
]
LiteralQuotes = Annotated[
    bool, option("Quotes in .csv and .tsv are characters.", "--literal-quotes")
]
Strict = Annotated[
    bool,
    option("Stop at a file or row that cannot be read as it is.", "--strict"),
]
Folder = Annotated[
    str, option("A folder that graphret wrote.", "--graph", metavar="DIR")
]
Graph = Annotated[str, option(WHERE, "--graph", metavar="WHERE")]
NameProperty = Annotated[
    list[str] | None,
    option(
        "Of a Neo4j: what names its nodes, KEY or LABEL=KEY; repeat it for more.",
        "--name-property",
        metavar="KEY",
    ),
]
ReviewForm = Annotated[
    Literal["property", "table", "nodes"],
    option("What Amazon's reviews in STaRK become.", "--reviews"),
]
JsonFlag = Annotated[bool, option("Print one JSON object.", "--json")]
EncoderName = Annotated[
    str,
    option("A model by name or path; 'default'; 'none' to go without.", metavar="NAME"),
]
Cluster = Annotated[
    str | None,
    option("Work on a Ray cluster; 'local' is one of this machine.", metavar="ADDRESS"),
]
Extractor = Annotated[
    Literal["heuristic", "llm"],
    option("What finds topics, entities and the like.", "--metadata"),
]
ModelName = Annotated[str | None, option("The model's name.", "--model", panel=LLM)]
BaseUrl = Annotated[
    str | None,
    option("An OpenAI-compatible endpoint, ending in /v1.", "--base-url", panel=LLM),
]
Planning = Annotated[
    str | None,
    option("A chat model; else rules decide.", "--model", metavar="NAME", panel=MODELS),
]
PlanningUrl = Annotated[
    str | None,
    option("Of --model: an OpenAI-compatible endpoint.", "--base-url", panel=MODELS),
]
Aliases = Annotated[
    Path | None,
    option("What people call things.", "--aliases", metavar="FILE.yaml", panel=WALKERS),
]
Scorer = Annotated[
    Path | None,
    option("What train paths wrote.", "--scorer", metavar="FILE.npz", panel=PATHS),
]
Agents = Annotated[int, option("How many explore at once.", panel=ARK, min=1)]
Steps = Annotated[int, option("Replies that each may take.", panel=AGENTS, min=1)]
ShowValues = Annotated[
    bool, option("Let the model see values of the graph, as examples.", panel=PLANNERS)
]
RepairCalls = Annotated[
    int,
    option("How often the model is asked again, with the error.", panel=SPARK, min=0),
]
GraspFile = Annotated[
    Path | None, option("What tune wrote.", metavar="FILE.json", panel=GRASP)
]
WriterFolder = Annotated[
    Path | None, option("What train writer wrote.", metavar="DIR", panel=RAFT)
]
PresetName = Annotated[
    Preset, option("'paper' for what the papers have, and nothing of ours.", "--preset")
]
LlmCache = Annotated[
    Path | None,
    option("A folder that keeps the model's answers.", "--llm-cache", panel=LLM),
]


def names_of(given: list[str] | None) -> PropertyNames | None:
    """Return what ``--name-property`` says: properties, or properties by label."""
    if not given:
        return None
    by_label = [one.partition("=") for one in given if "=" in one]
    if not by_label:
        return given
    if len(by_label) < len(given):
        raise InvalidInput(
            "--name-property: expected KEY or LABEL=KEY throughout, got both:"
            f" {', '.join(given)}"
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


def refuse_others(context: typer.Context, *methods: str) -> None:
    """Refuse, by name, an option that was given and whose panel in the help names none
    of some methods.
    """
    named = {*methods, *(["baseline"] if {*methods} & {*BASELINES} else [])}
    for parameter in context.command.params:
        panel = getattr(parameter, "rich_help_panel", None)
        source = context.get_parameter_source(parameter.name or "")
        if (
            panel
            and named.isdisjoint(re.split(r"[ ,]+", panel))
            and source is not None
            and source.name != "DEFAULT"
        ):
            raise InvalidInput(
                f"{parameter.opts[-1]}: it is for {panel.removeprefix('With ')}"
            )


def open_graph(where: str, **options: Any) -> SageGraph:
    """Open the graph at WHERE; every checksum is checked."""
    from graphret.sage import SageGraph

    return SageGraph.load(folder_of(where), **options)
