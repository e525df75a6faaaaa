"""Gate for prompts: which are worth a search, and which hits are good enough to inject or return.

Most prompts steer (`yes`, `go on`, `/clear`): a search could only find what the agent does not need. So
the prompt gate reads the content words of a prompt: no stop words, no courtesies, no bare numbers. Of a
long paste it reads the first and the last sentences, because people say there what they want.

A score compares the hits of one answer and says nothing by itself, so the relevance gate has two limits. The
floor is on *coverage*, the share of the question that a hit has, each word weighed by how rare it is among the
rows that may be seen: 0 to 1 in any vault and with any profile. The ratio is on scores, below the best one. A
hit by its meaning alone has coverage 0 and is never injected: injected context must rather be missing than wrong.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from memd.belief.decide import CLAIM_KINDS
from memd.belief.polarity import COURTESIES, STEERING
from memd.capture.redact import redact_blocks
from memd.capture.truncate import squeeze
from memd.index import passages
from memd.injection.breaches import PROGRAMS
from memd.machine_text import is_machine_text, strip_blocks
from memd.models import Kind, Summary
from memd.patterns import compile_lazily
from memd.recall import Hit, RelevanceGate, TermRarity
from memd.recall.verdict import QUESTION_WORDS_MAX, best_coverage, coverage_of, score_floor_of
from memd.text import (
    WORD,
    fold,
    is_stop_word,
    list_stems,
    normalised,
    split_sentences,
    terms,
    unique,
    words,
)

WORDS_MIN = 2
"""Content words that a prompt must have, and that a hit must share with it."""
WORDS_OWN_MIN = 4
"""A shorter prompt that ends with `this` or `it` says nothing without the turns before it."""
REPLY_CHARACTERS_MAX = 120
"""A longer prompt that begins with `yes` says more than that."""
PROMPT_CHARACTERS_LONG = 1_500
"""Of a longer prompt only the first and last sentences are searched for."""
PROMPT_END_CHARACTERS_MAX = 20_000
"""Of a huge prompt only this much from each end is read at all."""
SPARE_HITS = 2
"""Hits that are looked at beyond those that may be shown: what follows is no answer if the first were none."""
HEAD_SHARE = 0.4
"""Of the words of a question about the past, eight at most, this many stand at the head of its answer."""
_COMPARED_CHARACTERS = 500
"""Two prompts are the same if they agree on this much at each end."""
_END_SENTENCES = 2
_SENTENCE_CHARACTERS_MAX = 400
_COMMAND = re.compile(r"/[A-Za-z][\w:-]*(?:\s|$)|(?:!|#\s)[^\n]*\Z")
"""`# Task` with more below it is a document, and `#12` a number."""
_GO_AHEAD = re.compile(
    r"(?:yes|yep|yeah|yup|ok|okay|no|nope|sure|perfect|great|agreed|exactly)\b", re.IGNORECASE
)
_ASKING = (
    r"(?:(?:ok(?:ay)?|now|then|please|and|also|so|great|i think)\W+)*(?:(?:can|could|would|will) (?:you|we|u) "
    r"|let'?s |lets |you can |please |go ahead and )*(?:please )?"
)
_CHORES = (
    "add|address|amend|check|clean|close|commit|create|do|fix|format|handle|have a look|implement|link|list|look|make|merge"
    "|open|pull|push|put|read|rebase"
)
_MORE_CHORES = (
    "remove|reply|resolve|revert|review|run|show|start|take a look|tell|test|try|update|write"
)
_CHORE = re.compile(rf"{_ASKING}(?:{_CHORES}|{_MORE_CHORES})\b", re.IGNORECASE)
"""How an order begins that says nothing of its subject: `check the comments`."""
_POINTING = re.compile(r"\b(?:this|that|these|those|it)\W*$", re.IGNORECASE)
"""How a sentence ends that is about what was just said."""
_EARLIER = r"last (?:time|week|month|year|session)|previously|back then|in an? (?:earlier|previous) session"
_WHAT_WE_DID = (
    r"(?:did|have|had) we|we (?:already )?(?:decided|agreed|chose|discussed|settled|tried)"
    r"|(?:was|were) (?:decided|agreed)"
)
_PAST = re.compile(
    rf"\b(?:{_EARLIER}|remember|recall|{_WHAT_WE_DID})\b|\bbefore\s*\?", re.IGNORECASE
)
"""How a prompt asks what was said or done earlier."""
_REDACTED = re.compile(r"\[REDACTED:[\w#-]*\]")
_CODE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_PASTED = re.compile(
    r"\s*[\d\[<>|{}()$%@#=*+~-]| {4,}|\t|\s*(?:at |File \"|Traceback|(?:TRACE|DEBUG|INFO|WARN|ERROR)\b)"
)
"""How the lines of logs, tables, traces and diffs begin."""
_TOPIC = re.compile(r"(?<![\w./-])[a-z][\w-]*(?:\.[a-z][\w-]*)+(?![\w/.(-])")
_TOPICS_MAX = 5
_FILES_ANYWHERE = PROGRAMS.list_words("files anywhere")
_NAME_KINDS = frozenset({"file", "symbol", "identifier"})
MATCHED_MIN = 12
"""Letters from which an error's text is found in a prompt."""
OF_ERROR = compile_lazily(r"(?:Fixed|Tried to fix): ")
"""Begins the title of a fix, whose rest is the error's own text."""
_PLACE = compile_lazily(r"…? \([^()]*\)(?:, from .*)?$|…$")
"""Ends the title of a failure: the file that it happened in."""
_ERROR_LINE = compile_lazily(
    r"^.*(?:\b[A-Za-z_.]*(?:Error|Exception|Panic)\b|\berror\b|\bpanic\b|\bfatal\b).*$",
    re.IGNORECASE | re.MULTILINE,
)
"""A line that says what failed, in the form in which programs say it."""
_PASTED_ERROR = compile_lazily(
    r"^[ \t]*(?:\S+ )?(?:[A-Za-z_.]*(?:Error|Exception)|(?:error|fatal|panic)(?: ?\[?\w+\]?)?|E[A-Z]{4,}): \S",
    re.MULTILINE,
)
"""A line that is an error's own text: then only the same error says anything."""
ERROR_FIELD = compile_lazily(r"^Error: (.+)$", re.MULTILINE)
"""The errors that the memory of a piece of work tells of."""
_EXCEPTION = compile_lazily(r"^(?:[\w.]*(?:Error|Exception|Panic)|error|fatal|panic)(?:\[\w+\])?: ")
_MESSAGE_MIN, _BODY_CHARACTERS = 20, 2_000
"""Letters of a message that stands without its exception: shorter ones are of many errors (`command not found`)."""
SAME_ERROR = "the prompt has its error word for word"
_ERROR_LINES, _ERROR_CHARACTERS = 3, 200
_ERROR_KINDS = {Kind.FAILURE, Kind.FIX}
STATEMENT_KINDS = CLAIM_KINDS | {Kind.NOTE, Kind.TASK}
TURN_KINDS = {Kind.CHANGE, Kind.FIX, Kind.DISCOVERY}
EVEN_RARITY = TermRarity({}, 1.0)
"""Every word counts alike."""


