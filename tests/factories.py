"""Hand-made values for tests: say only what the test cares about."""

import functools
import itertools
import tempfile
import zlib
from pathlib import Path

import numpy as np

from memd.errors import EngineFailed
from memd.models import (
    Draft,
    Event,
    EventKind,
    Kind,
    NewEvent,
    SessionRef,
    Source,
    Space,
    Summary,
    Tier,
)
from memd.store import links
from memd.store.database import Database
from memd.store.filter import Filter
from memd.store.lists import NEWEST, MemoryChoice, newest_ids, read_in_order
from memd.text import content_stems

AT = 1_800_000_000_000
"""When things happen unless a test says otherwise: UTC milliseconds."""


@functools.cache
def _migrated_vault():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "vault.db")
        Database(str(path), AT).close()
        return path.read_bytes()


def open_new_vault(path, now=AT):
    """Open a vault that is not there yet: a copy of a new one takes a quarter of the time of its migrations."""
    Path(path).write_bytes(_migrated_vault())
    return Database(str(path), now)


_keys = itertools.count()


def make_event(kind=EventKind.PROMPT, *, id=1, at=None, turn="t1", **payload):  # noqa: A002  # the field's name
    """A stored event; what is left over is its payload. `tool_name` names its tool, too."""
    return Event(
        id=id,
        session_id=payload.pop("session_id", 1),
        kind=EventKind(kind),
        name=payload.pop("name", str(kind)),
        at=AT + id * 1000 if at is None else at,
        payload=payload,
        source=payload.pop("source", "live"),
        turn=turn,
        tool=payload.get("tool_name"),
        agent=payload.get("agent_id"),
    )


def make_new_event(kind=EventKind.PROMPT, *, at=AT, turn="t1", session="s1", **payload):
    """An event to be stored, with a key of its own unless `key` is given."""
    return NewEvent(
        session=SessionRef("claude-code", session, "/home/dev/ledger"),
        key=payload.pop("key", f"key-{next(_keys)}"),
        kind=EventKind(kind),
        name=payload.pop("name", str(kind)),
        at=at,
        source=payload.pop("source", "live"),
        payload=payload,
        turn=turn,
        tool=payload.get("tool_name"),
        agent=payload.get("agent_id"),
    )


def make_draft(title="A title", body="A body.", *, kind=Kind.NOTE, slot="turn", **fields):
    """A draft from one event."""
    fields.setdefault("sources", (Source(1, "a quote"),))
    return Draft(
        slot=slot,
        kind=Kind(kind),
        title=title,
        body=body,
        at=fields.pop("at", AT),
        rule=fields.pop("rule", "turn"),
        **fields,
    )


def make_summary(title="A title", body="A body.", *, id=1, kind=Kind.NOTE, **fields):  # noqa: A002  # the field's name
    """A stored summary of project 1."""
    at = fields.pop("at", AT)
    return Summary(
        id=id,
        uid=fields.pop("uid", f"uid-{id}"),
        project_id=fields.pop("project_id", 1),
        session_id=fields.pop("session_id", None),
        kind=Kind(kind),
        tier=fields.pop("tier", Tier.CAPTURED),
        source=fields.pop("source", "claude-code"),
        title=title,
        body=body,
        at=at,
        created_at=fields.pop("created_at", at),
        updated_at=fields.pop("updated_at", at),
        rule=fields.pop("rule", "turn"),
        **fields,
    )


def supersede(db, newer, older, *, rule="r", guard="", at=1):
    """Let one memory of a vault supersede another; the number of the supersession."""
    return db.write_now(
        lambda tx: links.supersede(
            tx, newer_id=newer, older_id=older, rule=rule, cosine=None, guard=guard, at=at
        )
    )


class Synonyms:
    """A learned model that knows which words mean the same, and nothing else. Conforms to Learned.

    It can be away (`why_not`), fail (`fails`), be replaced (`digest`) or give too many numbers (`more`).
    """

    def __init__(self, *groups):
        self._meant = {stem: group for group in groups for stem in content_stems(group)}
        self.digest, self.why_not, self.fails, self.more = "d1", "", None, 0
        self.query_s, self.is_starting, self.is_failing, self.is_wanted = 0.3, False, False, False
        self.asked = []
        """Every question that it was asked."""

    def on_ready(self, wake):
        """It is ready from the start."""

    @property
    def current(self):
        return Space("made", "synonyms", "1", 96, digest=self.digest)

    @property
    def is_ready(self):
        return not self.why_not

    async def documents(self, texts):
        if self.fails:
            raise EngineFailed(self.fails)
        return np.stack([self._vector(text) for text in texts])

    async def query(self, text):
        self.asked.append(text)
        found = (await self.documents([text]))[0]
        return np.concatenate((found, np.zeros(self.more, np.float32)))

    def _vector(self, text):
        meanings = [self._meant.get(stem, stem) for stem in content_stems(text)] or ["nothing"]
        seeds = [zlib.crc32(meaning.encode()) for meaning in meanings]
        total = sum(np.random.default_rng(seed).standard_normal(96) for seed in seeds)
        return (total / np.linalg.norm(total)).astype(np.float32)


def live_summaries(tx, project_id, kinds=()):
    """A project's summaries that nothing hides, newest first."""
    wanted = Filter(project_ids=(project_id,), kinds=kinds)
    return read_in_order(tx, newest_ids(tx, wanted, MemoryChoice(), NEWEST, 500))
