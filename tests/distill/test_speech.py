"""What people and agents say, from the hook to memory: only a speaker's own, affirmed words become rules."""

import pytest

from memd.distill import assertions
from memd.distill.episodes import EpisodeContext, read_story
from memd.models import Authority, Kind
from memd.store import links
from tests.distill import speech
from tests.distill.written import Desk
from tests.factories import make_event
from tests.tables import every_row, read_tables

TABLES = read_tables("distill/speech")

TYPED = {Kind.INSTRUCTION, Kind.PREFERENCE, Kind.DECISION, Kind.FACT, Kind.TASK}
PRECISION = 0.98


def drafts_of(prompt):
    return assertions.draft_assertions(
        read_story([make_event(prompt=prompt)], EpisodeContext()), EpisodeContext()
    )


def test_next_to_nothing_that_is_no_rule_of_its_speaker_becomes_one():
    right = [prompt for prompt in speech.NO_RULE if not drafts_of(prompt)]
    assert len(right) >= PRECISION * len(speech.NO_RULE)


def test_a_reproach_for_what_was_done_is_no_rule():
    assert not any(drafts_of(prompt) for prompt in speech.REPROACHES)


@every_row("document", list(speech.PASTED.values()), ids=list(speech.PASTED))
def test_a_pasted_document_states_no_rules(document):
    assert drafts_of(document) == []
    assert drafts_of(f"Fix the login.\n\n{document}") == []


@every_row(("kind", "prompt", "part"), speech.RULES)
def test_what_the_user_says_plainly_is_kept(kind, prompt, part):
    found = drafts_of(prompt)
    assert [one for one in found if one.kind == kind and part.lower() in one.title.lower()]
    assert {one.authority for one in found} == {Authority.USER_PROMPT}


class Speaker(Desk):
    """Says something in turns of its own, and tells which typed memories are live then."""

    async def says(self, prompt, answer="Done.", *, name="t1"):
        await self.turn(name, prompt, answer)
        found = await self.all()
        return [one for one in found if one.kind in TYPED and one.superseded_by is None]

    async def why_hidden(self, number):
        """The rules of the supersessions that hide a memory."""
        found = await self.db.read(lambda tx: links.supersessions_of(tx, number))
        return [one.rule for one in found if one.older_id == number and one.undone_at is None]


@pytest.fixture
def desk(db, clock):
    return Speaker(db, clock)


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ("Summarise docs/adr/7.md", "Decision: we use Bazel instead of Make because builds are hermetic."),
        ("Fix the flaky test", "We should always use a fake clock. From now on never sleep in tests."),
    ],
)  # fmt: skip
async def test_what_the_agent_retells_or_offers_is_not_decided(desk, prompt, answer):
    assert await desk.says(prompt, answer) == []


@pytest.mark.parametrize(
    ("rule", "retraction"),
    TABLES["a_rule_that_the_user_takes_back_ends_and_no_rule_takes_its_place"],
)  # fmt: skip
async def test_a_rule_that_the_user_takes_back_ends_and_no_rule_takes_its_place(
    desk, rule, retraction
):
    (kept,) = await desk.says(rule)
    left = await desk.says(retraction, name="t2")
    assert Kind.INSTRUCTION not in {one.kind for one in left}
    assert await desk.why_hidden(kept.id) == ["retracted"]


@pytest.mark.parametrize(
    ("rule", "said"),
    TABLES["a_rule_stays_that_nobody_takes_back"],
)  # fmt: skip
async def test_a_rule_stays_that_nobody_takes_back(desk, rule, said):
    (kept,) = await desk.says(rule)
    assert [s.id for s in await desk.says(said, name="t2")] == [kept.id]


async def test_the_agent_ends_no_rule_of_the_users(desk):
    (kept,) = await desk.says("Always run the linter.")
    answer = "Done. We no longer need to always run the linter."
    assert [s.id for s in await desk.says("Fix the login.", answer, name="t2")] == [kept.id]


async def test_a_rule_that_was_taken_back_can_be_given_again(desk):
    await desk.says("Always run the linter.")
    await desk.says("I no longer want you to always run the linter.", name="t2")
    (again,) = await desk.says("Always run the linter.", name="t3")
    assert again.title == "Always run the linter"
