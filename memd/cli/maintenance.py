"""The commands for upkeep: `memd consolidate`, `reindex`, `vacuum`, `notes` and `watch`."""

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from memd.cli import daemon_call, output
from memd.cli.terminal import DryRunOption, YesOption, confirm, print_result, waiting, wants_json

_ROUNDS_MAX = 1_000
_STEP_S = 660.0
"""Seconds that one stretch of `notes --past` may take; a writer has 600 at most."""
_CHARACTERS_PER_TOKEN = 4
_SESSIONS_SHOWN = 10
"""Sessions that a plan lists."""
_RUNS_SHOWN = 20
_VERDICT_VERBS = {
    "supersedes": "would hide",
    "contradicts": "contradicts",
    "similar_to": "is similar to",
}

Report = dict[str, Any]
MemoriesOption = Annotated[
    bool, Option("--memories", help="Make the memories of sessions again by today's rules.")
]


# ── consolidate ──────────────────────────────────────────────────────────────────────────────────


def run_consolidate(
    dry_run: bool = Option(False, "--dry-run", help="Only show the pairs and why."),
    undo: str | None = Option(None, metavar="RUN", help="Undo this run: r7."),
    merge: bool = Option(False, "--merge", help="Make one memory of those that say more each."),
    confirm: bool = Option(False, "--confirm", help="Before each merge ask the writer."),
    runs: bool = Option(False, "--runs", help="List the latest runs that changed something."),
) -> None:
    """Hide older memories that newer ones repeat or correct, and mark contradictions.

    The daemon does this by itself every few minutes. Nothing is deleted: a memory that is shown again by
    --undo is never hidden by the same memory again.
    """
    if runs and (undo or dry_run):
        daemon_call.fail("--runs only lists; leave out --undo and --dry-run")
    found: Any
    if runs:
        found = daemon_call.call("memd/consolidate/runs", limit=_RUNS_SHOWN)["runs"]
        lines = _format_runs(found)
    elif undo:
        found = daemon_call.call("memd/consolidate/undo", what=undo, dry_run=dry_run)["report"]
        lines = _format_undone(found)
    elif merge:
        given = {"merge": True, "confirm": confirm, "dry_run": dry_run}
        found = daemon_call.call("memd/consolidate", _STEP_S, **given)["report"]
        lines = _format_merges(found)
    elif dry_run:
        found = daemon_call.call("memd/consolidate", dry_run=True)["report"]
        lines = _format_pairs(found)
    else:
        found = _run_all_rounds()
        lines = _format_rounds(found)
    print_result(found, lines)


def _run_all_rounds() -> list[Report]:
    """Consolidate until no memory is left to examine."""
    rounds: list[Report] = []
    while len(rounds) < _ROUNDS_MAX:
        with waiting("comparing memories"):
            rounds.append(daemon_call.call("memd/consolidate", dry_run=False)["report"])
        if not rounds[-1]["has_more"]:
            break
    return rounds


def _format_rounds(rounds: list[Report]) -> Iterator[str]:
    names = ("examined", "superseded", "contradicts", "similar")
    total = {name: sum(one[name] for one in rounds) for name in names}
    yield (
        f"examined {output.plural(total['examined'], 'memory')}: {total['superseded']:,} hidden by"
        f" newer ones, {output.plural(total['contradicts'], 'contradiction')},"
        f" {total['similar']:,} similar"
    )
    runs = [one["run"] for one in rounds if one["run"] is not None]
    if runs:
        undo = daemon_call.format_command(f"consolidate --undo r{runs[-1]}")
        label = "run" if len(runs) == 1 else "runs"
        yield f"{label} {', '.join(f'r{number}' for number in runs)}; to undo: `{undo}`"
    if waiting := rounds[-1]["waiting"]:
        yield f"{output.plural(waiting, 'memory')} not indexed yet; the next round examines them"


def _format_pairs(pairs: list[Report]) -> Iterator[str]:
    if not pairs:
        yield "nothing to do: no new memory repeats or corrects an older one"
    for pair in pairs:
        newer, older = f"#{pair['newer_id']}", f"#{pair['older_id']}"
        space = f" in {output.one_line(pair['space'])}" if pair["space"] else ""
        reason = (
            "the same words" if pair["cosine"] is None else f"cosine {pair['cosine']:.3f}{space}"
        )
        yield f"{newer} {_VERDICT_VERBS[pair['verdict']]} {older}  ({reason})"
        yield f"    because: {output.one_line(pair['finding'])}"
        yield f"    {newer}  {output.one_line(pair['newer'])}"
        yield f"    {older}  {output.one_line(pair['older'])}"


