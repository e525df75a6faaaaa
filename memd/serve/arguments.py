"""What callers may ask for, typed and bounded. Pure.

The MCP tools check their arguments against JSON schemas (schemas.py) that say the same in words for
a model; a test holds the two together. The control calls check against these alone, strictly.
Not here: what the names and times mean (scope.py, when.py).
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from memd.models import Kind, Stance

ID_MAX = 2**53 - 1
QUERY_CHARACTERS = 4_000
NAME_CHARACTERS = 1_000
PATH_CHARACTERS = 4_096
TEXT_CHARACTERS = 65_536
K_MAX = 50
IDS_MAX = 20
BATCH_MAX = 1_000
WITHDRAW_MAX = 200_000
AROUND_MAX = 50
DEPTH_MAX = 6
AROUND = 5
DAYS_MAX = 366
DEPTH = 2

Id = Annotated[int, Field(ge=1, le=ID_MAX)]
Name = Annotated[str, Field(min_length=1, max_length=NAME_CHARACTERS)]
Directory = Annotated[str, Field(min_length=1, max_length=PATH_CHARACTERS)]


def _kind(name: object) -> object:
    if not isinstance(name, str):
        return name
    if name not in set(Kind):
        raise ValueError(f"there is no {name[:40]!r}; there are {', '.join(Kind)}")
    return Kind(name)


def _stance(name: object) -> object:
    if not isinstance(name, str):
        return name
    if name not in set(Stance):
        raise ValueError(f"there is no {name[:40]!r}; there are {', '.join(Stance)}")
    return Stance(name)


StanceName = Annotated[Stance, BeforeValidator(_stance)]
KindName = Annotated[Kind, BeforeValidator(_kind)]
Leg = Literal["topic", "lexical", "vector"]
Time = Annotated[str, Field(max_length=100)] | int


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Nothing(_Arguments):
    """A call without arguments."""


class Status(_Arguments):
    """`memd/status`: with a directory, also which project that is."""

    directory: Directory | None = None


class Project(_Arguments):
    """`memd/project`: the one that a directory belongs to, or that is called so."""

    project: Name = "current"
    directory: Directory | None = None


class MergeProjects(_Arguments):
    """`memd/project/merge`: names, keys or directories; what is in `project` goes into `into`."""

    project: Name
    into: Name
    dry_run: bool = True


class RenameProject(_Arguments):
    """`memd/project/rename`: what it is called from now on."""

    project: Name
    name: Name


class SwitchPlace(_Arguments):
    """`memd/switch`: without a state, all that was said; else for a session, or for a project."""

    state: Literal["on", "off", "capture-only", "recall-only"] | None = None
    project: Name = "current"
    session: Name | None = None
    directory: Directory | None = None


class Search(_Arguments):
    """`mem_search`."""

    query: Annotated[str, Field(max_length=QUERY_CHARACTERS)] = ""
    k: Annotated[int, Field(ge=1, le=K_MAX)] | None = None
    offset: Annotated[int, Field(ge=0, le=10_000)] = 0
    project: Name = "current"
    kinds: list[KindName] = []
    session: Name | None = None
    source: Name | None = None
    since: Time | None = None
    until: Time | None = None
    tags: Annotated[list[Name], Field(max_length=20)] = []
    topic_key: Name | None = None
    include_superseded: bool = False
    include_turns: bool = False
    legs: list[Leg] = []
    profile: Name | None = None
    focus: Annotated[list[Name], Field(max_length=20)] = []
    explain: bool = False
    as_of: Time | None = None
    min_event: Annotated[int, Field(ge=0, le=ID_MAX)] | None = None


class Surface(_Arguments):
    """What is worth showing unasked: a share of the question, and a part of the best score."""

    floor: Annotated[float, Field(ge=0, le=1)] = 0.4
    ratio: Annotated[float, Field(ge=0, le=1)] = 0.5


class ControlSearch(Search):
    """`memd/search`: also longer lists, a ready vector, the directory that `current` means, `surface`."""

    k: Annotated[int, Field(ge=1, le=BATCH_MAX)] | None = None
    embedding: Annotated[list[float], Field(max_length=8_192)] | None = None
    surface: Surface | None = None
    directory: Directory | None = None


class Timeline(_Arguments):
    """`mem_timeline`: around an id or a time, within a session or not; around now if none is given.

    With `days`: all of so many days, the last of them that of `at`, or today.
    """

    id: Id | None = None
    at: Time | None = None
    session: Name | None = None
    before: Annotated[int, Field(ge=0, le=AROUND_MAX)] = AROUND
    after: Annotated[int, Field(ge=0, le=AROUND_MAX)] = AROUND
    days: Annotated[int, Field(ge=1, le=DAYS_MAX)] | None = None
    kinds: list[KindName] = []
    project: Name = "current"


class ControlTimeline(Timeline):
    """`memd/timeline`: also from `since` to `until`, for who counts days of another zone."""

    since: Time | None = None
    until: Time | None = None
    directory: Directory | None = None


class Why(_Arguments):
    """`mem_why`: a summary's id (12 or "#12") or another node (`file:/a/b.py`)."""

    id: Id | Name
    depth: Annotated[int, Field(ge=1, le=DEPTH_MAX)] = DEPTH
    project: Name = "current"


