"""What the agent found out: a cause that it established, a limit of something outside, how things now are. Pure.

An agent is often sure and wrong, so only what it says plainly counts: of several causes in a turn the last, none with
a hedge, none that a later message of the session takes back.
"""

import itertools
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from memd.caches import cached
from memd.distill import sentences
from memd.distill.dialogue.offers import strip_markup
from memd.distill.episodes import Story, Utterance
from memd.distill.speech import verbs
from memd.text import content_stems, is_stop_word, words

_CLAIM_WORDS_MIN, _CLAIM_WORDS_MAX, _LIMIT_WORDS_MIN = 6, 60, 5
_TELLING_WORDS_MIN = 5
_REPEATED_SHARE = 0.5
_TEXT_CHARACTERS = 12_000
_TEXTS_CACHED = 256
"""Texts of which it is kept what they say: each is held against every claim of the turns before it."""
_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class AgentFinding:
    """A claim of the agent."""

    rule: str
    said: Utterance
    claim: str
    """One sentence, without markup."""
    passage: str
    """The claim with the sentences of its paragraph that follow it."""
    confidence: float


_WAY_ROUND = re.compile(
    r",?\s+(?:but|so|though|however)\s+(?:(?:then|instead|here|luckily|fortunately),?\s+)?(?:we|you|i|it is possible to|there(?:'s| is) a workaround)\b.*$|;\s+(?:we|you|i)\b.*$",
    re.IGNORECASE | re.DOTALL,
)
"""What is done about a limit: `…, but we can keep the rights small`."""
_FOUND = re.compile(
    r"^\W*(?:(?:i |now i |ah,? |ok,? |perfect[,!.] |great[,!.] )?(?:found|see|spotted|identified|understand|know|got|have)(?: now)?(?: the| it| a| what)?(?: \w+)?(?: (?:issue|bug|problem|cause|root cause|culprit|reason|smoking gun))?(?: (?:now|here|more clearly now|clearly now))?|that'?s (?:the|it|a)(?: \w+)?(?: (?:issue|bug|problem|cause|root cause|culprit|reason))?|(?:there it is|uh oh|aha|bingo|confirmed|root cause(?: found)?|good news|bad news|interesting|key finding))\W*$",
    re.IGNORECASE,
)
_CAUSE = re.compile(
    r"\b(?:the|that|this|both|one|another|real|actual|root)\s+(?:\w+\s+){0,2}?(?:issue|bug|problem|cause|culprit|reason|limitation)s?(?:\s+(?:here|with [^.]{1,40}|in [^.]{1,40}))?\s+(?:is|was|were|are|comes from|came from|is caused by|was caused by|lies in)\b(?! (?:fixed|gone|resolved|solved|clear|now|still|not|real|the same|only|that i|in (?:the )?(?:test|my)))"
    r"|\b(?:is|are|was|were) (?:being )?caused by\b|\bit turns out\b|\bturns out (?:that )?\w+|\b(?:this|that|it) (?:happens|happened|fails|failed|breaks|broke|occurs|occurred) because\b|\bwhich is why\b|\bthat'?s why\b",
    re.IGNORECASE,
)
_ON_WHAT_GROUNDS = re.compile(
    r"^(?:looking at|based on|judging by|after) [^,]{3,60},\s*", re.IGNORECASE
)
_CALLS_CAUSE = re.compile(
    r"\b(?:issue|bug|problem|cause|culprit|reason|limitation)\b", re.IGNORECASE
)
_OUTSIDE = r"(?:does(?:n'?t| not)|do(?:n'?t| not)|can(?:'?t|not| not)|won'?t|will not|is(?:n'?t| not)|are(?:n'?t| not)|has no|have no|no longer|never|always|only|silently|by default|regardless)"
_LIMIT = re.compile(
    rf"^(?!lines? \d)(?P<subject>(?:(?! - )[^,.;:–—]){{2,80}}?)\s+{_OUTSIDE}\s+(?P<verb>\w+).{{8,}}",
    re.IGNORECASE,
)
_RULES_OUT = re.compile(
    r"\b(?:support\w*|respect\w*|allow\w*|accept\w*|honou?r\w*|read\w*|load\w*|expand\w*|have|be (?:\w+ly )?(?:\w+-)?(?:scoped|used|changed|overridden|set|limited|nested|combined|disabled|altered|dropped|inlined)|overrid\w*|escalat\w*|get|gets|run\w*|fire\w*|trigger\w*|merge\w*|inherit\w*|preserv\w*|guarantee\w*|reliabl\w*|indicat\w*|work\w*|handl\w*|return\w*|propagat\w*|creat\w*|includ\w*|emit\w*|expos\w*|persist\w*|flush\w*|cache\w*|compar\w*|count\w*|appl\w*|require\w*|need\w*)\b",
    re.IGNORECASE,
)
_OVERRULES = re.compile(
    r"^(?!lines? \d)(?P<subject>(?:(?! - )[^,.;:–—]){2,80}?)\s+(?:overrides?|overwrites?|takes? precedence over|takes? priority|shadows?|requires?|needs? (?:an? |the |to be )|expects?|depends? on|are merged|merges?|is read-only|are read-only)\b.{6,}",
    re.IGNORECASE,
)
_OWN_SUBJECT = re.compile(
    r"^(?:\W*(?:so|but|and|also|actually|however|right|yes|no|well|note that|note|unfortunately|currently|now|here|then|since|because|in (?:this|that|our) case)\b[\s,:—–-]*)*(?:i|i'm|we|we're|you|it|it's|this|that|these|those|they|there|he|she|which|what|all (?:tests|\d+)|tests?|the (?:tests?|changes?|linter|build|code|fix|script|plan|output|file|function|change|diff|user|new|other|following|rest|main|only|next|first|second|key)|your|our|my|let|if|when|each|both|some|any|no|none|one|\d+)\b",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"^[^\w`]*(?:(?:based on [^,]{3,40}|so|but|and|also|actually|however|right|yes|no|well|note that|note|unfortunately|currently|exactly|uh oh!?)\b[\s,:.!—–-]*)*",
    re.IGNORECASE,
)
_ORDERS = re.compile(
    rf"^(?:{'|'.join(sorted(verbs.CONDUCT))}) (?:the|an?|this|that|these|those|it|your|each|all)\b|^(?:pr|mr|pull request|issue|ticket) #?\d",
    re.IGNORECASE,
)
"""`Make the match need a thought`: advice; `PR #7 is final`: how it stands today."""
_LOCATES = re.compile(r"^(?:at|in|on|with|here|there|introduced|reported|found)\b", re.IGNORECASE)
_CODE = re.compile(
    r"`[A-Za-z]*[a-z][A-Z]\w*|\w\(\)|=|\w/\w|\w\.(?:go|py|ts|js|rs|java|rb|c|h|cpp|md|json|sh|ya?ml|toml)\b"
)
_NAMED_THING = re.compile(
    r"^[a-z]+[-.+\d]\w*|^`[a-z]+[ ._-]|\b[A-Z][a-z]*[A-Z0-9]\w*|(?<=\w )[A-Z][a-z]+|\b(?!(?:AFTER|BEFORE|NOT|ALL|NEVER|ALWAYS|ONLY|BOTH|IS|AND|OR|NO|BUT|ONE|THE)\b)[A-Z]{2,}\b|\b(?i:git|npm|docker|node|python|bash|zsh|sqlite|postgres|mysql|redis|systemd|nginx|ssh|curl|cron|make|tokens?|browsers?|kernel|shell|database|server|clients?|hooks?|settings|library|compiler|runtime|operating system|api|cli|sdk|protocol|driver|framework|package manager|parameter)\b"
)
_NOW = re.compile(
    r"^(?:now,? (?:all|both|each|every|any|only|the|`|[a-z]+s?\b)(?!\s+(?:let|i|we|you|run|try|when you)\b).{20,}|(?:this|that) (?:ensures|guarantees|means|prevents)\b.{20,}|.{8,120}\b(?:is|are) (?:now|never|always|no longer)\b.{10,})$",
    re.IGNORECASE | re.DOTALL,
)
_MOMENTARY = re.compile(
    r"\b(?:is|are|was|were|'s|'re|isn'?t|aren'?t|wasn'?t)\s+(?:(?:not|still|currently|now|being|only|also|already|just|actually)\s+)*(?!(?:no|any|some|every)thing\b|missing\b)\w{2,}ing\b"
    r"|\b(?:just |still |also )?needs? to be \w+ed\b|\bjust needs? to\b|\bneeds? (?:an? |the )?(?:[\w-]+ ){1,3}(?:configured|added|set|updated|enabled|registered)\b|\bwas caused by\b|\b(?:has|have)(?:n['’]?t| not)? (?:cached|detected|been)\b|\bdid(?:n'?t| not)\b|\blines? \d|\b(?:already|today|yesterday|currently|right now)\b|\bneeds? to (?!be\b|have\b|match\b|use\b)\w+"
    r"|\byou (?:do(?:n'?t| not) |will |'ll |only )?need\b|\b(?:fails?|failing|failed) with\W*$|:\W*$|^\W*(?:that|this)(?:'s| is) why\b",
    re.IGNORECASE,
)
"""What is so just now, what is to be done about it, or the beginning of a list: none holds in another session."""
_LOOKS_ON = re.compile(
    r"^\W*(?:(?:so|now|but|ok(?:ay)?|first|next)\b[\s,]*)*(?:let me|let'?s|i(?:'ll| will| need to| want to| should)) (?:\w+ly |also |first |now |just |quickly )*(?:check|see|look|verify|investigate|try|find|test|examine|search|read|trace|debug|explore|inspect|understand|confirm|dig|run|query|view|review|analy[sz]e)\b",
    re.IGNORECASE,
)
"""The claim before it is a guess that is about to be looked into."""
_OWN_PART = re.compile(
    r"\b(?:branch|endpoint|handler|function|migration|method|class|struct|module|baseline|page|tab|badge|button|route|controller|collector|navigation|interceptor|middleware|dialog|view|helper|wrapper|comment|review|suggestion|blob|commit|chat)(?:e?s)?\W*$|\b(?:we|you|i) (?:\w+ed|wrote|built|made)\b",
    re.IGNORECASE,
)
"""A subject that ends so is a piece of the code at hand, whatever it is named after."""
_VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|had|does|do|can|cannot|will|would|must|need|only|always|never|not|[a-z]+s)\b(?=\s+(?!is\b|are\b)\w)"
)
"""The first word that may be the verb of a claim."""
_SETTING = re.compile(r"^(?:for|in|with|during|on|at|when) [^,]{2,60},\s+", re.IGNORECASE)
_DENIAL = re.compile(r"n't\b|\b(?:not|no|never|cannot|without|neither|nor)\b", re.IGNORECASE)
_REFUTED_SHARE, _REFUTED_STEMS_MIN = 0.6, 3
_SHOWS = re.compile(r"\b(?:they|you|we)(?:'ll| will) (?:see|get|have)\W*$", re.IGNORECASE)
"""What stands after it is the claim."""
_DROPS = re.compile(
    r"^\W*(?:wait|hm+|no,|actually,? (?!let)|oops|that'?s not|that is not|that won'?t|that did(?:n'?t| not))",
    re.IGNORECASE,
)
"""The text before was wrong."""
_OF_TESTS = re.compile(
    r"\btest(?:s|ed|ing)?\b|_test\b|\b(?:fixtures?|mock\w*|lint\w*|assertions?)\b", re.IGNORECASE
)
_QUOTED_CODE = re.compile(r"`[^`]*`")
_OWN_WORK = re.compile(
    r"^\W*(?:(?:looking at|in|with) [^,]{3,60},\s*)?(?:my|our|we|we're|we've|i|i'm|i've|your)\b",
    re.IGNORECASE,
)
_SUBJECT_WORDS = 12
_POINTS_BACK = re.compile(r"^(?:this|that)\b", re.IGNORECASE)
_HEDGED = re.compile(
    r"\b(?:i (?:recommend|suggest|propose|advise)|differently(?! (?:than|from|to)\b)|somehow|for some reason|might|may|maybe|perhaps|likely|probably|possibly|could be|could have|seems?|appears?|suspect|i think|i believe|i guess|not sure|unclear|assum\w+|suggests?|should be|presumably|potential(?:ly)?|hypothes\w+|let me|i'll|i will|we could|we can|you can|you could|would)\b|\?",
    re.IGNORECASE,
)
_PROGRESS = re.compile(r"\b(?:work(?:s|ing)\b|correctly|resolved|fixed|bugs?|complete\b|ready\b|tests? (?:pass|fail)|passes|lint\w*|compil\w+|build (?:is|pass)|all green|committed|pushed|ready to|clean\b.{0,12}$|let me|running|updated?|added)\b", re.IGNORECASE)  # fmt: skip