def _format_merges(report: Report) -> Iterator[str]:
    would = "would merge" if report["is_dry_run"] else "merged"
    for one in report["merges"]:
        ids = ", ".join(f"#{number}" for number in one["ids"])
        into = f" into #{one['observation']}" if one["observation"] else ""
        yield f"left {ids}: {one['refused']}" if one["refused"] else f"{would} {ids}{into}"
        yield f"    {output.one_line(one['title'])}"
    if not report["merges"]:
        yield "nothing to merge"
    if report["run"] is not None:
        undo = daemon_call.format_command(f"undo r{report['run']}")
        yield f"to undo: `{undo}`"


def _format_undone(report: Report) -> Iterator[str]:
    verb = "would be" if report["is_dry_run"] else "is"
    for newer, older in report["shown"]:
        yield f"#{older} {verb} visible again beside #{newer}"
    for newer, older in report["compatible"]:
        yield f"#{newer} {verb} compatible with #{older}: both hold"
    if not report["is_dry_run"]:
        yield "later rounds leave these pairs alone"


def _format_runs(runs: list[Report]) -> Iterator[str]:
    if not runs:
        yield "no run has changed anything yet"
    for run in runs:
        undone = f"  (undone {output.format_time(run['undone_at'])})" if run["undone_at"] else ""
        yield (
            f"r{run['id']}  {output.format_time(run['at'])}  examined {run['examined']:,},"
            f" {run['superseded']:,} hidden, {output.plural(run['contradicts'], 'contradiction')},"
            f" {run['similar']:,} similar{undone}"
        )


_MARKS = {"created": "+", "revised": "~", "deleted": "-", "kept": "="}


# ── reindex ──────────────────────────────────────────────────────────────────────────────────────


