"""Records into a vault."""

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import apsw

from memd.errors import BadRequest
from memd.models import EdgeType, Kind
from memd.store import judgments, ledger, links, migrate, projects, queries, summaries
from memd.store.database import Connection, translate_errors
from memd.store.export_rows import EXPORT_SCHEMA, NODES, Fields

# MERGED from memd.store.arrivals:
# MERGED Records of another vault on their way in: each finds its row here by its uid, or becomes one.
# MERGED
# MERGED What is here is never overwritten by what is older, what was forgotten here stays forgotten with all
# MERGED that hangs on it, and what is here already changes nothing. Everything happens in the caller's
# MERGED transaction. Not here: what is in a record (freight.py), who hides whom afterwards (settling.py).


ImportOutcome = Literal["created", "known", "revised", "forgotten", "left"]
"""`left`: it cannot stand beside what is here, such as a second memory that hides the same one."""
CHAIN_MAX = 1_000
"""Steps from a memory to the one that finally hides it. Chains are flattened, so real ones are short."""
_REVISED = (
    "kind", "source", "title", "body", "topic_key", "tags", "files", "at", "updated_at", "expires_at",
    "confidence", "quality", "revisions", "duplicates", "rule",
)  # fmt: skip


class RecordImporter:
    """Takes records in, in the order of FREIGHT.

    With `is_strict`, into a vault where there was nothing: BadRequest for whatever stands there twice,
    speaks of what did not come before it, or goes round in a circle.
    """

    def __init__(self, tx: Connection, *, is_strict: bool = False) -> None:
        self._tx = tx
        self._is_strict = is_strict
        self.outcomes: Counter[tuple[str, ImportOutcome]] = Counter()
        self._met = queries.SeenRows(tx)
        self.last_session = queries.last_id(tx, "sessions")
        self.last_event = queries.last_id(tx, "events")
        self.last_summary = queries.last_id(tx, "summaries")
        self.bereft: set[int] = set()
        """New memories that derive from an event which was forgotten here."""
        self._admit: dict[str, Callable[[Fields], ImportOutcome]] = {
            kind: getattr(self, f"_{kind}") for kind in EXPORT_SCHEMA
        }

    def import_record(self, kind: str, fields: Fields) -> ImportOutcome:
        """Take in one checked record, or say why not."""
        with judgments.updating_confidence(self._tx, self._doubted(kind, fields)):
            outcome = self._admit[kind](fields)
        if self._is_strict and outcome != "created" and (kind, outcome) not in _HARMLESS:
            raise BadRequest(_REFUSALS[outcome].format(kind=kind))
        self.outcomes[kind, outcome] += 1
        return outcome

    def _doubted(self, kind: str, new: Fields) -> set[int]:
        """The memories of before whose trust it may change; one that comes brings its own along."""
        ends: tuple[str, ...] = ()
        if kind == "judgment":
            ends = new["newer"], new["older"]
        elif kind == "edge" and new["type"] == "contradicts":
            ends = new["from"], new["to"]
        found = (self._row("summary", name) for name in ends)
        return {
            number for number in found if number is not None and number <= self.last_summary
        }

    def _project(self, new: Fields) -> ImportOutcome:
        if projects.project_by_key(self._tx, new["key"]) is not None:
            return "known"
        return self._insert("projects", new)

    def _alias(self, new: Fields) -> ImportOutcome:
        if projects.project_by_key(self._tx, new["key"]) is not None:
            return "known"
        project_id = self._project_id(new.pop("project"))
        return self._insert("aliases", new | {"project_id": project_id})

    def _session(self, new: Fields) -> ImportOutcome:
        found = self._tx.execute(
            "SELECT id FROM sessions WHERE uid = ? OR (client = ? AND key = ?)",
            (new["uid"], new["client"], new["key"]),
        ).get
        if found is None and ledger.is_forgotten(self._tx, new["uid"]):
            return "forgotten"
        if found is None:
            project_id = self._project_id(new.pop("project"))
            return self._insert("sessions", new | {"project_id": project_id})
        self._tx.execute(
            "UPDATE sessions SET started_at = min(started_at, ?), last_event_at = max(last_event_at, ?)"
            " WHERE id = ?",
            (new["started_at"], new["last_event_at"], found),
        )
        return "known"

    def _event(self, new: Fields) -> ImportOutcome:
        session_id = self._row("session", new.pop("session"))
        if ledger.is_forgotten(self._tx, new["key"]) or session_id is None:
            if session_id and session_id > self.last_session and new["kind"] == "prompt":
                # It may be the prompt that the session is titled with.
                projects.clear_title(self._tx, session_id)
            return "forgotten"
        if self._row("event", new["key"]) is not None:
            return "known"
        new["payload"] = queries.json_text(new["payload"], (",", ":"))
        return self._insert("events", new | {"session_id": session_id})

    def _summary(self, new: Fields) -> ImportOutcome:
        if ledger.is_forgotten(self._tx, new["uid"]):
            return "forgotten"
        session, project_id = new.pop("session"), self._project_id(new.pop("project"))
        session_id = None if session is None else self._row("session", session)
        if self._is_strict and session is not None and session_id is None:
            raise BadRequest(f"there is no session {session[:80]!r} before this summary")
        new["tags"], new["files"] = (
            queries.json_text(new["tags"]),
            queries.json_text(new["files"]),
        )
        outcome: ImportOutcome = "revised"
        found = self._row("summary", new["uid"])
        if found is None:
            # Beside memories that were here, those that come have to be compared with them.
            new["consolidated"] *= int(self.last_summary == 0)
            outcome = self._insert(
                "summaries", new | {"project_id": project_id, "session_id": session_id}
            )
            found = self._row("summary", new["uid"])
        elif not self._revise(found, new):
            return "known"
        assert found is not None
        summaries.put_lookup_keys(self._tx, found, Kind(new["kind"]), new["title"], new["body"])
        return outcome

    def _revise(self, summary_id: int, new: Fields) -> bool:
        """Take over what was written later; whether it was. Whether it is pinned is for this vault to say."""
        values = [new[name] for name in _REVISED]
        self._tx.execute(
            f"UPDATE summaries SET ({', '.join(_REVISED)}) = ({queries.marks(values)}), consolidated = 0"
            f" WHERE id = ? AND updated_at < ? AND ({', '.join(_REVISED)}) IS NOT ({queries.marks(values)})",
            (*values, summary_id, new["updated_at"], *values),
        )
        return self._tx.changes() > 0

    def _supersession(self, new: Fields) -> ImportOutcome:
        pair = self._pair(new)
        if pair is None:
            return "forgotten"
        newer, older = pair
        key = ("newer_id, older_id, rule, at", (*pair, new["rule"], new["at"]))
        if self._met.is_here("supersessions", *key, new["undone_at"]):
            return "known"
        if newer == older:
            return "left"
        if new["undone_at"] is None and (
            queries.superseder_of(self._tx, older) or self._is_above(older, newer)
        ):
            return "left"
        return self._insert("supersessions", new | {"newer_id": newer, "older_id": older})

    def _is_above(self, summary_id: int, current: int) -> bool:
        """Whether somebody who hides `current`, directly or through others, is this one."""
        for _ in range(CHAIN_MAX):
            above = queries.superseder_of(self._tx, current)
            if above is None or above == summary_id:
                return above is not None
            current = above
        return True

    def _edge(self, new: Fields) -> ImportOutcome:
        ends = {}
        for end in ("from", "to"):
            kind, name = new[f"{end}_kind"], new.pop(end)
            node = self._row(kind, name) if kind in NODES else name
            self._expect(node, kind, name, "edge")
            ends[f"{end}_id"] = None if node is None else str(node)
        start, stop = ends.values()
        if start is None or stop is None:
            is_source = start is not None and (new["from_kind"], new["to_kind"]) == (
                "summary",
                "event",
            )
            if (
                is_source
                and new["type"] == "derives_from"
                and int(start or 0) > self.last_summary
            ):
                self.bereft.add(int(start or 0))
            return "forgotten"
        new["detail"] = queries.json_text(new["detail"])
        return self._insert("edges", new | ends, or_leave=True)

    def _judgment(self, new: Fields) -> ImportOutcome:
        pair = self._pair(new)
        if pair is None:
            return "forgotten"
        key = ("newer_id, older_id, at", (*pair, new["at"]))
        if self._met.is_here("judgments", *key, new["undone_at"]):
            return "known"
        if pair[0] == pair[1]:
            return "left"
        row = new | {"newer_id": pair[0], "older_id": pair[1]}
        is_new = self._insert("judgments", row, or_leave=True) == "created"
        return "created" if is_new else "left"

    def _use(self, new: Fields) -> ImportOutcome:
        summary_id = self._row("summary", new["summary"])
        if self._expect(summary_id, "summary", new["summary"], "use") is None:
            return "forgotten"
        # The greater, not the sum: who imports twice has not asked twice.
        return self._upsert(
            "INSERT INTO uses (summary_id, count, last_at) VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE"
            " SET count = max(count, ?2), last_at = max(last_at, ?3) WHERE count < ?2 OR last_at < ?3",
            (summary_id, new["count"], new["last_at"]),
        )

    def _together(self, new: Fields) -> ImportOutcome:
        pair = (self._row("summary", new["one"]), self._row("summary", new["other"]))
        for number, name in zip(pair, (new["one"], new["other"]), strict=True):
            self._expect(number, "summary", name, "together")
        if pair[0] is None or pair[1] is None:
            return "forgotten"
        if pair[0] == pair[1]:
            return "left"
        return self._upsert(
            "INSERT INTO coactivations (low_id, high_id, count) VALUES (min(?1, ?2), max(?1, ?2), ?3)"
            " ON CONFLICT DO UPDATE SET count = ?3 WHERE count < ?3",
            (*pair, new["count"]),
        )

    def _injection(self, new: Fields) -> ImportOutcome:
        session, summary = new.pop("session"), new.pop("summary")
        session_id, summary_id = self._row("session", session), self._row("summary", summary)
        self._expect(session_id, "session", session, "injection")
        self._expect(summary_id, "summary", summary, "injection")
        if session_id is None or summary_id is None:
            return "forgotten"
        row = (session_id, summary_id, new["moment"], new["at"])
        if queries.has_row(self._tx, "injections", "session_id, summary_id, moment, at", row):
            return "known"
        return self._insert(
            "injections", new | {"session_id": session_id, "summary_id": summary_id}
        )

    def _switch(self, new: Fields) -> ImportOutcome:
        return self._insert("switches", new, or_leave=True)

    def _forgotten(self, new: Fields) -> ImportOutcome:
        for kind, last in (("summary", self.last_summary), ("event", self.last_event)):
            number = self._row(kind, new["key"])
            if number is not None and number <= last:
                # It lives here: an import never erases.
                return "left"
        return self._insert("forgotten", new, or_leave=True)

    def _row(self, kind: str, name: str) -> int | None:
        return queries.row_id(self._tx, kind, name)

    def _project_id(self, key: str) -> int:
        found = projects.project_by_key(self._tx, key)
        if found is None:
            raise BadRequest(f"there is no project {key[:80]!r} before what belongs to it")
        return found.id

    def _pair(self, new: Fields) -> tuple[int, int] | None:
        """The numbers of `newer` and `older`, which are taken out; None if one is not here."""
        names = new.pop("newer"), new.pop("older")
        newer, older = (
            self._expect(self._row("summary", name), "summary", name, "pair") for name in names
        )
        return None if newer is None or older is None else (int(newer), int(older))

    def _expect(
        self, node: int | str | None, kind: str, name: str, who: str
    ) -> int | str | None:
        if node is None and self._is_strict:
            raise BadRequest(f"there is no {kind} {name[:80]!r} before this {who}")
        return node

    def _insert(self, table: str, row: Fields, *, or_leave: bool = False) -> ImportOutcome:
        is_new = queries.insert_row(self._tx, table, row, or_leave=or_leave)
        return "created" if is_new else "known"

    def _upsert(self, sql: str, values: tuple[object, ...]) -> ImportOutcome:
        self._tx.execute(sql, values)
        return "created" if self._tx.changes() else "known"


