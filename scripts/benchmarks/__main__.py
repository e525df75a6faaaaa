"""`scripts/bench PART`: run one benchmark, print its figures, exit with 1 if a limit is missed."""

import argparse
import sys
from importlib import import_module

from benchmarks import metrics

PARTS = {
    "latency": "how long agents and users wait",
    "captures": "how many events a second are stored",
    "growth": "how the figures grow with the vault",
    "retrieval": "whether the right memory comes back first",
    "retrievers": "words against FTS5, vectors against a scan",
    "consolidation": "what a run costs, and whether it hides only duplicates",
    "embeddings": "what searches notice while the model fails or changes",
    "baselines": "grep, LIKE, FTS5 and memd on the same questions",
    "compare": "two commits against each other",
    "plot": "draw what `growth --json FILE` wrote",
}


def main(arguments: list[str]) -> int:
    """Run the part that the command line names."""
    listed = "".join(f"\n  {name:<14} {caption}" for name, caption in PARTS.items())
    parser = _parser("scripts/bench", f"Benchmarks of memd.\n\nparts:{listed}")
    parser.add_argument("part", choices=PARTS, metavar="PART", help="PART --help tells more")
    name = parser.parse_args(arguments[:1]).part
    part = import_module(f"benchmarks.{name}")
    parser = _parser(f"scripts/bench {name}", part.__doc__)
    part.add_arguments(parser)
    if name == "plot":
        part.draw(parser.parse_args(arguments[1:]))
        return 0
    parser.add_argument(
        "--json", nargs="?", const="-", metavar="FILE",
        help="print JSON instead of a table, or write it to FILE as well",
    )  # fmt: skip
    options = parser.parse_args(arguments[1:])
    machine = metrics.machine()
    figures = part.measure(options)
    return metrics.report(figures, getattr(part, "LIMITS", {}), machine, options.json)


def _parser(program: str, description: str | None) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog=program,
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
