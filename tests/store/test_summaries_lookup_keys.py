"""Cues: a statement is found by the words that it shares."""

import random

import pytest

from memd.models import Kind
from memd.store import projects, summaries
from tests.factories import AT, make_draft, supersede


@pytest.fixture
def put(db):
    def put(title, body="A body.", *, kind=Kind.DECISION, project="/p", uid=None, at=AT):
        def write(tx):
            owner = summaries.SummaryOwner(
                projects.ensure_project(tx, project, "p", "", 1), None, "test"
            )
            draft = make_draft(title, body, kind=kind, at=at)
            return summaries.put_summary(tx, uid or f"{project} {kind} {title}", draft, owner, 1)[0]

        return db.write_now(write)

    return put


def sharing(db, *words, kind=Kind.DECISION, limit=9):
    return db.write_now(lambda tx: summaries.ids_sharing_keys(tx, 1, kind, words, limit=limit))


def most(db, *words, kinds=(Kind.INSTRUCTION,), limit=9):
    return db.write_now(
        lambda tx: summaries.ids_sharing_most_keys(tx, (1,), kinds, words, limit=limit)
    )


def test_a_rule_is_found_by_most_of_its_words(db, put):
    one = put("Always run make", kind=Kind.INSTRUCTION, at=AT)
    other = put("Always run make twice", kind=Kind.INSTRUCTION, at=AT + 1)
    put("Always run make", kind=Kind.INSTRUCTION, project="/other")
    preference = put("Run make", kind=Kind.PREFERENCE)
    assert most(db, "alway", "make", "twice") == [other, one]
    assert most(db, "alway", "make") == [other, one]
    assert most(db, "alway", "make", limit=1) == [other]
    assert most(db, "make", kinds=(Kind.PREFERENCE, Kind.FACT)) == [preference]
    assert most(db) == []


def test_counting_the_rarest_words_first_finds_what_counting_all_words_finds(db, put):
    """The words are as uneven as those of a language: the first are in nearly every memory."""
    chance = random.Random(7)  # noqa: S311  # no secret
    words = [f"w{chr(97 + n // 26)}{chr(97 + n % 26)}zz" for n in range(40)]

    def draw(count):
        return sorted({words[int(len(words) * chance.random() ** 3)] for _ in range(count)})

    texts = {}
    for n in range(80):
        drawn = draw(chance.randint(1, 14))
        number = put(" ".join(drawn), "", kind=Kind.INSTRUCTION, uid=str(n), at=AT + n % 5)
        texts[number] = (set(drawn), AT + n % 5)
    for _ in range(60):
        wanted = draw(chance.randint(1, 16))
        shared = {n: len(has.intersection(wanted)) for n, (has, _) in texts.items()}
        kin = [n for n, count in shared.items() if 2 * count >= len(wanted)]
        kin.sort(key=lambda n: (-shared[n], -texts[n][1], -n))
        assert most(db, *wanted) == kin[:9]


def test_a_decision_is_found_by_the_stems_of_its_title_and_of_what_it_quotes(db, put):
    older = put("We keep sessions in SQLite", at=AT)
    newer = put("Moved", "“Sessions go to Redis for sqlite_store”", at=AT + 1)
    put("Tabs", "“Tabs”\nSessions are named here, but not quoted.")
    assert sharing(db, "session") == [newer, older]
    assert sharing(db, "redi") == [newer]
    assert sharing(db, "session", limit=1) == [newer]
    assert sharing(db) == []


def test_what_is_superseded_is_not_found(db, put):
    older, newer = put("Sessions in SQLite"), put("Sessions in Redis")
    supersede(db, newer, older)
    assert sharing(db, "session") == [newer]


def test_the_memories_of_an_older_vault_get_their_lookup_keys_on_first_use(db, put):
    number = put("Sessions in SQLite")

    def forget_all(tx):
        tx.execute("DELETE FROM cues")
        tx.execute("DELETE FROM meta WHERE key = ?", (summaries.KEYS_BUILT_NOTE,))

    db.write_now(forget_all)
    assert sharing(db, "session") == [number]