# ── The subject of a prompt ──────────────────────────────────────────────────────────────────────
#
# Much is mentioned in a long body; what a memory is about stands in its title and at the beginning of its body. A word
# says the more of what a prompt is about the rarer it is among the memories that may be seen, and a name (a file, symbol
# or identifier) that many of them have says nothing.

WORDS_COUNTED_MAX = 8
"""Only the rarest words of a prompt count up to this number, or the mere length of a text would sink it."""
HEAD_CHARACTERS = 300
"""Of a memory's body so much says what it is about: the request, or the statement."""
RARE_SHARE = 0.5
"""The share of the greatest rarity from which a name is rare: of 500 memories 15 may have it, of 50 four."""
NAMES_PER_MATCH = 8
"""A paste that mentions many names is about one of them no more than about the others."""
TITLE_SHARE, BOTH_SHARE = 0.45, 0.6
"""So much of the prompt stands in the title and at the head of a memory that is about the same."""
TITLE_SHARE_ALONE, TITLE_PART = 0.6, 2 / 3
"""A title with this share of a prompt, and this many of its words, needs nothing else."""
TITLE_WORDS_MIN = 3
TURN_WEIGHT, TURN_SHARE = 2.0, 0.8
"""What a turn did is seldom wanted: its title must share words as rare as this many that no other memory has, or nearly
all of the prompt."""

