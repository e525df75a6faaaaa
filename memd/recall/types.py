"""What recall is asked and what it answers, as frozen values. Pure.

A score is its parts: apply them in order and the score comes out. `recall` fills these in, `serve`
and `cli` show them. Not here: any wire format.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memd.models import Edge, Event, Judgment, Kind, Summary, Supersession
from memd.store.filter import Filter


@dataclass(frozen=True, slots=True)
class RelevanceGate:
    """What a hit must be to be shown unasked; see surface.py. Both from 0 to 1."""

    floor: float = 0.4
    """The coverage that one of the hits must have, else none is shown."""
    ratio: float = 0.5
    """The part of the best score that a hit must have."""


@dataclass(frozen=True, slots=True)
class Question:
    """A search. `text` may be empty only if `topic_key` or `embedding` is given. Times: UTC ms."""

    text: str
    now: int
    project_ids: tuple[int, ...] | None = None
    """None searches every project. `global` is to be among them if it shall be seen."""
    kinds: tuple[Kind, ...] = ()
    session_id: int | None = None
    source: str | None = None
    since: int | None = None
    until: int | None = None
    tags: tuple[str, ...] = ()
    topic_key: str | None = None
    include_superseded: bool = False
    as_of: int | None = None
    """Nothing later is seen, and ages count from here."""
    k: int | None = None
    offset: int = 0
    legs: frozenset[str] | None = None
    """Of `topic`, `lexical`, `vector`: only these. None: all that the profile has."""
    profile: str | None = None
    explain: bool = False
    embedding: tuple[float, ...] | None = None
    """A ready vector of the active space, instead of embedding `text`."""
    include_turns: bool = False
    """Also search what was said, word for word; see `Answer.turns`."""
    focus: tuple[str, ...] = ()
    """Words and globs of files: what they fit is weighed up; see focus.py."""
    relevance_gate: RelevanceGate | None = None
    """Leave out what is weak, all of it if need be."""
    count_use: bool = True
    """Whether what is returned counts as used. With `explain` or `as_of` it never does."""

    @property
    def filter(self) -> Filter:
        """Which memories it may see."""
        return Filter(
            project_ids=self.project_ids,
            as_of=self.as_of,
            now=self.now,
            include_superseded=self.include_superseded,
            kinds=self.kinds,
            session_id=self.session_id,
            source=self.source,
            since=self.since,
            until=self.until,
            tags=self.tags,
        )


@dataclass(frozen=True, slots=True)
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
    """A summary with its score and the parts of it. Ranks count from 1; None: not in that leg."""

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
    """The share of the question that stands in it, 0 to 1; counted only for `Question.relevance_gate`."""


@dataclass(frozen=True, slots=True)
class TracedCandidate:
    """One candidate of an explained search, whether or not it made the cut."""

    summary_id: int
    title: str
    score: float
    parts: tuple[ScorePart, ...]
    ranks: Mapping[str, int]
    cosine: float | None
    terms: tuple[str, ...]
    verdict: str
    """`hit`, or why not: `rank`, `diversity: like #n`, `superseded by #n`, `expired`, `filtered: …`.

    `hit; diversity: like #n` was moved down, and is a hit all the same.
    """

    @property
    def is_hit(self) -> bool:
        """Whether it is among what was answered."""
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


@dataclass(frozen=True, slots=True)
class Answer:
    """What a search found, and what it hid, lacked and used."""

    hits: tuple[Hit, ...]
    profile: str
    space: str | None
    took_ms: float
    candidates: int = 0
    suppressed: Mapping[str, int] = field(default_factory=dict)
    """Reason → how many matching memories were hidden for it."""
    degraded: Mapping[str, str] = field(default_factory=dict)
    """Leg → why it could not answer."""
    notes: tuple[str, ...] = ()
    """In words, what a reader should know: `asked for the latest: recency leads`."""
    trace: tuple[TracedCandidate, ...] = ()
    turns: tuple[Turn, ...] = ()
    """What was said about it, word for word; ranked by itself, never among the hits."""
    contradicted: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Hit → the memories that say otherwise and that nothing hides."""


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """A summary in its neighbourhood."""

    summary: Summary
    session_title: str | None
    is_pivot: bool = False
    gap_ms: int | None = None
    """Time since the row before, if it is long enough to be told."""
    begins_session: bool = False
    """Whether it is the first of its session here, or the first again after another one."""
    contradicted_by: tuple[int, ...] = ()
    """Memories that say otherwise and that nothing hides."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Summaries by event time, oldest first, superseded ones too."""

    rows: tuple[TimelineRow, ...]
    pivot_at: int
    more_before: bool
    more_after: bool
    is_span: bool = False
    """Whether it is a stretch of days: the latest rows matter most then, not the middle."""


@dataclass(frozen=True, slots=True)
class TranscriptPosition:
    """Where an event stands in what its client wrote down; each as far as the event says it."""

    transcript: str = ""
    """The path of the session's transcript."""
    session: str = ""
    """The client's own id of the session."""
    line: str = ""
    """The `uuid` of the line."""
    prompt: str = ""
    """The id of the prompt that it belongs to."""
    tool_use: str = ""
    """The id of the tool call."""


@dataclass(frozen=True, slots=True)
class SourceEvent:
    """An event that a memory came from, with the words that made it."""

    event: Event
    quote: str
    position: TranscriptPosition = TranscriptPosition()


@dataclass(frozen=True, slots=True)
class SupersessionLink:
    """A supersession as seen from one summary: the other one, and which way."""

    supersession: Supersession
    other: Summary
    is_newer: bool
    """Whether the other one is the newer."""


@dataclass(frozen=True, slots=True)
class JudgmentLink:
    """What somebody said of a memory and another one."""

    judgment: Judgment
    other: Summary


@dataclass(frozen=True, slots=True)
class PastInjection:
    """A time when an agent was shown a memory unasked. `at` is UTC milliseconds."""

    session: str
    """The client's own id of it."""
    session_title: str | None
    moment: str
    """`startup`, `resume`, `clear`, `compact` or `prompt`."""
    at: int
    reason: str


@dataclass(frozen=True, slots=True)
class UsageHistory:
    """How a memory was used: returned by answers, and shown unasked."""

    returned_count: int = 0
    """How many answers returned it."""
    last_returned_at: int | None = None
    injected_count: int = 0
    """How often it was shown unasked."""
    session_count: int = 0
    """To how many sessions."""
    latest: tuple[PastInjection, ...] = ()
    """The last few of those times, the latest first."""


@dataclass(frozen=True, slots=True)
class Why:
    """Why a memory exists, and whether it is still true."""

    node: str
    """`summary:12`, `file:/a/b.py`, …"""
    summary: Summary | None
    verdict: str
    """`current`, `superseded by #n`, `contradicted by #n`, `expired`, `unconfirmed`, …"""
    sources: tuple[SourceEvent, ...]
    relations: tuple[SupersessionLink, ...]
    edges: tuple[Edge, ...]
    titles: Mapping[str, str] = field(default_factory=dict)
    """Node → a title for it, where there is one."""
    rule: str = ""
    """In words, by what it was written."""
    access: UsageHistory = UsageHistory()
    judgments: tuple[JudgmentLink, ...] = ()
    """What somebody said of it and others, oldest first; undone ones, too."""
    contradicted_by: tuple[int, ...] = ()
    """Memories that say otherwise and that nothing hides."""