def find_findings(story: Story) -> list[AgentFinding]:
    """What the agent established in a turn: its last cause, its last limit, and how things now are."""
    texts = [*story.texts, *story.answers]
    dropped = {one.event_id for one, then in itertools.pairwise(texts) if _DROPS.match(then.text)}
    claims = [
        claim
        for place, said in enumerate(texts)
        if said.event_id not in dropped
        for claim in _read_claims(said)
        if not _is_own_code(claim, story)
        and not any(is_refuted(claim.claim, later.text) for later in texts[place + 1 :])
    ]
    has_looked = bool(story.commands or story.edits or story.reads)
    causes = [
        claim
        for claim in claims
        if claim.rule == "found:cause" and has_looked and _is_lasting(claim)
    ]
    limits = [claim for claim in claims if claim.rule == "found:limit"]
    states = [
        claim
        for claim in claims
        if claim.rule == "found:state" and story.edits and claim.said in story.answers
    ]
    found = causes[-1:]
    for more in (*limits[-1:], *states[:1]):
        if not any(_is_repeated(more, one) for one in found):
            found.append(more)
    return found


def find_stated_cause(story: Story) -> AgentFinding | None:
    """The last sentence in which the agent called something the cause, after it had looked; None if there is none.

    It may be about the code at hand, or no longer so: it tells why the work of this turn was done.
    """
    if not (story.commands or story.edits or story.reads):
        return None
    texts = [*story.texts, *story.answers]
    for place in reversed(range(len(texts))):
        later = [one.text for one in texts[place + 1 :]]
        if later and _DROPS.match(later[0]):
            continue
        for sentence in reversed(list(_read_stated_causes(texts[place].text))):
            if not any(is_refuted(sentence, text) for text in later):
                return AgentFinding("found:cause", texts[place], sentence, sentence, 0.45)
    return None


