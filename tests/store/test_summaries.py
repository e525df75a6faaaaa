import dataclasses

import pytest

from memd.models import Draft, Kind, Source, Tier
from memd.store import fulltext, ledger, links, projects, summaries
from memd.store.filter import Filter
from memd.store.summaries import SummaryOwner
from tests.factories import live_summaries

DRAFT = Draft(
    "turn",
    Kind.NOTE,
    "Title",
    "Body",
    100,
    "turn",
    (Source(1, "q"),),
    tags=("a", "ü"),
    files=("/x.py",),
)


@pytest.fixture
def owner(db):
    return SummaryOwner(
        db.write_now(lambda tx: projects.ensure_project(tx, "/a", "a", "", 1)), None, "agent"
    )


def put(db, owner, uid, now=1, **change):
    return db.write_now(
        lambda tx: summaries.put_summary(tx, uid, dataclasses.replace(DRAFT, **change), owner, now)
    )


def get(db, number):
    return db.read_now(lambda tx: summaries.get_summary(tx, number))


def test_the_same_draft_again_changes_nothing_and_another_text_revises(db, owner):
    number, _ = put(db, owner, "u")
    db.write_now(
        lambda tx: fulltext.remove_changes(tx, [seq for seq, _ in fulltext.pending_changes(tx, 9)])
    )
    assert put(db, owner, "u", now=2) == (number, "unchanged")
    assert db.read_now(fulltext.count_changes) == 0
    assert put(db, owner, "u", now=3, body="Longer body") == (number, "revised")
    assert get(db, number).revisions == 2
    assert [i for _, i in db.read_now(lambda tx: fulltext.pending_changes(tx, 9))] == [number]


def test_what_was_forgotten_is_not_written_again(db, owner):
    db.write_now(lambda tx: ledger.record_forgotten(tx, "u", 1))
    assert put(db, owner, "u") == (0, "forgotten")


def test_a_superseded_summary_names_its_successor_and_is_not_live(db, owner):
    old, _ = put(db, owner, "old")
    new, _ = put(db, owner, "new", at=200)
    db.write_now(
        lambda tx: links.supersede(
            tx, newer_id=new, older_id=old, rule="r", cosine=0.99, guard="same", at=1
        )
    )
    assert get(db, old).superseded_by == new
    assert [s.id for s in db.read_now(lambda tx: live_summaries(tx, owner.project_id))] == [new]
    heads = db.read_now(lambda tx: summaries.summary_heads(tx, [old, new, 99]))
    assert (heads[old].superseded_by, heads[old].superseded_at, heads[new].superseded_by) == (
        new,
        200,
        None,
    )


def test_a_timeline_is_ordered_by_event_time_and_filtered(db, owner):
    ids = [put(db, owner, f"u{at}", at=at)[0] for at in (300, 100, 200)]
    decision = put(db, owner, "d", at=250, kind=Kind.DECISION)[0]

    def around(wanted, **bounds):
        return [
            s.id
            for s in db.read_now(
                lambda tx: summaries.summaries_around(tx, wanted, 200, **bounds, pivot=ids[2])
            )
        ]

    assert around(Filter(include_superseded=True), before=5, after=5) == [
        ids[1],
        ids[2],
        decision,
        ids[0],
    ]
    assert around(Filter(include_superseded=True, kinds=(Kind.DECISION,)), before=5, after=5) == [
        decision
    ]
    assert around(Filter(include_superseded=True, project_ids=(99,)), before=5, after=5) == []
    assert around(Filter(include_superseded=True), before=1, after=1) == [ids[1], ids[2]]


def test_only_what_was_looked_at_as_it_stands_counts_as_consolidated(db, owner):
    put(db, owner, "u", now=1)
    seen = db.read_now(lambda tx: summaries.to_consolidate(tx, 9))
    put(db, owner, "u", now=2, body="Changed meanwhile")
    db.write_now(lambda tx: summaries.mark_consolidated(tx, seen))
    assert len(db.read_now(lambda tx: summaries.to_consolidate(tx, 9))) == 1
    assert db.read_now(summaries.summary_counts)["to_consolidate"] == 1


def test_topics_are_read_newest_first(db, owner):
    first, _ = put(db, owner, "a", topic_key="build.command", at=1)
    second, _ = put(db, owner, "b", topic_key="build.command", at=2)
    found = db.read_now(
        lambda tx: summaries.topic_summaries(tx, "build.command", [owner.project_id])
    )
    assert [s.id for s in found] == [second, first]
    assert db.read_now(lambda tx: summaries.ids_on_topic(tx, "build.command")) == [second, first]


def test_an_episode_is_found_whole(db, owner):
    session_owner = dataclasses.replace(owner, episode="e")
    number, _ = put(db, session_owner, "u")
    assert db.read_now(lambda tx: summaries.summaries_by_ids(tx, [number]))[number].episode == "e"
    assert db.read_now(lambda tx: summaries.episode_summaries(tx, 1, "e")) == []


@pytest.mark.parametrize(
    ("rule", "tier"),
    [("imported:file", Tier.FILE), ("imported", Tier.AGENT), ("turn", Tier.CAPTURED)],
)
def test_unpinning_gives_what_was_imported_its_own_tier_back(db, owner, rule, tier):
    owner = dataclasses.replace(owner, source="import:markdown")
    number, _ = put(db, owner, "u", tier=tier, rule=rule)
    for pinned_at in (5, None):
        db.write_now(lambda tx, at=pinned_at: summaries.pin_summary(tx, number, at))
    assert get(db, number).tier is tier
