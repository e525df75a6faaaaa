"""Why something failed, in the agent's own words about that error. Pure.

Only what names a cause is one: a sentence said right after a failed run and before the pass, about something that the
error or the change names, or one of the closing message that says outright what was wrong. A summary of a turn is none.
"""

import re
from collections.abc import Iterator

from memd.distill import sentences
from memd.distill.dialogue.findings import is_refuted
from memd.distill.dialogue.offers import strip_markup
from memd.distill.episodes import Story, Utterance
from memd.distill.proof import command_output
from memd.distill.proof.chains import FailureChain
from memd.distill.proof.disputes import GENERIC_STEMS
from memd.patterns import compile_lazily
from memd.text import content_stems, is_stop_word, one_line, words

_CAUSE_CHARACTERS = 400
_SENTENCES_MAX = 2
_WORDS_MIN, _WORDS_MAX = 2, 60
_NEW_STEMS_MIN = 2
"""Stems of a cause that the error itself does not have."""
_OUTPUT_CHARACTERS = 4_000
_ANNOUNCES = compile_lazily(
    r"^\W*(?:(?:so|now|but|and|ok(?:ay)?|good|great|perfect|first|next|then|also|finally|just|alright|right)\b[\s,.!—–-]*)*"
    r"(?:let me|let['’]?s|let us|i(?:['’]ll| will| need| should| must| can| could| have to| want|['’]m going|['’]d| am going)|we(?:['’]ll| will| need| should| must| can| could| have to)"
    r"|need(?:s)? to|time to|going to|fix(?:ing)?\b|updat(?:e|ing)\b|run(?:ning)?\b|check(?:ing)?\b|chang(?:e|ing)\b|add(?:ing)?\b|remov(?:e|ing)\b|try(?:ing)?\b|verify(?:ing)?\b|replac(?:e|ing)\b|use\b|using\b|mov(?:e|ing)\b|rewrit(?:e|ing)\b)",
    re.IGNORECASE,
)
"""What is about to be done."""
_REPORTS = compile_lazily(
    r"\b(?:pass(?:es|ed|ing)?|succeed(?:s|ed)?|compiles?|builds?|works?|clean(?:ly)?|green|fixed|resolved|done|complete[d]?)\b(?! (?:only|if|when|unless))|\b(?:\d+|one|two|three|four|five|some|several|a few|more|another|remaining|these|the) (?:\w+ )?(?:fail(?:ure|ures|ed)?|errors?|tests? fail(?:ed|s)?|issues?)\W*$",
    re.IGNORECASE,
)
"""How a run went."""
_NAMES_CAUSE = compile_lazily(
    r"\b(?:because|since|due to|caused by|comes? from|root cause|the (?:\w+ ){0,2}(?:cause|reason|culprit|problem|issue|bug) (?:is|was|here is|here was)|which is why|that['’]?s why|turns out)\b",
    re.IGNORECASE,
)
_IS_WRONG = compile_lazily(
    r"\b(?:is|are|was|were|has|have|had|does|do|did|can|could)(?:n['’]?t| not)\b|\b(?:cannot|never|missing|lacks?|lacked|no longer|still|wrong|incorrect|undefined|private|stale|outdated|unstable|deprecated|instead of|without|only|already|before|expects?|expected|requires?|required|needs?|needed|must|depends?|conflicts?|shadows?|overrid\w*|overwr\w*|collides?|races?|mismatch\w*|leftover|pre-?existing|ignored|ignores|cached|hard-?coded|different|both|twice|duplicate\w*|too (?:many|long|short|large|small|early|late))\b|\b(?:drops?|loses?|returns?|uses?|reads?|gives?|gets?|skips?|sets?|relies|references?|points? (?:at|to)|runs? (?:before|after|in|from)|wants?|moved|renamed|removed|changed|picks? up|picking up)\b",
    re.IGNORECASE,
)
"""What tells a state that can be wrong."""
_WAS_WRONG = compile_lazily(
    r"\b(?:was|were|had|did)(?:n['’]?t| not)\b|\b(?:was|were) (?:\w+ )?(?:missing|wrong|undefined|never|only|still|stale|not|too|using|reading|writing|looking|hard-?coded)\b|\bused to\b",
    re.IGNORECASE,
)
_LEADS_IN = compile_lazily(
    r"^\W*(?:fixed|done|resolved|solved|found it)\s*[:.!—–-]+\s*", re.IGNORECASE
)
_HEDGED = compile_lazily(
    r"\b(?:might|may|maybe|perhaps|likely|probably|possibly|could be|seems?|appears?|suspect|i think|i believe|i guess|not sure|unclear|presumably|hypothes\w+|would)\b|\?",
    re.IGNORECASE,
)
_TEACHES = compile_lazily(
    r"\b(?:unstable|deprecated|experimental|unsupported|not supported|feature flags?|reserved|sandbox\w*|upstream|third[- ]party|by default|peer dependenc\w+|breaking change|environment variables?|env vars?"
    r"|does(?:n['’]?t| not) support|(?:not|isn['’]?t|aren['’]?t) available|(?:this|that|the|our|installed|current|newer|older|your) (?:[\w.@/-]+ )?version|v?\d+\.\d+|edition)\b",
    re.IGNORECASE,
)
"""Something outside the code at hand, which holds for the next change, too."""


