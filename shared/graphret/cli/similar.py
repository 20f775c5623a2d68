"""``graphret similar``: edges between similar nodes of a knowledge graph."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

from graphret.cli import options
from graphret.cli.console import show, stderr
from graphret.cli.options import option
from graphret.errors import InvalidInput
from graphret.methods import holds_documents

if TYPE_CHECKING:
    from graphret.sage import RichNodes, SimilaritySettings

_PROPERTIES = (
    "What is read of a node besides name and text; repeat it for more. By default all"
    " properties that may hold words."
)


def similar(
    graph: options.Graph,
    label: Annotated[
        list[str] | None,
        option("Only nodes that bear it; repeat it for more.", metavar="NAME"),
    ] = None,
    property: Annotated[
        list[str] | None, option(_PROPERTIES, "--property", metavar="KEY")
    ] = None,
    min_characters: Annotated[
        int, option("Only nodes with at least as long a text.", min=1)
    ] = 100,
    encoder: options.EncoderName = "default",
    percentile: Annotated[
        float, option("Candidates from this percentile on become edges.")
    ] = 95.0,
    neighbors: Annotated[
        int, option("Nearest neighbours of a node that are candidates.", min=1)
    ] = 20,
    name_property: options.NameProperty = None,
    estimate: Annotated[
        bool, option("Count nodes and candidates, and write nothing.", "--estimate")
    ] = False,
    json: options.JsonFlag = False,
) -> None:
    """Add IS_SIMILAR edges between nodes with similar, rich text to a graph."""
    from graphret.graphs.locations import changed, opened, place_of
    from graphret.sage import SimilaritySettings, link_similar, rich_nodes
    from graphret.search import DenseIndex, NodeText
    from graphret.search.encoder import as_encoder

    settings = SimilaritySettings(percentile=percentile, neighbors=neighbors)
    if encoder == "none":
        raise InvalidInput("--encoder none: similarity needs an encoder")
    if holds_documents(graph):
        raise InvalidInput(
            f"--graph {graph}: a graph of documents, which has similarity edges of its"
            " own (graphret build --percentile)"
        )
    embeds = None if estimate else as_encoder(encoder)  # before the graph is locked
    start = time.perf_counter()
    where, open_graph = place_of(graph), opened if estimate else changed
    with open_graph(graph, name_property=options.names_of(name_property)) as store:
        text = NodeText(properties=property or store.schema().textual_properties())
        rich = rich_nodes(store, text, labels=label, min_characters=min_characters)
        counts = _counts(rich, settings)
        lines = _lines(rich, min_characters, settings)
        if estimate:
            show(json, {"graph": where, **counts}, *lines, "nothing is written")
            return
        if not rich.nodes:
            raise InvalidInput(
                f"--min-characters {min_characters}: no node has as long a text"
            )
        with stderr().status(f"embedding {len(rich.nodes):,} nodes"):
            index = DenseIndex.build(rich.nodes, embeds, text=text)
        edges = link_similar(
            store, index, min_characters=min_characters, settings=settings
        )
    seconds = time.perf_counter() - start
    written = {"edges": edges, "seconds": round(seconds, 3)}
    done = f"{edges:,} IS_SIMILAR edges in {where}, {seconds:.1f} s"
    show(json, {"graph": where, **counts, **written}, *lines[:-1], done)


def _counts(rich: RichNodes, settings: SimilaritySettings) -> dict[str, Any]:
    """Return what is compared, as JSON values."""
    return {
        "labels": rich.borne,
        "rich": rich.rich,
        "nodes": len(rich.nodes),
        "candidates_at_most": rich.candidates(settings),
        "edges_at_most": rich.edges(settings),
    }


def _lines(
    rich: RichNodes, min_characters: int, settings: SimilaritySettings
) -> list[str]:
    """Return what is compared, a line for each label, and what comes of it at most."""
    labels = [
        f"{rich.rich[label]:>13,}    of {borne:,} {label}"
        for label, borne in rich.borne.items()
    ]
    return [
        f"{len(rich.nodes):>13,}  nodes have a text of {min_characters} characters",
        *labels,
        f"at most {rich.candidates(settings):,} candidates and about"
        f" {rich.edges(settings):,} edges",
    ]