def _read_stated_causes(text: str) -> Iterator[str]:
    for line in _FENCE.sub("\n", text[:_TEXT_CHARACTERS]).split("\n"):
        if re.match(r"\s*(?:#|\||>)", line):
            continue
        spoken = [strip_markup(one) for one in sentences.split_sentences(line)]
        for place, sentence in enumerate(spoken):
            before = spoken[place - 1] if place else ""
            is_called = _CAUSE.search(sentence) is not None or (
                _CALLS_CAUSE.search(before) is not None
                and _FOUND.match(before) is not None
                and not _OWN_SUBJECT.match(sentence)
            )
            is_guess = _LOOKS_ON.match(next(iter(spoken[place + 1 :]), "")) is not None
            if is_called and not is_guess and _tells_cause(sentence):
                yield sentence


def _tells_cause(sentence: str) -> bool:
    """Whether a sentence says what the cause is, not only where, and without a doubt."""
    claim = name_claim(_ON_WHAT_GROUNDS.sub("", sentence))
    return (
        _CLAIM_WORDS_MIN <= len(words(sentence)) <= _CLAIM_WORDS_MAX
        and sum(not is_stop_word(word) for word in words(claim)) >= _TELLING_WORDS_MIN
        and not sentence.endswith((":", "?"))
        and not any(one.search(sentence) for one in (_HEDGED, _SHOWS))
        and not _LOCATES.match(claim)
    )


