import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.index.columns import KIND_CODES
from memd.index.memory_index import IndexUpdate, MemoryIndex
from memd.models import Kind, SessionRef
from memd.recall import Question
from memd.recall.retrievers import find_visible_rows
from memd.store import IndexRow, StoredPassage, fulltext, projects, summaries
from memd.store.database import Database
from memd.store.filter import Filter

PLAIN = IndexRow(1, 1, 0, "note", "agent", "user", 5, None, False, False, 0.5, 0.5, 1, 1, 1, 1, ())
FACTS = st.lists(
    st.builds(
        lambda project, kind, at, expires, superseded, tags: replace(
            PLAIN, project_id=project, kind=kind, at=at, expires_at=expires,
            is_retired=superseded, tags=tags,
        ),
        st.integers(1, 3), st.sampled_from(["note", "fix"]), st.integers(0, 9),
        st.none() | st.integers(0, 9), st.booleans(), st.sampled_from([(), ("a",), ("a", "b")]),
    ),
    min_size=1, max_size=8,
)  # fmt: skip
QUESTIONS = st.builds(
    Question,
    text=st.just(""),
    now=st.integers(0, 9),
    project_ids=st.none() | st.just((1, 2)) | st.just(()),
    kinds=st.sampled_from([(), (Kind.FIX,)]),
    as_of=st.none() | st.integers(0, 9),
    since=st.none() | st.integers(0, 9),
    tags=st.sampled_from([(), ("a",)]),
    include_superseded=st.booleans(),
)


def make_index(facts):
    index = MemoryIndex()
    numbered = [replace(fact, summary_id=i + 1) for i, fact in enumerate(facts)]
    passages = [StoredPassage(i + 1, i + 1, 0, 0, b"") for i in range(len(facts))]
    index.apply(IndexUpdate(added=passages, facts=numbered))
    return index


def find_rows_one_by_one(index, question):
    """Wanted, context and hidden rows, one row after the other."""
    c, names = index.columns, ("wanted", "context", "superseded", "expired", "rejected")
    found = {name: [] for name in names}
    for row in range(c.n):
        of_project = question.project_ids is None or c.project_id[row] in question.project_ids
        in_time = question.as_of is None or c.at[row] <= question.as_of
        if not (c.live[row] and of_project and in_time):
            continue
        chosen = (
            (not question.kinds or c.kind[row] == KIND_CODES["fix"])
            and (question.since is None or c.at[row] >= question.since)
            and set(question.tags) <= c.tag_sets[c.tags[row]]
        )
        expired = c.expires_at[row] <= question.asked_at
        hides = not question.include_superseded and question.as_of is None
        superseded = bool(c.retired[row]) and hides
        found["context"] += [row] * bool(not expired and not superseded)
        found["wanted"] += [row] * bool(chosen and not expired and not superseded)
        found["superseded"] += [row] * bool(chosen and superseded and not expired)
        # What was rejected has expired before everything.
        why = "rejected" if c.expires_at[row] == 0 else "expired"
        found[why] += [row] * bool(chosen and expired)
    return found


def read_visible_rows(index, question):
    seen = find_visible_rows(index, question)
    rows = {
        "wanted": np.flatnonzero(seen.wanted),
        "context": np.flatnonzero(seen.context_rows.mask),
    }
    hidden = {"superseded": [], "expired": [], "rejected": []}
    hidden |= {why: one.rows.tolist() for why, one in seen.hidden.items()}
    assert seen.context_rows.among.count == len(rows["context"])
    assert seen.few is None or seen.few.tolist() == rows["wanted"].tolist()
    return {name: found.tolist() for name, found in rows.items()} | hidden


@given(FACTS, FACTS, st.integers(1, 8), st.lists(QUESTIONS, min_size=1, max_size=6))
def test_masks_are_what_looking_at_each_row_gives_whatever_was_asked_before(
    facts, others, gone, questions
):
    index = make_index(facts)
    for question in questions:
        assert read_visible_rows(index, question) == find_rows_one_by_one(index, question)
    changed = [replace(f, summary_id=i + 1) for i, f in enumerate(others[: len(facts)])]
    index.apply(IndexUpdate(gone=[gone], facts=[f for f in changed if f.summary_id != gone]))
    for question in questions:
        assert read_visible_rows(index, question) == find_rows_one_by_one(index, question)


def test_what_was_worked_out_for_a_filter_is_not_worked_out_again():
    index = make_index([PLAIN, replace(PLAIN, expires_at=50)])
    first = find_visible_rows(index, Question(text="", now=10, project_ids=(1,)))
    assert find_visible_rows(index, Question(text="x", now=49, project_ids=(1,))) is first
    assert find_visible_rows(index, Question(text="", now=50, project_ids=(1,))) is not first
    other = find_visible_rows(index, Question(text="", now=10, project_ids=(1,), kinds=(Kind.FIX,)))
    assert other.context_rows is first.context_rows
    index.apply(IndexUpdate(facts=[replace(PLAIN, project_id=2)]))
    assert find_visible_rows(
        index, Question(text="", now=10, project_ids=(1,))
    ).wanted.tolist() == [False, True]


