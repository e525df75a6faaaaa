"""`memd search`, `list` and `get`: memories by a question, by what they are, in full; `memd context`, `injected`: what agents are told."""

import itertools
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from typer import Argument, Option

from memd.cli import daemon_call, output
from memd.cli.output import Memory, Screen, find_screen, match_words
from memd.cli.terminal import (
    TIMES,
    ClientOption,
    KindsOption,
    ProjectOption,
    check_kinds,
    complete_from,
    complete_projects,
    print_result,
    read_local_end,
    read_local_time,
    read_today,
    wants_json,
)
from memd.models import make_memory_name
from memd.time_expressions import format_age, parse_end, parse_start

_LINE_CHARACTERS_MAX = 100
MOMENTS = ("startup", "resume", "clear", "compact", "prompt")
_SHOWN_WITH = {"superseded": "--superseded", "unlikely": "--all"}
"""Why memories are hidden → the option that shows them."""

# ── search ───────────────────────────────────────────────────────────────────────────────────────


def run_search(  # noqa: PLR0913  # one parameter per option
    words: list[str] = Argument(..., metavar="WORDS", help='Also "a phrase", prefix*, OR.'),
    *,
    project: ProjectOption = "current",
    k: int | None = Option(None, "-k", "-n", "--limit", metavar="N", help="Default: 5."),
    kind: KindsOption = None,
    client: ClientOption = None,
    since: str | None = Option(None, metavar="TIME", help=f"Only from then on. {TIMES}"),
    until: str | None = Option(None, metavar="TIME", help="Only what happened then or before."),
    as_of: str | None = Option(None, metavar="TIME", help="Only what was known then."),
    profile: str | None = Option(None, help="Ranking profile: memd, siftcoder, or your own."),
    superseded: bool = Option(False, "--superseded", help="Include superseded memories."),
    show_all: bool = Option(False, "--all", help="Show the nearest even if they are no answer."),
    explain: bool = Option(False, "--explain", help="Show how scores are made, and near misses."),
) -> None:
    """Search memories. A time in the question counts: what did we do yesterday."""
    today = read_today()
    answer = daemon_call.call(
        "memd/search",
        query=" ".join(words),
        k=k,
        source=client,
        kinds=check_kinds(kind),
        since=since and read_local_time(since, today),
        until=until and read_local_end(until, today),
        as_of=as_of and read_local_end(as_of, today),
        profile=profile,
        include_superseded=superseded or None,
        show_all=show_all or None,
        explain=explain or None,
        **daemon_call.find_place(project),
    )
    question, now = " ".join(words), time.time() * 1000
    lines = _draw_answer(answer, find_screen(), question, now, explain=explain)
    trace = _format_trace(answer) if explain else ()
    print_result(answer, itertools.chain(lines, trace))


def _draw_answer(
    answer: dict[str, Any], terminal: Screen, question: str, now: float, *, explain: bool
) -> Iterator[str]:
    """Draw the hits, in columns for a terminal; `now` is UTC milliseconds."""
    hits, verdict, reason = answer["hits"], str(answer.get("verdict")), ""
    if verdict != "found" and answer.get("reason"):
        reason = output.one_line(answer["reason"])
    if not hits and terminal.is_terminal:
        yield terminal.paint("nothing found", "warning")
    if reason and terminal.is_terminal:
        word = {"weak": "not sure", "nothing": "not known"}.get(verdict, verdict)
        yield f"{terminal.paint(word, 'warning')}: {reason}"
    ages = [format_age(hit["at"], int(now)) for hit in hits]
    columns = MemoryColumns(terminal, hits, ages, match_words(question))
    for hit in hits:
        yield from columns.format(hit, hit["snippet"])
        if explain:
            yield terminal.paint(output.format_score(hit), "dim")
    if not hits and not terminal.is_terminal:
        yield "nothing found"
    if reason and not terminal.is_terminal:
        yield f"({verdict}: {reason})"
    for one in answer.get("said", ()):
        session = (
            f", session “{output.one_line(one['session_title'])}”" if one["session_title"] else ""
        )
        yield f"you said, not noted: “{output.one_line(one['text'])}” ({output.format_date(one['at'])}{session})"
    yield from (terminal.paint(remark, "dim") for remark in _list_remarks(answer))


