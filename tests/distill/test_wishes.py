"""What people want to stand without a rule's words: habits, what is put off, how a system is, refusals, choices made anew."""

import pytest

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