def test_hidden_rows_are_counted_by_memory():
    index = MemoryIndex()
    passages = [
        StoredPassage(1, 1, 0, 0, b""),
        StoredPassage(2, 1, 1, 0, b""),
        StoredPassage(3, 2, 0, 0, b""),
    ]
    facts = [replace(PLAIN, is_retired=True), replace(PLAIN, summary_id=2, is_retired=True)]
    index.apply(IndexUpdate(added=passages, facts=facts))
    (hidden,) = find_visible_rows(index, Question(text="", now=0)).hidden.values()
    assert hidden.count_summaries(np.array([True, True, False])) == 1
    assert hidden.count_summaries(np.array([True, True, True])) == 2
    assert hidden.count_summaries(np.zeros(3, np.bool_)) == 0


def stored(tx, ones):
    """Store summaries as (project, session, kind, source, at, expires, archived, superseded, tags)."""
    tx.execute("DELETE FROM supersessions; DELETE FROM summaries")
    for number, (*place, kind, source, at, expires_at, archived_at, _, tags) in enumerate(ones):
        tx.execute(
            "INSERT INTO summaries (id, uid, project_id, session_id, kind, tier, source, title, body,"
            " tags, at, created_at, updated_at, expires_at, rule, archived_at)"
            " VALUES (?1, ?1, ?2, ?3, ?4, 'agent', ?5, '', '', ?6, ?7, 0, 0, ?8, '', ?9)",
            (number + 1, *place, kind, source, json.dumps(tags), at, expires_at, archived_at),
        )
    for number, one in enumerate(ones):
        if one[-2]:
            other = (number + 1) % len(ones) + 1
            tx.execute(
                "INSERT INTO supersessions (newer_id, older_id, rule, guard, at, undone_at)"
                " VALUES (?, ?, '', '', 0, ?)",
                (other, number + 1, None if one[-2] == "yes" else 1),
            )


TIMES = st.none() | st.integers(0, 9)
STORED = st.lists(
    st.tuples(
        st.integers(1, 3),
        st.none() | st.integers(1, 2),
        st.sampled_from(["note", "fix", "decision"]),
        st.sampled_from(["agent", "user"]),
        st.integers(0, 9),
        TIMES,
        TIMES,
        st.sampled_from(["", "yes", "undone"]),
        st.sampled_from([(), ("a",), ("b", "a"), ("'é",)]),
    ),
    min_size=1,
    max_size=8,
)
FILTERS = st.builds(
    Filter,
    project_ids=st.none() | st.lists(st.integers(1, 4), max_size=3).map(tuple),
    as_of=TIMES,
    now=TIMES,
    include_superseded=st.booleans(),
    kinds=st.lists(st.sampled_from(Kind), max_size=2).map(tuple),
    session_id=st.none() | st.integers(1, 3),
    source=st.sampled_from([None, "agent", "import"]),
    since=TIMES,
    until=TIMES,
    tags=st.sampled_from([(), ("a",), ("a", "b"), ("'é",), ("c",)]),
)


@pytest.fixture(scope="module")
def vault(tmp_path_factory):
    database = Database(str(tmp_path_factory.mktemp("filters") / "vault.db"), 1)

    def write(tx):
        for name in "abc":
            project = projects.ensure_project(tx, name, name, "", 1)
            projects.ensure_session(tx, SessionRef("t", name), project, 1)

    database.write_now(write)
    yield database
    database.close()


@settings(max_examples=60)
@given(STORED, st.lists(FILTERS, min_size=1, max_size=5))
def test_a_filter_means_the_same_of_the_index_of_a_memory_and_in_sql(vault, ones, filters):
    vault.write_now(lambda tx: stored(tx, ones))
    ids = range(1, len(ones) + 1)
    memories, facts = vault.read_now(
        lambda tx: (summaries.summaries_by_ids(tx, ids), list(fulltext.index_rows(tx)))
    )
    columns = make_index(facts).columns
    for one in filters:
        sql, values = one.condition()
        query = f"SELECT s.id FROM summaries s WHERE {sql} ORDER BY s.id"  # noqa: S608  # ours
        in_sql = [i for (i,) in vault.read_now(lambda tx, q=query, v=values: [*tx.execute(q, v)])]
        assert columns.summary_id[one.mask(columns)].tolist() == in_sql
        assert [number for number in ids if one.matches(memories[number])] == in_sql
