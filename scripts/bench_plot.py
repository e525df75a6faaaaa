"""Draws what `scripts/bench growth --json FILE` measured: a curve a figure, its bars beside it.

scripts/bench --plot FILE [--out docs/growth.png]
"""

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
from bench_growth import BARS

mpl.use("agg")
from matplotlib import pyplot as plt  # after the backend is chosen

CURVES = (
    ("mem_search, ms", ("search p50 ms", "search p95 ms")),
    ("times as fast: vectors", ("vectors × a scan",)),
    ("times as fast: words", ("words × FTS5",)),
    ("captures a second", ("captures a second",)),
    ("start to first answer, s", ("start s",)),
    ("idle memory, MB", ("idle MB",)),
    ("disk a summary, KB", ("disk KB a summary",)),
)
COLOURS = ("#1f6f8b", "#e07a5f")


def draw(measured: dict[str, Any], out: Path) -> None:
    """One picture, a panel for each that was measured."""
    figures = {int(size): values for size, values in measured["figures"].items()}
    known = set().union(*figures.values())
    curves = [(title, names) for title, names in CURVES if known.issuperset(names)]
    figure, grid = plt.subplots(2, 4, figsize=(14, 6.4), layout="constrained")
    for panel in grid.flat[len(curves) :]:
        panel.set_axis_off()
    for panel, (title, names) in zip(grid.flat, curves, strict=False):
        for name, colour in zip(names, COLOURS, strict=False):
            sizes = sorted(size for size, values in figures.items() if name in values)
            label = name.split()[1] if len(names) > 1 else "measured"
            panel.plot(
                sizes, [figures[s][name] for s in sizes], "o-", color=colour, label=label
            )
            bars = BARS.get(name, {})
            panel.plot(
                list(bars), list(bars.values()), "_", color=colour, markersize=16,
                label=f"bar {label}" if len(names) > 1 else "bar",
            )  # fmt: skip
        panel.set_xscale("log")
        seen = [values[names[0]] for values in figures.values() if names[0] in values]
        if max(seen) > 10 * min(seen):
            panel.set_yscale("log")
        else:
            panel.set_ylim(bottom=0)
        panel.set_title(title, fontsize=10)
        panel.set_xlabel("summaries", fontsize=9)
        panel.grid(visible=True, which="major", alpha=0.25)
        panel.legend(fontsize=8, frameon=False)
    told = measured["machine"]
    figure.suptitle(
        f"{told['cores']} cores, Python {told['python']}, numpy {told['numpy']}, SQLite {told['sqlite']}",
        fontsize=9, color="#666666",
    )  # fmt: skip
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=110)


def main() -> None:
    """Draw."""
    parser = argparse.ArgumentParser(prog="scripts/bench --plot")
    parser.add_argument("file", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs/growth.png"))
    options = parser.parse_args()
    draw(json.loads(options.file.read_text(encoding="utf-8")), options.out)
    print(options.out)


if __name__ == "__main__":
    main()
