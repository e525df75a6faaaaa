"""`memd review`, `enforce` and `judge`: what the user says of memories.

The inbox of what was learned since the user looked, each with its proof; which rules are enforced; how two memories relate.
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from typer import Argument, Option

from memd.cli import daemon_call, output
from memd.cli.edit import edit_by_hand
from memd.cli.output import Screen, find_screen
from memd.cli.terminal import print_result, wants_json
from memd.models import RELATION_WORDS

Memory = Mapping[str, Any]
_LIMIT = 500
_ESCAPE = b"\x1b"
_TEXT_WIDTH_MAX = 96
_LABEL_WIDTH = 10
_KEYS = {"k": "keep", "r": "reject", "n": "seen", "g": "everywhere"}
"""Key → what it says of the memory that is shown."""
_DONE = {
    "kept": "kept: it stays as it is and does not ask again",
    "rejected": "rejected: it is told no more, and never learned again",
    "seen": "left as it is",
    "everywhere": "holds everywhere now",
}
_SPEAKERS = {"prompt": "you", "tool_refused": "you", "elsewhere": "on another device"}
"""Kind of event → the speaker of its quoted text; other kinds quote the agent or a tool."""

_RELATION_HELP = (
    "Such as 12 supersedes 15. supersedes: OTHER is hidden. duplicate: OTHER is hidden and ID gains confidence. contradicts:"
    " both stay, marked. compatible, unrelated: both stay, and memd does not ask again. Also 12 replaces 15, 15 replaced-by 12,"
    " 12 same-as 15."
)
_RELATION_STEMS = {
    "supersed": "supersedes", "replac": "supersedes", "overrid": "supersedes", "instead": "supersedes",
    "duplicat": "duplicate", "same": "duplicate", "equal": "duplicate", "repeat": "duplicate",
    "contradict": "contradicts", "conflict": "contradicts", "compatib": "compatible", "unrelat": "unrelated",
}  # fmt: skip
"""How a word begins that says a relation → the relation; what else stands beside it, such as `is` and `as`, joins only."""
_JOINING_WORDS = frozenset(
    {"is", "are", "was", "says", "the", "a", "as", "with", "to", "of", "by", "like", "and"}
)


def run_review(
    keep: list[str] | None = Option(None, metavar="ID", help="It is right; do not ask again."),
    reject: list[str] | None = Option(
        None, metavar="ID", help="It is wrong: never learn it again."
    ),
    everywhere: list[str] | None = Option(
        None, metavar="ID", help="Noted in two projects, it holds in all."
    ),
    undo: list[str] | None = Option(None, metavar="ID", help="Take any of these back."),
    rejected: bool = Option(False, "--rejected", help="List what you rejected."),
    project: str | None = Option(None, help="Only of this one. Default: every project."),
) -> None:
    """Look at what was learned since you last looked, and at what is shown and never used: keep, edit or reject each by one key.

    What you reject never comes back, in no wording that memd calls the same, by no way, until you undo it.
    """
    said = {"keep": keep, "reject": reject, "everywhere": everywhere, "undo": undo}
    if any(said.values()):
        done = [
            one
            for verdict, ids in said.items() if ids
            for one in _send_review(verdict, daemon_call.read_ids(ids))
        ]  # fmt: skip
        print_result({"reviewed": done}, map(_format_done, done))
        return
    found = daemon_call.call(
        "memd/review/list",
        project=None if project is None else daemon_call.read_project(project),
        directory=daemon_call.current_directory(),
        rejected=rejected,
        limit=_LIMIT,
    )
    is_dialogue = sys.stdin.isatty() and sys.stdout.isatty() and not wants_json() and not rejected
    if is_dialogue and found["memories"]:
        daemon_call.require_user("review")
        _Dialogue(found, find_screen()).run()
        return
    lines = _list_rejected(found) if rejected else _list_waiting(found, find_screen())
    print_result(found, lines)


def _send_review(verdict: str, ids: list[int]) -> list[dict[str, Any]]:
    reviewed: list[dict[str, Any]] = daemon_call.call("memd/review", ids=ids, verdict=verdict)[
        "reviewed"
    ]
    return reviewed


def _format_done(one: Mapping[str, Any]) -> str:
    if one["verdict"] == "undo":
        return f"#{one['id']} waits for your review again; it was {one['was']}"
    hidden = one.get("hidden", ())
    others = ", ".join(f"#{number}" for number in hidden if number != one["id"])
    place = f" (#{one['global']})" if one.get("global") else ""
    so = "it replaces" if one["verdict"] == "kept" else "so"
    return f"#{one['id']} {_DONE[one['verdict']]}{place}" + (f"; {so} {others}" if others else "")


def run_enforce(
    rule: str | None = Argument(
        None, metavar="ID", help="A rule. Default: list those with a check."
    ),
    off: bool = Option(False, "--off", help="Only tell it again, as before."),
    project: str | None = Option(None, help="Whose to list. Default: this one's."),
) -> None:
    """Have a rule kept: a tool call that breaks it is refused, with the rule as the reason. Without ID: list the checks.

    A rule that names a command, flag, path or piece of code is told to the agent with a call that breaks it, once a session. What
    you enforce is refused each time instead, and an agent that wants to end its turn without what has to be run before it
    is sent back once. A daemon that is away refuses nothing. Only you can say this, in a shell of your own.
    """
    if rule is None:
        found = daemon_call.call(
            "memd/rules",
            project=None if project is None else daemon_call.read_project(project),
            directory=daemon_call.current_directory(),
        )
        print_result(found, _list_checks(found["rules"]))
        return
    (number,) = daemon_call.read_ids([rule])
    done = daemon_call.call("memd/enforce", id=number, off=off)
    lines = [
        f"#{number} is {'enforced' if done['enforced'] else 'only told'} {'now' if done['changed'] else 'already'}"
    ]
    print_result(done, [*lines, *(f"    {one}" for one in done.get("checks", ()))])


def _list_checks(rules: list[Mapping[str, Any]]) -> Iterator[str]:
    for rule in rules:
        state = "enforced" if rule["enforced"] else "told"
        yield f"#{rule['id']} {output.one_line(rule['title'])}"
        yield from (f"    {state}: {output.one_line(check)}" for check in rule["checks"])
        for check in rule["proposed"]:
            yield f"    waits for your review: {output.one_line(check)}"
    if not rules:
        yield "no rule here names a command, flag, path or code that can be checked"
    else:
        yield f"{daemon_call.format_command('enforce ID')} refuses what breaks one"


# ── judge ────────────────────────────────────────────────────────────────────────────────────────


def run_judge(
    words: list[str] | None = Argument(
        None, metavar="ID RELATION OTHER", help=_RELATION_HELP, show_default=False
    ),
    *,
    reason: str | None = Option(None, help="Why; `memd why` shows it. An agent has to give one."),
    undo: bool = Option(False, "--undo", help="Undo what you or memd have decided."),
) -> None:
    """Say how one memory relates to another, or undo that. Without ids: what is open."""
    if not words:
        found = daemon_call.call("memd/judge/open")
        print_result(found, _format_open(found))
        return
    ids, relation = _read_judgment(words)
    if undo and relation is not None:
        daemon_call.fail(f"--undo takes no relation; leave out {relation!r}")
    if not undo and relation is None:
        daemon_call.fail(f"give a relation: {', '.join(RELATION_WORDS)}")
    if not undo and not reason and daemon_call.find_agent() is not None:
        daemon_call.fail("say in a few words why: --reason WHY; `memd why` shows it")
    done = daemon_call.call(
        "memd/judge", id=ids[0], other=ids[1], relation=relation, reason=reason, undo=undo
    )
    print_result(done, _format_judged(done))


def _read_judgment(words: list[str]) -> tuple[list[int], str | None]:
    """Read `12 supersedes 15`, `12 15 supersedes`, `15 replaced-by 12` or, as memd prints it, `12 says the same as 15`."""
    numbers = [word for word in words if daemon_call.is_id(word)]
    said = " ".join(word for word in words if word not in numbers)
    relation, is_reversed = _read_relation(said)
    if said and relation is None:
        daemon_call.fail(
            f"{said!r} is neither an id such as 12 nor a relation: {', '.join(RELATION_WORDS)}"
        )
    ids = daemon_call.read_ids(numbers)
    if len(ids) != 2:  # noqa: PLR2004  # a judgment is about a pair
        first = ids[0] if ids else "ID"
        daemon_call.fail(f"give two memories: `memd judge {first} {relation or 'RELATION'} OTHER`")
    return ids[::-1] if is_reversed else ids, relation


def _read_relation(said: str) -> tuple[str | None, bool]:
    """(the relation that these words name, whether the second memory is it to the first: `replaced by`)."""
    parts = re.findall(r"[^\W_]+", said.casefold())
    verbs = [part for part in parts if part not in _JOINING_WORDS]
    stems = [stem for verb in verbs for stem in _RELATION_STEMS if verb.startswith(stem)]
    if len(verbs) != 1 or not stems:
        return None, False
    return _RELATION_STEMS[stems[0]], "by" in parts


def _format_open(found: dict[str, Any]) -> Iterator[str]:
    """Format the pairs that contradict each other, each with the commands that resolve it."""
    if not found["count"]:
        yield "nothing to judge: no two memories contradict each other"
        return
    for newer, older in found["pairs"]:
        yield output.format_headline(older)
        yield output.format_headline(newer)
        for one, two in ((older, newer), (newer, older)):
            command = daemon_call.format_command(f"judge {one['id']} supersedes {two['id']}")
            yield f"    if #{one['id']} holds: {command}"
    left = found["count"] - len(found["pairs"])
    yield f"{output.plural(found['count'], 'pair')} to judge" + (
        f", {left:,} not shown" if left else ""
    )


def _format_judged(done: dict[str, Any]) -> Iterator[str]:
    number, other = f"#{done['id']}", f"#{done['other']}"
    if done["outcome"] == "undone":
        yield f"undone: {output.one_line(done['was'])} between {number} and {other}"
    elif done["outcome"] == "asked":
        asked = daemon_call.format_command(f"judge {done['id']} RELATION {done['other']}")
        yield f"{number} and {other} are both shown until the user himself says `{asked}`"
    else:
        already = " already" if done["outcome"] == "unchanged" else ""
        yield f"{number} {RELATION_WORDS[done['relation']]} {other}{already}"
    still_hidden_by = dict(done["stays"])
    for hidden in done["hidden"]:
        if hidden in still_hidden_by:
            yield f"  #{hidden} stays hidden, superseded by #{still_hidden_by[hidden]}"
        else:
            why = daemon_call.format_command(f"why {hidden}")
            yield f"  #{hidden} is hidden; `{why}` shows it"
    yield from (f"  #{shown} is visible again" for shown in done["shown"])


# ── Lists ────────────────────────────────────────────────────────────────────────────────────────


def _list_waiting(found: Mapping[str, Any], terminal: Screen) -> Iterator[str]:
    if not found["memories"]:
        yield "nothing to look at: no rule, preference, decision, fact or note was learned since you last looked"
        return
    yield from _group(found["memories"], terminal)
    left = found["count"] - len(found["memories"])
    yield ""
    yield f"{output.plural(found['count'], 'memory')} to look at" + (
        f", {left:,} not shown" if left else ""
    )
    command = daemon_call.format_command("review --keep ID --reject ID --undo ID")
    yield f"{command} says what is right; in a terminal {daemon_call.format_command('review')} asks one by one"


def _list_rejected(found: Mapping[str, Any]) -> Iterator[str]:
    for one in found["memories"]:
        again = output.plural(one["repeats"], "time") if one["repeats"] else ""
        when = output.format_date(one["rejected_at"])
        yield f"#{one['id']} rejected {when}{f', came again {again}' if again else ''}: {output.one_line(one['title'])}"
    if not found["memories"]:
        yield "you have rejected nothing"
    else:
        yield f"{daemon_call.format_command('review --undo ID')} takes a rejection back"


def _group(memories: list[Memory], terminal: Screen) -> Iterator[str]:
    last: object = ""
    for one in memories:
        if one["session"] != last:
            yield from _name_session(one, terminal)
            last = one["session"]
        yield from _describe(one, terminal)


def _name_session(one: Memory, terminal: Screen) -> Iterator[str]:
    title = output.one_line(one["session_title"] or one["session"] or "outside of a session")
    yield ""
    yield terminal.paint(f"{output.one_line(one['project'])}: {title}", "dim")


def _describe(one: Memory, terminal: Screen) -> Iterator[str]:
    """A memory with its proof: what it says, whose word it is and why, who said what when, where it holds."""
    width = min(terminal.width, _TEXT_WIDTH_MAX)
    headline = f"#{one['id']} {output.one_line(one['text'] or one['title'])}"
    yield from output.wrap(headline, width)
    word = f"{one['kind']}, {one['authority']}, {output.format_time(one['at'])}"
    yield _label("", terminal.paint(word, "dim"))
    is_answer = str(one["rule"]).startswith("answer:")
    for number, quote in enumerate(one["proof"]):
        other = "you, in a dialogue" if is_answer and not number else "the agent or a tool"
        who = _SPEAKERS.get(quote["kind"], other)
        text = f"“{output.one_line(quote['quote'])}” ({who}, {output.format_time(quote['at'])})"
        yield from _wrap("said", text, width)
    if one["about"]:
        yield from _wrap("about", f"“{output.one_line(one['about'])}”", width)
    if one["quoted"]:
        doubt = output.one_line(one.get("unproved") or "claimed, not proved")
        yield from _wrap("quoted", f"“{output.one_line(one['quoted'])}”: {doubt}", width)
    rest = (
        ("why", one["why"]),
        *(("check", check) for check in one["checks"]),
        ("holds for", one["scope"]),
        ("because", one["because"]),
        ("but", one.get("said_since")),
    )
    for name, told in rest:
        if told:
            yield from _wrap(name, output.one_line(told), width)
    if one.get("doubt"):
        yield _label("", f"{one['doubt']}: does it still hold?")
    for other in one["elsewhere_too"]:
        where = (
            f"#{other['id']} in {output.one_line(other['project'])} says the same: hold everywhere?"
        )
        yield from _wrap("also", where, width)


def _wrap(name: str, text: str, width: int) -> Iterator[str]:
    for line in output.wrap(text, width - _LABEL_WIDTH):
        yield _label(name, line)
        name = ""


def _label(name: str, text: str) -> str:
    return "  " + output.format_row(name, text, _LABEL_WIDTH - 2)


# ── One by one ───────────────────────────────────────────────────────────────────────────────────


class _Dialogue:
    """Shows one memory after the other, and does what a key says."""

    def __init__(self, found: Mapping[str, Any], terminal: Screen) -> None:
        self._memories: list[Memory] = found["memories"]
        self._terminal = terminal
        self._done: list[tuple[int, int]] = []
        """(place in the list, number) of what was answered, so that it can be undone."""

    def run(self) -> None:
        """Go through the list until its end or `q`."""
        at, shown = 0, -1
        while at < len(self._memories):
            if at != shown:
                self._show(at)
                shown = at
            key = _read_key()
            if key in {"q", "\x03", "\x04", "\x1b", ""}:
                break
            after = self._act_on_key(key.lower(), at)
            shown = -1 if after < at else shown
            at = after
        left = len(self._memories) - at
        print(
            f"\n{len(self._done):,} looked at"
            + (f", {left:,} left for another time" if left else "")
        )

    def _show(self, at: int) -> None:
        one = self._memories[at]
        if at == 0 or self._memories[at - 1]["session"] != one["session"]:
            print("\n".join(_name_session(one, self._terminal)))
        print("\n".join(_describe(one, self._terminal)))
        everywhere = ", g everywhere" if one["elsewhere_too"] else ""
        help_ = f"[{at + 1}/{len(self._memories)}] k keep, e edit, r reject{everywhere}, n next, u undo, q quit"
        print(self._terminal.paint(help_, "dim"), end=" ", flush=True)

    def _act_on_key(self, key: str, at: int) -> int:
        """Do what a key says of the memory at this place; the place of the next."""
        number = self._memories[at]["id"]
        if key == "u":
            return self._undo(at)
        if key == "e":
            return self._edit(at)
        if key not in _KEYS or (key == "g" and not self._memories[at]["elsewhere_too"]):
            return at
        (done,) = _send_review(_KEYS[key], [number])
        self._done.append((at, number))
        print(_format_done(done))
        return at + 1

    def _undo(self, at: int) -> int:
        if not self._done:
            print("nothing to undo")
            return at
        before, number = self._done.pop()
        (done,) = _send_review("undo", [number])
        print(_format_done(done))
        return before

    def _edit(self, at: int) -> int:
        try:
            number = edit_by_hand(self._memories[at]["id"], "in the review")["id"]
        except SystemExit:  # it has said why
            return at
        self._done.append((at, number))
        _send_review("keep", [number])
        print(f"#{number} says it in your words, and is kept")
        return at + 1


def _read_key() -> str:
    """One key of the terminal, without waiting for the end of a line; empty at its end, a blank for arrows and the like."""
    import select
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor, termios.TCSADRAIN)
        key = os.read(descriptor, 1)
        if key == _ESCAPE and select.select([descriptor], [], [], 0)[0]:
            os.read(descriptor, 16)
            return " "
        return key.decode("ascii", "replace")
    except KeyboardInterrupt:
        return ""
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
