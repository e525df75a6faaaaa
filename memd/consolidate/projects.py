"""Merge two projects, undo a merge, or rename a project.

A merge moves sessions, memories and switches, and makes the old key an alias, so that no directory
loses its memories. Where both projects have a value under one topic key, the newest hides the others,
except those that are pinned or a greater speaker's. The vault keeps a note of what was where, by which
the merge can be undone.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from memd.belief.standing import find_objection
from memd.belief.supersede import hide
from memd.errors import BadRequest
from memd.models import GLOBAL_PROJECT, PLACELESS_PROJECTS, SCRATCH_PROJECT, Project, Summary
from memd.store import ledger, links, projects, summaries
from memd.store.database import Connection
from memd.text import one_line

PROJECT_MERGE_RULE = "project-merge"
_NOTE = "merged:"
"""With the key of the merged project: the name of the note by which the merge can be undone."""
_RENAMED = "renamed:"
"""The same of a renamed project."""
_NAME_CHARACTERS_MAX = 100
_RESERVED_NAMES = PLACELESS_PROJECTS | {"current", "all"}


@dataclass(frozen=True, slots=True)
class ReplacedMemory:
    """A memory that a newer one of the other project hides."""

    newer_id: int
    older_id: int
    topic_key: str


@dataclass(frozen=True, slots=True)
class ProjectMerge:
    """The rows that a merge moved, or would move."""

    source: Project
    into: Project
    sessions: int
    memories: int
    events: int
    aliases: tuple[str, ...]
    """Every key that then means `into`, beside its own."""
    replaced: tuple[ReplacedMemory, ...]
    kept: tuple[ReplacedMemory, ...]
    """Memories that stay because they are pinned or a greater speaker's; an edge marks the contradiction."""
    switch: str
    """What happens to the capture and recall switches of `source`, in words; empty if it has none."""
    is_dry_run: bool


def plan_merge(tx: Connection, source_key: str, into_key: str, now: int) -> ProjectMerge:
    """Return what merging one project into another would do. BadRequest if they cannot be merged."""
    source, into = _get_project(tx, source_key), _get_project(tx, into_key)
    if source.id == into.id:
        raise BadRequest(f"project: {source.name} ({source.key}) is that project already")
    if PLACELESS_PROJECTS & {source.key, into.key}:
        raise BadRequest(
            f"project: {GLOBAL_PROJECT} and {SCRATCH_PROJECT} are no directories; nothing can be"
            " merged with them"
        )
    counts = projects.count_by_project(tx)[source.id]
    replaced, kept = _find_replaced(tx, source, into, now)
    return ProjectMerge(
        source=source, into=into,
        sessions=counts.sessions, memories=counts.memories, events=counts.events,
        aliases=(source.key, *projects.project_aliases(tx).get(source.id, ())),
        replaced=replaced, kept=kept,
        switch=_describe_switch(tx, source, into), is_dry_run=True,
    )  # fmt: skip


def merge_projects(tx: Connection, source_key: str, into_key: str, now: int) -> ProjectMerge:
    """Merge one project into another. BadRequest if they cannot be merged."""
    plan = plan_merge(tx, source_key, into_key, now)
    record = projects.read_merge(tx, plan.source)
    switches = [one and asdict(one) for one in _find_switches(tx, plan.source, plan.into)]
    _move_switch(tx, plan.source, plan.into, now)
    projects.merge_project(tx, plan.source, plan.into, now)
    guard = "same topic key in two projects that became one"
    hidden = [
        hide(tx, one.newer_id, one.older_id, PROJECT_MERGE_RULE, guard, now)
        for one in (*plan.replaced, *plan.kept)
    ]
    note = {
        "record": asdict(record), "into": plan.into.key, "at": now, "switches": switches,
        "hidden": [number for number in hidden if number is not None],
    }  # fmt: skip
    ledger.write_note(tx, _NOTE + plan.source.key, json.dumps(note))
    projects.allow_joining(tx, plan.source.key)
    return replace(plan, is_dry_run=False)


@dataclass(frozen=True, slots=True)
class UndoneMerge:
    """The rows that undoing a merge moved back."""

    project: Project
    from_: Project
    sessions: int
    memories: int
    shown: tuple[int, ...]
    """Memories that the merge had hidden."""


def undo_merge(tx: Connection, key: str, now: int) -> UndoneMerge:
    """Undo the merge of this project. BadRequest if it was not merged."""
    note = json.loads(ledger.read_note(tx, _NOTE + key) or "null")
    if note is None:
        raise BadRequest(f"project: {key} was not merged into another, as far as this vault knows")
    record = projects.MergeRecord(**note["record"])
    into = _get_project(tx, note["into"])  # or what that was merged into since
    moved = projects.restore_project(tx, record, into.id, note["at"])
    past = [one for number in note["hidden"] if (one := links.supersession(tx, number))]
    shown = tuple(one.older_id for one in past if links.undo_supersession(tx, one.id, now))
    _restore_switches(tx, key, into, note["switches"])
    ledger.drop_note(tx, _NOTE + key)
    projects.separate_project(tx, key)
    return UndoneMerge(_get_project(tx, key), into, moved.sessions, moved.memories, shown)


