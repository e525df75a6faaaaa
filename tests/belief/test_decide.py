import dataclasses

from memd.belief.claims import join_title
from memd.belief.decide import MAY_HIDE, CandidatePair, count_refusals, decide
from memd.models import Authority, EdgeType, Kind, Summary, Tier
from tests.tables import every_row

OLD = Summary(
    id=1, uid="u", project_id=1, session_id=1, kind=Kind.DECISION, tier=Tier.CAPTURED, source="claude-code",
    title="Cache", body="We cache user profiles for 30 seconds", at=100, created_at=1, updated_at=1, rule="r",
)  # fmt: skip
SUPERSEDES = EdgeType.SUPERSEDES


def old(**change):
    return dataclasses.replace(OLD, **change)


def new(number=2, **change):
    return dataclasses.replace(OLD, id=number, uid=f"u{number}", **{"at": 100 + number, **change})


def decide_pair(newer, older=OLD, cosine=0.97):
    """The decision, or None if there is none."""
    return next(decide([CandidatePair(newer, older, cosine)]), None)


def decide_type(newer, older=OLD):
    return decide_pair(newer, older).type


def test_a_restatement_supersedes_the_older_one():
    decision = decide_pair(new(body="we cache user profiles for 30s"))
    assert (decision.type, decision.pair, decision.cosine) == (SUPERSEDES, (2, 1), 0.97)
    assert decision.comparison.reason == "same"


def test_the_one_that_happened_later_is_the_newer_whatever_its_id():
    assert decide_pair(new(at=50)).pair == (1, 2)
    assert decide_pair(new(at=100)).pair == (2, 1)


@every_row(
    "body",
    ["We cache user profiles for 60 seconds", "We do not cache user profiles for 30 seconds"],
)
def test_another_value_of_the_same_thing_supersedes_the_older_one(body):
    decision = decide_pair(new(body=body))
    assert (decision.pair, decision.type) == ((2, 1), SUPERSEDES)
    assert "changed from" in decision.reason


@every_row(
    "older",
    [
        {"pinned_at": 1},
        {"topic_key": "cache"},
        {"authority": Authority.USER_HAND},
        {"pinned_by": Authority.USER_HAND},
    ],
)
def test_a_changed_value_contradicts_what_it_may_not_replace(older):
    newer = new(body="We cache user profiles for 60 seconds")
    assert decide_type(newer, old(**older)) is EdgeType.CONTRADICTS
    assert decide_type(dataclasses.replace(newer, expires_at=200)) is EdgeType.CONTRADICTS


def test_two_claims_that_cannot_both_hold_contradict():
    newer = new(body="We cache user profiles for 60 seconds in the gateway")
    decision = decide_pair(newer, old(body="In the gateway we cache user profiles for 30 seconds"))
    assert (decision.pair, decision.type) == ((2, 1), EdgeType.CONTRADICTS)


def test_only_claims_contradict():
    newer = new(kind=Kind.CHANGE, body="We cache user profiles for 60 seconds")
    assert decide_type(newer, old(kind=Kind.CHANGE)) is EdgeType.SIMILAR_TO


def test_another_file_is_another_subject():
    newer = new(body="We cache in b.py for 60 s")
    assert decide_type(newer, old(body="We cache in a.py for 30 s")) is EdgeType.SIMILAR_TO
    assert decide_type(new(files=("b.py",)), old(files=("a.py",))) is EdgeType.SIMILAR_TO


@every_row(
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
def test_no_memory_is_hidden_that_would_then_be_harder_to_find(older, newer, aspect):
    decision = decide_pair(new(**newer), old(**older))
    assert decision.type is not SUPERSEDES
    assert aspect in decision.comparison.aspects


def test_a_claim_may_hide_a_note_but_a_note_no_claim():
    assert decide_type(new(), old(kind=Kind.NOTE)) is SUPERSEDES
    assert Kind.DECISION not in MAY_HIDE[Kind.NOTE]
    assert all(kind in MAY_HIDE[kind] for kind in Kind)
    assert Kind.FAILURE not in MAY_HIDE[Kind.FIX]


@every_row("change", [{"project_id": 2}, {"superseded_by": 9}])
def test_another_project_and_hidden_memories_are_left_alone(change):
    assert decide_pair(new(**change)) is None


def test_two_summaries_of_one_episode_are_left_alone():
    older = old(episode="e")
    assert decide_pair(new(episode="e"), older) is None
    assert decide_type(new(episode="e", session_id=2), older) is SUPERSEDES
    assert decide_type(new(episode="f"), older) is SUPERSEDES


def test_of_several_copies_each_is_hidden_once_by_the_newest():
    a, b, c = OLD, new(2), new(3)
    pairs = [(a, b, 0.99), (c, a, 0.98), (b, c, 0.97), (c, b, 0.97)]
    decisions = decide(CandidatePair(*pair) for pair in pairs)
    assert [(one.pair, one.cosine) for one in decisions] == [((3, 2), 0.97), ((3, 1), 0.98)]


def test_refusals_are_counted_by_aspect():
    other = new(body="We cache user profiles for 60 seconds", kind=Kind.CHANGE)
    first, third = old(kind=Kind.CHANGE), new(3, kind=Kind.CHANGE)
    pairs = [CandidatePair(first, other, 0.96), CandidatePair(other, third, 0.99)]
    assert count_refusals(decide(pairs)) == {"number": 2}


def test_two_texts_of_one_form_are_decided_without_a_cosine():
    assert decide_pair(new(), cosine=None).type is SUPERSEDES
    decision = decide_pair(new(body="We do not cache user profiles for 30 seconds"), cosine=None)
    assert (decision.type, decision.cosine) == (SUPERSEDES, None)


def test_the_same_words_in_another_relation_do_not_make_two_memories_similar():
    older = old(kind=Kind.CHANGE, body="The worker calls the gateway")
    newer = new(kind=Kind.CHANGE, body="The gateway calls the worker")
    assert decide_pair(newer, older, cosine=None) is None
    assert decide_pair(newer, older, cosine=0.99).type is EdgeType.SIMILAR_TO


@every_row("more", [", in 64 MB", ". It does not help much with avatars, orders or invoices."])
def test_a_detail_that_only_one_text_has_is_no_contradiction(more):
    assert decide_type(new(body=OLD.body + more)) is EdgeType.SIMILAR_TO


def test_a_title_that_only_begins_the_text_is_ignored():
    older = old(
        title="Use Redis for sessions, because…", body="Use Redis for sessions, because it expires"
    )
    newer = new(title="Because it expires, use…", body="Because it expires, use Redis for sessions")
    assert decide_type(newer, older) is SUPERSEDES
    assert join_title("A title", "a body") == "A title\na body"
    assert join_title("", "a body") == "a body"


def test_numbers_that_are_swapped_contradict():
    older = old(body="10 retries and 30 seconds")
    assert decide_type(new(body="30 retries and 10 seconds"), older) is EdgeType.CONTRADICTS


def test_a_statement_for_one_branch_replaces_none_for_another():
    branch = ("scope:branch:dev/cart",)
    assert decide_pair(new(tags=branch)) is None
    assert decide_pair(new(), old(tags=branch)) is None
    assert decide_type(new(tags=branch), old(tags=branch)) is SUPERSEDES
