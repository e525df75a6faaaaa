"""The parameters of every call: one model a call, for the MCP tools and the control calls alike. Pure.

The input schemas of the MCP tools are made from these models, with the fields' docstrings as descriptions.
`AgentLimit` marks what agents may not pass, or only less of.
"""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from memd.errors import BadRequest
from memd.models import Kind, Stance
from memd.server.jsonrpc import JsonSchema, field_docstrings, plain_schema, says
from memd.time_expressions import DAY_MS, parse_end, parse_start

ID_MAX = 2**53 - 1
QUERY_CHARACTERS = 4_000
NAME_CHARACTERS = 1_000
PATH_CHARACTERS = 4_096
TEXT_CHARACTERS = 65_536
K_MAX, IDS_MAX, BATCH_MAX = 50, 20, 1_000
WITHDRAW_MAX = 200_000
AROUND_MAX = 50
DEPTH_MAX = 6
DAYS_MAX = 366
LIST_MAX = 500
STEPS_MAX = 20_000
_SHOWN_CHARACTERS, _MESSAGE_CHARACTERS = 40, 200

_MEMORY_NAME = re.compile(r"m[0-9a-f]{4,32}")
_MEMORY_NODE = re.compile(r"#?(\d{1,15})|summary:(\d{1,15})")
_OTHER_NODE = re.compile(r"(file|event|summary|origin):(.+)", re.DOTALL)

R = TypeVar("R", bound="Request")


@dataclass(frozen=True, slots=True)
class AgentLimit:
    """Limits of a parameter for agents over MCP: the largest number, or the most items; 0 forbids it."""

    most: int


_CONTROL_ONLY = AgentLimit(0)


@dataclass(frozen=True, slots=True)
class Unlisted:
    """Marks what agents may pass and seldom need: it is described here, and the tool's definition leaves it out."""


UNLISTED = Unlisted()


def _to_integer(value: object) -> object:
    # 5.0 is an integer in JSON Schema, and some clients write integers like that.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _time_field(description: str) -> Any:
    return says(f"{description}: 2026-03-01, yesterday, 7d, last week, or UTC milliseconds.")


WHOLE_NUMBER = BeforeValidator(_to_integer)
Id = Annotated[int, Field(ge=1, le=ID_MAX), WHOLE_NUMBER]
MemoryId = Annotated[Id, says("A memory's number, as in #12.")]
Number = Annotated[int, Field(ge=0, le=ID_MAX), WHOLE_NUMBER]
Name = Annotated[str, Field(min_length=1, max_length=NAME_CHARACTERS)]
PathText = Annotated[str, Field(min_length=1, max_length=PATH_CHARACTERS)]
BoostFactor = Annotated[float, Field(ge=0.001, le=1_000)]
# An empty title or reason counts as none; the schema asks agents to leave it out instead.
OptionalName = Annotated[str, Field(max_length=NAME_CHARACTERS, json_schema_extra={"minLength": 1})]
KindName = Annotated[Kind, Field(strict=False)]
Time = Annotated[str, Field(max_length=100)] | Annotated[int, WHOLE_NUMBER]
Tags = list[Annotated[Name, says("A tag.")]]
KindFilter = Annotated[list[KindName], Field(max_length=len(Kind), description="Only these kinds.")]
ProjectFilter = Annotated[Name, says("'current', 'all', or a project's name or path.")]
MemoryIds = Annotated[
    list[MemoryId],
    Field(min_length=1, max_length=BATCH_MAX, description="Numbers of memories, as in #12."),
    AgentLimit(IDS_MAX),
]
CallerDirectory = Annotated[PathText | None, _CONTROL_ONLY]
Neighbours = Annotated[int, Field(ge=0, le=AROUND_MAX), WHOLE_NUMBER]
PageSize = Annotated[int, Field(ge=1, le=LIST_MAX), WHOLE_NUMBER]
PageCursor = Annotated[list[Number], Field(min_length=2, max_length=2)]
"""Time and id of the last row of the page before."""


