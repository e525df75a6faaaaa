"""Retrieval: a question becomes an answer whose scores add up to their explanation.

Here: questions and answers, as frozen values. `memd search --json` and `memd why --json` print Answer and Why as they are:
their field names are a contract.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from memd.models import Edge, Event, Judgment, Kind, Summary, Supersession
from memd.store.filter import Filter

VerdictName = Literal["found", "weak", "nothing"]


@dataclass(frozen=True, slots=True)
class RelevanceGate:
    """Thresholds below which a hit is left out as weak; see prompt_gate.py. Both from 0 to 1."""

    floor: float = 0.4
    """The coverage that at least one of the hits must have, else all are left out."""
    ratio: float = 0.5
    """The share of the best score that a hit must have."""


@dataclass(frozen=True, slots=True)
class TermRarity:
    """Rarity of terms among the memories that may be seen, as inverse document frequencies."""

    known: Mapping[str, float]
    """Term of the question → its idf."""
    unknown: float
    """The idf of a term that no memory has."""

    def of(self, terms: Iterable[str]) -> float:
        """The idf of the rarest of these."""
        return max((self.known.get(term, self.unknown) for term in terms), default=0.0)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence on a question and its hits, from which the verdict is made."""

    text: str
    """The question as it was searched for."""
    rarity: TermRarity
    terms_of: Mapping[int, frozenset[str]]
    """Hit → the terms of the question that it has."""
    spelt_as: Mapping[str, frozenset[str]]
    """A term of the question → the terms that are the same word to the index."""
    has_phrases: bool
    """Whether the question has phrases or prefixes, which count in `Hit.coverage` alone."""
    corrected: Mapping[str, Sequence[str]]
    """A misspelt word → the terms that were looked for instead."""
    meant: frozenset[int] | None
    """Summaries that match by their vector in a learned space; None if its cosines were compared without a floor."""
    may_be_meant: bool = False
    """Whether the nearest memory in a learned space may be the answer."""
    own_scores: Mapping[int, float] = field(default_factory=dict)
    """Memory → its score by itself, if the first hit was lifted without a match: the verdict rests on what it was lifted above."""


@dataclass(frozen=True, slots=True)
class Question:
    """A search. `text` may be empty only if `topic_key` or `embedding` is given. Times: UTC ms."""

    text: str
    now: int
    project_ids: tuple[int, ...] | None = None
    """None searches every project; else `global` is searched only if it is among them."""
    kinds: tuple[Kind, ...] = ()
    session_id: int | None = None
    source: str | None = None
    since: int | None = None
    until: int | None = None
    tags: tuple[str, ...] = ()
    topic_key: str | None = None
    keywords: str = ""
    """More words to look for, which are no part of the question's meaning."""
    include_superseded: bool = False
    as_of: int | None = None
    """Hides everything later; ages count from here."""
    k: int | None = None
    offset: int = 0
    legs: frozenset[str] | None = None
    """The retrievers to ask, of `topic`, `lexical`, `vector`. None: all that the profile has."""
    profile: str | None = None
    explain: bool = False
    embedding: tuple[float, ...] | None = None
    """A vector of the leading space, instead of embedding `text`."""
    include_turns: bool = False
    """Also search conversations verbatim; see `Answer.turns`."""
    focus: tuple[str, ...] = ()
    """Words and globs of files: memories that match them score higher; see precedence.py."""
    boost: tuple[tuple[str, float], ...] = ()
    """Words and globs of files as in `focus`, each with the factor by which the score of what matches is multiplied."""
    browse: bool = False
    """List everything that may be seen instead of ranking: core memories first, then agents', then those of files."""
    relevance_gate: RelevanceGate | None = None
    """Leave out weak hits, all of them if need be."""
    in_order: bool = False
    """List the work and the decisions of its time, oldest first, instead of ranking; see period.py."""
    nearest_to: int | None = None
    """With `in_order`: only what is nearest to this time, UTC ms."""
    asking_session: str | None = None
    """The client's id of the session that asks: `the last session` is the one before."""
    all_words: bool = False
    """Return only memories that have every word of the question, each in any of their passages."""
    min_score: float | None = None
    """Return no hit with a lower score. Scores of different profiles are of different sizes."""
    show_all: bool = False
    """Return the hits also where the verdict is `nothing`."""
    whole_passages: bool = False
    """Give hits their whole passage for a snippet: who shows few of many makes snippets of those alone."""
    count_use: bool = True
    """Whether returned memories count as used. With `explain` or `as_of` they never do."""

    @property
    def asked_at(self) -> int:
        """The time that it asks for, from which ages count, UTC ms: `as_of`, or now."""
        return self.now if self.as_of is None else self.as_of

    @property
    def filter(self) -> Filter:
        """Return the filter for the memories that the question may see."""
        return self.make_filter(self.asked_at)

    def make_filter(self, now: int | None) -> Filter:
        """The filter with what had expired at another time; None: nothing had."""
        return Filter(
            project_ids=self.project_ids,
            as_of=self.as_of,
            now=now,
            include_superseded=self.include_superseded,
            kinds=self.kinds,
            session_id=self.session_id,
            source=self.source,
            since=self.since,
            until=self.until,
            tags=self.tags,
        )


