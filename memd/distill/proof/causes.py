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
_TEXTS_AFTER_MAX = 2
"""Texts after a failed run that are about it, where nothing shows an end."""
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
    r"\b(?:was|were|had|did)(?:n['’]?t| not)\b|\b(?:was|were) (?:\w+ )?(?:missing|wrong|undefined|never|only|still|stale|not|too|using|reading|writing|looking|hard-?coded)\b|\bused to\b|\b(?:raised|threw|crashed|broke|hung|led to|resulted in|made)\b|\bturned .{1,30} into\b",
    re.IGNORECASE,
)
_LEADS_IN = compile_lazily(
    r"^\W*(?:fixed|done|resolved|solved|found it)\s*[:.!—–-]+\s*", re.IGNORECASE
)
_DROPS = compile_lazily(
    r"^\W*(?:wait|hm+|no,|oops|actually,? (?!let)|(?:it|that|this)(?: is| was|['’]s) not|that (?:won|did|does)(?:n['’]?t| not))",
    re.IGNORECASE,
)
"""What was said before it was wrong."""
_PROPOSES = compile_lazily(
    r"\b(?:cleanest|best|simplest|easiest|right|proper|better|safest) (?:approach|way|fix|solution|option|thing)\b|\b(?:approach|solution|fix|workaround) (?:is|would|will|here|was to)\b"
    r"|\b(?:correctly|successfully|properly) \w+s\b",
    re.IGNORECASE,
)
"""What is to be done, or that it is well."""
_HEDGED = compile_lazily(
    r"\b(?:might|may|maybe|perhaps|likely|probably|possibly|could be|seems?|appears?|suspect|i think|i believe|i guess|not sure|unclear|presumably|hypothes\w+|would|need to)\b|\?|\bwait,",
    re.IGNORECASE,
)
_UNCONCERNED = compile_lazily(
    r"\b(?:pre-?existing|unrelated|not related|existed before|already (?:failing|failed|broken)|flaky)\b"
    r"|\b(?:did(?:n['’]?t| not)|never) (?:touch|change|cause|introduce)|\bnot (?:caused|introduced) by\b",
    re.IGNORECASE,
)
"""What was wrong beside it: no cause of this."""
_TEACHES = compile_lazily(
    r"\b(?:unstable|deprecated|experimental|unsupported|not supported|feature flags?|reserved|sandbox\w*|upstream|third[- ]party|by default|peer dependenc\w+|breaking change|environment variables?|env vars?"
    r"|does(?:n['’]?t| not) support|(?:not|isn['’]?t|aren['’]?t) available|(?:this|that|the|our|installed|current|newer|older|your) (?:[\w.@/-]+ )?version|v?\d+\.\d+|edition)\b",
    re.IGNORECASE,
)
"""Something outside the code at hand, which holds for the next change, too."""


def find_cause(chain: FailureChain, story: Story) -> str:
    """Why the checks of a chain failed, as last established; empty if nothing said names a cause."""
    about = _list_subjects(chain)
    established = max(_list_established(chain, story, about), default=None)
    if established is not None:
        return _join(list(established[-1]))
    closing = [
        one
        for said_last in story.answers[-1:]
        for one in _read_statements(said_last)
        if (_NAMES_CAUSE.search(one) or _WAS_WRONG.search(one)) and about & _list_stems(one)
    ]
    return _join(closing)


_Established = tuple[bool, int, int, tuple[str, ...]]


def _list_established(
    chain: FailureChain, story: Story, about: frozenset[str]
) -> Iterator[_Established]:
    """(whether it is called a cause, stems shared with the errors, time, sentences) of what was said after a failed run."""
    said = _list_said(chain, story)
    lines = _list_stems(_list_lines(chain))
    for place, text in enumerate(said):
        later = [*said[place + 1 :], *story.answers]
        if any(_DROPS.match(one.text) for one in said[place + 1 :]):
            continue
        found = tuple(
            one
            for one in _read_statements(text)
            if _explains(one, about, chain)
            and not any(is_refuted(one, other.text) for other in later)
        )
        if found:
            told = " ".join(found)
            shared = len(lines & _list_stems(told))
            yield _NAMES_CAUSE.search(told) is not None, shared, text.at, found


def _list_said(chain: FailureChain, story: Story) -> list[Utterance]:
    """What the agent said after each failed run before it ran a check again, and before the pass."""
    ends = [run.at for run in story.commands if command_output.is_check(run.command)]
    passed = chain.passed or chain.excused
    found: list[Utterance] = []
    for run in chain.failures:
        end = min((at for at in ends if at > run.at), default=story.last_at + 1)
        if passed:
            end = max(end, passed.at) if run is chain.failures[-1] else end
        said = [one for one in story.texts if run.at <= one.at < end and one not in found]
        found += said if passed else said[:_TEXTS_AFTER_MAX]
    return found


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
    return len(stems - _list_stems(_list_lines(chain))) >= _NEW_STEMS_MIN


def _list_lines(chain: FailureChain) -> str:
    return " ".join(command_output.read_error(run.output).line for run in chain.failures)


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
            if _ANNOUNCES.match(spoken) or any(
                pattern.search(spoken) for pattern in (_HEDGED, _PROPOSES, _UNCONCERNED)
            ):
                continue
            if _NAMES_CAUSE.search(spoken) or not _REPORTS.search(spoken):
                yield spoken
