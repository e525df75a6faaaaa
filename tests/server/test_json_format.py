import json

from memd.models import Kind, Summary, Tier
from memd.recall.types import Answer, Hit, ScorePart, Turn
from memd.server import json_format

SUMMARY = Summary(
    id=1, uid="u", project_id=1, session_id=None, kind=Kind.FIX, tier=Tier.CORE, source="agent", title="t",
    body="b", at=1, created_at=2, updated_at=3, rule="r", tags=("x",),
)  # fmt: skip


def test_an_answer_is_whole_and_flat():
    hit = Hit(SUMMARY, "demo", None, "b", 0.5, (ScorePart("a", 0.5),), ("lexical",))
    shown = json_format.answer(
        Answer((hit,), "memd", None, 1.0, notes=("n",), contradicted={1: (4,)}),
        waited=None,
        note="unknown project",
    )
    (told,) = shown["hits"]
    assert told["contradicted_by"] == [4]
    assert (told["id"], told["kind"], told["tags"], told["snippet"]) == (1, "fix", ["x"], "b")
    assert told["parts"] == [{"name": "a", "value": 0.5, "op": "+"}]
    assert shown["notes"] == ["n", "unknown project"]
    assert json.loads(json.dumps(shown)) == shown


def test_anything_becomes_plain():
    assert json_format.plain({Kind.FIX: (1, {2}), "x": object}) == {
        "fix": [1, [2]],
        "x": str(object),
    }
    assert json_format.memory(SUMMARY, "demo", "")["session_title"] is None


def test_what_was_said_is_there_whole():
    turn = Turn(7, "a session", "user", 5, "the kettle", 1)
    shown = json_format.answer(
        Answer((), "memd", None, 1.0, turns=(turn,)), waited=None, note=None
    )
    assert shown["turns"] == [
        {"event_id": 7, "session_title": "a session", "role": "user", "at": 5, "snippet": "the kettle",
         "rank": 1}
    ]  # fmt: skip
