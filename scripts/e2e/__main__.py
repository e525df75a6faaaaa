"""memd with the real Claude Code: what no test of memd's own can show, in about two minutes.

    scripts/end-to-end claude [--plugin] [--keep] [--claude PATH]

The client is the published one, the model a script on 127.0.0.1. A temporary home holds its settings
and memd's files; of yours only the client's own installation is written, once, into ~/.cache/memd
(npm and the network are needed for that). The story: without a daemon running, a failing test is
mended and a decision taken; a new session asks about both; that one is compacted and goes on. Then
the vault is looked into, the daemon is restarted, killed and restored under a session, and another Claude
Code writes the text of a turn. A line per check; exit 0 if all hold, 1 if not, 2 if it cannot run here.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from e2e import checks, claude_code
from e2e.claude_code import ClaudeCode, Impossible
from e2e.conversation import Story
from e2e.scenario import FILES, THINK_S, play
from e2e.scripted_api import ScriptedApi
from e2e.workspace import Memd, Over, Report, repository


def main() -> int:
    """Set the stage, play, tell."""
    options = arguments()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "memd"
    began = time.monotonic()
    try:
        cached = cache / f"claude-code-{claude_code.VERSION}"
        program = named(options.claude) if options.claude else claude_code.installed(cached)
        top = Path(os.path.realpath(tempfile.mkdtemp(prefix="memd-e2e-")))
    except Impossible as error:
        print(f"scripts/end-to-end claude: {error}", file=sys.stderr)
        return 2
    home, project, report = top / "home", top / "ledger", Report()
    home.mkdir()
    repository(project, FILES)
    try:
        with ScriptedApi(think_s=THINK_S) as api:
            claude = ClaudeCode(program, home, project, api.url)
            memd = Memd(claude.environ, project)
            server = "mcp__plugin_memd_memd__" if options.plugin else "mcp__memd__"
            print(f"Claude Code {claude.command('--version').stdout.strip()}, {program}")
            story = Story(report, api, claude, memd, server)
            try:
                play(story, as_plugin=options.plugin)
            except Over:
                report.note("the rest was not tried; the end of memd's log:")
                for line in checks.tail(Path(memd.paths.log)):
                    report.note(f"  {line}")
    finally:
        claude_code.end(home)
        if options.keep:
            print(f"\nkept: {top}")
        else:
            shutil.rmtree(top, ignore_errors=True)
    print(f"\n{report.passed} ok, {len(report.failed)} failed, {time.monotonic() - began:.0f} s")
    for what in report.failed:
        print(f"  FAIL {what}")
    return 1 if report.failed else 0


def named(program: Path) -> Path:
    """The client that the caller names, wherever we are going to stand. Raises Impossible."""
    if not os.access(program, os.X_OK):
        raise Impossible(f"{program} is no program; name a claude, or leave --claude out")
    return program.absolute()


def arguments() -> argparse.Namespace:
    """What the caller wants."""
    parser = argparse.ArgumentParser(
        prog="scripts/end-to-end claude",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--plugin", action="store_true", help="connect memd as a plugin, not by `memd install`"
    )
    parser.add_argument(
        "--keep", action="store_true", help="leave home, project and logs behind, to look at"
    )
    parser.add_argument(
        "--claude", type=Path, metavar="PATH", help="this program instead of the cached one"
    )
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
