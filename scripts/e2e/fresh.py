"""memd on a machine that has nothing, with each Python that is named, and an upgrade that is killed. About five minutes.

    scripts/fresh-machine [--old DIRECTORY] [--notes N] [PYTHON…]

For each PYTHON (default: all that are on PATH): the two commands of README.md in a copy of this tree, with an empty HOME and
environment and no compiler on PATH. With the first: the wheel, at most 3 MB, by pip, pipx and uv (those that are here); `memd --help`
in at most 0.3 s of CPU. With --old, another memd's tree: it fills a vault, this memd migrates a copy of it to see how long that
takes, then the vault itself, killed with -9 four times meanwhile; what was there is there. A line per check.
"""

import argparse
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from e2e.workspace import Report, waited_for
from memd.paths import Paths

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = ("python3.11", "python3.12", "python3.13", "python3.14")
WHEEL_BYTES_MAX = 3 * 1024 * 1024
HELP_CPU_S = 0.3
KILLS = (0.35, 0.55, 0.7, 0.85)
"""Where in the time of a migration the daemon is killed."""
START_S = 120.0
_ABSENT = re.compile(
    r"(?:.*-)?(?:cc|c\+\+|cpp|gcc|g\+\+|clang|tcc)(?:\+\+)?(?:-[\d.]+)?|ld(?:\..*)?|as|make|cargo|rustc|uv|pipx|python.*|pip.*"
)
"""Programs that a fresh machine lacks: compilers, and Pythons but the one that is tried."""


def main() -> int:
    """Try everything, tell."""
    options = _read_arguments()
    report, began = Report(), time.monotonic()
    pythons = options.pythons or [found for name in VERSIONS if (found := shutil.which(name))]
    top = Path(tempfile.mkdtemp(prefix="mf-"))  # short: sockets lie below it
    try:
        usable = [one for one in pythons if _describe_python(one)]
        for python in usable:
            try_two_commands(report, top, python)
        wheel = try_wheel(report, top)
        if wheel is not None and usable:
            try_installers(report, top, wheel, usable[0])
        if options.old is not None:
            try_upgrade(report, top, options.old.absolute(), options.notes)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    print(f"\n{report.passed} ok, {len(report.failed)} failed, {time.monotonic() - began:.0f} s")
    return 1 if report.failed else 0


def _describe_python(python: str) -> str:
    """Return the version of a Python; nothing if it does not run, as a shim of none does not."""
    words = [python, "-c", "import sys; print(sys.version.split()[0])"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout.strip()


# ── The two commands, and the installers ─────────────────────────────────────────────────────────


def make_machine(top: Path, python: str) -> dict[str, str]:
    """Make an empty home, and a PATH of this machine's programs but for those that a fresh one lacks."""
    home, programs = top / "home", top / "bin"
    home.mkdir(parents=True)
    programs.mkdir()
    for folder in ("/usr/bin", "/bin"):
        for file in Path(folder).iterdir():
            link = programs / file.name
            if not _ABSENT.fullmatch(file.name) and not link.is_symlink():
                link.symlink_to(file)
    real = subprocess.run(
        [python, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True, check=True
    ).stdout.strip()  # fmt: skip
    for name in ("python3", f"python{'.'.join(_describe_python(python).split('.')[:2])}"):
        (programs / name).write_text(f'#!/bin/sh\nexec {real} "$@"\n')
        (programs / name).chmod(0o755)
    # uv brings its own certificates; this machine's registry may have another.
    return {"HOME": str(home), "PATH": str(programs), "UV_SYSTEM_CERTS": "1", "UV_NATIVE_TLS": "1"}


def try_two_commands(report: Report, top: Path, python: str) -> None:
    """Run `scripts/run` and `memd install claude-code` in a copy of the tree."""
    report.act(f"Two commands with Python {_describe_python(python)}")
    place = top / f"p{_describe_python(python)}"
    environ = make_machine(place, python)
    tree = place / "memd"
    tree.mkdir()
    names = _run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], None, ROOT
    )
    for name in filter(None, names.stdout.split("\0")):
        if ((ROOT / name).exists() and not name.startswith("tests/")) or "data/claude-code" in name:
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    done = _run([str(tree / "scripts" / "run")], environ, tree)
    is_answered = "decode_token" in done.stdout
    report.check("scripts/run answers a question", not done.returncode and is_answered, done.stderr[-900:])  # fmt: skip
    memd = str(tree / ".venv" / "bin" / "memd")
    (place / "home" / ".claude").mkdir()
    done = _run([memd, "install", "claude-code"], environ, tree)
    written = place / "home" / ".claude" / "settings.json"
    report.check("memd install claude-code", not done.returncode and written.exists(), done.stderr[-600:])  # fmt: skip
    for words in (["--vault", "demo", "stop"], ["uninstall", "claude-code"]):
        done = _run([memd, *words], environ, tree)
        report.check(f"memd {' '.join(words)}", not done.returncode, done.stderr[-600:])
    report.check("nothing is left of it in the settings", not written.exists())


