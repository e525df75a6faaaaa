"""Every worker of a daemon over one vault in process, questions to it, and a model of it."""

import hashlib
import io
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import apsw
import pytest
from anyio.from_thread import start_blocking_portal

from memd.capture.ingest import Ingestor
from memd.capture.prepare import CaptureRequest
from memd.capture.redact import redact, redact_value
from memd.config import Config
from memd.consolidate.consolidator import Consolidator
from memd.consolidate.curator import Curator
from memd.consolidate.judgments import JudgmentService
from memd.consolidate.remember import NewMemory
from memd.consolidate.scrub import Eraser, make_redaction_rule
from memd.distill.distiller import Distiller
from memd.embeddings.hashing import HashingEmbedder
from memd.index import indexer, snapshot
from memd.index.indexer import Indexer
from memd.index.memory_index import MemoryIndex, VaultContents
from memd.recall import Question
from memd.recall.recaller import Recaller
from memd.store import fulltext, integrity, summaries
from memd.store.backup import read_snapshot
from memd.store.database import Database
from memd.store.import_rows import commit_staging, staged_path, staging_vault
from memd.transfer import archive
from tests.factories import open_new_vault

EVERYTHING = 2**62


def rare(number):
    """A unique word for each number: ten letters, which no stemmer shortens."""
    drawn = hashlib.sha256(str(number).encode()).digest()
    return "qx" + "".join("bcdfghjklmnpqrtvwz"[byte % 18] for byte in drawn[:8])


@dataclass
class Known:
    """What the model expects of a memory."""

    words: tuple[str, ...]
    uid: str
    is_shown: bool = True
    said: NewMemory | None = None
    """None: it was distilled."""
    is_whole: bool = True
    """Whether its words are still those that were said."""


@dataclass
class Model:
    """What must be visible, hidden and erased."""

    known: dict[int, Known] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    past: set[str] = field(default_factory=set)
    """Scrubbed words, which an older export may bring back."""

    def shown(self):
        return {number for number, one in self.known.items() if one.is_shown}


def staying_above(number, chains, going):
    """Who hides this one, directly or through others, and stays."""
    while (number := chains.get(number)) is not None:
        if number not in going:
            return number
    return None


def turn(session, number, asked, chosen, failed, *, failing):
    """A turn in which something is asked, fails if need be and is mended, and something decided."""
    base = {"session_id": session, "cwd": "/nowhere/a", "prompt_id": number}
    command = {"command": f"make {failed}"}
    tool = {**base, "tool_name": "Bash", "tool_input": command}
    events = [
        {**base, "hook_event_name": "UserPromptSubmit", "prompt": f"Where does {asked} live?"}
    ]
    if failing:
        events += [
            {
                **tool, "hook_event_name": "PostToolUseFailure", "tool_use_id": f"{number}a",
                "error": f"Exit code 1\nValueError: {failed} is not there",
            },
            {
                **base, "hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_use_id": f"{number}b",
                "tool_input": {"file_path": f"/nowhere/a/{failed}.py", "old_string": "x", "new_string": "y"},
                "tool_response": {},
            },
            {
                **tool, "hook_event_name": "PostToolUse", "tool_use_id": f"{number}c",
                "tool_response": {"stdout": "ok", "stderr": "", "interrupted": False},
            },
        ]  # fmt: skip
    said = f"It lives in the drawer. We chose {chosen} because it is quick and small."
    return [*events, {**base, "hook_event_name": "Stop", "last_assistant_message": said}]