def _format_trace(answer: dict[str, Any]) -> Iterator[str]:
    """Format every candidate of a search: its score, what became of it, and the steps of the score."""
    candidates = output.plural(answer["candidates"], "candidate")
    yield ""
    yield f"profile {answer['profile']}, space {answer['space']}, {answer['took_ms']:.1f} ms, {candidates}"
    for one in answer.get("trace", ()):
        title, verdict = output.one_line(one["title"]), output.one_line(one["verdict"])
        yield f"#{one['summary_id']} {one['score']:.4g} {verdict}: {title}"
        ranks = {f"{retriever}_rank": rank for retriever, rank in one["ranks"].items()}
        yield output.format_score({**one, **ranks})


def _list_remarks(answer: dict[str, Any]) -> Iterator[str]:
    """List the remarks on an answer besides its hits."""
    for note in answer.get("notes", ()):
        yield f"({output.format_note(note)})"
    if hidden := answer.get("suppressed"):
        counts = (
            f"{count:,} {reason}" + (f" ({_SHOWN_WITH[reason]})" if reason in _SHOWN_WITH else "")
            for reason, count in hidden.items()
        )
        yield f"(not shown: {', '.join(counts)})"
    for retriever, reason in answer.get("degraded", {}).items():
        yield f"({retriever}: {output.one_line(reason)})"


# ── list ─────────────────────────────────────────────────────────────────────────────────────────


def run_list(  # noqa: PLR0913  # one parameter per option
    *,
    project: ProjectOption = "current",
    kind: KindsOption = None,
    client: ClientOption = None,
    speaker: str | None = Option(
        None, help="Only of: user, told (the user, as an agent noted), agent, tool."
    ),
    session: str | None = Option(
        None, metavar="ID", help="Only this session: the start of its id."
    ),
    pinned: bool = Option(False, "--pinned", help="Only what is pinned."),
    since: str | None = Option(None, metavar="TIME", help=f"Only from then on. {TIMES}"),
    until: str | None = Option(None, metavar="TIME", help="Only up to then."),
    superseded: bool = Option(False, "--superseded", help="Include superseded memories."),
    limit: int = Option(20, "-n", "--limit", min=1, max=200, help="Number of memories."),
) -> None:
    """List memories by what they are, the newest first."""
    today, now = read_today(), int(time.time() * 1000)
    found = daemon_call.call(
        "memd/list",
        kinds=check_kinds(kind),
        source=client,
        speaker=speaker,
        session=session,
        pinned=pinned or None,
        since=None if since is None else parse_start(read_local_time(since, today), now, "since"),
        until=None if until is None else parse_end(read_local_end(until, today), now, "until"),
        include_superseded=superseded or None,
        limit=limit,
        **daemon_call.find_place(project),
    )
    if project == "all":
        for memory in found["memories"]:
            memory["elsewhere"] = memory["project"]
    print_result(found, _format_list(found, find_screen(), now, is_all=project == "all"))


def _format_list(
    found: dict[str, Any], terminal: Screen, now: int, *, is_all: bool
) -> Iterator[str]:
    memories = found["memories"]
    if not memories:
        yield "no memories" + (
            "" if is_all else " here; --project all lists those of every project"
        )
    yield from format_with_ages(terminal, memories, now)
    if found.get("next"):
        yield terminal.paint("(there are more: --limit, --until)", "dim")


# ── get ──────────────────────────────────────────────────────────────────────────────────────────


def run_get(ids: list[str] = Argument(..., metavar="ID", help="12 or #12.")) -> None:
    """Show memories in full."""
    found = daemon_call.call("memd/get", ids=daemon_call.read_ids(ids))
    memories = "\n\n".join(map(_format_memory, found["memories"]))
    print_result(found, [memories])
    if found.get("unknown") and not wants_json():
        daemon_call.fail("there is no memory " + ", ".join(f"#{n}" for n in found["unknown"]))


def _format_memory(memory: dict[str, Any]) -> str:
    facts = {
        "name": make_memory_name(memory["uid"]),
        "project": memory.get("project"),
        "session": memory.get("session_title"),
        "time": output.format_time(memory["at"]),
        "said by": memory["authority"],
        "pinned by": memory["pinned_by"],
        "tier": f"{memory['tier']}, from {memory['source']} by {memory['rule']}",
        "topic": memory.get("topic_key"),
        "tags": ", ".join(memory.get("tags") or ()),
        "files": ", ".join(memory.get("files") or ()),
        "expires": memory.get("expires_at") and output.format_time(memory["expires_at"]),
    }
    rows = [(name, output.one_line(str(value))) for name, value in facts.items() if value]
    head = [output.format_headline(memory), *output.format_table(rows)]
    return "\n".join([*head, "", output.clean(memory["body"])])


