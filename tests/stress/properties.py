"""All property tests with new random examples, in random order, again and again: `scripts/torture properties`."""

import argparse
import os
import random
import subprocess
import sys
import time


def main(*paths: str) -> None:
    """Run them until the time is over or one fails."""
    parser = argparse.ArgumentParser(prog="scripts/torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, help="one run with the seed of an earlier one")
    options, more = parser.parse_known_args()
    end = time.monotonic() + options.minutes * 60
    while True:
        seed = random.randrange(10**6) if options.seed is None else options.seed
        print(f"--seed {seed}", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", "hypothesis"]
        command += [f"--hypothesis-seed={seed}", f"--randomly-seed={seed}", *more]
        environ = {**os.environ, "HYPOTHESIS_PROFILE": "stress"}
        code = subprocess.call([*command, *(paths or ("tests",))], env=environ)
        if code or options.seed is not None or time.monotonic() > end:
            sys.exit(code)
