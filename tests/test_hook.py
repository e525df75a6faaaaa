"""The hook as a real process: it acknowledges or spools, shows what the daemon says, never fails the agent."""

import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from memd import hook_event as hook
from memd.capture import spool
from memd.capture.ingest import Ingestor
from memd.capture.prepare import CaptureRequest
from memd.client import Client
from memd.config import CaptureConfig
from memd.daemon import process
from memd.errors import Unreachable
from memd.models import Kind
from memd.paths import Paths
from memd.server.control import PLAIN_REPLY
from memd.store import events
from memd.store.database import open_database
from tests import indexed_vault

HOOK = str(Path(hook.__file__).with_name("hook.py"))
PATIENT = f"""
import os, sys
sys.path.insert(0, {str(Path(HOOK).parent.parent)!r})
from memd import hook_event as hook
hook.BUDGET_S = hook.CONTEXT_BUDGET_S = hook.STDIN_S = 60
os._exit(hook.main())
"""
"""The hook with a minute for what has a quarter of a second: a busy machine is no silent daemon."""
IMPATIENT = ("-I", "-S", HOOK)
DATA = Path(__file__).parent / "data" / "claude-code"
SECRET = "AKIAIOSFODNN7EXAMPLE"
STOP = {
    "session_id": "s",
    "hook_event_name": "Stop",
    "prompt_id": "p",
    "last_assistant_message": "ok",
}
PROMPT = {
    "session_id": "s",
    "hook_event_name": "UserPromptSubmit",
    "prompt_id": "p",
    "prompt": "hi",
}
START = {"session_id": "s", "hook_event_name": "SessionStart", "source": "startup"}
STORED = PLAIN_REPLY + b".\n"


@pytest.fixture
def home(tmp_path):
    return {
        "HOME": str(tmp_path),
        "MEMD_HOME": str(tmp_path / "m"),
        "MEMD_START": "0",
        "CLAUDE_PROJECT_DIR": "/p",
    }


def printed(home, stdin, *flags, limit=None, **more):
    """Run the hook as Claude Code does; it must exit 0 without a complaint whatever happens."""
    payload = stdin if isinstance(stdin, bytes) else json.dumps(stdin).encode()
    done = subprocess.run(
        [sys.executable, *(flags or ("-I", "-S", "-c", PATIENT))],
        input=payload, env=home | more, capture_output=True, timeout=60, check=False, preexec_fn=limit,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


def run(home, stdin, *flags, **more):
    """The same where nothing may be printed either."""
    assert printed(home, stdin, *flags, **more) == b""


def inside(home, stdin):
    """The same in this process."""
    reader, writer = os.pipe()
    os.write(writer, json.dumps(stdin).encode())
    os.close(writer)
    try:
        assert hook.main([], reader, home) == 0
    finally:
        os.close(reader)


def spooled(home, directory=None):
    files = spool.drainable(directory or Paths(home).spool_dir)
    return [json.loads(line) for path in files for line in spool.read(path)]


def showing(event, text):
    """The reply of a daemon that has something to say."""
    output = {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}
    return PLAIN_REPLY + json.dumps(output).encode() + b" .\n"


def active(home):
    return [json.loads(x) for x in Path(Paths(home).spool_dir, "active").read_bytes().splitlines()]


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


def test_an_acknowledged_event_is_not_spooled(home):
    with daemon(home, lambda _: STORED) as heard:
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
        b'{"jsonrpc":"2.0","id":1,"result":{"outcome":"stored","seq":1,"reason":null}}\n',
        STORED[:-1],
        STORED * 2,
    ],
    ids=["error", "closes", "nonsense", "another language", "half", "twice"],
)
def test_what_is_no_acknowledgement_is_spooled(home, reply):
    with daemon(home, lambda _: reply):
        run(home, STOP)
    assert [line["payload"] for line in spooled(home)] == [STOP]


def test_an_answer_that_comes_too_late_is_not_waited_for(home):
    free = threading.Event()

    def answer(_):
        free.wait(600)
        return STORED

    with daemon(home, answer) as heard:
        run(home, STOP, *IMPATIENT)
        free.set()
    (line,) = spooled(home)
    # The same time in both, so that both are one event.
    assert line["at"] == json.loads(heard[0])["params"]["at"]


