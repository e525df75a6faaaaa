import dataclasses

import pytest

from memd.belief.notes import Proof, QuotedNote, Unproved
from memd.consolidate import judgments
from memd.consolidate.remember import SAID_AGAIN_RULE, TOPIC_KEY_RULE, NewMemory, remember
from memd.models import Authority, EdgeType, Kind, SessionRef, Stance
from memd.store import judgments as store_judgments
from memd.store import ledger, projects, summaries

DIET = NewMemory(
    "Eats no meat", title="Diet", kind=Kind.FACT, topic_key="user.diet", project_key="/a"
)


@pytest.fixture
def say(vault, clock):
    def say(memory=DIET, **change):
        clock.advance(s=1)
        memory = dataclasses.replace(memory, **change)
        return vault.db.write_now(lambda tx: remember(tx, memory, clock()))

    return say


def test_the_same_again_strengthens_whatever_its_case_and_punctuation(vault, say):
    first = say()
    again = say(text="eats no meat!")
    assert (again.id, again.outcome) == (first.id, "duplicate")
    assert vault.get(first.id).duplicates == 2


def test_punctuation_that_means_something_makes_another_memory(say):
    first = say(text="keep x > 5", topic_key=None)
    other = say(text="keep x < 5", topic_key=None)
    assert other.outcome == "superseded"
    assert other.id != first.id
    assert say(text="keep x < 5", topic_key=None).id == other.id


def test_a_new_value_of_a_topic_supersedes_the_old_one_at_once(vault, say, clock):
    old, new = say(), say(text="Eats everything")
    assert (new.outcome, new.superseded) == ("superseded", (old.id,))
    (one,) = vault.supersessions(old.id)
    assert (one.newer_id, one.rule, one.cosine, one.at) == (new.id, TOPIC_KEY_RULE, None, clock())


def test_a_topic_is_a_slot_of_one_project_whatever_the_kind_and_the_case(vault, say):
    first = say()
    second = say(text="Be vegan", kind=Kind.INSTRUCTION)
    assert second.superseded == (first.id,)
    third = say(text="Be carnivorous", kind=Kind.NOTE, topic_key="USER.Diet")
    assert third.superseded == (second.id,)
    first = say()
    assert first.superseded == (third.id,)
    assert say(text="Eats fish", project_key="/b").superseded == ()
    assert say(text="Eats fruit", project_key=None).superseded == ()
    assert vault.get(first.id).superseded_by is None


def test_an_old_value_that_returns_is_revived(vault, say):
    old, new = say(), say(text="Eats everything")
    back = say()
    assert (back.id, back.outcome, back.superseded) == (old.id, "revived", (new.id,))
    assert vault.get(old.id).superseded_by is None
    assert vault.get(new.id).superseded_by == old.id
    assert vault.get(old.id).at > vault.get(new.id).at
    assert [one.undone_at is None for one in vault.supersessions(old.id)] == [False, True]


def test_the_first_of_three_values_revived_hides_only_the_last(vault, say):
    first, second, third = say(), say(text="Eats fish"), say(text="Eats everything")
    assert say().superseded == (third.id,)
    assert vault.live() == [first.id]
    assert vault.get(second.id).superseded_by == third.id


def test_a_revived_memory_hides_the_near_duplicate_that_hid_it(vault, say):
    old, new = say(topic_key=None), say(text="He eats no meat", topic_key=None)
    vault.supersede(new.id, old.id)
    back = say(topic_key=None)
    assert (back.outcome, back.superseded) == ("revived", (new.id,))


def test_a_revived_decision_stays_beside_the_one_that_replaced_it(vault, say):
    old, new = say(topic_key=None), say(text="Decided to eat fish", topic_key=None)
    vault.supersede(new.id, old.id, rule="reversal")
    assert say(topic_key=None).superseded == ()
    assert vault.live() == [old.id, new.id]


def test_a_pinned_value_is_not_hidden_but_contradicted(vault, say):
    old = say()
    vault.db.write_now(lambda tx: summaries.pin_summary(tx, old.id, 1))
    new = say(text="Eats everything")
    assert new.superseded == ()
    (edge,) = vault.edges(old.id)
    assert (edge.from_id, edge.type) == (str(new.id), EdgeType.CONTRADICTS)


