"""memd with the real Claude Code: what no test of memd's own can show, in about two minutes.

    scripts/end-to-end claude [--plugin] [--keep] [--claude PATH]

The client is the published one, the model a script on 127.0.0.1. A temporary home holds its settings
and memd's files; of yours only the client's own installation is written, once, into ~/.cache/memd
(npm and the network are needed for that). The story: without a daemon running, a failing test is
mended and a decision taken; a new session asks about both; that one is compacted and goes on. Then
the vault is looked into, the daemon is restarted, killed and restored under a session, and another Claude
Code writes the text of a turn. A line per check; exit 0 if all hold, 1 if not, 2 if it cannot run here.
"""

import json
import re
from pathlib import Path
from typing import Any

from e2e import checks, claude_code
from e2e.conversation import MEMORY_TOOLS, Story, ids
from e2e.rules import keeping_rules
from e2e.scripted_api import Say, Use, texts
from e2e.workspace import Over, waited_for
from e2e.writing import writing

ROOT = Path(__file__).resolve().parents[2]
FILES = {
    "ledger.py": '"""A ledger."""\n\n\ndef balance(entries):\n    """What is left."""\n'
    "    return sum(abs(entry) for entry in entries)\n",
    "test_ledger.py": "from ledger import balance\n\nfound = balance([100, -30])\n"
    'assert found == 70, f"balance is {found}, expected 70"\nprint("1 passed")\n',
}
CHECK = Use("Bash", {"command": "python3 -B test_ledger.py", "description": "Run the test"})
WRONG, RIGHT = "sum(abs(entry) for entry in entries)", "sum(entries)"
MENDED = (
    "Fixed: balance() summed absolute values, so a withdrawal was added instead of subtracted. "
    "It sums the signed entries now, and test_ledger.py passes."
)
DECIDED = (
    "We chose SQLite over Redis because the entries must survive a restart without a server to run."
)
QUESTION = "Why did test_ledger.py say that the balance is 130, expected 70?"
COMPACTED = "<analysis>Short.</analysis><summary>The user asked about an old failure.</summary>"
THINK_S = 0.3
"""No model answers at once. One that did would make the hooks beside the agent overtake each other."""


# ── The acts ─────────────────────────────────────────────────────────────────────────────────────


def installing(story: Story, *, as_plugin: bool) -> None:
    """Connect memd, twice: the second time must change nothing."""
    check, home = story.report.check, story.claude.home
    if as_plugin:
        plugin = str(ROOT / "memd" / "plugin")
        done = story.claude.command("plugin", "validate", plugin, "--strict")
        check("claude plugin validate --strict", not done.returncode, done)
    words = ("install", "claude-code", *(("--plugin",) if as_plugin else ()))
    done = story.memd.run(*words)
    if not check(f"memd {' '.join(words)}", not done.returncode, done):
        raise Over
    before = settings(home)
    done = story.memd.run(*words)
    is_same = not done.returncode and settings(home) == before
    check("once more, and nothing changes", is_same, done)


def uninstalling(story: Story) -> None:
    """Nothing of memd may be left in what the client reads."""
    done = story.memd.run("uninstall", "claude-code")
    story.report.check("memd uninstall claude-code", not done.returncode, done)
    left = {name: said for name, said in settings(story.claude.home).items() if "memd" in str(said)}
    story.report.check("no word of memd is left in the client's settings", not left, left)


def settings(home: Path) -> dict[str, Any]:
    """What the client reads at its start, as far as an installation may write it."""
    file = home / ".claude" / "settings.json"
    said = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    known = json.loads((home / ".claude.json").read_text(encoding="utf-8"))
    return {"settings.json": said, ".claude.json": known.get("mcpServers", {})}