_HARMLESS = frozenset(
    {("supersession", "known"), ("judgment", "known"), ("injection", "known")}
)
"""They have no name of their own: the same one twice says no more than once."""
_REFUSALS: dict[ImportOutcome, str] = {
    "known": "this {kind} stands there twice",
    "revised": "this {kind} stands there twice",
    "forgotten": "this {kind} speaks of what is not there",
    "left": "this {kind} goes round in a circle or has no end, or says otherwise than one before it",
}


# MERGED from memd.store.settling:
# MERGED What becomes of memories that came from another vault, beside those that were here.
# MERGED
# MERGED Of two values of one topic key the newest hides the other, unless that is pinned; what came only from
# MERGED events that were forgotten here goes again. Two that came together, or were here together, are left as
# MERGED they were. Not here: rows on their way in (arrivals.py).


RULE = "vault-import"
_GUARD = "same topic key in two vaults that became one"


def resolve_imported(tx: Connection, arrived: RecordImporter, now: int) -> tuple[int, int]:
    """(memories that hide or are hidden by one that was here, memories that went again)."""
    gone = _drop_bereft(tx, arrived)
    hidden = 0
    for newer_id, older_id, is_pinned in _rivals(tx, arrived.last_summary, now):
        if is_pinned:
            edge = links.NewEdge(
                "summary", str(newer_id), EdgeType.CONTRADICTS, "summary", str(older_id), RULE, now,
                detail={"finding": "pinned"},
            )  # fmt: skip
            links.add_edges(tx, [edge])
            continue
        hidden += bool(
            links.supersede(
                tx, newer_id=newer_id, older_id=older_id, rule=RULE, cosine=None, guard=_GUARD, at=now
            )
        )  # fmt: skip
    _enter(tx, arrived)
    return hidden, gone


