"""What the user rejected does not come back: wordings, writers, and the ways back that are his alone."""

import dataclasses

import pytest

from memd.belief import rejections
from memd.belief.notes import Proof, QuotedNote
from memd.consolidate.remember import NewMemory, remember
from memd.errors import BadRequest
from memd.models import Authority, EdgeType, Kind
from memd.store import SummaryUse, erasure, reviews, summaries, usage
from memd.store.filter import Filter
from tests.tables import read_tables

TABLES = read_tables("consolidate/rejections")

RULE = "Always run the linter before each commit."
NOTE = NewMemory(RULE, title=RULE, kind=Kind.PREFERENCE, project_key="/a")


@pytest.fixture
def say(vault, clock):
    def say(memory=NOTE, **change):
        clock.advance(s=1)
        memory = dataclasses.replace(memory, **change)
        if "text" in change and "title" not in change:
            memory = dataclasses.replace(memory, title=memory.text)
        return vault.db.write_now(lambda tx: remember(tx, memory, clock()))

    return say


@pytest.fixture
def reject(vault, clock):
    def reject(number):
        clock.advance(s=1)
        return vault.db.write_now(lambda tx: rejections.reject(tx, number, clock()))

    return reject


def visible(vault, **more):
    wanted = Filter(now=vault.clock(), **more)
    return [
        one.id
        for one in vault.db.read_now(
            lambda tx: summaries.summaries_around(tx, wanted, 2**52, before=99, after=99)
        )
    ]


@pytest.mark.parametrize("wording", TABLES["an_agent_cannot_note_again_what_was_rejected"])
def test_an_agent_cannot_note_again_what_was_rejected(vault, say, reject, wording):
    first = say()
    reject(first.id)
    for kind in (Kind.PREFERENCE, Kind.FACT, Kind.NOTE):
        again = say(text=wording, kind=kind)
        assert (again.id, again.outcome, again.rejected.id) == (0, "rejected", first.id)
    assert visible(vault) == []


@pytest.mark.parametrize("other", TABLES["what_says_otherwise_is_noted"])
def test_what_says_otherwise_is_noted(say, reject, other):
    reject(say().id)
    assert say(text=other).outcome == "created"


def test_it_is_no_reason_of_another_note_either(say, reject):
    reject(say().id)
    other = {"text": "The hook takes three seconds.", "source": "agent"}
    assert say(**other, why="Always run the linter before each commit.").outcome == "rejected"
    assert say(**other, why="It starts a container.").outcome == "created"


def test_other_words_about_the_same_saying_are_refused_and_another_part_of_it_is_not(say, reject):
    said = "lint before committing, and keep the changelog short"
    proof, claim = Proof(7, 1, said), QuotedNote(RULE, said)
    first = say(claim=claim, proof=proof, authority=Authority.USER_TOLD)
    reject(first.id)
    reworded = "A commit needs a linter run first."
    more = {"claim": QuotedNote(reworded, said), "proof": proof}
    assert say(text=reworded, authority=Authority.USER_TOLD, **more).outcome == "rejected"
    assert say(text="The changelog is kept short.", **more).outcome == "created"


@pytest.mark.parametrize("source", ["import:markdown", "import:claude-code", "agent", "user"])
def test_no_importer_and_no_lesser_voice_brings_it_back(say, reject, source):
    reject(say().id)
    for authority in (Authority.AGENT_CALL, Authority.USER_TOLD, Authority.USER_PROMPT):
        assert say(source=source, authority=authority).outcome == "rejected"
    if source.startswith("import:"):
        assert say(source=source, authority=Authority.USER_HAND).outcome == "rejected"


def test_it_is_in_no_answer_whatever_is_asked_for(vault, say, reject, clock):
    first = say()
    reject(first.id)
    assert visible(vault, include_superseded=True) == []
    assert visible(vault, as_of=clock()) == []
    assert vault.live() == []


def test_the_user_s_own_hand_says_it_again(vault, say, reject):
    first = say()
    reject(first.id)
    by_hand = say(source="user", authority=Authority.USER_HAND)
    assert visible(vault) == [first.id]
    assert (by_hand.id, by_hand.outcome) == (first.id, "duplicate")
    assert say().outcome == "duplicate"