ContentWord = frozenset[str]
"""The index terms of one content word, with those of its parts if it is an identifier."""


@dataclass(frozen=True)
class PromptSubject:
    """The subject of a prompt, measured once for all memories that are compared with it."""

    asked: Sequence[ContentWord]
    """Its content words."""
    names: Sequence[str]
    """The files, symbols and identifiers in it."""
    rarity: TermRarity

    @cached_property
    def total(self) -> float:
        """The rarity of its words."""
        return _sum_rarest(self.asked, self.rarity)

    @cached_property
    def rare_names(self) -> Sequence[str]:
        """Return the names in the prompt that few memories have."""
        return [name for name in self.names if _is_rare(name, self.rarity)]

    def share_of(self, found: Collection[ContentWord]) -> float:
        """The share of its rarity that these of its words have, 0 to 1."""
        return min(_sum_rarest(found, self.rarity) / self.total, 1.0) if self.total else 0.0


@dataclass(frozen=True)
class SubjectMatch:
    """The words that a prompt shares with a memory's title, and with its head: title and beginning of the body.

    Each is measured when it is asked for: most memories are out of the question before.
    """

    prompt: PromptSubject
    memory: Summary

    @cached_property
    def in_title(self) -> Sequence[ContentWord]:
        """The prompt's content words in the title."""
        return find_shared_words(self.prompt.asked, self.memory.title)

    @cached_property
    def in_head(self) -> Sequence[ContentWord]:
        """The prompt's content words in the title or at the beginning of the body."""
        head = f"{self.memory.title}\n{self.memory.body[:HEAD_CHARACTERS]}"
        return find_shared_words(self.prompt.asked, head)

    @cached_property
    def title_share(self) -> float:
        """The share of the prompt's rarity that the title has."""
        return self.prompt.share_of(self.in_title)

    @cached_property
    def head_share(self) -> float:
        """The share of the prompt's rarity that the head has."""
        return self.prompt.share_of(self.in_head)

    @cached_property
    def is_named(self) -> bool:
        """Return whether the title has a rare name of the prompt, and enough of them if the prompt has many."""
        named = find_names(self.prompt.rare_names, self.memory.title)
        if not named or len(named) * NAMES_PER_MATCH < len(self.prompt.names):
            return False
        # A file is named where anything is done in it: one more word must say what.
        others = [word for word in self.in_title if not any(word <= _terms_of(n) for n in named)]
        if not others and all(map(_is_file, named)):
            return False
        least = WORDS_MIN if len(self.prompt.asked) > WORDS_COUNTED_MAX else 1
        return len(self.in_title) >= least

    @property
    def is_same_work(self) -> bool:
        """Return whether the prompt is about the work of the memory's turn."""
        rarity = self.prompt.rarity
        weight = math.fsum(map(rarity.of, self.in_title)) / rarity.unknown
        return self.is_same and (weight >= TURN_WEIGHT or self.title_share >= TURN_SHARE)

    @property
    def is_same(self) -> bool:
        """Return whether the memory is about what the prompt is about."""
        if self.is_named:
            return True
        count, counted = len(self.in_title), min(len(self.prompt.asked), WORDS_COUNTED_MAX)
        if count >= max(WORDS_MIN, TITLE_PART * counted) and self.title_share >= TITLE_SHARE_ALONE:
            return True
        is_worded = count >= TITLE_WORDS_MIN and self.title_share >= TITLE_SHARE
        return is_worded and self.head_share >= BOTH_SHARE


def find_shared_words(asked: Collection[ContentWord], text: str) -> list[ContentWord]:
    """The content words that a text has."""
    # Stemming is slow, and a stem begins as its word does, or as a part of it.
    begins = {term[:2] for word in asked for term in word}
    found = {
        term
        for token in dict.fromkeys(words(text))
        if token[:2].lower() in begins or not (token.isascii() and token[1:].islower())
        for term in terms(token)
    }
    return [word for word in asked if word <= found]


