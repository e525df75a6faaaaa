"""Why a turn did its work is told in its body, and what a later turn grants to be wrong is told as wrong."""

import pytest

from memd.distill.dialogue.corrections import find_correction
from memd.distill.episodes import Exchange, Utterance
from memd.models import Kind
from tests.distill.told_sessions import ToldSession, asks, edits, says


@pytest.fixture
def session(db, clock, tmp_path):
    return ToldSession(db, clock, tmp_path)


def heard(prompt, *texts):
    *before, answer = texts
    said = Utterance(1, 1, answer, "Assistant")
    return [Exchange(prompt, said, texts[0], 1, tuple(before))]


@pytest.mark.parametrize(
    ("prompt", "said", "granted"),
    [
        (
            "hm, I just looked and the mails do have a footer",
            "You're right, every mail has a footer already.",
            "You're right, every mail has a footer already.",
        ),
        (
            "but invoices are never rounded, right?",
            "Good catch. You are right. Invoices keep all four digits. Let me fix the docs.",
            "Good catch. You are right. Invoices keep all four digits.",
        ),
        (
            "can you explain the retry part?",
            "To be honest, I overstated it. The queue retries only once.",
            "To be honest, I overstated it. The queue retries only once.",
        ),
    ],
)
def test_what_is_granted_is_a_correction(prompt, said, granted):
    assert find_correction(heard(prompt, said)).granted == granted


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("please sort them by date", "You're right, sorted lists are easier to read by far."),
        ("why not use a queue?", "You're right that a queue could be simpler to run than this."),
        ("but is that fast enough?", "You're right to ask. It takes four milliseconds."),
        ("no, keep it", "You're right. Let me put it back."),
        ("and the tests?", "They pass. If I was wrong about the cache, they would fail."),
        ("but it still fails", "I'll look at the log."),
    ],
)
def test_a_wish_that_is_agreed_to_is_none(prompt, said):
    assert find_correction(heard(prompt, said)) is None


def test_what_the_agent_grants_only_after_it_has_looked_counts_too():
    after = heard("that is wrong, the export has headers", "Let me check the file.", "You're right, the export writes two header lines.")  # fmt: skip
    assert find_correction(after).objection == "that is wrong, the export has headers"


CLAIM = "The invoices in the export are plain lines without any currency column."


async def turns_of(session):
    return sorted(
        (one for one in await session.memories() if one.rule == "turn"), key=lambda one: one.at
    )


async def test_a_turn_tells_that_its_outcome_was_refuted_in_the_next_one(session):
    await session.tell(asks("why does the import drop the currency of invoices?"), says(CLAIM))
    (before,) = await turns_of(session)
    await session.tell(
        asks("that's not true, I can see a currency column in the export"),
        says("You're right, the invoices in the export have a currency column. The import skips it."),
    )  # fmt: skip
    after = (await turns_of(session))[0]
    asked, claimed = before.title.rstrip("…").split(": ")
    assert asked == "Why does the import drop the currency of invoices"
    assert after.title.startswith(f"Said, then refuted: {claimed}")
    assert "Objected to next: “that's not true, I can see a currency column" in after.body


async def test_at_once_the_same_is_told(session):
    steps = [
        asks("why does the import drop the currency of invoices?"),
        says(CLAIM),
        asks("that's not true, I can see a currency column in the export"),
        says("You're right, the invoices in the export have a currency column. The import skips it."),
    ]  # fmt: skip
    for step in (steps[:2], steps[2:]):
        await session.tell(*step)
    live = [(one.title, one.body) for one in await turns_of(session)]
    await session.starts_another("s2")
    await session.tell(*steps)
    both = [(one.title, one.body) for one in await turns_of(session)]
    assert both == live * 2


FINDING = "The issue is that Postgres never compresses TOAST values below two kilobytes of text."


async def facts_of(session):
    return [one.title for one in await session.memories() if one.kind is Kind.FACT]


@pytest.mark.parametrize("turns_between", [0, 6])
async def test_a_finding_that_the_agent_denies_in_the_middle_of_a_later_turn_does_not_stand(
    session, turns_between
):
    await session.tell(asks("why is the table so large?"), edits(), says(FINDING))
    assert len(await facts_of(session)) == 1
    for number in range(turns_between):
        await session.tell(asks(f"rename column {number} of the report"), edits(), says("Renamed."))
    await session.tell(
        asks("measure the table again please"),
        ("AgentText", {"text": "So Postgres compresses TOAST values below two kilobytes of text, too."}),
        says("The table has 40 MB now."),
    )  # fmt: skip
    assert await facts_of(session) == []


async def test_a_finding_stands_when_later_turns_speak_of_something_else(session):
    await session.tell(asks("why is the table so large?"), edits(), says(FINDING))
    await session.tell(
        asks("no, I meant the index of the report"),
        says("You're right, the index is not used by the report at all."),
    )
    assert len(await facts_of(session)) == 1