class Request(BaseModel):
    """The parameters of one call."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class ScopedRequest(Request):
    """The parameters of a call that sees the memories of one project, or of all."""

    project: ProjectFilter = "current"
    directory: CallerDirectory = None


class EmptyRequest(Request):
    """A call without parameters."""


class StatusRequest(Request):
    """`memd/status`: with a directory, also which project that is."""

    directory: PathText | None = None


class ProjectRequest(Request):
    """`memd/project`: the project of a directory, or of this name or key."""

    project: Name = "current"
    directory: PathText | None = None


class MergeProjectsRequest(Request):
    """`memd/project/merge`: names, keys or directories; what is in `project` moves to `into`."""

    project: Name
    into: Name
    dry_run: bool = True


class UndoMergeRequest(Request):
    """`memd/project/merge/undo`: the project that is gone, by its name or key."""

    project: Name


class RenameProjectRequest(Request):
    """`memd/project/rename`."""

    project: Name
    name: Name


class SwitchRequest(ProjectRequest):
    """`memd/switch`: set the state of a session or a project; without a state, list all switches."""

    state: Literal["on", "off", "capture-only", "recall-only"] | None = None
    session: Name | None = None


class SearchRequest(ScopedRequest):
    """`mem_search` and `memd/search`."""

    query: Annotated[str, Field(max_length=QUERY_CHARACTERS)] = ""
    """What you want to know, in plain words, with names as they are; "phrases" and prefix* work."""
    k: Annotated[
        Annotated[int, Field(ge=1, le=BATCH_MAX), WHOLE_NUMBER] | None, AgentLimit(K_MAX)
    ] = None
    """How many hits; 5 if left out."""
    offset: Annotated[Annotated[int, Field(ge=0, le=10000), WHOLE_NUMBER], UNLISTED] = 0
    """Skip so many hits: the next page."""
    kinds: KindFilter = []
    session: Name | None = None
    """Only this one: the beginning of its id, or 'current'."""
    source: Annotated[Name | None, UNLISTED] = None
    """Only what came from there: claude-code, codex, copilot, cursor, opencode, pi, agent, user, or an importer's name."""
    since: Annotated[Time | None, _time_field("From this time on")] = None
    until: Annotated[Time | None, _time_field("Up to this time")] = None
    tags: Annotated[Annotated[Tags, Field(max_length=20)], UNLISTED] = []
    """Only memories with all of these tags."""
    topic_key: Name | None = None
    """The exact name of a slot of knowledge: build.command."""
    include_superseded: bool = False
    """Also show what a newer memory replaced."""
    include_turns: bool = False
    """Also what was said in past sessions, word for word."""
    all_words: Annotated[bool, UNLISTED] = False
    """Only memories that have every word of the query; else some are enough."""
    min_score: Annotated[Annotated[float | None, Field(ge=0)], UNLISTED] = None
    """No hit with a lower score; see the scores of an earlier answer with the same profile."""
    show_all: bool = False
    """Also show the nearest hits when the verdict is nothing."""
    legs: Annotated[
        Annotated[list[Literal["topic", "lexical", "vector"]], Field(max_length=3)], UNLISTED
    ] = []
    """Rank by these legs only."""
    profile: Annotated[Name | None, UNLISTED] = None
    """A named ranking recipe: memd, siftcoder, … The configured one if left out."""
    focus: Annotated[
        list[Annotated[Name, says("A word, or a glob of files.")]], Field(max_length=20)
    ] = []
    """What you work on (billing, src/auth/**): that counts more for the rest of the session; [] ends it."""
    boost: Annotated[dict[Name, BoostFactor], Field(max_length=20), UNLISTED] = {}
    """Word or glob of files → the factor by which the score of what matches is multiplied, for this search alone."""
    browse: Annotated[bool, UNLISTED] = False
    """Instead of a query: everything, core memories first, then agents', then those of files, each the newest first."""
    explain: Annotated[bool, UNLISTED] = False
    """Also why each candidate is or is not a hit."""
    as_of: Annotated[
        Annotated[
            Time | None, _time_field("See only what was known then, and count ages from there")
        ],
        UNLISTED,
    ] = None
    min_event: Annotated[Number | None, UNLISTED] = None
    """Wait (at most 2 s) until the event with this sequence number, or the txid of an answer, is searchable."""
    keywords: Annotated[Annotated[str, Field(max_length=NAME_CHARACTERS)], UNLISTED] = ""
    """More words to look for, which do not change what the query means to a model."""
    embedding: Annotated[Annotated[list[float], Field(max_length=8_192)] | None, UNLISTED] = None
    """The query's vector in the leading space, instead of embedding the query."""


