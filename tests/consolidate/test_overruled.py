"""The doctor names what a lesser voice hides of the user's, as a memd did that knew no speakers."""

import pytest

from memd.distill.transaction import TASK_DONE
from memd.models import Stance
from memd.store import integrity, links
from tests.test_authority import Talk

MINE = "We keep sessions in SQLite"
THEIRS = "Sessions live in Redis"


@pytest.fixture
def talk(tmp_path, clock):
    talk = Talk(tmp_path / "v.db", clock)
    yield talk
    talk.vault.close()


def hide(talk, newer, older, rule="changed-value"):
    """As an earlier memd did, whoever spoke."""

    def write(tx):
        return links.supersede(
            tx, newer_id=newer, older_id=older, rule=rule, cosine=None, guard="it said so", at=talk.clock()
        )  # fmt: skip

    assert talk.vault.db.write_now(write)


def doctor(talk):
    found = talk.vault.db.read_now(
        lambda tx: integrity.examine_vault(tx, talk.clock(), is_served=True)
    )
    return next(one for one in found if one.name == "speakers")


def test_the_doctor_says_how_what_an_agent_hid_of_the_user_s_is_shown_again(talk):
    mine, theirs = talk.hand(MINE).id, talk.call(THEIRS).id
    hide(talk, theirs, mine)
    assert doctor(talk).verdict == "warning"
    assert f"#{mine} (behind #{theirs})" in doctor(talk).words
    assert f"memd judge {theirs} {mine} --undo" in doctor(talk).remedy
    talk.judge(theirs, Stance.SUPERSEDES, mine, "user")
    assert doctor(talk).words == "no lesser voice hides what the user said"


def test_a_task_that_a_turn_has_done_is_hidden_by_no_lesser_voice(talk):
    mine, theirs = (
        talk.hand("Upgrade the parser to version 3").id,
        talk.call("Upgraded the parser to version 3").id,
    )
    hide(talk, theirs, mine, TASK_DONE)
    assert doctor(talk).words == "no lesser voice hides what the user said"
