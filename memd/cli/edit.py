"""The commands that change memories: `memd remember`, `forget`, `scrub`, `pin` and `judge`."""

import sys
from collections.abc import Iterator
from typing import Any

from typer import Argument, Option

from memd.cli import daemon_call, output
from memd.cli.query import KINDS
from memd.cli.terminal import DryRunOption, IdArgument, JsonOption, YesOption, confirm, print_result

_SCRUB_S = 24 * 3_600.0
"""Timeout in seconds; a scrub searches all text that was ever stored."""
_LINES_MAX = 20
_ROW_NOUNS = {"summaries": "memory", "log": "log line"}
"""Nouns for rows of tables whose name is not one."""
_RELATION_HELP = (
    "supersedes: OTHER is hidden. duplicate: OTHER is hidden and ID gains confidence. contradicts:"
    " both stay, marked. compatible, unrelated: both stay, and memd does not ask again."
)
_RELATION_VERBS = {
    "supersedes": "supersedes",
    "duplicate": "says the same as",
    "contradicts": "contradicts",
    "compatible": "is compatible with",
    "unrelated": "is unrelated to",
}


# ── remember ─────────────────────────────────────────────────────────────────────────────────────


def run_remember(  # noqa: PLR0913  # one parameter per option
    words: list[str] = Argument(..., metavar="TEXT", help="One complete statement."),
    *,
    title: str | None = Option(None, help="Default: the beginning of the text."),
    kind: str | None = Option(None, help=f"Default: note. {KINDS}"),
    topic_key: str | None = Option(
        None, metavar="KEY", help="A slot such as build.command, for one value."
    ),
    project: str | None = Option(None, help="global, or a name. Default: this project."),
    expires_in: str | None = Option(None, metavar="DURATION", help="Hide it then: 12h, 30d, 2w."),
    as_json: JsonOption = False,
) -> None:
    """Store a memory."""
    stored = daemon_call.call(
        "memd/remember",
        text=" ".join(words),
        title=title,
        kind=kind,
        topic_key=topic_key,
        project=project,
        expires_in=expires_in,
        directory=daemon_call.current_directory(),
    )
    print_result(stored, _format_remembered(stored), as_json=as_json)


def _format_remembered(stored: dict[str, Any]) -> Iterator[str]:
    outcomes = {
        "created": "remembered",
        "superseded": "remembered",
        "duplicate": "already known; its confidence was raised",
        "revived": "revived",
    }
    outcome = outcomes.get(stored["outcome"], output.one_line(stored["outcome"]))
    replaced = "".join(f", replaces #{number}" for number in stored.get("superseded", ()))
    # Read it back: its project may differ, and secrets were redacted.
    (memory,) = daemon_call.call("memd/get", ids=[stored["id"]])["memories"]
    yield f"#{stored['id']} {outcome} in {output.one_line(memory['project'])}{replaced}"
    yield f"    {output.one_line(memory['title'])}"
    if stored["candidates"]:
        yield from _ask_for_judgment(stored["id"], stored["candidates"])


def _ask_for_judgment(number: int, candidates: list[dict[str, Any]]) -> Iterator[str]:
    """List similar memories, and the command that says how the first relates to the new one."""
    yield "  similar memories, of which memd cannot tell whether they still hold:"
    for candidate in candidates:
        yield f"    #{candidate['id']} {output.one_line(candidate['title'])}"
        yield f"      {output.one_line(candidate['finding'])}"
    first = candidates[0]["id"]
    judge = daemon_call.format_command(f"judge {number} {first} supersedes --reason WHY")
    if candidates[0]["pinned_at"]:
        unpin = daemon_call.format_command(f"pin {first} --off")
        yield f"  #{first} is pinned: run {unpin} first, then {judge}"
    else:
        yield f"  to replace the first one: {judge}"


# ── forget ───────────────────────────────────────────────────────────────────────────────────────


