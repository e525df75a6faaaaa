"""What must be true of memd's vault, log and files once the story is over.

The events are read from the file itself: no command lists them. Not here: what happened.
"""

import contextlib
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from e2e.workspace import Memd, Report

CALLS = {
    ("PostToolUseFailure", "Bash"): 1,
    ("PostToolUse", "Read"): 1,
    ("PostToolUse", "Edit"): 1,
    ("PostToolUse", "Bash"): 1,
    ("PostToolUse", "Write"): 1,
}
"""What the story's tools are; memd's own are not remembered as events of the work."""
ONCE = {"UserPromptSubmit": 4, "Stop": 4, "PostCompact": 1}
"""How often each happens. `/compact` is no prompt."""
HOOK_ERROR = re.compile(r'"type":"(hook_(?!blocking_error")\w*(?:error|timeout)\w*)"')
"""A hook in the background is `hook_cancelled` if the client leaves first: that is no error, nor is
one that has a turn go on, `hook_blocking_error`."""
BAD_LEVELS = ("error", "critical")
LINES = 8
LINE_CHARACTERS = 600


def look(report: Report, memd: Memd, home: Path, *, fix: int) -> None:
    """While the daemon runs: its health, its ledger, its events, its memories."""
    check = report.check
    check("everything is distilled and indexed", memd.settle(), memd.status())
    status = memd.status()
    check("memd status: healthy", status.get("health") == "healthy", status.get("reasons"))
    check("the books balance", status["books"]["balanced"], status["books"])
    check("nothing was refused", not status["books"]["refused"], status["books"]["reasons"])
    check("the spool is empty", not status["spool"]["bytes"], status["spool"])
    report.note(f"ledger: {json.dumps(status['books'])}")
    _events(report, memd)
    _memories(report, memd, fix)
    _import(report, memd, home)


def _events(report: Report, memd: Memd) -> None:
    events = rows(memd, "SELECT name, tool FROM events")
    calls = Counter((name, tool) for name, tool in events if tool and not tool.startswith("mcp__"))
    report.check("each tool use is there once", calls == CALLS, dict(calls))
    names = Counter(name for name, tool in events if not tool)
    found = {name: names[name] for name in ONCE}
    report.check("each prompt, stop and compaction is there once", found == ONCE, found)
    report.note(f"events: {', '.join(f'{name} {count}' for name, count in sorted(names.items()))}")


def _memories(report: Report, memd: Memd, fix: int) -> None:
    why = memd.json_of("why", str(fix)) or {}
    edges = {
        (edge["type"], edge["from_kind"], edge["to_kind"])
        for edge in why.get("edges", ())
        if {edge["from_kind"], edge["to_kind"]} == {"summary"}
    }
    is_linked = any(kind in ("causes", "derives_from") for kind, _, _ in edges)
    report.check("the fix is linked to the failure that it mends", is_linked, why.get("edges"))
    report.check("memd why names its events", len(why.get("sources", ())) > 0, why)
    answer = memd.json_of("search", "SQLite", "Redis") or {"hits": []}
    bodies = [hit["title"] + " " + hit["body"] for hit in answer["hits"]]
    is_kept = any("survive a restart" in body for body in bodies)
    report.check("the choice is remembered with its reason", is_kept, bodies)
    kinds = Counter(kind for (kind,) in rows(memd, "SELECT kind FROM summaries"))
    report.note(f"summaries: {', '.join(f'{kind} {n}' for kind, n in sorted(kinds.items()))}")


def _import(report: Report, memd: Memd, home: Path) -> None:
    """The transcripts of the same sessions must converge on the same rows."""
    wanted = "SELECT name, tool FROM events WHERE tool IS NOT NULL OR name IN ('UserPromptSubmit')"
    before = Counter(rows(memd, wanted))
    done = memd.run("import", "claude-code", str(home / ".claude" / "projects"))
    added = Counter(rows(memd, wanted)) - before
    is_same = not done.returncode and not added
    report.check("importing the transcripts adds no tool use and no prompt", is_same, added or done)


def injections(report: Report, memd: Memd, session: str, shown: Sequence[Sequence[int]]) -> None:
    """`memd injected` must tell what the hooks printed."""
    found = memd.json_of("injected", session)
    listed = sorted(entry["id"] for entry in found["injections"]) if found else None
    printed = sorted(number for moment in shown for number in moment)
    what = f"memd injected {session[:8]} tells what was shown: {printed}"
    report.check(what, listed == printed, found or memd.run("injected", session))


def files(report: Report, memd: Memd, home: Path) -> None:
    """Once nothing runs: the log and the client's transcripts hold no error, the vault is whole."""
    log = Path(memd.paths.log)
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    bad = [line for line in lines if _is_bad(line)]
    report.check(f"memd's log of {len(lines)} lines tells no error", lines and not bad, bad)
    found = [
        f"{path.name}: {found[1]}"
        for path in sorted((home / ".claude" / "projects").rglob("*.jsonl"))
        for found in HOOK_ERROR.finditer(path.read_text(encoding="utf-8"))
    ]
    report.check("the transcripts tell no hook error", not found, found)
    whole = rows(memd, "PRAGMA integrity_check")
    report.check("the vault is whole", whole == [("ok",)], whole)


def tail(log: Path) -> list[str]:
    """The last lines of a log, each cut to a readable length; none if there is no log."""
    if not log.exists():
        return []
    return [
        line[:LINE_CHARACTERS] for line in log.read_text(encoding="utf-8").splitlines()[-LINES:]
    ]


def _is_bad(line: str) -> bool:
    try:
        return str(json.loads(line).get("level")) in BAD_LEVELS
    except (ValueError, AttributeError):
        return "Traceback" in line or "rror" in line


def rows(memd: Memd, sql: str) -> list[tuple[str, ...]]:
    """What a query finds in the vault."""
    with contextlib.closing(sqlite3.connect(f"file:{memd.paths.database}?mode=ro", uri=True)) as db:
        return db.execute(sql).fetchall()