def _drop_bereft(tx: Connection, arrived: RecordImporter) -> int:
    """Take out new memories all of whose events were forgotten here."""
    gone = [number for number in sorted(arrived.bereft) if not links.sources_of(tx, number)]
    for number in gone:
        summaries.delete_summary(tx, number)
    return len(gone)


def _rivals(tx: Connection, last: int, now: int) -> list[tuple[int, int, bool]]:
    """(newer, older, whether the older one is pinned): live values of a slot, one of them new here."""
    live = (
        "NOT EXISTS (SELECT 1 FROM supersessions x WHERE x.older_id = {0}.id AND x.undone_at IS NULL)"
        " AND ({0}.expires_at IS NULL OR {0}.expires_at > ?2)"
    )
    rows: list[tuple[Any, ...]] = tx.execute(
        "SELECT a.id, a.at, a.pinned_at, b.id, b.at, b.pinned_at FROM summaries a JOIN summaries b"
        " ON b.topic_key = a.topic_key AND b.project_id = a.project_id AND b.kind = a.kind AND b.id <= ?1"
        f" WHERE a.id > ?1 AND a.topic_key IS NOT NULL AND {live.format('a')} AND {live.format('b')}"
        " ORDER BY a.at, a.id",
        (last, now),
    ).fetchall()
    pairs: list[tuple[int, int, bool]] = []
    for a, a_at, a_pinned, b, b_at, b_pinned in rows:
        is_newer = (a_at, a) > (b_at, b)
        newer, older, pinned = (a, b, b_pinned) if is_newer else (b, a, a_pinned)
        pairs.append((newer, older, pinned is not None))
    return pairs