def test_an_import_of_an_older_value_does_not_hide_the_newer_one(vault, say):
    new = say()
    old = say(text="Eats everything", at=5, source="elsewhere")
    assert (old.outcome, old.superseded) == ("created", ())
    assert vault.get(old.id).superseded_by == new.id
    assert say(text="Eats everything", at=5, source="elsewhere").outcome == "duplicate"
    assert vault.live() == [new.id]


def test_what_was_forgotten_comes_back_only_on_purpose(vault, say):
    number = say().id
    uid = vault.get(number).uid
    vault.db.write_now(
        lambda tx: (summaries.delete_summary(tx, number), ledger.record_forgotten(tx, uid, 1))
    )
    assert (say(source="elsewhere").id, say(source="elsewhere").outcome) == (0, "forgotten")
    again = say()
    assert again.outcome == "created"
    assert vault.get(again.id).uid == uid


def test_an_expired_task_is_renewed_when_it_is_repeated(vault, say, clock):
    task = say(kind=Kind.TASK, topic_key=None, expires_at=clock() + 5_000)
    clock.advance(s=60)
    again = say(kind=Kind.TASK, topic_key=None, expires_at=clock() + 9_000)
    summary = vault.get(task.id)
    assert again.outcome == "duplicate"
    assert summary.expires_at > clock()
    assert summary.at == clock()


def test_a_memory_belongs_to_its_session_and_a_global_one_creates_none(vault, say):
    ref = SessionRef("claude-code", "s1", "/a")
    here = say(session=ref)
    session_id = vault.get(here.id).session_id
    assert (
        vault.db.read_now(lambda tx: projects.session(tx, session_id)).project_id
        == vault.project_id
    )
    assert (
        vault.get(say(text="Everywhere", project_key=None, session=ref).id).session_id == session_id
    )
    unknown = say(text="Nowhere", project_key=None, session=SessionRef("claude-code", "s2"))
    assert vault.get(unknown.id).session_id is None


def judge(vault, clock, one, relation, other):
    ruling = judgments.NewJudgment(one, other, Stance(relation), "because", "user")
    return vault.db.write_now(lambda tx: judgments.apply_judgment(tx, ruling, clock()))


def test_the_same_value_of_a_topic_in_other_letters_is_a_duplicate(vault, say):
    first = say()
    again = say(text="Please note: eats no meat", title="How it eats")
    assert (again.id, again.outcome) == (first.id, "duplicate")
    assert vault.get(first.id).duplicates == 2
    assert say(text="Eats no meat, no fish").outcome == "superseded"
    back = say(text="actually: eats no meat")
    assert (back.id, back.outcome) == (first.id, "revived")


def test_an_import_reports_what_it_replaces_beside_what_is_new(say):
    old = say(at=5, source="elsewhere")
    new = say(text="Eats everything", at=6, source="elsewhere")
    assert (new.outcome, new.superseded) == ("created", (old.id,))


def test_a_repeated_memory_hides_what_was_judged_to_replace_it(vault, say, clock):
    old, new = say(topic_key=None), say(text="Eats fish on Fridays", topic_key=None)
    judge(vault, clock, new.id, "supersedes", old.id)
    assert say(topic_key=None).outcome == "duplicate"  # an agent's word does not undo the user's
    back = say(topic_key=None, source="user", authority=Authority.USER_HAND)
    assert (back.outcome, back.superseded) == ("revived", (new.id,))
    assert vault.get(old.id).authority is Authority.USER_HAND
    assert vault.supersessions(new.id)[-1].rule == SAID_AGAIN_RULE
    assert vault.db.read_now(lambda tx: store_judgments.stance_between(tx, old.id, new.id)) is None
    again = say(text="Eats fish on Fridays", topic_key=None)
    assert (again.outcome, again.superseded) == ("revived", ())
    assert vault.live() == [old.id, new.id]


def test_an_import_does_not_overrule_a_judgment(vault, say, clock):
    old, new = say(topic_key=None), say(text="Eats fish on Fridays", topic_key=None)
    judge(vault, clock, new.id, "supersedes", old.id)
    result = say(topic_key=None, source="elsewhere", at=clock() + 60_000)
    assert (result.id, result.outcome) == (old.id, "duplicate")
    assert vault.live() == [new.id]


