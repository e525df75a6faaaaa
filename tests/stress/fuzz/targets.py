"""What of memd is fuzzed in this process, and what must hold of each: readers, redaction, queries, words.

A target makes an input and takes it; whatever it raises is a finding. Refusals that memd documents are
caught here, and nothing else.
"""

import contextlib
import functools
import json
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw

from memd import config, import_graph, time_expressions
from memd import text as text_module
from memd.belief import compare
from memd.capture import ignore, project, redact, truncate
from memd.capture.claude_code import Ignored, Refused
from memd.capture.prepare import CaptureRequest, Preparer
from memd.capture.project import ProjectResolver
from memd.capture.write import PreparedItem, store_items
from memd.distill import distiller
from memd.distill import distiller as reading
from memd.distill.transaction import write_episode as written
from memd.errors import BadRequest, ConfigError
from memd.index import passages, snapshot
from memd.index.memory_index import MemoryIndex
from memd.models import NewEvent
from memd.recall import profiles, query
from memd.store import summaries
from memd.store.database import Connection, Database
from tests.stress.fuzz import readers
from tests.stress.fuzz.generators import Generator, dumped, hook_payloads
from tests.stress.fuzz.readers import NOW, Target, same


def _encoded(value: object) -> int:
    """Bytes of a value as it would be stored; raises if it cannot be."""
    return len(json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8"))


def _redaction(value: Any) -> None:
    """Redacting twice is redacting once, whatever was redacted before; what is stored can be stored."""
    redact.forget_words()  # what it remembers must make no difference
    once = redact.redact_value(value)
    same(redact.redact_value(once), once, "redacted twice")
    same(redact.redact_value(value), once, "redacted after others")
    plain = redact.redact_value(value, entropy=False)
    same(redact.redact_value(plain, entropy=False), plain, "redacted twice without entropy")
    trimmed = truncate.clean_payload(truncate.trim_tool_response(value, keep_reads=False))
    if (size := _encoded(trimmed)) > 2 * truncate.PAYLOAD_LIMITS.total_bytes:
        raise AssertionError(f"{size} bytes are trimmed")
    same(redact.redact_value(trimmed), trimmed, "trimmed with a secret")
    small = truncate.clean_payload(
        value, truncate.PayloadLimits(field_bytes=300, total_bytes=2_000)
    )
    same(redact.redact_value(small), small, "cut, with a secret")


def _value(generator: Generator) -> Any:
    hook = functools.partial(generator.changed, generator.random.choice(_hooks()))
    return generator.random.choices((generator.text, hook, generator.value), (5, 2, 2))[0]()


@functools.cache
def _hooks() -> list[dict[str, Any]]:
    return hook_payloads()


def _payload(generator: Generator) -> dict[str, Any]:
    payload = generator.changed(generator.random.choice(_hooks()))
    directory = generator.random.choice((None, "/", "/home/dev", "relative", generator.word()))
    at = generator.random.choice((None, 0, NOW, -1, 2**62, True))
    source = generator.random.choice(("live", "import", "other"))
    return {"payload": payload, "directory": directory, "at": at, "source": source}


@contextlib.contextmanager
def _capture() -> Iterator[Target]:
    """Every payload is stored, filtered or refused, and the ledger balances."""
    with tempfile.TemporaryDirectory() as home:
        ready = Preparer(config.CaptureConfig(), lambda: NOW, ProjectResolver(lambda: NOW))

        def take(given: Mapping[str, Any]) -> None:
            item = CaptureRequest("claude-code", **given)
            ready_one = replace(ready.prepare_all([item])[0])
            if isinstance(ready_one.verdict, NewEvent):
                _encoded(ready_one.verdict.payload)
            elif not isinstance(ready_one.verdict, Ignored | Refused):
                raise TypeError(f"the verdict is {ready_one.verdict!r}")
            again = {"duplicate", "filtered", "refused"}
            for outcome in (again | {"stored"}, again):
                (receipt,) = db.write_now(lambda tx: store_items(tx, [ready_one], NOW))
                if receipt.outcome not in outcome:
                    raise AssertionError(f"{receipt.outcome}, of {outcome}")

        with contextlib.closing(Database(f"{home}/memd.db", NOW)) as db:
            yield Target(_payload, take)


def _turn(generator: Generator) -> list[dict[str, Any]]:
    """A turn with tools and its end, in which anything may have been said."""
    start = generator.random.randrange(len(_hooks()))
    texts = {"prompt", "last_assistant_message", "error", "stdout", "stderr", "command", "content"}
    ids = {"session_id": "s", "prompt_id": "p"}

    def spoken(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: spoken(member, key) for key, member in value.items()}
        if name in texts and isinstance(value, str) and generator.chance(0.5):
            return generator.text()
        return value

    count = generator.random.randrange(1, 12)
    payloads = [_hooks()[(start + n) % len(_hooks())] for n in range(count)]
    made = [generator.changed(spoken(one), 0.03) for one in payloads]
    tools = [one for one in made if isinstance(one, dict)]
    turn = [{**one, **ids, "tool_use_id": f"t{n}"} for n, one in enumerate(tools)]
    prompt = {"hook_event_name": "UserPromptSubmit", "cwd": "/p", "prompt": generator.text()}
    end = {"hook_event_name": "Stop", "cwd": "/p", "last_assistant_message": generator.text()}
    return [{**prompt, **ids}, *turn, {**end, **ids}]


@contextlib.contextmanager
def _distill() -> Iterator[Target]:
    """Whatever was said in a turn, it becomes memories, the same ones each time, and those passages."""
    with tempfile.TemporaryDirectory() as home:
        ready = Preparer(config.CaptureConfig(), lambda: NOW, ProjectResolver(lambda: NOW))

        def take(payloads: list[dict[str, Any]]) -> None:
            items = [CaptureRequest("claude-code", one, NOW + n) for n, one in enumerate(payloads)]
            prepared = ready.prepare_all(items)
            with contextlib.suppress(_Undone):
                db.write_now(lambda tx: _distilled(tx, prepared))

        with contextlib.closing(Database(f"{home}/memd.db", NOW)) as db:
            yield Target(_turn, take)


class _Undone(Exception):
    """What was tried out is to leave nothing."""


def _distilled(tx: Connection, prepared: list[PreparedItem]) -> None:
    store_items(tx, prepared, NOW)
    for number in reading.find_pending_sessions(tx, None):
        due = reading.load_due(tx, reading.DueRequest(number, NOW + 10**9, 1))
        if due is not None:
            plans = distiller.plan_episodes(due)
            same(distiller.plan_episodes(due), plans, "distilled twice")
            for plan in plans:
                written(tx, plan, due.session, NOW)
    made = summaries.summaries_by_ids(tx, [n for (n,) in tx.execute("SELECT id FROM summaries")])
    for one in made.values():
        passages.split_into_passages(one)
        passages.entities_of_summary(one)
        compare.compare(one.body[:2_000], f"{one.title} {one.body[:2_000]}")
    raise _Undone


_TOML = (
    '[capture]\nkeep_reads = true\nignore_paths = ["a/**", "!b", "*.[ab]"]\nentropy = false\n',
    '[engines]\nembedder = "hashing"\nquery_s = 0.5\n[recall]\nprofile = "quick"\nk = 3\n',
    '[profiles.mine]\nbase = "memd"\n[profiles.mine.signals]\nrecency = 0.5\n',
    '[projects]\n"~/code/shop" = "shop"\n"/a/**/b-*" = "b"\n"/x/[ab]?" = "x"\n',
    "a = 1979-05-27T07:32:00Z\nb = 0xff\nc = [1, {d = 'e'}]\n",
)


def _config_made(generator: Generator) -> str:
    parts = generator.random.choices(_TOML, k=generator.random.choice((1, 1, 2)))
    whole = "".join(map(generator.bent, parts))
    value = generator.random.choice((generator.text, lambda: str(generator.scalar())))()
    return whole + f"x = {value}" if generator.chance(0.3) else whole


def _config(said: str) -> None:
    """A file is read or refused in memd's words; what it says can be used in bounded time."""
    with contextlib.suppress(ConfigError):
        known = config.parse_config(said, "config.toml")
        with contextlib.suppress(ConfigError, BadRequest):
            profiles.resolve_profiles(known.recall.profile, known.profiles)
        rules = ignore.compile_ignore(known.capture.ignore_paths, known.capture.ignore_tools)
        rules.reason({"tool_name": "Read", "tool_input": {"file_path": "/a/b/c" * 300}}, "/a")
    with contextlib.suppress(ValueError):
        for one in project.parse_overrides(said, "/home/dev"):
            one.below.matches("home/dev/code/" + "shop-a/" * 200, is_directory=True)
    for line in said.split("\n")[:3]:
        pattern = ignore.parse_pattern(line[:500])
        if pattern is not None:
            pattern.matches("a/b-c/" * 100, is_directory=False)


@contextlib.contextmanager
def _query() -> Iterator[Target]:
    """Nothing that can be typed is a syntax error, to us or to FTS5."""
    db = apsw.Connection(":memory:")
    db.execute("CREATE VIRTUAL TABLE f USING fts5 (text, tokenize = 'porter unicode61')")
    db.execute("INSERT INTO f VALUES ('why did the login break after the cache')")

    def take(said: str) -> None:
        asked = query.parse_terms(said)
        phrases = map(query.phrase_expression, asked.phrases)
        for expression in (query.fts_expression(asked), *phrases):
            if expression:
                shown = text_module.storable(expression)
                db.execute("SELECT rowid FROM f WHERE f MATCH ?", (shown,)).fetchall()
        same(query.parse_terms(said), asked, "parsed twice")

    yield Target(lambda generator: generator.text()[:6_000], take)
    db.close()


def _words(said: str) -> None:
    """Words, times and names of imports of any text; a folded text is folded."""
    for name in ("words", "content_stems", "normalised", "storable", "digest"):
        getattr(text_module, name)(said)
    same(text_module.fold(text_module.fold(said)), text_module.fold(said), "folded twice")
    if len(text_module.one_line(said, 40)) > 40:  # the limit just given
        raise AssertionError("one line is too long")
    for path in ("a.py", "a.ts", "a.go", "a.rs", "a.sh", "go.mod"):
        import_graph.read_imports(path, said)
    for work in (time_expressions.parse_start, time_expressions.parse_end):
        with contextlib.suppress(BadRequest):
            time_expressions.format_time(work(said[:200], NOW))
    with contextlib.suppress(BadRequest):
        time_expressions.parse_duration(said[:200], "expires")


@contextlib.contextmanager
def _index() -> Iterator[Target]:
    """A damaged snapshot of the index is unusable, and never more than that."""
    with tempfile.TemporaryDirectory() as home:
        vault = f"{home}/v.db"
        snapshot.write_snapshot(vault, "one", MemoryIndex(), lambda: None)
        path = Path(f"{vault}.shelf", "one")
        whole = path.read_bytes()
        length = int.from_bytes(whole[-8:-4], "little")
        arrays, about = whole[: -8 - length], json.loads(whole[-8 - length : -8])

        def make(generator: Generator) -> bytes:
            if generator.chance(0.3):
                return generator.torn(whole)
            text = dumped(generator.changed(about))
            held = arrays + text + len(text).to_bytes(4, "little")
            return held + zlib.crc32(held).to_bytes(4, "little")

        def take(data: bytes) -> None:
            path.write_bytes(data)
            with contextlib.suppress(snapshot.SnapshotUnusable):
                snapshot.read_snapshot(vault, "one")

        yield Target(make, take)


TARGETS: Mapping[str, Callable[[], contextlib.AbstractContextManager[Target]]] = {
    "redaction": lambda: contextlib.nullcontext(Target(_value, _redaction)),
    "capture": _capture,
    "transcripts": readers.session_files,
    "exports": readers.exports,
    "distill": _distill,
    "notes": lambda: contextlib.nullcontext(Target(readers.notes_made, readers.notes)),
    "config": lambda: contextlib.nullcontext(Target(_config_made, _config)),
    "query": _query,
    "words": lambda: contextlib.nullcontext(Target(Generator.text, _words)),
    "index": _index,
}
"""Name → opens the target."""
