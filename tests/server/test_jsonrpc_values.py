import json
from dataclasses import replace
from types import MappingProxyType

from memd.models import Authority, Kind, Summary, Tier
from memd.recall import Answer, Hit, ScorePart, Turn
from memd.server import jsonrpc

SUMMARY = Summary(
    id=1, uid="u", project_id=1, session_id=None, kind=Kind.FIX, tier=Tier.CORE, source="agent", title="t",
    body="b", at=1, created_at=2, updated_at=3, rule="r", tags=("x",),
)  # fmt: skip


def test_an_answer_has_the_fields_of_each_memory_beside_its_score():
    hit = Hit(SUMMARY, "demo", None, "b", 0.5, (ScorePart("a", 0.5),), ("lexical",))
    shown = jsonrpc.format_answer(
        Answer((hit,), "memd", None, 1.0, notes=("n",), contradicted={1: (4,)}),
        waited=None,
        notes=["unknown project"],
    )
    (row,) = shown["hits"]
    assert row["contradicted_by"] == [4]
    assert (row["id"], row["kind"], row["tags"], row["snippet"]) == (1, "fix", ["x"], "b")
    assert row["parts"] == [{"name": "a", "value": 0.5, "op": "+"}]
    assert shown["notes"] == ["n", "unknown project"]
    assert json.loads(json.dumps(shown)) == shown


def test_any_value_becomes_json():
    assert jsonrpc.to_plain({Kind.FIX: (1, {2}), "x": object}) == {
        "fix": [1, [2]],
        "x": str(object),
    }


def test_turns_are_complete():
    turn = Turn(7, "a session", "user", 5, "the kettle", 1)
    shown = jsonrpc.format_answer(
        Answer((), "memd", None, 1.0, turns=(turn,)), waited=None, notes=()
    )
    assert shown["turns"] == [
        {"event_id": 7, "session_title": "a session", "role": "user", "at": 5, "snippet": "the kettle",
         "rank": 1, "distance": None}
    ]  # fmt: skip


def test_json_is_written_of_values_as_they_are():
    value = {"at": float("nan"), "kind": Kind.FIX, "names": MappingProxyType({1: ("é", None)})}
    assert (
        jsonrpc.encode_json(value) == '{"at":null,"kind":"fix","names":{"1":["é",null]}}'.encode()
    )


def test_half_of_a_surrogate_pair_is_replaced():
    assert jsonrpc.encode_json({"title": "a\ud800", "n": (1,)}) == b'{"title":"a?","n":[1]}'


def test_a_memory_names_its_speaker_and_other_things_keep_their_numbers():
    memory = replace(SUMMARY, authority=Authority.USER_PROMPT, pinned_by=Authority.AGENT_CALL)
    event = {"payload": {"authority": 4, "pinned_by": 5, "id": 1}}
    (row,) = jsonrpc.name_speakers({"rows": ({"summary": memory, "event": event},)})["rows"]
    named = row["summary"]
    assert (named["speaker"], named["authority"]) == ("user", "the user in a prompt")
    assert named["pinned_by"] == "agent"
    assert row["event"] == event
    assert "client" not in named
    (told,) = jsonrpc.name_speakers([memory], {memory.source})
    assert told["client"] == memory.source