def find_names(names: Iterable[str], text: str) -> tuple[str, ...]:
    """The names that a text has as they stand, not as a part of a longer one."""
    folded = fold(text)
    return tuple(
        name
        for name in names
        if name in folded and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", folded)
    )


def _terms_of(text: str) -> frozenset[str]:
    return frozenset(term for word in words(text) for term in terms(word))


def _is_file(name: str) -> bool:
    return "/" in name or "." in name


def _is_rare(name: str, rarity: TermRarity) -> bool:
    return max((rarity.of(terms(word)) for word in words(name)), default=0.0) >= (
        RARE_SHARE * rarity.unknown
    )


def _sum_rarest(found: Collection[ContentWord], rarity: TermRarity) -> float:
    return math.fsum(sorted(map(rarity.of, found), reverse=True)[:WORDS_COUNTED_MAX])


# ── Evidence ─────────────────────────────────────────────────────────────────────────────────────
#
# Shared words too rare to be chance. How rare a word is tell the titles, for they say what memories are about; in the
# bodies everything is mentioned. On the sessions of people who were left out no gate by likeness tells when a prompt
# needs something; a few words that hardly anything else is about do.

EVIDENCE = 2.5
"""The least weight of shared words, in words that stand in one title alone."""
EVIDENCE_SHORT, EVIDENCE_PART = 1.8, 0.35
"""A lesser weight is enough if the shared words make up this part of the statement."""
EVIDENCE_WORDS_MIN = 3
_TITLES_MIN = 50
"""In a young vault every word would be common."""
_EVIDENCE_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class CountedTitles:
    """The words of titles: stem → how many have it."""

    counts: Mapping[str, int]
    number: int

    @classmethod
    def count(cls, titles: Collection[str]) -> "CountedTitles":
        """Count the words of these titles."""
        return cls(
            Counter(chain.from_iterable(set(list_stems(one)) for one in titles)), len(titles)
        )


@dataclass(frozen=True, slots=True)
class PromptEvidence:
    """The words of a prompt that the titles have."""

    stems: frozenset[str]
    counts: Mapping[str, int]
    """Stem → how many titles have it."""
    titles: int

    @classmethod
    def read(cls, prompt: str, counted: "CountedTitles") -> "PromptEvidence":
        """Read the words of a prompt, which are looked up in the titles of what may be seen."""
        return cls(frozenset(list_stems(prompt)), counted.counts, max(counted.number, _TITLES_MIN))

    def weigh(self, memory: Summary) -> float:
        """Return how strongly a statement and the prompt are about the same thing; 0 if there is too little evidence."""
        told = list_stems(_text_of(memory))
        shared = self.stems.intersection(told)
        if len(shared) < EVIDENCE_WORDS_MIN:
            return 0.0
        weight, whole = (math.fsum(map(self._weigh_stem, each)) for each in (shared, told))
        is_enough = weight >= EVIDENCE or (
            weight >= EVIDENCE_SHORT and weight >= EVIDENCE_PART * whole
        )
        return weight if is_enough else 0.0

    def _weigh_stem(self, stem: str) -> float:
        """Weigh a stem by inverse document frequency: 1 if it is in one title alone."""
        return self._rarity(max(self.counts.get(stem, 1), 1)) / self._rarity(1)

    def _rarity(self, count: int) -> float:
        return math.log(1 + (self.titles - count + 0.5) / (count + 0.5))


def _text_of(memory: Summary) -> str:
    """Return a statement's text, also where its title was cut."""
    cut = memory.title.removesuffix("…")
    whole = cut != memory.title and memory.body.startswith(cut)
    return memory.body[:_EVIDENCE_CHARACTERS] if whole else memory.title


