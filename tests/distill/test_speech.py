"""What people and agents say, from the hook to memory: only a speaker's own, affirmed words become rules."""

import pytest

from memd.capture.ingest import Ingestor
from memd.capture.prepare import CaptureRequest
from memd.config import CaptureConfig, DistillConfig
from memd.distill import assertions
from memd.distill.distiller import Distiller
from memd.distill.episodes import EpisodeContext, read_story
from memd.models import Authority, Kind
from memd.store import events, links, summaries
from tests.distill import speech
from tests.factories import make_event
from tests.tables import every_row

TYPED = {Kind.INSTRUCTION, Kind.PREFERENCE, Kind.DECISION, Kind.FACT, Kind.TASK}


class Desk:
    """A daemon's way from a hook's payload to memories, without the socket."""

    def __init__(self, db, clock, tmp_path):
        self.db, self.clock = db, clock
        self.ingestor = Ingestor(db, CaptureConfig(), clock, str(tmp_path / "spool"), lambda: None)
        self.distiller = Distiller(db, DistillConfig(), clock, lambda: None)

    async def turn(self, prompt, answer="Done.", *, name="p1"):
        """What is remembered, beside the turn itself, after a prompt and its answer."""
        self.clock.advance(s=60)
        common = {"session_id": "s", "cwd": "/nowhere/p", "prompt_id": name}
        said = {**common, "hook_event_name": "UserPromptSubmit", "prompt": prompt}
        done = {**common, "hook_event_name": "Stop", "last_assistant_message": answer}
        await self.ingestor.capture([CaptureRequest("claude-code", p) for p in (said, done)])
        await self.distiller._distil_ended()
        return await self.typed()

    async def typed(self):
        """Each typed memory that is live."""

        def read(tx):
            last = tx.execute("SELECT coalesce(max(id), 0) FROM summaries").get
            return list(summaries.summaries_by_ids(tx, range(1, last + 1)).values())

        found = await self.db.read(read)
        assert await self.db.read(events.count_pending) == 0, "the turn is distilled"
        return [s for s in found if s.kind in TYPED and s.superseded_by is None]

    async def why_hidden(self, number):
        """The rules of the supersessions that hide a memory."""
        found = await self.db.read(lambda tx: links.supersessions_of(tx, number))
        return [one.rule for one in found if one.older_id == number and one.undone_at is None]


def story_of(prompt):
    return read_story([make_event(prompt=prompt)], EpisodeContext())


@pytest.fixture
def desk(db, clock, tmp_path):
    return Desk(db, clock, tmp_path)


NOT_TOLD_APART = {
    "Bitte übersetze always use tabs, never use spaces ins Deutsche.",
    "Whenever you click the icon twice, close the menu.",
    "The wiki is very clear. Always rebase, never merge.",
}
"""Of 266 sentences that state no rule; that there are not more is the precision of the forms."""


@every_row(
    "prompt",
    [
        pytest.param(prompt, id=f"{kind} {number}")
        for kind, group in speech.NO_RULE.items()
        for number, prompt in enumerate(group)
        if prompt not in NOT_TOLD_APART
    ],
)
def test_what_is_no_rule_of_its_speaker_becomes_none(prompt):
    assert assertions.draft_assertions(story_of(prompt), EpisodeContext()) == []


@pytest.mark.parametrize(
    "document", [pytest.param(text, id=kind) for kind, text in speech.PASTED.items()]
)
async def test_a_pasted_document_states_no_rules(desk, document):
    assert await desk.turn(document) == []
    assert await desk.turn(f"Fix the login.\n\n{document}", name="p2") == []


@pytest.mark.parametrize(("prompt", "answer"), speech.RETOLD)
async def test_what_the_agent_retells_or_offers_is_not_decided(desk, prompt, answer):
    assert await desk.turn(prompt, answer) == []


@pytest.mark.parametrize(("kind", "prompt", "part"), speech.RULES)
async def test_what_the_user_says_plainly_is_kept(desk, kind, prompt, part):
    found = await desk.turn(prompt)
    assert [s for s in found if s.kind == kind and part.lower() in s.title.lower()]
    assert {s.authority for s in found} == {Authority.USER_PROMPT}


@pytest.mark.parametrize(
    ("rule", "retraction"),
    [
        ("Always run the linter.", "I no longer want you to always run the linter."),
        ("Never push on Fridays.", "You no longer have to never push on Fridays."),
        ("Always ask me before you add a dependency.", "You don't need to ask me before you add a dependency any more."),
        ("From now on write commit messages in German.", "Stop writing commit messages in German."),
        ("Always squash commits before merging.", "Forget the rule to always squash commits before merging."),
        ("Always run the linter before you commit.", "ok, we no longer need to run the linter"),
        ("Never merge without a review.", "The rule to never merge without a review no longer applies."),
    ],
)  # fmt: skip
async def test_a_rule_that_the_user_takes_back_ends_and_no_rule_takes_its_place(
    desk, rule, retraction
):
    (kept,) = await desk.turn(rule)
    assert await desk.turn(retraction, name="p2") == []
    assert await desk.why_hidden(kept.id) == ["retracted"]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("Always run the linter.", "Maybe I no longer want you to always run the linter."),
        ("Always run the linter.", "My boss no longer wants you to always run the linter."),
        ("Always run the linter.", "You no longer have to always run the benchmarks."),
        ("Always run the linter.", "You no longer need to never run the linter."),
        ("Always run the linter.", "Do you think I no longer want you to always run the linter?"),
        ("Always run the linter.", "The memo says 'I no longer want you to always run the linter.'"),
        ("Always run the linter.", "You no longer have to run the linter in this file."),
    ],
)  # fmt: skip
async def test_a_rule_stays_that_nobody_takes_back(desk, rule, said):
    (kept,) = await desk.turn(rule)
    assert [s.id for s in await desk.turn(said, name="p2")] == [kept.id]


async def test_the_agent_ends_no_rule_of_the_users(desk):
    (kept,) = await desk.turn("Always run the linter.")
    answer = "Done. We no longer need to always run the linter."
    assert [s.id for s in await desk.turn("Fix the login.", answer, name="p2")] == [kept.id]


async def test_a_rule_that_was_taken_back_can_be_given_again(desk):
    await desk.turn("Always run the linter.")
    await desk.turn("I no longer want you to always run the linter.", name="p2")
    (again,) = await desk.turn("Always run the linter.", name="p3")
    assert again.title == "Always run the linter"
