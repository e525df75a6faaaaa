"""The examples of docs/what-sticks.md, typed to a real daemon."""

import json
import pathlib
import re

import pytest

from tests.e2e.real_daemon import RealDaemon

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "what-sticks.md"
_ROW = re.compile(r"^\| (?P<typed>.+?) \| (?P<kept>nothing|(?:fact|instruction|preference|task|decision): .+?) \|$", re.MULTILINE)  # fmt: skip
ROWS = [(row["typed"], row["kept"]) for row in _ROW.finditer(PAGE.read_text("utf-8"))]


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """What was kept of each sentence, typed in a project of its own."""
    daemon = RealDaemon(tmp_path_factory.mktemp("m")).start()
    places = {typed: f"/home/dev/project-{number}" for number, (typed, _) in enumerate(ROWS)}
    with daemon.client() as client:
        for typed, place in places.items():
            for event, fields in (
                ("SessionStart", {"source": "startup"}),
                ("UserPromptSubmit", {"prompt": typed}),
                ("Stop", {"last_assistant_message": "Okay.", "stop_hook_active": False}),
                ("SessionEnd", {"reason": "exit"}),
            ):
                payload = {"session_id": place, "cwd": place, "hook_event_name": event, **fields}
                client.call("memd/capture", {"client": "claude-code", "payload": payload})
    daemon.settle()
    found = {}
    for typed, place in places.items():
        listed = daemon.run("list", "--project", place, "--json")
        memories = json.loads(listed.stdout)["memories"] if listed.returncode == 0 else []
        found[typed] = [(one["kind"], one["title"], one["speaker"]) for one in memories]
    yield found
    daemon.stop()


@pytest.mark.parametrize(("typed", "expected"), ROWS, ids=[typed for typed, _ in ROWS])
def test_what_the_page_says_of_a_sentence_is_what_is_kept_of_it(kept, typed, expected):
    kind, _, title = expected.partition(": ")
    assert kept[typed] == ([(kind, title, "user")] if title else [])


def test_the_page_has_sentences_that_are_kept_and_such_that_are_not():
    assert {bool(kept.partition(": ")[2]) for _, kept in ROWS} == {True, False}