SESSIONS_MAX = 50
"""Sessions that a timeline lists."""


class TimelineRequest(ScopedRequest):
    """`mem_timeline` and `memd/timeline`: around an id or a time, within a session or not.

    Around now if none is given. With `days`, all of so many days up to that of `at`, or today. Control
    calls may say `since` and `until` instead, to count the days of another time zone.
    """

    id: Id | None = None
    """Around this memory."""
    at: Annotated[Time | None, _time_field("Around this time")] = None
    session: Name | None = None
    """Only of this one: the beginning of its id, or 'current'."""
    before: Neighbours = 5
    """So many memories before."""
    after: Neighbours = 5
    """So many memories after."""
    days: Annotated[int, Field(ge=1, le=DAYS_MAX), WHOLE_NUMBER] | None = None
    """Instead: all of so many days, up to that of `at` or today."""
    sessions: Annotated[int, Field(ge=1, le=SESSIONS_MAX), WHOLE_NUMBER] | None = None
    """Instead: a row for each of the last so many sessions."""
    kinds: Annotated[KindFilter, UNLISTED] = []
    source: Annotated[Name | None, UNLISTED] = None
    """Only what came from there: claude-code, codex, copilot, cursor, opencode, pi, agent, user."""
    since: Annotated[Time | None, _CONTROL_ONLY] = None
    until: Annotated[Time | None, _CONTROL_ONLY] = None


class WhyRequest(ScopedRequest):
    """`mem_why` and `memd/why`."""

    id: Id | Name
    """A memory (12), a file ("auth.ts", "file:/a/b.py") or an event ("event:7")."""
    depth: Annotated[Annotated[int, Field(ge=1, le=DEPTH_MAX), WHOLE_NUMBER], UNLISTED] = 2
    """How many steps of edges around it."""


class GetRequest(ScopedRequest):
    """`mem_get` and `memd/get`."""

    ids: MemoryIds


class OriginRequest(Request):
    """Origin of a memory: a file, a lasting name for the part of it, and the line it was in.

    `moves`: the caller chose the project, so the memory leaves the project where it was before.
    """

    path: PathText
    part: Annotated[str, Field(max_length=NAME_CHARACTERS)] = ""
    line: Id | None = None
    moves: bool = False
    has_front_matter: bool = False


class RememberRequest(Request):
    """`mem_remember`, and one memory of `memd/remember`: importers also say when, who, and where."""

    text: Annotated[str, Field(min_length=1, max_length=TEXT_CHARACTERS)]
    """One sentence that stands alone, with its subject."""
    title: OptionalName | None = None
    """Default: from the text."""
    kind: KindName = Kind.NOTE
    """Its subject."""
    topic_key: Name | None = None
    """Its slot (build.command): a new value replaces the old one."""
    tags: Annotated[Annotated[Tags, Field(max_length=20)], UNLISTED] = []
    """Words to filter by."""
    significance: Annotated[int | None, Field(ge=1, le=10), WHOLE_NUMBER, UNLISTED] = None
    """How much it matters, 1 to 10; the profile memu ranks by it."""
    files: Annotated[
        Annotated[list[Annotated[Name, says("A path.")]], Field(max_length=100)], UNLISTED
    ] = []
    """The files that it is about."""
    project: Name = "current"
    """Leave it out: only the user writes to others."""
    why: Annotated[str, Field(max_length=NAME_CHARACTERS)] = ""
    """Its reason, briefly."""
    content: Annotated[dict[str, Any] | None, UNLISTED] = None
    """What it says as an object of your own: {"diet": "vegan"}."""
    where: Annotated[
        list[Annotated[Name, says("A path, a directory/, a command, or `branch NAME`.")]],
        Field(max_length=10),
    ] = []
    """Where it holds, if not in the whole project."""
    quote: Annotated[str, Field(max_length=QUERY_CHARACTERS)] = ""
    """The user's exact words that prove it, a whole sentence; of a finding, a tool's output."""
    about: Annotated[str, Field(max_length=QUERY_CHARACTERS)] = ""
    """If the quote only agrees or chooses: the exact words of the proposal or question."""
    replaces: Annotated[list[MemoryId], Field(max_length=IDS_MAX)] = []
    """What holds no longer."""
    check: Annotated[str, Field(max_length=NAME_CHARACTERS)] = ""
    """Of a rule: never `CMD`; `CMD` before commit|done; never edit `PATH`."""
    expires_in: Name | None = None
    """Until when it holds: 12h, 30d, 2w."""
    at: Annotated[Time | None, _CONTROL_ONLY] = None
    session: Annotated[Name | None, _CONTROL_ONLY] = None
    client: Annotated[Name | None, _CONTROL_ONLY] = None
    source: Annotated[Name | None, _CONTROL_ONLY] = None
    directory: CallerDirectory = None
    tier: Annotated[Literal["agent", "file"], _CONTROL_ONLY] = "agent"
    origin: Annotated[OriginRequest | None, _CONTROL_ONLY] = None
    speaker: Annotated[Literal["user", "agent", "tool"] | None, _CONTROL_ONLY] = None
    """Of what is imported: whose word it says that it is."""
    expires_at: Annotated[Time | None, _CONTROL_ONLY] = None


