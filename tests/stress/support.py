"""What all parts share: trials and their report, waiting, and what a daemon reports of itself."""

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from memd.client import Client

HASHING = "[engines]\nembedder = 'hashing'\n"
"""config.toml: do not look for a model."""
RSS_MB = 320.0
"""What a daemon with a small vault may take at its peak."""
WAIT_S = 60.0
"""Longest wait for anything, on a machine whose processors are busy with other work."""
Trial = Callable[[], tuple[list[str], str]]
"""Runs; returns what was wrong and what was seen. LookupError: it cannot run here."""
Trials = Callable[[argparse.Namespace], Iterator[tuple[str, Trial]]]


def run_trials(part: str, doc: str | None, trials: Trials, **numbers: float) -> None:
    """Read --only, --seed and an option for each of `numbers`; exit 1 if something was wrong."""
    parser = argparse.ArgumentParser(
        prog=f"scripts/torture {part}", description=doc,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="NAME", help="trials with this in their name"
    )
    for name, default in {"seed": random.randrange(10**6), **numbers}.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    options = parser.parse_args()
    print(*(f"--{name} {getattr(options, name)}" for name in ("seed", *numbers)), flush=True)
    broken = 0
    for name, trial in trials(options):
        if any(one in name for one in options.only):
            try:
                wrong, seen = trial()
            except LookupError as error:
                print(f"skipped  {name}: {error}", flush=True)
                continue
            lines = [f"{'BROKEN' if wrong else 'holds ':<8} {name}: {seen}"]
            lines += [f"         {one}" for one in dict.fromkeys(wrong)]
            print("\n".join(lines), flush=True)
            broken += len(wrong)
    print(f"promises broken: {broken} (limit 0)")
    sys.exit(bool(broken))


def wait_until(
    holds: Callable[[], object], seconds: float = WAIT_S, *, every_s: float = 0.02
) -> bool:
    """Wait until this holds; return whether it did within this time."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(every_s)
    return True


def worker(status: dict[str, Any], name: str) -> dict[str, Any]:
    """What a worker of the daemon reports of itself."""
    found: dict[str, Any] = next(one for one in status["rooms"] if one["name"] == name)
    return found


def doctor_problems(client: Client, *ignored: str) -> list[str]:
    """What the doctor finds wrong, without the findings of these names."""
    return [
        f"doctor: {one['name']}: {one['words']}"
        for one in client.call("memd/doctor")["findings"]
        if one["verdict"] != "ok" and one["name"] not in ignored
    ]


def status_complaints(status: dict[str, Any]) -> list[str]:
    """What is wrong by `memd status`: health, failed calls, a ledger that does not balance."""
    failures = worker(status, "listener")["failures"]
    wrong = [f"not healthy: {one}" for one in status["reasons"]]
    wrong += [f"{failures} calls failed by a fault of memd's own"] if failures else []
    return wrong + ledger_complaints(status)


def ledger_complaints(status: dict[str, Any]) -> list[str]:
    """Whether the ledger balances."""
    ledger = status["books"]
    return [] if ledger["balanced"] else [f"the ledger does not balance: {ledger}"]


def memory_complaints(rss_mb: float) -> list[str]:
    """Whether a daemon with a small vault has used more memory than it may."""
    return [f"RSS {rss_mb:.0f} MB (limit {RSS_MB:.0f})"] if rss_mb > RSS_MB else []


def as_event(payload: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Parameters of `memd/capture` for a hook's payload."""
    return {"client": "claude-code", "payload": payload, **more}
