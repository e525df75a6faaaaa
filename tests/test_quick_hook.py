"""The hook without Python: what it promises is what the Python hook promises, and that one has the last word."""

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from memd import hook
from memd.installers import claude, claude_settings
from memd.installers.file_changes import Host
from memd.paths import Paths
from tests.forked_memd import ForkedMemd
from tests.test_hook import PROMPT, START, STOP, STORED, daemon, printed, showing, spooled

SCRIPT = Path(hook.__file__).with_name("hook.sh")
SENDER = """
import socket, sys
with socket.socket(socket.AF_UNIX) as peer:
    peer.connect(sys.argv[1])
    peer.sendall(sys.stdin.buffer.read())
    while block := peer.recv(65536):
        sys.stdout.buffer.write(block)
"""
"""What `nc -U` does, where there may be none."""


@pytest.fixture
def home(tmp_path):
    return {
        "HOME": str(tmp_path),
        "MEMD_HOME": str(tmp_path / "m"),
        "CLAUDE_PROJECT_DIR": "/p",
        "PATH": os.environ["PATH"],
    }


@pytest.fixture
def command(home, tmp_path):
    """The command as an installation writes it; its `timeout` waits for as long as it takes."""
    patient = tmp_path / "patient"
    patient.write_text('#!/bin/sh\nshift\nexec "$@"\n')
    patient.chmod(0o755)
    (tmp_path / "send.py").write_text(SENDER)
    place, path = f"in:{home['MEMD_HOME']}|", Paths(home).socket
    send = (sys.executable, "-I", "-S", str(tmp_path / "send.py"), path)

    def make(event="Stop", timeout=patient, send=send, place=place, interpreter=("/bin/sh",)):
        return [
            *interpreter,
            str(SCRIPT),
            place,
            path,
            sys.executable,
            hook.__file__,
            str(timeout),
            event,
            *send,
        ]

    return make


@pytest.fixture
def run(home, command):
    def run(payload, *, environ=None, **how):
        event = payload.get("hook_event_name", "") if isinstance(payload, dict) else "Stop"
        event = how.pop("told", event)
        text = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        # Nothing may start a daemon; but MEMD_START would itself be a reason to hand over.
        done = subprocess.run(
            command(event, **how), input=text, env=home | (environ or {}), capture_output=True, timeout=60, check=False
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout

    return run


def test_an_acknowledged_event_is_not_spooled_and_python_never_runs(home, run):
    with daemon(home, lambda _: STORED) as heard:
        assert run({**STOP, "text": 'é "quoted" \\ $HOME `id` %s \\n'}) == b""
    assert spooled(home) == []
    (line,) = heard
    said = json.loads(line)
    assert said["method"] == "memd/capture"
    assert said["params"] == {
        "client": "claude-code", "inject": True, "plain": True, "directory": "/p",
        "payload": {**STOP, "text": 'é "quoted" \\ $HOME `id` %s \\n'},
    }  # fmt: skip


@pytest.mark.parametrize("event", [PROMPT, START])
def test_both_hooks_print_the_same_bytes(home, run, event):
    text = '"outcome" and "error": 1\n' + "é\U0001f600" * 4_000
    reply = showing(event["hook_event_name"], text)
    with daemon(home, lambda _: reply) as heard:
        quick, slow = run(event), printed(home, event)
    assert quick == slow
    assert quick.count(b"\n") == 1
    assert len(heard) == 2
    assert spooled(home) == []


@pytest.mark.parametrize(
    "shell", ["dash", "bash", "bash --posix", "busybox sh", "ksh", "zsh --emulate sh"]
)
def test_every_shell_that_is_some_system_s_sh_hands_over_the_same_bytes(home, run, shell):
    program, *options = shell.split()
    if (found := shutil.which(program)) is None:
        pytest.skip(f"there is no {program} here")
    payloads = [
        {**STOP, "last_assistant_message": text + " END\n$request `id` \\ ${#x} é" * times}
        for text in ("", "\\n%s", "END")
        for times in (1, 5_000)
    ]
    with daemon(home, lambda _: STORED) as heard:
        for payload in payloads:
            assert run(payload, interpreter=(found, *options)) == b""
    assert [json.loads(line)["params"]["payload"] for line in heard] == payloads
    assert spooled(home) == []


@pytest.mark.parametrize(
    "reply",
    [
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"The disk is full"}}\n', b"", b"nonsense\n",
        b'memd ok {"hookSpecificOutput":{"additionalContext":"half', b"memd ok", b"memd ok \n", STORED * 2,
    ],
    ids=["error", "closes", "nonsense", "half an output", "half", "no end", "twice"],
)  # fmt: skip
def test_what_is_no_acknowledgement_is_spooled_once_by_the_python_hook(home, run, reply):
    with daemon(home, lambda _: reply) as heard:
        assert run(STOP) == b""
    assert [line["payload"] for line in spooled(home)] == [STOP]
    assert len([line for line in heard if line]) == 2