def try_wheel(report: Report, top: Path) -> Path | None:
    """Build the wheel."""
    report.act("The wheel")
    words = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-q", "-w", str(top / "dist"), str(ROOT)]  # fmt: skip
    done = _run(words, {**os.environ}, top)
    found = list((top / "dist").glob("*.whl")) if not done.returncode else []
    if not report.check("it is built", found, done.stderr[-600:]):
        return None
    size = found[0].stat().st_size
    report.check(f"it has {size / 1e6:.2f} MB, at most 3", size <= WHEEL_BYTES_MAX)
    return found[0]


def try_installers(report: Report, top: Path, wheel: Path, python: str) -> None:
    """Install the wheel by pip, pipx and uv, and use it."""
    for name in ("pip", "pipx", "uv"):
        place = top / name
        environ = make_machine(place, python)
        venv, local = place / "venv", place / "home" / ".local" / "bin" / "memd"
        if name == "pip":
            _run(["python3", "-m", "venv", str(venv)], environ, place)
            words, memd = [str(venv / "bin" / "pip"), "install", "-q", str(wheel)], venv / "bin" / "memd"  # fmt: skip
        elif (program := shutil.which(name)) is None:
            report.note(f"{name} is not on this machine")
            continue
        else:
            tail = ["install", str(wheel)] if name == "pipx" else ["tool", "install", "--python", f"{environ['PATH']}/python3", str(wheel)]  # fmt: skip
            words, memd = [program, *tail], local
        done = _run(words, environ, place)
        if not report.check(f"{name} installs the wheel", not done.returncode, done.stderr[-900:]):
            continue
        for arguments in (["start"], ["status"], ["stop"]):
            done = _run([str(memd), *arguments], environ, place)
            report.check(f"  memd {arguments[0]}", not done.returncode, done.stderr[-600:])
        _run([str(memd), "--help"], environ, place)  # the first time compiles
        took = min(_measure_cpu([str(memd), "--help"], environ) for _ in range(3))
        report.check(f"  memd --help takes {took:.2f} s of CPU, at most {HELP_CPU_S}", took <= HELP_CPU_S)  # fmt: skip