def first_session(story: Story) -> str:
    """A failure is mended; then, with nothing but the hook to start a daemon, a decision is taken."""
    check, project = story.report.check, story.claude.project
    check("no daemon runs", not story.daemons(), story.daemons())
    ledger = str(project / "ledger.py")
    scene = story.ask(
        "The balance test fails. Find out why and fix it.",
        CHECK,
        Use("Read", {"file_path": ledger}),
        Use("Edit", {"file_path": ledger, "old_string": WRONG, "new_string": RIGHT}),
        CHECK,
        Say(MENDED),
    )
    said = [(is_error, text.split("\n<system-reminder>")[0]) for is_error, text in scene.results]
    outcome = [is_error for is_error, _ in said]
    check("the test fails, the file is edited, it passes", outcome == [True, *[False] * 3], said)
    story.report.note(f"servers: {scene.run.servers}")
    # Hook and proxy may both have started one; the second finds the vault taken, and leaves.
    is_one = waited_for(lambda: len(story.daemons()) == 1)
    check("one daemon runs now", is_one, claude_code.processes(story.claude.home))
    expected = {story.server + name for name in MEMORY_TOOLS}
    what = "mem_search, mem_timeline and mem_why are among the first request's tools"
    check(what, expected <= scene.tools, sorted(scene.tools))
    done = story.memd.run("stop")
    check("memd stop", not done.returncode and waited_for(lambda: not story.daemons()), done)

    journal = {"file_path": str(project / "STORAGE.md"), "content": f"{DECIDED}\n"}
    scene = story.ask(
        "Where should the ledger keep its entries? Decide, and write it down.",
        Use("Write", journal),
        Say(DECIDED),
        session=scene.run.session,
        bare=True,
    )
    check("  no MCP server is there", not scene.run.servers, scene.run.servers)
    check("the hook alone starts one daemon", len(story.daemons()) == 1, story.daemons())
    return scene.run.session


def second_session(story: Story) -> tuple[str, int]:
    """Another session gets the first one as context, and searches itself."""
    check = story.report.check
    if not check("everything is distilled and indexed", story.memd.settle(), story.memd.status()):
        raise Over
    fix, decision = story.find("balance", "--kind", "fix"), story.find("SQLite")
    check(f"a fix (#{fix}) and a choice (#{decision}) are remembered", fix and decision)
    scene = story.ask(
        QUESTION,
        Use(f"{story.server}mem_search", {"query": QUESTION}),
        Use(f"{story.server}mem_why", {"id": fix}),
        Say("It was mended in an earlier session: withdrawals had been added."),
    )
    start = [hook for hook in scene.run.hooks if hook.event == "SessionStart"]
    prompt = [hook for hook in scene.run.hooks if hook.event == "UserPromptSubmit"]
    for hook in (*start, *prompt):
        story.report.note(
            f"{hook.name} injects {ids(hook.context)} in {len(hook.context)} characters"
        )
        check(f"  {hook.name}: all of it reaches the model", hook.context in scene.first)
    known, brought = (
        set().union(*(ids(hook.context) for hook in hooks)) for hooks in (start, prompt)
    )
    check("the session begins with the choice", decision in known, known)
    check("the start or the prompt brings the fix", fix in known | brought, brought)
    check("nothing is shown twice", not known & brought, known & brought)
    found = [text for is_error, text in scene.results if not is_error]
    check("mem_search gives the model the fix", found and f'"id":{fix}' in found[0], scene.results)
    check(
        "mem_why gives it the events", len(found) > 1 and "test_ledger" in found[1], scene.results
    )
    return scene.run.session, fix


def compaction(story: Story, session: str) -> None:
    """What a compaction loses is there again, and nothing twice."""
    check = story.report.check
    lost = set().union(*(ids(text) for text in story.contexts(session)))
    story.ask("/compact", Say(COMPACTED), session=session)
    scene = story.ask(
        "Did we choose SQLite or Redis for the entries, and why?",
        Say("SQLite, as decided before."),
        session=session,
    )
    carried = [text for text in story.contexts(session) if text in scene.first]
    again = set().union(*(ids(text) for text in carried))
    check("the compacted session gets again what it lost", lost and lost <= again, (lost, again))
    twice = [number for number in again if sum(number in ids(text) for text in carried) > 1]
    check("the model sees nothing twice", not twice, twice)
    whole = [text for text in carried if scene.first.count(text) > 1]
    check("no context stands twice in a request", not whole, whole)


