"""Remember, edit, forget, scrub, pin and merge on request of users and agents.

Input is redacted and checked before a transaction begins, so that no writer waits for it.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import anyio
import anyio.to_thread

from memd.belief import supersede
from memd.belief.claims import statement_text
from memd.belief.notes import QuotedNote
from memd.belief.proof import QUOTE_CHARACTERS_MAX
from memd.consolidate import forget, projects, scrub, sources
from memd.consolidate.forget import ForgetResult, ForgetSelection
from memd.consolidate.judgments import EDITED, REASON_CHARACTERS_MAX, NewJudgment, apply_judgment
from memd.consolidate.projects import ProjectMerge, UndoneMerge
from memd.consolidate.remember import NewMemory, RememberResult, remember
from memd.consolidate.scrub import Eraser
from memd.errors import BadRequest
from memd.models import (
    SETTINGS_NODE,
    STATED_KINDS,
    TITLE_CHARACTERS_MAX,
    Authority,
    Draft,
    EdgeType,
    Kind,
    Project,
    Stance,
    Summary,
    Tier,
)
from memd.store import ledger, links, summaries
from memd.store.database import Connection, Database
from memd.store.judgments import initial_confidence
from memd.text import digest, one_line, split_sentences, storable, strip_end, unique, words
from memd.time_expressions import DAY_MS

T = TypeVar("T")
_TEXT_BYTES_MAX = 64 * 1024
_OWN_TITLE_CHARACTERS_MAX = 90
"""A title made from the text."""
_TOPIC_KEY_CHARACTERS_MAX = 200


EDITED_RULE = "edited"


@dataclass(frozen=True, slots=True)
class MemoryEdit:
    """New words for a memory; an empty title or text leaves the present one."""

    id: int
    title: str = ""
    text: str = ""
    reason: str = ""


@dataclass(eq=False)
class Curator:
    """Changes memories on request."""

    db: Database
    redact: Callable[[str], str]
    clock: Callable[[], int]
    on_written: Callable[[], None]
    eraser: Eraser
    secrets: scrub.ScrubRule
    """Scrubs what redaction finds today."""
    task_days: int = 0
    """How long a task without an end holds; 0: until it is forgotten."""

    async def remember(self, memory: NewMemory) -> RememberResult:
        """Write one memory. Raises BadRequest, with what to do."""
        return (await self.remember_many([memory]))[0]

    async def remember_many(self, memories: Sequence[NewMemory]) -> list[RememberResult]:
        """Write all of these, in order, or none of them if one is refused with a BadRequest."""
        # Redaction of a long text takes a while: it happens before the transaction, in a thread.
        ready = await anyio.to_thread.run_sync(self._prepare_memories, memories)
        now = self.clock()
        return await self._write(lambda tx: [remember(tx, one, now) for one in ready])

    async def withdraw(self, path: str, staying: Collection[int]) -> tuple[int, ...]:
        """Let the memories that were read from a file expire, except those that it still has."""
        now = self.clock()
        return await self._write(lambda tx: sources.expire_missing(tx, path, staying, now))

    async def forget(
        self, what: ForgetSelection | Sequence[int], *, dry_run: bool, token: str = ""
    ) -> ForgetResult:
        """Erase memories, or report what would go. UnknownId if none of them exists."""
        selection = what if isinstance(what, ForgetSelection) else ForgetSelection(tuple(what))
        return await self.eraser.forget(selection, dry_run=dry_run, token=token)

    async def scrub(self, pattern: str | None, *, dry_run: bool) -> scrub.ScrubResult:
        """Replace a pattern, or with None what redaction finds today, in everything stored."""
        rule = self.secrets
        if pattern is not None:
            rule = await anyio.to_thread.run_sync(scrub.make_pattern_rule, pattern)
        return await self.eraser.scrub(rule, dry_run=dry_run)

    async def edit(self, edit: MemoryEdit) -> int:
        """Edit a memory; return the id of its new version. BadRequest or UnknownId."""
        if len(storable(edit.text).encode()) > _TEXT_BYTES_MAX:
            raise BadRequest(f"text: longer than {_TEXT_BYTES_MAX // 1024} KiB")
        tidy = await anyio.to_thread.run_sync(self._redact_edit, edit)
        now = self.clock()
        return await self._write(lambda tx: edit_memory(tx, with_title(tx, tidy), now))

    async def _write(self, work: Callable[[Connection], T]) -> T:
        result = await self.db.write(work)
        if result:  # else nothing was changed
            self.on_written()
        return result

    def _redact_edit(self, edit: MemoryEdit) -> MemoryEdit:
        title = one_line(self._redact_text(edit.title), TITLE_CHARACTERS_MAX)
        reason = one_line(self._redact_text(edit.reason), REASON_CHARACTERS_MAX)
        return replace(edit, title=title, text=self._redact_text(edit.text), reason=reason)

    async def pin(self, summary_id: int, pinned: bool, by: Authority) -> Summary:
        """Pin or unpin a memory; pinned again, it keeps its time.

        UnknownId if there is none, BadRequest if a greater authority has pinned what is to be unpinned.
        """
        now = self.clock()
        return await self._write(lambda tx: _pin_memory(tx, summary_id, pinned, by, now))

    async def merge(self, source_key: str, into_key: str, *, dry_run: bool) -> ProjectMerge:
        """Merge two projects, or report what would move. BadRequest if they cannot be merged."""
        plan, merge, now = projects.plan_merge, projects.merge_projects, self.clock()
        if dry_run:
            return await self.db.read(lambda tx: plan(tx, source_key, into_key, now))
        return await self._write(lambda tx: merge(tx, source_key, into_key, now))

    async def undo_merge(self, name: str) -> UndoneMerge:
        """Undo the merge of a project that is gone, by its name or key. BadRequest if it cannot be undone."""
        now = self.clock()

        def undo(tx: Connection) -> UndoneMerge:
            return projects.undo_merge(tx, projects.find_merged_key(tx, name) or name, now)

        return await self._write(undo)

    async def rename(self, key: str, name: str) -> Project:
        """Rename a project. BadRequest if it cannot have that name."""
        tidy = self._redact_text(name)
        now = self.clock()
        return await self.db.write(lambda tx: projects.rename_project(tx, key, tidy, now))

    def _prepare_memories(self, memories: Sequence[NewMemory]) -> list[NewMemory]:
        prepared = []
        for number, memory in enumerate(memories, start=1):
            try:
                prepared.append(self._prepare_memory(memory))
            except BadRequest as error:
                which = f"memory {number} of {len(memories)}: " if len(memories) > 1 else ""
                raise BadRequest(f"{which}{error.message}") from error
        return prepared

    def _prepare_memory(self, memory: NewMemory) -> NewMemory:
        """Redact, check and title a memory, and give a task its end."""
        if len(storable(memory.text).encode()) > _TEXT_BYTES_MAX:
            raise BadRequest(
                f"text: longer than {_TEXT_BYTES_MAX // 1024} KiB; keep what matters, or split it"
            )
        text = self._redact_text(memory.text)
        topic_key = self._check_topic_key(memory.topic_key or "") or None
        if not text:
            raise BadRequest("text: empty; say in a sentence or two what to remember")
        title = one_line(self._redact_text(memory.title or ""), TITLE_CHARACTERS_MAX)
        expires_at = memory.expires_at
        is_task = memory.kind is Kind.TASK and memory.is_deliberate
        if is_task and expires_at is None and self.task_days:
            expires_at = self.clock() + self.task_days * DAY_MS
        origin = memory.origin
        if origin is not None and (part := self._redact_text(origin.part)) != origin.part:
            # Redacted, two origins would be one.
            origin = replace(origin, part=f"{part} {digest(origin.part)}")
        return replace(
            memory,
            text=text,
            title=title or _first_sentence(text),
            is_titled=memory.is_titled if title else False,
            topic_key=topic_key,
            tags=unique(tag for raw in memory.tags if (tag := self._redact_text(raw))),
            files=unique(file for raw in memory.files if (file := self._redact_text(raw))),
            source=self._redact_text(memory.source),
            why=one_line(self._redact_text(memory.why), REASON_CHARACTERS_MAX),
            check=self._redact_text(memory.check),
            claim=memory.claim and self._redact_claim(memory.claim),
            line=memory.line and replace(memory.line, text=self._redact_text(memory.line.text)),
            origin=origin,
            expires_at=expires_at,
        )

    def _redact_claim(self, claim: QuotedNote) -> QuotedNote:
        """The quoted words as they may be stored; what proves them comes from the record, which is redacted."""
        quote, about = (
            one_line(self._redact_text(text), QUOTE_CHARACTERS_MAX)
            for text in (claim.quote, claim.about)
        )
        return replace(claim, quote=quote, about=about)

    def _check_topic_key(self, key: str) -> str:
        tidy = storable(key).replace("\0", "").strip()
        # Redacted, the keys of two secrets are one, and the second value would hide the first.
        if self.redact(tidy) != tidy:
            raise BadRequest("topic_key: it looks like a secret; name the thing, not its value")
        if len(tidy) > _TOPIC_KEY_CHARACTERS_MAX or any(c.isspace() for c in tidy):
            raise BadRequest(
                f"topic_key: at most {_TOPIC_KEY_CHARACTERS_MAX} characters and no spaces,"
                " such as `build.command`"
            )
        return tidy

    def _redact_text(self, text: str) -> str:
        return self.redact(storable(text).replace("\0", "")).strip()


def _first_sentence(text: str) -> str:
    sentence = next(iter(split_sentences(text)), text)
    bare = strip_end(sentence) if sentence.endswith(".") else sentence
    return one_line(bare, _OWN_TITLE_CHARACTERS_MAX) or sentence[:1]


def _pin_memory(tx: Connection, summary_id: int, pinned: bool, by: Authority, now: int) -> Summary:
    summary = forget.require_memory(tx, summary_id)
    if summary.rejected_at is not None and pinned:
        raise BadRequest(
            f"#{summary_id} was rejected; `memd review --undo {summary_id}` takes that back"
        )
    if pinned:
        supersede.pin(tx, summary, by, now)
    elif summary.pinned_at is not None:
        supersede.unpin(tx, summary, by)
    return summaries.get_summary(tx, summary_id) or summary


# ── Editing ───────────────────────────────────────────────────────────────────────────────────────
# The old version keeps its number and stays behind the new one, where `mem_why` shows it and an undone judgment
# brings it back. The new version keeps kind, topic key, tags, files, time and session: an edit corrects how something
# is said, not when it happened.


def edit_memory(tx: Connection, edit: MemoryEdit, now: int) -> int:
    """Write the new version; its id. UnknownId, or BadRequest if it is hidden or says nothing else."""
    old = forget.require_memory(tx, edit.id)
    if old.superseded_by is not None:
        raise BadRequest(f"#{old.id} is hidden by #{old.superseded_by}: edit that one")
    title, text = edit.title or old.title, edit.text or old.body
    if (title, text) == (old.title, old.body):
        raise BadRequest(f"#{old.id} says this already; nothing was changed")
    number = _write_version(tx, old, title, text, now)
    _copy_edges(tx, old.id, number, now)
    pinned_by = old.pinned_by
    if pinned_by is not None:
        supersede.unpin(tx, old, Authority.USER_HAND)
    reason = f"{EDITED}: {edit.reason}" if edit.reason else EDITED
    judgment = NewJudgment(number, old.id, Stance.SUPERSEDES, reason, "user")
    apply_judgment(tx, judgment, now)
    new = summaries.get_summary(tx, number)
    if pinned_by is not None and new is not None:
        supersede.pin(tx, new, pinned_by, old.pinned_at or now)
    return number


def with_title(tx: Connection, edit: MemoryEdit) -> MemoryEdit:
    """Return an edit with a title: a new text gets its first sentence, if the old title said what the old text began with."""
    old = forget.require_memory(tx, edit.id)
    if edit.title or not edit.text:
        return edit
    was, now = (_first_sentence(statement_text("", body)) for body in (old.body, edit.text))
    says_body = set(words(old.title.lower())) <= set(words(old.body.lower()))
    is_named = now != was and says_body and old.kind in STATED_KINDS
    return replace(edit, title=now) if is_named else edit


def _write_version(tx: Connection, old: Summary, title: str, text: str, now: int) -> int:
    uid = digest(old.uid, EDITED_RULE, title, text)
    ledger.remove_forgotten(tx, uid)
    if summaries.summary_by_uid(tx, uid) is not None:
        # The same edit was made and undone before.
        uid = digest(uid, str(now))
    owner = summaries.SummaryOwner(old.project_id, old.session_id, "user")
    draft = Draft(
        slot="", kind=old.kind, title=title, body=text, at=old.at, rule=EDITED_RULE, sources=(),
        tier=Tier.AGENT, tags=old.tags, files=old.files, topic_key=old.topic_key,
        expires_at=old.expires_at, confidence=max(old.confidence, initial_confidence("user")),
        quality=old.quality, authority=Authority.USER_HAND,
    )  # fmt: skip
    number, _ = summaries.put_summary(tx, uid, draft, owner, now)
    return number


def _copy_edges(tx: Connection, old: int, new: int, now: int) -> None:
    """Let the new version come from the same events, with their quotes, and name the same files."""
    kept = {EdgeType.DERIVES_FROM, EdgeType.REFERENCES, EdgeType.EDITS}
    copies = []
    for edge in links.edges_at(tx, "summary", str(old)):
        is_own = (edge.from_kind, edge.from_id) == ("summary", str(old)) and edge.type in kept
        # What the edits of its turn have set, the new text may say otherwise.
        if is_own and edge.to_kind not in {"summary", SETTINGS_NODE}:
            end = edge.to_kind, edge.to_id, edge.rule, now, edge.confidence, edge.detail
            copies.append(links.NewEdge("summary", str(new), edge.type, *end))
    links.add_edges(tx, copies)
