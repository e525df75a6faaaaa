"""What somebody decides about a memory, by hand: remember this, forget that, keep this one.

The doer for people and agents: it redacts and checks what is said before anybody waits for it, then
writes in one transaction. Not here: what becomes of what is said (remembering.py), what goes with a
forgotten one (forgetting.py).
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import anyio
import anyio.to_thread

from memd.consolidate import forget, projects, sources
from memd.consolidate.forget import Eraser, ForgetResult, ForgetSelection
from memd.consolidate.projects import ProjectMerge
from memd.consolidate.remember import DELIBERATE_SOURCES, NewMemory, RememberResult, remember
from memd.consolidate.scrub import (
    ScrubResult,
    ScrubRule,
    make_pattern_rule,
    make_redaction_rule,
)
from memd.consolidate.sources import Origin
from memd.errors import BadRequest, UnknownId
from memd.models import Kind, Project, Summary
from memd.store import summaries
from memd.store.database import Connection, Database
from memd.text import digest, one_line, storable, unique

_TEXT_BYTES = 64 * 1024
_TITLE_CHARACTERS = 90
_TITLE_GIVEN_CHARACTERS = 200
_TOPIC_CHARACTERS = 200
_DAY_MS = 86_400_000
_SENTENCE = re.compile(r".+?[.!?](?=\s+[^\Wa-z_])")


class Curator:
    """Writes down what people and agents decide."""

    name = "curator"

    def __init__(  # noqa: PLR0913  # what it works with, and one setting
        self,
        db: Database,
        redact: Callable[[str], str],
        clock: Callable[[], int],
        on_written: Callable[[], None],
        eraser: Eraser | None = None,
        present: ScrubRule | None = None,
        *,
        task_days: int = 0,
    ) -> None:
        """Take `present`, what redaction finds today, for what was kept before.

        `task_days` is how long a task holds whose end nobody said; 0: for ever.
        """
        self._db = db
        self._redact = redact
        self._clock = clock
        self._on_written = on_written
        self._task_ms = task_days * _DAY_MS
        self._eraser = eraser or Eraser(db, clock, on_written)
        self._present = present or make_redaction_rule(redact)

    async def remember(self, memory: NewMemory) -> RememberResult:
        """Keep one memory. Raises BadRequest, saying what to do."""
        return (await self.remember_many([memory]))[0]

    async def remember_many(self, memories: Sequence[NewMemory]) -> list[RememberResult]:
        """Keep all of these, in order, or none of them if one is refused with a BadRequest."""
        # Redaction of a long text takes a while, and nobody shall wait for it, writers included.
        clean = await anyio.to_thread.run_sync(self._clean, memories)
        now = self._clock()
        timed = [self._timed(memory, now) for memory in clean]
        kept = await self._db.write(lambda tx: [remember(tx, memory, now) for memory in timed])
        if kept:
            self._on_written()
        return kept

    async def withdraw(self, path: str, staying: Collection[int]) -> tuple[int, ...]:
        """Let the memories that were read from a file expire, but for those that it still says."""
        now = self._clock()
        gone = await self._db.write(lambda tx: sources.expire_missing(tx, path, staying, now))
        if gone:
            self._on_written()
        return gone

    async def forget(
        self, what: ForgetSelection | Sequence[int], *, dry_run: bool, token: str = ""
    ) -> ForgetResult:
        """Erase memories, or say what would go. UnknownId if none of them exists."""
        selection = what if isinstance(what, ForgetSelection) else ForgetSelection(tuple(what))
        return await self._eraser.forget(selection, dry_run=dry_run, token=token)

    async def scrub(self, pattern: str | None, *, dry_run: bool) -> ScrubResult:
        """Take a pattern, or with None what is a secret by now, out of everything kept so far."""
        rule = self._present
        if pattern is not None:
            rule = await anyio.to_thread.run_sync(make_pattern_rule, pattern)
        return await self._eraser.scrub(rule, dry_run=dry_run)

    async def pin(self, summary_id: int, pinned: bool) -> Summary:
        """Pin a memory, or unpin it; it keeps the time of its first pin. UnknownId if there is none."""
        now = self._clock()
        summary = await self._db.write(lambda tx: _pin(tx, summary_id, now if pinned else None))
        self._on_written()
        return summary

    async def merge(self, source_key: str, into_key: str, *, dry_run: bool) -> ProjectMerge:
        """Make two projects one, or say what would move. BadRequest if that makes no sense."""
        now = self._clock()
        if dry_run:
            return await self._db.read(
                lambda tx: projects.plan_merge(tx, source_key, into_key, now)
            )
        merged = await self._db.write(lambda tx: _merge(tx, source_key, into_key, now))
        self._on_written()
        return merged

    async def rename(self, key: str, name: str) -> Project:
        """Call a project something else. BadRequest if it cannot be called that."""
        tidy = self._tidy(name)
        return await self._db.write(lambda tx: projects.rename_project(tx, key, tidy))

    def _clean(self, memories: Sequence[NewMemory]) -> list[NewMemory]:
        several = len(memories) > 1
        cleaned = []
        for place, memory in enumerate(memories, start=1):
            try:
                cleaned.append(_checked(self._redacted(memory)))
            except BadRequest as error:
                where = f"memory {place} of {len(memories)}: " if several else ""
                raise BadRequest(f"{where}{error.message}") from error
        return cleaned

    def _timed(self, memory: NewMemory, now: int) -> NewMemory:
        """With its end: a task that is said on purpose has one, even if nobody said when."""
        is_open = memory.kind is Kind.TASK and memory.expires_at is None
        if not (is_open and self._task_ms and memory.source in DELIBERATE_SOURCES):
            return memory
        return replace(memory, expires_at=now + self._task_ms)

    def _redacted(self, memory: NewMemory) -> NewMemory:
        if len(storable(memory.text).encode()) > _TEXT_BYTES:
            raise BadRequest(
                f"text: longer than {_TEXT_BYTES // 1024} KiB; keep what matters, or split it"
            )
        return replace(
            memory,
            text=self._tidy(memory.text),
            title=one_line(self._tidy(memory.title or ""), _TITLE_GIVEN_CHARACTERS) or None,
            topic_key=self._topic(memory.topic_key or "") or None,
            tags=unique(tag for raw in memory.tags if (tag := self._tidy(raw))),
            files=unique(file for raw in memory.files if (file := self._tidy(raw))),
            source=self._tidy(memory.source),
            origin=memory.origin and self._place(memory.origin),
        )

    def _place(self, origin: Origin) -> Origin:
        part = self._tidy(origin.part)
        if part != origin.part:
            # Redacted, two places would be one.
            part = f"{part} {digest(origin.part)}"
        return replace(origin, part=part)

    def _topic(self, key: str) -> str:
        # Redacted, the keys of two secrets are one, and the second value would hide the first.
        tidy = storable(key).replace("\0", "").strip()
        if self._redact(tidy) != tidy:
            raise BadRequest("topic_key: it looks like a secret; name the thing, not its value")
        return tidy

    def _tidy(self, text: str) -> str:
        return self._redact(storable(text).replace("\0", "")).strip()


def _checked(memory: NewMemory) -> NewMemory:
    """With a title. Raises BadRequest for what cannot be kept."""
    if not memory.text:
        raise BadRequest("text: empty; say in a sentence or two what to remember")
    topic = memory.topic_key or ""
    if len(topic) > _TOPIC_CHARACTERS or any(c.isspace() for c in topic):
        raise BadRequest(
            f"topic_key: at most {_TOPIC_CHARACTERS} characters and no spaces, such as `build.command`"
        )
    if memory.title:
        return memory
    return replace(memory, title=_first_sentence(memory.text), is_titled=False)


def _first_sentence(text: str) -> str:
    line = text.splitlines()[0]
    found = _SENTENCE.match(line)
    return (
        one_line((found.group() if found else line).rstrip("."), _TITLE_CHARACTERS) or line[:1]
    )


def _merge(tx: Connection, source_key: str, into_key: str, now: int) -> ProjectMerge:
    plan = projects.plan_merge(tx, source_key, into_key, now)
    projects.apply_merge(tx, plan, now)
    return replace(plan, is_dry_run=False)


def _pin(tx: Connection, summary_id: int, pinned_at: int | None) -> Summary:
    summary = forget.find_memories(tx, [summary_id]).get(summary_id)
    if summary is None:
        raise UnknownId(f"there is no memory #{summary_id}")
    if (summary.pinned_at is None) == (pinned_at is None):
        return summary
    summaries.pin_summary(tx, summary_id, pinned_at)
    return summaries.get_summary(tx, summary_id) or summary
