"""A secret that was told once, with a cue, is in no file of a real daemon, wherever else it came."""

import json

import pytest

from tests.e2e.real_daemon import RealDaemon

SESSION = "5ec{:05d}-0000-4000-8000-000000000000"
PLACE = "/home/dev/pigeon"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    """One daemon for all: each test has secrets of its own."""
    it = RealDaemon(tmp_path_factory.mktemp("known")).start()
    yield it
    it.stop()


def call(daemon, method, **params):
    with daemon.client() as client:
        return client.call(method, params)


def prompted(text):
    return {"hook_event_name": "UserPromptSubmit", "prompt": text}


def ran(number, command, output=""):
    return {
        "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": f"toolu_{number:020d}",
        "tool_input": {"command": command}, "tool_response": {"stdout": output, "stderr": ""},
    }  # fmt: skip


def answered(text):
    return {"hook_event_name": "Stop", "last_assistant_message": text}


def captured(daemon, number, *payloads, place=PLACE):
    """Send what the hooks of a session's turn send, one call each."""
    base = {"session_id": SESSION.format(number), "cwd": place, "prompt_id": f"p{number}"}
    for payload in payloads:
        call(daemon, "memd/capture", client="claude-code", payload=base | payload, directory=place)


def test_a_key_goes_from_the_command_the_edit_the_answer_and_the_note_that_repeat_it(daemon):
    key = "8f3a9c1e77b24d0d9a5e6f1c2b3d4e5f"
    edit = {
        "hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_use_id": "toolu_edit",
        "tool_input": {"file_path": f"{PLACE}/w.py", "old_string": "x", "new_string": f"get('{key}')"},
        "tool_response": {"success": True},
    }  # fmt: skip
    captured(
        daemon, 1,
        prompted(f"my api key for the weather is {key}"),
        ran(1, f"echo WEATHER={key} >> .env", f"wrote {key}"),
        edit,
        answered(f"The weather now answers with {key}, as asked."),
    )  # fmt: skip
    call(daemon, "memd/remember", text=f"The weather wants {key} as its parameter", project=PLACE)
    daemon.settle()
    assert daemon.files_with(key) == []
    assert daemon.files_with("WEATHER=[REDACTED:")


def test_it_goes_from_another_session_of_the_project_but_not_from_another_project(daemon):
    captured(daemon, 2, prompted("the db password is Kestrel-Anvil-77"))
    captured(daemon, 3, prompted("again"), ran(3, "psql 'Kestrel-Anvil-77'"))
    assert daemon.files_with("Kestrel-Anvil-77") == []
    captured(daemon, 4, ran(4, "deploy Kestrel-Anvil-77"), place="/home/dev/other")
    assert daemon.files_with("deploy Kestrel-Anvil-77")


def test_what_was_stored_before_its_cue_in_the_same_turn_is_rewritten(daemon):
    captured(daemon, 5, prompted("go"), ran(5, "cat notes", "see Otter-Bell-2931 there"))
    assert daemon.files_with("Otter-Bell-2931")
    captured(daemon, 5, answered("I see that the wifi password is Otter-Bell-2931"))
    daemon.wait_for(lambda: daemon.files_with("Otter-Bell-2931") == [])


def test_an_ordinary_word_and_a_short_number_stay_where_they_are_no_secret(daemon):
    captured(
        daemon, 6,
        prompted("the password is banana, and the pin is 4471"),
        ran(6, "peel-banana --port 4471"),
    )  # fmt: skip
    assert daemon.files_with("peel-banana --port 4471")
    assert daemon.files_with("password is banana") == []


def test_an_import_hides_it_as_well(daemon, tmp_path):
    key = "c41d77be90aa4f21b2d38e5560f7a913"
    base = {"sessionId": SESSION.format(7), "cwd": PLACE, "version": "2.1.0", "isSidechain": False}
    said = [
        ("user", {"role": "user", "content": f"the access token is {key}"}),
        ("assistant", {"role": "assistant", "model": "m", "content": [
            {"type": "tool_use", "id": "toolu_01ABCDEFGHIJKLMNOP", "name": "Bash",
             "input": {"command": f"curl -d t={key} https://imported.example"}}]}),
        ("user", {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_01ABCDEFGHIJKLMNOP", "content": f"hello {key}"}]}),
        ("assistant", {"role": "assistant", "model": "m", "content": [
            {"type": "text", "text": f"It took {key}."}], "stop_reason": "end_turn"}),
    ]  # fmt: skip
    lines = [
        {**base, "type": kind, "message": message, "uuid": f"00000000-0000-4000-8000-{n:012d}",
         "parentUuid": None, "timestamp": f"2026-03-01T10:00:{n:02d}.000Z"}
        for n, (kind, message) in enumerate(said)
    ]  # fmt: skip
    folder = tmp_path / "projects" / "-home-dev-pigeon"
    folder.mkdir(parents=True)
    file = folder / f"{SESSION.format(7)}.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    assert daemon.run("import", "claude-code", str(tmp_path / "projects")).returncode == 0
    daemon.settle()
    assert daemon.files_with("imported.example")
    assert daemon.files_with(key) == []
