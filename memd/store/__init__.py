"""SQLite: the only package that speaks SQL.

There are two kinds of table. Truth (events, summaries, supersessions, edges, the ledger) cannot be
computed again; everything that the index knows can be computed from it. `changes` joins the two:
triggers write to it whenever a summary changes, and the indexer reads from it. So a crash between
truth and index loses nothing, and `memd reindex` is always safe.

Here: the rows that the store shares with index and recall.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from memd.models import Authority, Kind

Fields = dict[str, Any]
"""A record's fields: a JSON object."""
SummaryPair = tuple[int, int]
"""Two summary ids, the lower one first."""


@dataclass(frozen=True, slots=True)
class Posting:
    """One term of one passage, with how often it occurs in the title and in the body."""

    term: str
    in_title: int
    in_body: int


@dataclass(frozen=True, slots=True)
class NewPassage:
    """A piece of a summary's body, [start, stop) in characters, ready to be stored."""

    summary_id: int
    seq: int
    start: int
    stop: int
    title: str
    text: str
    identifiers: str
    postings: tuple[Posting, ...]

    @property
    def length(self) -> int:
        """Number of terms in title and body, repeated ones included."""
        return sum(p.in_title + p.in_body for p in self.postings)


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A passage as the index loads it; `postings` is a blob of (u4 term, u1 title, u1 body)."""

    id: int
    summary_id: int
    seq: int
    length: int
    postings: bytes


@dataclass(frozen=True, slots=True)
class IndexRow:
    """A summary's columns in the index, besides its text. Lengths are in characters."""

    summary_id: int
    project_id: int
    session_id: int
    """0 if it belongs to no session."""
    kind: str
    tier: str
    source: str
    at: int
    expires_at: int | None
    is_pinned: bool
    is_retired: bool
    """Superseded or archived."""
    quality: float
    confidence: float
    revisions: int
    duplicates: int
    title_length: int
    body_length: int
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SummaryUse:
    """The number of answers that returned a summary, and the time of the last (UTC milliseconds)."""

    count: int
    last_at: int


@dataclass(frozen=True, slots=True)
class ContextCandidate:
    """A memory that may go into a session's context. Times are UTC milliseconds."""

    id: int
    project_id: int
    session_id: int | None
    kind: Kind
    title: str
    at: int
    created_at: int
    authority: Authority = Authority.AGENT_TEXT
    is_pinned: bool = False
    repeats: int = 0
    """How often it was repeated or revised."""
    uses: int = 0
    """How often an answer to a question returned it, or a session that was shown it used it."""
    episode: str | None = None
    body: str = ""
    """The beginning of its body."""
    tags: tuple[str, ...] = ()
    author: str = ""
    """The teammate whose memory it is."""
    source: str = ""
    """The client that it came from, or who asked to remember it."""
    is_pinned_by_user: bool = False
    """Whether the user himself pinned it."""
    ignored: int = 0
    """Sessions that were shown it since then and did not use it."""
    contradicted_by: tuple[int, ...] = ()
    """The visible memories that contradict it."""
    caveat: str = ""
    """In words, what stands against it: whose word, or a later value."""
    overruled_by: tuple[int, ...] = ()
    """Those that contradict it with a greater authority."""
    edited: tuple[str, ...] = ()
    """The files that it edited; only of what the last sessions left."""
    commits: tuple[str, ...] = ()
    """The subjects of the commits that it made; only of what the last sessions left."""
    left_open: tuple[str, ...] = ()
    """What its session said is still to be done; only of the last thing that a session did."""
    remark: str = ""
    """What tells it from another one with the same title."""
    is_of_branch: bool = False
    """Whether it names a file that the branch changed which is checked out."""


class SummaryHead(NamedTuple):
    """The columns of a summary that ranking reads, in a fifth of the time that the whole takes."""

    id: int
    project_id: int
    kind: str
    at: int
    title: str
    body: str
    episode: str | None
    superseded_by: int | None
    superseded_at: int | None
    """The event time of the summary that supersedes it."""


_TEAMMATE_RANK = (Authority.AGENT_CALL + Authority.USER_PROMPT) / 2


@dataclass(frozen=True, slots=True)
class MemoryStanding:
    """A memory's speaker and authority. `at` is UTC milliseconds."""

    id: int
    at: int
    authority: Authority
    pinned_by: Authority | None
    author: str

    @property
    def height(self) -> Authority:
        """The greatest authority that stands behind it: who said it, or who pinned it."""
        return max(self.authority, self.pinned_by or self.authority)

    @property
    def rank(self) -> tuple[float, bool]:
        """Greater for who may replace the other; a teammate stands between the agent and the user."""
        height = float(self.height) if not self.author else min(self.height, _TEAMMATE_RANK)
        return height, self.pinned_by is not None


@dataclass(frozen=True, slots=True)
class SettingsEdge:
    """The settings that a memory wrote in a file, as its edge to the file records them. `at` is UTC milliseconds."""

    summary_id: int
    project_id: int
    at: int
    file: str
    detail: Mapping[str, Any]
