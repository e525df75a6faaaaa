"""`memd search`, `memd list` and `memd get`: memories by a question, by what they are, and in full."""

import re
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from typer import Argument, Option

from memd.cli import daemon_call, output, times
from memd.cli.completion import complete_kinds, complete_projects
from memd.cli.output import Memory, Screen, find_screen, match_words
from memd.cli.terminal import JsonOption, print_result
from memd.cli.times import TIMES
from memd.models import Kind, make_memory_name
from memd.time_expressions import format_age, parse_end, parse_start

KINDS = f"One of {', '.join(Kind)}."
_LINE_CHARACTERS_MAX = 100
_SHOWN_WITH = {"superseded": "--superseded", "unlikely": "--all"}
"""Why memories are hidden → the option that shows them."""


ClientOption = Option(
    None,
    metavar="NAME",
    help="Only what this agent left: claude-code, codex, copilot, cursor, opencode, pi.",
)

# ── search ───────────────────────────────────────────────────────────────────────────────────────


def run_search(  # noqa: PLR0913  # one parameter per option
    words: list[str] = Argument(..., metavar="WORDS", help='Also "a phrase", prefix*, OR.'),
    *,
    project: str = Option(
        "current",
        help="current (this project and global), all, or a name.",
        autocompletion=complete_projects,
    ),
    k: int | None = Option(
        None, "-k", "-n", "--limit", metavar="N", help="Number of hits. Default: 5."
    ),
    kind: list[str] | None = Option(
        None, help=f"Only this kind; may be repeated. {KINDS}", autocompletion=complete_kinds
    ),
    client: str | None = ClientOption,
    since: str | None = Option(
        None, metavar="TIME", help=f"Only what happened then or later. {TIMES}"
    ),
    until: str | None = Option(None, metavar="TIME", help="Only what happened then or before."),
    as_of: str | None = Option(
        None, metavar="TIME", help="Only what was known then; yesterday is the day before it."
    ),
    profile: str | None = Option(None, help="Ranking profile: memd, siftcoder, or your own."),
    superseded: bool = Option(False, "--superseded", help="Include superseded memories."),
    all_words: bool = Option(False, "--all-words", help="Only memories that have every word."),
    min_score: float | None = Option(None, min=0, help="No hit with a lower score."),
    show_all: bool = Option(False, "--all", help="Show the nearest even if they are no answer."),
    explain: bool = Option(False, "--explain", help="Show how scores are made, and near misses."),
    as_json: JsonOption = False,
) -> None:
    """Search memories. A time in the question counts: what did we do yesterday."""
    today = times.read_today()
    answer = daemon_call.call(
        "memd/search",
        query=" ".join(words),
        k=k,
        source=client,
        kinds=check_kinds(kind),
        since=None if since is None else times.read_local_time(since, today),
        until=None if until is None else times.read_local_end(until, today),
        as_of=None if as_of is None else times.read_local_end(as_of, today),
        profile=profile,
        include_superseded=superseded or None,
        all_words=all_words or None,
        min_score=min_score,
        show_all=show_all or None,
        explain=explain or None,
        **daemon_call.find_place(project),
    )
    terminal = find_screen()
    if terminal.is_terminal:
        question = " ".join(words)
        lines = _draw_answer(answer, terminal, question, time.time() * 1000, explain=explain)
    else:
        lines = _format_answer(answer, explain=explain)
    print_result(answer, lines, as_json=as_json)
    if explain and not as_json:
        from memd.cli import explain as cli_explain

        print()
        cli_explain.print_trace(answer)


def check_kinds(kinds: list[str] | None) -> list[str] | None:
    """Exit with a message if a kind does not exist; return None for every kind."""
    for kind in kinds or ():
        if kind not in tuple(Kind):
            daemon_call.fail(f"--kind: there is no {kind!r}; there are {', '.join(Kind)}")
    return kinds or None


def _format_answer(answer: dict[str, Any], *, explain: bool) -> Iterator[str]:
    width = min(shutil.get_terminal_size().columns, _LINE_CHARACTERS_MAX)
    for hit in answer["hits"]:
        yield output.format_headline(hit)
        yield from output.format_snippet(hit["snippet"], width=width)
        if explain:
            yield output.format_score(hit)
    if not answer["hits"]:
        yield "nothing found"
    if answer.get("verdict") != "found" and answer.get("reason"):
        yield f"({answer['verdict']}: {output.one_line(answer['reason'])})"
    yield from _list_remarks(answer)