class RememberBatchRequest(Request):
    """A batch of `memd/remember`."""

    memories: Annotated[list[RememberRequest], Field(max_length=BATCH_MAX)]


class ForgetRequest(ScopedRequest):
    """`mem_forget` and `memd/forget`: these ids, or all that fits a query, session, project and time."""

    ids: MemoryIds = []
    query: (
        Annotated[str, Field(max_length=QUERY_CHARACTERS, json_schema_extra={"minLength": 1})]
        | None
    ) = None
    """Instead of ids: all that says these words."""
    session: Name | None = None
    """All of this session: the beginning of its id, or 'current'."""
    since: Annotated[Time | None, _time_field("From this time on")] = None
    until: Annotated[Time | None, _time_field("Up to this time")] = None
    dry_run: bool = True
    """false, with the same arguments and the token, erases for good."""
    token: Name | None = None
    """What the dry run returned: exactly what it showed goes."""


class ScrubRequest(Request):
    """`memd/scrub`: a regular expression, or with `secrets` the present rules of redaction."""

    pattern: Annotated[str, Field(max_length=QUERY_CHARACTERS)] | None = None
    secrets: bool = False
    dry_run: bool = True


class PinRequest(ScopedRequest):
    """`mem_pin` and `memd/pin`."""

    id: MemoryId
    pinned: bool = True
    """false unpins."""


class JudgeRequest(ScopedRequest):
    """`mem_judge` and `memd/judge`: `id` is `relation` to `other`; with `undo`, take that back."""

    id: MemoryId
    other: Id
    """The other memory's number."""
    relation: Annotated[Stance, Field(strict=False)] | None = None
    """What id is to other. supersedes: other holds no longer. duplicate: both say the same.
    contradicts: only one can hold, and it is open which. compatible: both hold."""
    reason: OptionalName = ""
    """Why, in a few words; shown by mem_why."""
    undo: bool = False
    """Take back what holds between the two instead."""


class OpenQuestionsRequest(ScopedRequest):
    """`memd/judge/open`: which visible memories contradict each other, and nobody has judged."""

    limit: Annotated[int, Field(ge=1, le=BATCH_MAX), WHOLE_NUMBER] = 20


class ReviewListRequest(ScopedRequest):
    """`memd/review/list`: what was learned and the user has not looked at, or what he rejected."""

    rejected: bool = False
    limit: Annotated[int, Field(ge=0, le=BATCH_MAX), WHOLE_NUMBER] = 50
    """0: only count."""


class ReviewRequest(Request):
    """`memd/review`: what the user says of these memories."""

    ids: Annotated[list[MemoryId], Field(min_length=1, max_length=IDS_MAX)]
    verdict: Literal["keep", "seen", "reject", "everywhere", "undo"]


class EnforceRequest(Request):
    """`memd/enforce`: refuse what breaks this rule, or with `off` only tell it."""

    id: Id
    off: bool = False


class OverviewRequest(ScopedRequest):
    """`memd/overview`: what is known, in one view; `limit` memories of each sort."""

    limit: Annotated[int, Field(ge=1, le=K_MAX), WHOLE_NUMBER] = 8


class PageRequest(ScopedRequest):
    """`memd/sessions`, and what else lists by time, newest first."""

    after: PageCursor | None = None
    limit: PageSize = 50


