"""The act in which another Claude Code writes the text of a turn, and leaves no trace of its own.

The writer is the same client in the same home, so memd's hooks and tools are installed for it too.
"""

import json
from pathlib import Path
from typing import Any

from e2e import checks, claude_code
from e2e.conversation import Story
from e2e.scripted_api import Say, Use, texts
from e2e.workspace import Over, waited_for

TITLE = "balance says in its docstring that withdrawals are negative"
DOCUMENTED = (
    "The docstring of balance() says now that withdrawals are negative entries, because nobody could tell"
    " from its name."
)
GOOD = json.dumps({"title": TITLE, "facts": ["Nobody could tell from the name of balance()."]})
INVENTED = json.dumps({"title": TITLE, "facts": ["The change is in storage_engine.py."]})
DAILY = 2
WRITE_S = 120.0
_COUNTS = "SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM sessions)"


def writing(story: Story) -> None:
    """A turn happens; then the writer is switched on, invents, is told so, and writes."""
    check, memd, home = story.report.check, story.memd, story.claude.home
    ledger = str(story.claude.project / "ledger.py")
    edit = {"file_path": ledger, "old_string": '"""What is left."""', "new_string": _DOCSTRING}
    story.ask(
        "Say in its docstring that withdrawals are negative.",
        Use("Read", {"file_path": ledger}),
        Use("Edit", edit),
        Say(DOCUMENTED),
    )
    if not check("everything is distilled and indexed", memd.settle(), memd.status()):
        raise Over
    before = checks.rows(memd, _COUNTS)
    asked = len(story.api.requests)
    story.api.play(Say(INVENTED), Say(f"Here you are:\n```json\n{GOOD}\n```"))
    words = [str(story.claude.program), "-p", "--model", claude_code.MODEL]
    _restart(story, words)
    is_written = waited_for(lambda: _writer(story).get("written") == 1, WRITE_S)
    check("`claude -p` writes the text of a turn", is_written, _writer(story))
    writer, requests = _writer(story), story.api.requests[asked:]
    _look_at_requests(story, requests)
    cost = writer.get("today", {})
    is_counted = (cost.get("calls"), cost.get("failed")) == (DAILY, 0) and cost.get("ms")
    check("memd status tells what it has cost", is_counted, writer)
    story.report.note(f"it has cost {cost}, {writer.get('left_today')} replies are left today")
    number = story.find("docstring", "withdrawals")
    why = memd.json_of("why", str(number)) or {}
    said = json.dumps(why)
    check("the memory has its title", TITLE in said, said)
    check("and says who wrote it", "written by command/claude" in said, said)
    after = checks.rows(memd, _COUNTS)
    check("its session left no event and no session", before == after, (before, after))
    _import(story, home, before)
    _missing(story)


_DOCSTRING = '"""What is left; withdrawals are negative."""'


def _look_at_requests(story: Story, requests: list[dict[str, Any]]) -> None:
    check = story.report.check
    if not check(f"in {DAILY} requests", len(requests) == DAILY, len(requests)):
        return
    told = ["\n".join(texts(body)) for body in requests]
    check("the first carries the record", "negative entries" in told[0], told[0])
    check("what it invents is refused, and it is told so", "storage_engine.py" in told[1], told[1])
    whole = json.dumps(requests)
    known = [word for word in ("mem_search", "mem_remember", "recalled-memory") if word in whole]
    check("it has none of memd's tools, and sees no memory", not known, known)


def _import(story: Story, home: Path, before: list[tuple[Any, ...]]) -> None:
    """Its transcripts lie among the others, and an import leaves them out."""
    check, memd = story.report.check, story.memd
    places = home / ".claude" / "projects"
    own = [path.name for path in places.iterdir() if path.name.endswith("memd-writer-default")]
    check("the client keeps its transcripts", own, sorted(path.name for path in places.iterdir()))
    done = memd.run("import", "claude-code", str(places))
    after = checks.rows(memd, _COUNTS)
    is_same = not done.returncode and [row[1] for row in before] == [row[1] for row in after]
    check("importing them adds no session", is_same, (before, after, done))
    reasons = memd.status().get("books", {}).get("reasons", {}).get("filtered", {})
    check("and says why", reasons.get("a session of memd's own writer"), reasons)


def _missing(story: Story) -> None:
    """A program that is not there harms nothing, and is named."""
    check, memd = story.report.check, story.memd
    _restart(story, ["no-such-writer"])
    is_told = waited_for(lambda: "no-such-writer" in str(_writer(story).get("why")))
    check("a writer that is not there is named by memd status", is_told, _writer(story))
    check("and by memd doctor", "no-such-writer" in memd.run("doctor").stdout, memd.run("doctor"))
    check("memd is healthy without it", memd.status().get("health") == "healthy", memd.status())


def _restart(story: Story, command: list[str]) -> None:
    file = Path(story.memd.paths.config_file)
    file.parent.mkdir(parents=True, exist_ok=True)
    passed = ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", *claude_code.SWITCHES_OFF]
    lines = (
        "[distill]",
        'writer = "command"',
        f"writer_command = {json.dumps(command)}",
        f"writer_environment = {json.dumps(passed)}",
        "writer_s = 120",
        f"writer_daily = {DAILY}",
    )
    file.write_text("\n".join(lines), encoding="utf-8")
    done = story.memd.run("restart")
    if not story.report.check(
        f"memd restart, with {Path(command[0]).name}", not done.returncode, done
    ):
        raise Over


def _writer(story: Story) -> dict[str, Any]:
    """What the writer says of itself."""
    rooms = story.memd.status().get("rooms", ())
    return next((dict(room) for room in rooms if room["name"] == "rewriter"), {})