def _measure_cpu(words: list[str], environ: Mapping[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _run(words, environ, ROOT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _run(
    words: list[str], environ: Mapping[str, str] | None, directory: Path
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, env=environ, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )  # fmt: skip


# ── The upgrade ──────────────────────────────────────────────────────────────────────────────────


def try_upgrade(report: Report, top: Path, old: Path, count: int) -> None:
    """Fill a vault with another memd, and migrate it while the daemon is killed."""
    report.act(f"An upgrade of {count:,} notes and the sample sessions")
    homes = [top / "a", top / "b"]
    fill_vault(report, old, homes[0], top / "notes", count)
    shutil.copytree(homes[0], homes[1])
    vault = Path(Paths({"MEMD_HOME": str(homes[0])}).database)
    before = read_vault(vault)
    report.note(", ".join(f"{len(rows):,} {name}" for name, rows in before.items()))
    with serve(ROOT, homes[1]) as process:
        began = time.monotonic()
        is_up = waited_for(lambda: _is_up(homes[1], process), START_S)
        took = time.monotonic() - began
    report.check(f"a copy is migrated in {took:.1f} s", is_up)
    for share in KILLS:
        with serve(ROOT, homes[0]) as process:
            time.sleep(took * share)
            os.kill(process.pid, signal.SIGKILL)
    report.note(f"killed with -9 after {', '.join(f'{took * share:.1f} s' for share in KILLS)}")
    with serve(ROOT, homes[0]) as process:
        report.check("then it is migrated", waited_for(lambda: _is_up(homes[0], process), START_S))
    after = read_vault(vault)
    for name, rows in before.items():
        lost = {key: row for key, row in rows.items() if after[name].get(key) != row}
        report.check(f"all {len(rows):,} {name} are there, as they were", not lost, list(lost.items())[:3])  # fmt: skip


def fill_vault(report: Report, tree: Path, home: Path, notes: Path, count: int) -> None:
    """Remember notes and import the sample sessions with the memd of a tree."""
    notes.mkdir()
    for number in range(count):
        text = f"# Note {number}\n\nThe service s{number} listens on port {10_000 + number}, because of ticket T-{number}.\n"
        (notes / f"{number:05}.md").write_text(text)
    samples = ROOT / "tests" / "data" / "claude-code" / "ledger" / "projects"
    home.mkdir()
    with serve(tree, home) as process:
        waited_for(lambda: _is_up(home, process), START_S)
        for words in (["markdown", str(notes)], ["claude-code", str(samples)]):
            done = _call(tree, home, "import", *words)
            report.check(f"the old memd imports {words[0]}", not done.returncode, done.stderr[-600:])  # fmt: skip


def read_vault(database: Path) -> dict[str, dict[str, Any]]:
    """Return the events and the memories of a vault whose daemon has ended, by what identifies them."""
    with contextlib.closing(sqlite3.connect(database)) as connection:
        events = connection.execute("SELECT key, kind, name, at, payload FROM events").fetchall()
        written = "SELECT uid, kind, title, body, at FROM summaries WHERE source LIKE 'import:%'"
        texts = connection.execute(written).fetchall()
    return {
        name: {row[0]: row[1:] for row in rows} for name, rows in (("events", events), ("memories", texts))
    }  # fmt: skip


@contextlib.contextmanager
def serve(tree: Path, home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the daemon of a tree; in the end it ends, and with it what it has begun."""
    words = [sys.executable, "-P", "-m", "memd", "serve"]
    process = subprocess.Popen(
        words, env=_make_environ(tree, home), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def _make_environ(tree: Path, home: Path) -> dict[str, str]:
    path = os.environ["PATH"]
    return {"PATH": path, "HOME": str(home), "MEMD_HOME": str(home), "PYTHONPATH": str(tree)}


def _call(tree: Path, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return _run([sys.executable, "-P", "-m", "memd", *words], _make_environ(tree, home), home)


def _is_up(home: Path, process: subprocess.Popen[bytes]) -> bool:
    if process.poll() is not None:
        return True  # it ended by itself: what follows says so
    with contextlib.suppress(ValueError):
        return bool(json.loads(_call(ROOT, home, "status", "--json").stdout).get("running"))
    return False


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/fresh-machine", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )  # fmt: skip
    parser.add_argument("pythons", nargs="*", metavar="PYTHON", help="an interpreter")
    parser.add_argument("--old", type=Path, metavar="DIRECTORY", help="the tree of an older memd")
    parser.add_argument("--notes", type=int, default=2_000, help="how many notes its vault has")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
