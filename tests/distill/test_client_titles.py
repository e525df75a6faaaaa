"""A session has the title that its client gives it, and so have the memories of its compactions."""

import pytest

from memd.models import Kind
from memd.store import projects

SUMMARY = (
    "<summary>We moved the sessions to a store of their own and fixed two failing tests.</summary>"
)


def says(prompt):
    return "UserPromptSubmit", {"prompt": prompt}


def calls_it(title, kind):
    return "SessionTitle", {"title": title, "title_kind": kind}


async def title_of(session):
    return (await session.db.read(lambda tx: projects.session(tx, 1))).title


async def test_the_users_title_goes_before_the_models_and_that_before_a_summary(session):
    await session.tell(says("can you look at this"))
    assert await title_of(session) == "can you look at this"
    for title, kind, shown in (
        ("Sessions in their own store", "summary", "Sessions in their own store"),
        ("Move sessions out of memory", "ai", "Move sessions out of memory"),
        ("Later summary", "summary", "Move sessions out of memory"),
        ("Session store", "custom", "Session store"),
        ("Another proposal", "ai", "Session store"),
        ("Session store, second try", "custom", "Session store, second try"),
        ("Of no known kind", "magic", "Session store, second try"),
    ):
        await session.tell(calls_it(title, kind))
        assert await title_of(session) == shown


async def test_a_late_title_reaches_the_memory_of_a_compaction(session):
    await session.tell(says("yes"), ("PostCompact", {"compact_summary": SUMMARY}))
    await session.tell(calls_it("Move sessions out of memory", "ai"))
    (found,) = [one for one in await session.memories() if one.kind is Kind.SESSION]
    assert found.title == "Session so far: Move sessions out of memory"


async def test_what_a_client_makes_of_private_words_is_no_title(session):
    await session.tell(says("<private>our secret plan</private>"))
    with pytest.raises(AssertionError, match="private turn"):
        await session.tell(calls_it("The secret plan", "ai"))
    assert await title_of(session) is None


def answers(text):
    return "Stop", {"last_assistant_message": text}


async def names_of_turns(session):
    found = await session.memories()
    return [one.title for one in sorted(found, key=lambda m: m.at) if one.rule == "turn"]


LISTED = "Here is what I see:\n\n- `parse_row` is 100% identical (`a.py:3-9`, `b.py:4-10`)\n- the readers differ in how they treat a missing column of an invoice export"


async def test_a_title_of_a_session_is_no_title_of_its_turns(session):
    await session.tell(says("compare how both readers treat an invoice export"), answers(LISTED))
    before = await names_of_turns(session)
    await session.tell(calls_it("Comparing both invoice export readers", "ai"))
    await session.tell(calls_it("Invoice export readers, compared", "custom"))
    assert await names_of_turns(session) == before
    assert await title_of(session) == "Invoice export readers, compared"


async def test_a_summary_of_an_earlier_subject_does_not_name_the_last_turn(session):
    await session.tell(says("compare how both readers treat an invoice export"), answers(LISTED))
    await session.tell(says("how much memory does the cache take?"), answers(
        "About 40 MB: the cache keeps every decoded thumbnail until the window closes."
    ))  # fmt: skip
    before = await names_of_turns(session)
    await session.tell(calls_it("Comparing both invoice export readers", "summary"))
    assert await names_of_turns(session) == before
