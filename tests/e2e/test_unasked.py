"""What agents are shown unasked, over the wire of a real daemon, and that it never comes back in."""

import json

import apsw
import pytest

from memd.capture.redact.documents import INJECTED_OPENING
from tests.e2e.real_daemon import LEDGER

PROJECT = "/home/dev/ledger"


@pytest.fixture
def ledger(daemon):
    """A daemon that knows the ledger sessions."""
    daemon.start()
    daemon.run("import", "claude-code", str(LEDGER / "projects"))
    daemon.settle()
    return daemon


def capture(daemon, name, session="fresh", **fields):
    payload = {"session_id": session, "cwd": PROJECT, "hook_event_name": name, **fields}
    with daemon.client() as client:
        return client.call(
            "memd/capture", {"client": "claude-code", "payload": payload, "inject": True}
        )


def text_of(reply):
    output = reply.get("output")
    return output and output["hookSpecificOutput"]["additionalContext"]


def ids(text):
    return {line.split()[1] for line in (text or "").splitlines() if line.startswith("- #")}


def test_a_session_is_shown_what_is_known_and_nothing_twice(ledger):
    begun = capture(ledger, "SessionStart", source="startup")
    text = text_of(begun)
    assert begun["output"]["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    assert "unittest" in text
    assert "Redis" in text
    assert len(text) <= 4_000
    assert "Login answers 500" in text
    shown = ids(text)
    with ledger.client() as client:
        wait = (
            "The nightly deploy waits for the backup of the ledger, or a restore would lose a day."
        )
        client.call("memd/remember", {"text": wait, "directory": PROJECT})
    asked = "Why does the nightly deploy wait for the backup?"
    reply = capture(ledger, "UserPromptSubmit", prompt=asked, prompt_id="p1")
    assert "restore would lose a day" in text_of(reply)
    assert not ids(text_of(reply)) & shown
    shown |= ids(text_of(reply))
    for number, small in enumerate(("thanks", "ok go on", "/clear", asked)):
        assert (
            text_of(capture(ledger, "UserPromptSubmit", prompt=small, prompt_id=f"s{number}"))
            is None
        )
    again = capture(ledger, "UserPromptSubmit", prompt="login answered 500 why", prompt_id="p2")
    assert not ids(text_of(again)) & shown
    # A resumed session is told its user's own words again, and no memory twice.
    resumed = text_of(capture(ledger, "SessionStart", source="resume"))
    assert "Said by the user in this very session" in resumed
    assert not ids(resumed)
    assert text_of(capture(ledger, "SessionStart", source="fork")) is None
    # A compaction takes it all away, and brings it back.
    capture(ledger, "PreCompact", trigger="auto")
    assert ids(text_of(capture(ledger, "SessionStart", source="compact"))) >= shown
    rows = json.loads(ledger.run("injected", "fres", "--json").stdout)["injections"]
    assert {row["moment"] for row in rows} == {"startup", "prompt", "compact"}


class Onlooker:
    """Looks at what a session that begins and a prompt are shown, in a new session each time."""

    def __init__(self, daemon):
        self._daemon, self._count = daemon, 0

    def look(self, asked="Why does the nightly deploy wait for the backup?"):
        """What is shown at a start, and at the prompt."""
        self._count += 1
        start = capture(
            self._daemon, "SessionStart", session=f"start-{self._count}", source="startup"
        )
        prompt = capture(
            self._daemon, "UserPromptSubmit", session=f"prompt-{self._count}", prompt=asked,
            prompt_id=f"look-{self._count}",
        )  # fmt: skip
        return text_of(start) or "", text_of(prompt) or ""

    def sees(self, words):
        """Whether both show these words; it must not be one of them alone."""
        start, prompt = self.look()
        assert (words in start) == (words in prompt), (start, prompt)
        return words in start


def test_every_change_is_seen_by_the_very_next_hook(daemon):
    daemon.start()
    onlooker = Onlooker(daemon)
    with daemon.client() as client:

        def say(method, **params):
            return client.call(f"memd/{method}", {"directory": PROJECT, **params})

        deploy = "The nightly deploy waits for the backup of"
        wait = say("remember", text=f"{deploy} ledger one.", kind="decision", topic_key="deploy")
        assert onlooker.sees(f"{deploy} ledger one")
        say("remember", text=f"{deploy} ledger two.", kind="decision", topic_key="deploy")
        assert not onlooker.sees(f"{deploy} ledger one")
        assert onlooker.sees(f"{deploy} ledger two")
        latest = say("search", query="nightly deploy backup")["hits"][0]["id"]
        assert latest != wait["id"]
        latest = say("edit", id=latest, title=(new := f"{deploy} ledger three"), text=new)["id"]
        assert not onlooker.sees("ledger two")
        assert onlooker.sees("ledger three")
        say("pin", id=latest)
        assert onlooker.sees("ledger three (pinned")
        say("pin", id=latest, pinned=False)
        assert not onlooker.sees("ledger three (pinned")
        client.call("memd/switch", {"state": "capture-only", "directory": PROJECT})
        assert onlooker.look() == ("", "")
        client.call("memd/switch", {"state": "on", "directory": PROJECT})
        assert onlooker.sees("ledger three")
        elsewhere = "The weekly deploy waits for the backup of ledger four."
        say("remember", text=elsewhere, kind="decision", directory="/home/dev/other")
        asked = "Why does the weekly deploy wait for the backup?"
        assert not any("ledger four" in text for text in onlooker.look(asked))
        merge = {"project": "/home/dev/other", "into": PROJECT, "dry_run": False}
        client.call("memd/project/merge", merge)
        assert all("ledger four" in text for text in onlooker.look(asked))
    see_a_restore_and_a_forgetting(daemon, onlooker, latest)


def see_a_restore_and_a_forgetting(daemon, onlooker, latest):
    assert daemon.run("backup").returncode == 0
    with daemon.client() as client:
        new = "The nightly deploy waits for the backup of ledger five"
        client.call("memd/edit", {"id": latest, "title": new, "text": new, "directory": PROJECT})
    assert onlooker.sees("ledger five")
    daemon.stop()
    assert daemon.run("restore", "--yes").returncode == 0
    daemon.start()
    assert not onlooker.sees("ledger five")
    assert onlooker.sees("ledger three")
    with daemon.client() as client:
        token = client.call("memd/forget", {"ids": [latest]})["token"]
        client.call("memd/forget", {"ids": [latest], "dry_run": False, "token": token})
    assert not onlooker.sees("ledger three")


def test_what_was_put_in_never_becomes_a_memory(daemon):
    """By the hook, and by a transcript that carries it: in a prompt, an answer and an attachment."""
    daemon.start()
    block = (
        f'{INJECTED_OPENING} project="x">\n- #1 2026-11-20 decision: kettleword\n</recalled-memory>'
    )
    prompt = f"We chose Postgres over Oracle for billing.\n{block}"
    base = {"session_id": "echo", "cwd": PROJECT, "prompt_id": "p1"}
    for payload in (
        {**base, "hook_event_name": "UserPromptSubmit", "prompt": prompt},
        {
            **base,
            "hook_event_name": "Stop",
            "last_assistant_message": f"{block} Decided: Postgres.",
        },
    ):
        done = daemon.run("hook", stdin=json.dumps(payload).encode())
        assert done.returncode == 0
    line = {"sessionId": "other", "cwd": PROJECT, "promptId": "p2"}
    lines = [
        {**line, "type": "attachment", "attachment": {"type": "hook_additional_context", "content": [block]}},
        {**line, "type": "user", "uuid": "u1", "message": {"content": prompt}},
        {**line, "type": "user", "uuid": "u2", "isMeta": True, "message": {"content": block}},
        {**line, "type": "assistant", "uuid": "u3",
         "message": {"content": [{"type": "text", "text": f"{block}\nPostgres it is."}]}},
    ]  # fmt: skip
    folder = daemon.home / "transcripts" / "-home-dev-ledger"
    folder.mkdir(parents=True)
    (folder / "other.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert daemon.run("import", "claude-code", str(folder.parent)).returncode == 0
    daemon.settle()
    daemon.stop()
    connection = apsw.Connection(str(daemon.paths.database))
    payloads = [row[0] for row in connection.execute("SELECT payload FROM events")]
    texts = [row[0] for row in connection.execute("SELECT title || body FROM summaries")]
    connection.close()
    assert any("Postgres" in payload for payload in payloads)
    assert any("Postgres" in text for text in texts)
    assert not any(
        "kettleword" in text or "recalled-memory" in text for text in (*payloads, *texts)
    )
