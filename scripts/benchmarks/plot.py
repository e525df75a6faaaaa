"""Draw what `scripts/bench growth --json FILE` or `scripts/bench feel --json FILE` measured, with its limits."""

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks import feel
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
    parser.add_argument("file", type=Path, help="what `scripts/bench growth|feel --json` wrote")
    parser.add_argument("--out", type=Path, help="default: docs/growth.png or docs/feel.png")


def draw(options: argparse.Namespace) -> None:
    """Write one picture: a panel for each figure that grows, or a bar for each that is felt."""
    import matplotlib as mpl  # noqa: PLC0415  # installed for this part alone

    mpl.use("agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415  # after the backend is chosen

    measured = json.loads(options.file.read_text(encoding="utf-8"))
    is_felt = feel.BARE in measured["figures"]
    name, draw_figures = ("feel", _draw_felt) if is_felt else ("growth", _draw_growth)
    picture = draw_figures(plt, measured["figures"])
    on = measured["machine"]
    picture.suptitle(
        f"{on['cores']} cores, Python {on['python']}, numpy {on['numpy']}, SQLite {on['sqlite']}",
        fontsize=9, color="#666666",
    )  # fmt: skip
    out = options.out or Path(f"docs/{name}.png")
    out.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(out, dpi=110)
    print(out)


def _draw_felt(plt: Any, figures: dict[str, dict[str, float]]) -> Any:
    """How many times its limit each figure is; what is left of the line is within it."""
    rows: list[tuple[str, float, float | None]] = []
    for row, limits in feel.LIMITS.items():
        for column, limit in limits.items():
            if row in figures and column in figures[row]:
                sign, bound = limit.split()
                found, against = figures[row][column], figures[row].get("slower")
                times = found / float(bound) if sign == "<=" else float(bound) / found
                before = times / against if against and column == "now" else None
                rows.append((row, times, before))
    picture, axes = plt.subplots(figsize=(9, 0.32 * len(rows) + 1.2), layout="constrained")
    places = range(len(rows), 0, -1)
    colours = [_COLOURS[times > 1] for _, times, _ in rows]
    axes.barh(places, [times for _, times, _ in rows], color=colours, height=0.6)
    for place, (_, _, before) in zip(places, rows, strict=True):
        if before is not None:
            axes.plot([before], [place], "|", color="#333333", markersize=12)
    axes.axvline(1, color="#333333", linewidth=0.8)
    axes.set_yticks(list(places), [row for row, _, _ in rows], fontsize=8)
    axes.set_xlabel("times the limit; a tick: the commit before", fontsize=9)
    return picture


def _draw_growth(plt: Any, measured: dict[str, dict[str, float]]) -> Any:
    figures = {int(size): values for size, values in measured.items()}
    known = set().union(*figures.values())
    panels = [(title, names) for title, names in _PANELS if known.issuperset(names)]
    picture, grid = plt.subplots(2, 4, figsize=(14, 6.4), layout="constrained")
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for axes, (title, names) in zip(grid.flat, panels, strict=False):
        axes.set_title(title, fontsize=10)
        _draw_panel(axes, names, figures)
    return picture


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