# ── The prompt gate ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class PromptQuery:
    """The query for a prompt, or the reason not to search."""

    text: str
    """Empty if the prompt is not worth a search."""
    reason: str
    words: tuple[ContentWord, ...] = ()
    """The content words, once each."""
    names: tuple[str, ...] = ()
    """The files, symbols and identifiers in the prompt, folded."""
    topics: tuple[str, ...] = ()
    """What may be a topic key."""
    is_about_past: bool = False
    """Whether it asks what was said or done earlier."""
    letters: str = ""
    """The whole prompt, squeezed, in which an error's text is looked for."""
    has_error: bool = False
    """Whether an error's own text was pasted into it."""
    evidence: PromptEvidence | None = None
    """Its words and how rare they are; None if that was not looked up."""

    def has_error_of(self, memory: Summary) -> bool:
        """Return whether the prompt has the error that a memory is about, word for word."""
        if memory.kind not in _ERROR_KINDS | TURN_KINDS:
            return False
        said = squeeze_error(memory.title) if memory.kind in _ERROR_KINDS else ""
        if len(said) >= MATCHED_MIN and said in self.letters:
            return True
        return any(said in self.letters for said in _list_messages(memory.body))


def _list_messages(body: str) -> Iterator[str]:
    """Yield what a memory's body has as its errors, squeezed, whole and without the exception's name: people quote the message."""
    for line in ERROR_FIELD.findall(body[:_BODY_CHARACTERS]):
        whole, message = squeeze(line), squeeze(_EXCEPTION.sub("", line))
        if whole != message and len(whole) >= MATCHED_MIN:
            yield whole
        if len(message) >= _MESSAGE_MIN:
            yield message


_NUMBERED = re.compile(
    r"(?:(?:issues?|pulls?|pr|merge_requests|tickets?|trails?)[/ ]#?|(?<![\w&])#)(\d{1,6})\b",
    re.IGNORECASE,
)
"""`#70`, `issues/70`, `PR 70`."""
_HEAD_CHARACTERS = 400
_GIT_REF = re.compile(r"refs/|origin/|heads/|https?:", re.IGNORECASE)
"""What has a slash and names no file."""


def redact_prompt(prompt: str) -> str:
    """A prompt without its private parts; of a huge one, the two ends."""
    limit = PROMPT_END_CHARACTERS_MAX
    if len(prompt) <= 2 * limit:
        return redact_blocks(prompt)
    head, tail = prompt[:limit], prompt[-limit:]
    # Each without the line that the cut went through.
    head, tail = head.rpartition("\n")[0] or head, tail.partition("\n")[2] or tail
    return f"{redact_blocks(head)}\n{redact_blocks(tail)}"


def read_prompt(prompt: str) -> PromptQuery:
    """Read a prompt from which the private parts were removed."""
    bare = _REDACTED.sub(" ", prompt).strip()
    if not bare:
        return PromptQuery("", "all of it is private" if prompt.strip() else "it is empty")
    if _COMMAND.match(bare):
        return PromptQuery("", "a command to the client")
    if is_machine_text(bare):
        return PromptQuery("", "a text of the client, not of the user")
    bare = strip_blocks(bare)
    text = shorten_prompt(bare) if len(bare) > PROMPT_CHARACTERS_LONG else bare
    found = content_words(text)
    if len(found) < WORDS_MIN:
        return PromptQuery("", f"it has fewer than {WORDS_MIN} words that say what it is about")
    # As words that no memory has, courtesies would make every memory cover less.
    query = WORD.sub(lambda word: "" if fold(word[0]) in COURTESIES else word[0], text)
    names = _find_names(text)
    topics = tuple(dict.fromkeys(_TOPIC.findall(text)))[:_TOPICS_MAX]
    if not names and not topics and (why := _why_empty(bare, len(found))):
        return PromptQuery("", why)
    is_about_past = _PAST.search(text) is not None
    return PromptQuery(
        query, "worth a search", found, names, topics, is_about_past, squeeze(prompt),
        has_error=_PASTED_ERROR.search(prompt) is not None,
    )  # fmt: skip


def _find_names(text: str) -> tuple[str, ...]:
    found = passages.entities_of_text(text)
    return unique(
        n
        for n, kind in found
        if kind in _NAME_KINDS
        and n.rpartition("/")[2] not in _FILES_ANYWHERE
        and not _GIT_REF.match(n)
    )


def _why_empty(prompt: str, word_count: int) -> str | None:
    """Return why a prompt that names nothing says nothing of its subject; None if it does."""
    if len(prompt) >= REPLY_CHARACTERS_MAX:
        return None
    if _GO_AHEAD.match(prompt) or (word_count < WORDS_OWN_MIN and _POINTING.search(prompt)):
        return "a reply to what was said before"
    if word_count <= WORDS_OWN_MIN and _CHORE.match(prompt):
        return "a chore that names nothing"
    return None


