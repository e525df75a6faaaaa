"""remember, forget, scrub, pin, judge."""

import json
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from memd.cli import daemon_call, output
from memd.cli.query import KINDS

# MERGED from memd.cli.remember:
# MERGED `memd remember`: keep this, as it is said.


def run_remember(  # noqa: PLR0913  # one parameter per option
    words: Annotated[
        list[str], typer.Argument(metavar="TEXT", help="What to remember, complete in itself.")
    ],
    *,
    title: Annotated[str | None, typer.Option(help="Else the beginning of the text.")] = None,
    kind: Annotated[str | None, typer.Option(help=f"note if left out. {KINDS}")] = None,
    topic_key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help="A slot such as build.command; a new value replaces the old."
        ),
    ] = None,
    project: Annotated[
        str | None,
        typer.Option(help="current (where you stand) if left out; global, or a name."),
    ] = None,
    expires_in: Annotated[
        str | None,
        typer.Option(metavar="SPAN", help="12h, 30d, 2w: not shown any more after that."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Keep something in memory."""
    kept = daemon_call.call(
        "memd/remember",
        text=" ".join(words),
        title=title,
        kind=kind,
        topic_key=topic_key,
        project=project,
        expires_in=expires_in,
        directory=daemon_call.here(),
    )
    if as_json:
        print(json.dumps(kept, ensure_ascii=False))
        return
    outcome = {
        "created": "remembered",
        "superseded": "remembered",
        "duplicate": "known already; now firmer",
        "revived": "revived",
    }
    replaced = "".join(f", replaces #{number}" for number in kept.get("superseded", ()))
    # As it stands in the vault: where it was put, and without what was redacted.
    (memory,) = daemon_call.call("memd/get", ids=[kept["id"]])["memories"]
    said = outcome.get(kept["outcome"], output.line(kept["outcome"]))
    print(f"#{kept['id']} {said} in {output.line(memory['project'])}{replaced}")
    print(f"    {output.line(memory['title'])}")
    if kept["candidates"]:
        print("\n".join(_open(kept["id"], kept["candidates"])))


def _open(number: int, candidates: list[dict[str, Any]]) -> list[str]:
    """Ask what the new memory is to those that are like it."""
    lines = ["  like it, and nothing says which holds:"]
    for one in candidates:
        lines += [
            f"    #{one['id']} {output.line(one['title'])}",
            f"      {output.line(one['finding'])}",
        ]
    first = candidates[0]["id"]
    judge = daemon_call.typed(f"judge {number} {first} supersedes --reason WHY")
    if candidates[0]["pinned_at"]:
        unpin = daemon_call.typed(f"pin {first} --off")
        return [*lines, f"  #{first} is pinned: {unpin} first, then {judge}"]
    return [*lines, f"  say what it is: {judge}"]


# MERGED from memd.cli.forget:
# MERGED `memd forget`: erase on purpose. Shows what would go, and asks.


_LONG_S = 3_600.0
_NAMED_MAX = 20


def run_forget(  # noqa: PLR0913, PLR0917  # what can be asked for
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="12 or #12.")
    ] = None,
    query: Annotated[
        str | None,
        typer.Option("--query", help="Every memory in which all of these words stand."),
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", help="All of it: the beginning of its id.")
    ] = None,
    project: Annotated[
        str | None,
        typer.Option(
            "--project",
            help="All of it, or only of it: a name or a path; else what fits is looked for in current, "
            "not in all.",
        ),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="Only what happened then or later.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", help="Only what happened then or before.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="For programs; without --yes only what would go.")
    ] = False,
) -> None:
    """Erase memories and the events that nothing else needs. There is no way back."""
    bounds = (query, since, until)
    where = ""
    if project is None and session is None and any(one is not None for one in bounds):
        project, where = "current", " in this project; --project all looks everywhere"
    meant = {
        "ids": daemon_call.numbers(ids) if ids else None,
        "query": query,
        "session": session,
        "project": None if project is None else daemon_call.place(project),
        "since": since,
        "until": until,
        "directory": daemon_call.here(),
    }
    token = (
        None if yes and not dry_run else _ask(meant, where, as_json=as_json, dry_run=dry_run)
    )
    gone = daemon_call.call("memd/forget", _LONG_S, **meant, token=token, dry_run=False)
    print(json.dumps(gone, ensure_ascii=False) if as_json else "\n".join(_lines(gone, where)))


def _ask(meant: dict[str, Any], where: str, *, as_json: bool, dry_run: bool) -> str:
    """Show what would go; the token of what was agreed to."""
    plan = daemon_call.call("memd/forget", _LONG_S, **meant, dry_run=True)
    print(json.dumps(plan, ensure_ascii=False) if as_json else "\n".join(_lines(plan, where)))
    if as_json or dry_run:
        raise typer.Exit
    if not (plan["summaries"] or plan["events"] or plan["sessions"]):
        raise typer.Exit
    if not sys.stdin.isatty():
        daemon_call.refuse("nothing was erased; say --yes to mean it")
    if not typer.confirm("Erase this for good?"):
        print("nothing was erased")
        raise typer.Exit(1)
    token: str = plan["token"]
    return token


def _lines(gone: dict[str, Any], where: str = "") -> Iterator[str]:
    verb = "would forget" if gone["is_dry_run"] else "forgot"
    yield from (f"{verb} {output.headline(summary)}" for summary in gone["summaries"])
    if (more := gone["count"] - len(gone["summaries"])) > 0:
        yield f"{verb} {more:,} more, {output.plural(gone['count'], 'memory')} in all"
    if gone["events"]:
        yield f"{verb} {output.plural(gone['events'], 'event')} that nothing else needs"
    yield from _some(f"{verb} all of the session “{output.line(t)}”" for t in gone["sessions"])
    if gone["kept_events"]:
        count = gone["kept_events"]
        said = "stays, for other memories come from it"
        said = said if count == 1 else "stay, for other memories come from them"
        yield f"{output.plural(count, 'event')} {said}"
    notes = {
        "revived": "shows again, for what hid it is gone",
        "also_in": "comes from the same events and stays",
        "unknown": "does not exist",
    }
    for name, said in notes.items():
        yield from _some(f"#{number} {said}" for number in gone[name])
    yield from _some(f"{path} is a backup and may still hold it" for path in gone["backups"])
    if not (gone["summaries"] or gone["events"] or gone["sessions"] or gone["unknown"]):
        yield f"nothing fits{where}"


def _some(lines: Iterator[str]) -> Iterator[str]:
    """The first few, and how many more there are."""
    every = list(lines)
    yield from every[:_NAMED_MAX]
    if len(every) > _NAMED_MAX:
        yield f"… and {len(every) - _NAMED_MAX:,} more such"


# MERGED from memd.cli.scrub:
# MERGED `memd scrub`: take out of the past what should never have been kept. Shows where it is, and asks.


_LONG_S_scrub = 24 * 3_600.0
_NOUNS = {"summaries": "memory", "log": "log line"}
"""What people call the rows of a table, where that is not its name."""


def run_scrub(
    pattern: Annotated[
        str | None, typer.Argument(help="A regular expression (Python's); - reads it.")
    ] = None,
    secrets: Annotated[
        bool,
        typer.Option("--secrets", help="What memd redacts today, in all that it kept before."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say where it is.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Replace a text, or all secrets, in everything that was kept. The text itself is never shown."""
    if pattern == "-":
        pattern = sys.stdin.readline().rstrip("\n")
    if pattern is not None and secrets:
        daemon_call.refuse("give a pattern or --secrets, not both")
    if pattern is None and not secrets:
        daemon_call.refuse("give a pattern, or --secrets")
    asked: dict[str, Any] = {"pattern": pattern, "secrets": secrets}
    if not yes or dry_run:
        _ask_scrub(asked, dry_run=dry_run)
    print(
        "\n".join(
            _lines_scrub(daemon_call.call("memd/scrub", _LONG_S_scrub, **asked, dry_run=False))
        )
    )


def _ask_scrub(asked: dict[str, Any], *, dry_run: bool) -> None:
    plan = daemon_call.call("memd/scrub", _LONG_S_scrub, **asked, dry_run=True)
    print("\n".join(_lines_scrub(plan)))
    if dry_run or not plan["rows"]:
        raise typer.Exit
    if not sys.stdin.isatty():
        daemon_call.refuse("nothing was changed; say --yes to mean it")
    if not typer.confirm("Replace all of this for good?"):
        print("nothing was changed")
        raise typer.Exit(1)


def _lines_scrub(done: dict[str, Any]) -> Iterator[str]:
    verb = "would rewrite" if done["is_dry_run"] else "rewrote"
    for where, count in done["rows"].items():
        told = f"{verb} {output.plural(count, _NOUNS.get(where, where.removesuffix('s')))}"
        # Only memories are called by their numbers.
        shown = done["ids"].get(where, ()) if where == "summaries" else ()
        ids = [f"#{number}" for number in shown] + (["…"] if count > len(shown) else [])
        yield f"{told}: {', '.join(ids)}" if shown else told
    for instead, count in done["found"].items():
        become = "became"
        if done["is_dry_run"]:
            become = "becomes" if count == 1 else "become"
        yield f"{output.plural(count, 'place')} {become} {output.line(instead)}"
    if not done["rows"]:
        yield "found nowhere"
    for where, count in done["stays"].items():
        yield f"stays in {count:,} of {where}: by that it is found; `memd forget` takes it"
    for path in done["backups"]:
        yield f"{path} is a backup and may still hold it"


# MERGED from memd.cli.pin:
# MERGED `memd pin`: this one matters, permanently.


def run_pin(
    number: Annotated[str, typer.Argument(metavar="ID", help="12 or #12.")],
    off: Annotated[bool, typer.Option("--off", help="Unpin it.")] = False,
) -> None:
    """Keep a memory on top: never superseded, always preferred."""
    memory = daemon_call.call("memd/pin", id=daemon_call.numbers([number])[0], pinned=not off)
    print(output.headline(memory))
    if (above := memory["superseded_by"]) and memory["pinned_at"]:
        undo = daemon_call.typed(f"judge {above} {memory['id']} --undo")
        print(f"  it stays hidden by #{above}; {undo} shows it")


# MERGED from memd.cli.judge:
# MERGED `memd judge`: which of two memories holds, or that both do.


_RELATION = (
    "supersedes: OTHER is hidden; duplicate: it is hidden and ID firmer; contradicts: both stay, marked;"
    " compatible, unrelated: both stay, and nobody asks again."
)


def run_judge(  # one parameter per option
    number: Annotated[str, typer.Argument(metavar="ID", help="12 or #12: what holds.")],
    other: Annotated[str, typer.Argument(metavar="OTHER", help="The other one.")],
    relation: Annotated[
        str | None, typer.Argument(metavar="RELATION", help=_RELATION, show_default=False)
    ] = None,
    *,
    reason: Annotated[
        str | None, typer.Option(help="Why; needed, but for --undo. `memd why` shows it.")
    ] = None,
    undo: Annotated[
        bool,
        typer.Option("--undo", help="Take back what holds of them, also what memd decided."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Say what one memory is to another, with a --reason, or take that back."""
    ids = daemon_call.numbers([number, other])
    if not undo and relation is None:
        daemon_call.refuse(
            "say what it is: supersedes, duplicate, contradicts, compatible or unrelated"
        )
    if undo and relation is not None:
        daemon_call.refuse(f"--undo takes back what holds; leave out {relation!r}")
    done = daemon_call.call(
        "memd/judge", id=ids[0], other=ids[1], relation=relation, reason=reason, undo=undo
    )
    print(json.dumps(done, ensure_ascii=False) if as_json else "\n".join(_lines_judge(done)))


def _lines_judge(done: dict[str, Any]) -> list[str]:
    pair = f"#{done['id']}", f"#{done['other']}"
    if done["outcome"] == "undone":
        lines = [f"undone: {output.line(done['was'])} between {pair[0]} and {pair[1]}"]
    else:
        known = " already" if done["outcome"] == "unchanged" else ""
        words = {
            "supersedes": "supersedes",
            "duplicate": "says the same as",
            "contradicts": "contradicts",
            "compatible": "holds beside",
            "unrelated": "has nothing to do with",
        }
        lines = [f"{pair[0]} {words[done['relation']]} {pair[1]}{known}"]
    stays = dict(done["stays"])
    lines += [
        f"  #{number} stays hidden, superseded by #{stays[number]}"
        if number in stays
        else f"  #{number} is hidden; `{daemon_call.typed(f'why {number}')}` shows it"
        for number in done["hidden"]
    ]
    return lines + [f"  #{number} shows again" for number in done["shown"]]
