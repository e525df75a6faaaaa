"""Statements of two turns that differ in a value, from their events to what is remembered."""

import pytest

from memd.belief.changes import CHANGED_VALUE_RULE
from memd.belief.claims import statement_text
from memd.belief.decide import changes_sentence
from memd.models import EdgeType, Kind
from memd.recall.provenance import explain_node
from memd.store import links
from tests.belief.value_pairs import CHANGED_VALUES, DIFFERENT_VALUES, TWO_SUBJECTS
from tests.distill.written import Desk
from tests.tables import read_tables

TABLES = read_tables("distill/changed_values")

FRAMES = {
    Kind.DECISION: "Decision: {}.",
    Kind.FACT: "Remember that {}.",
    Kind.INSTRUCTION: "From now on {}.",
}


@pytest.fixture
def desk(db, clock):
    return Desk(db, clock)


async def say(desk, *prompts, answer="Noted."):
    """Each prompt in a turn of its own; the statements that are remembered, in order."""
    for prompt in prompts:
        await desk.turn(f"t{desk.clock()}", prompt, answer)
    return [one for one in await desk.all() if one.kind in FRAMES or one.kind is Kind.PREFERENCE]


async def hidden_by(desk, number):
    found = await desk.db.read(lambda tx: links.supersessions_of(tx, number))
    return [(one.newer_id, one.rule, one.guard) for one in found if one.older_id == number]


# Here goes the way from the prompt to the vault; tests/belief judges all pairs.
@pytest.mark.parametrize("kind", [Kind.DECISION, Kind.FACT])
@pytest.mark.parametrize("name", [*DIFFERENT_VALUES][::2])
async def test_a_statement_with_another_value_never_strengthens(desk, name, kind):
    one, other = DIFFERENT_VALUES[name][0]
    found = await say(desk, *(FRAMES[kind].format(text) for text in (one, other)))
    assert {s.duplicates for s in found} <= {1}
    if len(found) == 2:  # a statement of one word is none
        assert other in found[1].body
        assert found[1].superseded_by is None


@pytest.mark.parametrize(("older", "newer"), [p for p in CHANGED_VALUES if "http" not in p[0]][::3])
async def test_a_changed_value_supersedes_and_says_so(desk, older, newer):
    first, second = await say(desk, f"Decision: {older}.", f"Decision: {newer}.")
    ((by, rule, reason),) = await hidden_by(desk, first.id)
    assert (by, rule) == (second.id, CHANGED_VALUE_RULE)
    assert "changed from" in reason
    assert (first.duplicates, second.superseded_by) == (1, None)


@pytest.mark.parametrize(("one", "other"), TWO_SUBJECTS[::4])
async def test_two_subjects_stay_two(desk, one, other):
    # The rules of distilling take some of them for no decision.
    found = await say(desk, f"Decision: {one}.", f"Decision: {other}.")
    assert {s.superseded_by for s in found} <= {None}
    assert {s.duplicates for s in found} <= {1}


async def test_why_says_which_value_changed(desk):
    first, second = await say(
        desk,
        "Decision: sessions live in Redis; the TTL is 5 minutes.",
        "Decision: sessions live in Redis; the TTL is 60 minutes.",
    )
    why = await explain_node(desk.db, "summary", str(first.id), depth=0, project_ids=None)
    assert why.verdict == f"superseded by #{second.id} (changed-value)"
    (relation,) = why.relations
    assert "“the TTL is” changed from 5 minutes to 60 minutes" in relation.supersession.guard


@pytest.mark.parametrize(
    ("kind", "was", "now"),
    [
        (
            Kind.INSTRUCTION,
            "From now on keep 30 days of logs.",
            "From now on keep 90 days of logs.",
        ),
        (Kind.PREFERENCE, "I prefer lines of 88 columns.", "I prefer lines of 100 columns."),
        (Kind.FACT, "Remember that the port is 8080.", "Remember that the port is 9090."),
    ],
)
async def test_every_kind_of_statement_is_corrected(desk, kind, was, now):
    first, second = await say(desk, was, now)
    assert (first.kind, second.kind) == (kind, kind)
    assert (first.superseded_by, second.superseded_by) == (second.id, None)


async def test_a_value_of_another_kind_of_statement_is_corrected(desk):
    first, second = await say(
        desk, "Decision: the TTL is 5 minutes.", "Remember that the TTL is 60 minutes."
    )
    assert (first.superseded_by, second.kind) == (second.id, Kind.FACT)