def looks(path="/home/dev/shop/cart.py"):
    given = {"tool_name": "Read", "tool_input": {"file_path": path}, "tool_response": {}}
    return "PostToolUse", given


def thinks(text):
    return "AgentText", {"text": text}


async def causes_of(session, *steps):
    await session.tell(asks("why is the total wrong?"), looks(), *steps)
    (turn,) = await turns_of(session)
    return [line for line in turn.body.split("\n") if line.startswith("Cause: ")]


ROUNDS = "The bug is that `add_line` rounds every price before the discount is taken off."


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        (ROUNDS, ROUNDS),
        (f"I see it now. {ROUNDS} I'll change that.", ROUNDS),
        (
            "Found the problem. `add_line` rounds every price before the discount is taken off.",
            "`add_line` rounds every price before the discount is taken off.",
        ),
    ],
)
async def test_the_cause_that_the_agent_states_on_the_way_stands_in_the_body(session, said, cause):
    found = await causes_of(session, thinks(said), edits(), says("Done, totals are exact again."))
    assert found == [f"Cause: {cause}"]


@pytest.mark.parametrize(
    "said",
    [
        "The bug might be that `add_line` rounds every price before the discount is taken off.",
        f"{ROUNDS} Let me check that first.",
        "The bug is in `cart.py` line 40, somewhere in the second loop over the order lines.",
        "Looking at the code more carefully, there's a problem here.",
        "I see the problem:",
    ],
)
async def test_a_guess_and_a_mere_place_are_no_cause(session, said):
    assert await causes_of(session, thinks(said), edits(), says("Totals are exact again.")) == []


async def test_of_several_causes_the_last_counts_and_none_that_was_dropped(session):
    found = await causes_of(
        session,
        thinks(ROUNDS),
        thinks("Wait, that is not it, prices are rounded after the discount."),
        thinks("The real cause is that `tax` adds the shipping costs twice for guests."),
        edits(),
        says("Totals are exact again."),
    )
    assert found == [
        "Cause: The real cause is that `tax` adds the shipping costs twice for guests."
    ]


async def test_a_cause_that_the_closing_message_says_is_not_said_twice(session):
    marked = ROUNDS.replace("every price", "**every** price")
    assert await causes_of(session, thinks(ROUNDS), edits(), says(f"Fixed. {marked}")) == []


@pytest.mark.parametrize(
    "steps",
    [
        [asks("no, that's wrong, revert it"), edits(), says("Reverted.")],
        [
            asks("print the lines of a guest order"),
            thinks("So `add_line` never rounds prices before the discount is taken off."),
            says("Here are all four lines of the order."),
        ],
    ],
)
async def test_a_cause_that_a_later_turn_takes_back_is_told_no_more(session, steps):
    assert await causes_of(session, thinks(ROUNDS), edits(), says("Totals are exact again."))
    await session.tell(*steps)
    assert "Cause: " not in (await turns_of(session))[0].body


async def decisions_of(session):
    return [one.title for one in await session.memories() if one.kind is Kind.DECISION]


NORM = "The index should be committed - only the cache and the lock should be ignored."


async def test_how_it_shall_be_after_an_objection_that_is_granted_stands(session):
    await session.tell(
        asks("add an ignore file"), edits(), says("Added it, with the whole folder.")
    )
    await session.tell(
        asks("but that leaves out the index, which others need"),
        thinks(f"You're right. {NORM} Let me change that."),
        edits(),
        says("Changed."),
    )
    assert await decisions_of(session) == [NORM.rstrip(".")]


@pytest.mark.parametrize(
    ("prompt", "granted", "step"),
    [
        ("please sort the index too", f"You're right. {NORM}", edits()),
        ("but why is the index left out?", NORM, edits()),
        ("but that leaves out the index", "You're right. I should have committed the index, too.", edits()),
        ("but that leaves out the index", "You're right. It should work now that the index is there.", edits()),
        ("but that leaves out the index", f"You're right. {NORM}", looks()),
    ],
)  # fmt: skip
async def test_a_norm_that_nobody_objected_for_granted_or_followed_is_none(
    session, prompt, granted, step
):
    await session.tell(
        asks("add an ignore file"), edits(), says("Added it, with the whole folder.")
    )
    await session.tell(asks(prompt), thinks(granted), step, says("Have a look."))
    assert await decisions_of(session) == []


async def test_a_turn_that_is_corrected_days_later_tells_it_too(session):
    await session.tell(asks("why does the import drop the currency of invoices?"), says(CLAIM))
    session._steps += 3 * 86_400
    await session.tell(
        asks("that's not true, I can see a currency column in the export"),
        says("You're right, the invoices in the export have a currency column."),
    )
    assert "Objected to next: " in (await turns_of(session))[0].body