def test_an_event_beside_which_the_agent_goes_on_is_delivered_the_same(home, run):
    event = {**STOP, "hook_event_name": "PostToolUse", "tool_name": "Bash"}
    with daemon(home, lambda _: STORED) as heard:
        assert run(event) == b""
    assert json.loads(heard[0])["params"]["payload"] == event
    run(event)
    assert [line["payload"] for line in spooled(home)] == [event]


def test_with_no_daemon_or_no_program_to_send_with_the_event_is_spooled(home, run):
    run(STOP)
    with daemon(home, lambda _: b""):
        run(PROMPT, send=("/no/such/nc", "-U", "x"))
        run(START, timeout="/no/such/timeout", environ={"MEMD_START": "0"})
    names = [line["payload"].get("hook_event_name") for line in spooled(home)]
    assert names == ["Stop", "UserPromptSubmit", "SessionStart"]


@pytest.mark.skipif(shutil.which("timeout") is None, reason="there is no `timeout` here")
def test_a_daemon_that_hangs_is_not_waited_for(home, run):
    free = threading.Event()

    def answer(_):
        free.wait(600)
        return STORED

    with daemon(home, answer):
        assert run(PROMPT, timeout=shutil.which("timeout")) == b""
        free.set()
    assert [line["payload"] for line in spooled(home)] == [PROMPT]


@pytest.mark.parametrize(
    ("payload", "environ"),
    [
        (json.dumps(STOP, indent=2).encode(), {}),
        (json.dumps({**STOP, "last_assistant_message": "word " * 900_000}).encode(), {}),
        (b"no json at all", {}),
        (json.dumps(STOP).encode(), {"CLAUDE_PROJECT_DIR": '/a "b"'}),
        (json.dumps(STOP).encode(), {"CLAUDE_PROJECT_DIR": "/a\nb"}),
        (json.dumps(STOP).encode(), {"CLAUDE_PROJECT_DIR": "/a\\b"}),
        (json.dumps(STOP).encode(), {"MEMD_CAPTURE": "0"}),
        (json.dumps(STOP).encode(), {"MEMD_INJECT": "0"}),
        (json.dumps(STOP).encode(), {"MEMD_VAULT": "other"}),
    ],
    ids=["lines", "megabytes", "garbage", "quotes", "line break", "backslash", "no capture", "no context", "vault"],
)  # fmt: skip
def test_what_is_not_plain_is_the_python_hook_s(home, run, payload, environ):
    with daemon(home, lambda _: STORED) as heard:
        run(payload, environ=environ)
    # Only the Python hook says when it was.
    assert all(b'"at":' in line for line in heard if line)


def test_switched_off_it_says_nothing_to_nobody(home, run):
    with daemon(home, lambda _: STORED) as heard:
        assert run(PROMPT, environ={"MEMD_DISABLE": "1"}) == b""
    assert heard == []
    assert spooled(home) == []


def test_a_socket_of_somebody_else_is_not_spoken_to(home, run):
    path = Path(Paths(home).socket)
    path.parent.mkdir(parents=True)
    path.write_text("no socket")
    run(STOP)
    assert [line["payload"] for line in spooled(home)] == [STOP]


def test_a_hook_that_is_terminated_still_delivers_its_event(home, command):
    payload = json.dumps({**STOP, "last_assistant_message": "word " * 50_000}).encode()
    with subprocess.Popen(command(), stdin=subprocess.PIPE, env=home) as hooked:
        # More than a pipe holds: once it is written, the hook is reading.
        hooked.stdin.write(payload[:-1])
        hooked.stdin.flush()
        hooked.terminate()
        hooked.stdin.write(payload[-1:])
        hooked.stdin.close()
        assert hooked.wait(timeout=60) == 0
    assert len(spooled(home)) == 1


def test_a_real_daemon_stores_what_both_hooks_say_once(home, run, tmp_path):
    def memd(*words):
        ended = ForkedMemd(list(words), home, tmp_path / "-".join(words), b"")
        assert ended.wait(timeout=60) == 0
        return ended.output("stdout").decode()

    memd("start")
    try:
        assert run(STOP) == b""
        printed(home, STOP)
        assert json.loads(memd("status", "--json"))["books"] | {"reasons": None} == {
            "received": 2, "stored": 1, "duplicate": 1, "filtered": 0, "refused": 0, "balanced": True, "reasons": None,
        }  # fmt: skip
    finally:
        memd("stop")