class ControlWhy(Why):
    """`memd/why`: of every project unless one is named."""

    project: Name = "all"
    directory: Directory | None = None


class Get(_Arguments):
    """`mem_get`."""

    ids: Annotated[list[Id], Field(min_length=1, max_length=IDS_MAX)]
    project: Name = "current"


class ControlGet(Get):
    """`memd/get`."""

    ids: Annotated[list[Id], Field(min_length=1, max_length=BATCH_MAX)]
    project: Name = "all"
    directory: Directory | None = None


class Remember(_Arguments):
    """`mem_remember`."""

    text: Annotated[str, Field(min_length=1, max_length=TEXT_CHARACTERS)]
    title: Annotated[str, Field(max_length=NAME_CHARACTERS)] | None = None
    kind: KindName = Kind.NOTE
    topic_key: Name | None = None
    tags: Annotated[list[Name], Field(max_length=20)] = []
    files: Annotated[list[Name], Field(max_length=100)] = []
    project: Name = "current"
    expires_in: Name | None = None


class Place(_Arguments):
    """Where a memory was read: a file, what names the part of it for good, and the line it was in.

    `moves` says that the caller chose the project: what the place said in another one gives way.
    """

    path: Annotated[str, Field(min_length=1, max_length=PATH_CHARACTERS)]
    part: Annotated[str, Field(max_length=NAME_CHARACTERS)] = ""
    line: Annotated[int, Field(ge=1, le=ID_MAX)] | None = None
    moves: bool = False


class ControlMemory(Remember):
    """One memory of `memd/remember`: importers also say when, in which session, who said it, and where."""

    at: Time | None = None
    session: Name | None = None
    client: Name | None = None
    source: Name | None = None
    directory: Directory | None = None
    tier: Literal["agent", "file"] = "agent"
    origin: Place | None = None


class ControlMemories(_Arguments):
    """A batch of `memd/remember`."""

    memories: Annotated[list[ControlMemory], Field(max_length=BATCH_MAX)]


class Forget(_Arguments):
    """`mem_forget`: these ids, or all that fits a query, a session, a project and a time."""

    ids: Annotated[list[Id], Field(min_length=1, max_length=IDS_MAX)] = []
    query: Annotated[str, Field(max_length=QUERY_CHARACTERS)] | None = None
    session: Name | None = None
    since: Time | None = None
    until: Time | None = None
    dry_run: bool = True
    token: Name | None = None
    project: Name = "current"


class ControlForget(Forget):
    """`memd/forget`."""

    ids: Annotated[list[Id], Field(min_length=1, max_length=BATCH_MAX)] = []
    project: Name = "all"
    directory: Directory | None = None


