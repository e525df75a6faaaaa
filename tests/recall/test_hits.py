import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.models import SessionRef
from memd.recall.hits import bigrams, diversify, jaccard, make_snippet, none_if_nan, shorten_snippet
from memd.recall.profiles import DiversitySettings
from memd.recall.query import parse_terms
from memd.store import events, projects
from tests.factories import make_new_event
from tests.indexed_vault import DAY, NOW, IndexedVault


def test_a_second_hit_of_the_same_turn_comes_after_everything_else():
    order, why = diversify(
        [1, 2, 3], {1: "e", 2: "e", 3: "f"}, {}, DiversitySettings(per_episode=1)
    )
    assert order == [1, 3, 2]
    assert why == {2: "diversity: same turn as #1"}


def test_what_belongs_to_no_turn_is_never_the_same_turn():
    assert diversify([1, 2], {1: None, 2: None}, {}, DiversitySettings(per_episode=1))[0] == [1, 2]


def test_a_hit_that_says_the_same_is_demoted_not_removed():
    texts = {
        1: "we keep sessions in redis now",
        2: "we keep sessions in redis",
        3: "tests run with pytest",
    }
    order, why = diversify([1, 2, 3], {}, texts, DiversitySettings(jaccard=0.6))
    assert order == [1, 3, 2]
    assert why == {2: "diversity: like #1"}


def test_overlap_is_counted_in_pairs_of_words():
    # "a b c": {a b, b c}; "a b d": {a b, b d}: 1 shared of 3
    assert jaccard(bigrams("a b c"), bigrams("A, b: d")) == pytest.approx(1 / 3)
    assert jaccard(bigrams(""), bigrams("")) == 0.0


@given(st.lists(st.integers(0, 50), unique=True), st.integers(1, 3))
def test_diversity_loses_and_doubles_nothing(ids, limit):
    episodes = {i: f"e{i % 4}" for i in ids}
    order, _ = diversify(ids, episodes, {}, DiversitySettings(per_episode=limit))
    assert sorted(order) == sorted(ids)


def test_a_snippet_begins_where_the_question_is_answered():
    text = "Asked for a rate limit. The window slides. Redis holds the sessions. Done."
    assert make_snippet("Rate limit", text, parse_terms("where are sessions")).startswith(
        "Redis holds the sessions."
    )


def test_a_snippet_does_not_repeat_the_title():
    assert make_snippet(
        "Use Redis.", "Use Redis. Because of three machines.", parse_terms("redis")
    ).startswith("Because")
    assert make_snippet("Title", "", parse_terms("x")) == ""


def test_a_snippet_is_one_short_line():
    assert len(make_snippet("t", "word\n" * 500, parse_terms("word"), 100)) <= 100
    assert "\n" not in make_snippet("t", "a\nb\nc", parse_terms("b"))


def test_a_file_name_is_no_end_of_a_sentence():
    text = "It raised in auth.py (login). Then it was mended."
    assert make_snippet("t", text, parse_terms("auth raised")) == text


LONG = (
    "We looked at the queue, the worker and the broker, and after a long discussion we agreed that the connection"
    " pool of the billing database is limited to forty connections per process, because the server has only two"
    " hundred of them, and that reports use the replica instead of the primary whenever they can"
)


@pytest.mark.parametrize("limit", [250, 160, 120, 80])
def test_a_snippet_of_a_long_sentence_holds_what_answers_and_ends_after_it(limit):
    found = make_snippet("t", LONG, parse_terms("connections of the billing pool"), limit)
    assert len(found) <= limit
    assert "billing database is limited to forty" in found


@pytest.mark.parametrize(
    ("sentence", "question", "ends"),
    [
        ("The queue of the harbour crane is emptied by `pump drain --all --wait 30` on every night shift", "crane queue", "emptied by"),
        ("Tide tables are read by the pilot boats (Anna, Berta and the small Clara) before they cast off", "tide tables", "pilot boats"),
        ("The greenhouse door stays closed while the heater runs, for the sake of the seedlings behind it", "greenhouse door", "heater runs"),
    ],
    ids=["code", "brackets", "a word that needs another"],
)  # fmt: skip
def test_a_snippet_is_not_cut_within_what_belongs_together(sentence, question, ends):
    for limit in range(len(ends) + 40, 72):
        found = make_snippet("t", sentence, parse_terms(question), limit).rstrip("…")
        assert found.count("`") % 2 == 0
        assert found.count("(") == found.count(")")
        assert found.rpartition(" ")[2] not in {"by", "the", "while", "for", "of", "and"}


def test_a_snippet_of_a_long_sentence_goes_to_its_end_rather_than_from_its_beginning():
    sentence = (
        "After the second storm and a long talk with the insurer about the mast the harbour crane went to pier nine"
        " because the ferries need the old place."
    )
    found = make_snippet("t", sentence, parse_terms("harbour crane"), 92)
    assert found.endswith(
        "the harbour crane went to pier nine because the ferries need the old place."
    )


