"""`ScriptedExplorer` in whole runs: on films, and on graphs whose relations have other names."""

from __future__ import annotations

import pytest
from scripted_parts import companies, explored, films, graph, papers

from graphret.ark import Toolbox
from graphret.ark.scripted import ScriptedExplorer
from graphret.llm.chat import Message

FILMS, COMPANIES, PAPERS = films(), companies(), papers()

ONE_HOP = {
    "who directed Dawn": {"Ann Ames"},
    "who is the director that directed the movie Dawn": {"Ann Ames"},
    "the film Dawn starred which actors": {"Cy Cole", "Di Dunn"},
    "which screenwriter wrote the script for Dawn": {"Bob Bell"},
    "Dawn, when was it released": {"1999"},
    "what sort of film is Dawn": {"Drama"},
    "what is the primary language in the film Dusk": {"German"},
    "can you give a few words describing what Dawn is about": {"sunrise"},
    "which films are about sunrise": {"Dawn"},
    "[Ann Ames] directed which films": {"Dawn", "Dusk"},
    "What did Di Dunn appear in?": {"Dawn", "Noon Train"},
}
TWO_HOPS = {
    "who directed the films starred by Di Dunn": {"Ann Ames", "Gus Gray"},
    "who is listed as director of Di Dunn starred movies": {"Ann Ames", "Gus Gray"},
    "when did the movies acted by Cy Cole release": {"1999", "2001"},
    "what languages are the films directed by Ann Ames in": {"German"},
    "who co-starred with Cy Cole": {"Di Dunn", "Fay Finn"},
    "the actor Cy Cole appeared in the same movie with who": {"Di Dunn", "Fay Finn"},
    "which movies share the same director of Dawn": {"Dusk"},
    "the scriptwriter of Dawn also wrote movies": {"Noon Train"},
    "films by the director of Dawn": {"Dusk"},
    "who are the actors of the director Ann Ames": {"Cy Cole", "Di Dunn", "Fay Finn"},
    "In which genres are the films that Bob Bell wrote?": {"Drama", "Thriller"},
}
THREE_HOPS = {
    "who directed the movies written by the writer of Dawn": {"Gus Gray"},
    "who directed films for the writer of Dawn": {"Gus Gray"},
    "who starred in the films whose directors also directed Dawn": {"Cy Cole", "Fay Finn"},
    "the films that share actors with the film Dusk were released in which years": {"1999"},
    "who are the writers that the directors of their films also directed Dawn": {"Eve Ely"},
    "what are the primary languages in the movies starred by Dawn actors": {"German", "French"},
    "when did the movies release whose directors also directed Dawn": {"2001"},
    "what genres are the films directed by the Dawn director": {"Comedy"},
}
#: Relations of other names are read from what the tools show,
OF_COMPANIES = {
    "Who works for Acme?": {"Ann Ames", "Bob Bell"},
    "Which company does Cy Cole work for?": {"Bolt"},
    "Who founded Bolt?": {"Di Dunn"},
    "Where is Acme headquartered?": {"Oslo"},
    "Which people work for companies founded by Di Dunn?": {"Ann Ames", "Bob Bell", "Cy Cole"},
    "Who founded the company that Ann Ames works for?": {"Di Dunn"},
    "In which city is the company of Cy Cole headquartered?": {"Rome"},
    "Which companies does Acme supply?": {"Bolt"},
}
#: also in camel case.
OF_PAPERS = {
    "Who are the authors of Deep Nets?": {"Ann Ames", "Bob Bell"},
    "Which papers did Ann Ames write?": {"Deep Nets", "Wide Nets"},
    "Which paper cites Deep Nets?": {"Slow Trees"},
    "Which venues were the papers by Ann Ames published in?": {"NeurIPS", "ICML"},
    "Who are the co-authors of Bob Bell?": {"Ann Ames"},
}


@pytest.mark.parametrize(
    ("box", "questions"),
    [(FILMS, ONE_HOP), (FILMS, TWO_HOPS), (FILMS, THREE_HOPS), (COMPANIES, OF_COMPANIES), (PAPERS, OF_PAPERS)],
    ids=["one hop", "two hops", "three hops", "companies", "papers"],
)
def test_questions_are_answered(box: Toolbox, questions: dict[str, set[str]]) -> None:
    sessions = {question: explored(box, question) for question in questions}
    assert {question: set(session.selection) for question, session in sessions.items()} == questions
    assert {session.stop for session in sessions.values()} == {"finished"}


def test_what_more_paths_lead_to_comes_first() -> None:
    triples = [("A One", "starred_actors", "Xi Xu"), ("A Two", "starred_actors", "Xi Xu")]
    triples += [("A One", "directed_by", "Bo By"), ("A One", "directed_by", "Al By"), ("A Two", "directed_by", "Bo By")]
    labels = {"A One": "Movie", "A Two": "Movie", "Xi Xu": "Actor", "Bo By": "Director", "Al By": "Director"}
    assert explored(graph(triples, labels), "who directed the movies starred by Xi Xu").selection == ["Bo By", "Al By"]


def test_what_both_names_lead_to_comes_first() -> None:
    assert explored(FILMS, "Which film stars Di Dunn and Hal Hart?").selection[0] == "Noon Train"
    assert explored(FILMS, "Which film stars Di Dunn and Cy Cole?").selection[0] == "Dawn"


def test_a_name_of_everyday_words_that_no_index_keeps_is_found_by_its_id() -> None:
    box = graph([("They", "directed_by", "Ann Ames")], {"They": "Movie", "Ann Ames": "Director"})
    assert explored(box, "who directed They").selection == ["Ann Ames"]


def test_without_words_of_relations_it_selects_what_a_search_finds_best() -> None:
    texts = {
        "tent": "A waterproof tent for two, light enough to carry on long hikes.",
        "stove": "A gas stove that folds flat.",
        "boat": "An inflatable boat for two.",
    }
    box = graph([("tent", "also_bought", "stove")], dict.fromkeys(texts, "Product"), texts)
    session = explored(box, "I need something light and waterproof to sleep in when I am on hikes.")
    assert session.selection[0] == "tent"
    assert session.stop == "finished"


@pytest.mark.parametrize(
    "question", ["", "   ", "?", "who", "🙂🙂", "x" * 100_000, "who directed " * 8_000, "\ud800 Dawn"]
)
def test_odd_questions_end(question: str) -> None:
    reply = ScriptedExplorer().chat([Message.user(question)])
    assert all(call.parsed is not None for call in reply.tool_calls)
    if question.strip() and "\ud800" not in question:  # which a session refuses
        assert explored(FILMS, question).stop == "finished"
        assert (explored(graph([], {}), question).selection) == []
