"""Small graphs of several kinds, and the loop that a scripted explorer is tried in."""

from __future__ import annotations

from collections.abc import Iterable

from graphret.ark import ArkSession, ArkSettings, Toolbox
from graphret.ark.scripted import ScriptedExplorer
from graphret.graphs.example import ALIASES
from graphret.search.bm25 import BM25Index
from graphret.stores import MemoryStore
from graphret.types import Edge, Node

FILMS = """
Dawn|directed_by|Ann Ames
Dawn|written_by|Bob Bell
Dawn|starred_actors|Cy Cole
Dawn|starred_actors|Di Dunn
Dawn|release_year|1999
Dawn|has_genre|Drama
Dawn|has_tags|sunrise
Dusk|directed_by|Ann Ames
Dusk|written_by|Eve Ely
Dusk|starred_actors|Cy Cole
Dusk|starred_actors|Fay Finn
Dusk|release_year|2001
Dusk|has_genre|Comedy
Dusk|in_language|German
Noon Train|directed_by|Gus Gray
Noon Train|written_by|Bob Bell
Noon Train|starred_actors|Di Dunn
Noon Train|starred_actors|Hal Hart
Noon Train|release_year|2003
Noon Train|has_genre|Thriller
Noon Train|in_language|French
""".split("\n")
_LABELS = {
    "directed_by": "Director",
    "written_by": "Writer",
    "starred_actors": "Actor",
    "release_year": "Year",
    "has_genre": "Genre",
    "in_language": "Language",
    "has_tags": "Tag",
}


def graph(
    triples: Iterable[tuple[str, str, str]],
    labels: dict[str, str],
    texts: dict[str, str] | None = None,
) -> Toolbox:
    """The tools on a graph whose nodes are called as their ids are."""
    nodes = [
        Node(node, (label,), node, (texts or {}).get(node, ""))
        for node, label in labels.items()
    ]
    edges = [Edge(source, relation, target) for source, relation, target in triples]
    store = MemoryStore.of(nodes, edges)
    return Toolbox(store, BM25Index.of_store(store), ArkSettings())


def films() -> Toolbox:
    """Three films, with whoever made them."""
    triples = [tuple(line.split("|")) for line in FILMS if line]
    labels = {source: "Movie" for source, _, _ in triples} | {
        t: _LABELS[r] for _, r, t in triples
    }
    return graph(triples, labels)  # type: ignore[arg-type]


def companies() -> Toolbox:
    """People, companies and cities; no relation is called as in films."""
    triples = [
        ("Ann Ames", "works_for", "Acme"),
        ("Bob Bell", "works_for", "Acme"),
        ("Cy Cole", "works_for", "Bolt"),
        ("Acme", "founded_by", "Di Dunn"),
        ("Bolt", "founded_by", "Di Dunn"),
        ("Acme", "headquartered_in", "Oslo"),
        ("Bolt", "headquartered_in", "Rome"),
        ("Acme", "supplies", "Bolt"),
    ]
    labels = dict.fromkeys(["Ann Ames", "Bob Bell", "Cy Cole", "Di Dunn"], "Person")
    labels |= dict.fromkeys(["Acme", "Bolt"], "Company") | dict.fromkeys(
        ["Oslo", "Rome"], "City"
    )
    return graph(triples, labels)


def papers() -> Toolbox:
    """Papers, authors and venues, as camel case writes relations."""
    triples = [
        ("Deep Nets", "writtenBy", "Ann Ames"),
        ("Deep Nets", "writtenBy", "Bob Bell"),
        ("Wide Nets", "writtenBy", "Ann Ames"),
        ("Slow Trees", "writtenBy", "Cy Cole"),
        ("Slow Trees", "citesPaper", "Deep Nets"),
        ("Deep Nets", "publishedIn", "NeurIPS"),
        ("Wide Nets", "publishedIn", "ICML"),
    ]
    labels = dict.fromkeys(["Deep Nets", "Wide Nets", "Slow Trees"], "Paper")
    labels |= dict.fromkeys(["Ann Ames", "Bob Bell", "Cy Cole"], "Author")
    labels |= dict.fromkeys(["NeurIPS", "ICML"], "Venue")
    return graph(triples, labels)


def explored(
    box: Toolbox,
    question: str,
    prompt: str = "You explore.",
    settings: ArkSettings | None = None,
) -> ArkSession:
    """A whole run of one agent."""
    model = ScriptedExplorer(aliases=ALIASES)
    session = ArkSession(
        question, prompt, settings=settings or box.settings, model=model.name
    )
    while session.stop is None:
        calls = session.receive(model.chat(session.messages, tools=box.tools))
        session.observe(box.run_calls(calls))
    return session
