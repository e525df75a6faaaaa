"""Domain types, as frozen values.

An event is what an agent did, and never changes. Its episode is distilled into summaries, the index learns them, and
consolidation may let a newer one supersede an older one; only a user's `forget` deletes. Times are UTC
milliseconds, ids are integers for people, uids are stable across vaults.
"""

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

REMEMBERED = "remembered"
"""The rule of what a user or an agent asked to remember."""
UNTITLED = f"{REMEMBERED}:untitled"
"""The rule of a memory whose title is only the beginning of its text."""
NOTED = "noted"
"""The rule of what an agent noted and proved by the user's own words."""
RETRACTED = "retracted"
"""The rule of a note that ends a rule, and of the supersession by it."""
TURNED = "said:turned"
"""The rule of a sentence that is kept because it ends what an earlier one says; it has the kind of that."""
TAKEN_BACK = "said:taken-back"
"""The rule of words that are kept because they take back the answer before them; they have the kind of what rests on that."""
ENDING_RULES = (RETRACTED, TURNED, TAKEN_BACK)
"""Rules of what is kept only because it ends something, and told only as long as it does."""
UNPROVED_MARK = "\nQuoted, not proved: “"
"""Stands in the body of a note before the words that nobody has been found to say."""
UNTITLED_RULES = frozenset({UNTITLED, f"{NOTED}:untitled"})
GLOBAL_PROJECT = "global"
"""The key of the project whose memories are visible in every project."""
SCRATCH_PROJECT = "scratch"
"""The key of the project of sessions without a directory, or with a temporary one."""
PLACELESS_PROJECTS = frozenset({GLOBAL_PROJECT, SCRATCH_PROJECT})
COMMITTED = "Committed: "
"""Begins the line of a turn's body that has the subject of a commit."""
SETTINGS_NODE = "settings"
"""The kind of the node of the graph that stands for what is set in a file; its id is the file's path in its project."""
CLOCK_SKEW_MAX_MS = 7 * 86_400_000
"""Milliseconds; a time further in the future comes from a wrong clock."""


Speaker = Literal["tool", "agent", "told", "user"]
"""Who speaks; `told` is the user's word that an agent tells and his own words prove."""


class EventKind(enum.StrEnum):
    """An action of an agent, independent of the client's name for it."""

    SESSION_START = "session_start"
    PROMPT = "prompt"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    TOOL_FAILURE = "tool_failure"
    SUBAGENT_START = "subagent_start"
    SUBAGENT_STOP = "subagent_stop"
    STOP = "stop"
    AGENT_TEXT = "agent_text"
    """A text of the session's own agent in the middle of its turn."""
    TOOL_REFUSED = "tool_refused"
    """A tool call that the user did not let run, with what he said instead, if anything."""
    COMPACT_START = "compact_start"
    COMPACT_END = "compact_end"
    SESSION_END = "session_end"
    NOTIFICATION = "notification"
    OTHER = "other"


class Kind(enum.StrEnum):
    """The subject of a summary."""

    DECISION = "decision"
    FIX = "fix"
    FAILURE = "failure"
    CHANGE = "change"
    DISCOVERY = "discovery"
    PREFERENCE = "preference"
    INSTRUCTION = "instruction"
    FACT = "fact"
    TASK = "task"
    NOTE = "note"
    SESSION = "session"


RULE_KINDS = (Kind.INSTRUCTION, Kind.PREFERENCE)
"""Kinds that say how something is to be done from now on."""
ORDER_KINDS = frozenset({Kind.DECISION, *RULE_KINDS})
STATED_KINDS = (Kind.DECISION, Kind.FACT, Kind.INSTRUCTION, Kind.NOTE, Kind.PREFERENCE, Kind.TASK)
"""Kinds that state something and may be repeated, corrected, revoked or done; the others tell what was done."""


class Tier(enum.StrEnum):
    """The origin of a summary, most trusted first."""

    CORE = "core"
    FILE = "file"
    AGENT = "agent"
    CAPTURED = "captured"


def noted_rule(rule: str) -> str:
    """The rule of a note that is proved, of one that was remembered by `rule`."""
    return f"{NOTED}:untitled" if rule in UNTITLED_RULES else NOTED


