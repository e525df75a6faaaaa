"""`memd notes`: have a model read past sessions and note what will hold."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from typer import Option

from memd.cli import daemon_call, output
from memd.cli.terminal import DryRunOption, JsonOption, YesOption, confirm, print_result, waiting

_STEP_S = 660.0
"""Seconds that one stretch may take; a writer has 600 at most."""
_CHARACTERS_PER_TOKEN = 4


def run_notes(  # noqa: PLR0913, PLR0917  # one parameter per option
    past: bool = Option(
        False, "--past", help="Read past sessions; what would be sent is told first."
    ),  # one option a line
    project: str = Option("current", help="Of this project: a name, a directory, current or all."),
    calls: int = Option(
        0, min=0, metavar="N", help="Stop after N calls of the model; 0: read all."
    ),  # as above
    again: bool = Option(False, "--again", help="Read again what a useless answer left unread."),
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Note what past sessions say that will hold, with the writer of config.toml.

    The model reads them stretch by stretch; each note is proved by the session's record, as those that agents make are.
    Interrupt it whenever you like: the same command goes on where it was.
    """
    if not past:
        daemon_call.fail("say `memd notes --past`")
    where: dict[str, Any] = {"project": daemon_call.read_project(project), "directory": daemon_call.current_directory()}  # fmt: skip
    plan = daemon_call.call("memd/notes/past", again=again, **where)["plan"]
    if dry_run or not plan["calls"]:
        print_result(plan, _format_plan(plan, calls), as_json=as_json)
        return
    if not as_json:
        print("\n".join(_format_plan(plan, calls)))
    if plan["obstacle"]:
        daemon_call.fail(plan["obstacle"])
    if not yes:
        confirm("Send this?", "nothing was sent")
    steps = []
    try:
        for step in _read_all(where, calls or plan["calls"], again=again):
            steps.append(step)
            if not as_json:
                print("\n".join(_format_step(step)))
    except KeyboardInterrupt:
        print("interrupted; the same command goes on here")
        raise
    finally:
        if steps:
            print_result({"steps": steps}, _format_total(steps), as_json=as_json)


def _read_all(where: dict[str, Any], calls: int, *, again: bool) -> Iterator[dict[str, Any]]:
    for number in range(calls):
        with waiting("the model reads"):
            answer = daemon_call.call(
                "memd/notes/past", _STEP_S, dry_run=False, again=again and number == 0, **where
            )
        if answer["step"] is None:
            return
        yield answer["step"]


def _format_plan(plan: dict[str, Any], calls: int) -> Iterator[str]:
    if not plan["calls"]:
        yield "nothing to read: every past session was read, or may not be sent"
    else:
        tokens = plan["characters"] // _CHARACTERS_PER_TOKEN
        yield (
            f"{output.plural(plan['sessions'], 'past session')}: {output.plural(plan['calls'], 'call')} of"
            f" {output.one_line(plan['model'])}, {plan['characters']:,} characters (some {tokens:,} tokens) to it"
        )
        yield "sent is what you and the agent said, without what is private or switched off; the price is the model's"
        if calls and calls < plan["calls"]:
            yield f"after {output.plural(calls, 'call')} it stops"
    if plan["failed"]:
        yield f"{output.plural(plan['failed'], 'stretch')} had a useless answer: `--again` reads on from there"


def _format_step(step: dict[str, Any]) -> Iterator[str]:
    counts = output.format_counts(step["outcomes"]) if step["outcomes"] else "nothing to note"
    proved = f", {step['proved']:,} in your words" if step["proved"] else ""
    yield f"{output.one_line(step['session'])[:12]}: {counts}{proved}; {step['left']:,} left"
    yield from (f"    left out: {output.one_line(problem)}" for problem in step["problems"])


def _format_total(steps: list[dict[str, Any]]) -> Iterator[str]:
    total: Counter[str] = Counter()
    for step in steps:
        total.update(step["outcomes"])
    yield f"{output.plural(len(steps), 'call')}: {output.format_counts(total) if total else 'nothing noted'}"
