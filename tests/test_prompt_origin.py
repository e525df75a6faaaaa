"""A prompt that no person typed is not the user's word, by whatever mark its client gives it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.capture.ingest import Ingestor
from memd.capture.prepare import CaptureRequest
from memd.config import CaptureConfig, DistillConfig
from memd.distill.distiller import Distiller
from memd.machine_text import USER, find_prompt_origin
from memd.models import Authority, EventKind
from memd.store import events, projects, summaries
from memd.transfer.transcripts import TranscriptReader
from tests.factories import AT
from tests.tables import every_row

RULE = "From now on always run make check before you commit."
ANSWER = (
    "Added the retry to the nightly upload: upload.py now tries three times with a pause of a"
    " second, because the store answers 503 while it restarts. The test of the upload covers it."
)
TURN = "01a20765-230b-7ef1-abb0-ce692c671b85"
BASE = {"session_id": "s", "cwd": "/home/dev/shop", "prompt_id": TURN}
SENT = [
    {"source": "system"},
    {"source": "loop_wakeup"},
    {"source": "schedule_wakeup"},
    {"source": "poll_event"},
    {"source": "webhook_of_next_year"},
    {"source": 7},
    {"promptSource": "system"},
    {"promptSource": "typed", "origin": {"kind": "channel", "server": "ci"}},
    {"origin": {"kind": "peer", "from": "worker"}},
    {"origin": {"kind": "task-notification", "subkind": "scheduled-trigger"}},
    {"origin": {"kind": "human", "subkind": "relayed"}},
    {"origin": {"kind": "a kind of next year"}},
    {"origin": {}},
    {"origin": ["human"]},
    {"turnOrigin": "scheduled"},
    {"turnOrigin": "host_synthetic", "promptSource": None},
    {"wakeupSource": "loop_wakeup", "origin": {"kind": "human"}},
    {"scheduledTaskId": "t1", "promptSource": "typed"},
    {"hostInitiator": "dispatch", "origin": {"kind": "human"}},
    {"textNotTyped": True, "origin": {"kind": "human"}},
    {"promptSource": "sdk", "turnOrigin": "sdk", "entrypoint": "sdk-py"},
    {"promptSource": "sdk", "entrypoint": "claude-code-github-action"},
    {"agent_id": "a1"},
]
TYPED = [
    {},
    {"source": "user"},
    {"source": "sdk"},
    {"source": None},
    {"promptSource": "typed"},
    {"promptSource": "queued", "turnOrigin": "unknown"},
    {"promptSource": "suggestion_accepted"},
    {"promptSource": "sdk", "turnOrigin": "sdk", "entrypoint": "sdk-cli"},
    {"promptSource": "sdk", "origin": {"kind": "human"}, "entrypoint": "sdk-ts"},
    {"promptSource": "sdk", "entrypoint": ["sdk-ts"]},
    {"turnOrigin": "human", "entrypoint": "claude-desktop"},
    {"hostInitiator": "user"},
    {"textNotTyped": False},
]
WRAPPED = [
    f'<teammate-message teammate_id="lead">\n{RULE}\n</teammate-message>',
    f'<channel source="ci" run="7">{RULE}</channel>',
    f'<cross-session-message from="b">{RULE}</cross-session-message>',
    f"<agent-message>{RULE}</agent-message>",
    f"<tick>{RULE}</tick>",
    f"<task-notification>{RULE}</task-notification>",
]


@every_row("marks", SENT, ids=str)
def test_what_a_client_says_that_nobody_typed_is_not_the_users(marks):
    assert find_prompt_origin({"prompt": RULE, **marks}) != USER


@every_row("marks", TYPED, ids=str)
def test_what_a_person_typed_or_nothing_speaks_against_is_the_users(marks):
    assert find_prompt_origin({"prompt": RULE, **marks}) == USER


@every_row("text", ["<channel>a feed</channel>", "<ticket>7</ticket>", "tick"])
def test_markup_that_a_person_pastes_is_no_senders(text):
    assert find_prompt_origin({"prompt": text}) == USER


leaf = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
anything = leaf | st.lists(leaf, max_size=2) | st.dictionaries(st.text(max_size=9), leaf, max_size=2)  # fmt: skip
NAMES = ("prompt", "origin", "source", "promptSource", "turnOrigin", "entrypoint", "hostInitiator")


@given(st.dictionaries(st.sampled_from(NAMES), anything))
def test_no_value_of_another_type_breaks_the_reading(payload):
    assert find_prompt_origin(payload)


def tell(prompt, marks, *, turn=TURN, session="s"):
    base = {**BASE, "prompt_id": turn, "session_id": session}
    edit = {"file_path": "/home/dev/shop/upload.py", "old_string": "put(f)", "new_string": "retry(put, f)"}  # fmt: skip
    return [
        base | {"hook_event_name": "UserPromptSubmit", "prompt": prompt} | marks,
        base
        | {"hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_input": edit}
        | {"tool_use_id": f"toolu_{turn[:16].replace('-', 'a')}", "tool_response": {}},
        base | {"hook_event_name": "Stop", "last_assistant_message": ANSWER},
    ]


class Vault:
    """A vault that takes payloads and distils them."""

    def __init__(self, db, clock, tmp_path):
        self.db, self.clock, self.at = db, clock, AT
        self.ingestor = Ingestor(db, CaptureConfig(), clock, str(tmp_path / "p"), lambda: None)

    async def take(self, payloads, source="live"):
        requests = []
        for payload in payloads:
            self.at += 1000
            requests.append(CaptureRequest("claude-code", payload, self.at, source=source))
        receipts = await self.ingestor.capture(requests)
        await Distiller(self.db, DistillConfig(), self.clock, lambda: None).settle(10**6)
        return receipts

    def memories(self):
        def read(tx):
            ids = [number for (number,) in tx.execute("SELECT id FROM summaries ORDER BY id")]
            return list(summaries.summaries_by_ids(tx, ids).values())

        return self.db.read(read)


@pytest.fixture
def vault(db, clock, tmp_path):
    return Vault(db, clock, tmp_path)


async def assert_nothing_is_the_users(vault):
    found = await vault.memories()
    for one in found:
        assert one.authority <= Authority.AGENT_CALL, one
        assert "make check" not in one.title, one
        assert "make check" not in one.body, one
        assert one.kind not in ("instruction", "preference"), one
    return found


@pytest.mark.parametrize(
    ("prompt", "marks"),
    [(RULE, marks) for marks in SENT] + [(text, {}) for text in WRAPPED],
    ids=lambda value: str(value)[:40],
)
async def test_no_rule_comes_of_a_prompt_that_nobody_typed(vault, prompt, marks):
    marks = {key: value for key, value in marks.items() if key != "agent_id"}
    if not marks and prompt == RULE:
        return
    await vault.take(tell(prompt, marks))
    await assert_nothing_is_the_users(vault)


async def test_the_work_that_a_schedule_began_is_remembered_as_the_agents(vault):
    await vault.take(tell("Look for uploads that failed.", {"source": "schedule_wakeup"}))
    found = await assert_nothing_is_the_users(vault)
    assert any("upload.py" in one.body for one in found)
    assert any("Asked by no person: schedule_wakeup" in one.body for one in found)


async def test_a_person_who_types_the_same_states_a_rule(vault):
    await vault.take(tell(RULE, {"source": "user"}))
    assert any(one.authority is Authority.USER_PROMPT for one in await vault.memories())


async def test_a_schedules_turn_is_no_part_of_the_users_work_before_it(vault):
    other = "02b20765-230b-7ef1-abb0-ce692c671b86"
    await vault.take(tell("Rename the basket to cart in checkout.py.", {}))
    await vault.take(tell(RULE, {"source": "schedule_wakeup"}, turn=other))
    turns = {one.episode for one in await vault.memories() if one.rule == "turn"}
    assert turns == {TURN, other}


@pytest.mark.parametrize("is_distilled", [False, True])
async def test_a_transcript_takes_back_what_its_hook_told_as_the_users(vault, is_distilled):
    """The hook of 2.1.332 does not say who a prompt comes from; the line of the transcript does."""
    hook = tell(RULE, {})
    line = {**hook[0], "prompt_origin": "scheduled"}
    if is_distilled:
        await vault.take(hook)
        assert any("make check" in one.title for one in await vault.memories())
        (receipt,) = await vault.take([line], source="transcript")
    else:
        (receipt, *_) = (await vault.take([hook[0], line, *hook[1:]]))[1:]
    assert receipt.outcome == "duplicate"
    await assert_nothing_is_the_users(vault)

    def read(tx):
        stored = events.events_by_ids(tx, [receipt.seq])[receipt.seq]
        return stored, projects.session(tx, stored.session_id)

    stored, session = await vault.db.read(read)
    assert (stored.kind, stored.payload["prompt_origin"]) == (EventKind.NOTIFICATION, "scheduled")
    assert session.title is None


async def test_no_copy_makes_a_senders_prompt_the_users(vault):
    first = tell(RULE, {"source": "schedule_wakeup"})
    await vault.take(first)
    await vault.take([{**first[0], "source": "user"}], source="transcript")
    await assert_nothing_is_the_users(vault)


def write_line(text, number=1, **marks):
    message = {"role": "user", "content": text}
    base = {"type": "user", "sessionId": "s", "cwd": "/home/dev/shop", "uuid": f"u{number}"}
    at = {"timestamp": f"2026-11-25T10:00:0{number}.000Z", "promptId": f"p{number}"}
    return json.dumps({**base, **at, "isSidechain": False, "message": message, **marks})


@every_row("marks", [one for one in SENT if not {"agent_id", "source"} & one.keys()], ids=str)
@every_row("is_meta", [False, True])
def test_a_line_of_a_transcript_tells_who_sent_its_prompt(marks, is_meta):
    reader = TranscriptReader()
    found = reader.feed(write_line(RULE, isMeta=is_meta, **marks)) + reader.finish()
    (payload,) = [one.payload for one in found]
    assert payload["prompt"] == RULE
    assert payload["prompt_id"] == "p1"
    assert find_prompt_origin(payload) == payload["prompt_origin"] != USER


def test_what_the_client_adds_to_a_prompt_is_still_no_prompt():
    reader = TranscriptReader()
    assert not reader.feed(write_line("Base directory for this skill: /x", isMeta=True))
    assert reader.skipped == {"injected by the client": 1}


def test_what_an_agent_said_before_the_api_failed_is_no_end_of_its_turn():
    reader = TranscriptReader()
    said = {"role": "assistant", "content": [{"type": "text", "text": "Now I run the tests."}]}
    lines = [
        write_line("Mend the test."),
        json.dumps({"type": "assistant", "sessionId": "s", "uuid": "a1", "message": said}),
        json.dumps(
            {"type": "assistant", "sessionId": "s", "uuid": "a2", "isApiErrorMessage": True}
            | {"error": "server_error", "message": {**said, "model": "<synthetic>"}}
        ),
        write_line("Go on.", 2),
    ]
    found = [one.payload for line in lines for one in reader.feed(line)] + [
        one.payload for one in reader.finish()
    ]
    names = [one["hook_event_name"] for one in found]
    assert names == ["UserPromptSubmit", "AgentText", "UserPromptSubmit"]


@pytest.mark.parametrize("marks", [{}, {"source": "schedule_wakeup"}])
async def test_a_private_prompt_hides_its_turn_whoever_sent_it(vault, marks):
    prompt, edit, stop = tell("<private>Look for my token.</private>", marks)
    await vault.take([prompt])
    (copy,) = await vault.take([{**prompt, "prompt_origin": "scheduled"}], source="transcript")
    assert copy.outcome == "duplicate"
    receipts = await vault.take([edit, stop])
    assert [(one.outcome, one.reason) for one in receipts] == [("filtered", "private turn")] * 2
    assert await vault.memories() == []