async def test_a_value_that_returns_is_current_again(desk):
    said = [f"Decision: the TTL is {minutes} minutes." for minutes in (5, 60, 5)]
    first, second, third = await say(desk, *said)
    assert [s.superseded_by for s in (first, second, third)] == [second.id, third.id, None]


async def test_what_was_said_earlier_and_arrives_later_is_hidden(desk):
    (later,) = await say(desk, "Decision: the TTL is 60 minutes.")
    desk.clock.advance(s=-10_000)
    await say(desk, "Decision: the TTL is 5 minutes.")
    desk.clock.advance(s=10_000)
    found = {s.body[-12:]: s.superseded_by for s in await say(desk)}
    assert list(found.values()) == [None, later.id]


async def test_the_same_statement_in_other_words_strengthens(desk):
    (one,) = await say(
        desk,
        "Decision: sessions live in Redis; the TTL is 5 minutes.",
        "We decided that the TTL is 5 min; sessions live in `Redis`!",
    )
    assert one.duplicates == 2


async def test_what_only_one_statement_says_is_not_lost(desk):
    found = await say(
        desk,
        "Decision: sessions live in Redis. Decision: use pytest with plugins, because it is quick.",
        "Decision: sessions live in Redis; the TTL is 5 minutes.",
        "Decision: use pytest with plugins.",
    )
    live = "\n".join(s.body for s in found if s.superseded_by is None)
    assert "5 minutes" in live
    assert "because it is quick" in live


async def test_a_correction_that_would_lose_a_part_contradicts(desk):
    first, second = await say(
        desk,
        "Decision: sessions live in Redis; the TTL is 5 minutes.",
        "Decision: the TTL is 60 minutes.",
    )
    assert (first.superseded_by, second.superseded_by) == (None, None)
    found = await desk.db.read(lambda tx: links.edges_at(tx, "summary", str(second.id)))
    assert [e.to_id for e in found if e.type is EdgeType.CONTRADICTS] == [str(first.id)]


async def test_the_agent_does_not_correct_the_user(desk):
    await desk.turn("t1", "Decision: the TTL is 5 minutes.", "Noted.")
    await desk.turn("t2", "What do others do?", "It varies. Decision: the TTL is 60 minutes.")
    decided = [s for s in await desk.all() if s.kind is Kind.DECISION]
    assert decided[0].superseded_by is None
    assert decided[0].duplicates == 1


async def test_two_values_in_one_turn_are_two_statements(desk):
    found = await say(
        desk, "Decision: the read timeout is 5 s. Decision: the read timeout is 50 s."
    )
    assert len(found) == 2


@pytest.mark.parametrize(("said", "values"), TABLES["the_title_of_a_decision_keeps_its_values"])
async def test_the_title_of_a_decision_keeps_its_values(desk, said, values):
    (found,) = await say(desk, said)
    assert [value for value in values if value not in found.title] == []


async def test_the_title_of_a_decision_keeps_its_reason(desk):
    said = "Decision: deploy from main because Jo has 3 keys."
    assert [one.title for one in await say(desk, said)] == [
        "Deploy from main because Jo has 3 keys"
    ]


async def test_a_change_ends_what_a_clock_that_was_ahead_has_dated_after_it(desk):
    desk.clock.advance(s=400 * 86_400)
    (ahead,) = await say(desk, "Never deploy after six.")
    desk.clock.advance(s=-400 * 86_400)
    ahead, later = await say(desk, "Deploying after six is fine from now on.")
    assert (ahead.superseded_by, later.superseded_by) == (later.id, None)


async def test_a_rule_that_was_to_be_remembered_ends_like_any_other(desk):
    rule = "Never rename a column, please remember that."
    first, second = await say(desk, rule, "Renaming a column is fine from now on.")
    assert (first.superseded_by, second.superseded_by) == (second.id, None)
    assert statement_text("", "User: “Nimm immer yarn, merk dir das bitte.”") == "Nimm immer yarn"


async def test_what_was_changed_once_can_be_changed_again(desk):
    said = (
        "We decided to use Jenkins for the nightly build.",
        "We don't use Jenkins for the nightly build any more, we use Drone.",
        "We no longer use Drone for the nightly build, we use Woodpecker.",
    )
    first, second, third = await say(desk, *said)
    assert [s.superseded_by for s in (first, second, third)] == [second.id, third.id, None]
    assert not changes_sentence("Use Drone, over.", "We don't use Bamboo any more.")
    _, _, third, *_ = await say(desk, "We don't use Chef for the servers any more, we use Nix.")
    assert third.superseded_by is None