def _enter(tx: Connection, arrived: RecordImporter) -> None:
    """Enter the events in the books, as any import's."""
    became = {
        "created": ("stored", ""),
        "known": ("duplicate", ""),
        "forgotten": ("filtered", "forgotten"),
    }
    entries = {
        entry: arrived.outcomes["event", outcome]  # type: ignore[index]  # the names above are outcomes
        for outcome, entry in became.items()
    }
    entries["received", ""] = sum(entries.values())
    ledger.record_receipts(
        tx, "import", {entry: count for entry, count in entries.items() if count}
    )


# MERGED from memd.store.staging:
# MERGED A vault of its own beside the real one, in which a file is put together before anything of it counts.
# MERGED
# MERGED It is thrown away afterwards, so it is written without a journal and without what keeps a vault's index
# MERGED in step. Its name says which process makes it: what a killed one left behind is found by that. Not here:
# MERGED the records (arrivals.py), or bringing them into the real vault (exchange/moving.py).


_SUFFIX = ".staging"


@contextlib.contextmanager
def staging_vault(vault: str, now: int) -> Iterator[tuple[Connection, str]]:
    """An empty vault beside this one, as (connection, name of its file); gone when the block ends.

    The block commits with `commit` before anybody else reads it.
    """
    path = f"{vault}.{os.getpid()}{_SUFFIX}"
    remove_stale_staging(vault)
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    try:
        with translate_errors():
            connection = apsw.Connection(path)
            try:
                _prepare(connection, now)
                yield connection, Path(path).name
            finally:
                connection.close()
    finally:
        Path(path).unlink(missing_ok=True)


def _prepare(connection: Connection, now: int) -> None:
    connection.pragma("journal_mode", "off")
    connection.pragma("synchronous", 0)
    connection.pragma("temp_store", 2)
    connection.pragma("foreign_keys", 1)
    migrate.migrate(connection, now)
    triggers = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
    for (name,) in triggers.fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute("BEGIN")


def commit_staging(connection: Connection) -> None:
    """Let others read what was put in."""
    with translate_errors():
        connection.execute("COMMIT")


def staged_path(vault: str, name: str) -> str:
    """The path of a staged vault beside this one. BadRequest if that is not what it is called."""
    path = Path(vault).parent / name
    if path.name != name or path.suffix != _SUFFIX or not _maker(vault, path):
        raise BadRequest("staged: not the name of a file that memd has staged for this vault")
    return str(path)


def remove_stale_staging(vault: str) -> None:
    """Throw away what processes that are no more have left behind."""
    for path in Path(vault).parent.glob(f"{Path(vault).name}.*{_SUFFIX}*"):
        maker = _maker(vault, path)
        if maker and (maker == os.getpid() or not is_process_alive(maker)):
            path.unlink(missing_ok=True)


def _maker(vault: str, path: Path) -> int:
    """Whose it is; 0 if it is none."""
    stem = path.name.removeprefix(f"{Path(vault).name}.").partition(_SUFFIX)
    is_ours = path.name.startswith(f"{Path(vault).name}.") and bool(stem[1])
    return int(stem[0]) if is_ours and stem[0].isascii() and stem[0].isdigit() else 0


def is_process_alive(pid: int) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # another user's, and alive
    return True
