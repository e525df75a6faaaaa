"""Hooks fuzzed: payloads that no client sends, in this process and in ones of their own, with a daemon and without.

A hook ends with 0, in time, and says nothing but one JSON object; whatever it was given is taken in, at
once or from the spool. Not here: the daemon (torture_fuzz_doors.py).
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torture_fuzz_doors as doors
from torture_fuzz_matter import drawn, dumped

import memd
from benchmarks import harness
from memd import hook
from memd.capture import spool

HOOK_S = 5.0
_HOOK = Path(memd.__file__).with_name("hook.py")


def hooks(
    seed: int, deadline: float, case: int | None = None, *, counts: bool = True
) -> doors.Seen:
    """Payloads to the hook: in this process and in one of its own, without a daemon and with one."""
    seen, number, spoken = doors.Seen(), case or 0, 0
    reached: doors.Reached | None = {} if counts else None
    began = time.monotonic()
    with doors.house(reached, is_up=False) as daemon:
        while time.monotonic() < deadline and len(seen.wrong) < 5:  # noqa: PLR2004
            is_late = time.monotonic() - began > (deadline - began) / 4
            if is_late and daemon.process is None:
                daemon.start()
            payload, environ = _hook_input(seed, number, daemon)
            is_alone = not number % 10
            if found := (_as_process if is_alone else _in_process)(payload, environ):
                how = (
                    f"repeat: scripts/torture fuzz --target hooks --seed {seed} --case {number}"
                )
                seen.wrong.append(f"{found}\n      {how}\n      {payload[:800]!r}")
            spoken += bool(payload.strip()) + _spooled(seed, number, daemon)
            number += 1
            if case is not None:
                break
        if daemon.process is None:
            daemon.start()
        seen.wrong += [*_received(daemon, spoken), *doors.unwell(daemon), *doors.logged(daemon)]
    seen.line = f"hooks        {number:8} payloads{doors.told(reached)}"
    return seen


def _hook_input(seed: int, number: int, daemon: harness.Daemon) -> tuple[bytes, dict[str, str]]:
    matter = drawn(f"{seed}/hooks/{number}")
    data = dumped(matter.changed(matter.random.choice(doors.payloads()), 0.1))
    data = matter.torn(data) if matter.chance(0.2) else data
    place = matter.word().replace("\x00", "").encode("utf-8", "replace").decode()
    environ = {**daemon.environ, "MEMD_START": "0"}
    environ.pop("COVERAGE_PROCESS_START", None)
    return data, environ | ({"CLAUDE_PROJECT_DIR": place} if matter.chance(0.3) else {})


def _spooled(seed: int, number: int, daemon: harness.Daemon) -> bool:
    """Whether a line was put into the spool that no hook would write."""
    matter = drawn(f"{seed}/spool/{number}")
    if not matter.chance(0.2):
        return False
    payload = matter.changed(matter.random.choice(doors.payloads()), 0.1)
    said = {"client": "claude-code", "payload": payload, "at": number, "directory": "/p"}
    data = dumped(matter.changed(said, 0.3))
    data = (matter.torn(data) if matter.chance(0.2) else data).replace(b"\n", b" ").strip()
    if data:
        spool.append(daemon.paths.spool_dir, data)
    return bool(data)


def _in_process(payload: bytes, environ: dict[str, str]) -> str | None:
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as shown:
        given.write(payload)
        given.seek(0)
        sys.stdout.flush()
        real = os.dup(1)
        os.dup2(shown.fileno(), 1)
        began = time.monotonic()
        try:
            code = hook.main([], given.fileno(), environ)
        finally:
            took = time.monotonic() - began
            os.dup2(real, 1)
            os.close(real)
        shown.seek(0)
        return _hook_fault(code, shown.read(), b"", took)


def _as_process(payload: bytes, environ: dict[str, str]) -> str | None:
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(_HOOK)],
        input=payload, env=environ, capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    return _hook_fault(done.returncode, done.stdout, done.stderr, time.monotonic() - began)


def _hook_fault(code: int, shown: bytes, said: bytes, took: float) -> str | None:
    if code or said:
        return f"the hook ended with {code} and said {said[:300]!r}"
    if took > HOOK_S:
        return f"the hook took {took:.1f} s"
    try:
        return (
            None if not shown or isinstance(json.loads(shown), dict) else "it printed no object"
        )
    except ValueError:
        return f"the hook printed {shown[:300]!r}"


def _received(daemon: harness.Daemon, spoken: int) -> list[str]:
    """Whether all that was said was taken in, at once or from the spool."""
    until = time.monotonic() + doors.ANSWER_S
    with daemon.client() as client:
        while True:
            status = client.call("memd/status")
            books = status["books"]
            if books["received"] >= spoken and books["balanced"]:
                return []
            if time.monotonic() > until:
                return [f"{spoken} payloads were given to hooks, the books say {books}"]
            time.sleep(0.05)
