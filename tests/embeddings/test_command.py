"""Against a real program that does what a test wants, well or badly."""

import contextlib
import json
import os
import signal
import stat
import sys
from pathlib import Path

import anyio
import pytest

from memd.daemon.process import wait_until
from memd.embeddings import ChatModel
from memd.embeddings.command import REPLY_BYTES_MAX, CommandChat, pick_environment
from memd.errors import EngineAbsent, EngineFailed
from tests.fakes import writer

PROGRAM = writer.__file__
REPLY = '{"title": "Login answers 401", "facts": []}'


class Desk:
    """A chat model that is a program, and what the program notes."""

    def __init__(self, place):
        self.place = place
        self.notes = place / "notes.jsonl"
        self.directory = place / "state" / "writer" / "default"

    def chat(self, what, reply=REPLY, *, deadline_s=60.0, command=None, **environ):
        return CommandChat(
            command or [sys.executable, PROGRAM, str(self.notes), what, reply],
            deadline_s=deadline_s,
            directory=str(self.directory),
            environ=pick_environment({"PATH": os.environ["PATH"], **environ}, ()),
            redact=lambda text: text.replace("hunter2", "[redacted]"),
        )

    async def ask(self, what, *args, **settings):
        with anyio.fail_after(120):
            return await self.chat(what, *args, **settings).complete("be brief", "a text", {})

    async def fail(self, what, *args, **settings):
        with pytest.raises(EngineFailed) as caught:
            await self.ask(what, *args, **settings)
        return caught.value.message

    def noted(self, name):
        lines = self.notes.read_text(encoding="utf-8").splitlines() if self.notes.exists() else []
        return [one[name] for one in map(json.loads, lines) if name in one]


@pytest.fixture
def desk(tmp_path):
    made = Desk(tmp_path.resolve())
    yield made
    for pid in made.noted("child"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def is_running(pid):
    """Whether it runs; a zombie whose parent has died may wait for its reaper."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat")
        return not (state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z")
    except (ProcessLookupError, FileNotFoundError):
        return False


async def has_ended(pid):
    return await anyio.to_thread.run_sync(wait_until, lambda: not is_running(pid), 60)


async def test_the_reply_is_what_the_program_prints(desk):
    assert (await desk.ask("good")).strip() == REPLY
    assert desk.noted("prompt") == ["be brief\n\na text\n"]


def test_it_says_who_it_is(desk):
    model: ChatModel = desk.chat("good", command=["/opt/bin/claude", "-p"])
    assert model.name == "command/claude"
    assert model.charges_failures


async def test_no_shell_reads_the_command(desk):
    await desk.ask("good", "$(touch /tmp/no); `id` | cat")
    assert desk.noted("argv")[0][-1] == "$(touch /tmp/no); `id` | cat"


async def test_each_reply_is_written_in_an_empty_directory_of_its_own(desk):
    await desk.ask("good")
    await desk.ask("good")
    assert desk.noted("cwd") == [str(desk.directory)] * 2
    assert desk.noted("files") == [[], []]
    assert stat.S_IMODE(desk.directory.stat().st_mode) == 0o700


async def test_only_harmless_variables_are_passed_and_memd_s_own(desk):
    await desk.ask(
        "good", HOME="/home/dev", LC_ALL="C.UTF-8", AWS_SECRET_ACCESS_KEY="x", GITHUB_TOKEN="y",
        CLAUDECODE="1", MEMD_HOME="/m", MEMD_VAULT="v", HTTPS_PROXY="http://127.0.0.1:1",
    )  # fmt: skip
    (given,) = desk.noted("environ")
    assert (given["HOME"], given["LC_ALL"]) == ("/home/dev", "C.UTF-8")
    assert given["HTTPS_PROXY"] == "http://127.0.0.1:1"
    assert given["MEMD_DISABLE"] == "1"
    assert not given.keys() & {
        "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "CLAUDECODE", "MEMD_HOME", "MEMD_VAULT",
    }  # fmt: skip


def test_variables_that_the_settings_name_are_passed_too():
    found = pick_environment({"OPENAI_API_KEY": "k", "OTHER_KEY": "o"}, ["OPENAI_API_KEY", "NO"])
    assert found["OPENAI_API_KEY"] == "k"
    assert not found.keys() & {"OTHER_KEY", "NO"}
    assert pick_environment({"MEMD_DISABLE": "0"}, ["MEMD_DISABLE"])["MEMD_DISABLE"] == "1"


async def test_a_program_that_does_not_read_its_prompt_may_answer(desk):
    assert (await desk.ask("deaf")).strip() == REPLY


async def test_a_long_prompt_reaches_the_program_whole(desk):
    text = "äöü " * 100_000
    with anyio.fail_after(120):
        await desk.chat("good").complete("be brief", text, {})
    assert desk.noted("prompt") == [f"be brief\n\n{text}\n"]


async def test_what_a_program_says_on_stderr_does_not_block_it(desk):
    assert (await desk.ask("noisy")).strip() == REPLY


async def test_a_slow_program_is_ended(desk):
    why = await desk.fail("slow", deadline_s=1.5)
    assert "longer than 1.5 s and was killed" in why
    (pid,) = desk.noted("pid")
    assert not is_running(pid)


async def test_a_program_that_ignores_sigterm_is_killed(desk):
    assert "was killed" in await desk.fail("stubborn", deadline_s=1.5)
    assert desk.noted("deaf")
    (pid,) = desk.noted("pid")
    assert not is_running(pid)


async def test_a_program_is_ended_before_its_caller_goes_on_after_a_cancellation(desk):
    async with anyio.create_task_group() as group:
        group.start_soon(desk.ask, "slow")
        await anyio.to_thread.run_sync(wait_until, lambda: bool(desk.noted("pid")), 60)
        group.cancel_scope.cancel()
    (pid,) = desk.noted("pid")
    assert not is_running(pid)


async def test_a_crash_is_told_with_its_status_and_the_end_of_stderr(desk):
    why = await desk.fail("crashing", "the key hunter2 is wrong")
    assert why.endswith("exited with status 3: first line the key [redacted] is wrong")


async def test_a_signal_is_told_by_its_name(desk):
    assert (await desk.fail("killed")).endswith("was killed by SIGSEGV")


async def test_endless_output_ends_the_program(desk):
    assert f"more than {REPLY_BYTES_MAX // 1024} KiB" in await desk.fail("endless")
    (pid,) = desk.noted("pid")
    assert not is_running(pid)


async def test_a_child_that_stays_is_ended_with_the_program(desk):
    assert (await desk.ask("parent")).strip() == REPLY
    (child,) = desk.noted("child")
    assert await has_ended(child)


async def test_a_child_that_left_the_group_keeps_nobody_waiting(desk):
    assert (await desk.ask("daemonizing")).strip() == REPLY
    (child,) = desk.noted("child")
    assert is_running(child)


@pytest.mark.parametrize("name", ["no-such-program-here", "/no/such/program"])
async def test_a_missing_program_is_told_with_the_place_to_mend_it(desk, name):
    chat = desk.chat("good", command=[name, "-p"])
    assert name in await chat.find_obstacle()
    with pytest.raises(EngineAbsent, match=r"distill\.writer_command"):
        await chat.complete("s", "t", {})
    assert await desk.chat("good").find_obstacle() == ""


async def test_a_program_that_cannot_be_run_is_absent(desk):
    broken = desk.place / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    with pytest.raises(EngineAbsent, match="cannot be started"):
        await desk.ask("good", command=[str(broken)])