def test_taking_back_shows_it_and_all_that_was_hidden_with_it(vault, say, reject):
    first = say()
    twin = vault.put("Run the linter before each commit, always.", kind=Kind.FACT)
    assert reject(first.id) == (twin,)
    later = vault.put("Before each commit always run the linter.", kind=Kind.NOTE)
    assert vault.db.write_now(lambda tx: rejections.reject_repeats(tx, [later], 1)) == (later,)
    assert vault.db.read_now(lambda tx: reviews.count_repeats(tx, [first.id])) == {first.id: 2}
    assert vault.db.write_now(lambda tx: rejections.take_back(tx, later)).summary_id == first.id
    assert sorted(visible(vault)) == [first.id, twin, later]
    with pytest.raises(BadRequest, match="nothing to take back"):
        vault.db.write_now(lambda tx: rejections.take_back(tx, first.id))


def test_what_it_had_replaced_holds_again_until_the_rejection_is_taken_back(vault, say, reject):
    old = say(text="Build with make.", topic_key="build")
    new = say(text="Build with bazel.", topic_key="build")
    assert new.superseded == (old.id,)
    reject(new.id)
    assert (visible(vault), vault.get(old.id).superseded_by) == ([old.id], None)
    vault.db.write_now(lambda tx: rejections.take_back(tx, new.id))
    assert visible(vault) == [new.id]
    reject(new.id)
    newest = say(text="Build with ninja.", topic_key="build")
    assert newest.superseded == (old.id,)
    assert visible(vault) == [newest.id]


def test_it_replaces_and_contradicts_nothing(vault, say, reject):
    first = say(text="The server listens on port 8080.", kind=Kind.FACT)
    reject(first.id)
    other = say(text="The server listens on port 9090.", kind=Kind.FACT)
    assert (other.outcome, other.superseded) == ("created", ())
    edges = [one for one in vault.edges(other.id) if one.type is EdgeType.CONTRADICTS]
    assert edges == []


def test_a_rejection_in_one_project_leaves_others_alone_and_one_of_global_does_not(say, reject):
    reject(say().id)
    elsewhere = say(project_key="/b")
    assert elsewhere.outcome == "created"
    assert say(project_key=None).outcome == "rejected"
    everywhere = say(text="Commit messages are in English.", project_key=None)
    reject(everywhere.id)
    assert say(text="Commit messages are in English.", project_key="/b").outcome == "rejected"


def test_a_rejected_memory_outlives_its_expiry(vault, say, reject, clock):
    first = say(expires_at=clock() + 5_000)
    reject(first.id)
    clock.advance(s=400 * 86_400)
    assert vault.db.read_now(lambda tx: erasure.expired_summaries(tx, clock(), 9)) == []
    assert say().outcome == "rejected"


def test_what_it_had_hidden_because_it_says_the_same_stays_away_with_it(vault, say, reject):
    older = vault.put("Before each commit, always run the linter.", kind=Kind.PREFERENCE)
    first = say()
    vault.supersede(first.id, older)
    assert reject(first.id) == (older,)
    assert visible(vault) == []
    vault.db.write_now(lambda tx: rejections.take_back(tx, first.id))
    assert visible(vault) == [first.id]


def waiting(vault):
    return vault.db.read_now(lambda tx: reviews.waiting_ids(tx, None, vault.clock(), 9))


def test_what_is_old_and_was_never_used_is_asked_about_again_half_a_year_after_it_was_kept(
    vault, clock, say
):
    number = say(authority=Authority.USER_HAND).id
    used = say(text="Deploy with make ship.", authority=Authority.USER_HAND).id
    vault.db.write_now(lambda tx: usage.record_uses(tx, {used: SummaryUse(1, clock())}, {}))
    assert waiting(vault) == []
    clock.advance(s=181 * 86_400)
    assert waiting(vault) == [number]
    found = vault.db.read_now(lambda tx: summaries.summaries_by_ids(tx, [number, used]))
    doubts = vault.db.read_now(
        lambda tx: reviews.describe_doubts(tx, found.values(), vault.clock())
    )
    assert doubts == {number: "noted 181 days ago, never used"}
    vault.db.write_now(
        lambda tx: reviews.put_review(tx, reviews.Review(number, "kept", vault.clock()))
    )
    assert waiting(vault) == []
    clock.advance(s=181 * 86_400)
    assert waiting(vault) == [number]