def is_refuted(claim: str, later: str, share: float = _REFUTED_SHARE) -> bool:
    """Whether a later text has a sentence of the same words that denies what the claim says, or the other way round.

    `share`: so much of the claim's words, at least.
    """
    mine, is_denial = frozenset(content_stems(claim)), _denies(claim)
    if len(mine) < _REFUTED_STEMS_MIN:
        return False
    needed = max(_REFUTED_STEMS_MIN, share * len(mine))
    return any(
        len(mine & stems) >= needed and denies is not is_denial
        for stems, denies in _read_assertions(later)
    )


@cached(_TEXTS_CACHED)
def _read_assertions(text: str) -> tuple[tuple[frozenset[str], bool], ...]:
    """(stems, whether it denies something) of each sentence of a text."""
    return tuple(
        (frozenset(content_stems(sentence)), _denies(sentence))
        for line in _FENCE.sub("\n", text[:_TEXT_CHARACTERS]).split("\n")
        for sentence in sentences.split_sentences(line)
    )


def _denies(sentence: str) -> bool:
    return len(_DENIAL.findall(sentence)) % 2 == 1


def _is_own_code(claim: AgentFinding, story: Story) -> bool:
    """Whether a claim begins with the name of a file that the turn changed: it is about the code at hand."""
    names = {posixpath.basename(path).split(".")[0].lower() for path in story.edited}
    return any(word.strip("`").lower() in names for word in claim.claim.split()[:_SUBJECT_WORDS])


def _is_lasting(cause: AgentFinding) -> bool:
    """Whether a cause is worth more than its fix: about something outside the code at hand."""
    claim = _SETTING.sub("", name_claim(cause.claim))
    start = " ".join(claim.split()[:_SUBJECT_WORDS])
    verb = _VERB.search(start)
    subject = start[: verb.start()].strip() if verb and verb.start() else start
    return not _OWN_WORK.match(claim) and _is_outside(start) and not _OWN_PART.search(subject)


def _is_repeated(one: AgentFinding, other: AgentFinding) -> bool:
    mine, theirs = frozenset(content_stems(one.claim)), frozenset(content_stems(other.claim))
    return len(mine & theirs) >= _REPEATED_SHARE * max(min(len(mine), len(theirs)), 1)