def moments(story: Story) -> None:
    """A note comes with its file, a fix with the failure that it mended before, a rule with the subagent."""
    check, ledger = story.report.check, str(story.claude.project / "ledger.py")
    held = {
        "whole cents": ("Balances are whole cents.", "--kind", "fact", "--where", "ledger.py"),
        "type hints": ("Every function has type hints.", "--kind", "instruction"),
        "pushes wait": ("All pushes wait.", "--kind", "instruction", "--where", "git push"),
    }
    # What the start tells already is not told at the file.
    config = Path(story.memd.paths.config_file)
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("[inject]\nsession_start = false\n", encoding="utf-8")
    for words in held.values():
        done = story.memd.run("remember", *words)
        check(f"memd remember {words[0]}", not done.returncode, done)
    check("memd restart", not (done := story.memd.run("restart")).returncode, done)
    asked = {"description": "Hints", "subagent_type": "general-purpose"}
    scene = story.ask(
        "Take the ledger apart again.",
        Use("Read", {"file_path": ledger}),
        Use("Edit", {"file_path": ledger, "old_string": RIGHT, "new_string": WRONG}),
        CHECK,
        Use(
            "Agent",
            {**asked, "prompt": "Look for functions in ledger.py.", "run_in_background": False},
        ),
        Say("There is one."),
        Say("It fails again, as before."),
    )
    told = {event: [hook.context for hook in scene.run.contexts(event)] for event in ("PostToolUse", "PostToolUseFailure", "SubagentStart")}  # fmt: skip
    requests = [list(texts(body)) for body in scene.requests]

    def reaches(event: str, words: str) -> bool:
        is_said = any(words in text for text in told[event])
        return is_said and any(words in text for request in requests for text in request)

    check("what was noted for a file comes when it is read", reaches("PostToolUse", "whole cents"), told)  # fmt: skip
    check("  once", len(told["PostToolUse"]) == 1, told)
    check("a failure comes with what fixed it before", reaches("PostToolUseFailure", "changed ledger.py"), told)  # fmt: skip
    check("a subagent gets the rules of its task", reaches("SubagentStart", "type hints"), told)
    check("  and no other", "pushes wait" not in str(told["SubagentStart"]), told)
    config.unlink()
    check("memd restart", not (done := story.memd.run("restart")).returncode, done)


def restarts(story: Story) -> None:
    """The daemon goes away in every way, in the middle of one session, and its tools stay."""
    check, lock = story.report.check, story.memd.paths.lock
    # Only the user does this, unless he lets his agents.
    config = Path(story.memd.paths.config_file)
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("[agents]\nuser_memories = true\n", encoding="utf-8")
    check("memd restart", not (done := story.memd.run("restart")).returncode, done)
    search = Use(f"{story.server}mem_search", {"query": QUESTION})
    daemon = f"$(sed -n 's/.*\"pid\": \\([0-9]*\\).*/\\1/p' {lock})"
    # Of this home only, and without the environment, which tells whose they are.
    proxies = "ps axeww -o pid=,args= | grep '[m]emd mcp' | grep -F \"HOME=$HOME\" | cut -c1-60"
    ways = (
        "memd restart",
        "memd stop && memd start",
        "memd backup && memd restore --yes",
        f"kill -9 {daemon}",
    )
    hang = f"pid={daemon}; kill -STOP $pid; (sleep 4; kill -9 $pid) > /dev/null 2>&1 &"
    turns: list[Use | Say] = [_shell(proxies)]
    for way in ways:
        turns += [_shell(way), search]
    turns += [_shell(hang), search, search, _shell("memd stop"), search, _shell("memd start")]
    scene = story.ask("Look after memd.", *turns, search, _shell(proxies), Say("It is well."))
    results = scene.results
    if not check("every call is answered", len(results) == len(turns) + 2, results):
        return
    for number, way in enumerate(ways):
        (is_failed, said), (is_error, found) = results[1 + 2 * number : 3 + 2 * number]
        is_well = not is_failed and not is_error and '"hits":[{' in found
        check(f"after `{way.split(' $')[0]}` mem_search answers", is_well, (said, found))
    in_flight, again, _, stopped, _, started, last = (text for _, text in results[-7:])
    is_told = "call again" in in_flight or '"hits":[{' in in_flight
    check("a call in flight is answered when the daemon is killed", is_told, in_flight)
    story.report.note(f"in flight, the model receives: {in_flight[:150]}")
    check("  and the same call once more succeeds", '"hits":[{' in again, again)
    check("after `memd stop` the model is told so", "memd was stopped" in stopped, stopped)
    check("  and after `memd start` mem_search answers", '"hits":[{' in started, started)
    check(
        "all of it through one `memd mcp`",
        last.split() == results[0][1].split(),
        (results[0], last),
    )
    check("everything is stored and distilled", story.memd.settle(), story.memd.status())


