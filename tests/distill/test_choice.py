import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.distill.choice import choice, clause, reversal
from memd.distill.reverse import _words


def said(text):
    found = choice(text)
    return tuple(_words(part) for part in (found.subject, found.chosen, found.rejected))


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
    assert clause("keep it small, because it must fit") == "keep it small"
    assert clause("we run on three machines, so move it to Redis") == "move it to Redis"


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
    found = reversal((statement,))
    assert found is not None
    assert _words(found.gives_up) == gives_up


@pytest.mark.parametrize(
    "statement",
    [
        "We keep sessions in SQLite rather than Redis",
        "Use tabs over spaces",
        "We chose A instead of B",
    ],
)
def test_a_first_choice_reverses_nothing(statement):
    assert reversal((statement,)) is None


@given(st.text(max_size=200))
def test_any_text_has_a_choice(text):
    found = choice(text)
    assert not found.chosen & found.rejected
    assert not found.subject & found.chosen
    reversal((text,))
