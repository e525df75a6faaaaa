"""Whether this checkout is slower than a commit by more than 15 % anywhere; asked before a release.

The table of `feel --against COMMIT`; the exit status is 1 if any row says so. Run it on a quiet machine.
"""

import argparse

from benchmarks import feel, metrics

LIMITS = {"*": {"slower": "<= 1.15"}}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part."""
    parser.add_argument("against", metavar="COMMIT", help="the release before")
    feel.add_arguments(parser)


def measure(options: argparse.Namespace) -> metrics.Figures:
    """The table of `feel`."""
    return feel.measure(options)