# ── context, injected ────────────────────────────────────────────────────────────────────────────

_NUMBER = re.compile(r"^- #(\d+) |[:;] #(\d+) \(\d{4}-")
"""The memory of a told line, and those of a line about a call that breaks rules."""
TOKEN_CHARACTERS = 4


def run_context(
    words: list[str] | None = Argument(
        None, metavar="PROMPT", help="What a prompt would bring. Default: the start of a session."
    ),
    *,
    prompt: str | None = Option(None, metavar="TEXT", help="The same, as an option."),
    session: str | None = Option(None, metavar="ID", help="The session: the start of its id."),
    project: str | None = Option(
        None, help="Another project than this directory's.", autocompletion=complete_projects
    ),
    moment: str | None = Option(
        None,
        metavar="MOMENT",
        help=f"One of {', '.join(MOMENTS)}.",
        autocompletion=complete_from(*MOMENTS),
    ),
    explain: bool = Option(False, "--explain", help="Show all candidates and why."),
) -> None:
    """Show the context that memd would inject into a session now. Records nothing."""
    if words and prompt is not None:
        daemon_call.fail("give the prompt once: as words or with --prompt")
    if moment is not None and moment not in MOMENTS:
        daemon_call.fail(f"--moment: there is no {moment!r}; there are {', '.join(MOMENTS)}")
    context = daemon_call.call(
        "memd/context",
        prompt=" ".join(words) if words else prompt,
        session=session,
        moment=moment,
        explain=explain,
        **daemon_call.find_place(None if project is None else daemon_call.read_project(project)),
    )
    print_result(context, _format_context(context, explain=explain))


def _format_context(context: dict[str, Any], *, explain: bool) -> Iterator[str]:
    if context["text"] is None:
        yield f"nothing would be told: {output.one_line(context['reason'])}"
    else:
        yield from map(output.clean, context["text"].splitlines())
        count = output.plural(sum(one["shown"] for one in context["memories"]), "memory")
        yield f"({count}, about {output.plural(context['tokens'], 'token')})"
    if explain and context["memories"]:
        yield from ("", "Candidates:")
        for memory in context["memories"]:
            mark = "+" if memory["shown"] else "-"
            yield f"{mark} {output.format_headline(memory)}"
            yield f"    {output.one_line(memory['why'])}"


def run_injected(
    session: str | None = Argument(
        None, metavar="[SESSION]", help="Default: the latest session here."
    ),
) -> None:
    """List what memd has injected into a session, when and why, and what was used of it, oldest first."""
    found = daemon_call.call(
        "memd/injected", session=session, directory=daemon_call.current_directory()
    )
    print_result(found, _format_injections(found))


def _format_injections(found: dict[str, Any]) -> Iterator[str]:
    title = output.one_line(found["title"] or "without a prompt")
    yield f"session {found['session']}: {title}"
    injections, texts = found["injections"], found.get("texts") or []
    if not injections and not texts:
        yield "nothing was injected"
    else:
        yield from _format_told(injections, texts)
    for one in found.get("untold") or []:
        yield f"{output.format_time(one['at'])}  {one['moment']}: nothing, {output.one_line(one['why'])}"


def _format_told(injections: list[dict[str, Any]], texts: list[dict[str, Any]]) -> Iterator[str]:
    yield _sum_up(injections, texts)
    whys = {(one["moment"], one["id"]): list(_explain(one)) for one in injections}
    for told in texts:
        yield f"{output.format_time(told['at'])}  {told['moment']}"
        for line in told["text"].splitlines():
            yield f"  {output.clean(line)}"
            for number in _NUMBER.finditer(line):
                yield from whys.pop((told["moment"], int(number[1] or number[2])), ())
    # What was told is kept of the last sessions only, and until something is forgotten.
    untold = [one for one in injections if (one["moment"], one["id"]) in whys]
    for at, moment in dict.fromkeys((one["at"], one["moment"]) for one in untold):
        yield f"{output.format_time(at)}  {moment}"
        for one in untold:
            if (one["at"], one["moment"]) == (at, moment):
                yield f"  #{one['id']} {one['kind']}  {output.one_line(one['title'])}"
                yield from whys[moment, one["id"]]


