import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.distill import decisions
from memd.distill.decisions import find_reversal, parse_choice, strip_reason
from memd.distill.episodes import EpisodeContext, read_story
from memd.distill.transaction import _list_stems
from memd.models import Authority
from tests.factories import make_event


def said(text):
    found = parse_choice(text)
    return tuple(_list_stems(part) for part in (found.subject, found.chosen, found.rejected))


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (
            "we keep sessions in SQLite rather than Redis, because one machine is enough",
            ("session", "sqlite", "redi"),
        ),
        ("Sessions move from SQLite to Redis because it grew", ("session", "redi", "sqlite")),
        ("We use pnpm for the frontend", ("frontend", "pnpm", "")),
        ("Use tabs over spaces for indentation", ("indent", "tab", "space")),
        (
            "We decided to store uploads on S3 instead of the local disk",
            ("upload", "s3", "disk local"),
        ),
        ("Keep sessions in Postgres, not Redis", ("session", "postgr", "redi")),
        ("Drop Celery in favour of RQ", ("", "rq", "celeri")),
        ("replace Celery with RQ for jobs", ("job", "rq", "celeri")),
        ("We no longer use npm, we use pnpm for the frontend", ("frontend", "pnpm", "")),
        ("We decided against Redis", ("", "", "redi")),
    ],
)
def test_subject_chosen_and_rejected_are_told_apart(statement, expected):
    assert said(statement) == expected


def test_the_clause_ends_where_the_reason_begins():
    assert strip_reason("keep it small, because it must fit") == "keep it small"
    assert strip_reason("we run on three machines, so move it to Redis") == "move it to Redis"


@pytest.mark.parametrize(
    ("statement", "gives_up"),
    [
        ("We changed our mind about sessions: move them from SQLite to Redis.", "sqlite"),
        ("this replaces the earlier decision to keep them in SQLite", "sqlite"),
        ("We no longer use npm, we use pnpm for the frontend", "npm"),
        ("we now use Postgres instead of SQLite for sessions", "sqlite"),
        ("We switched from npm to pnpm", "npm"),
        ("We're going back to SQLite for sessions", ""),
    ],
)
def test_a_reversal_says_what_it_gives_up(statement, gives_up):
    found = find_reversal((statement,))
    assert found is not None
    assert _list_stems(found.gives_up) == gives_up


@pytest.mark.parametrize(
    "statement",
    [
        "We keep sessions in SQLite rather than Redis",
        "Use tabs over spaces",
        "We chose A instead of B",
    ],
)
def test_a_first_choice_reverses_nothing(statement):
    assert find_reversal((statement,)) is None


@given(st.text(max_size=200))
def test_any_text_has_a_choice(text):
    found = parse_choice(text)
    assert not found.chosen & found.rejected
    assert not found.subject & found.chosen
    find_reversal((text,))


CONTEXT = EpisodeContext()


def drafts(prompt="", answer=""):
    events = [make_event(id=1, prompt=prompt)]
    if answer:
        events.append(make_event("stop", id=2, last_assistant_message=answer))
    return decisions.draft_decisions(
        decisions.find_statements(read_story(events, CONTEXT)), CONTEXT
    )


@pytest.mark.parametrize(
    ("prompt", "title", "rule"),
    [
        ("Note a decision: we keep logs in JSON.", "We keep logs in JSON", "stated"),
        ("We decided to use Postgres because of its types.", "Use Postgres", "decided"),
        ("We chose Rust over Go.", "Chose Rust over Go", "chose"),
        ("We've settled on pnpm.", "Settled on pnpm", "chose"),
        ("Let's go with the second design.", "Go with the second design", "going-with"),
        ("We keep state in files rather than a database.", "We keep state in files rather than a database", "rather-than"),
        ("We no longer support Python 3.9.", "We no longer support Python 3.9", "no-longer"),
        ("We are switching from npm to pnpm.", "We are switching from npm to pnpm", "switched"),
    ],
)  # fmt: skip
def test_what_the_user_chose_is_a_decision(prompt, title, rule):
    (draft,) = drafts(prompt)
    assert (draft.title, draft.rule) == (title, f"decision:{rule}")
    assert f"User: “{prompt}”" in draft.body


@pytest.mark.parametrize(
    "prompt",
    [
        "Should we use Postgres rather than SQLite?",
        "did we decide to use Postgres",
        "If we decided to use Postgres, what would break?",
        "We haven't decided on a database.",
        "Maybe we decided to do that too early.",
        "Move the tests from a/ to b/.",
        'The README says "we decided to use Postgres".',
        "```\nDecision: use Postgres\n```",
        "Fix the decision tree.",
        "Use a list instead of a tuple here.",
    ],
)
def test_questions_conditions_requests_and_quotations_decide_nothing(prompt):
    assert drafts(prompt) == []


def test_the_agents_own_choice_needs_an_alternative_or_a_reason():
    (draft,) = drafts(
        "Add a limit.", "I chose a sliding window over a fixed one because it is fairer."
    )
    assert draft.title == "Chose a sliding window over a fixed one"
    assert drafts("Add a limit.", "I picked the first file and went with it.") == []


def test_the_agents_echo_joins_the_users_words():
    (draft,) = drafts(
        "Decision: we keep sessions in SQLite rather than Redis, because one machine is enough.",
        "Noted. Sessions stay in SQLite rather than Redis because a single machine is enough.",
    )
    assert draft.title == "We keep sessions in SQLite rather than Redis"
    assert draft.body.index("User") < draft.body.index("Assistant")
    assert [source.event_id for source in draft.sources] == [1, 2]
    assert draft.reversal is None


def test_the_user_s_own_words_lead_however_full_those_of_the_agent():
    (draft,) = drafts(
        "We changed our mind about sessions: we now run on three machines, so move them from SQLite to Redis.",
        "Decision: sessions move from SQLite to Redis because there are three machines now; this replaces the earlier"
        " decision to keep them in SQLite.",
    )
    assert draft.title == "Sessions: move them from SQLite to Redis"
    assert draft.authority is Authority.USER_PROMPT
    assert [source.authority.speaker for source in draft.sources] == ["user", "agent"]
    assert "User: “We changed our mind" in draft.body
    assert draft.reversal is not None
    assert "session" in draft.reversal.subject
    assert "sqlite" in draft.reversal.gives_up


def test_a_pronoun_gets_its_subject_back():
    (draft,) = drafts("We changed our mind about sessions: move them from SQLite to Redis.")
    assert draft.title == "Sessions: move them from SQLite to Redis"


def test_two_decisions_of_one_message_stay_two():
    found = drafts("We chose Redis for the queue. We chose Postgres for the ledger.")
    assert [draft.slot for draft in found] == ["decision/0", "decision/1"]


def test_a_reason_in_the_next_sentence_comes_along():
    (draft,) = drafts("Decision: no ORM. Because the queries are few.")
    assert "Because the queries are few." in draft.body