@dataclass(slots=True)  # not frozen, which takes three times as long: each hit has a dozen
class ScorePart:
    """One step of a score: `+` adds the value, `*` multiplies by it, `<` caps at it."""

    name: str
    value: float
    op: str = "+"


def apply_parts(parts: Sequence[ScorePart]) -> float:
    """The score that these parts make, in order."""
    score = 0.0
    for part in parts:
        if part.op == "+":
            score += part.value
        elif part.op == "*":
            score *= part.value
        else:
            score = min(score, part.value)
    return score


@dataclass(frozen=True, slots=True)
class Hit:
    """A summary with its score and the parts of it. Ranks count from 1; None: that retriever missed it."""

    summary: Summary
    project: str
    session_title: str | None
    snippet: str
    score: float
    parts: tuple[ScorePart, ...]
    channels: tuple[str, ...]
    lexical_rank: int | None = None
    vector_rank: int | None = None
    topic_rank: int | None = None
    cosine: float | None = None
    recency: float | None = None
    coverage: float | None = None
    """The share of the question that it has, 0 to 1; None while the index loads."""
    older_value: str | None = None
    """In words, what holds instead of a value that it states: `older value; now: 1.25.6 (#304)`."""
    replaces: str | None = None
    """In words, which values of other memories it has replaced: `RETRY_LIMIT = 30 of #303`."""
    replaced_by: str | None = None
    """The title of the memory that superseded it."""
    alike: tuple[int, ...] = ()
    """Memories that stood behind it and say the same: at least two, or they are hits of their own."""
    contradiction: str | None = None
    """In words, what says otherwise: `contradicted by the earlier #7 (user, pinned)`."""
    said_since: str | None = None
    """In words, what its speaker said or stated since that may have put it out of force: `he said since: “…”`."""

    @property
    def told_alike(self) -> str:
        """`2 more like it: #12, #15`; empty if there are none."""
        ids = ", ".join(f"#{number}" for number in self.alike)
        return f"{len(self.alike)} more like it: {ids}" if ids else ""


@dataclass(frozen=True, slots=True)
class TracedCandidate:
    """One candidate of an explained search, whether or not it is a hit."""

    summary_id: int
    title: str
    score: float
    parts: tuple[ScorePart, ...]
    ranks: Mapping[str, int]
    cosine: float | None
    terms: tuple[str, ...]
    verdict: str
    """`hit`, or why not: `rank`, `diversity: like #n`, `superseded by #n`, `expired`, `filtered: …`.

    `hit; diversity: like #n` is a hit that was moved down.
    """

    @property
    def is_hit(self) -> bool:
        """Return whether it is among the hits."""
        return self.verdict.partition(";")[0] == "hit"


