"""What reads what others wrote, fuzzed: transcripts, exports, notes and other memories' files.

No line stops the file it stands in, and what comes of it is taken by the daemon; a changed export comes in
whole or not at all.
"""

import contextlib
import functools
import hashlib
import io
import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from memd import config
from memd.capture import redact, truncate
from memd.capture.prepare import CaptureRequest, Preparer
from memd.capture.project import ProjectResolver
from memd.errors import MemdError
from memd.models import NewEvent
from memd.server import jsonrpc, requests
from memd.store.database import Database
from memd.store.export_rows import EXPORT_SCHEMA
from memd.store.import_rows import staging_vault
from memd.transfer import ForeignMemory, ReadIssues, archive, foreign_memories, importer, markdown
from memd.transfer.sources import ImportFile
from tests import export_records
from tests.stress.fuzz.generators import Generator, dumped, transcript_lines

NOW = 1_790_000_000_000
_FILE = ImportFile("/home/dev/notes/a.md", (1, 1), lambda _: iter(()), "/home/dev/notes")
_OPTIONS = importer.ImportOptions("import:markdown")


@dataclass(frozen=True, slots=True)
class Target:
    """A part of memd: what it is fed, and what takes it and raises if a promise is broken."""

    make: Callable[[Generator], Any]
    take: Callable[[Any], None]


def same(found: object, wanted: object, what: str) -> None:
    """Raise if these differ, NaN from NaN not."""
    if found != wanted and repr(found) != repr(wanted):
        raise AssertionError(f"{what}: {str(found)[:300]!r} is not {str(wanted)[:300]!r}")


def _sent(params: Any) -> dict[str, Any]:
    """Parameters as they come out at the other end of the wire."""
    line = dumped({"jsonrpc": "2.0", "id": 1, "method": "memd/x", "params": params})
    said = jsonrpc.parse_line(line)
    if not isinstance(said, jsonrpc.Call):
        raise TypeError(f"memd itself sends what it refuses: {said}")
    return dict(said.params)


_AGENT = {"sessionId": "s", "cwd": "/p", "timestamp": "2026-11-20T14:41:39.563Z"}
_KEPT = "<persisted-output>\nOutput too large. Full output saved to: /h/-home-dev/s/tool-results/a.txt\n\nPreview\n</persisted-output>"
_SAVED = [
    dumped({**_AGENT, "type": kind, "uuid": uuid, "message": {"role": kind, "content": [block]}})
    for kind, uuid, block in (
        ("assistant", "u1", {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}),
        ("user", "u2", {"type": "tool_result", "tool_use_id": "t1", "content": _KEPT}),
    )
]
"""A long result that lies beside the transcript."""


@contextlib.contextmanager
def session_files() -> Iterator[Target]:
    """No line stops a file, what it says is JSON, and a second reading says the same."""
    seeds = [*transcript_lines(), *_SAVED]
    with tempfile.TemporaryDirectory() as home:
        file = Path(home, "-home-dev", "s.jsonl")
        (file.parent / "s" / "tool-results").mkdir(parents=True)
        (file.parent / "s" / "tool-results" / "a.txt").write_bytes(b"all of it\n" * 40)
        ready = Preparer(config.CaptureConfig(), lambda: NOW, ProjectResolver(lambda: NOW))

        def carried() -> tuple[list[Any], importer.TranscriptImportReport]:
            said: list[Any] = []

            def send(captures: list[dict[str, Any]]) -> list[dict[str, Any]]:
                for one in captures:
                    request = requests.parse(requests.CaptureEventRequest, _sent(one))
                    asked = {
                        k: v
                        for k, v in request.model_dump().items()
                        if k not in {"inject", "plain"}
                    }
                    said.append(ready.prepare_all([CaptureRequest(**asked)])[0].verdict)
                return [{"outcome": "stored", "seq": 1, "reason": None}] * len(captures)

            report = importer.TranscriptImportReport()
            importer.import_transcripts(
                [str(file)], send, {}, lambda *_: None,
                truncate=truncate.clean_payload, report=report, now=NOW,
            )  # fmt: skip
            return said, report

        def take(data: bytes) -> None:
            file.write_bytes(data)
            said, report = carried()
            same(report.failed, {}, "a file that was read")
            keys = [one.key for one in said if isinstance(one, NewEvent)]
            same([one.key for one in carried()[0] if isinstance(one, NewEvent)], keys, "keys")

        yield Target(lambda generator: generator.lines(seeds), take)