def find_merged_key(tx: Connection, name: str) -> str | None:
    """The key of a merged project, by its key, its name or the last part of its key; None if there is no such."""
    for key in ledger.note_names(tx, _NOTE):
        note = json.loads(ledger.read_note(tx, _NOTE + key) or "{}")
        if name in {key, note["record"]["name"], key.rpartition("/")[2]}:
            return key
    return None


def _restore_switches(
    tx: Connection, key: str, into: Project, before: Sequence[dict[str, Any] | None]
) -> None:
    """Give the project its switch back, and remove from the other one what it did not have before."""
    theirs, ours = before
    if theirs is None:
        return
    was = (theirs[name] for name in ("captures", "recalls", "at"))
    projects.put_switch(tx, projects.PROJECT_SCOPE, key, *was)
    if ours is None:
        projects.drop_switch(tx, projects.PROJECT_SCOPE, into.key)


def rename_project(tx: Connection, key: str, name: str, now: int) -> Project:
    """Give a project another name, and note the old one. BadRequest if it cannot have that name."""
    project = _get_project(tx, key)
    tidy = one_line(name, _NAME_CHARACTERS_MAX + 1)
    if not tidy or len(tidy) > _NAME_CHARACTERS_MAX or "/" in tidy or tidy in _RESERVED_NAMES:
        raise BadRequest(
            f"name: at most {_NAME_CHARACTERS_MAX} characters on one line without /, and none of"
            f" {', '.join(sorted(_RESERVED_NAMES))}"
        )
    if project.key in PLACELESS_PROJECTS:
        raise BadRequest(f"project: {project.key} keeps its name")
    for other in projects.find_projects(tx, tidy):
        if other.id != project.id:
            raise BadRequest(
                f"name: {other.key} is called {tidy!r} already; `memd project merge` makes them one"
            )
    if tidy != project.name:
        note = {"at": now, "was": project.name}
        ledger.write_note(tx, _RENAMED + project.key, json.dumps(note))
    projects.rename_project(tx, project.id, tidy)
    return projects.project(tx, project.id) or project


def undo_rename(tx: Connection, key: str) -> None:
    """Give a project its former name again. BadRequest if another is called so by now."""
    note = json.loads(ledger.read_note(tx, _RENAMED + key) or "{}")
    rename_project(tx, key, note["was"], note["at"])
    ledger.drop_note(tx, _RENAMED + key)


def _get_project(tx: Connection, key: str) -> Project:
    found = projects.project_by_key(tx, key)
    if found is None:
        raise BadRequest(f"project: there is no {key!r}")
    return found


def _find_replaced(
    tx: Connection, source: Project, into: Project, now: int
) -> tuple[tuple[ReplacedMemory, ...], tuple[ReplacedMemory, ...]]:
    """(memories to hide, memories that the newest value of their topic may not hide)."""
    replaced: list[ReplacedMemory] = []
    kept: list[ReplacedMemory] = []
    for topic in projects.shared_topics(tx, source.id, into.id):
        staying: list[Summary] = []
        for one in summaries.topic_summaries(tx, topic, (source.id, into.id)):
            if one.superseded_by is not None or one.is_expired(now):
                continue
            may_hide = (n for n in staying if find_objection(n.authority, one) is None)
            if (newer := next(may_hide, None)) is not None:
                replaced.append(ReplacedMemory(newer.id, one.id, topic))
                continue
            kept += [ReplacedMemory(staying[0].id, one.id, topic)] if staying else []
            staying.append(one)
    return tuple(replaced), tuple(kept)


def _find_switches(tx: Connection, *wanted: Project) -> list[projects.SwitchRow | None]:
    rows = projects.list_switches(tx)
    by_key = {one.target: one for one in rows if one.scope == projects.PROJECT_SCOPE}
    return [by_key.get(one.key) for one in wanted]


def _describe_switch(tx: Connection, source: Project, into: Project) -> str:
    theirs, ours = _find_switches(tx, source, into)
    if theirs is None:
        return ""
    holds = (
        f"gives way to what was said of {into.name}"
        if ours
        else f"holds for {into.name} from then on"
    )
    return f"{projects.switch_words(theirs.captures, theirs.recalls)}: {holds}"


def _move_switch(tx: Connection, source: Project, into: Project, now: int) -> None:
    theirs, ours = _find_switches(tx, source, into)
    if theirs is None:
        return
    scope = projects.PROJECT_SCOPE
    projects.drop_switch(tx, scope, source.key)
    if ours is None:
        projects.put_switch(tx, scope, into.key, theirs.captures, theirs.recalls, now)
