"""`memd context` and `memd injected`: what memd shows agents of its own accord."""

from collections.abc import Iterator
from typing import Any

from typer import Argument, Option

from memd.cli import daemon_call, output
from memd.cli.completion import complete_from, complete_projects
from memd.cli.terminal import JsonOption, print_result

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
    if not found["injections"]:
        yield "nothing was injected"
        return
    told = [one for one in found["injections"] if not one.get("held")]
    used = sum(one.get("outcome") == "used" for one in told)
    tokens = output.plural(sum(one["tokens"] for one in told), "token")
    yield (
        f"{output.plural(len(told), 'memory')}, about {tokens}, {used:,} used"
        if told
        else "held back, to compare with other sessions: inject.holdout"
    )
    last = None
    for injection in found["injections"]:
        moment = injection["at"], injection["moment"]
        if moment != last:
            yield f"{output.format_time(injection['at'])}  {injection['moment']}"
        last = moment
        title = output.one_line(injection["title"])
        yield f"  #{injection['id']} {injection['kind']}  {title}"
        yield f"    {output.one_line(injection['reason'])}"
        outcome, evidence = injection.get("outcome"), injection.get("evidence")
        if outcome in {"used", "overruled", "ignored"}:
            yield f"    {outcome}" + (f": {output.one_line(evidence)}" if evidence else "")