def test_values_that_were_judged_to_hold_beside_each_other_stay_so(vault, say, clock):
    old, new = say(), say(text="Eats everything")
    judge(vault, clock, new.id, "compatible", old.id)
    assert say().superseded == ()
    assert vault.live() == [old.id, new.id]
    third = say(text="Eats nothing")
    assert set(third.superseded) == {old.id, new.id}


def test_a_note_that_a_task_is_done_replaces_what_the_user_asked_to_be_reminded_of(
    vault, say, clock
):
    task = vault.put(
        "User: “Remind me to book the bus for the trip.”",
        title="Book the bus for the trip",
        kind=Kind.TASK,
        authority=Authority.USER_PROMPT,
    )
    noted = say(
        NewMemory(
            "The bus for the trip is booked.",
            project_key="/a",
            authority=Authority.USER_TOLD,
            proof=Proof(1, clock() + 86_400_000, "bus is booked"),
            replaces=(task,),
        )
    )
    assert noted.superseded == (task,)


@pytest.mark.parametrize(
    ("quote", "days_later", "is_replaced"),
    [
        ("we're down to three people, one reviewer of a pull request is enough now", 3, True),
        ("Pull requests no longer wait for two reviewers.", 3, True),
        ("Pull requests no longer wait for two reviewers.", -3, False),
        ("Find two reviewers for the pull request about the export.", 3, False),
        ("The parser is no longer slow.", 3, False),
        ("Two reviewers look at pull requests of the docs now, too.", 3, False),
    ],
)
def test_a_note_replaces_the_users_earlier_word_only_if_his_later_words_turn_the_same_matter(
    vault, say, clock, quote, days_later, is_replaced
):
    rule = vault.put(
        "User: “Every pull request needs two reviewers.”",
        title="Every pull request needs two reviewers",
        kind=Kind.INSTRUCTION,
        authority=Authority.USER_PROMPT,
    )
    said_at = clock() + days_later * 86_400_000
    noted = say(
        NewMemory(
            "One reviewer is enough.",
            kind=Kind.INSTRUCTION,
            project_key="/a",
            authority=Authority.USER_TOLD,
            proof=Proof(1, said_at, quote),
            replaces=(rule,),
        )
    )
    assert noted.superseded == ((rule,) if is_replaced else ())
    assert noted.staying == (() if is_replaced else (rule,))
    assert (vault.get(rule).superseded_by is not None) is is_replaced


@pytest.mark.parametrize(
    ("older", "quote", "text", "is_replaced"),
    [
        ("Only the release bot deletes branches. Never you.", "delete it in the playground", "The agent may delete any branch.", False),
        ("Kundenbriefe schreibt ab jetzt Mara.", "Mara hat am Montag frei", "Anybody writes letters to customers.", False),
        ("Kundenbriefe schreibt ab jetzt Mara.", "", "Anybody writes letters to customers.", False),
        ("Only the release bot deletes branches. Never you.", "the release bot no longer deletes branches", "People delete branches.", True),
        ("Wir nehmen Jenkins für die Builds.", "kein Jenkins mehr", "Builds run on Drone.", True),
    ],
)  # fmt: skip
def test_a_refused_note_replaces_one_that_quotes_the_user_only_if_its_own_quote_ends_that(  # noqa: PLR0917  # fixtures
    vault, clock, say, older, quote, text, is_replaced
):
    def note(words, said, replaces=()):
        return say(
            NewMemory(
                words,
                kind=Kind.INSTRUCTION,
                project_key="/a",
                claim=QuotedNote(words, said) if said else None,
                refused=Unproved("unsure", heard=said) if said else None,
                replaces=replaces,
            )
        )

    first = note(f"What he told: {older}", older)
    second = note(text, quote, (first.id,))
    assert second.outcome == ("superseded" if is_replaced else "contradicts")
    assert second.superseded == ((first.id,) if is_replaced else ())
    assert second.staying == (() if is_replaced else (first.id,))
    judgment = judgments.NewJudgment(
        second.id, first.id, Stance.SUPERSEDES, "he changed it", "agent"
    )
    ruled = vault.db.write_now(lambda tx: judgments.apply_judgment(tx, judgment, clock()))
    assert ruled.outcome == ("judged" if is_replaced else "asked")