def test_a_daemon_that_never_lets_it_in_is_not_waited_for(home):
    path = Path(Paths(home).socket)
    path.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen(1)
        run(home, PROMPT, *IMPATIENT)
    assert len(spooled(home)) == 1


@pytest.mark.parametrize("event", [PROMPT, START])
def test_what_the_daemon_has_to_say_is_printed_and_no_more(home, event):
    text = '"outcome" and "error": 1\n' + "é\U0001f600" * 4_000
    reply = showing(event["hook_event_name"], text)
    with daemon(home, lambda _: reply) as heard:
        said = printed(home, event)
    assert said.count(b"\n") == 1
    assert said == reply.removeprefix(PLAIN_REPLY).removesuffix(b" .\n") + b"\n"
    assert json.loads(said)["hookSpecificOutput"]["additionalContext"] == text
    assert json.loads(heard[0])["params"]["inject"] is True
    assert spooled(home) == []


def test_after_a_stop_only_what_the_daemon_shows_is_printed_because_the_agent_goes_on_then(home):
    with daemon(home, lambda _: showing("Stop", "go on")):
        assert b"go on" in printed(home, STOP)
        run(home, STOP, MEMD_INJECT="0")


@pytest.mark.parametrize(
    "reply",
    [b'memd ok {"hookSpecificOutput":{"a\n', b"memd ok [1] .\n", b"memd ok\n", b'{"a":1} .\n'],
    ids=["torn", "no object", "no end", "no beginning"],
)
def test_a_reply_that_makes_no_sense_is_no_acknowledgement(home, reply):
    with daemon(home, lambda _: reply):
        run(home, PROMPT)
    assert [line["payload"] for line in spooled(home)] == [PROMPT]


def test_where_context_may_come_it_waits_a_little_longer(home, monkeypatch, capfd):
    monkeypatch.setattr(hook, "BUDGET_S", 0.0)
    monkeypatch.setattr(hook, "CONTEXT_BUDGET_S", 20.0)
    with daemon(home, lambda _: showing("", "remembered")):
        inside(home, PROMPT)
        assert "remembered" in capfd.readouterr().out
        assert spooled(home) == []
        inside(home, STOP)
    assert len(spooled(home)) == 1


def test_without_a_reader_it_leaves_as_quietly(home):
    with daemon(home, lambda _: showing("", "remembered")):
        done = shell(home, PROMPT, ">&-")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_showing_can_be_switched_off(home):
    with daemon(home, lambda _: showing("", "remembered")) as heard:
        run(home, PROMPT, MEMD_INJECT="0")
    assert "inject" not in json.loads(heard[0])["params"]


def test_keeping_can_be_switched_off(home):
    with daemon(home, lambda _: showing("", "remembered")) as heard:
        assert b"remembered" in printed(home, PROMPT, MEMD_CAPTURE="0")
        run(home, STOP, MEMD_CAPTURE="0")
        run(home, PROMPT, MEMD_CAPTURE="0", MEMD_INJECT="0")
    (line,) = heard  # what is neither kept nor answered is not even said
    assert json.loads(line)["params"]["capture"] is False
    run(home, PROMPT, MEMD_CAPTURE="0")
    assert not Path(Paths(home).state_dir).exists()


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
def test_garbage_is_spooled_so_that_the_ledger_counts_it(home, garbage):
    run(home, garbage)
    assert len(spooled(home)) == 1