def find_cause(chain: FailureChain, story: Story) -> str:
    """Why the checks of a chain failed, as last established; empty if nothing said names a cause."""
    about = _list_subjects(chain)
    end = chain.passed.at if chain.passed else story.last_at + 1
    said = [one for one in story.texts if chain.failures[0].at <= one.at < end]
    for text in reversed(said):
        found = [one for one in _read_statements(text) if _explains(one, about, chain)]
        later = [one.text for one in (*said, *story.answers) if one.at > text.at]
        found = [one for one in found if not any(is_refuted(one, other) for other in later)]
        if found:
            return _join(found)
    closing = [
        one
        for said_last in story.answers[-1:]
        for one in _read_statements(said_last)
        if (_NAMES_CAUSE.search(one) or _WAS_WRONG.search(one)) and about & _list_stems(one)
    ]
    return _join(closing)


def teaches(cause: str) -> bool:
    """Whether a cause lies outside the code at hand, so that the next change meets it again."""
    return _TEACHES.search(cause) is not None


def _join(found: list[str]) -> str:
    return one_line(" ".join(found[:_SENTENCES_MAX]), _CAUSE_CHARACTERS)


def _list_subjects(chain: FailureChain) -> frozenset[str]:
    """Stems of what the errors, the failed runs and the changes that followed name."""
    outputs = (run.output[-_OUTPUT_CHARACTERS:] for run in chain.failures)
    paths = (edit.path.rsplit("/", 1)[-1] for edit in chain.edits)
    return _list_stems(" ".join((*outputs, *paths)))


def _list_stems(text: str) -> frozenset[str]:
    return frozenset(content_stems(text)) - GENERIC_STEMS


def _explains(sentence: str, about: frozenset[str], chain: FailureChain) -> bool:
    """Whether a sentence said after a failed run tells why: about what failed, and more than the error itself says."""
    stems = _list_stems(sentence)
    if not stems & about or not (_NAMES_CAUSE.search(sentence) or _IS_WRONG.search(sentence)):
        return False
    lines = " ".join(command_output.read_error(run.output).line for run in chain.failures)
    return len(stems - _list_stems(lines)) >= _NEW_STEMS_MIN


def _read_statements(said: Utterance) -> Iterator[str]:
    """The plain statements of a text: no announcement, no report of a run, no guess."""
    for line in said.text.split("\n"):
        if line.lstrip().startswith(("#", "|", ">", "```")):
            continue
        for sentence in sentences.split_sentences(line):
            spoken = _LEADS_IN.sub("", strip_markup(sentence))
            number = sum(not is_stop_word(word) for word in words(spoken))
            if not _WORDS_MIN <= number <= _WORDS_MAX or spoken.rstrip().endswith(":"):
                continue
            if _ANNOUNCES.match(spoken) or _HEDGED.search(spoken):
                continue
            if _NAMES_CAUSE.search(spoken) or not _REPORTS.search(spoken):
                yield spoken