class ListRequest(PageRequest):
    """`memd/list`: memories by what they are, newest first. Times are UTC milliseconds."""

    kinds: KindFilter = []
    session: Name | None = None
    source: Name | None = None
    speaker: Literal["user", "told", "agent", "tool"] | None = None
    pinned: bool = False
    since: Number | None = None
    until: Number | None = None
    include_superseded: bool = False


class ActivityRequest(ScopedRequest):
    """`memd/activity`: counts for `steps` of `step_ms` milliseconds from `since` (UTC milliseconds) on.

    Events of more than a hundred days are counted where their session began.
    """

    since: Number
    step_ms: Annotated[int, Field(ge=60_000, le=366 * DAY_MS), WHOLE_NUMBER]
    steps: Annotated[int, Field(ge=1, le=STEPS_MAX), WHOLE_NUMBER]


class ProjectsRequest(Request):
    """`memd/projects`; without `counts` it names them only, which is quick in any vault."""

    counts: bool = True


class EditRequest(ScopedRequest):
    """`memd/edit`: another title or text of a memory; the old one stays behind the new one."""

    id: MemoryId
    title: OptionalName | None = None
    text: Annotated[str, Field(min_length=1, max_length=TEXT_CHARACTERS)] | None = None
    reason: OptionalName = ""


class CaptureEventRequest(Request):
    """One event of `memd/capture`, as the client's hook got it."""

    client: Name
    payload: Any
    event: Name | None = None
    """The event's name, as its hook was told it."""
    at: Number | None = None
    directory: PathText | None = None
    source: Literal["live", "spool", "import"] = "live"
    inject: bool = False
    """Whether its client can show its agent something: then the reply may have an `output`."""
    capture: bool = True
    """False: count the event and store nothing of it."""
    plain: bool = False
    """Answer a shell, which reads no JSON: `memd ok OUTPUT .` on a line, without OUTPUT if there is none; then hang up."""


class CaptureBatchRequest(Request):
    """A batch of `memd/capture`."""

    events: Annotated[list[CaptureEventRequest], Field(max_length=BATCH_MAX)]
    dry_run: bool = False
    """Only say what would become of them."""


class HideImportedRequest(Request):
    """`memd/imports/withdraw`: hide every memory that was imported from the file `path`, but for `staying`."""

    path: PathText
    staying: Annotated[list[Id], Field(max_length=WITHDRAW_MAX)]


class WatchRequest(Request):
    """`memd/watch`: follow the notes in this folder, or no longer; without it, list the folders that are followed."""

    folder: PathText | None = None
    remove: bool = False
    headings: bool = False
    """Make a memory of each section, not only of a long one's."""


class ImportMarkRequest(Request):
    """`memd/imports/mark`: this file was read to its end, as it was then."""

    path: PathText
    size: Number
    modified_at: Number


class ImportVaultRequest(Request):
    """`memd/import/vault`: merge the staged vault in a file of this name, beside the vault."""

    staged: Name


class ReindexRequest(Request):
    """`memd/reindex`: rebuild the index and wait; or only start to renew the model's vectors.

    With `memories`: distil all sessions again and wait; with `dry_run` say what that would change.
    """

    embeddings: bool = False
    memories: bool = False
    dry_run: bool = False


class DoctorRequest(Request):
    """`memd/doctor`; with `fix`, repair first what can be repaired safely."""

    fix: bool = False


class DryRunRequest(Request):
    """`memd/vacuum`: do it, or say what would be done."""

    dry_run: bool = False


class ConsolidateRequest(DryRunRequest):
    """`memd/consolidate`: a tick; or merge near-duplicates that each say something of their own."""

    merge: bool = False
    confirm: bool = False
    """Ask the writer before each merge."""


class PastNotesRequest(ProjectRequest):
    """`memd/notes/past`: read one stretch of past sessions, or say what would be sent."""

    again: bool = False
    """What was read in vain, too."""
    dry_run: bool = True


class SyncRequest(Request):
    """`memd/sync`: sync with the logs in a folder, known by the name of its place; without both, report."""

    place: PathText | None = None
    folder: PathText | None = None
    dry_run: bool = False


class JoinTeamRequest(ProjectRequest):
    """`memd/team/join`: share a project under its name on the team's server, or say what would be shared.

    Without a name it is that of the git remote, where the server has such a project.
    """

    name: Name | None = None
    instructions: bool = False
    dry_run: bool = True