def run_reindex(
    embeddings: bool = Option(False, "--embeddings", help="Only recompute the model's vectors."),
    *,
    memories: MemoriesOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Rebuild the full-text index and the vectors from the memories. Always safe.

    The vectors of an embedding model follow in the background; `memd status` shows the progress.

    --memories distils the stored events of all sessions again. A memory that says the same stays the same one. What you
    pinned, judged, remembered or forgot stays so. An upgrade does this once by itself. --dry-run shows what would change.
    """
    started = time.monotonic()
    if dry_run and not memories:
        daemon_call.fail("--dry-run: say what would be done with --memories")
    if memories:
        if embeddings:
            daemon_call.fail("choose one of --embeddings and --memories")
        arguments = {"memories": True, "dry_run": dry_run}
        with waiting("distilling all sessions again"):
            report = daemon_call.call("memd/reindex", daemon_call.LONG_S, **arguments)["report"]
        print_result(report, _format_redistilled(report))
        return
    if embeddings:
        begun = daemon_call.call("memd/reindex", embeddings=True)["report"]
        amount = output.plural(begun["missing"], "memory")
        line = f"{amount} to read anew for {begun['space']}; `memd status` shows the progress"
        print_result(begun, [line])
        return
    with waiting("rebuilding the index"):
        daemon_call.call("memd/reindex", daemon_call.LONG_S)
    count = daemon_call.call("memd/status")["summaries"]["count"]
    seconds = round(time.monotonic() - started, 1)
    line = f"done in {seconds} s: {output.plural(count, 'memory')}"
    print_result({"memories": count, "took_s": seconds}, [line])


def _format_redistilled(report: Report) -> Iterator[str]:
    verb = "would be" if report["is_dry_run"] else "were"
    counts = ", ".join(f"{report[name]:,} {name}" for name in ("created", "revised", "deleted"))
    yield f"memories that {verb} changed: {counts}"
    if report["kept"]:
        count = output.plural(report["kept"], "memory")
        yield f"kept, though today's rules no longer say it: {count}"
    for one in report["changes"]:
        yield _format_change(one, is_dry_run=report["is_dry_run"])
    left_out = sum(report[name] for name in _MARKS) - len(report["changes"])
    if left_out > 0:
        yield f"and {left_out:,} more"


def _format_change(one: Report, *, is_dry_run: bool) -> str:
    change, title = one["change"], output.one_line(one["title"])
    number = "" if change == "created" and is_dry_run else f" #{one['id']}"
    was = output.one_line(one["was"])
    if change == "kept":
        title += f"  ({was})"
    elif change == "revised" and was != title:
        title = f"{was} → {title}"
    return f"{_MARKS[change]}{number} {one['kind']}  {title}"


# ── vacuum ───────────────────────────────────────────────────────────────────────────────────────


def run_vacuum(dry_run: DryRunOption = False) -> None:
    """Shorten old events, drop the vectors of models that are not used any more, shrink the vault.

    `retention` in config.toml sets what is old. Only memories that expired long ago are deleted.

    Searches continue meanwhile; hooks spool new events until the file is written.
    """
    with waiting("shrinking the vault"):
        report = daemon_call.call("memd/vacuum", daemon_call.LONG_S, dry_run=dry_run)["report"]
    print_result(report, _format_vacuum(report))


def _format_vacuum(report: Report) -> Iterator[str]:
    yield from _format_retention(report["retention"])
    verb = "would drop" if report["is_dry_run"] else "dropped"
    for space in report["dropped"]:
        count, size = (
            output.plural(space["vectors"], "vector"),
            output.format_size(space["bytes"]),
        )
        yield f"{verb} {output.one_line(space['space'])}: {count}, {size}"
    if not report["dropped"]:
        yield "no unused vectors"
    if report["note"]:
        yield output.one_line(report["note"])
    before = output.format_size(report["before"])
    if report["is_dry_run"]:
        dropped = sum(space["bytes"] for space in report["dropped"])
        size = report["free"] + dropped + report["retention"]["bytes"]
        yield f"would free about {output.format_size(size)} of {before}"
    else:
        freed = output.format_size(max(0, report["before"] - report["after"]))
        yield f"freed {freed}: {before} → {output.format_size(report['after'])}"


def _format_retention(retention: Report) -> Iterator[str]:
    would = "would " if retention["is_dry_run"] else ""
    if retention["compacted"]:
        events = output.plural(retention["compacted"], "event")
        size = output.format_size(retention["bytes"])
        verb = "shorten" if would else "shortened"
        yield f"{would}{verb} {events} older than {retention['days']} days to what is cited: {size}"
    if retention["expired"]:
        memories = output.plural(retention["expired"], "memory")
        yield f"{would}{'drop' if would else 'dropped'} {memories} that expired long ago"
    if retention["archived"]:
        memories = output.plural(retention["archived"], "memory")
        yield f"{would}{'hide' if would else 'hid'} {memories} that no answer has ever returned"
    if not (retention["compacted"] or retention["expired"] or retention["archived"]):
        yield "no old events to shorten"


# ── notes ────────────────────────────────────────────────────────────────────────────────────────


def run_notes(
    past: bool = Option(False, "--past", help="Read past sessions; tells first what is sent."),
    project: str = Option("current", help="Of this project: a name, a directory, current or all."),
    calls: int = Option(0, min=0, metavar="N", help="Stop after N calls; 0: read all."),
    again: bool = Option(False, "--again", help="Read again what a useless answer left unread."),
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Note what past sessions say that will hold, with the writer of config.toml.

    The model reads them stretch by stretch; each note is proved by the session's record, as those that agents make are.
    Interrupt it whenever you like: the same command goes on where it was.
    """
    if not past:
        daemon_call.fail("say `memd notes --past`")
    where: dict[str, Any] = {"project": daemon_call.read_project(project), "directory": daemon_call.current_directory()}  # fmt: skip
    plan = daemon_call.call("memd/notes/past", again=again, **where)["plan"]
    if dry_run or not plan["calls"]:
        print_result(plan, _format_reading_plan(plan, calls))
        return
    if not wants_json():
        print("\n".join(_format_reading_plan(plan, calls)))
    if plan["obstacle"]:
        daemon_call.fail(plan["obstacle"])
    if not yes:
        confirm("Send this?", "nothing was sent")
    steps = []
    try:
        for step in _read_past_sessions(where, calls or plan["calls"], again=again):
            steps.append(step)
            if not wants_json():
                print("\n".join(_format_step(step)))
    except KeyboardInterrupt:
        print("interrupted; the same command goes on here")
        raise
    finally:
        if steps:
            print_result({"steps": steps}, _format_total(steps))


def _read_past_sessions(
    where: dict[str, Any], calls: int, *, again: bool
) -> Iterator[dict[str, Any]]:
    for number in range(calls):
        with waiting("the model reads"):
            answer = daemon_call.call(
                "memd/notes/past", _STEP_S, dry_run=False, again=again and number == 0, **where
            )
        if answer["step"] is None:
            return
        yield answer["step"]


def _format_reading_plan(plan: dict[str, Any], calls: int) -> Iterator[str]:
    if not plan["calls"]:
        yield "nothing to read: every past session was read, or may not be sent"
    else:
        tokens = plan["characters"] // _CHARACTERS_PER_TOKEN
        yield (
            f"{output.plural(plan['sessions'], 'past session')}: {output.plural(plan['calls'], 'call')} of"
            f" {output.one_line(plan['model'])}, {plan['characters']:,} characters (some {tokens:,} tokens) to it"
        )
        yield "sent is what you and the agent said in these, without what is private or switched off; the price is the model's"
        if str(plan["model"]).startswith("command/"):
            yield "what the program adds to each call comes on top (`claude -p`: some 12,000 tokens)"
        for key, at, title, count in plan["listed"][:_SESSIONS_SHOWN]:
            name = output.one_line(title or key[:12])
            yield f"    {output.format_date(at)}  {name}: {output.plural(count, 'call')}"
        if (more := plan["sessions"] - _SESSIONS_SHOWN) > 0:
            yield f"    and {output.plural(more, 'session')} more"
        if calls and calls < plan["calls"]:
            yield f"after {output.plural(calls, 'call')} it stops"
    if plan["failed"]:
        yield f"{output.plural(plan['failed'], 'part')} of sessions had a useless answer: `--again` reads on from there"


def _format_step(step: dict[str, Any]) -> Iterator[str]:
    counts = output.format_counts(step["outcomes"]) if step["outcomes"] else "nothing to note"
    proved = f", {step['proved']:,} in your words" if step["proved"] else ""
    yield f"{output.one_line(step['session'])[:12]}: {counts}{proved}; {step['left']:,} left"
    yield from (f"    left out: {output.one_line(problem)}" for problem in step["problems"])


def _format_total(steps: list[dict[str, Any]]) -> Iterator[str]:
    total: Counter[str] = Counter()
    for step in steps:
        total.update(step["outcomes"])
    yield f"{output.plural(len(steps), 'call')}: {output.format_counts(total) if total else 'nothing noted'}"


# ── watch ────────────────────────────────────────────────────────────────────────────────────────


def run_watch(
    folder: Path | None = Argument(None, metavar="[DIR]", help="A folder with notes."),
    listed: bool = Option(False, "--list", help="List the folders that are followed."),
    remove: bool = Option(False, "--remove", help="Follow DIR no more; what was read stays."),
    headings: bool = Option(False, "--headings", help="Make a memory of each section."),
) -> None:
    """Follow the notes and plain texts in a folder: what is new, changed or deleted there, as it happens.

    They belong to the project of the folder. Hidden files and what .gitignore names are left out, secrets are redacted.
    What a note no longer says is retired, not erased, and holds again if the note says it again.
    """
    if folder is None and remove:
        daemon_call.fail("name the folder that is to be followed no more")
    path = None if listed or folder is None else str(folder.expanduser().absolute())
    if path is not None:
        daemon_call.require_user("watch")
    done = daemon_call.call("memd/watch", folder=path, remove=remove, headings=headings)
    print_result(done, _format_watched(done["watched"]))


def _format_watched(watched: list[Report]) -> Iterator[str]:
    for one in watched:
        split = ", a memory for each section" if one["headings"] else ""
        where = f"{output.one_line(one['path'])} (project {output.one_line(one['project'])})"
        yield f"{where}: {output.plural(one['files'], 'note')}{split}"
    if not watched:
        yield f"no folder is followed; {daemon_call.format_command('watch')} DIR follows the notes in one"