def is_repeated(prompt: str, earlier: Iterable[str]) -> bool:
    """Return whether the same was asked before, apart from case, spacing and punctuation."""
    first = _find_first_word(prompt)
    # Normalising the ends of fifty long prompts takes longer than a search.
    alike = [one for one in earlier if _find_first_word(one) == first]
    return bool(alike) and _normalise_ends(prompt) in map(_normalise_ends, alike)


def _find_first_word(prompt: str) -> str:
    found = WORD.search(prompt[:_COMPARED_CHARACTERS])
    return fold(found[0]) if found else ""


def _normalise_ends(prompt: str) -> tuple[str, str]:
    return normalised(prompt[:_COMPARED_CHARACTERS]), normalised(prompt[-_COMPARED_CHARACTERS:])


def shorten_prompt(text: str) -> str:
    """The first and the last sentences of a long text, without code and logs, each cut."""
    lines = _CODE.sub("\n", text).split("\n")
    prose = "\n".join("" if _PASTED.match(line) else line for line in lines)
    found = [s[:_SENTENCE_CHARACTERS_MAX] for s in split_sentences(prose)]
    if len(found) > 2 * _END_SENTENCES:
        found = [*found[:_END_SENTENCES], *found[-_END_SENTENCES:]]
    # What a paste is about is the error in it: mostly its last line.
    errors = [s.strip()[:_ERROR_CHARACTERS] for s in _ERROR_LINE.findall(text)]
    found += [one for one in unique(reversed(errors))[:_ERROR_LINES] if one not in found]
    return "\n".join(found) or text[:_SENTENCE_CHARACTERS_MAX]


def squeeze_error(title: str) -> str:
    """Return the text of an error in a title, without its location, to be looked for in a prompt."""
    return squeeze(_PLACE.sub("", OF_ERROR.sub("", title)))


def content_words(text: str) -> tuple[ContentWord, ...]:
    """The content words of a text, once each, however they are inflected."""
    found: dict[ContentWord, None] = {}
    for token in words(text):
        folded = fold(token)
        if is_stop_word(token) or folded in STEERING or not any(c.isalpha() for c in token):
            continue
        parts = terms(token)
        if not token.isascii() and "_" not in token and len(parts) > 1:
            # Text without spaces: its terms are pairs of characters.
            found.update({frozenset({part}): None for part in parts})
        elif parts and len(folded) > 1:
            found[frozenset(parts)] = None
    return tuple(found)


# ── The relevance gate ───────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class GatedHit:
    """A hit for a prompt, whether it is injected, and in words why."""

    hit: Hit
    is_shown: bool
    why: str


