"""What an earlier memd let a lesser voice hide comes back once, and the user judges."""

import pytest

from memd.consolidate.judgments import show_overruled
from memd.consolidate.runs import NEAR_DUPLICATE_RULE
from memd.distill.transaction import TASK_DONE
from memd.models import Authority, Kind, Stance
from memd.store import integrity, judgments, ledger, links
from tests.test_authority import Talk

MINE = "We keep sessions in SQLite"
THEIRS = "Sessions live in Redis"


@pytest.fixture
def talk(tmp_path, clock):
    talk = Talk(tmp_path / "v.db", clock)
    yield talk
    talk.vault.close()


def hide(talk, newer, older, rule="stated-reversal"):
    """As an earlier memd did, whoever spoke."""

    def write(tx):
        return links.supersede(
            tx, newer_id=newer, older_id=older, rule=rule, cosine=None, guard="it said so", at=talk.clock()
        )  # fmt: skip

    assert talk.vault.db.write_now(write)


def upgrade(talk):
    return talk.vault.db.write_now(lambda tx: show_overruled(tx, talk.clock()))


def doctor(talk):
    found = talk.vault.db.read_now(
        lambda tx: integrity.examine_vault(tx, talk.clock(), is_served=True)
    )
    return next(one for one in found if one.name == "speakers")


def test_what_an_agent_hid_of_the_user_s_is_shown_again_and_is_the_user_s_to_judge(talk):
    mine, theirs = talk.hand(MINE).id, talk.call(THEIRS).id
    hide(talk, theirs, mine)
    assert (doctor(talk).verdict, f"#{mine} (behind #{theirs})" in doctor(talk).words) == (
        "warning",
        True,
    )
    assert f"memd judge {theirs} {mine} --undo" in doctor(talk).remedy
    assert upgrade(talk) == [(theirs, mine)]
    assert talk.get(mine).superseded_by is None
    assert talk.against(mine) == {theirs}
    assert doctor(talk).verdict == "ok"
    assert f"#{mine} (behind #{theirs})" in doctor(talk).words
    talk.consolidate()
    assert talk.get(mine).superseded_by is None
    talk.judge(theirs, Stance.SUPERSEDES, mine, "user")
    assert talk.get(mine).superseded_by == theirs
    assert doctor(talk).words == "no lesser voice hides what the user said"


def test_it_happens_once(talk):
    assert upgrade(talk) == []
    mine, theirs = talk.hand(MINE).id, talk.call(THEIRS).id
    hide(talk, theirs, mine)
    assert upgrade(talk) == []
    assert doctor(talk).verdict == "warning"


def test_what_the_agent_judged_about_the_user_s_memory_is_undone_too(talk):
    mine, theirs = talk.hand(MINE).id, talk.call(THEIRS).id
    hide(talk, theirs, mine, "judged")
    ruling = {"newer_id": theirs, "older_id": mine, "relation": Stance.SUPERSEDES, "reason": "so"}
    talk.vault.db.write_now(lambda tx: judgments.put_judgment(tx, **ruling, who="agent", at=1))
    upgrade(talk)
    assert talk.get(mine).superseded_by is None
    assert talk.against(mine) == {theirs}


def test_a_near_duplicate_comes_back_as_something_similar(talk):
    mine, theirs = talk.hand(MINE).id, talk.call(f"{MINE} files").id
    hide(talk, theirs, mine, NEAR_DUPLICATE_RULE)
    upgrade(talk)
    assert talk.get(mine).superseded_by is None
    assert talk.against(mine) == set()


def test_what_the_user_pinned_before_it_was_hidden_comes_back(talk):
    old, new = talk.call(MINE).id, talk.call(THEIRS).id
    talk.pin(old)
    talk.clock.advance(s=1)
    hide(talk, new, old)
    assert upgrade(talk) == [(new, old)]


def test_what_the_user_has_hidden_stays_hidden(talk):
    old, said = talk.hand(MINE).id, talk.hand(THEIRS).id
    hide(talk, said, old)
    talk.turn("Decision: the cache lives in Memcached because it is there.")
    (spoken,) = (
        n for n, one in talk.shown().items() if one.kind is Kind.DECISION and n not in {old, said}
    )
    assert talk.get(spoken).authority is Authority.USER_PROMPT
    by_hand = talk.hand("The cache lives in the process").id
    hide(talk, spoken, by_hand)
    judged, theirs = talk.hand("Deploy on Mondays").id, talk.call("Deploy on Tuesdays").id
    talk.judge(theirs, Stance.SUPERSEDES, judged, "user")
    agents, newer = talk.call("Logs are JSON").id, talk.call("Logs are text").id
    hide(talk, newer, agents)
    talk.clock.advance(s=1)
    talk.pin(agents)
    assert upgrade(talk) == []
    hidden = {n: talk.get(n).superseded_by for n in (old, by_hand, judged, agents)}
    assert hidden == {old: said, by_hand: spoken, judged: theirs, agents: newer}
    assert doctor(talk).verdict == "ok"


def test_the_trust_that_a_lesser_voice_took_is_given_back(talk):
    mine, theirs = talk.hand(MINE).id, talk.call(THEIRS).id
    trust = talk.get(mine).confidence
    talk.judge(theirs, Stance.CONTRADICTS, mine, "user")
    halved = judgments.confidence_after_contradictions(trust, 0, 1)

    def forge(tx):
        tx.execute("UPDATE summaries SET confidence = ? WHERE id = ?", (halved, mine))

    talk.vault.db.write_now(forge)
    doubted = talk.get(theirs).confidence
    upgrade(talk)
    assert talk.get(mine).confidence == pytest.approx(trust)
    assert talk.get(theirs).confidence == doubted
    assert talk.vault.db.read_now(lambda tx: ledger.read_note(tx, links.OVERRULED_NOTE)) == "[]"


def test_a_task_that_a_turn_has_done_is_hidden_by_no_lesser_voice(talk):
    mine, theirs = (
        talk.hand("Upgrade the parser to version 3").id,
        talk.call("Upgraded the parser to version 3").id,
    )
    hide(talk, theirs, mine, TASK_DONE)
    assert doctor(talk).words == "no lesser voice hides what the user said"
    assert upgrade(talk) == []