def _shell(command: str) -> Use:
    return Use("Bash", {"command": command, "description": "Look after memd"})


def health_check(story: Story) -> None:
    """What the client says of the server."""
    done = story.claude.command("mcp", "list")
    lines = [line for line in done.stdout.splitlines() if "memd" in line]
    story.report.check("claude mcp list: Connected", lines and "Connected" in lines[0], done)


# ── The stage ────────────────────────────────────────────────────────────────────────────────────


def a_line(story: Story, session: str, *, as_plugin: bool) -> None:
    """Install the mod, which asks memd what the session was told."""
    commands = (("marketplace", "add", str(ROOT / "memd")), ("install", "memd-line@memd"))
    done = [story.claude.command("plugin", *words) for words in commands]
    story.report.check("Claude Code takes the mod", not done[-1].returncode, done[-1])
    told = story.claude.ask("/memd-told", session=session).said
    is_told = bool(re.search(r"memd-line: #\d+ ", told))
    story.report.check("/memd-told lists what the session was told, without a model", is_told, told)
    story.claude.command("plugin", "uninstall", "memd-line@memd")
    if not as_plugin:
        story.claude.command("plugin", "marketplace", "remove", "memd")


def play(story: Story, *, as_plugin: bool) -> None:
    """The whole story."""
    report = story.report
    report.act("memd is connected to Claude Code")
    installing(story, as_plugin=as_plugin)
    report.act("first session: a fix and a decision, and no daemon at the start")
    one = first_session(story)
    report.act("second session: what is known comes unasked, and when asked")
    two, fix = second_session(story)
    report.act("second session, compacted")
    compaction(story, two)
    report.act("the client's own health check")
    health_check(story)
    report.act("what the vault says")
    checks.look(report, story.memd, story.claude.home, fix=fix)
    for session in (one, two):
        shown = [sorted(ids(text)) for text in story.contexts(session)]
        checks.injections(report, story.memd, session, shown)
    report.act("another session: a file, a failure, a subagent")
    moments(story)
    report.act("third session: the daemon goes away, and the tools stay")
    restarts(story)
    report.act("rules of the user's are kept")
    keeping_rules(story)
    report.act("the mod")
    a_line(story, two, as_plugin=as_plugin)
    report.act("another Claude Code writes the text of a turn")
    writing(story)
    report.act("the end")
    uninstalling(story)
    done = story.memd.run("stop")
    report.check("memd stop", not done.returncode, done)
    is_quiet = waited_for(lambda: not claude_code.processes(story.claude.home))
    report.check("no process is left", is_quiet, claude_code.processes(story.claude.home))
    checks.files(report, story.memd, story.claude.home)