class LeaveTeamRequest(Request):
    """`memd/team/leave`: by the project's name on the server."""

    name: Name
    withdraw: bool = False


class UndoConsolidationRequest(Request):
    """`memd/consolidate/undo`: a run (`r7`)."""

    what: Name
    dry_run: bool = False


class UndoRequest(Request):
    """`memd/undo`: take back the change with this name, or the last one of a project or all; with `listed` only name the last ten."""

    project: ProjectFilter = "all"
    directory: CallerDirectory = None
    what: Name | None = None
    listed: bool = False


class ConsolidationRunsRequest(Request):
    """`memd/consolidate/runs`: the latest runs."""

    limit: Annotated[int, Field(ge=1, le=BATCH_MAX), WHOLE_NUMBER] = 20


class ContextRequest(Request):
    """`memd/context`: what would be injected, into this session or a new one, of a directory's project or this one."""

    directory: PathText | None = None
    project: Name | None = None
    session: Name | None = None
    moment: Literal["startup", "resume", "clear", "compact", "prompt"] | None = None
    prompt: Annotated[str, Field(max_length=TEXT_CHARACTERS)] = ""
    explain: bool = False


class ToldRequest(Request):
    """`memd/told`: what agents were told by weeks, what came of it and what it cost."""

    weeks: Annotated[int, Field(ge=1, le=52)] = 4


class InjectedRequest(Request):
    """`memd/injected`: what was injected into this session, or the directory's latest one."""

    session: Name | None = None
    directory: PathText | None = None


class SessionRequest(InjectedRequest):
    """`memd/session`: a session to read, a page of its events in the order of time.

    With `check_secrets` the present rules of redaction are applied to every text once more.
    """

    after: PageCursor | None = None
    limit: PageSize = 200
    check_secrets: bool = False


def parse(model: type[R], given: Mapping[str, Any]) -> R:
    """Check the parameters of a control call. The BadRequest names the field, and no long value."""
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        raise _to_bad_request(error, _field_names(model)) from error


def read_span(request: TimelineRequest, now: int) -> tuple[int, int] | None:
    """The first and the last millisecond of the days asked for; None if no days are."""
    if request.since is not None or request.until is not None:
        since = 0 if request.since is None else parse_start(request.since, now)
        return since, now if request.until is None else parse_end(request.until, now)
    if request.days is None:
        return None
    day = parse_start(now if request.at is None else request.at, now, "at") // DAY_MS
    return (day - request.days + 1) * DAY_MS, (day + 1) * DAY_MS - 1


def parse_node(name: int | str) -> tuple[str, str]:
    """(kind, id) of a node as users write it: 12, `#12`, `file:/a/b.py`, or a file's name: `b.py`, `a/b.py`."""
    text = str(name).strip()
    if found := _MEMORY_NODE.fullmatch(text):
        return "summary", str(int(found[1] or found[2]))
    if found := _OTHER_NODE.fullmatch(text):
        return found[1], found[2]
    if "." in text or "/" in text:
        return "file", text
    if _MEMORY_NAME.fullmatch(text):
        return "name", text
    raise BadRequest("id: a number, a file's name, or a node such as file:/a/b.py")


def parse_tool_arguments(model: type[R], given: Mapping[str, Any]) -> R:
    """Check the arguments of an MCP tool as `parse` does, and the limits for agents."""
    limits = _agent_limits(model)
    for name, value in given.items():
        limit = limits.get(name, 0)
        if limit == 0:
            raise BadRequest(_unknown_field(name, [one for one in limits if limits[one] != 0]))
        if limit and isinstance(value, list) and len(value) > limit:
            raise BadRequest(f"{name}: more than {limit} items")
        if limit and isinstance(value, int | float) and value > limit:
            raise BadRequest(f"{name}: {_show_value(value)} is greater than the maximum of {limit}")
    request = parse(model, given)
    if nulls := [name for name, value in given.items() if value is None]:
        raise BadRequest(f"{nulls[0]}: null; leave it out instead")
    return request


@functools.cache
def _agent_limits(model: type[Request]) -> dict[str, int | None]:
    """Map each field to the most that agents may pass in it; None: what its type says."""
    fields = model.model_fields
    return {
        name: next((one.most for one in fields[name].metadata if isinstance(one, AgentLimit)), None)
        for name in _field_names(model)
    }


