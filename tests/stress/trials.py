"""Runs the trials of a part one after another, as its options say, and prints what each came to."""

import argparse
import random
import sys
from collections.abc import Callable

Trial = Callable[[], tuple[list[str], str]]
"""Runs; returns what was wrong and what was seen. LookupError: it cannot run here."""
Make = Callable[[argparse.Namespace], dict[str, Trial]]


def run(part: str, doc: str | None, make: Make, **numbers: int) -> None:
    """Read --only, --seed and an option for each of `numbers`; exit 1 if something was wrong."""
    parser = argparse.ArgumentParser(
        prog=f"scripts/torture {part}", description=doc,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument(
        "--only", nargs="+", default=[""], help="trials with this in their name"
    )
    for name, default in {"seed": random.randrange(10**6), **numbers}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    print(*(f"--{name} {getattr(options, name)}" for name in ("seed", *numbers)), flush=True)
    broken = 0
    for name, trial in make(options).items():
        if any(one in name for one in options.only):
            try:
                wrong, seen = trial()
            except LookupError as error:
                print(f"skipped  {name}: {error}", flush=True)
                continue
            print(f"{'BROKEN' if wrong else 'holds ':<8} {name}: {seen}", flush=True)
            print(
                "".join(f"         {one}\n" for one in dict.fromkeys(wrong)), end="", flush=True
            )
            broken += len(wrong)
    print(f"promises broken: {broken} (limit 0)")
    sys.exit(bool(broken))