class Scrub(_Arguments):
    """`memd/scrub`: a regular expression, or with `secrets` the present rules of redaction."""

    pattern: Annotated[str, Field(max_length=QUERY_CHARACTERS)] | None = None
    secrets: bool = False
    dry_run: bool = True


class Pin(_Arguments):
    """`mem_pin`."""

    id: Id
    pinned: bool = True
    project: Name = "current"


class ControlPin(Pin):
    """`memd/pin`."""

    project: Name = "all"
    directory: Directory | None = None


class Judge(_Arguments):
    """`mem_judge`: `id` is `relation` to `other`, for a reason; or, with `undo`, what holds is undone."""

    id: Id
    other: Id
    relation: StanceName | None = None
    reason: Annotated[str, Field(max_length=NAME_CHARACTERS)] = ""
    undo: bool = False
    project: Name = "current"


class ControlJudge(Judge):
    """`memd/judge`."""

    project: Name = "all"
    directory: Directory | None = None


class Captured(_Arguments):
    """One event of `memd/capture`, as the client's hook got it."""

    client: Name
    payload: Any
    at: Annotated[int, Field(ge=0, le=ID_MAX)] | None = None
    directory: Directory | None = None
    source: Literal["live", "spool", "import"] = "live"
    inject: bool = False
    """Whether its client can show its agent something: then the reply may have an `output`."""
    capture: bool = True
    """False: count it, and keep nothing of it."""


class CapturedBatch(_Arguments):
    """A batch of `memd/capture`."""

    events: Annotated[list[Captured], Field(max_length=BATCH_MAX)]
    dry_run: bool = False
    """Only say what would become of them."""


class Withdraw(_Arguments):
    """`memd/imports/withdraw`: of all that was read from this file, it says these memories alone."""

    path: Annotated[str, Field(min_length=1, max_length=PATH_CHARACTERS)]
    staying: Annotated[list[Id], Field(max_length=WITHDRAW_MAX)]


class ImportMark(_Arguments):
    """`memd/imports/mark`: this file was read to its end, as it was then."""

    path: Annotated[str, Field(min_length=1, max_length=PATH_CHARACTERS)]
    size: Annotated[int, Field(ge=0, le=ID_MAX)]
    modified_at: Annotated[int, Field(ge=0, le=ID_MAX)]


class Merge(_Arguments):
    """`memd/import/vault`: take over what was staged beside the vault in a file of this name."""

    staged: Name


class Reindex(_Arguments):
    """`memd/reindex`: everything, awaited; or only the learned vectors, begun."""

    embeddings: bool = False


class Vacuum(_Arguments):
    """`memd/vacuum`."""

    dry_run: bool = False


class Doctor(_Arguments):
    """`memd/doctor`; with `fix` it mends what it safely can before it looks."""

    fix: bool = False


class Consolidate(_Arguments):
    """`memd/consolidate`."""

    dry_run: bool = False


class UndoConsolidation(_Arguments):
    """`memd/consolidate/undo`: a run (`r7`), a memory that was hidden (`#12`) or a pair (`12,15`)."""

    what: Name
    dry_run: bool = False


class Runs(_Arguments):
    """`memd/consolidate/runs`: so many of the latest."""

    limit: Annotated[int, Field(ge=1, le=BATCH_MAX)] = 20


class Context(_Arguments):
    """`memd/context`: what would be shown unasked; without a session, to a new one."""

    directory: Directory | None = None
    session: Name | None = None
    moment: Literal["startup", "resume", "clear", "compact", "prompt"] | None = None
    prompt: Annotated[str, Field(max_length=TEXT_CHARACTERS)] = ""
    explain: bool = False


class Injected(_Arguments):
    """`memd/injected`: what this session was shown, or the latest one of the directory's project."""

    session: Name | None = None
    directory: Directory | None = None