def _field_names(model: type[Request]) -> list[str]:
    """The fields of a model, those of every scoped request last."""
    return sorted(model.model_fields, key=ScopedRequest.model_fields.__contains__)


_TYPE_NAMES = {
    "string_type": "a text", "int_type": "a whole number", "float_type": "a number",
    "bool_type": "true or false", "list_type": "a list", "model_type": "an object",
}  # fmt: skip
"""What was expected, by the type of pydantic's error."""
_COMPLAINTS = {
    "missing": "is needed",
    "extra_forbidden": "there is no such argument",
    "string_too_short": "must not be empty",
    "string_too_long": "longer than {max_length} characters",
    "too_short": "fewer than {min_length} items",
    "too_long": "more than {max_length} items",
    "greater_than_equal": "{value} is less than the minimum of {ge}",
    "less_than_equal": "{value} is greater than the maximum of {le}",
    "enum": "must be one of {expected}",
    "literal_error": "must be one of {expected}",
}


def _to_bad_request(error: ValidationError, known: list[str]) -> BadRequest:
    """The first problem that pydantic found, in words."""
    problems = error.errors(include_url=False)
    first = problems[0]
    where = _field_path(first)
    if first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
        return BadRequest(_unknown_field(where, known))
    # A union has one problem for each of its types. A bound tells more than another type does.
    same = [one for one in problems if _field_path(one) == where]
    bound = next((one for one in same if one["type"] not in _TYPE_NAMES), None)
    if bound is not None:
        return BadRequest(f"{where}: {_describe_problem(bound)}")
    wanted = " or ".join(dict.fromkeys(_TYPE_NAMES[one["type"]] for one in same))
    return BadRequest(f"{where}: {_show_value(first['input'])} is not {wanted}")


def _unknown_field(name: str, known: list[str]) -> str:
    there_are = f"there are {', '.join(known)}" if known else "this call takes none"
    return f"{name[:60]}: there is no such argument; {there_are}"


def _field_path(problem: ErrorDetails) -> str:
    # Which member of a union pydantic tried ("int", "constrained-str", "function-before[…]") is no field.
    return ".".join(
        str(part)[:60]
        for part in problem["loc"]
        if isinstance(part, int) or (part not in {"int", "str"} and part.isidentifier())
    )


def _describe_problem(problem: ErrorDetails) -> str:
    values = {**problem.get("ctx", {}), "value": _show_value(problem["input"])}
    if "expected" in values:
        values["expected"] = values["expected"].replace("'", "").replace(" or ", ", ")
    message = problem["msg"][:_MESSAGE_CHARACTERS]
    message = f"{message[:1].lower()}{message[1:]}".replace("{", "{{").replace("}", "}}")
    return _COMPLAINTS.get(problem["type"], message).format(**values)


def _show_value(value: object) -> str:
    """A short value as it is, else only what it is."""
    if value is None:
        return "null"
    if isinstance(value, str | int | float) and len(repr(value)) <= _SHOWN_CHARACTERS:
        return repr(value) if isinstance(value, str) else str(value).lower()
    names = ((dict, "an object"), (list, "a list"), (str, "a text"))
    return next((name for kind, name in names if isinstance(value, kind)), "a number")


_CHECKED_HERE = frozenset({
    "maxLength", "minLength", "maxItems", "minItems", "maximum", "minimum", "default", "additionalProperties",
})  # fmt: skip
"""What a definition leaves out: memd checks it, and says in words what is wrong."""


def input_schema(model: type[Request]) -> JsonSchema:
    """The JSON schema of a tool's arguments as agents read it in every session: nothing that costs and tells little."""
    schema = plain_schema(model.model_json_schema(), field_docstrings(__name__))
    limits, fields = _agent_limits(model), model.model_fields
    return {
        "type": "object",
        "properties": {
            name: _shorten(schema["properties"][name])
            for name, limit in limits.items()
            if limit != 0 and UNLISTED not in fields[name].metadata
        },
        **({"required": schema["required"]} if schema["required"] else {}),
    }


def _shorten(field: JsonSchema) -> JsonSchema:
    short = {key: value for key, value in field.items() if key not in _CHECKED_HERE}
    if isinstance(items := short.get("items"), dict):
        short["items"] = _shorten(items)
        short["items"].pop("description", None)
    return short
