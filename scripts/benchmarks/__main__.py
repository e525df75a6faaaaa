"""`scripts/bench PART`: run one benchmark, print its figures, exit with 1 if a limit is missed."""

import argparse
import sys
from importlib import import_module
from typing import Any

from benchmarks import metrics

PARTS = {
    "feel": "what people feel: hooks, contexts, searches, rest; also against another commit",
    "gate": "whether anything of that is 15 % slower than at a commit",
    "captures": "how many events a second are stored",
    "replay": "whether another commit gives the same answers, to the last bit",
    "growth": "how the figures grow with the vault",
    "retrieval": "whether the right memory comes back first",
    "retrievers": "words against FTS5, vectors against a scan",
    "stages": "where the CPU time of a search goes",
    "contexts": "what sessions would have been shown, at moments of real transcripts",
    "sync": "what sharing with another machine costs",
    "consolidation": "what a run costs, and whether it hides only duplicates",
    "embeddings": "what searches notice while the model fails or changes",
    "forgetting": "whether what was replaced or forgotten stays away, in public sets",
    "baselines": "grep, FTS5 and memd on the same questions",
    "plot": "draw what `feel --json FILE` or `growth --json FILE` wrote",
}


def main(arguments: list[str]) -> int:
    """Run the part that the command line names."""
    listed = "".join(f"\n  {name:<14} {caption}" for name, caption in PARTS.items())
    parser = _parser("scripts/bench", f"Benchmarks of memd.\n\nparts:{listed}")
    parser.add_argument("part", choices=PARTS, metavar="PART", help="PART --help tells more")
    name = parser.parse_args(arguments[:1]).part
    options = parse_options(name, arguments[1:])
    part = load(name)
    if name == "plot":
        part.draw(options)
        return 0
    machine = metrics.machine()
    figures = part.measure(options)
    return metrics.report(figures, getattr(part, "LIMITS", {}), machine, options.json)


def load(name: str) -> Any:
    """The module of a part."""
    return import_module(f"benchmarks.{name}")


def parse_options(name: str, arguments: list[str]) -> argparse.Namespace:
    """The options of a part."""
    part = load(name)
    parser = _parser(f"scripts/bench {name}", part.__doc__)
    part.add_arguments(parser)
    if name != "plot":
        parser.add_argument(
            "--json", nargs="?", const="-", metavar="FILE",
            help="print JSON instead of a table, or write it to FILE as well",
        )  # fmt: skip
    return parser.parse_args(arguments)


def _parser(program: str, description: str | None) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog=program, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
