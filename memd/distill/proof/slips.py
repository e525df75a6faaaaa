"""Which failures a colleague would not want to hear of: what an agent's own hand caused and mended at once. Pure."""

import re

from memd.distill.edits import FileEdit
from memd.distill.episodes import Story
from memd.distill.proof import command_output, cures, worth
from memd.distill.proof.chains import REWRITTEN, SUPPRESSED, UNMENDED, FailureChain
from memd.distill.proof.silencing import is_configuration
from memd.patterns import compile_lazily

_ASKS_FOR_FIX = compile_lazily(
    r"\b(?:fix(?:es|ed|ing)?|bug|bugs|why|broken?|breaks|crash\w*|fails?|failed|failing|failure|error|errors"
    r"|exception|wrong|debug|traceback|stack trace|regression|hangs?|flaky|40\d|50\d"
    r"|(?:does|is|are|did)(?: not|n't)|(?<=\w )(?<!please )do(?: not|n't)|can(?: not|'t|not)|won't|no longer works?)\b",
    re.IGNORECASE,
)

_BLAMED = compile_lazily(r"(\S+?\.\w{1,5})[:(]\d+")
_REQUEST_CHARACTERS = 800
_ERROR_NAME = compile_lazily(r"\b[A-Z]\w*(?:Error|Exception|Panic)\b|\b[A-Z]{1,6}\d{3,5}\b")
"""`KeyError`, `TS2339`, `E0277`."""


def is_slip(chain: FailureChain, story: Story) -> bool:
    """Whether a failure came of what the turn had just changed and went away in it, and teaches nothing that lasts."""
    if chain.is_other_way:
        return not cures.teaches_a_call(chain.failures[-1])
    if is_asked_for(chain, story):
        return False
    own = _list_own_edits(chain, story)
    if not own or _was_told_between(chain, story) or not _is_blamed(own, chain):
        return False
    if chain.rule == UNMENDED:
        # It went on with its work, and what came of the check nobody saw.
        last = chain.failures[-1]
        return any((e.at, e.event_id) > (last.at, last.event_id) for e in chain.edits)
    return chain.rule in {REWRITTEN, SUPPRESSED} or _is_mended_by_hand(chain, story)


def _is_mended_by_hand(chain: FailureChain, story: Story) -> bool:
    """Whether changes of code alone mended it, and its cause lies in that code."""
    if not chain.is_mended or not all(map(cures.is_by_hand, chain.steps)):
        return False
    is_code = not any(is_configuration(edit.path) for edit in chain.edits)
    is_told = _is_told(chain, story)
    return is_code and not is_told


def _is_told(chain: FailureChain, story: Story) -> bool:
    """Whether the closing message names the error: the agent holds it worth a word."""
    lines = (command_output.read_error(run.output).line for run in chain.failures)
    names = {match[0] for line in lines if (match := _ERROR_NAME.search(line))}
    return any(name in story.answer for name in names)


def _is_blamed(own: list[FileEdit], chain: FailureChain) -> bool:
    """Whether the last error may be of these changes: it names one of their files, or none at all."""
    error = command_output.read_error(chain.failures[-1].output)
    blamed = {path.rsplit("/", 1)[-1] for path in error.files}
    if located := _BLAMED.match(error.line):
        blamed.add(located[1].rsplit("/", 1)[-1])
    return not blamed or any(edit.path.rsplit("/", 1)[-1] in blamed for edit in own)


def _list_own_edits(chain: FailureChain, story: Story) -> list[FileEdit]:
    """What the piece of work had changed before the check failed, since the user last spoke of a failure."""
    first = chain.failures[0]
    before = [said for said in story.prompts if said.at <= first.at]
    begun = max(
        (said.at for said in before[1:] if _asks_for_fix(said.text)),
        default=min((said.at for said in before), default=first.at),
    )
    return [
        e for e in story.edits if begun <= e.at and (e.at, e.event_id) < (first.at, first.event_id)
    ]


def _was_told_between(chain: FailureChain, story: Story) -> bool:
    """Whether the user said something between the failure and the pass, or what was changed next."""
    passed = chain.passed or chain.excused
    later = (edit.at for edit in chain.edits if edit.at > chain.failures[-1].at)
    end = passed.at if passed else next(later, story.last_at)
    return any(chain.failures[0].at < said.at <= end for said in story.prompts)


def is_asked_for(chain: FailureChain, story: Story) -> bool:
    """Whether the user asked about the failure: it happened before anything was changed."""
    if not _asks_for_fix(story.prompt):
        return False
    first = (chain.failures[0].at, chain.failures[0].event_id)
    return not any((edit.at, edit.event_id) < first for edit in story.edits)


def _asks_for_fix(prompt: str) -> bool:
    if len(prompt) > _REQUEST_CHARACTERS:
        # Of a plan or a log that was pasted, the request stands at an end.
        prompt = f"{prompt[: _REQUEST_CHARACTERS // 2]}\n{prompt[-_REQUEST_CHARACTERS // 2 :]}"
    return _ASKS_FOR_FIX.search(prompt) is not None


def is_news(chain: FailureChain, story: Story) -> bool:
    """Whether a colleague would want to hear of it, with what mended it or that it still stands."""
    last = chain.failures[-1]
    if all(map(worth.is_about_style, chain.failures)) and not is_asked_for(chain, story):
        return False
    if chain.rule == UNMENDED:
        return worth.still_stands(last)
    if chain.is_mended or chain.objection:
        return True
    if chain.is_other_way:
        # A look at what is not there is no failure; a program that is not there is one.
        is_found = cures.was_not_found(last) or not worth.is_probe(last.command)
        return is_found and cures.refused_to_start(last)
    # It passed as it was: only a test that fails at times is worth a word.
    return command_output.names_failed_tests(last.output)