class WholeVault:
    """The workers of a daemon over one vault, without its socket."""

    def __init__(self, path, clock):
        self.path, self.clock = str(path), clock
        self._portal_made = start_blocking_portal("asyncio")
        self._portal = self._portal_made.__enter__()
        self._open()

    def _open(self):
        config, clock = Config(), self.clock
        is_new = not Path(self.path).exists()
        self.db = db = (open_new_vault if is_new else Database)(self.path, clock())
        embedders = (HashingEmbedder(),)
        self.space = embedders[0].space.name
        self.index = MemoryIndex()
        self.indexer = Indexer(db, embedders, self.index)
        self.distiller = Distiller(db, config.distill, clock, self.indexer.nudge)
        spool = f"{self.path}.spool"
        self.ingestor = Ingestor(db, config.capture, clock, spool, self.distiller.nudge)
        self.recaller = Recaller(db, embedders, self.index, config.recall, {})
        self.consolidator = Consolidator(
            db, self.index, self.space, config.consolidate, clock, self.indexer.nudge
        )
        eraser = Eraser(
            db, clock, self.indexer.nudge, bring_in=self._settle, indexed=self.indexer.settle
        )
        secrets = make_redaction_rule(redact)
        self.curator = Curator(db, redact, clock, self.indexer.nudge, eraser, secrets)
        self.judge = JudgmentService(db, redact, clock, self.indexer.nudge, self.index, self.space)
        self.call(self.indexer.load)

    async def _settle(self):
        await self.distiller.settle(EVERYTHING)

    def call(self, work, *given, **named):
        """Run a coroutine function of a worker, to its end."""
        return self._portal.call(partial(work, *given, **named))

    def close(self):
        self.db.close()
        self._portal_made.__exit__(None, None, None)

    def restart(self):
        """Close the vault, and open it with new workers."""
        self.call(self.recaller.embed_unrelated)
        self.db.close()
        self._open()

    def save(self):
        """Rest, and write a snapshot of the index, however little has changed."""
        with pytest.MonkeyPatch.context() as patch:
            for name in ("ROWS_MIN", "_CHANGED_MIN", "_CHANGED_SHARE"):
                patch.setattr(snapshot, name, 0)
            self.call(self.indexer._save_and_trim)

    def settle(self):
        """Let everything that waits become a memory, and every memory searchable."""
        self.call(self._settle)
        self.call(self.indexer.settle)

    def capture(self, payloads):
        """Bring what a client's hooks say."""
        return self.call(
            self.ingestor.capture, [CaptureRequest("claude-code", one) for one in payloads]
        )

    def tick(self):
        """Consolidate until there is nothing left; the ticks."""
        ticks = [self.call(self.consolidator.tick)]
        while ticks[-1].has_more:
            ticks.append(self.call(self.consolidator.tick))
        return ticks

    def exported(self):
        """All of the vault, as lines."""
        out = io.BytesIO()
        archive.export_vault(self.path, "1", out.write)
        return out.getvalue()

    def take_in(self, data):
        """Import such lines; what became of them."""
        with staging_vault(self.path, self.clock()) as (tx, name):
            archive.stage_export(io.BytesIO(data), tx, redact_value, lambda _: None)
            commit_staging(tx)
            path = staged_path(self.path, name)
            merged = self.db.write_now(
                lambda tx: archive.merge_staged(tx, staged=path, now=self.clock())
            )
        self.call(self.indexer.settle)
        return merged

    def all(self):
        """Every memory that the vault has, by id."""

        def read(tx):
            ids = [row[0] for row in tx.execute("SELECT id FROM summaries").fetchall()]
            return summaries.summaries_by_ids(tx, ids) if ids else {}

        return self.db.read_now(read)

    def found(self, word, *, hidden=False):
        """The ids of what a search for this word finds: (all, those in which it stands)."""
        asked = Question(
            word, self.clock(), k=50, include_superseded=hidden, legs=frozenset({"lexical"}),
            count_use=False,
        )  # fmt: skip
        hits = self.call(self.recaller.search, asked).hits
        having = {
            hit.summary.id for hit in hits if word in f"{hit.summary.title} {hit.summary.body}"
        }
        return {hit.summary.id for hit in hits}, having

    def scores(self, text):
        """What a search finds: id → score, as exact as sums of 32 bits in any order are."""
        asked = Question(text, self.clock(), k=50, include_superseded=True, count_use=False)
        hits = self.call(self.recaller.search, asked).hits
        return {hit.summary.id: hit.score for hit in hits}

    def scores_from_scratch(self, text):
        """The same from an index that was read from the vault just now."""
        kept = self.index, self.recaller
        fresh = MemoryIndex()
        embedders = (HashingEmbedder(),)
        storage = snapshot.IndexStorage(self.db, fresh, embedders)

        def load(tx):
            spaces = [embedder.space for embedder in embedders]
            terms, rows = fulltext.terms_in_order(tx), fulltext.index_rows(tx)
            fresh.load(VaultContents(fulltext.load_passages(tx), terms, rows, spaces))
            storage._embed_missing(tx, fresh)

        self.db.read_now(load)
        self.recaller = Recaller(self.db, (HashingEmbedder(),), fresh, Config().recall, {})
        try:
            return pytest.approx(self.scores(text), abs=1e-5)
        finally:
            self.index, self.recaller = kept

    def wrong(self):
        """What the doctor finds amiss."""

        # Of a connection that has looked before, FTS5 checks by a stale structure.
        with read_snapshot(self.path) as tx:
            found = integrity.examine_vault(tx, self.clock(), is_served=True)
            found.append(indexer.check_sample(tx, limit=1_000))
            found.append(indexer.check_snapshot(tx, self.path, HashingEmbedder()))
        return [one for one in found if one.verdict != "ok"]

    def chains(self):
        """Older → newer, of every supersession that holds."""
        rows = "SELECT older_id, newer_id FROM supersessions WHERE undone_at IS NULL"
        return dict(self.db.read_now(lambda tx: tx.execute(rows).fetchall()))

    def judged(self, one, other):
        """Whether a judgment of this pair holds."""
        rows = (
            "SELECT 1 FROM judgments WHERE undone_at IS NULL AND"
            " (newer_id, older_id) IN ((?1, ?2), (?2, ?1))"
        )
        return self.db.read_now(lambda tx: tx.execute(rows, (one, other)).get)

    def remains(self, words):
        """Where any of these words still stands: tables, their bytes, full texts, files."""
        wanted = [(word, word.encode()) for word in words]
        places = set()
        connection = apsw.Connection(self.path, flags=apsw.SQLITE_OPEN_READONLY)
        try:
            names = "SELECT name FROM sqlite_schema WHERE type = 'table'"
            for (table,) in connection.execute(names).fetchall():
                if table.endswith("_fts"):
                    look = f"SELECT count(*) FROM {table} WHERE {table} MATCH ?"  # noqa: S608  # our own tables
                    hits = [w for w, _ in wanted if connection.execute(look, (w,)).get]
                    places |= {(word, f"full text {table}") for word in hits}
                    continue
                for row in connection.execute(f"SELECT * FROM {table}"):  # noqa: S608  # the same
                    for cell in row:
                        text = cell.encode() if isinstance(cell, str) else cell
                        if isinstance(text, bytes):
                            places |= {(w, table) for w, raw in wanted if raw in text}
        finally:
            connection.close()
        for file in Path(self.path).parent.glob(f"{Path(self.path).name}*"):
            held = file.read_bytes() if file.is_file() else b""
            places |= {(word, file.name) for word, raw in wanted if raw in held}
        return places
