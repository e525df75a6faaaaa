import numpy as np
import pytest

from memd.capture.redact import redact
from memd.consolidate.judgments import REASON_CHARACTERS_MAX, JudgmentService, NewJudgment
from memd.models import Authority, Kind, Space, Stance
from memd.store import judgments


@pytest.fixture
def nudges():
    return []


@pytest.fixture
def judge(vault, clock, nudges):
    return JudgmentService(
        vault.db, redact, clock, lambda: nudges.append(1), vault.index, vault.space
    )


@pytest.fixture
def pair(vault):
    return vault.put("Deploys happen on Friday"), vault.put("Deploys happen on Monday")


def ruling(pair, relation=Stance.SUPERSEDES, reason="moved"):
    return NewJudgment(pair[1], pair[0], relation, reason, "agent")


async def test_a_judgment_is_written_and_the_index_is_nudged_once(vault, judge, nudges, pair):
    assert (await judge.judge(ruling(pair))).hidden == (pair[0],)
    assert (await judge.judge(ruling(pair))).outcome == "unchanged"
    assert nudges == [1]
    assert (await judge.undo(*pair, Authority.USER_HAND)).shown == (pair[0],)
    assert vault.live() == list(pair)


async def test_no_secret_stands_in_a_reason_and_no_essay(vault, judge, pair):
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    await judge.judge(ruling(pair, reason=f"the token is {secret} now " + "long " * 900))
    (said,) = vault.db.read_now(lambda tx: judgments.judgments_of(tx, pair[0]))
    assert secret not in said.reason
    assert len(said.reason) <= REASON_CHARACTERS_MAX


async def test_a_judgment_without_a_reason_says_that_none_was_given(vault, judge, pair):
    await judge.judge(ruling(pair, reason=" \0 "))
    (said,) = vault.db.read_now(lambda tx: judgments.judgments_of(tx, pair[0]))
    assert said.reason == f"the {said.who} gave no reason"


async def test_the_candidates_are_what_is_near_and_undecided(vault, judge, pair):
    vault.put("The docs are built with Sphinx")
    far = vault.put("Deploys happen on Sunday", project_id=vault.project("/b"))
    assert await judge.candidates(pair[1]) == ()  # nothing is indexed yet
    await vault.indexer.load()
    await vault.indexer.settle()
    (one,) = await judge.candidates(pair[1])
    assert (one.id, one.finding) == (pair[0], "date: Friday → Monday")
    assert far not in {one.id for one in await judge.candidates(pair[1])}
    await judge.judge(ruling(pair, Stance.COMPATIBLE))
    assert await judge.candidates(pair[1]) == ()
    assert await judge.candidates(999) == ()


async def test_what_is_hidden_has_no_candidates(vault, judge, pair):
    await vault.indexer.load()
    await vault.indexer.settle()
    vault.supersede(pair[1], pair[0])
    assert await judge.candidates(pair[0]) == ()


async def test_a_learned_model_that_leads_finds_what_shares_no_word(vault, judge):
    one = vault.put("Eats no meat", kind=Kind.PREFERENCE)
    other = vault.put("Lives on vegetables alone", kind=Kind.PREFERENCE)
    await vault.indexer.load()
    await vault.indexer.settle()
    space = Space("made", "same", "1", 4)
    vault.index.adopt_learned_space(space)
    ids = vault.index.columns.passage_id[: vault.index.columns.n].tolist()
    vault.index.fill(space.name, ids, np.full((len(ids), 4), 0.5, np.float16))
    (found,) = await judge.candidates(other)
    assert found.id == one
