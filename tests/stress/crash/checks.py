"""Whether a vault that was killed holds what was promised: looked at from outside, after each restart.

By the doctor's eyes over the socket, and by reading the file itself: events and memories once each,
nothing forgotten in any byte, the ledger, the backups. `rebuilt` rebuilds the index in a copy and compares
all of it, row by row. Not here: mending anything.
"""

import contextlib
import re
import sqlite3
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import apsw
import numpy as np

from benchmarks import ollama_stub
from memd.client import Client
from memd.daemon import backup
from memd.embeddings.hashing import HashingEmbedder
from memd.errors import BadRequest, MemdError, UnknownId
from memd.index import backfill, indexer
from memd.index.indexer import Indexer
from memd.index.memory_index import MemoryIndex
from memd.index.quantization import decode_vectors
from memd.store import backup as store_backup
from memd.store import integrity, vectors
from memd.store.backup import read_snapshot
from memd.store.database import Database, open_database
from memd.transfer import archive
from tests.stress.crash import work as load
from tests.stress.crash.stored_vaults import copied
from tests.stress.support import doctor_problems, ledger_complaints, wait_until, worker

_RARE = re.compile(rb"[bcdfghjklmnprtw]{6}" + load.TAIL.encode())
_MARKED = f"SELECT body FROM summaries WHERE body LIKE '%{load.TAIL}%'"  # noqa: S608  # ours
_SAID = f"SELECT payload FROM events WHERE payload LIKE '%{load.TAIL}%'"  # noqa: S608  # the same
_QUESTIONS = (
    "why does worker 7 time out", "queue over a lock", "drawer zzyzx", "cache the session",
)  # fmt: skip
_NEAR = 1e-4
_SAMPLE = 150
_RESTS_S = 1.0
Rows = dict[str, Any]


def broken(site: load.Site) -> list[str]:
    """What does not hold of what was promised; the daemon runs."""
    with site.daemon.client() as client:
        if not wait_until(lambda: _is_settled(client.call("memd/status"))):
            raise SystemExit(f"the daemon does not settle: {client.call('memd/status')}")
        wrong = _left_behind(site, client)
        # What reads the vault keeps forgotten words in its log until it ends, and the doctor reads it, too.
        wait_until(
            lambda: not any("erasure" in one for one in doctor_problems(client)), every_s=_RESTS_S
        )
        wrong += doctor_problems(client, "changes", "secrets")  # which are not indexed yet
        wrong += _examined(site, _SAMPLE)
        wrong += _events(site) + _memories(site) + _rounds(site)
        wrong += words(site) + _backups(site) + _exports(site)
        return wrong + ledger_complaints(client.call("memd/status"))


def _is_settled(status: dict[str, Any]) -> bool:
    """Whether the spool is empty and everything is indexed."""
    waiting = status["spool"]["files"] + status["summaries"]["to_index"]
    return not waiting and bool(worker(status, "indexer")["loaded"])


def _examined(site: load.Site, limit: int) -> list[str]:
    """The stored index against the same computed again, memory by memory."""
    with read_snapshot(site.daemon.paths.database) as tx:
        found = indexer.check_sample(tx, limit=limit)
    return [] if found.verdict == "ok" else [f"index: {found.words}"]


def rows(site: load.Site, sql: str) -> list[Any]:
    """Of the file itself."""
    uri = f"file:{site.daemon.paths.database}?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=30)) as vault:
        return vault.execute(sql).fetchall()


def _events(site: load.Site) -> list[str]:
    found = Counter((row[0], row[1]) for row in rows(site, "SELECT turn, name FROM events"))
    lost = site.promises.events - found.keys()
    twice = [one for one, count in found.items() if one[0] and count > 1]
    ours = [one for one in twice if str(one[0]).startswith("k")]
    said = [f"{len(lost)} acknowledged events are lost, such as {min(lost)}"] if lost else []
    return said + ([f"{len(ours)} events are there twice, such as {min(ours)}"] if ours else [])


def _memories(site: load.Site) -> list[str]:
    there = {row[0] for row in rows(site, "SELECT id FROM summaries")}
    lost = site.promises.memories - there
    hidden = rows(
        site,
        "SELECT older_id FROM supersessions WHERE undone_at IS NULL GROUP BY older_id HAVING count(*) > 1",
    )
    said = [f"{len(lost)} acknowledged memories are lost: #{min(lost)}"] if lost else []
    return said + [f"#{one} is hidden twice" for (one,) in hidden]