class Authority(enum.IntEnum):
    """Authority of a statement's speaker, least first: only the same or a greater one may replace it."""

    TOOL_OUTPUT = 10
    AGENT_TEXT = 20
    AGENT_CALL = 30
    USER_TOLD = 35
    USER_PROMPT = 40
    USER_HAND = 50

    @property
    def code(self) -> int:
        """The number by which vaults, exports and logs write it, 1 to 5. The rule NOTED tells USER_TOLD from the agent's call."""
        return self.value // 10

    @staticmethod
    def of(code: int, rule: str = "") -> "Authority":
        """The authority that a code stands for, of a memory with this rule. ValueError if there is none."""
        is_proved = code == Authority.AGENT_CALL.code and rule.partition(":")[0] == NOTED
        return Authority.USER_TOLD if is_proved else Authority(code * 10)

    @property
    def speaker(self) -> Speaker:
        """Speakers."""
        if self >= Authority.USER_PROMPT:
            return "user"
        if self is Authority.USER_TOLD:
            return "told"
        return "tool" if self is Authority.TOOL_OUTPUT else "agent"

    @property
    def description(self) -> str:
        """The speaker and the way, for people."""
        return _AUTHORITY_DESCRIPTIONS[self]


_AUTHORITY_DESCRIPTIONS = {
    Authority.TOOL_OUTPUT: "the output of a tool",
    Authority.AGENT_TEXT: "the agent in an answer",
    Authority.AGENT_CALL: "the agent with a tool",
    Authority.USER_TOLD: "the user, told by the agent",
    Authority.USER_PROMPT: "the user in a prompt",
    Authority.USER_HAND: "the user by hand",
}


class EdgeType(enum.StrEnum):
    """The relation of one node of the provenance graph to another."""

    CAUSES = "causes"
    DERIVES_FROM = "derives_from"
    CONTRADICTS = "contradicts"
    EDITS = "edits"
    REFERENCES = "references"
    CALLS = "calls"
    IMPORTS = "imports"
    SIMILAR_TO = "similar_to"
    SUPERSEDES = "supersedes"


class Stance(enum.StrEnum):
    """The relation between two memories, as a user or agent judges it."""

    SUPERSEDES = "supersedes"
    CONTRADICTS = "contradicts"
    COMPATIBLE = "compatible"
    DUPLICATE = "duplicate"
    UNRELATED = "unrelated"


HIDING_RELATIONS = frozenset({Stance.SUPERSEDES, Stance.DUPLICATE})
"""Relations by which the first memory hides the other."""


RELATION_WORDS: Mapping[str, str] = {
    Stance.SUPERSEDES.value: "supersedes",
    Stance.DUPLICATE.value: "says the same as",
    Stance.CONTRADICTS.value: "contradicts",
    Stance.COMPATIBLE.value: "is compatible with",
    Stance.UNRELATED.value: "is unrelated to",
}
"""Relation → the verb between two memories."""


@dataclass(frozen=True, slots=True)
class SessionRef:
    """A session as a client names it, before memd knows it."""

    client: str
    key: str
    directory: str | None = None
    """Where the agent was started: the client's stable root if known, else its cwd."""


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event that is not stored yet: redacted, truncated, with its idempotence key."""

    session: SessionRef
    key: str
    kind: EventKind
    name: str
    """The client's own name of the event."""
    at: int
    source: str
    """`live`, `spool`, `import`, or `transcript`: what the daemon read in the file of a live session."""
    payload: Mapping[str, Any]
    turn: str | None = None
    """The client's id of the prompt that this belongs to."""
    tool: str | None = None
    agent: str | None = None
    """The subagent that did it; None for the session's own agent."""
    former_keys: tuple[str, ...] = ()
    """Keys that an older memd would have stored it under: what has one of them is this event."""


ELSEWHERE = "memd_project"
"""The field of an event's payload with the key of its project, where that is not its session's."""