@cached(_TEXTS_CACHED)
def _read_claims(said: Utterance) -> tuple[AgentFinding, ...]:
    """What is established in a message, but for what is refuted later."""
    return tuple(_find_claims(said))


def _find_claims(said: Utterance) -> Iterator[AgentFinding]:
    for line in _FENCE.sub("\n", said.text[:_TEXT_CHARACTERS]).split("\n"):
        if re.match(r"\s*(?:#|\||>|\*\*\d|\*\*[^*]*\*\*:?\s*(?:\(.*)?$)", line):
            continue
        is_item = re.match(r"\s*(?:[-*•+]\s|\d{1,2}[.)]\s)", line) is not None
        spoken = [strip_markup(s) for s in sentences.split_sentences(line)]
        for place, sentence in enumerate(spoken):
            announced = place > 0 and _FOUND.match(spoken[place - 1]) is not None
            if _LOOKS_ON.match(next(iter(spoken[place + 1 :]), "")):
                continue
            rule = _classify(sentence, is_announced=announced)
            if rule and not (is_item and rule != "found:cause"):
                if rule == "found:state" and _POINTS_BACK.match(sentence):
                    if place == 0 or len(words(spoken[place - 1])) < _CLAIM_WORDS_MIN:
                        continue
                    passage = f"{spoken[place - 1]} {sentence}"
                    yield AgentFinding(rule, said, spoken[place - 1], passage, 0.45)
                    continue
                passage = " ".join(spoken[place : place + 3])
                yield AgentFinding(rule, said, sentence, passage, 0.45)


def _classify(sentence: str, *, is_announced: bool) -> str:
    """The rule by which a sentence is a finding; empty if it is none."""
    is_limit = _is_worked_round(sentence)
    if not _CLAIM_WORDS_MIN <= len(words(sentence)) <= _CLAIM_WORDS_MAX:
        return ""
    if is_limit or not _is_plain(sentence):
        return "found:limit" if is_limit else ""
    claim = name_claim(sentence)
    if sum(not is_stop_word(word) for word in words(claim)) < _TELLING_WORDS_MIN or _LOCATES.match(
        claim
    ):
        return ""
    if _CAUSE.search(sentence) or (is_announced and not _OWN_SUBJECT.match(sentence)):
        return "" if _OF_TESTS.search(_QUOTED_CODE.sub("", sentence)) else "found:cause"
    if _is_limit(sentence):
        return "found:limit"
    return "found:state" if _NOW.match(sentence) and not _PROGRESS.search(sentence) else ""


def _is_worked_round(sentence: str) -> bool:
    """Whether a sentence tells a limit and what can be done about it, which alone is no finding."""
    limit = _WAY_ROUND.sub("", sentence)
    is_whole = limit == sentence or len(words(limit)) < _LIMIT_WORDS_MIN
    return not is_whole and _is_plain(limit) and _is_limit(limit)


def _is_plain(sentence: str) -> bool:
    return not any(one.search(sentence) for one in (_HEDGED, _SHOWS, _MOMENTARY))


def _is_limit(sentence: str) -> bool:
    sentence = _OPENING.sub("", sentence)
    if _OWN_SUBJECT.match(sentence) or _ORDERS.match(sentence):
        return False
    if match := _LIMIT.match(sentence):
        rules_out = _RULES_OUT.search(sentence[match.start("verb") :][:40])
        return rules_out is not None and _is_outside(match.group("subject"))
    match = _OVERRULES.match(sentence)
    return match is not None and _is_outside(match.group("subject"))


def _is_outside(subject: str) -> bool:
    """Whether a subject is a product, a protocol or a tool rather than a piece of this code."""
    is_own = _CODE.search(subject) or _OWN_PART.search(subject)
    return not is_own and _NAMED_THING.search(subject) is not None


def name_claim(claim: str) -> str:
    """The claim without what leads up to it: `The issue was that …`."""
    parts = [part.strip() for part in claim.split(";")]
    telling = next((part for part in parts if _CAUSE.search(part)), claim)
    return _ANNOUNCES.sub("", telling) or claim


_ANNOUNCES = re.compile(
    r"^[^\w`\"“]*(?:(?:so|but|and|now|actually|right|yes|exactly|fixed|found it|good news|based on my research)\b[\s,.:;!—–-]*)*(?:(?:the|that|this)\s+(?:\w+\s+){0,2}?(?:issue|bug|problem|cause|culprit|reason)(?:\s+here)?\s+(?:is|was)\s+(?:that\s+)?|it turns out (?:that )?)?",
    re.IGNORECASE,
)