def gate_hits(  # what was found, what was asked, and what limits the choice
    hits: Sequence[Hit],
    prompt: PromptQuery,
    seen: Mapping[int, str],
    gate: RelevanceGate,
    limit: int,
    rarity: TermRarity = EVEN_RARITY,
) -> list[GatedHit]:
    """Decide for each hit, best first, whether it is injected; at most `limit` are.

    A hit by topic key, or one whose title has a rare name of the prompt, was asked for by name. Of the others
    the best must cover enough of the prompt, each at least the ratio of that, and its title and the beginning of
    its body must be about the same. `seen`: summary id → why the agent has it already. Such a hit is not
    injected again, but the others are still compared with it.
    """
    score_floor = score_floor_of(hits, gate)
    coverage = best_coverage([hit for hit in hits if hit.score >= score_floor][:limit])
    gated: list[GatedHit] = []
    chosen: list[Hit] = []
    considered = 0
    subject = PromptSubject(prompt.words, prompt.names, rarity)
    # An error's own text is evidence enough, and its fix says more than its failure.
    same = {hit.summary.id for hit in hits if prompt.has_error_of(hit.summary)}
    matches = {hit.summary.id: SubjectMatch(subject, hit.summary) for hit in hits}
    evident = {
        hit.summary.id: -weight
        for hit in hits
        if prompt.evidence is not None
        and hit.summary.kind in STATEMENT_KINDS
        and (weight := prompt.evidence.weigh(hit.summary))
    }
    ordered = sorted(
        hits,
        key=lambda hit: (
            hit.summary.id not in same,
            hit.summary.id in same and hit.summary.kind is not Kind.FIX,
            evident.get(hit.summary.id, 0.0),
        ),
    )
    for hit in ordered:
        match = matches[hit.summary.id]
        is_same_error = hit.summary.id in same
        is_evident = is_same_error or hit.summary.id in evident
        is_named = hit.topic_rank is not None or is_evident or match.is_named
        objection = seen.get(hit.summary.id) or hit.older_value
        if objection is None and not is_named:
            objection = _why_weak(hit, coverage, score_floor, gate)
        if objection is None and len(chosen) >= limit:
            objection = "there were enough better ones"
        considered += objection is None
        if objection is None and considered > limit + SPARE_HITS and not is_named:
            objection = "too many rank before it"
        is_of_error = hit.summary.kind in _ERROR_KINDS
        if objection is None and prompt.has_error and is_of_error and not is_same_error:
            objection = "it is about another error"
        objection = objection or _why_repeated(hit, chosen)
        objection = objection or _why_other_number(hit.summary, prompt)
        if objection is None and hit.topic_rank is None and not is_evident:
            objection = _why_other_subject(hit.summary, prompt, match)
        found = SAME_ERROR if is_same_error else _explain_hit(hit, match)
        why = objection or found
        gated.append(GatedHit(hit, objection is None, why))
        if objection is None:
            chosen.append(hit)
    return gated


def _why_weak(hit: Hit, coverage: float, score_floor: float, gate: RelevanceGate) -> str | None:
    """Return why a hit that was not asked for by name is too weak; `coverage` is that of the best."""
    own, least = coverage_of(hit), gate.floor * gate.ratio
    if coverage < gate.floor:
        return f"below the floor: {coverage:.2f} of the prompt is covered, {gate.floor:.2f} is required"
    if hit.score < score_floor:
        return f"too far below the best: {hit.score:.3g}, {score_floor:.3g} is required"
    if own < least:
        return f"it covers {own:.2f} of the prompt, {least:.2f} is required"
    return None


def _why_repeated(hit: Hit, chosen: Sequence[Hit]) -> str | None:
    # One memory of a turn is enough: the others tell the same story.
    turn = (hit.summary.session_id, hit.summary.episode)
    for other in chosen:
        if None not in turn and turn == (other.summary.session_id, other.summary.episode):
            return f"from the same turn as #{other.summary.id}"
    return None


def _why_other_subject(memory: Summary, prompt: PromptQuery, match: SubjectMatch) -> str | None:
    """Return why a memory is about something else; None if it is about what the prompt is about."""
    if prompt.is_about_past:
        # What is asked for may be told in other words than those it was asked in.
        least = max(WORDS_MIN, math.ceil(HEAD_SHARE * min(len(prompt.words), QUESTION_WORDS_MAX)))
        if match.is_named or len(match.in_head) >= least:
            return None
    elif memory.kind is Kind.SESSION:
        return "a whole session is about too much"
    elif match.is_same_work if memory.kind in TURN_KINDS else match.is_same:
        return None
    return (
        "it only mentions it: its title and beginning have"
        f" {match.title_share:.2f} and {match.head_share:.2f} of the prompt"
    )


def _why_other_number(memory: Summary, prompt: PromptQuery) -> str | None:
    """Return why a memory is about another issue than the prompt; None if either names none, or both the same."""
    asked = set(_NUMBERED.findall(prompt.text))
    told = set(_NUMBERED.findall(f"{memory.title} {memory.body[:_HEAD_CHARACTERS]}"))
    if not asked or not told or asked & told:
        return None
    return f"it is about #{min(told)}, not #{min(asked)}"


def _explain_hit(hit: Hit, match: SubjectMatch) -> str:
    if hit.topic_rank is not None:
        return "the prompt names its topic"
    said = "its title has a name of the prompt, " if match.is_named else ""
    return f"{said}covers {coverage_of(hit):.2f} of the prompt, score {hit.score:.3g}"
