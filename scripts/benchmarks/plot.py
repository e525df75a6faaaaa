"""Draw what `scripts/bench growth --json FILE` measured, each curve with its limits."""

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.growth import LIMITS

_PANELS = (
    ("mem_search, ms", ("search p50 ms", "search p95 ms")),
    ("times as fast: vectors", ("vectors × a scan",)),
    ("times as fast: words", ("words × FTS5",)),
    ("captures a second", ("captures a second",)),
    ("start to first answer, s", ("start s",)),
    ("idle memory, MB", ("idle MB",)),
    ("disk a summary, KB", ("disk KB a summary",)),
)
_COLOURS = ("#1f6f8b", "#e07a5f")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part."""
    parser.add_argument("file", type=Path, help="what `scripts/bench growth --json` wrote")
    parser.add_argument(
        "--out", type=Path, default=Path("docs/growth.png"), help="default: %(default)s"
    )


def draw(options: argparse.Namespace) -> None:
    """Write one picture with a panel for each figure that was measured."""
    import matplotlib as mpl  # noqa: PLC0415  # installed for this part alone

    mpl.use("agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415  # after the backend is chosen

    measured = json.loads(options.file.read_text(encoding="utf-8"))
    figures = {int(size): values for size, values in measured["figures"].items()}
    known = set().union(*figures.values())
    panels = [(title, names) for title, names in _PANELS if known.issuperset(names)]
    picture, grid = plt.subplots(2, 4, figsize=(14, 6.4), layout="constrained")
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for axes, (title, names) in zip(grid.flat, panels, strict=False):
        axes.set_title(title, fontsize=10)
        _draw_panel(axes, names, figures)
    on = measured["machine"]
    picture.suptitle(
        f"{on['cores']} cores, Python {on['python']}, numpy {on['numpy']}, SQLite {on['sqlite']}",
        fontsize=9, color="#666666",
    )  # fmt: skip
    options.out.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(options.out, dpi=110)
    print(options.out)


def _draw_panel(axes: Any, names: tuple[str, ...], figures: dict[int, dict[str, float]]) -> None:
    for name, colour in zip(names, _COLOURS, strict=False):
        values = {size: row[name] for size, row in sorted(figures.items()) if name in row}
        limits = {int(size): row[name].split()[1] for size, row in LIMITS.items() if name in row}
        suffix = f" {name.split()[1]}" if len(names) > 1 else ""
        axes.plot([*values], [*values.values()], "o-", color=colour, label=f"measured{suffix}")
        axes.plot(
            [*limits], [*map(float, limits.values())], "_", color=colour, markersize=16,
            label=f"limit{suffix}",
        )  # fmt: skip
    axes.set_xscale("log")
    first = [row[names[0]] for row in figures.values() if names[0] in row]
    if max(first) > 10 * min(first):
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel("summaries", fontsize=9)
    axes.grid(visible=True, which="major", alpha=0.25)
    axes.legend(fontsize=8, frameon=False)