def _rounds(site: load.Site) -> list[str]:
    """An import is there as a whole, or not at all."""
    bodies = [body for (body,) in rows(site, _MARKED)]
    whole = load.foreign_export().count(b'"record":"summary"') if site.promises.rounds else 0
    found = {word: sum(body.endswith(word) for body in bodies) for word in site.promises.rounds}
    return [
        f"an import left {found[word]} of {whole} memories (acknowledged: {is_sure})"
        for word, is_sure in site.promises.rounds.items()
        if found[word] not in ({whole} if is_sure else {0, whole})
    ]


def _left_behind(site: load.Site, client: Client) -> list[str]:
    """A forgetting that was cut short: deleted rows left no byte, and asking again takes the rest."""
    said = []
    for deletion in list(site.promises.going):
        if not _stored(site, deletion.words) and not wait_until(
            lambda deletion=deletion: not _in_files(site, deletion.words)
        ):
            said.append(
                f"{deletion.method} {deletion.params} was cut short: rows are deleted and their words are not:"
                f" {_in_tables(site, deletion.words)}"
            )
        with contextlib.suppress(BadRequest, UnknownId):
            client.call(deletion.method, deletion.params)
        if _stored(site, deletion.words):
            said.append(f"{deletion.method} was asked for again, and it is still there")
        site.promises.going.remove(deletion)
        site.promises.deleted |= deletion.words
    return said


def _stored(site: load.Site, words: set[str]) -> set[str]:
    """Those of these words that stand in a row of what is remembered or was said."""
    texts = rows(site, _MARKED) + rows(site, _SAID)
    said = "\n".join(text for (text,) in texts)
    return {word for word in words if word in said}


def _in_files(site: load.Site, words: set[str]) -> set[str]:
    """Where the ends of these words stand in a file of memd's that is no backup."""
    ends = {word[-6 - len(load.TAIL) :].encode() for word in words}
    places = set()
    for file in site.home.rglob("*"):
        if file.is_file() and "backups" not in file.parts:
            with contextlib.suppress(FileNotFoundError):
                held = file.read_bytes().lower()
                places |= {
                    f"{file.name}: {one.decode()}" for one in ends.intersection(_RARE.findall(held))
                }
    return places


def _in_tables(site: load.Site, words: set[str]) -> set[str]:
    """Tables in which one of these words stands; a virtual table's rows stand in its shadows."""
    names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'"
    with copied(site.daemon.paths.database) as connection:
        return {
            f"{table}: {word}"
            for (table,) in connection.execute(names).fetchall()
            for row in connection.execute(f"SELECT * FROM {table}")  # noqa: S608  # ours  # ours
            for held in (one.encode() if isinstance(one, str) else one for one in row)
            if isinstance(held, bytes)
            for word in words
            if word[4:].encode() in held.lower()
        }


def words(site: load.Site) -> list[str]:
    """Where what was forgotten still stands."""
    left = _in_files(site, site.promises.deleted)
    if not left:
        return []
    tables = _in_tables(site, site.promises.deleted) or "no table"
    return [f"what was forgotten still stands in {len(left)} places: {min(left)}; in {tables}"]


def _backups(site: load.Site) -> list[str]:
    """What is called a backup is whole."""
    paths, said = site.daemon.paths, []
    for one in backup.list_backups(backup.backup_dir(paths), paths.vault)[:2]:
        try:
            store_backup.verify_vault(one.path)
        except FileNotFoundError:
            continue  # pruned by the next one meanwhile
        except MemdError as error:
            if Path(one.path).exists():
                said.append(f"a half-made backup is taken for a whole one: {error}")
    return said


def _exports(site: load.Site) -> list[str]:
    said = []
    for file in site.exports.glob("*.jsonl"):
        with contextlib.suppress(FileNotFoundError):
            reader = archive.ExportReader()
            try:
                for line in file.read_bytes().splitlines(keepends=True):
                    reader.feed(line)
                reader.close()
            except BadRequest as error:
                said.append(f"a half-made export has a name: {error}")
    return said


# ── Compared with a rebuilt index ───────────────────────────────────────────────────────────────────────────


