"""What people want to stand without a rule's words: habits, what is put off, how a system is, refusals, choices made anew."""

import pytest

from memd.belief.scopes import describe_scope
from memd.distill import turn
from memd.distill.episodes import Episode, EpisodeContext, Exchange, Utterance
from memd.distill.scope import find_scopes
from memd.models import Authority, Event, EventKind, Kind
from tests.distill.told_sessions import ToldSession, asks, edits, says

STANDS = {Kind.DECISION, Kind.INSTRUCTION, Kind.PREFERENCE, Kind.FACT, Kind.TASK}
REPORTED = "The gate now logs every ship with its length."


def event(number, kind, tool=None, **payload):
    return Event(number, 1, kind, "", number * 1_000, payload, tool=tool)


CHANGE = {"file_path": "/p/a.py", "old_string": "a", "new_string": "b"}


def stand(said, *, before=REPORTED, after="Done.", does_work=True, refused=None):
    """(kind, title) of what the user's words leave standing."""
    events = [event(2, EventKind.PROMPT, prompt=said)]
    if does_work:
        events.append(event(3, EventKind.TOOL_RESULT, tool="Edit", tool_input=CHANGE))
    if refused:
        call = {"tool_input": {"file_path": "/p/harbour/gate.py"}, "said": refused}
        events.append(event(4, EventKind.TOOL_REFUSED, tool="Edit", **call))
    events.append(event(5, EventKind.STOP, last_assistant_message=after))
    heard = Exchange("look at the gate", Utterance(1, 1_000, before, "Assistant"))
    context = EpisodeContext(before={"e": (heard,)})
    drafts = turn.distill_episode(Episode("e", tuple(events), "stop"), context)
    return [
        (d.kind, d.title)
        for d in drafts
        if d.kind in STANDS and d.authority is Authority.USER_PROMPT
    ]


@pytest.mark.parametrize(
    ("said", "kind", "title"),
    [
        ("keep tagging the image after each release", Kind.INSTRUCTION, "Keep tagging the image after each release"),
        ("great, format and save after every change", Kind.INSTRUCTION, "Format and save after every change"),
        ("I'd like you to continue to propose names in Latin", Kind.INSTRUCTION, "Propose names in Latin"),
        ("one thing, can you always add the tide to the table?", Kind.INSTRUCTION, "Can you always add the tide to the table"),
        ("use poetry as the package manager", Kind.INSTRUCTION, "Use poetry as the package manager"),
        ("I do not want to sign my tags anymore", Kind.PREFERENCE, "I do not want to sign my tags anymore"),
        ("I don't need to see the debug lines in the terminal.", Kind.PREFERENCE, "I don't need to see the debug lines in the terminal"),
        ("my preference is that you try it before you ask", Kind.PREFERENCE, "My preference is that you try it before you ask"),
        ("production runs on two machines behind nginx", Kind.FACT, "Production runs on two machines behind nginx"),
        ("if you push it, it deploys by itself", Kind.FACT, "If you push it, it deploys by itself"),
        ("let's leave the tide tables for another PR", Kind.TASK, "Put off: the tide tables"),
        ("maybe we should make the harbour's radius bigger?", Kind.DECISION, "We should make the harbour's radius bigger"),
    ],
)  # fmt: skip
def test_it_stands_by_its_form(said, kind, title):
    assert stand(said) == [(kind, title)]


def test_what_only_points_says_what_it_points_at():
    said = "I like how you name the reason of each change. Please keep doing this as a matter of course."
    ((kind, title),) = stand(said)
    assert kind is Kind.INSTRUCTION
    assert "name the reason of each change" in title


def test_what_that_puts_off_is_in_the_agents_words_or_nowhere():
    said = "let's take that as future work"
    noted = "Sure! I'll note the length of moored ships as future work."
    assert stand(said, after=noted) == [
        (Kind.TASK, "Put off: note the length of moored ships as future work")
    ]
    assert stand(said, after="Noted.") == []
    assert stand("let's add the question to future work", after="Noted.") == []


