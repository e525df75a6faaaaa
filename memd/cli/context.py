"""`memd context` and `memd injected`: what memd shows agents of its own accord."""

import re
from collections.abc import Iterator
from typing import Any

from typer import Argument, Option

from memd.cli import daemon_call, output
from memd.cli.completion import complete_from, complete_projects
from memd.cli.terminal import JsonOption, print_result

_NUMBER = re.compile(r"- #(\d+) ")
_HELD = "held back, to compare with other sessions: inject.holdout"
TOKEN_CHARACTERS = 4
MOMENTS = ("startup", "resume", "clear", "compact", "prompt")


def run_context(  # noqa: PLR0913  # one parameter per option
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
    as_json: JsonOption = False,
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
    print_result(context, _format_context(context, explain=explain), as_json=as_json)


def _format_context(context: dict[str, Any], *, explain: bool) -> Iterator[str]:
    if context["text"] is None:
        yield f"nothing would be injected: {output.one_line(context['reason'])}"
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
        None, metavar="[SESSION]", help="The start of an id. Default: the latest session here."
    ),
    *,
    as_json: JsonOption = False,
) -> None:
    """List what memd has injected into a session, when and why, and what was used of it, oldest first."""
    found = daemon_call.call(
        "memd/injected", session=session, directory=daemon_call.current_directory()
    )
    print_result(found, _format_injections(found), as_json=as_json)


def _format_injections(found: dict[str, Any]) -> Iterator[str]:
    title = output.one_line(found["title"] or "without a prompt")
    yield f"session {found['session']}: {title}"
    injections, texts = found["injections"], found["texts"]
    if not injections and not texts:
        yield "nothing was injected"
        return
    is_held = bool(injections) and all(one.get("held") for one in injections)
    yield _HELD if is_held else _sum_up(injections, texts)
    whys = {(one["moment"], one["id"]): list(_explain(one)) for one in injections}
    for told in texts:
        yield f"{output.format_time(told['at'])}  {told['moment']}"
        for line in told["text"].splitlines():
            yield f"  {output.clean(line)}"
            number = _NUMBER.match(line)
            yield from whys.pop((told["moment"], int(number[1])), ()) if number else ()
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
