"""An end-to-end story: what its acts share, and each run of the client with the requests that it made.

What holds of every run is checked here. Not here: the acts.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from e2e import claude_code
from e2e.claude_code import ClaudeCode, Run
from e2e.scripted_api import ScriptedApi, Turn, results, texts
from e2e.workspace import Memd, Over, Report

TOOLS = ("Read", "Write", "Edit", "Bash", "Agent")
MEMORY_TOOLS = ("mem_search", "mem_timeline", "mem_why")
SERVES = re.compile(r"\bmemd serve\b|-m memd serve")
WIDTH = 60
ID = re.compile(r"^(?:[-*] )?#(\d+)\b", re.MULTILINE)
"""A memory that a line of a context shows; what stands in its remark, such as `replaces #2`, is only named."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One run of the client, and the requests that it made."""

    run: Run
    requests: Sequence[dict[str, Any]]

    @property
    def first(self) -> str:
        """All that the first request tells the model, as one text."""
        return "\n".join(texts(self.requests[0])) if self.requests else ""

    @property
    def tools(self) -> set[str]:
        """What the first request lets the model call."""
        return {tool["name"] for body in self.requests[:1] for tool in body.get("tools", ())}

    @property
    def results(self) -> list[tuple[bool, str]]:
        """Of this run's calls: whether each failed, and what the model received."""
        if not self.requests:
            return []
        known = {call for call, _, _ in results(self.requests[0])}
        received = results(self.requests[-1])
        return [(is_error, text) for call, is_error, text in received if call not in known]


@dataclass
class Story:
    """What the acts share."""

    report: Report
    api: ScriptedApi
    claude: ClaudeCode
    memd: Memd
    server: str
    """What the client puts before the names of memd's tools."""
    scenes: list[Scene] = field(default_factory=list)

    def ask(
        self, prompt: str, *turns: Turn, session: str | None = None, bare: bool = False
    ) -> Scene:
        """One prompt and the turns that answer it; `bare` leaves every MCP server out."""
        allowed = (*TOOLS, *(self.server + name for name in MEMORY_TOOLS))
        words = ["--allowedTools", ",".join(allowed)]
        if bare:
            words += ["--strict-mcp-config", "--mcp-config", '{"mcpServers": {}}']
        self.api.play(*turns)
        asked, unscripted = len(self.api.requests), len(self.api.unscripted)
        run = self.claude.ask(prompt, *words, session=session)
        scene = Scene(run, self.api.requests[asked:])
        self.scenes.append(scene)
        said = prompt if len(prompt) <= WIDTH else prompt[: WIDTH - 1] + "…"
        what = f"“{said}” is answered, {run.took_s:.1f} s"
        if not self.report.check(what, not run.problem, run.problem):
            raise Over
        left, more = self.api.left, len(self.api.unscripted) - unscripted
        why = f"{len(left)} turns left over, {more} requests too many"
        self.report.check("  turn for turn as scripted", not left and not more, why)
        self._hooks(run)
        return scene

    def _hooks(self, run: Run) -> None:
        """Every hook must have succeeded, quietly."""
        check = self.report.check
        beside = sum("PostToolUse" in hook.event for hook in run.hooks)
        loud = [
            f"{hook.name}: {hook.outcome} {hook.stdout!r} {hook.stderr!r}"
            for hook in run.hooks
            if not hook.is_quiet
        ]
        loud += [f"{name}: status {status}" for name, status, _ in run.waited_for if status]
        count, slowest = len(run.waited_for), max(run.waited_for, key=lambda one: one[2])
        names = ", ".join(name for name, _, _ in run.waited_for)
        check(f"  {count} hooks in its way, {beside} beside it, all quiet: {names}", not loud, loud)
        is_whole = not run.unfinished and names.count("SessionEnd") == 1
        check("  none is cut off", is_whole, (run.unfinished, names))
        self.report.note(f"the slowest: {slowest[0]}, {slowest[2]} ms")

    def daemons(self) -> list[int]:
        """The daemons of this home that run now."""
        running = claude_code.processes(self.claude.home)
        return [pid for pid, command in running.items() if SERVES.search(command)]

    def contexts(self, session: str) -> list[str]:
        """What memd put before the model in a session, in order."""
        return [
            hook.context
            for scene in self.scenes
            if scene.run.session == session
            for hook in scene.run.hooks
            if hook.context
        ]

    def find(self, *words: str) -> int:
        """The best memory for these words; 0 if there is none."""
        answer = self.memd.json_of("search", *words) or {"hits": []}
        return int(answer["hits"][0]["id"]) if answer["hits"] else 0


def ids(text: str) -> set[int]:
    """The memories that a context shows."""
    return {int(number) for number in ID.findall(text)}