def test_a_snippet_ends_with_a_whole_sentence_where_one_fits():
    text = "The pool has forty connections. " + "It is shared by everything that runs at night " * 9
    found = make_snippet("t", text, parse_terms("how many connections"), 100)
    assert found == "The pool has forty connections."


@pytest.mark.parametrize(
    ("limit", "found"),
    [
        (90, "The pool has forty connections. Then we had lunch."),
        (60, "The pool has forty connections. Then we had lunch."),
        (40, "The pool has forty connections."),
    ],
)
def test_a_snippet_with_less_room_keeps_the_sentence_that_answers(limit, found):
    text = "First we read. The pool has forty connections. Then we had lunch. " + "x" * 50 + "."
    assert shorten_snippet(text, {"pool", "connect"}, limit) == found


def test_a_labelled_repetition_of_the_title_is_no_snippet():
    text = "Asked: Login answers 500. Find out why.\nCause and fix: The token was not split."
    assert not make_snippet("Fixed: Login answers 500", text, parse_terms("login 500")).startswith(
        "Asked: Login"
    )


@pytest.fixture
def library(db):
    return IndexedVault(db)


async def test_a_hit_knows_its_project_its_session_and_the_passage_that_matched(library):
    long = "\n\n".join(
        f"Paragraph {i} about nothing. " + "filler words here " * 60 for i in range(8)
    )
    library.put(
        "A long story", long + "\n\nThe kettle is teal.", session="s", project="/home/dev/ledger"
    )
    (hit,) = (await library.ask("teal kettle")).hits
    assert hit.project == "ledger"
    assert "kettle is teal" in hit.snippet


def test_what_is_not_a_number_is_not_known():
    assert none_if_nan(math.nan) is None
    assert none_if_nan(0.5) == 0.5


def say(library, text, *, days_ago=0.0, kind="prompt", session="s1", project="/a"):
    field = "prompt" if kind == "prompt" else "last_assistant_message"
    at = NOW - int(days_ago * DAY)

    def write(tx):
        project_id = projects.ensure_project(tx, project, project, "", 1)
        number = projects.ensure_session(tx, SessionRef("c", session), project_id, at)
        projects.extend_session(tx, number, at, f"Title of {session}")
        return events.append_event(tx, make_new_event(kind, at=at, **{field: text}), number)[0]

    return library.db.write_now(write)


async def turns(library, text, **more):
    return (await library.ask(text, include_turns=True, **more)).turns


async def test_turns_stand_beside_the_hits_and_never_among_them(library):
    number = library.put("kettle decision", "teal")
    event = say(library, "Which colour has the kettle?", days_ago=1)
    answer = await library.ask("kettle", include_turns=True)
    assert [hit.summary.id for hit in answer.hits] == [number]
    (turn,) = answer.turns
    assert (turn.event_id, turn.role, turn.rank, turn.at) == (event, "user", 1, NOW - DAY)
    assert (turn.session_title, turn.snippet) == ("Title of s1", "Which colour has the kettle?")
    same = await library.ask("kettle")
    assert same.turns == ()
    assert [hit.score for hit in same.hits] == [hit.score for hit in answer.hits]


async def test_a_long_passage_shows_where_it_matches(library):
    say(library, "Nothing here. " * 50 + "The kettle is teal. " + "More of it. " * 50, kind="stop")
    (turn,) = await turns(library, "kettle")
    assert turn.snippet.startswith("The kettle is teal.")
    assert len(turn.snippet) <= 200
    assert turn.role == "assistant"


async def test_each_filter_holds_for_turns_too(library):
    old = say(library, "the kettle", days_ago=9)
    new = say(library, "the kettle", days_ago=1, session="s2", project="/b")
    ids = {}
    for name, more in {
        "all": {},
        "project": {"project_ids": (2,)},
        "session": {"session_id": 1},
        "since": {"since": NOW - 5 * DAY},
        "until": {"until": NOW - 5 * DAY},
        "as_of": {"as_of": NOW - 5 * DAY, "until": NOW},
        "k": {"k": 1},
    }.items():
        ids[name] = [turn.event_id for turn in await turns(library, "kettle", **more)]
    assert ids == {
        "all": [new, old], "project": [new], "session": [old], "since": [new], "until": [old],
        "as_of": [old], "k": [new],
    }  # fmt: skip


async def test_a_question_without_words_has_no_turns(library):
    say(library, "the kettle")
    assert await turns(library, "", topic_key="tea.kind") == ()


async def test_they_are_there_while_the_index_is_still_loading(library):
    say(library, "the kettle")
    question = library.asked("kettle", include_turns=True)
    answer = await library.recaller.search(question)
    assert "index" in answer.degraded
    assert len(answer.turns) == 1


@pytest.mark.parametrize("text", ['"', "a* OR (", 'NEAR("kettle"', "kettle^2 -x", "col:kettle"])
async def test_nothing_that_can_be_typed_is_a_syntax_error(library, text):
    say(library, "the kettle")
    await turns(library, text + " kettle")
