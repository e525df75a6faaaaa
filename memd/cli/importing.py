"""The part of `memd import` that reads the memories of other programs, and says what became of them."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from memd.cli import door, show
from memd.errors import Unreachable

if TYPE_CHECKING:
    from memd.exchange.porter import Progress, Report, Waybill
    from memd.exchange.shelves import Shelf

Drawn = Callable[[], AbstractContextManager["Progress"]]
"""Draws how far the import is."""
_PATIENT_S = 300.0
"""A batch is answered once it can be found, and a learned model may have to read it first."""
_SHOWN_MAX = 20
_OUTCOMES = {
    "created": "new",
    "duplicate": "known already",
    "revised": "with another title, or other tags or files",
    "revived": "said again",
    "forgotten": "left out, for they were forgotten on purpose",
    "superseded": "older replaced",
}


@dataclass(frozen=True, slots=True)
class Source:
    """Another memory that can be read."""

    find: str
    """The function of exchange/shelves.py that finds its files."""
    place: str
    """Where it is by default, in words; empty: a path must be given."""
    noun: str
    tier: str = "agent"
    hint: str = ""
    """What to know about where new memories are kept, unless a project was named."""


SOURCES = {
    "knowledge-graph": Source(
        "knowledge_graph_files",
        "$MEMORY_FILE_PATH, Claude's configuration and the npm cache",
        "memory.jsonl",
    ),
    "claude-memory": Source(
        "claude_memory_files", "~/.claude/projects/*/memory", "memory file", "file"
    ),
    "claude-mem": Source("claude_mem_files", "~/.claude-mem/claude-mem.db", "database"),
    "markdown": Source(
        "markdown_files",
        "",
        "note",
        "file",
        "kept in the project of that folder; `--project global` shows them everywhere",
    ),
}
NAMES = ("claude-code", *SOURCES)
"""Everything that `memd import` reads; the first are transcripts (import_.py)."""


def run(
    name: str, paths: Sequence[Path], project: str | None, drawn: Drawn, *, dry_run: bool
) -> None:
    """Import from one of SOURCES. Exits 1 if something could not be read."""
    from memd.exchange import shelves

    source = SOURCES[name]
    if not paths and not source.place:
        door.refuse(f"say which folder: `memd import {name} PATH`")
    find: Callable[..., Shelf] = getattr(shelves, source.find)
    shelf = find([path.expanduser() for path in paths], os.environ)
    if not (shelf.cargoes or shelf.failed or shelf.tops):
        looked = ", ".join(map(str, paths)) or source.place
        print(f"no {source.noun} found in {looked}")
        return
    waybill = _waybill(name, project, dry_run=dry_run)
    try:
        with drawn() as progress:
            report = _bring(shelf, waybill, progress)
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here")
        raise
    print("\n".join(_lines(report, shelf, source)))
    if source.hint and project is None and report.outcomes["created"]:
        print(source.hint)
    if report.failed or report.broken:
        raise typer.Exit(1)


def _waybill(name: str, project: str | None, *, dry_run: bool) -> "Waybill":
    from memd.exchange.porter import Waybill

    where = None if project is None else door.place(project)
    if where == "current":
        where = door.here() or door.refuse("the directory where you stand is gone")
    return Waybill(f"import:{name}", SOURCES[name].tier, where, dry_run)


def _bring(shelf: "Shelf", waybill: "Waybill", progress: "Progress") -> "Report":
    from memd.exchange import porter

    try:
        known = door.call("memd/imports")["imports"]
    except Unreachable:
        if not waybill.is_dry_run:
            raise
        known = {}
    marks = Marks({key: (int(size), int(at)) for key, (size, at) in known.items()})
    return porter.bring(shelf, waybill, (_remember, _withdraw), marks, progress)


class Marks(dict[str, tuple[int, int]]):
    """What was read whole: key → (bytes, modification time in µs); told to the daemon as it grows."""

    def __setitem__(self, key: str, stamp: tuple[int, int]) -> None:
        """Mark a file, here and in the vault."""
        door.call("memd/imports/mark", path=key, size=stamp[0], modified_at=stamp[1])
        super().__setitem__(key, stamp)


def _remember(memories: list[dict[str, Any]]) -> Sequence[Mapping[str, Any]]:
    kept: Sequence[Mapping[str, Any]] = door.call(
        "memd/remember", _PATIENT_S, memories=memories
    )["remembered"]
    return kept


def _withdraw(path: str, staying: list[int]) -> int:
    gone = door.call("memd/imports/withdraw", _PATIENT_S, path=path, staying=staying)
    return len(gone["withdrawn"])


def _lines(report: "Report", shelf: "Shelf", source: Source) -> Iterator[str]:
    verb = "would read" if report.is_dry_run else "read"
    unchanged = f"; {len(report.unchanged):,} unchanged since the last import"
    yield (
        f"{verb} {show.plural(len(report.done), source.noun)}"
        f"{unchanged if report.unchanged else ''}"
    )
    if report.kinds:
        yield f"found: {show.counts(report.kinds)}"
    told = [
        f"{report.outcomes[key]:,} {said}"
        for key, said in _OUTCOMES.items()
        if report.outcomes[key]
    ]
    if told:
        yield f"memories: {'; '.join(told)}"
    if report.withdrawn:
        yield f"hidden: {show.plural(report.withdrawn, 'memory')} that the files do not say any more"
    if report.skipped:
        yield f"left out: {show.counts(report.skipped)}"
    yield from map(show.line, dict.fromkeys(shelf.notes))
    yield from _listed("gone since the last import", report.gone)
    if report.gone and not shelf.is_kept_tidy:
        yield "what was read from them stays; `memd forget` takes it away"
    yield from _listed("could not be read", report.broken)
    for path, why in report.failed.items():
        where = "" if why.startswith(path) else f"{show.line(path)}: "
        yield f"failed: {where}{show.line(why)}"


def _listed(label: str, paths: Sequence[str]) -> Iterator[str]:
    yield from (f"{label}: {show.line(path)}" for path in paths[:_SHOWN_MAX])
    if len(paths) > _SHOWN_MAX:
        yield f"{label}: {len(paths) - _SHOWN_MAX:,} more"
