"""Forgetting and scrubbing with a real daemon: what is gone is gone from every file below its home."""

import json
import pathlib
import time

import pytest

from tests.e2e.house import House

SESSION = "5f0c{:04d}-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """One daemon for all: each test has words and sessions of its own."""
    it = House(tmp_path_factory.mktemp("erasing")).start()
    yield it
    it.stop()


def says(house, number, words, *, directory="/home/dev/ledger", at=None, output=""):
    """A session that asks, edits, runs and answers, all of it with these words; as its hook sends it."""
    base = {"session_id": SESSION.format(number), "cwd": directory, "prompt_id": f"p{number}"}
    tool = {"tool_name": "Bash", "tool_use_id": f"toolu_{number}"}
    payloads = [
        {"hook_event_name": "UserPromptSubmit", "prompt": f"Please look into {words} now"},
        {
            "hook_event_name": "PostToolUse",
            **tool,
            "tool_input": {"command": f"grep {words} src/a.py"},
            "tool_response": {"stdout": f"found {words} {output}", "stderr": ""},
        },
        {
            "hook_event_name": "PostToolUse",
            "tool_name": "Edit",
            "tool_use_id": f"toolu_edit_{number}",
            "tool_input": {"file_path": f"{directory}/src/{words}.py", "old_string": "a",
                           "new_string": words},
            "tool_response": {"success": True},
        },
        {
            "hook_event_name": "Stop",
            "last_assistant_message": f"We chose {words} over files because they are quicker.",
        },
    ]  # fmt: skip
    events = [
        {"client": "claude-code", "payload": base | one, "directory": directory}
        | ({} if at is None else {"at": at})
        for one in payloads
    ]
    last = call(house, "memd/capture", events=events)["receipts"][-1]["seq"]
    if last is not None:
        house.wait_for(
            lambda: "waited" not in call(house, "memd/search", query=words, min_event=last)
        )


def call(house, method, **params):
    with house.client() as client:
        return client.call(method, params)


def test_a_forgotten_session_is_gone_from_every_file_and_does_not_come_back(house):
    says(house, 11, "xylophone")
    says(house, 12, "marimba")
    assert house.files_with("xylophone")
    told = call(house, "memd/forget", session=SESSION.format(11), dry_run=True)
    assert (told["count"] > 0, told["events"], told["kept_events"]) == (True, 4, 0)
    assert told["sessions"] == ["Please look into xylophone now"]
    assert house.files_with("xylophone"), "a dry run erases nothing"
    done = call(
        house, "memd/forget", session=SESSION.format(11), dry_run=False, token=told["token"]
    )
    assert done["count"] == told["count"]
    assert house.files_with("xylophone") == []
    assert house.files_with(SESSION.format(11)) == []
    assert house.files_with("marimba")
    says(house, 11, "xylophone")
    # The counts of a status may be a moment old.
    house.wait_for(lambda: house.status()["books"]["reasons"]["filtered"] == {"forgotten": 4})
    assert house.status()["books"]["balanced"]


def test_a_forgotten_project_is_gone_with_its_name_and_its_directory(house):
    says(house, 21, "balalaika", directory="/home/dev/quetzal")
    says(house, 22, "zither")
    done = call(house, "memd/forget", project="quetzal", dry_run=False)
    assert (len(done["sessions"]), done["events"]) == (1, 4)
    assert house.files_with("balalaika", "quetzal") == []
    names = [one["name"] for one in call(house, "memd/projects")["projects"]]
    assert "quetzal" not in names
    says(house, 23, "balafon", directory="/home/dev/quetzal")
    assert call(house, "memd/search", query="balafon", project="all")["hits"]


def test_what_waits_in_the_spool_is_forgotten_too(house):
    says(house, 31, "kazoo")
    house.stop()
    prompt = {
        "hook_event_name": "UserPromptSubmit", "session_id": SESSION.format(31), "prompt_id": "p9",
        "cwd": "/home/dev/ledger", "prompt": "the ocarina again",
    }  # fmt: skip
    house.run("hook", "UserPromptSubmit", stdin=json.dumps(prompt).encode())
    assert house.files_with("ocarina")
    house.start()
    call(house, "memd/forget", session=SESSION.format(31), dry_run=False)
    assert house.files_with("ocarina", "kazoo") == []


def test_a_query_erases_what_says_all_its_words_and_names_the_backups(house):
    says(house, 41, "theremin")
    says(house, 42, "dulcimer")
    backups = pathlib.Path(house.paths.data_dir) / "backups"
    backups.mkdir()
    (backups / "default-20990101T000000Z.memd").write_text("theremin")
    everywhere = ("--project", "all")
    ran = house.run("forget", "--query", "Theremin quicker", "--yes", *everywhere)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert b"default-20990101T000000Z.memd is a backup and may still hold it" in ran.stdout
    ran = house.run("forget", "--query", "quicker", "--json", *everywhere)
    assert (ran.returncode, ran.stdout.count(b"theremin")) == (0, 0)


def test_a_scrubbed_word_is_gone_from_every_file_and_found_under_its_placeholder(house):
    says(house, 51, "vuvuzela")
    says(house, 52, "clavichord")
    with pathlib.Path(house.paths.log).open("a") as log:
        log.write('{"error": "vuvuzela"}\n')
    ran = house.run("scrub", "vuvu[a-z]+", "--dry-run")
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert b"vuvu" not in ran.stdout
    assert b"would rewrite 4 events\n" in ran.stdout
    assert house.files_with("vuvuzela"), "a dry run rewrites nothing"
    ran = house.run("scrub", "-", "--yes", stdin=b"vuvu[a-z]+\n")
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert house.files_with("vuvuzela") == []
    assert house.files_with("clavichord")
    (hit, *_) = call(house, "memd/search", query="scrub over files", project="all")["hits"]
    assert "[REDACTED:scrub]" in hit["title"] + hit["body"]
    call(house, "memd/reindex")
    assert house.run("scrub", "vuvu[a-z]+", "--yes").stdout.startswith(b"found nowhere\n")


def test_what_is_old_is_previewed_then_cut_down_to_what_is_cited_and_why_still_cites_it(house):
    at = int(time.time() * 1000) - 100 * 86_400_000
    says(house, 61, "hurdygurdy", at=at, output="sackbut " * 200)
    assert house.files_with("sackbut")
    ran = house.run("vacuum", "--dry-run")
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert b"would cut down 1 event older than 90 days to what is cited: 1." in ran.stdout
    assert house.files_with("sackbut"), "a preview changes nothing"
    (hit, *_) = call(house, "memd/search", query="hurdygurdy", project="all")["hits"]
    before = call(house, "memd/why", id=hit["id"])["sources"]
    ran = house.run("vacuum")
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert b"cut down 1 event older than 90 days" in ran.stdout
    assert house.files_with("sackbut") == []
    after = call(house, "memd/why", id=hit["id"])["sources"]
    assert [source["quote"] for source in after] == [source["quote"] for source in before]
    assert house.status()["books"]["balanced"]
    assert b"nothing that is old enough" in house.run("vacuum", "--dry-run").stdout