def _draw_answer(
    answer: dict[str, Any], terminal: Screen, question: str, now: float, *, explain: bool
) -> Iterator[str]:
    """Draw the hits in columns for a terminal; `now` is UTC milliseconds."""
    hits, verdict = answer["hits"], answer.get("verdict")
    if not hits:
        yield terminal.paint("nothing found", "warning")
    if verdict != "found" and answer.get("reason"):
        word = {"weak": "not sure", "nothing": "not known"}.get(str(verdict), str(verdict))
        reason = output.one_line(answer["reason"])
        yield f"{terminal.paint(word, 'warning')}: {reason}"
    ages = [format_age(hit["at"], int(now)) for hit in hits]
    columns = MemoryColumns(terminal, hits, ages, match_words(question))
    for hit in hits:
        yield from columns.format(hit, hit["snippet"])
        if explain:
            yield terminal.paint(output.format_score(hit), "dim")
    yield from (terminal.paint(remark, "dim") for remark in _list_remarks(answer))


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
    project: str = Option(
        "current",
        help="current (this project and global), all, or a name.",
        autocompletion=complete_projects,
    ),
    kind: list[str] | None = Option(
        None, help=f"Only this kind; may be repeated. {KINDS}", autocompletion=complete_kinds
    ),
    client: str | None = ClientOption,
    speaker: str | None = Option(
        None,
        help="Only what this one said: user, told (the user, as an agent noted), agent or tool.",
    ),
    session: str | None = Option(
        None, metavar="ID", help="Only this session; the start of its id."
    ),
    pinned: bool = Option(False, "--pinned", help="Only what is pinned."),
    since: str | None = Option(None, metavar="TIME", help=f"Only from then on. {TIMES}"),
    until: str | None = Option(None, metavar="TIME", help="Only up to then."),
    superseded: bool = Option(False, "--superseded", help="Include superseded memories."),
    limit: int = Option(20, "-n", "--limit", min=1, max=200, help="Number of memories."),
    as_json: JsonOption = False,
) -> None:
    """List memories by what they are, the newest first."""
    today, now = times.read_today(), int(time.time() * 1000)
    found = daemon_call.call(
        "memd/list",
        kinds=check_kinds(kind),
        source=client,
        speaker=speaker,
        session=session,
        pinned=pinned or None,
        since=None
        if since is None
        else parse_start(times.read_local_time(since, today), now, "since"),
        until=None
        if until is None
        else parse_end(times.read_local_end(until, today), now, "until"),
        include_superseded=superseded or None,
        limit=limit,
        **daemon_call.find_place(project),
    )
    if project == "all":
        for memory in found["memories"]:
            memory["elsewhere"] = memory["project"]
    print_result(
        found, _format_list(found, find_screen(), now, is_all=project == "all"), as_json=as_json
    )


def _format_list(
    found: dict[str, Any], terminal: Screen, now: int, *, is_all: bool
) -> Iterator[str]:
    memories = found["memories"]
    if not memories:
        yield "no memories" + (
            "" if is_all else " here; --project all lists those of every project"
        )
    if terminal.is_terminal:
        ages = [format_age(memory["at"], now) for memory in memories]
        columns = MemoryColumns(terminal, memories, ages)
        for memory in memories:
            yield from columns.format(memory)
    else:
        yield from map(output.format_headline, memories)
    if found.get("next"):
        yield terminal.paint("(there are more: --limit, --until)", "dim")


# ── get ──────────────────────────────────────────────────────────────────────────────────────────


def run_get(
    ids: list[str] = Argument(..., metavar="ID", help="12 or #12."), as_json: JsonOption = False
) -> None:
    """Show memories in full."""
    found = daemon_call.call("memd/get", ids=daemon_call.read_ids(ids))
    memories = "\n\n".join(map(_format_memory, found["memories"]))
    print_result(found, [memories], as_json=as_json)
    if found.get("unknown") and not as_json:
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


# ── Columns ──────────────────────────────────────────────────────────────────────────────────────

_GAP = "  "
_WIDTH_WITH_SPEAKER = 72
"""Columns from which on the speaker has one of its own."""
_SNIPPET_LINES_MAX, _PLACE_WIDTH_MAX, _TITLE_WIDTH_MIN = 3, 20, 14


class MemoryColumns:
    """The columns of some memories; `times` are what each shows as its time."""

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