def _exports_made(generator: Generator) -> bytes:
    """An export with altered records, its counts and its hash made to fit again or not."""
    lines = [json.loads(line) for line in _export().splitlines()]
    records = [generator.changed(one, 0.02) for one in lines[1:-1]]
    if generator.chance(0.2):
        generator.random.shuffle(records)
    if generator.chance(0.3):
        records.insert(generator.random.randrange(len(records) + 1), generator.value())
    kinds = [one.get("record") if isinstance(one, dict) else None for one in records]
    counts = {kind: kinds.count(kind) for kind in EXPORT_SCHEMA}
    header = {**lines[0], "counts": counts}
    if generator.chance(0.1):
        header = generator.changed(header)
    body = b"".join(dumped(one) + b"\n" for one in [header, *records])
    end = {"record": "end", "counts": counts, "sha256": hashlib.sha256(body).hexdigest()}
    whole = body + dumped(generator.changed(end) if generator.chance(0.1) else end) + b"\n"
    return generator.torn(whole) if generator.chance(0.2) else whole


@functools.cache
def _export() -> bytes:
    """A vault with a record of every kind, as lines."""
    records = export_records.one_of_each()
    kinds = [kind for kind, _ in records]
    counts = {kind: kinds.count(kind) for kind in EXPORT_SCHEMA}
    return b"".join(archive.export_lines("1.0", None, counts, records))


@contextlib.contextmanager
def exports() -> Iterator[Target]:
    """A changed export comes in whole, or is refused by its line and nothing of it is there."""
    with tempfile.TemporaryDirectory() as home:
        path = f"{home}/b.db"

        def take(data: bytes) -> None:
            before = db.read_now(_counted)
            try:
                with staging_vault(path, NOW) as (tx, name):
                    archive.stage_export(io.BytesIO(data), tx, redact.redact_value, lambda _: None)
                    tx.execute("COMMIT")
                    db.write_now(lambda to: archive.merge_staged(to, f"{home}/{name}", NOW))
            except MemdError as refused:
                same(db.read_now(_counted), before, f"half imported ({refused.message})")

        with contextlib.closing(Database(path, NOW)) as db:
            yield Target(_exports_made, take)


def _counted(tx: apsw.Connection) -> list[int]:
    tables = ("projects", "sessions", "events", "summaries", "edges", "supersessions")
    return [int(tx.execute(f"SELECT count(*) FROM {one}").get) for one in tables]  # noqa: S608


def notes_made(generator: Generator) -> tuple[str, bytes]:
    """A note, or what another memory wrote, and of which kind it is."""
    kind = generator.random.choice(("markdown", "memory", "index", "graph", "claude-mem"))
    if kind == "graph":
        seeds = (
            b'{"type":"entity","name":"auth","entityType":"module","observations":["uses JWT"]}',
            b'{"type":"relation","from":"auth","to":"db","relationType":"needs"}',
            b'{"entities":[{"name":"a","observations":[{"content":"x"}]}],"relations":[]}',
        )
        return kind, generator.lines(seeds, 8)
    if kind == "claude-mem":
        columns = (
            "id", "type", "title", "subtitle", "narrative", "facts", "concepts", "text", "files_read",
            "created_at_epoch", "created_at", "project", "status", "content", "memory_session_id", "request",
        )  # fmt: skip
        texts = (None, "", "[1, null]", "1790000000", generator.text(), generator.text())
        row = {name: generator.random.choice(texts) for name in columns}
        names = {name: generator.word()[:200] for name in ("memory_session_id", "project")}
        return kind, dumped(row | names)
    front = f"---\ntitle: {generator.word()}\ntags: [{generator.word()}]\ndate: {generator.word()}\n---\n"
    marks = ("\n# ", "\n## ", "\n- ", "\n\n", "\n", "\n- [a](")
    count = generator.random.randrange(8)
    parts = [generator.random.choice(marks) + generator.text() for _ in range(count)]
    whole = (front if generator.chance(0.5) else "") + "".join(parts)
    return kind, whole.encode("utf-8", "replace")


def notes(given: tuple[str, bytes]) -> None:
    """Whatever stands in a note, it becomes memories that the daemon takes."""
    kind, data = given
    said = data.decode("utf-8", "replace")
    entries: list[ForeignMemory] = []
    if kind == "graph":
        entries = foreign_memories.read_graph(data.split(b"\n"), NOW, ReadIssues())
    elif kind == "claude-mem":
        row = json.loads(data)
        for table in foreign_memories._ROW_READERS:  # every table that there is
            entries += foreign_memories.read_row(table, row, {})
    elif kind == "markdown":
        entries = markdown.read_note("a/b.md", said, NOW)
    else:
        name = markdown.MEMORY_INDEX if kind == "index" else "auth.md"
        entries = markdown.read_claude_memory(name, said, NOW, {"a.md"})[0]
    for one in entries:
        memory = _sent(importer.memory_request(one, _FILE, _OPTIONS))
        requests.parse(requests.RememberRequest, memory)
