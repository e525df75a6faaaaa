"""What a turn leaves open: what its closing message says is not done, and a check whose last run failed. Pure."""

import re
from collections.abc import Iterator
from itertools import islice

from memd.distill import sentences
from memd.distill.episodes import Story
from memd.distill.outcome.statements import read_statements
from memd.distill.proof import command_output, run_outcome
from memd.patterns import compile_lazily
from memd.text import one_line

_MAX = 3
_CHARACTERS = 240
_DONE = r"(?:done|implemented|fixed|tested|covered|handled|verified|wired(?: up)?|addressed|merged|pushed|deployed|committed|included|supported|migrated|updated|finished|resolved|released)"
_OPEN = compile_lazily(
    rf"\b(?:is|are|has|have|do|does)(?: not|n['’]?t) (?:been )?(?:\w+ ){{1,3}}yet\b|\bnot yet (?:been )?{_DONE}\b"
    r"|\bstill (?:to do|to be done|needs? to|need(?:s|ed)?\b|fail(?:s|ing)?\b|open\b|missing\b|broken\b|unresolved\b|to-?do\b|pending\b|outstanding\b)"
    r"|\b(?:is|are|was|were|remains?|i(?:'ve| have)?) left (?:for later|open|undone|unfixed|unstaged|uncommitted|out for now|as a follow-?up)\b|\bleft for later\b"
    r"|\b(?:remains?|remaining) (?:to be done|to do|open|unsolved|unresolved|work|steps? (?:is|are)|issues? (?:is|are))\b"
    r"|\b(?:deferred|postponed) (?:until|for|to (?:a later|the next))\b|\bout of scope for (?:now|this)\b|\bto be done (?:later|in a)\b|\b(?:as|in|for) a follow-?up\b",
    re.IGNORECASE,
)
_NONE = compile_lazily(
    r"\b(?:no|nothing|none|never|without|all|every\w*|if|when|whether|would|could)\b.{0,40}\b(?:left|still|remain\w*|open|missing|yet)\b"
    r"|^(?:before|previously|the (?:problem|issue|bug)|what was|because)\b",
    re.IGNORECASE,
)


def list_open_ends(story: Story) -> list[str]:
    """What is left to do after a turn, in the agent's words or by the check that failed last; a few lines at most."""
    return [*islice(_list_said(story.answer), _MAX), *_list_failing(story)]


def _list_said(answer: str) -> Iterator[str]:
    for one in read_statements(answer):
        is_open = _OPEN.search(one.text) and not _NONE.search(one.text)
        if is_open and not sentences.is_question(one.text):
            yield one_line(one.text, _CHARACTERS)


def _list_failing(story: Story) -> Iterator[str]:
    """The last check of the turn, if it failed and nothing was changed afterwards."""
    checks = [one for one in story.commands if command_output.is_check(one.command)]
    last = checks[-1] if checks else None
    if last is None or not run_outcome.is_failing(last):
        return
    if not any(edit.at > last.at for edit in story.edits):
        line = command_output.read_error(last.output).line
        yield f"`{one_line(last.command, 120)}` failed when it was run last" + (
            f": {line}" if line else ""
        )