def _sum_up(injections: list[dict[str, Any]], texts: list[dict[str, Any]]) -> str:
    used = sum(one.get("outcome") == "used" for one in injections)
    if texts:
        lines = sum(line.startswith("- ") for one in texts for line in one["text"].splitlines())
        tokens = sum(len(one["text"]) for one in texts) // TOKEN_CHARACTERS
        count = output.plural(lines, "line")
    else:
        count = output.plural(len(injections), "memory")
        tokens = sum(one["tokens"] for one in injections)
    return f"{count}, about {output.plural(tokens, 'token')}, {used:,} used"


def _explain(one: dict[str, Any]) -> Iterator[str]:
    yield f"    {output.one_line(one['reason'])}"
    outcome, evidence = one.get("outcome"), one.get("evidence")
    if outcome in {"used", "overruled", "ignored"}:
        yield f"    {outcome}" + (f": {output.one_line(evidence)}" if evidence else "")


# ── Columns ──────────────────────────────────────────────────────────────────────────────────────

_GAP = "  "
_WIDTH_WITH_SPEAKER = 72
"""Columns from which on the speaker has one of its own."""
_SNIPPET_LINES_MAX, _PLACE_WIDTH_MAX, _TITLE_WIDTH_MIN = 3, 20, 14


def format_with_ages(terminal: Screen, memories: Sequence[Memory], now: int) -> Iterator[str]:
    """Memories in columns, each with its age."""
    columns = MemoryColumns(terminal, memories, [format_age(one["at"], now) for one in memories])
    for memory in memories:
        yield from columns.format(memory)


class MemoryColumns:
    """The columns of some memories, or plain lines where there is no terminal; `times` are what each shows as its time."""

    def __init__(
        self,
        terminal: Screen,
        memories: Sequence[Memory],
        times: Iterable[str],
        words: re.Pattern[str] | None = None,
    ) -> None:
        self._screen, self._words = terminal, words
        self._times = dict(zip((one["id"] for one in memories), times, strict=True))
        self._id_width = max((len(str(one["id"])) + 1 for one in memories), default=2)
        self._kind_width = max((len(one["kind"]) for one in memories), default=4)
        self._time_width = max(map(len, self._times.values()), default=3)
        self._has_speaker = terminal.width >= _WIDTH_WITH_SPEAKER
        speaker_width = len("agent") + len(_GAP) if self._has_speaker else 0
        self.indent = 1 + self._id_width + self._kind_width + speaker_width + self._time_width
        self.indent += 3 * len(_GAP)
        self.text_width = max(terminal.width - self.indent - 1, 10)

    def format(self, memory: Memory, snippet: str = "") -> Iterator[str]:
        """A memory: the line of its title, then what is to be said of it, then a snippet."""
        if not self._screen.is_terminal:
            yield output.format_headline(memory)
            yield from output.format_snippet(snippet, width=_LINE_CHARACTERS_MAX)
            return
        paint, is_hidden = self._screen.paint, bool(memory.get("superseded_by"))
        number = f"#{memory['id']}".rjust(self._id_width)
        kind = self._screen.paint_kind(memory["kind"], memory["kind"].ljust(self._kind_width))
        fields = [" " + paint(number, "dim"), kind]
        speaker = str(memory.get("speaker", ""))
        if self._has_speaker:
            fields.append(paint(speaker.ljust(len("agent")), "" if speaker == "user" else "dim"))
        fields.append(paint(self._times[memory["id"]].rjust(self._time_width), "dim"))
        place = [speaker] if speaker and not self._has_speaker else []
        place += [output.one_line(memory["elsewhere"])] if memory.get("elsewhere") else []
        beside = output.cut("".join(f" · {name}" for name in place), _PLACE_WIDTH_MAX)
        if self.text_width - output.measure(beside) < _TITLE_WIDTH_MIN:
            beside = ""
        room = self.text_width - output.measure(beside)
        title = output.cut(output.one_line(memory["title"]), room)
        style = "struck" if is_hidden else "bold"
        fields.append(self._screen.paint_matches(title, self._words, style) + paint(beside, "dim"))
        yield _GAP.join(fields)
        if marks := output.list_marks(memory):
            for line in output.wrap("; ".join(marks), self.text_width):
                yield " " * self.indent + paint(line, "warning")
        for line in output.wrap(output.one_line(snippet), self.text_width, _SNIPPET_LINES_MAX):
            yield " " * self.indent + self._screen.paint_matches(line, self._words)
