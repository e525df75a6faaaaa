import dataclasses

import pytest

from memd.consolidate.decide import (
    MAY_HIDE,
    CandidatePair,
    Relate,
    Supersede,
    count_refusals,
    decide,
    join_text,
)
from memd.models import EdgeType, Kind, Summary, Tier

OLD = Summary(
    id=1, uid="u", project_id=1, session_id=1, kind=Kind.DECISION, tier=Tier.CAPTURED, source="claude-code",
    title="Cache", body="We cache user profiles for 30 seconds", at=100, created_at=1, updated_at=1, rule="r",
)  # fmt: skip


def like(number, **change):
    return dataclasses.replace(
        OLD, id=number, uid=f"u{number}", **{"at": 100 + number, **change}
    )


def verdict(newer, older=OLD):
    found = decide([CandidatePair(newer, older, 0.97)])
    return found[0] if found else None


def test_a_restatement_supersedes_the_older_one():
    assert verdict(like(2, body="we cache user profiles for 30s")) == Supersede(
        2, 1, 0.97, "same"
    )


def test_the_one_that_happened_later_is_the_newer_whatever_its_id():
    assert verdict(like(2, at=50)) == Supersede(1, 2, 0.97, "same")
    assert verdict(like(2, at=100)) == Supersede(2, 1, 0.97, "same")


@pytest.mark.parametrize(
    "body",
    ["We cache user profiles for 60 seconds", "We do not cache user profiles for 30 seconds"],
)
def test_two_claims_that_cannot_both_hold_contradict(body):
    found = verdict(like(2, body=body))
    assert isinstance(found, Relate)
    assert (found.a, found.b, found.type) == (2, 1, EdgeType.CONTRADICTS)


def test_only_claims_contradict():
    older = dataclasses.replace(OLD, kind=Kind.CHANGE)
    found = verdict(
        like(2, kind=Kind.CHANGE, body="We cache user profiles for 60 seconds"), older
    )
    assert found.type is EdgeType.SIMILAR_TO


def test_another_file_is_another_subject():
    older = dataclasses.replace(OLD, body="We cache in a.py for 30 s")
    assert verdict(like(2, body="We cache in b.py for 60 s"), older).type is EdgeType.SIMILAR_TO
    assert (
        verdict(like(2, files=("b.py",)), dataclasses.replace(OLD, files=("a.py",))).type
        is EdgeType.SIMILAR_TO
    )


@pytest.mark.parametrize(
    ("older", "newer", "aspect"),
    [
        ({"pinned_at": 5}, {}, "pinned"),
        ({"topic_key": "cache.ttl"}, {}, "topic"),
        ({"tier": Tier.AGENT}, {}, "tier"),
        ({}, {"expires_at": 10**9}, "expiry"),
        ({}, {"kind": Kind.NOTE}, "kind"),
        ({"body": f"{OLD.body}. It saves a query."}, {}, "detail"),
    ],
)
def test_nothing_is_hidden_that_would_then_be_harder_to_find(older, newer, aspect):
    found = verdict(like(2, **newer), dataclasses.replace(OLD, **older))
    assert isinstance(found, Relate)
    assert aspect in found.finding.aspects


def test_a_note_may_be_hidden_by_the_claim_that_it_was_and_not_the_other_way_round():
    assert isinstance(verdict(like(2), dataclasses.replace(OLD, kind=Kind.NOTE)), Supersede)
    assert Kind.DECISION not in MAY_HIDE[Kind.NOTE]
    assert all(kind in MAY_HIDE[kind] for kind in Kind)
    assert Kind.FAILURE not in MAY_HIDE[Kind.FIX]


@pytest.mark.parametrize("change", [{"project_id": 2}, {"superseded_by": 9}])
def test_another_project_and_what_is_hidden_are_left_alone(change):
    assert verdict(like(2, **change)) is None


def test_two_summaries_of_one_episode_are_left_alone():
    older = dataclasses.replace(OLD, episode="e")
    assert verdict(like(2, episode="e"), older) is None
    assert isinstance(verdict(like(2, episode="e", session_id=2), older), Supersede)
    assert isinstance(verdict(like(2, episode="f"), older), Supersede)


def test_of_several_copies_each_is_hidden_once_by_the_newest():
    a, b, c = OLD, like(2), like(3)
    found = decide(
        [
            CandidatePair(a, b, 0.99),
            CandidatePair(c, a, 0.98),
            CandidatePair(b, c, 0.97),
            CandidatePair(c, b, 0.97),
        ]
    )
    assert found == [Supersede(3, 2, 0.97, "same"), Supersede(3, 1, 0.98, "same")]


def test_refusals_are_counted_by_what_differed():
    other = like(2, body="We cache user profiles for 60 seconds")
    assert count_refusals(
        decide([CandidatePair(OLD, other, 0.96), CandidatePair(other, like(3), 0.99)])
    ) == {"number": 2}


def test_two_of_one_form_are_decided_without_a_cosine():
    assert decide([CandidatePair(OLD, like(2), None)]) == [Supersede(2, 1, None, "same")]
    (opposed,) = decide(
        [CandidatePair(OLD, like(2, body="We do not cache user profiles for 30 seconds"), None)]
    )
    assert (opposed.type, opposed.cosine) == (EdgeType.CONTRADICTS, None)


def test_the_same_words_in_another_relation_are_not_alike_for_that_alone():
    older = dataclasses.replace(OLD, kind=Kind.CHANGE, body="The worker calls the gateway")
    newer = like(2, kind=Kind.CHANGE, body="The gateway calls the worker")
    assert decide([CandidatePair(older, newer, None)]) == []
    assert len(decide([CandidatePair(older, newer, 0.99)])) == 1


def test_what_only_one_of_them_speaks_of_is_no_contradiction():
    for body in (
        "We cache user profiles for 30 seconds, in 64 MB",
        "We cache user profiles for 30 seconds. It does not help much with avatars, orders or invoices.",
    ):
        found = verdict(like(2, body=body))
        assert isinstance(found, Relate)
        assert found.type is EdgeType.SIMILAR_TO


def test_a_title_that_only_begins_the_text_says_nothing_of_its_own():
    older = dataclasses.replace(
        OLD,
        title="Use Redis for sessions, because…",
        body="Use Redis for sessions, because it expires",
    )
    newer = like(
        2, title="Because it expires, use…", body="Because it expires, use Redis for sessions"
    )
    assert isinstance(verdict(newer, older), Supersede)
    assert join_text("A title", "a body") == "A title\na body"
    assert join_text("", "a body") == "a body"


def test_numbers_that_are_swapped_contradict():
    older = dataclasses.replace(OLD, body="10 retries and 30 seconds")
    found = verdict(like(2, body="30 retries and 10 seconds"), older)
    assert found.type is EdgeType.CONTRADICTS