def run_forget(  # noqa: PLR0913, PLR0917  # one parameter per option
    ids: list[str] | None = Argument(None, metavar="[ID]...", help="12 or #12."),
    query: str | None = Option(None, help="Every memory with all of these words."),
    session: str | None = Option(None, help="All of this session; the start of its id."),
    project: str | None = Option(
        None, help="All of this project, or only in it: a name, a directory, or all."
    ),
    since: str | None = Option(None, help="Only what happened then or later."),
    until: str | None = Option(None, help="Only what happened then or before."),
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Erase memories, and the events that no other memory needs. This cannot be undone.

    --query, --since and --until look in the current project unless --project is given. With --json but
    without --yes this only shows what would be erased.
    """
    hint = ""
    if project is None and session is None and (query, since, until) != (None,) * 3:
        project, hint = "current", " in this project; --project all looks everywhere"
    selection = {
        "ids": daemon_call.read_ids(ids) if ids else None,
        "query": query,
        "session": session,
        "project": None if project is None else daemon_call.read_project(project),
        "since": since,
        "until": until,
        "directory": daemon_call.current_directory(),
    }
    token = None
    if dry_run or not yes:
        plan = daemon_call.call("memd/forget", daemon_call.LONG_S, **selection, dry_run=True)
        print_result(plan, _format_erasure(plan, hint), as_json=as_json)
        is_empty = not (plan["summaries"] or plan["events"] or plan["sessions"])
        if as_json or dry_run or is_empty:
            return
        confirm("Erase this permanently?", "nothing was erased")
        token = plan["token"]
    erased = daemon_call.call(
        "memd/forget", daemon_call.LONG_S, **selection, token=token, dry_run=False
    )
    print_result(erased, _format_erasure(erased, hint), as_json=as_json)


def _format_erasure(report: dict[str, Any], hint: str = "") -> Iterator[str]:
    verb = "would forget" if report["is_dry_run"] else "forgot"
    yield from (f"{verb} {output.format_headline(memory)}" for memory in report["summaries"])
    if (more := report["count"] - len(report["summaries"])) > 0:
        yield f"{verb} {more:,} more, {output.plural(report['count'], 'memory')} in all"
    if report["events"]:
        yield f"{verb} {output.plural(report['events'], 'event')} that no other memory needs"
    sessions = [f"{verb} all of the session “{output.one_line(t)}”" for t in report["sessions"]]
    yield from _shorten_list(sessions)
    if count := report["kept_events"]:
        reason = "stays: other memories come from it"
        if count > 1:
            reason = "stay: other memories come from them"
        yield f"{output.plural(count, 'event')} {reason}"
    notes = {
        "revived": "is visible again: the memory that hid it is erased",
        "also_in": "comes from the same events and stays",
        "unknown": "does not exist",
    }
    for name, note in notes.items():
        yield from _shorten_list([f"#{number} {note}" for number in report[name]])
    backups = [f"{path} is a backup and may still contain it" for path in report["backups"]]
    yield from _shorten_list(backups)
    if not any(report[name] for name in ("summaries", "events", "sessions", "unknown")):
        yield f"nothing found{hint}"


def _shorten_list(lines: list[str]) -> Iterator[str]:
    yield from lines[:_LINES_MAX]
    if len(lines) > _LINES_MAX:
        yield f"… and {len(lines) - _LINES_MAX:,} more"


# ── scrub ────────────────────────────────────────────────────────────────────────────────────────


def run_scrub(
    pattern: str | None = Argument(
        None, help="A Python regular expression; - reads it from stdin."
    ),
    secrets: bool = Option(False, "--secrets", help="What memd would redact today."),
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Replace a text, or all secrets, in everything that is stored. The text itself is never printed."""
    if pattern == "-":
        pattern = sys.stdin.readline().rstrip("\n")
    if pattern is not None and secrets:
        daemon_call.fail("give a pattern or --secrets, not both")
    if pattern is None and not secrets:
        daemon_call.fail("give a pattern, or --secrets")
    if not yes or dry_run:
        plan = daemon_call.call(
            "memd/scrub", _SCRUB_S, pattern=pattern, secrets=secrets, dry_run=True
        )
        print("\n".join(_format_scrub(plan)))
        if dry_run or not plan["rows"]:
            return
        confirm("Replace all of this permanently?", "nothing was changed")
    done = daemon_call.call("memd/scrub", _SCRUB_S, pattern=pattern, secrets=secrets, dry_run=False)
    print("\n".join(_format_scrub(done)))


def _format_scrub(report: dict[str, Any]) -> Iterator[str]:
    verb = "would rewrite" if report["is_dry_run"] else "rewrote"
    for table, count in report["rows"].items():
        line = f"{verb} {output.plural(count, _ROW_NOUNS.get(table, table.removesuffix('s')))}"
        numbers = report["ids"].get(table, ()) if table == "summaries" else ()
        ids = [f"#{number}" for number in numbers] + (["…"] if count > len(numbers) else [])
        yield f"{line}: {', '.join(ids)}" if numbers else line
    for replacement, count in report["found"].items():
        become = "become" if count > 1 else "becomes"
        become = become if report["is_dry_run"] else "became"
        yield f"{output.plural(count, 'place')} {become} {output.one_line(replacement)}"
    if not report["rows"]:
        yield "nothing found"
    for column, count in report["stays"].items():
        yield f"{count:,} in {column} cannot be rewritten, because they are keys; use `memd forget`"
    for path in report["backups"]:
        yield f"{path} is a backup and may still contain it"


# ── pin, judge ───────────────────────────────────────────────────────────────────────────────────


def run_pin(number: IdArgument, off: bool = Option(False, "--off", help="Unpin it.")) -> None:
    """Pin a memory: it is always preferred and never superseded."""
    ids = daemon_call.read_ids([number])
    memory = daemon_call.call("memd/pin", id=ids[0], pinned=not off)
    print(output.format_headline(memory))
    if (above := memory["superseded_by"]) and memory["pinned_at"]:
        undo = daemon_call.format_command(f"judge {above} {memory['id']} --undo")
        print(f"  it stays hidden by #{above}; to show it again: {undo}")


def run_judge(  # one parameter per option
    number: str = Argument(..., metavar="ID", help="The memory that holds: 12 or #12."),
    other: str = Argument(..., metavar="OTHER", help="The other memory."),
    relation: str | None = Argument(
        None, metavar="RELATION", help=_RELATION_HELP, show_default=False
    ),
    *,
    reason: str | None = Option(None, help="Required except with --undo; `memd why` shows it."),
    undo: bool = Option(False, "--undo", help="Undo what you or memd have decided."),
    as_json: JsonOption = False,
) -> None:
    """Say how one memory relates to another, with a --reason, or undo that."""
    ids = daemon_call.read_ids([number, other])
    if not undo and relation is None:
        daemon_call.fail(
            "give a relation: supersedes, duplicate, contradicts, compatible or unrelated"
        )
    if undo and relation is not None:
        daemon_call.fail(f"--undo takes no relation; leave out {relation!r}")
    done = daemon_call.call(
        "memd/judge", id=ids[0], other=ids[1], relation=relation, reason=reason, undo=undo
    )
    print_result(done, _format_judged(done), as_json=as_json)


def _format_judged(done: dict[str, Any]) -> Iterator[str]:
    number, other = f"#{done['id']}", f"#{done['other']}"
    if done["outcome"] == "undone":
        yield f"undone: {output.one_line(done['was'])} between {number} and {other}"
    else:
        already = " already" if done["outcome"] == "unchanged" else ""
        yield f"{number} {_RELATION_VERBS[done['relation']]} {other}{already}"
    still_hidden_by = dict(done["stays"])
    for hidden in done["hidden"]:
        if hidden in still_hidden_by:
            yield f"  #{hidden} stays hidden, superseded by #{still_hidden_by[hidden]}"
        else:
            why = daemon_call.format_command(f"why {hidden}")
            yield f"  #{hidden} is hidden; `{why}` shows it"
    yield from (f"  #{shown} is visible again" for shown in done["shown"])