@pytest.mark.parametrize(
    "said",
    [
        "can you always reproduce it on your machine or only sometimes?",
        "can you add the tide to the table?",
        "can you modify the gate so that it logs the length of ships?",
        "keep going after the next test",
        "I don't want to break the gate",
        "I don't want to wait for the tide tables now",
        "the issue is in the gate",
        "the logs are in sync again",
        "why do you always commit after each change?",
        "we can use Redis or a table or files for now",
        "use this as the base",
        "let's look at it later or now",
        "should we use Redis or a table?",
    ],
)
def test_a_question_an_order_and_a_worry_leave_nothing(said):
    assert stand(said) == []


def test_a_refused_call_says_what_is_wanted_instead():
    ((kind, title),) = stand(
        "log the ships", refused="no, put the length into the ledger instead of the log"
    )
    assert kind is Kind.DECISION
    assert "into the ledger instead of the log" in title
    assert title.endswith("refused: Edit gate.py")


@pytest.mark.parametrize(
    "refused", ["wait", "stop, let me look first", "why this file?", "don't commit yet"]
)
def test_a_refusal_of_the_moment_decides_nothing(refused):
    assert stand("log the ships", refused=refused) == []


STEPS = "The cache is stale.\n\n1. Fix the cache now\n2. Show the log first\n\nWould you like me to do one of these?"
OPERATIONS = "The page is old.\n\nOption 1: CDN cache invalidation\nOption 2: a version in the file names\n\nWhich one do you prefer?"


@pytest.mark.parametrize(("before", "said"), [(STEPS, "1"), (OPERATIONS, "option 1")])
def test_a_next_step_is_no_choice(before, said):
    assert stand(said, before=before) == []


QUESTIONS = "Some questions:\n\n1. Which port shall the gate use?\n2. Who may open the gate?\n3. How long is it open?"


def test_answers_that_the_user_numbers_otherwise_are_not_paired():
    assert stand("1. port 80\n2. the keeper\n3. an hour", before=QUESTIONS) != []
    assert stand("1. port 80\n2. the keeper\n2. an hour\n3. log it", before=QUESTIONS) == []


@pytest.fixture
def session(db, clock, tmp_path):
    return ToldSession(db, clock, tmp_path)


OFFERS = "Option 1: a queue in Redis\nOption 2: a table in Postgres\n\nWhich of these shall hold the waiting mails of the harbour?"


async def live_choices(session):
    found = await session.memories()
    return [one.title for one in found if one.rule == "answer:chosen" and one.superseded_by is None]


async def test_a_later_answer_to_the_same_question_ends_the_earlier_one(session):
    await session.tell(asks("how could the mails be sent later?"), says(OFFERS))
    await session.tell(
        asks("option 2"), edits(), says(f"Done, but it is slow. Once more:\n\n{OFFERS}")
    )
    assert len(await live_choices(session)) == 1
    await session.tell(asks("option 1 then"), edits(), says("Done."))
    (title,) = await live_choices(session)
    assert "Redis" in title


async def test_answers_to_two_questions_both_stand(session):
    other = OFFERS.replace(
        "hold the waiting mails of the harbour", "keep the names of visiting ships"
    )
    await session.tell(asks("how could the mails be sent later?"), says(OFFERS))
    await session.tell(asks("option 2"), edits(), says(f"Done. Next:\n\n{other}"))
    await session.tell(asks("option 1"), edits(), says("Done."))
    assert len(await live_choices(session)) == 2


async def test_the_turn_that_leaves_a_task_does_not_end_it(session):
    await session.tell(
        asks("write down what we know of the leak so we can pick this up tomorrow"), edits("docs/leak.md"),
        says("Wrote down what we know of the leak in docs/leak.md."),
    )  # fmt: skip
    tasks = [one for one in await session.memories() if one.kind is Kind.TASK]
    assert [one.superseded_by for one in tasks] == [None]


