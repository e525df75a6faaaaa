"""The commands that change memories: `memd remember`, `forget`, `scrub`, `edit`, `pin` and `undo`."""

import contextlib
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from typer import Argument, Option

from memd.cli import daemon_call, output
from memd.cli.terminal import (
    KINDS,
    DryRunOption,
    IdArgument,
    YesOption,
    confirm,
    print_result,
    waiting,
    wants_json,
)
from memd.errors import MemdError

_SCRUB_S = 24 * 3_600.0
"""Timeout in seconds; a scrub searches all text that was ever stored."""
STDIN = "-"
_STATEMENT_BYTES_MAX = 64 * 1024
"""Bytes of stdin that are remembered at most, as the daemon's limit."""
_LINES_MAX = 20
_ROW_NOUNS = {"summaries": "memory", "log": "log line", "titles": "session title"}
"""Nouns for rows of tables that are not called after them."""


# ── remember ─────────────────────────────────────────────────────────────────────────────────────


def run_remember(  # noqa: PLR0913  # one parameter per option
    words: list[str] | None = Argument(
        None, metavar="TEXT", help="One statement; - reads it from stdin."
    ),
    *,
    title: str | None = Option(None, help="Default: the beginning of the text."),
    kind: str | None = Option(None, help=f"Default: note. {KINDS}"),
    topic_key: str | None = Option(
        None, metavar="KEY", help="A slot for one value: build.command."
    ),
    where: list[str] | None = Option(None, metavar="PLACE", help="A path/ or command it is for."),
    project: str | None = Option(None, help="global, or a name. Default: this project."),
    expires_in: str | None = Option(None, metavar="DURATION", help="Hide it then: 12h, 30d, 2w."),
) -> None:
    """Store a memory."""
    stored = daemon_call.call(
        "memd/remember",
        text=_read_statement(words),
        title=title,
        kind=kind,
        topic_key=topic_key,
        where=where,
        project=project,
        expires_in=expires_in,
        directory=daemon_call.current_directory(),
    )
    print_result(stored, _format_remembered(stored))


def _read_statement(words: list[str] | None) -> str:
    """The text to remember: the words, or with `-` what stands in stdin; exit with a message without any."""
    if not words:
        daemon_call.fail("say what to remember: `memd remember TEXT`, or `… | memd remember -`")
    if words != [STDIN]:
        return " ".join(words)
    found = sys.stdin.buffer.read(_STATEMENT_BYTES_MAX + 1) if sys.stdin else b""
    if len(found) > _STATEMENT_BYTES_MAX:
        limit = _STATEMENT_BYTES_MAX // 1024
        daemon_call.fail(f"stdin is longer than {limit} KiB; keep what matters, or split it")
    try:
        text = found.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        daemon_call.fail("stdin is no text in UTF-8; nothing was remembered")
    if not text.strip():
        daemon_call.fail("stdin is empty; nothing was remembered")
    return text


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
    judge = daemon_call.format_command(f"judge {number} supersedes {first}")
    if candidates[0]["pinned_at"]:
        unpin = daemon_call.format_command(f"pin {first} --off")
        yield f"  #{first} is pinned: run {unpin} first, then {judge}"
    else:
        yield f"  to replace the first one: {judge}"


# ── forget ───────────────────────────────────────────────────────────────────────────────────────


