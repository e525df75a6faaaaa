"""`memd view` as a process: its link, its end with its terminal or when idle, and what it refuses."""

import contextlib
import os
import pty
import re
import signal
import subprocess
import threading
import time

import pytest

from memd.viewer.server import Viewer, ViewSettings
from tests.cli.conftest import Machine
from tests.viewer.conftest import Browser, RunningViewer

WAIT_S = 60


@pytest.fixture
def viewing(served):
    """Start `memd view` with a terminal of its own: (the process, the terminal's other end, its port, its token)."""
    started = []

    def start(*options):
        ours, theirs = pty.openpty()
        process = served.popen(
            "view", "--no-open", *options, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),  # becomes its terminal
        )  # fmt: skip
        os.close(theirs)
        started.append((process, ours))
        return process, ours, *read_link(ours)

    yield start
    for process, ours in started:
        if process.poll() is None:
            process.kill()
        process.wait(WAIT_S)
        with contextlib.suppress(OSError):
            os.close(ours)


def read_link(terminal):
    """The port and the token of the next link that is printed."""
    said = ""
    while not (found := re.search(r"http://127\.0\.0\.1:(\d+)/#token=([\w-]+)\s", said)):
        said += os.read(terminal, 1_000).decode()
    return int(found[1]), found[2]


class Printed:
    """A viewer of another process, by its port."""

    def __init__(self, port):
        self.port = port


def test_it_prints_a_link_that_opens_the_pages_and_another_one_with_enter(viewing):
    process, terminal, port, token = viewing()
    browser = Browser(Printed(port))
    browser.key = browser.exchange(token).json["key"]
    assert browser.get("/").status == 200
    assert browser.exchange(token).status == 403
    os.write(terminal, b"\n")
    _, another = read_link(terminal)
    assert another != token
    assert browser.exchange(another).status == 200
    os.write(terminal, b"\x03")
    assert process.wait(WAIT_S) == 0


def test_it_ends_with_its_terminal(viewing):
    process, terminal, *_ = viewing()
    os.close(terminal)
    process.wait(WAIT_S)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_it_ends_when_told(viewing, how):
    process, *_ = viewing()
    process.send_signal(how)
    process.wait(WAIT_S)


def test_it_ends_when_nobody_looks(socket_path):
    running = RunningViewer(socket_path, idle_s=0.0)
    running._thread.join(WAIT_S)
    assert not running._thread.is_alive()


def test_a_stranger_or_a_page_that_tries_again_does_not_keep_it_running(socket_path):
    running = RunningViewer(socket_path)
    try:
        browser = running.open()
        before = running.viewer.visited_at
        browser.send("GET", "/")
        browser.send("GET", "/_/", Memd_Key="guessed")
        browser.get("/", Memd_Retry="1")
        assert running.viewer.visited_at == before
        browser.get("/")
        assert running.viewer.visited_at > before
    finally:
        running.stop()


def test_a_browser_may_connect_before_the_server_runs(socket_path):
    viewer = Viewer(ViewSettings(socket_path, "all", lambda: 0))
    answers = []
    asking = threading.Thread(
        target=lambda: answers.append(Browser(viewer).send("GET", "/").status)
    )
    asking.start()
    viewer.run(lambda: bool(answers))
    asking.join(WAIT_S)
    assert answers == [200]


def test_the_port_may_be_chosen(served, socket_path):
    first = Viewer(ViewSettings(socket_path, "all", lambda: 0))
    port = first.port
    taken = served.run("view", "--no-open", "--port", port)
    assert (taken.status, "leave --port out" in taken.err) == (1, True)
    first.listening.close()


def test_an_agent_may_look_and_not_edit(served):
    served.environ["CLAUDECODE"] = "1"
    try:
        ran = served.run_anew("view", "--no-open", "--edit")
    finally:
        del served.environ["CLAUDECODE"]
    assert (ran.status, "the user's word" in ran.err) == (1, True)


def test_a_project_that_nothing_is_known_of_is_not_shown(served, tmp_path):
    for name in ("nowhere", str(tmp_path)):
        ran = served.run("view", "--no-open", "--project", name)
        assert (ran.status, "memd view shows" in ran.out) == (1, False)


def test_without_a_daemon_it_says_how_to_start_one(tmp_path):
    ran = Machine(tmp_path).run("view", "--no-open")
    assert (ran.status, "memd start" in ran.err) == (2, True)


def test_the_token_is_never_an_argument_of_another_process(served, tmp_path):
    """Other users of a machine read the arguments of every process."""
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(
        f'#!/bin/sh\ncp -p "${{1#file://}}" {opened}.page\nprintf "%s" "$1" > {opened}\n'
    )
    browser.chmod(0o755)
    environ = {**served.environ, "BROWSER": str(browser), "DISPLAY": ":0"}
    process = subprocess.Popen(
        served.command("view"), env=environ, cwd=served.home, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        token = re.search(
            r"#token=([\w-]+)", "".join(process.stdout.readline().decode() for _ in range(3))
        )[1]
        deadline = time.monotonic() + WAIT_S
        while not (opened.exists() and opened.read_text()):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        address = opened.read_text()
        page = tmp_path / "opened.page"
        assert (address.startswith("file:///"), token in address) == (True, False)
        assert (page.stat().st_mode & 0o777, token in page.read_text()) == (0o600, True)
    finally:
        process.terminate()
        process.wait(WAIT_S)
        process.stdout.close()
    assert not os.path.exists(address.removeprefix("file://"))  # noqa: PTH110  # an address