AGENTS_IMPORT = "agent"
"""The source of an event that an agent's shell imported: nobody but that agent says that it happened."""
BRANCH = "git_branch"
"""The field of a payload with the git branch that was checked out where a prompt was given; absent if none was."""
REMOTE = "git_remote"
"""The field of a payload with the address of the repository's remote, where its client recorded it."""
TITLE_CHARACTERS_MAX = 200
"""Characters of a memory's title."""
BRANCH_CHARACTERS_MAX = 200
COPY_ID = "copy_id"
"""Field of a payload: what a line of a transcript has in common with its copies, whose uuid may be another one."""
TITLE_EVENT = "SessionTitle"
"""The name of an event that gives its session a title of the client's: `title`, and `title_kind`, one of"""
TITLE_KINDS = ("summary", "ai", "custom")
"""what the client sums up, what its model proposes, what the user writes; the last goes before the others."""
SUMMING_TITLE = TITLE_KINDS[0]
"""The kind that sums up a conversation up to one of its turns; the others name a session as a whole."""
PATCH = "changed_lines"
"""The field of an event's payload with `file`, `old` and `new` of each place that it changed, where its client told no patch."""


@dataclass(frozen=True, slots=True)
class Event:
    """A stored event. `id` is its sequence number, the order of arrival; `at` the time it happened."""

    id: int
    session_id: int
    kind: EventKind
    name: str
    at: int
    payload: Mapping[str, Any]
    source: str = "live"
    turn: str | None = None
    tool: str | None = None
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class Project:
    """The place that memories belong to."""

    id: int
    key: str
    name: str
    reason: str
    """Why the directory belongs to this project, in words."""


@dataclass(frozen=True, slots=True)
class Session:
    """One run of one client in one directory."""

    id: int
    uid: str
    client: str
    key: str
    project_id: int
    directory: str | None
    title: str | None
    started_at: int
    last_event_at: int


@dataclass(frozen=True, slots=True)
class Source:
    """The event that a summary comes from, and its words that the summary is based on."""

    event_id: int
    quote: str
    authority: Authority = Authority.AGENT_TEXT
    """Whose words these are."""


@dataclass(frozen=True, slots=True)
class DraftEdge:
    """An edge from a draft: to another draft of the same episode (`slot`) or to a node."""

    type: EdgeType
    to_kind: str
    """`slot`, `file`, `settings`, `event` or `summary`."""
    to_id: str
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting that edits of a file gave another value."""

    file: str
    """Relative to the project, if it is in it."""
    key: tuple[str, ...]
    """The name of the setting, after what it belongs to as far as the edit shows that."""
    was: str
    """Empty if the edits do not show it."""
    now: str
    is_whole: bool = False
    """Whether all of the file was seen, so that the key is complete."""
    passed: tuple[str, ...] = ()
    """Values that it had in between."""

    def __str__(self) -> str:
        """The change in words: `server.port 8080 → 9090`."""
        return f"{name_setting(self.key)} {self.was} → {self.now}"


_NAMED_PART = re.compile(r"(?:- )?(?:[\w-]+:? ){0,2}[\"']?(\w[\w-]*)[\"']?$")
"""What a setting belongs to, by its last word: `server`, `class A`, `- name: web`, `variable "zone"`."""


def name_setting(key: tuple[str, ...]) -> str:
    """The name of a setting with what it belongs to, as far as that are names and not code: `server.port`."""
    around = (found[1] for part in key[:-1] if (found := _NAMED_PART.match(part)))
    return ".".join((*around, key[-1]))


@dataclass(frozen=True, slots=True)
class Draft:
    """A summary as the distiller proposes it."""

    slot: str
    """Identifies it within its episode: `turn`, `decision/0`, … The same events give the same slots."""
    kind: Kind
    title: str
    body: str
    at: int
    rule: str
    """The distiller's rule that wrote it, for `mem_why`."""
    sources: tuple[Source, ...]
    tier: Tier = Tier.CAPTURED
    tags: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    topic_key: str | None = None
    expires_at: int | None = None
    confidence: float = 0.5
    quality: float = 0.5
    edges: tuple[DraftEdge, ...] = ()
    authority: Authority = Authority.AGENT_TEXT
    """The greatest speaker who stated it."""
    title_reasons: tuple[tuple[str, float], ...] = ()
    """In words, why its title was chosen, each with what it added to the title's rating of 0 to 1."""