# ── The installation ──────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def machine(tmp_path):
    """A host with programs of its own: a real `timeout` and whatever a test writes."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "timeout").symlink_to(shutil.which("timeout") or "/bin/false")

    def write(name, text):
        (programs / name).write_text(f"#!{sys.executable}\n{text}")
        (programs / name).chmod(0o755)

    environ = {"HOME": str(tmp_path), "PATH": str(programs)}
    return Host(environ, sys.executable, SCRIPT.parent, "linux"), write


@pytest.mark.skipif(
    shutil.which("timeout") is None or shutil.which("perl") is None,
    reason="one of them is not here",
)
def test_a_machine_without_nc_needs_no_python_if_it_has_perl(machine, home, run):
    host, _ = machine
    (Path(host.environ["PATH"]) / "perl").symlink_to(shutil.which("perl"))
    command = claude.find_quick_hook(host)
    send = (*command[-4:-1], Paths(home).socket)
    assert Path(send[0]).name == "perl"
    long = {**STOP, "last_assistant_message": "é \\n " * 50_000}
    with daemon(home, lambda _: STORED) as heard:
        assert run(STOP, send=send) == b""
        assert run(long, send=send) == b""
    assert [json.loads(line)["params"]["payload"] for line in heard] == [STOP, long]
    assert spooled(home) == []
    run(PROMPT, send=send)
    assert [line["payload"] for line in spooled(home)] == [PROMPT]


@pytest.mark.skipif(shutil.which("perl") is None, reason="there is no Perl here")
def test_perl_gives_up_on_a_daemon_that_hangs(home, run):
    free = threading.Event()
    send = (shutil.which("perl"), "-C0", str(SCRIPT.with_name("hook.pl")), Paths(home).socket)

    def answer(_):
        free.wait(600)
        return STORED

    with daemon(home, answer):
        event = {**STOP, "hook_event_name": "PostToolUse", "tool_name": "Bash"}
        try:
            assert run(event, send=send) == b""
        finally:
            free.set()
    assert [line["payload"] for line in spooled(home)] == [event]


@pytest.mark.skipif(shutil.which("timeout") is None, reason="there is no `timeout` here")
def test_a_program_is_used_only_if_it_works_here(machine):
    host, write = machine
    assert claude.find_quick_hook(host) is None
    write("nc", "import sys; sys.exit('invalid option -- U')")
    write("ncat", SENDER.replace("sys.argv[1]", "sys.argv[-1]"))
    command = claude.find_quick_hook(host)
    path = host.paths.socket
    assert Path(command[0]).name in ("dash", "sh")
    assert command[1] == str(SCRIPT)
    ncat = str(Path(host.environ["PATH"]) / "ncat")
    assert command[-5:] == (ncat, "-i", "1", "-U", path)
    write("nc", SENDER.replace("sys.argv[1]", "sys.argv[-1]"))
    assert claude.find_quick_hook(host)[-5].endswith("/nc")


def test_settings_name_each_event_and_know_the_hook_again():
    command = ("/bin/sh", "/v/memd/hook.sh", "in:|", "/r/memd.sock", "/v/python", "/v/memd/hook.py", "/usr/bin/timeout",
               "{event}", "/usr/bin/nc", "-U", "/r/memd.sock")  # fmt: skip
    before = {
        "model": "x",
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]},
    }
    settings = claude_settings.add_hooks(before, command)
    for event, groups in settings["hooks"].items():
        assert claude_settings.command_words(groups[-1]["hooks"][0])[8] == event
    assert len(list(claude_settings.memd_hook_commands(settings))) == len(
        claude_settings.HOOK_EVENTS
    )
    python = ("/v/python", "-I", "-S", "/v/memd/hook.py")
    assert claude_settings.add_hooks(settings, python) == claude_settings.add_hooks(before, python)
    assert claude_settings.remove_hooks(settings) == before


@pytest.mark.parametrize("environ", [{}, {"MEMD_INJECT": "1"}])
def test_a_hook_that_is_told_its_client_says_it_and_the_event_with_python_and_without(
    home, run, environ
):
    with daemon(home, lambda _: STORED) as heard:
        run(STOP, told="codex:Stop", environ=environ)
    said = json.loads(heard[0])["params"]
    assert (said["client"], said["event"], said["directory"]) == ("codex", "Stop", None)
    run(b"\xef\xbb\xbf" + json.dumps(STOP).encode(), told="cursor:stop")
    (line,) = spooled(home)
    assert (line["client"], line["event"], line["payload"]) == ("cursor", "stop", STOP)
