"""The examples of docs/what-sticks.md, typed to a real daemon."""

import json
import pathlib
import re

import pytest

from tests.e2e.real_daemon import RealDaemon

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "what-sticks.md"
_ROW = re.compile(r"^\| (?P<typed>.+?) \| (?P<kept>nothing|(?:fact|instruction|preference|task|decision): .+?) \|$", re.MULTILINE)  # fmt: skip
ROWS = [(row["typed"], row["kept"]) for row in _ROW.finditer(PAGE.read_text("utf-8"))]
_TURN = re.compile(r"^\| (?P<first>[^|]+) \| (?P<later>[^|]+) \| (?P<holds>the first|the later) \|$", re.MULTILINE)  # fmt: skip
TURNS = [(row["first"], row["later"], row["holds"]) for row in _TURN.finditer(PAGE.read_text("utf-8"))]  # fmt: skip


@pytest.fixture(scope="module")
def typing(tmp_path_factory):
    """A daemon to which sentences are typed."""
    daemon = TypedTo(tmp_path_factory.mktemp("m")).start()
    yield daemon
    daemon.stop()


class TypedTo(RealDaemon):
    """A real daemon, in whose projects a user types one sentence a session."""

    def type_all(self, typed):
        """Type (place, sentence) each in a session of its own, and wait until all are known."""
        with self.client() as client:
            for number, (place, sentence) in enumerate(typed):
                for event, fields in (
                    ("SessionStart", {"source": "startup"}),
                    ("UserPromptSubmit", {"prompt": sentence}),
                    ("Stop", {"last_assistant_message": "Okay.", "stop_hook_active": False}),
                    ("SessionEnd", {"reason": "exit"}),
                ):
                    session = f"{number} {place} {sentence}"
                    payload = {"session_id": session, "cwd": place, "hook_event_name": event, **fields}  # fmt: skip
                    client.call("memd/capture", {"client": "claude-code", "payload": payload})
        self.settle()

    def list_kept(self, place):
        """The memories of a project: (kind, title, speaker)."""
        listed = self.run("list", "--project", place, "--json")
        memories = json.loads(listed.stdout)["memories"] if listed.returncode == 0 else []
        return [(one["kind"], one["title"], one["speaker"]) for one in memories]


@pytest.fixture(scope="module")
def kept(typing):
    """What was kept of each sentence, typed in a project of its own."""
    places = {typed: f"/home/dev/project-{number}" for number, (typed, _) in enumerate(ROWS)}
    typing.type_all((place, typed) for typed, place in places.items())
    return {typed: typing.list_kept(place) for typed, place in places.items()}


@pytest.fixture(scope="module")
def standing(typing):
    """The titles of what holds after both sentences of a row, and of what held after the first."""
    places = [f"/home/dev/turn-{number}" for number in range(len(TURNS))]
    first, later = (
        [(place, row[at]) for place, row in zip(places, TURNS, strict=True)] for at in (0, 1)
    )
    typing.type_all(first)
    before = [{title for _, title, _ in typing.list_kept(place)} for place in places]
    typing.type_all(later)
    after = [{title for _, title, _ in typing.list_kept(place)} for place in places]
    return dict(zip(TURNS, zip(before, after, strict=True), strict=True))


@pytest.mark.parametrize(("typed", "expected"), ROWS, ids=[typed for typed, _ in ROWS])
def test_what_the_page_says_of_a_sentence_is_what_is_kept_of_it(kept, typed, expected):
    kind, _, title = expected.partition(": ")
    assert kept[typed] == ([(kind, title, "user")] if title else [])


def test_the_page_has_sentences_that_are_kept_and_such_that_are_not():
    assert {bool(kept.partition(": ")[2]) for _, kept in ROWS} == {True, False}


@pytest.mark.parametrize("row", TURNS, ids=[later for _, later, _ in TURNS])
def test_a_later_sentence_replaces_the_first_where_the_page_says_so(standing, row):
    before, after = standing[row]
    assert len(before) == len(after) == 1
    assert (before == after) is (row[2] == "the first")


def test_the_page_has_sentences_that_replace_and_such_that_do_not():
    assert {holds for *_, holds in TURNS} == {"the first", "the later"}