def run_forget(  # noqa: PLR0913, PLR0917  # one parameter per option
    ids: list[str] | None = Argument(None, metavar="[ID]...", help="12 or #12."),
    query: str | None = Option(None, help='All that says these whole words, or a "phrase".'),
    session: str | None = Option(None, help="All of this session; the start of its id."),
    project: str | None = Option(None, help="All of, or only in: a name, a directory, or all."),
    since: str | None = Option(None, help="Only what happened then or later."),
    until: str | None = Option(None, help="Only what happened then or before."),
    dry_run: DryRunOption = False,
    yes: YesOption = False,
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
    # On one connection: an agent needs the token of its own dry run.
    with daemon_call.connection(daemon_call.LONG_S) as call:
        plan = call("memd/forget", **selection, dry_run=True)
        if dry_run or not yes or _is_nothing(plan):
            print_result(plan, _format_erasure(plan, hint))
            if wants_json() or dry_run or _is_nothing(plan):
                return
            confirm("Erase this permanently?", "nothing was erased")
        erased = call("memd/forget", **selection, token=plan["token"], dry_run=False)
    print_result(erased, _format_erasure(erased, hint))
    if erased.get("refused"):
        daemon_call.fail(erased["refused"])


def _is_nothing(report: dict[str, Any]) -> bool:
    """Return whether a selection contains nothing that can be erased."""
    names = ("ids", "event_ids", "sessions", "rows", "imported_files", "lines", "leftovers")
    return not any(report[name] for name in names)


def _format_erasure(report: dict[str, Any], hint: str = "") -> Iterator[str]:
    verb = "would forget" if report["is_dry_run"] else "forgot"
    yield from (f"{verb} {output.format_headline(memory)}" for memory in report["summaries"])
    if (more := report["count"] - len(report["summaries"])) > 0:
        yield f"{verb} {more:,} more, {output.plural(report['count'], 'memory')} in all"
    if report["events"]:
        yield f"{verb} {output.plural(report['events'], 'event')} that no other memory needs"
        excerpts = report["event_excerpts"]
        yield from _shorten_list(
            [
                f"  event {one['id']}, {one['tool'] or one['kind']}: {output.one_line(one['text'])}"
                for one in excerpts
            ]
        )
    sessions = [f"{verb} all of the session “{output.one_line(t)}”" for t in report["sessions"]]
    yield from _shorten_list(sessions)
    yield from _format_erased_rows(report, verb)
    yield from _format_staying(report)
    yield from _format_copies(report)
    if report["pending"]:
        yield (
            f"the last copy of it goes when {output.one_line(report['pending'])} ends, which reads the"
            " vault; memd waits for that, also after a restart"
        )
    if _is_nothing(report) and not report["unknown"]:
        yield f"nothing found{hint}"


def _format_erased_rows(report: dict[str, Any], verb: str) -> Iterator[str]:
    """Format what is erased with memories and events: copies of their words, and rows that depend on them."""
    for name, ids in report["rows"].items():
        yield f"{verb} the words in {output.plural(len(ids), _ROW_NOUNS.get(name, name[:-1]))}"
    if files := report["imported_files"]:
        noun = output.plural(len(files), "file")
        yield f"{verb} that {noun} with this name {'was' if len(files) == 1 else 'were'} imported"
    for name, count in report["lines"].items():
        yield f"{verb} {output.plural(count, 'line')} of the {name}"
    if attached := report["attached"]:
        go = "go" if report["is_dry_run"] else "went"
        yield f"with it {go} {sum(attached.values()):,} links, records of use and entries of the index"
    leftovers = [
        f"{verb} {output.one_line(path)}, which was never finished" for path in report["leftovers"]
    ]
    yield from _shorten_list(leftovers)


def _format_staying(report: dict[str, Any]) -> Iterator[str]:
    if count := report["kept_events"]:
        reason = "stays: other memories come from it"
        if count > 1:
            reason = "stay: other memories come from them"
        yield f"{output.plural(count, 'event')} {reason}"
    notes = {
        "revived": "is visible again: the memory that hid it is erased",
        "also_in": "comes from the same events and stays",
        "uncited": "stays, without an event that it comes from",
        "unknown": "does not exist",
    }
    for name, note in notes.items():
        yield from _shorten_list([f"#{number} {note}" for number in report[name]])
    for column, count in report["stays"].items():
        yield f"{count:,} in {column} stays: it is a name; use --project or --session"


def _format_copies(report: dict[str, Any]) -> Iterator[str]:
    copies = [
        f"{output.one_line(path)} is {'a backup' if path.endswith('.memd') else 'an export'}"
        " and may still contain it"
        for path in report["backups"]
    ]
    yield from _shorten_list(copies)


def _shorten_list(lines: list[str]) -> Iterator[str]:
    yield from lines[:_LINES_MAX]
    if len(lines) > _LINES_MAX:
        yield f"… and {len(lines) - _LINES_MAX:,} more"


# ── scrub ────────────────────────────────────────────────────────────────────────────────────────


def run_scrub(
    pattern: str | None = Argument(None, help="A Python pattern; - reads it from stdin."),
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
    scrub = partial(daemon_call.call, "memd/scrub", _SCRUB_S, pattern=pattern, secrets=secrets)
    if not yes or dry_run:
        with waiting("searching everything that is stored"):
            plan = scrub(dry_run=True)
        if dry_run or not wants_json():
            print_result(plan, _format_scrub(plan))
        if dry_run or not plan["rows"]:
            return
        confirm("Replace all of this permanently?", "nothing was changed")
    with waiting("rewriting everything that is stored"):
        done = scrub(dry_run=False)
    print_result(done, _format_scrub(done))


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
    yield from _format_copies(report)
    if report["pending"]:
        yield f"the last copy of it goes when {output.one_line(report['pending'])} ends"


# ── pin, judge ───────────────────────────────────────────────────────────────────────────────────


def run_pin(number: IdArgument, off: bool = Option(False, "--off", help="Unpin it.")) -> None:
    """Pin a memory: it is always preferred and never superseded."""
    ids = daemon_call.read_ids([number])
    memory = daemon_call.call("memd/pin", id=ids[0], pinned=not off)
    print_result(memory, _format_pinned(memory))


def _format_pinned(memory: dict[str, Any]) -> Iterator[str]:
    yield output.format_headline(memory)
    if (above := memory["superseded_by"]) and memory["pinned_at"]:
        undo = daemon_call.format_command(f"judge {above} {memory['id']} --undo")
        yield f"  it stays hidden by #{above}; to show it again: {undo}"


def run_edit(
    number: IdArgument,
    *,
    title: str | None = Option(None, metavar="TEXT", help="The new title."),
    text: str | None = Option(None, metavar="TEXT", help="The new text; - reads it from stdin."),
    reason: str | None = Option(None, metavar="TEXT", help="Why; `memd why` shows it."),
) -> None:
    """Correct the title or the text of a memory, here or in $EDITOR. The old version stays behind the new one."""
    wanted = daemon_call.read_ids([number])[0]
    if text == "-":
        text = sys.stdin.read()
    if title is None and text is None:
        done = edit_by_hand(wanted, reason)
    else:
        done = daemon_call.call("memd/edit", id=wanted, title=title, text=text, reason=reason)
    undo = daemon_call.format_command(f"judge {done['id']} {wanted} --undo")
    lines = (f"#{done['id']} says it now; #{wanted} stays behind it", f"  to take it back: {undo}")
    print_result(done, lines)


def edit_by_hand(number: int, reason: str | None) -> dict[str, Any]:
    """Store what the user leaves in an editor: the title in the first line, the text below. Answer of memd/edit."""
    if not sys.stdin.isatty():
        daemon_call.fail("give --title or --text; without a terminal there is no editor")
    found = daemon_call.call("memd/get", ids=[number])["memories"]
    if not found:
        daemon_call.fail(f"there is no memory #{number}")
    (memory,) = found
    if above := memory["superseded_by"]:
        daemon_call.fail(f"#{number} is hidden by #{above}: edit that one")
    before = f"{memory['title']}\n\n{memory['body']}\n"
    handle, name = tempfile.mkstemp(suffix=".md", prefix="memd-", text=True)
    file = Path(name)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(before)
    edited = before
    try:
        edited = _run_editor(file)
        if edited.strip() == before.strip():
            daemon_call.fail("nothing was changed in the editor")
        title, _, text = (part.strip() or None for part in edited.strip().partition("\n"))
        done: dict[str, Any] = daemon_call.call(
            "memd/edit", id=number, title=title, text=text, reason=reason
        )
    except MemdError:
        # Nobody shall write it twice because the daemon went away or refuses it.
        print(f"memd: what you wrote is in {file}", file=sys.stderr)
        raise
    except BaseException:
        _remove_edited(file)
        raise
    _remove_edited(file)
    return done


def _remove_edited(file: Path) -> None:
    with contextlib.suppress(OSError):  # an editor may have moved it away
        file.unlink()


def _run_editor(file: Path) -> str:
    """Let the user's editor change a file; what it leaves in it."""
    named = (os.environ.get("VISUAL", "").strip(), os.environ.get("EDITOR", "").strip())
    editor = next(filter(None, named), "vi")
    try:
        subprocess.run([*shlex.split(editor), str(file)], check=True)  # noqa: S603  # the user's own
        return file.read_text("utf-8")  # an editor may have put another file in its place
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        daemon_call.fail(
            f"{editor!r} could not edit ({error}); set EDITOR, or give --title or --text"
        )


# ── undo ─────────────────────────────────────────────────────────────────────────────────────────


def run_undo(
    what: str | None = Argument(
        None, metavar="[CHANGE]", help="Its name in --list. Default: the last."
    ),
    listed: bool = Option(False, "--list", help="List the last ten, and what undoing each does."),
    project: str = Option("current", help="Of this project; a name, a directory, or all."),
) -> None:
    """Undo the last change in this project: what you remembered, judged, edited, pinned, reviewed, enforced, renamed, merged.

    Also what memd replaced by itself. What was forgotten is gone for good; what an import brought goes with `memd forget`.
    """
    if listed:
        if what is not None:
            daemon_call.fail("--list only lists; leave out the change")
        found = daemon_call.call("memd/undo", listed=True, **daemon_call.find_place(project))
        print_result(found, _format_changes(found["changes"]))
        return
    daemon_call.require_user("undo")
    done = daemon_call.call("memd/undo", what=what, **daemon_call.find_place(project))
    one = done["undone"]
    lines = [f"undone: {output.one_line(one['did'])}", f"  {output.one_line(one['effect'])}"]
    print_result(done, lines)


def _format_changes(changes: list[dict[str, Any]]) -> Iterator[str]:
    for one in changes:
        who = f"{one['by']}: " if one["by"] else ""
        yield f"{one['name']}  {output.format_time(one['at'])}  {who}{output.one_line(one['did'])}"
        if one["title"]:
            yield f"    {output.one_line(one['title'])}"
        effect = one["effect"] or f"cannot be undone: {daemon_call.insert_vault(one['refusal'])}"
        yield f"    undo: {output.one_line(effect)}"
    if not changes:
        yield "nothing was changed here yet (--project all: in every project)"
    else:
        undo = daemon_call.format_command("undo")
        yield f"{undo} NAME takes one of them back"