@pytest.mark.parametrize(
    ("said", "tags"),
    [
        ("in this session we only read", ("scope:session",)),
        ("you removed the lock just now, never do that", ()),
        ("only today, skip the slow checks", ("scope:session",)),
        ("on this branch nothing is renamed", ("scope:branch",)),
        ("in all my projects, and in this repo", ("scope:everywhere", "scope:repository")),
        ("a session ends at midnight", ()),
    ],
)
def test_where_it_holds_is_read_from_its_words(said, tags):
    assert find_scopes(said) == tags


async def test_what_is_said_for_a_branch_has_its_name(session):
    said = "from now on never rename a table on this branch"
    for number, branch in enumerate(("dev/cart", "")):
        await session.starts_another(f"s{number}")
        given = {"prompt": said} | ({"git_branch": branch} if branch else {})
        await session.tell(("UserPromptSubmit", given), says("Understood."))
    found = [one.tags for one in await session.memories() if one.kind is Kind.INSTRUCTION]
    assert found == [("scope:branch:dev/cart",), ("scope:branch",)]
    assert describe_scope(found[0]) == "branch dev/cart"


@pytest.mark.parametrize(
    ("said", "kind", "title"),
    [
        ("hm, I don't like berth, any other words for it?", Kind.PREFERENCE, "Not wanted: berth – The gate now logs every ship with its length"),
        ("global locks in the gate are not great either, is there another way?", Kind.PREFERENCE, "Not wanted: global locks in the gate"),
        ("I'm not a fan of pop-up windows, any other ideas?", Kind.PREFERENCE, "Not wanted: pop-up windows"),
        ("we had a short discussion in the team that ships under ten metres should never be charged", Kind.DECISION, "Ships under ten metres should never be charged"),
        ("we don't have tide tables any more, so remove the page", Kind.FACT, "We don't have tide tables any more"),
        ("we no longer support paper tickets", Kind.DECISION, "We no longer support paper tickets"),
        ("the lists are only read at night, so I think I'd prefer if they are built once a day", Kind.DECISION, "The lists are only read at night, so I think I'd prefer if they are built once a day"),
        ("the second point is not right, for long ships we take the outer berth and add a tug", Kind.DECISION, "For long ships we take the outer berth and add a tug"),
        ("my main concern with the move is that we must not lose a booking while both gates run", Kind.DECISION, "We must not lose a booking while both gates run"),
        ("right now we refuse ships without a pilot at night, let's remove this restriction", Kind.DECISION, "We refuse ships without a pilot at night, let's remove this restriction"),
        ("we need to make sure that the log names the pilot and not just the ship", Kind.DECISION, "We need to make sure that the log names the pilot and not just the ship"),
    ],
)  # fmt: skip
def test_refusals_reasons_and_reports_stand_by_their_form(said, kind, title):
    assert stand(said) == [(kind, title)]


@pytest.mark.parametrize(
    "said",
    [
        "I don't like it, any other ideas?",
        "that is not great, any other option?",
        "the weather is not nice today. Any other news?",
        "is the cache not good enough, or is there another reason?",
        "we had a call that took two hours",
        "we had a discussion with the port that went nowhere",
        "did we have a discussion that ships should be charged?",
        "why do we no longer have tide tables?",
        "if we don't have tide tables any more, what breaks?",
        "do we still support paper tickets, or not any more?",
        "my main issue is that the test fails on the second run",
        "our main worry is that the build takes an hour",
        "we need to make sure that the tests always pass",
        "make sure it works",
        "would you prefer if they are built once a day?",
    ],
)
def test_what_sounds_like_them_leaves_nothing(said):
    assert stand(said) == []


def test_a_single_word_that_is_not_wanted_stands_with_what_the_agent_meant_by_it():
    before = (
        "Two names are free.\n\n1. Call the place where a ship lies its berth\n2. Call it a slot"
    )
    ((kind, title),) = stand("I don't like berth, any other words?", before=before)
    assert kind is Kind.PREFERENCE
    assert title == "Not wanted: berth – Call the place where a ship lies its berth"