def shell(home, stdin, redirection):
    command = f"exec '{sys.executable}' -I -S '{HOOK}' {redirection}"
    return subprocess.run(
        ["/bin/sh", "-c", command],
        input=json.dumps(stdin).encode(), env=home, capture_output=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("closed", ["<&-", "<&- >&- 2>&-"])
def test_a_closed_stdin_is_nothing_said(home, closed):
    done = shell(home, STOP, closed)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert spooled(home) == []


def test_arguments_that_it_does_not_know_change_nothing(home):
    run(home, STOP, "-I", "-S", HOOK, "Stop", "--client", "somebody", "--unheard-of")
    assert [line["payload"] for line in spooled(home)] == [STOP]


def test_without_a_home_it_takes_the_directories_that_it_is_told(tmp_path):
    environ = {f"XDG_{name}_HOME": str(tmp_path / name) for name in ("STATE", "DATA", "CONFIG")}
    environ["XDG_RUNTIME_DIR"] = str(tmp_path / "run")
    run(environ, STOP)
    assert len(spooled(environ)) == 1


def block(path):
    """Make this directory one that nobody, not even root, can write into."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("in the way")


def test_what_cannot_be_spooled_in_one_place_is_in_the_next(home):
    first, second = Paths(home).spool_fallbacks
    block(Paths(home).state_dir)
    run(home, STOP)
    assert [line["payload"] for line in spooled(home, first)] == [STOP]
    shutil.rmtree(first)
    block(first)
    run(home, PROMPT)
    assert [line["payload"] for line in spooled(home, second)] == [PROMPT]


def test_what_is_lost_leaves_a_line_in_the_log_that_says_nothing_of_it(home):
    paths = Paths(home)
    for place in (paths.spool_dir, *paths.spool_fallbacks):
        block(place)
    run(home, STOP)
    (line,) = Path(paths.log).read_text().splitlines()
    told = json.loads(line)
    assert (told["event"], told["level"], told["room"]) == ("event_lost", "error", "hook")
    assert told["reason"].startswith("the spool cannot be written: ")
    assert "last_assistant_message" not in line


def test_a_full_disk_is_survived_and_leaves_no_torn_line(home):
    run(home, STOP, limit=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64)))
    assert spooled(home) == []
    run(home, STOP)
    assert len(spooled(home)) == 1


def daemons(home):
    """Whoever serves this home, by the process list: the lock would only tell of one."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            environ, command = ((entry / "environ").read_bytes(), (entry / "cmdline").read_bytes())
        except OSError:
            continue
        if f"MEMD_HOME={home['MEMD_HOME']}\0".encode() in environ and b"serve" in command:
            found.append(entry)
    return found


def until(condition):
    deadline = time.monotonic() + 60
    while not (met := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)
    return met


@pytest.fixture
def may_start(home):
    """A home in which the hook may start the daemon; whatever it started is stopped."""
    environ = {**home, "MEMD_START": "1"}
    yield environ
    for entry in daemons(environ):
        os.kill(int(entry.name), signal.SIGTERM)
    until(lambda: not daemons(environ))


@pytest.mark.skipif(sys.platform == "darwin", reason="looks into /proc")
def test_sessions_that_begin_without_a_daemon_start_one_and_no_more(may_start):
    reader, writer = os.pipe()
    begun = [
        subprocess.Popen(
            [sys.executable, "-I", "-S", HOOK], env=may_start, pass_fds=[writer],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for _ in range(6)
    ]  # fmt: skip
    for number, one in enumerate(begun):
        one.stdin.write(json.dumps({**START, "session_id": f"s{number}"}).encode())
        one.stdin.close()
        one.stdin = None
    assert [one.communicate(timeout=60) for one in begun] == [(b"", b"")] * 6
    assert [one.returncode for one in begun] == [0] * 6
    os.close(writer)
    paths = Paths(may_start)
    with until(lambda: answering(paths)) as client:
        until(lambda: client.call("memd/status")["events"]["count"] == 6)
    (one,) = until(lambda: (found := daemons(may_start)) and len(found) == 1 and found)
    assert process.find_lock_holder(paths.lock).pid == int(one.name)
    # Nobody else was even started: who loads in vain keeps the first from answering.
    assert "already serves" not in Path(paths.log).read_text()
    assert os.read(reader, 1) == b""  # nobody holds the other end any more
    os.close(reader)
    assert [str((one / "fd" / number).readlink()) for number in "01"] == [os.devnull] * 2
    assert str((one / "fd" / "2").readlink()) == paths.log
    assert (one / "cwd").readlink() == Path("/")
    until(lambda: spooled(may_start) == [])  # deleted after its events are stored


def test_a_session_that_begins_without_a_daemon_gets_its_context_all_the_same(
    may_start, monkeypatch, capfd
):
    # However busy this machine is.
    monkeypatch.setattr(hook, "START_WAIT_S", 30.0)
    Path(may_start["MEMD_HOME"]).mkdir()
    may_start["MEMD_TUNING"] = '{"inject.session_s": 5.0}'
    monkeypatch.chdir(may_start["HOME"])
    database = Path(Paths(may_start).database)
    database.parent.mkdir(parents=True)
    with open_database(str(database), indexed_vault.NOW) as db:
        indexed_vault.IndexedVault(db).put(
            "We chose apsw over sqlite3", kind=Kind.DECISION, project="/p", days_ago=100
        )
    inside(may_start, START)
    said = json.loads(capfd.readouterr().out)["hookSpecificOutput"]
    assert said["hookEventName"] == "SessionStart"
    assert "We chose apsw over sqlite3" in said["additionalContext"]


def answering(paths):
    try:
        client = Client(paths.socket, 30.0)
        client.connect()
    except Unreachable:
        return None
    else:
        return client


@pytest.mark.parametrize("event", [STOP, PROMPT, {**STOP, "x": "SessionStart"}])
def test_in_the_middle_of_a_session_nothing_is_started(may_start, event):
    run(may_start, event)
    assert daemons(may_start) == []
    assert not Path(Paths(may_start).log).exists()


def make_vault(environ):
    """The file of a vault that a daemon has left."""
    database = Path(Paths(environ).database)
    database.parent.mkdir(parents=True)
    with open_database(str(database), indexed_vault.NOW):
        pass


@pytest.mark.skipif(sys.platform == "darwin", reason="looks into /proc")
def test_a_prompt_starts_a_daemon_that_is_gone_and_the_daemon_stores_it(may_start):
    make_vault(may_start)
    run(may_start, PROMPT)
    with until(lambda: answering(Paths(may_start))) as client:
        until(lambda: client.call("memd/status")["events"]["count"] == 1)
    until(lambda: spooled(may_start) == [])


def test_a_prompt_does_not_wait_for_the_daemon_that_it_starts(false_daemon, monkeypatch, capfd):
    monkeypatch.setattr(hook, "_RETRY_S", 60.0)
    make_vault(false_daemon)
    inside({**false_daemon, "FAKE": "dies"}, PROMPT)
    assert capfd.readouterr().out == ""
    assert until(lambda: Path(Paths(false_daemon).log).read_text()) == "no daemon today\n"
    assert [line["payload"] for line in spooled(false_daemon)] == [PROMPT]


def test_a_prompt_starts_no_daemon_that_was_stopped_on_purpose(may_start):
    make_vault(may_start)
    Path(Paths(may_start).state_dir).mkdir(parents=True, exist_ok=True)
    process.mark_stopped(Paths(may_start).stopped)
    run(may_start, PROMPT)
    assert daemons(may_start) == []
    assert not Path(Paths(may_start).log).exists()


def test_a_session_that_begins_waits_for_nothing_where_nothing_may_be_started(home, tmp_path):
    run(home, START)
    units = tmp_path / ".config" / "systemd" / "user"
    units.mkdir(parents=True)
    (units / "memd.socket").write_text(f"ListenStream={Paths(home).socket}")
    run(home, START, MEMD_START="1")
    assert len(spooled(home)) == 2
    assert not Path(Paths(home).log).exists()


FALSE_DAEMON = """
import json, os, socket, sys
if os.environ.get("FAKE") == "dies":
    sys.exit("no daemon today")
home = os.environ["MEMD_HOME"]
os.makedirs(f"{home}/run", exist_ok=True)
with socket.socket(socket.AF_UNIX) as door:
    door.bind(f"{home}/run/memd.sock")
    door.listen(1)
    link, _ = door.accept()
    heard = b""
    while not heard.endswith(b"\\n"):
        heard += link.recv(65_536)
    asked = json.loads(heard)
    said = json.dumps({"asked": asked["params"]})
    link.sendall(b"memd ok " + said.encode() + b" .\\n")
    link.close()
"""


@pytest.fixture
def false_daemon(may_start, tmp_path, monkeypatch):
    """A `memd` package that stands in for the real one where the hook starts a daemon."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hook, "START_WAIT_S", 60.0)  # only what we wait for may end the waiting
    package = tmp_path / "fake" / "memd"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(FALSE_DAEMON)
    return {**may_start, "PYTHONPATH": str(package.parent)}


def test_a_daemon_that_it_started_is_asked_for_the_context_alone(false_daemon, capfd):
    inside(false_daemon, START)
    asked = json.loads(capfd.readouterr().out)["asked"]
    assert (asked["payload"], asked["inject"], asked["capture"]) == (START, True, False)
    assert [line["payload"] for line in spooled(false_daemon)] == [START]


def test_a_daemon_that_dies_as_it_starts_is_not_waited_for(false_daemon, capfd):
    inside({**false_daemon, "FAKE": "dies"}, START)
    assert capfd.readouterr().out == ""
    assert Path(Paths(false_daemon).log).read_text() == "no daemon today\n"
    assert len(spooled(false_daemon)) == 1


def test_who_wants_no_context_starts_a_daemon_and_does_not_wait(false_daemon, monkeypatch, capfd):
    monkeypatch.setattr(hook, "_RETRY_S", 60.0)
    inside({**false_daemon, "MEMD_INJECT": "0", "FAKE": "dies"}, START)
    assert capfd.readouterr().out == ""
    assert until(lambda: Path(Paths(false_daemon).log).read_text()) == "no daemon today\n"


def test_an_empty_payload_is_not_spooled(home):
    run(home, b"")
    run(home, b" \n ")
    assert spooled(home) == []


def test_fifty_megabytes_are_survived_and_cut(home):
    run(home, json.dumps({**STOP, "prompt": f"{SECRET} " + "word " * 10_000_000}).encode())
    ((size, line),) = [(len(json.dumps(line)), line) for line in spooled(home)]
    assert set(line["payload"]) == {"raw"}
    assert size < 300_000
    assert SECRET not in json.dumps(line)


def test_a_payload_of_fifteen_megabytes_is_cut_and_keeps_its_ids(home):
    run(home, {**STOP, "tool_response": "word " * 3_000_000, "tool_use_id": "toolu_1"})
    ((payload, size),) = [(line["payload"], len(json.dumps(line))) for line in spooled(home)]
    assert size < 300_000
    assert (payload["tool_use_id"], payload["last_assistant_message"]) == ("toolu_1", "ok")


def test_a_payload_that_fits_no_line_is_spooled_and_the_daemon_is_only_told_to_look(home):
    with daemon(home, lambda _: STORED) as heard:
        run(home, {**STOP, "last_assistant_message": "word " * 900_000})
        deadline = time.monotonic() + 60
        while not heard and time.monotonic() < deadline:
            time.sleep(0.001)
    assert heard == [b""]
    (line,) = spooled(home)
    assert "characters cut" in line["payload"]["last_assistant_message"]


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
        "memd.hook_event",
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
        "memd.hook_event",
        "memd.paths",
        "_json",
        "_socket",
        "select",
        "time",
    }


async def test_what_hooks_spool_while_the_daemon_is_down_is_stored_in_order_once(home, db, clock):
    for number in range(5):
        run(home, {**STOP, "prompt_id": f"p{number}"})
    paths = Paths(home)
    ingestor = Ingestor(
        db,
        CaptureConfig(),
        clock,
        paths.spool_dir,
        lambda: None,
        spool_fallbacks=paths.spool_fallbacks,
    )
    # One of them had reached the daemon after all, too late for its hook to know.
    late = active(home)[2]
    await ingestor.capture(
        [CaptureRequest("claude-code", late["payload"], late["at"], late["directory"])]
    )
    assert await ingestor.drain() == 5
    found = await db.read(lambda tx: events.events_by_ids(tx, range(1, 20)))
    assert sorted(event.turn for event in found.values()) == ["p0", "p1", "p2", "p3", "p4"]
    assert [found[n].turn for n in sorted(found)] == ["p2", "p0", "p1", "p3", "p4"]


def test_a_hook_that_is_terminated_still_delivers_its_event(home):
    payload = json.dumps({**STOP, "last_assistant_message": "word " * 50_000}).encode()
    with subprocess.Popen(
        [sys.executable, "-I", "-S", HOOK], stdin=subprocess.PIPE, env=home
    ) as hooked:
        # More than a pipe holds: once it is written, the hook is reading.
        hooked.stdin.write(payload[:-1])
        hooked.stdin.flush()
        hooked.terminate()
        hooked.stdin.write(payload[-1:])
        hooked.stdin.close()
        assert hooked.wait(timeout=60) == 0
    assert len(active(home)) == 1