@dataclass(frozen=True, slots=True)
class Turn:
    """A verbatim passage of a conversation. `at` is UTC milliseconds; rank counts from 1."""

    event_id: int
    session_title: str | None
    role: str
    """`user` or `assistant`."""
    at: int
    snippet: str
    rank: int
    distance: float | None = None
    """1 - its cosine with the question in the hashing space."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer to a question: the hits, and what was hidden, missing and used."""

    hits: tuple[Hit, ...]
    profile: str
    space: str | None = None
    took_ms: float = 0.0
    verdict: VerdictName = "weak"
    """Whether the hits answer the question; see verdict.py. `nothing` has no hits unless `Question.show_all`."""
    reason: str = ""
    """Why, in words."""
    candidates: int = 0
    suppressed: Mapping[str, int] = field(default_factory=dict)
    """Reason → how many matching memories were hidden for it."""
    degraded: Mapping[str, str] = field(default_factory=dict)
    """Retriever → why it could not answer."""
    notes: tuple[str, ...] = ()
    """In words, how the question was understood: `the question asks for the latest: recency leads`."""
    trace: tuple[TracedCandidate, ...] = ()
    turns: tuple[Turn, ...] = ()
    """Verbatim passages of conversations, ranked by themselves, never among the hits."""
    contradicted: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Hit → the visible memories that contradict it."""
    precedence: tuple[tuple[int, int, str], ...] = ()
    """(memory, the one that it comes before, the part of the score that says why); see precedence.py."""
    evidence: Evidence | None = None
    """None while the index loads, and for a list."""
    listed: str = ""
    """In words, what the hits are a list of; empty: they are ranked."""

    @property
    def rarity(self) -> TermRarity | None:
        """Return the rarity of the question's terms; None while the index loads."""
        return self.evidence.rarity if self.evidence is not None else None


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """A summary in its neighbourhood."""

    summary: Summary
    session_title: str | None
    is_pivot: bool = False
    gap_ms: int | None = None
    """Time since the row before, if it is an hour or more."""
    begins_session: bool = False
    """Whether the row before belongs to another session."""
    contradicted_by: tuple[int, ...] = ()
    """The visible memories that contradict it."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Summaries by event time, oldest first, superseded ones too."""

    rows: tuple[TimelineRow, ...]
    pivot_at: int
    more_before: bool
    more_after: bool
    is_span: bool = False
    """Whether it is a range of days: then the latest rows matter most, not the middle."""


@dataclass(frozen=True, slots=True)
class TranscriptPosition:
    """Position of an event in its client's transcript; empty where the event does not name it."""

    transcript: str = ""
    """The path of the session's transcript."""
    session: str = ""
    """The client's id of the session."""
    line: str = ""
    """The `uuid` of the line."""
    prompt: str = ""
    """The id of the prompt that it belongs to."""
    tool_use: str = ""
    """The id of the tool call."""


@dataclass(frozen=True, slots=True)
class SourceEvent:
    """An event that a memory came from, with a quote."""

    event: Event
    quote: str
    position: TranscriptPosition = TranscriptPosition()


@dataclass(frozen=True, slots=True)
class SupersessionLink:
    """A supersession as seen from one summary: the other one, and in which direction."""

    supersession: Supersession
    other: Summary
    is_newer: bool
    """Whether the other one is the newer."""


@dataclass(frozen=True, slots=True)
class JudgmentLink:
    """A judgment of a memory and another one."""

    judgment: Judgment
    other: Summary


@dataclass(frozen=True, slots=True)
class PastInjection:
    """An injection of a memory into a session. `at` is UTC milliseconds."""

    session: str
    """The client's id of the session."""
    session_title: str | None
    moment: str
    """`startup`, `resume`, `clear`, `compact` or `prompt`."""
    at: int
    reason: str


@dataclass(frozen=True, slots=True)
class UsageHistory:
    """Usage of a memory: how often answers returned it, and how often it was injected."""

    count: int = 0
    """Answers that returned it."""
    last_at: int | None = None
    shown: int = 0
    """Injections of it."""
    sessions: int = 0
    """Sessions that it was injected into."""
    latest: tuple[PastInjection, ...] = ()
    """The last few injections, the latest first."""


@dataclass(frozen=True, slots=True)
class Why:
    """Explanation of a memory: its sources, and whether it is still true."""

    node: str
    """`summary:12`, `file:/a/b.py`, …"""
    summary: Summary | None
    verdict: str
    """`current`, `superseded by #n`, `contradicted by #n`, `expired`, `unconfirmed`, `perhaps ended, …`, …"""
    sources: tuple[SourceEvent, ...]
    relations: tuple[SupersessionLink, ...]
    edges: tuple[Edge, ...]
    titles: Mapping[str, str] = field(default_factory=dict)
    """Node → its title, where it has one."""
    rule: str = ""
    """In words, the rule by which it was written."""
    access: UsageHistory = UsageHistory()
    judgments: tuple[JudgmentLink, ...] = ()
    """Judgments of it and others, oldest first; undone ones, too."""
    contradicted_by: tuple[int, ...] = ()
    """The visible memories that contradict it."""
    values: tuple[str, ...] = ()
    """In words, which of its values a later edit has replaced, and which values of others it has."""
    checks: tuple[str, ...] = ()
    """In words, how a rule is checked, and whether what breaks it is refused."""
    copies: tuple[str, ...] = ()
    """Of a file: the same one in other worktrees, whose memory is shared."""
