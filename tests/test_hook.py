"""The hook as a real process: it acknowledges or spools, says nothing, and never fails the agent."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from memd import hook
from memd.capture import spool
from memd.capture.intake import CaptureRequest, Intake
from memd.config import CaptureConfig
from memd.paths import Paths
from memd.store import events

HOOK = str(Path(hook.__file__))
DATA = Path(__file__).parent / "data" / "claude-code"
SECRET = "AKIAIOSFODNN7EXAMPLE"
STOP = {
    "session_id": "s",
    "hook_event_name": "Stop",
    "prompt_id": "p",
    "last_assistant_message": "ok",
}
STORED = b'{"jsonrpc":"2.0","id":1,"result":{"outcome":"stored","seq":1,"reason":null}}\n'


@pytest.fixture
def home(tmp_path):
    return {"MEMD_HOME": str(tmp_path / "m"), "CLAUDE_PROJECT_DIR": "/p"}


def run(home, stdin, *flags, **more):
    """Run the hook as Claude Code does; it must be silent and exit 0 whatever happens."""
    payload = stdin if isinstance(stdin, bytes) else json.dumps(stdin).encode()
    done = subprocess.run(
        [sys.executable, *(flags or ("-I", "-S", HOOK))],
        input=payload, env=home | more, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def spooled(home):
    directory = Paths(home).spool_dir
    return [
        json.loads(line) for path in spool.drainable(directory) for line in spool.read(path)
    ]


def active(home):
    return [
        json.loads(x) for x in Path(Paths(home).spool_dir, "active").read_bytes().splitlines()
    ]


@contextmanager
def daemon(home, answer):
    """A socket server: gives every request line to `answer`, and sends what that returns."""
    path = Paths(home).socket
    Path(path).parent.mkdir(parents=True)
    heard = []
    done = threading.Event()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen(64)
        server.settimeout(0.05)

        def serve():
            while not done.is_set():
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    continue
                with connection, connection.makefile("rb") as file:
                    line = file.readline()
                    heard.append(line)
                    try:
                        connection.sendall(answer(line))
                    except OSError:
                        continue

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield heard
        finally:
            done.set()
            thread.join()


@pytest.mark.parametrize("outcome", ["stored", "duplicate", "filtered", "refused"])
def test_an_acknowledged_event_is_not_spooled(home, outcome):
    with daemon(home, lambda _: STORED.replace(b"stored", outcome.encode())) as heard:
        run(home, STOP)
    assert spooled(home) == []
    (line,) = heard
    said = json.loads(line)
    assert said["method"] == "memd/capture"
    assert said["params"]["client"] == "claude-code"
    assert said["params"]["payload"] == STOP
    assert said["params"]["directory"] == "/p"
    assert abs(said["params"]["at"] - time.time() * 1000) < 60_000


def test_the_request_is_one_line_and_the_same_json_however_it_was_written(home):
    payload = {**STOP, "text": 'a\n"b"\\ \u2028 \ud800 é'}
    with daemon(home, lambda _: STORED) as heard:
        run(home, json.dumps(payload, indent=2).replace("\n", "\r\n").encode())
        run(home, json.dumps(STOP, ensure_ascii=False).encode())
    assert [json.loads(line)["params"]["payload"] for line in heard] == [payload, STOP]
    assert all(line.count(b"\n") == 1 for line in heard)


def test_with_no_daemon_the_event_is_spooled(home):
    run(home, STOP)
    (line,) = spooled(home)
    assert line["client"] == "claude-code"
    assert line["payload"] == STOP
    assert line["directory"] == "/p"
    assert isinstance(line["at"], int)


@pytest.mark.parametrize(
    "reply",
    [
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"The disk is full"}}\n',
        b"",
        b"nonsense\n",
        b'{"jsonrpc":"2.0","id":1,"result":{"outcome":"sto',
    ],
    ids=["error", "closes", "nonsense", "half"],
)
def test_what_is_no_acknowledgement_is_spooled(home, reply):
    with daemon(home, lambda _: reply):
        run(home, STOP)
    assert [line["payload"] for line in spooled(home)] == [STOP]


def test_an_answer_that_comes_too_late_is_not_waited_for(home):
    free = threading.Event()

    def answer(_):
        free.wait(20)
        return STORED

    with daemon(home, answer) as heard:
        started = time.monotonic()
        run(home, STOP)
        took = time.monotonic() - started
        free.set()
    assert took < 10
    (line,) = spooled(home)
    # The same time in both, so that both are one event.
    assert line["at"] == json.loads(heard[0])["params"]["at"]


def test_a_stale_socket_is_no_daemon(home):
    path = Path(Paths(home).socket)
    path.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
    run(home, STOP)
    assert len(spooled(home)) == 1


@pytest.mark.parametrize(
    "garbage",
    [
        b"not json",
        b"{torn",
        b'{"a": 1} {"b": 2}',
        b"[1]",
        b"\xff\xfe{}",
        b"[" * 100_000,
        b"1" * 9_999,
    ],
)
def test_garbage_is_kept_for_the_books(home, garbage):
    run(home, garbage)
    assert len(spooled(home)) == 1


def test_nothing_said_is_nothing_kept(home):
    run(home, b"")
    run(home, b" \n ")
    assert spooled(home) == []


def test_twenty_megabytes_are_survived_and_cut(home):
    run(home, json.dumps({**STOP, "prompt": f"{SECRET} " + "word " * 4_000_000}).encode())
    ((size, line),) = [(len(json.dumps(line)), line) for line in spooled(home)]
    assert set(line["payload"]) == {"raw"}
    assert size < 300_000
    assert SECRET not in json.dumps(line)


def test_a_payload_of_fifteen_megabytes_is_cut_and_keeps_its_ids(home):
    run(home, {**STOP, "tool_response": "word " * 3_000_000, "tool_use_id": "toolu_1"})
    ((payload, size),) = [(line["payload"], len(json.dumps(line))) for line in spooled(home)]
    assert size < 300_000
    assert (payload["tool_use_id"], payload["last_assistant_message"]) == ("toolu_1", "ok")


def test_a_planted_secret_never_reaches_the_spool(home):
    for line in (DATA / "ledger/hooks.jsonl").read_text(encoding="utf-8").splitlines():
        if "AKIA" in line or "private" in line:
            run(home, json.loads(line)["stdin"])
    run(home, {**STOP, "prompt": SECRET, SECRET: 1})
    run(home, f"broken {SECRET}".encode())
    directory = Path(Paths(home).spool_dir)
    text = b"".join(path.read_bytes() for path in directory.iterdir())
    assert len(text) > 1_000
    for secret in (SECRET, "wJalrXUtnFEMI", "<private>"):
        assert secret.encode() not in text


def test_the_guard_against_recursion_makes_it_do_nothing(home):
    run(home, STOP, MEMD_DISABLE="1")
    assert spooled(home) == []
    run(home, STOP, MEMD_DISABLE="0")
    assert len(spooled(home)) == 1


def test_no_place_to_write_and_no_sense_in_the_environment_are_survived(home, tmp_path):
    (tmp_path / "file").write_text("x")
    run({"MEMD_HOME": str(tmp_path / "file")}, STOP)
    run(home, STOP, MEMD_VAULT="../../etc")
    assert spooled(home) == []


def test_it_runs_as_a_module_too(home):
    run(
        home,
        STOP,
        "-m",
        "memd.hook",
        PYTHONPATH=str(Path(HOOK).parents[1]),
        PYTHONDONTWRITEBYTECODE="1",
    )
    assert len(spooled(home)) == 1


def test_in_a_process_of_ours_it_reads_the_descriptor_it_is_given(home):
    reader, writer = os.pipe()
    os.write(writer, json.dumps(STOP).encode())
    os.close(writer)
    assert hook.main(["stop"], reader, home) == 0
    os.close(reader)
    assert [line["payload"] for line in spooled(home)] == [STOP]
    assert hook.main([], -1, home) == 0


def test_a_client_that_never_finishes_is_not_waited_for(home, monkeypatch):
    monkeypatch.setattr(hook, "STDIN_S", 0.05)
    reader, writer = os.pipe()
    os.write(writer, json.dumps(STOP).encode())
    assert hook.main([], reader, home) == 0
    os.close(reader)
    os.close(writer)
    assert [line["payload"] for line in spooled(home)] == [STOP]


def test_it_loads_next_to_nothing_while_a_daemon_answers(home):
    program = (
        "import sys; sys.argv = ['hook']; import runpy; before = set(sys.modules);"
        f"sys.path.insert(0, {str(Path(HOOK).parents[1])!r}); import memd.hook;"
        "assert memd.hook.main([]) == 0; print(*sorted(set(sys.modules) - before))"
    )
    with daemon(home, lambda _: STORED):
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", program],
            input=json.dumps(STOP), env=home, capture_output=True, text=True, check=True,
        )  # fmt: skip
    assert set(done.stdout.split()) <= {
        "memd",
        "memd.hook",
        "memd.paths",
        "_json",
        "_socket",
        "select",
        "time",
    }


async def test_what_hooks_spool_while_the_daemon_is_down_is_stored_in_order_once(
    home, db, clock
):
    for number in range(5):
        run(home, {**STOP, "prompt_id": f"p{number}"})
    intake = Intake(db, CaptureConfig(), clock, Paths(home).spool_dir, lambda: None)
    # One of them had reached the daemon after all, too late for its hook to know.
    late = active(home)[2]
    await intake.capture(
        [CaptureRequest("claude-code", late["payload"], late["at"], late["directory"])]
    )
    assert await intake.drain() == 5
    found = await db.read(lambda tx: events.by_ids(tx, range(1, 20)))
    assert sorted(event.turn for event in found.values()) == ["p0", "p1", "p2", "p3", "p4"]
    assert [found[n].turn for n in sorted(found)] == ["p2", "p0", "p1", "p3", "p4"]