def rebuilt(vault: str) -> list[str]:
    """The index of a copy of a vault, row by row, against one that is rebuilt from the truth."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "copy.db"))
        store_backup.copy_vault(vault, path, lambda *_: None)
        with open_database(path, 1) as db:
            anyio.run(_bring_index_up_to_date, db, False)
        before = index(path)
        with open_database(path, 1) as db:
            anyio.run(_bring_index_up_to_date, db, True)
        after = index(path)
    return [
        f"index: {name} is not what a rebuilt one is ({len(before[name])}, {len(after[name])} rows)"
        for name in before
        if before[name] != after[name]
    ]


async def _bring_index_up_to_date(db: Database, is_rebuilt: bool) -> None:
    if is_rebuilt:
        await db.write(_empty_index)
    indexer = Indexer(db, (HashingEmbedder(),), MemoryIndex())
    await indexer.load()
    await (indexer.reindex() if is_rebuilt else indexer.settle())


def _empty_index(tx: apsw.Connection) -> None:
    for table in ("passages", "terms", "entities"):
        tx.execute(f"DELETE FROM {table}")  # noqa: S608  # ours


def index(path: str) -> dict[str, Rows]:
    """Everything derived, named by what it belongs to instead of by numbers of its own."""
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        ids = [number for (number,) in connection.execute("SELECT id FROM summaries")]
        passages = {number: integrity.indexed_passages(connection, number) for number in ids}
        owner = {
            one.id: (number, seq) for number in ids for seq, one in enumerate(passages[number])
        }
        return {
            "passages": {
                owner[one.id]: (one.start, one.stop, one.length, dict(one.terms))
                for some in passages.values()
                for one in some
            },
            "terms": dict(connection.execute("SELECT term, passages FROM terms")),
            "full text": _instances(connection, "passages_fts", owner),
            "turns": _instances(connection, "turns_fts", None),
            "entities": Counter(connection.execute("SELECT summary_id, name, kind FROM entities")),
        }
    finally:
        connection.close()


def _instances(connection: apsw.Connection, table: str, owner: Rows | None) -> Rows:
    """Every word of a full text and where it stands: once each."""
    connection.execute(
        f"CREATE VIRTUAL TABLE temp.v_{table} USING fts5vocab(main, {table}, instance)"
    )
    found = connection.execute(f"SELECT term, doc, col, offset FROM v_{table}")  # noqa: S608  # ours
    return Counter((term, owner[doc] if owner else doc, col, at) for term, doc, col, at in found)


def answers(site: load.Site) -> list[str]:
    """What the daemon's index in memory answers, against the same after it was rebuilt."""
    with site.daemon.client() as client:
        asked = {"legs": ["lexical"], "k": 50, "project": "all", "include_superseded": True}
        at = time.time_ns() // 1_000_000
        before = [_scores(client, {**asked, "query": q, "as_of": at}) for q in _QUESTIONS]
        client.call("memd/reindex")
        after = [_scores(client, {**asked, "query": q, "as_of": at}) for q in _QUESTIONS]
    return [
        f"search: {question!r} is answered otherwise by a rebuilt index"
        for question, old, new in zip(_QUESTIONS, before, after, strict=True)
        if old.keys() != new.keys() or any(abs(old[one] - new[one]) > _NEAR for one in old)
    ]


def _scores(client: Client, asked: Rows) -> dict[int, float]:
    """Each hit's score, by the index: while that is busy full text answers alone, and says so."""
    wait_until(lambda: not client.call("memd/search", asked).get("degraded"))
    return {hit["id"]: hit["score"] for hit in client.call("memd/search", asked)["hits"]}


def strays(site: load.Site, models: dict[str, str]) -> list[str]:
    """Learned vectors that are not what their own model makes of their passage; digest → salt."""
    model = ollama_stub.minilm.load("noise")
    said: list[str] = []
    with read_snapshot(site.daemon.paths.database) as tx:
        spaces = tx.execute(
            "SELECT id, name, digest, document_prefix FROM spaces WHERE provider = 'ollama'"
        ).fetchall()
        for number, name, digest, prefix in spaces:
            salts = [salt for whole, salt in models.items() if digest and whole.startswith(digest)]
            rows = tx.execute(
                "SELECT id % ?1, vector FROM vectors WHERE id / ?1 = ?2", (vectors.STRIDE, number)
            )
            stored = {int(passage_id): vector for passage_id, vector in rows}
            texts = {
                one: prefix + text
                for one, text in backfill.texts_to_embed(tx, list(stored)).items()
            }
            if not texts:
                continue
            wanted = ollama_stub.rotate(model.vectors(list(texts.values())), salts[0])
            had = decode_vectors([stored[one] for one in texts], wanted.shape[1])
            wrong = int((np.einsum("ij,ij->i", wanted, had) < 0.99).sum())  # float16
            said += [f"{wrong} vectors of {name} are not its model's"] if wrong else []
    return said