_NAME_DIGITS = 7


def make_memory_name(uid: str) -> str:
    """Make the short name of a memory, the same in every vault, from the uid that is."""
    return f"m{uid[:_NAME_DIGITS]}"


SIGNIFICANCE_TAG = "significance:"
"""The beginning of the tag with a memory's rating from 1 to 10, if whoever stored it gave one."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A memory. `at` is the time of its events, not of its distilling."""

    id: int
    uid: str
    project_id: int
    session_id: int | None
    kind: Kind
    tier: Tier
    source: str
    title: str
    body: str
    at: int
    created_at: int
    updated_at: int
    rule: str
    episode: str | None = None
    topic_key: str | None = None
    tags: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    expires_at: int | None = None
    pinned_at: int | None = None
    confidence: float = 0.5
    quality: float = 0.5
    revisions: int = 1
    duplicates: int = 1
    superseded_by: int | None = None
    archived_at: int | None = None
    """When it was put away; also of what was kept because it ended something and ends nothing any more."""
    authority: Authority = Authority.AGENT_TEXT
    """The greatest speaker who stated it."""
    pinned_by: Authority | None = None
    """Who pinned it; None if it is not pinned."""
    author: str = ""
    """The teammate whose memory it is; empty for this vault's own."""
    rejected_at: int | None = None
    """When the user rejected it, or what says the same."""

    @property
    def significance(self) -> int | None:
        """The rating from 1 to 10 that it was stored with."""
        rated = (
            one.removeprefix(SIGNIFICANCE_TAG)
            for one in self.tags
            if one.startswith(SIGNIFICANCE_TAG)
        )
        return next((int(one) for one in rated if one.isdecimal()), None)

    @property
    def name(self) -> str:
        """Its name, the same in every vault; its number is another in each."""
        return make_memory_name(self.uid)

    @property
    def speaker(self) -> Speaker | Literal["team"]:
        """Its speaker."""
        return "team" if self.author else self.authority.speaker

    @property
    def standing(self) -> Authority:
        """Its authority, or that of who pinned or rejected it: only the same or a greater one replaces it."""
        if self.rejected_at is not None:
            return Authority.USER_HAND
        return max(self.authority, self.pinned_by or self.authority)

    def is_expired(self, now: int) -> bool:
        """Return whether it holds no longer at this time."""
        return self.expires_at is not None and self.expires_at <= now


@dataclass(frozen=True, slots=True)
class Edge:
    """A stored edge of the provenance graph; nodes are (kind, id as text), such as (`file`, path)."""

    id: int
    from_kind: str
    from_id: str
    type: EdgeType
    to_kind: str
    to_id: str
    confidence: float
    rule: str
    at: int
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Supersession:
    """A newer summary hides an older one: the rule, their similarity, and what the guards said."""

    id: int
    newer_id: int
    older_id: int
    rule: str
    cosine: float | None
    guard: str
    at: int
    undone_at: int | None = None


@dataclass(frozen=True, slots=True)
class Judgment:
    """A user's or agent's judgment on two memories: `newer` supersedes, contradicts … `older`."""

    id: int
    newer_id: int
    older_id: int
    relation: Stance
    reason: str
    who: str
    """`agent` or `user`."""
    at: int
    undone_at: int | None = None


@dataclass(frozen=True, slots=True)
class Space:
    """Identifies a vector space. Vectors of different spaces are never compared."""

    provider: str
    model: str
    version: str
    dimensions: int
    digest: str = ""
    document_prefix: str = ""
    query_prefix: str = ""

    @property
    def name(self) -> str:
        """One line that is equal exactly if the spaces are."""
        parts = (self.provider, self.model, self.version, str(self.dimensions), self.digest)
        return "/".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check of `memd doctor`."""

    name: str
    """The part of memd that was checked."""
    verdict: Literal["ok", "warning", "problem"]
    words: str
    remedy: str = ""
    """What to do about it; empty if there is nothing to do."""
    fixable: bool = False
    """Whether `memd doctor --fix` repairs it."""
