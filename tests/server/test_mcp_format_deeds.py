from functools import partial

from memd.consolidate.forget import ForgetResult
from memd.consolidate.judgments import JudgmentResult
from memd.consolidate.near_duplicates import JudgmentCandidate
from memd.consolidate.remember import RememberResult
from memd.models import Kind, Stance, Summary, Tier
from memd.server import mcp_format
from memd.server.responses import (
    ForgetResponse,
    JudgeResponse,
    PinResponse,
    RememberResponse,
    check_response,
)

SUMMARY = Summary(
    id=12, uid="u", project_id=1, session_id=None, kind=Kind.NOTE, tier=Tier.CORE, source="agent",
    title="t" * 500, body="b", at=1, created_at=1, updated_at=1, rule="said", pinned_at=5,
)  # fmt: skip


def test_what_was_remembered_names_what_it_replaces():
    shown = mcp_format.remembered(RememberResult(12, "superseded", (3, 4)), "current", 1)
    assert shown == {
        "id": 12, "outcome": "superseded", "project": "current", "superseded": [3, 4],
    }  # fmt: skip
    check_response(RememberResponse, shown)


def test_a_dry_run_says_what_to_do_next_and_the_real_thing_does_not():
    check = partial(check_response, ForgetResponse)
    shown = mcp_format.forgotten(
        ForgetResult((SUMMARY,), 7, (1,), (2,), (99,), is_dry_run=True)
    )
    assert shown["would_forget"][0]["id"] == 12
    assert (shown["events"], shown["revived"], shown["also_in"], shown["unknown"]) == (
        7,
        [1],
        [2],
        [99],
    )
    assert "dry_run: false" in shown["next"]
    check(shown)
    done = mcp_format.forgotten(ForgetResult((SUMMARY,), 0, (), (), (), is_dry_run=False))
    assert set(done) == {"dry_run", "forgot", "events"}
    check(done)


def test_forgetting_much_is_still_told_briefly():
    shown = mcp_format.forgotten(
        ForgetResult((SUMMARY,) * 1_000, 0, tuple(range(10_000)), (), (), is_dry_run=False)
    )
    assert mcp_format.size(shown) < 20_000


def test_a_pinned_memory_says_so():
    shown = mcp_format.pinned(SUMMARY)
    assert (shown["id"], shown["pinned"], shown["tier"]) == (12, True, "core")
    check_response(PinResponse, shown)


def test_what_is_like_it_and_undecided_asks_for_a_judgment():
    near = JudgmentCandidate(7, "t" * 500, Kind.FACT, 1, 0.812345, "number: 3 → 5")
    shown = mcp_format.remembered(RememberResult(12, "created", (), (near,)), "p", 86_400_001)
    assert shown["judgment_required"] is True
    (row,) = shown["candidates"]
    assert (row["id"], row["age"], row["likeness"]) == (7, "1d", 0.812)
    check_response(RememberResponse, shown)


def test_a_judgment_says_what_it_hid_and_what_held_before():
    check = partial(check_response, JudgeResponse)
    shown = mcp_format.judged(
        JudgmentResult(2, 1, "judged", Stance.SUPERSEDES, (1,), (), "near-duplicate")
    )
    assert shown == {
        "id": 2, "other": 1, "outcome": "judged", "relation": "supersedes", "hidden": [1],
        "was": "near-duplicate",
    }  # fmt: skip
    check(shown)
    undone = mcp_format.judged(JudgmentResult(2, 1, "undone", None, (), (1,), "supersedes"))
    assert (undone["shown"], "relation" in undone) == ([1], False)
    check(undone)
