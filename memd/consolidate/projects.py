"""Two projects that are one, and what a project is called: first as a plan, then done.

A merge moves sessions, memories and switches, and lets the key of what is gone mean what stays, so
no directory loses its memories. Where both had a value under one topic key and of one kind, the
newest hides the others; what is pinned stays beside it. Not here: which project a name means.
"""

from dataclasses import dataclass

from memd.errors import BadRequest
from memd.models import GLOBAL_PROJECT, SCRATCH_PROJECT, EdgeType, Project, Summary
from memd.store import links, projects, summaries
from memd.store.database import Connection
from memd.text import one_line

PROJECT_MERGE_RULE = "project-merge"
_GUARD = "same topic key in two projects that became one"
_NAME_CHARACTERS = 100
_RESERVED = frozenset({GLOBAL_PROJECT, SCRATCH_PROJECT, "current", "all"})


@dataclass(frozen=True, slots=True)
class ReplacedMemory:
    """A memory that a newer one of the other project hides."""

    newer_id: int
    older_id: int
    topic_key: str


@dataclass(frozen=True, slots=True)
class ProjectMerge:
    """What a merge moved, or would move."""

    source: Project
    into: Project
    sessions: int
    memories: int
    events: int
    aliases: tuple[str, ...]
    """Every key that from then on means `into`, beside its own."""
    replaced: tuple[ReplacedMemory, ...]
    pinned: tuple[ReplacedMemory, ...]
    """What would be hidden too, and stays because it is pinned; an edge says that they differ."""
    switch: str
    """What becomes of what was switched for `source`, in words; empty if nothing was."""
    is_dry_run: bool


def plan_merge(tx: Connection, source_key: str, into_key: str, now: int) -> ProjectMerge:
    """What merging one project into another would do. BadRequest if it makes no sense."""
    source, into = _existing(tx, source_key), _existing(tx, into_key)
    if source.id == into.id:
        raise BadRequest(f"project: {source.name} ({source.key}) is that project already")
    if {source.key, into.key} & {GLOBAL_PROJECT, SCRATCH_PROJECT}:
        raise BadRequest(
            f"project: {GLOBAL_PROJECT} and {SCRATCH_PROJECT} are no directories; nothing can be"
            " merged with them"
        )
    tally = projects.count_by_project(tx)[source.id]
    replaced, pinned = _topics(tx, source, into, now)
    return ProjectMerge(
        source=source,
        into=into,
        sessions=tally.sessions,
        memories=tally.memories,
        events=tally.events,
        aliases=(source.key, *projects.project_aliases(tx).get(source.id, ())),
        replaced=replaced,
        pinned=pinned,
        switch=_switch(tx, source, into),
        is_dry_run=True,
    )


def apply_merge(tx: Connection, plan: ProjectMerge, now: int) -> None:
    """Do what was planned in this same transaction."""
    _move_switch(tx, plan.source, plan.into, now)
    projects.merge_project(tx, plan.source, plan.into, now)
    for one in plan.replaced:
        links.supersede(
            tx, newer_id=one.newer_id, older_id=one.older_id, rule=PROJECT_MERGE_RULE, cosine=None,
            guard=_GUARD, at=now,
        )  # fmt: skip
    links.add_edges(
        tx,
        [
            links.NewEdge(
                "summary", str(one.newer_id), EdgeType.CONTRADICTS, "summary",
                str(one.older_id), PROJECT_MERGE_RULE, now, detail={"finding": "pinned"},
            )
            for one in plan.pinned
        ],
    )  # fmt: skip


def rename_project(tx: Connection, key: str, name: str) -> Project:
    """Call a project something else. BadRequest if it cannot be called that."""
    project = _existing(tx, key)
    tidy = one_line(name, _NAME_CHARACTERS + 1)
    if not tidy or len(tidy) > _NAME_CHARACTERS or "/" in tidy or tidy in _RESERVED:
        raise BadRequest(
            f"name: at most {_NAME_CHARACTERS} characters on one line without /, and none of"
            f" {', '.join(sorted(_RESERVED))}"
        )
    if project.key in {GLOBAL_PROJECT, SCRATCH_PROJECT}:
        raise BadRequest(f"project: {project.key} keeps its name")
    others = [one for one in projects.find_projects(tx, tidy) if one.id != project.id]
    if others:
        raise BadRequest(
            f"name: {others[0].key} is called {tidy!r} already; `memd project merge` makes them one"
        )
    projects.rename_project(tx, project.id, tidy)
    return projects.project(tx, project.id) or project


def _existing(tx: Connection, key: str) -> Project:
    found = projects.project_by_key(tx, key)
    if found is None:
        raise BadRequest(f"project: there is no {key!r}")
    return found


def _topics(
    tx: Connection, source: Project, into: Project, now: int
) -> tuple[tuple[ReplacedMemory, ...], tuple[ReplacedMemory, ...]]:
    """(what hides what, what would hide the pinned ones)."""
    replaced: list[ReplacedMemory] = []
    pinned: list[ReplacedMemory] = []
    for topic in projects.shared_topics(tx, source.id, into.id):
        for newest, others in _rivals(tx, topic, (source.id, into.id), now):
            for other in others:
                found = replaced if other.pinned_at is None else pinned
                found.append(ReplacedMemory(newest.id, other.id, topic))
    return tuple(replaced), tuple(pinned)


def _rivals(
    tx: Connection, topic: str, project_ids: tuple[int, ...], now: int
) -> list[tuple[Summary, list[Summary]]]:
    """For each kind: the newest live value of a topic, and the other live ones."""
    by_kind: dict[str, list[Summary]] = {}
    for one in summaries.topic_summaries(tx, topic, project_ids):
        is_over = one.expires_at is not None and one.expires_at <= now
        if one.superseded_by is None and not is_over:
            by_kind.setdefault(one.kind.value, []).append(one)
    return [(values[0], values[1:]) for values in by_kind.values() if len(values) > 1]


def _rows(tx: Connection, *wanted: Project) -> list[projects.SwitchRow | None]:
    said = {
        one.target: one
        for one in projects.list_switches(tx)
        if one.scope == projects.PROJECT_SCOPE
    }
    return [said.get(one.key) for one in wanted]


def _switch(tx: Connection, source: Project, into: Project) -> str:
    theirs, ours = _rows(tx, source, into)
    if theirs is None:
        return ""
    words = projects.switch_words(theirs.captures, theirs.recalls)
    if ours is None:
        return f"{words}: holds for {into.name} from then on"
    return f"{words}: gives way to what was said of {into.name}"


def _move_switch(tx: Connection, source: Project, into: Project, now: int) -> None:
    theirs, ours = _rows(tx, source, into)
    if theirs is None:
        return
    projects.drop_switch(tx, projects.PROJECT_SCOPE, source.key)
    if ours is None:
        projects.put_switch(
            tx, projects.PROJECT_SCOPE, into.key, theirs.captures, theirs.recalls, now
        )
