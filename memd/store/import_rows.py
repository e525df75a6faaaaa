"""Records of another vault into this one: staging them, importing each, and resolving conflicts.

Each record finds its row by uid or key, or becomes one. Newer rows are never overwritten by older
ones, what was forgotten here stays forgotten with everything that refers to it, and importing the
same records again changes nothing. All of it happens in the caller's transaction.
"""

import contextlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import apsw

from memd.errors import BadRequest
from memd.models import TITLE_EVENT, Authority, Kind, Supersession
from memd.store import (
    Fields,
    database,
    judgments,
    ledger,
    links,
    projects,
    reviews,
    sharing,
    summaries,
)
from memd.store.database import Connection, translate_errors
from memd.store.export_rows import EXPORT_SCHEMA, ROW_NODES, split_record
from memd.store.filter import REJECTED, marks
from memd.store.queries import (
    compact_json,
    fetch_ids,
    fetch_rows,
    has_rows,
    insert_row,
    json_text,
    last_id,
    row_id,
)
from memd.store.summaries import correct_authority, derive_authority, fold_topic

ImportOutcome = Literal["created", "known", "revised", "forgotten", "left"]
"""`left`: it conflicts with what is here, such as a second memory that hides the same one."""
CHAIN_MAX = 1_000
"""Supersessions followed upwards from a memory. Chains are flattened, so real ones are short."""
_REVISED_COLUMNS = (
    "kind", "source", "title", "body", "topic_key", "tags", "files", "at", "updated_at", "expires_at",
    "confidence", "quality", "revisions", "duplicates", "rule", "authority",
)  # fmt: skip
"""What a later revision replaces; whether a memory is pinned is this vault's decision."""
_REPEATABLE = frozenset({"supersession", "judgment", "injection"})
"""Records without a name of their own, which may occur twice in a strict import."""
_REFUSALS: dict[ImportOutcome, str] = {
    "known": "this {kind} stands there twice",
    "revised": "this {kind} stands there twice",
    "forgotten": "this {kind} speaks of what is not there",
    "left": "this {kind} goes round in a circle or has no end, or says otherwise than one before it",
}


class _LeftOut(Exception):  # it ends the import of one record, and is no error
    def __init__(self, outcome: ImportOutcome) -> None:
        self.outcome = outcome


class RecordImporter:
    """Imports records in the order of EXPORT_SCHEMA.

    With `is_strict`, into an empty vault: BadRequest for a record that occurs twice, refers to one that
    did not come before it, or makes a cycle.
    """

    def __init__(self, tx: Connection, *, is_strict: bool = False) -> None:
        self._tx = tx
        self._is_strict = is_strict
        self.outcomes: Counter[tuple[str, ImportOutcome]] = Counter()
        self.last_summary = last_id(tx, "summaries")
        """The highest summary id before the import."""
        self.without_event: set[int] = set()
        """New summaries that derive from an event which was forgotten here."""
        self.last_supersession = last_id(tx, "supersessions")
        """The highest supersession id before the import."""
        self._last_session = last_id(tx, "sessions")
        self._last_event = last_id(tx, "events")
        self._seen: Counter[tuple[object, ...]] = Counter()
        self._import: dict[str, Callable[[Fields], ImportOutcome]] = {
            kind: getattr(self, f"_import_{kind}") for kind in EXPORT_SCHEMA
        }

    def import_record(
        self, kind: str, fields: Fields, *, may_repeat: bool = False
    ) -> ImportOutcome:
        """Import one checked record; what became of it.

        `may_repeat`: that this one is known already is fine in a strict import, too.
        """
        known, unknown = split_record(kind, fields)
        with judgments.updating_confidence(self._tx, self._affected_summaries(kind, known)):
            try:
                outcome = self._import[kind](known)
            except _LeftOut as error:
                outcome = error.outcome
        if kind == "summary" and outcome in {"created", "known", "revised"}:
            is_older = outcome == "known"
            sharing.put_of_memory(self._tx, known["uid"], unknown, or_ignore=is_older)
        may_be_known = may_repeat or kind in _REPEATABLE
        is_harmless = outcome == "created" or (outcome == "known" and may_be_known)
        if self._is_strict and not is_harmless:
            raise BadRequest(_REFUSALS[outcome].format(kind=kind))
        self.outcomes[kind, outcome] += 1
        return outcome

    def _affected_summaries(self, kind: str, new: Fields) -> set[int]:
        """The existing summaries whose confidence the record may change; new ones bring their own."""
        names: tuple[str, ...] = ()
        if kind == "judgment":
            names = new["newer"], new["older"]
        elif kind == "edge" and new["type"] == "contradicts":
            names = new["from"], new["to"]
        found = {row_id(self._tx, "summary", name) for name in names}
        return {number for number in found if number and number <= self.last_summary}

    def _import_project(self, new: Fields) -> ImportOutcome:
        if projects.project_by_key(self._tx, new["key"]) is not None:
            return "known"
        return self._insert_row("projects", new)

    def _import_alias(self, new: Fields) -> ImportOutcome:
        if projects.project_by_key(self._tx, new["key"]) is not None:
            return "known"
        return self._insert_row("aliases", self._with_project_id(new))

    def _import_session(self, new: Fields) -> ImportOutcome:
        sql = "SELECT id FROM sessions WHERE uid = ? OR (client = ? AND key = ?)"
        found = self._tx.execute(sql, (new["uid"], new["client"], new["key"])).get
        if found is None and ledger.is_forgotten(self._tx, new["uid"]):
            return "forgotten"
        if found is None:
            return self._insert_row("sessions", self._with_project_id(new))
        projects.extend_session(self._tx, found, new["started_at"], None, new["last_event_at"])
        return "known"

    def _import_event(self, new: Fields) -> ImportOutcome:
        session_id = row_id(self._tx, "session", new.pop("session"))
        if ledger.is_forgotten(self._tx, new["key"]) or session_id is None:
            is_told = new["kind"] == "prompt" or new["name"] == TITLE_EVENT
            if session_id and session_id > self._last_session and is_told:
                # The session's title may be made of this.
                projects.clear_title(self._tx, session_id)
            return "forgotten"
        if row_id(self._tx, "event", new["key"]) is not None:
            return "known"
        new["payload"] = compact_json(new["payload"])
        return self._insert_row("events", new | {"session_id": session_id})

    def _import_summary(self, new: Fields) -> ImportOutcome:
        if ledger.is_forgotten(self._tx, new["uid"]):
            return "forgotten"
        new = _with_speakers(self._with_project_id(new))
        session = new.pop("session")
        new |= {
            "session_id": session and self._find_id("session", session, "summary"),
            "tags": json_text(new["tags"]),
            "files": json_text(new["files"]),
        }
        outcome: ImportOutcome = "revised"
        found = row_id(self._tx, "summary", new["uid"])
        if found is None:
            # In a vault that had memories, new ones have to be compared with those.
            new["consolidated"] *= int(self.last_summary == 0)
            outcome = self._insert_row("summaries", new)
            found = last_id(self._tx, "summaries")
        elif not self._revise_summary(found, new):
            return "known"
        summaries.put_lookup_keys(self._tx, found, Kind(new["kind"]), new["title"], new["body"])
        return outcome

    def _revise_summary(self, summary_id: int, new: Fields) -> bool:
        """Take over a revision that is newer, differs, and is no lesser speaker's; whether it does."""
        columns = ", ".join(_REVISED_COLUMNS)
        values = [new[name] for name in _REVISED_COLUMNS]
        self._tx.execute(
            f"UPDATE summaries SET ({columns}) = ({marks(values)}), consolidated = 0"
            f" WHERE id = ? AND updated_at < ? AND ({columns}) IS NOT ({marks(values)})"
            f" AND max(authority, coalesce(pinned_by, 0)) <= ? AND NOT {REJECTED.format('id')}",
            (*values, summary_id, new["updated_at"], *values, new["authority"]),
        )
        return self._tx.changes() > 0

    def _import_supersession(self, new: Fields) -> ImportOutcome:
        newer, older = self._find_pair(new, "newer", "older", "pair")
        row = new | {"newer_id": newer, "older_id": older}
        if self._is_known("supersessions", row, ("newer_id", "older_id", "rule", "at")):
            return "known"
        if new["undone_at"] is None and (
            links.superseder_of(self._tx, older) or self._is_above(older, newer)
        ):
            return "left"
        return self._insert_row("supersessions", row)

    def _is_above(self, summary_id: int, current: int) -> bool:
        """Return whether this summary hides `current`, directly or through others."""
        for _ in range(CHAIN_MAX):
            above = links.superseder_of(self._tx, current)
            if above is None or above == summary_id:
                return above is not None
            current = above
        return True

    def _import_edge(self, new: Fields) -> ImportOutcome:
        start, stop = (
            self._find_id(new[f"{end}_kind"], new[end], "edge")
            if new[f"{end}_kind"] in ROW_NODES
            else new[end]
            for end in ("from", "to")
        )
        if start is None or stop is None:
            ends = new["from_kind"], new["type"], new["to_kind"]
            if ends == ("summary", "derives_from", "event") and int(start or 0) > self.last_summary:
                self.without_event.add(int(start or 0))
            return "forgotten"
        row = {name: value for name, value in new.items() if name not in {"from", "to"}} | {
            "from_id": str(start),
            "to_id": str(stop),
            "detail": json_text(new["detail"]),
        }
        return self._insert_row("edges", row, or_ignore=True)

    def _import_judgment(self, new: Fields) -> ImportOutcome:
        newer, older = self._find_pair(new, "newer", "older", "pair")
        row = new | {"newer_id": newer, "older_id": older}
        if self._is_known("judgments", row, ("newer_id", "older_id", "at")):
            return "known"
        outcome = self._insert_row("judgments", row, or_ignore=True)
        return "left" if outcome == "known" else outcome

    def _import_review(self, new: Fields) -> ImportOutcome:
        name, following = new["summary"], new["follows"]
        summary_id = self._require_id("summary", name, "review")
        follows = following and self._find_id("summary", following, "review")
        review = reviews.Review(summary_id, new["verdict"], new["at"], follows)
        here = reviews.read_review(self._tx, summary_id)
        if here is not None and (here.verdict == "rejected" or here.at >= review.at):
            return "known"
        reviews.put_review(self._tx, review)
        return "created"

    def _import_use(self, new: Fields) -> ImportOutcome:
        summary_id = self._require_id("summary", new["summary"], "use")
        # The greater count, not the sum, so that importing twice changes nothing.
        return self._upsert_row(
            "INSERT INTO uses (summary_id, count, last_at) VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE"
            " SET count = max(count, ?2), last_at = max(last_at, ?3) WHERE count < ?2 OR last_at < ?3",
            (summary_id, new["count"], new["last_at"]),
        )

    def _import_together(self, new: Fields) -> ImportOutcome:
        pair = self._find_pair(new, "one", "other", "together")
        return self._upsert_row(
            "INSERT INTO coactivations (low_id, high_id, count) VALUES (min(?1, ?2), max(?1, ?2), ?3)"
            " ON CONFLICT DO UPDATE SET count = ?3 WHERE count < ?3",
            (*pair, new["count"]),
        )

    def _import_injection(self, new: Fields) -> ImportOutcome:
        session_id = self._require_id("session", new.pop("session"), "injection")
        summary_id = self._require_id("summary", new.pop("summary"), "injection")
        if has_rows(
            self._tx,
            "injections WHERE (session_id, summary_id, moment, at) = (?, ?, ?, ?)",
            (session_id, summary_id, new["moment"], new["at"]),
        ):
            return "known"
        row = new | {"session_id": session_id, "summary_id": summary_id}
        return self._insert_row("injections", row)

    def _import_switch(self, new: Fields) -> ImportOutcome:
        return self._insert_row("switches", new, or_ignore=True)

    def _import_forgotten(self, new: Fields) -> ImportOutcome:
        for kind, last in (("summary", self.last_summary), ("event", self._last_event)):
            number = row_id(self._tx, kind, new["key"])
            if number is not None and number <= last:
                # It exists here, and an import never erases.
                return "left"
        return self._insert_row("forgotten", new, or_ignore=True)

    def _find_id(self, kind: str, name: str, record: str) -> int | None:
        """The id of a row by uid or key. In a strict import, BadRequest if the record lacks it."""
        found = row_id(self._tx, kind, name)
        if found is None and self._is_strict:
            raise BadRequest(f"there is no {kind} {name[:80]!r} before this {record}")
        return found

    def _require_id(self, kind: str, name: str, record: str) -> int:
        """The same, but what lacks it is left out as forgotten."""
        if (found := self._find_id(kind, name, record)) is None:
            raise _LeftOut("forgotten")
        return found

    def _find_pair(self, new: Fields, first: str, second: str, record: str) -> tuple[int, int]:
        """The ids of two summaries, whose names are taken out of the record; it is left out without them."""
        one, other = (
            self._require_id("summary", new.pop(name), record) for name in (first, second)
        )
        if one == other:
            raise _LeftOut("left")
        return one, other

    def _with_project_id(self, new: Fields) -> Fields:
        key = new.pop("project")
        found = projects.project_by_key(self._tx, key)
        if found is None:
            raise BadRequest(f"there is no project {key[:80]!r} before what belongs to it")
        return new | {"project_id": found.id}

    def _is_known(self, table: str, row: Fields, key: tuple[str, ...]) -> bool:
        """Return whether a row with these values, of a kind that can be undone, is here already.

        Within one millisecond the same can be stated, undone and stated again, so rows may look alike.
        The n-th such record is known if there are n such rows, or n that were also undone at the same
        time (None: hold), because the first of its like may have been left out.
        """
        values = tuple(row[name] for name in key)
        alike, same = (table, *values), (table, *values, row["undone_at"])
        self._seen.update((alike, same))
        ((alike_here, same_here),) = self._tx.execute(
            f"SELECT count(*), count(*) FILTER (WHERE undone_at IS ?) FROM {table}"
            f" WHERE ({', '.join(key)}) = ({marks(key)})",
            (row["undone_at"], *values),
        )
        return bool(self._seen[alike] <= alike_here or self._seen[same] <= same_here)

    def _insert_row(self, table: str, row: Fields, *, or_ignore: bool = False) -> ImportOutcome:
        is_new = insert_row(self._tx, table, row, or_ignore=or_ignore)
        return "created" if is_new else "known"

    def _upsert_row(self, sql: str, values: tuple[object, ...]) -> ImportOutcome:
        self._tx.execute(sql, values)
        return "created" if self._tx.changes() else "known"


def _with_speakers(new: Fields) -> Fields:
    """The fields of a summary with its speaker, which is derived if the record does not say it."""
    said = new.get("authority")
    if said is None:
        said = derive_authority(new["source"], new["kind"], new["rule"], new["body"]).code
    said = correct_authority(new["source"], int(said))
    pinned_by = new.get("pinned_by") or Authority.USER_HAND.code
    return new | {
        "authority": said,
        "pinned_by": None if new["pinned_at"] is None else int(pinned_by),
        "topic_key": new["topic_key"] and fold_topic(new["topic_key"]),
    }


# ── Conflicts of imported memories with those that were here ───────────────────────────────────


def delete_orphans(tx: Connection, importer: RecordImporter) -> int:
    """Delete imported memories that have no source any more; how many."""
    orphans = [n for n in sorted(importer.without_event) if not links.sources_of(tx, n)]
    for number in orphans:
        summaries.delete_summary(tx, number)
    return len(orphans)


def record_receipts(tx: Connection, importer: RecordImporter) -> None:
    """Enter in the ledger what became of the imported events."""
    stored, duplicate, filtered = (
        importer.outcomes["event", outcome] for outcome in ("created", "known", "forgotten")
    )
    receipts = {
        ("received", ""): stored + duplicate + filtered,
        ("stored", ""): stored,
        ("duplicate", ""): duplicate,
        ("filtered", "forgotten"): filtered,
    }
    ledger.record_receipts(tx, "import", {key: n for key, n in receipts.items() if n})


def find_rivals(tx: Connection, importer: RecordImporter, now: int) -> list[tuple[int, int]]:
    """(newer, older) of live values of one topic key, one of them imported."""
    live = (
        "NOT EXISTS (SELECT 1 FROM supersessions x WHERE x.older_id = {0}.id AND x.undone_at IS NULL)"
        " AND ({0}.expires_at IS NULL OR {0}.expires_at > ?2)"
    )
    rows: list[tuple[Any, ...]] = tx.execute(
        "SELECT a.id, a.at, b.id, b.at FROM summaries a JOIN summaries b"
        " ON b.topic_key = a.topic_key AND b.project_id = a.project_id AND b.id <= ?1"
        f" WHERE a.id > ?1 AND a.topic_key IS NOT NULL AND {live.format('a')} AND {live.format('b')}"
        " ORDER BY a.at, a.id",
        (importer.last_summary, now),
    ).fetchall()
    return [(a, b) if (a_at, a) > (b_at, b) else (b, a) for a, a_at, b, b_at in rows]


def imported_summaries(tx: Connection, importer: RecordImporter) -> list[int]:
    """The memories that an import brought or revised."""
    return fetch_ids(
        tx, "SELECT id FROM summaries WHERE id > ? OR consolidated = 0", (importer.last_summary,)
    )


def imported_supersessions(tx: Connection, importer: RecordImporter) -> list[Supersession]:
    """The imported supersessions that hide a memory which was here before."""
    sql = (
        f"SELECT {links.SUPERSESSION_COLUMNS} FROM supersessions WHERE id > ? AND older_id <= ?"
        " AND undone_at IS NULL ORDER BY id"
    )
    return fetch_rows(tx, Supersession, sql, (importer.last_supersession, importer.last_summary))


# ── Staging: a temporary vault in which a file is assembled before any of it counts ────────────
# It is written without a journal and without triggers. Its name contains the id of its process, so
# that what a killed process left behind can be found.

_STAGING_SUFFIX = ".staging"


@contextlib.contextmanager
def staging_vault(vault: str, now: int) -> Iterator[tuple[Connection, str]]:
    """An empty vault beside this one, as (connection, name of its file), removed afterwards.

    The block calls `commit_staging` before another connection reads it.
    """
    path = f"{vault}.{os.getpid()}{_STAGING_SUFFIX}"
    remove_stale_staging(vault)
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    try:
        with translate_errors(), contextlib.closing(apsw.Connection(path)) as connection:
            connection.pragma("journal_mode", "off")
            connection.pragma("synchronous", 0)
            connection.pragma("temp_store", 2)
            connection.pragma("foreign_keys", 1)
            database.migrate(connection, now)
            triggers = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
            for (name,) in triggers.fetchall():
                connection.execute(f"DROP TRIGGER {name}")
            connection.execute("BEGIN")
            yield connection, Path(path).name
    finally:
        Path(path).unlink(missing_ok=True)


def commit_staging(connection: Connection) -> None:
    """Let other connections read a staging vault."""
    with translate_errors():
        connection.execute("COMMIT")


def staged_path(vault: str, name: str) -> str:
    """The path of a staging vault beside this one. BadRequest if the name is not that of one."""
    path = Path(vault).parent / name
    if path.name != name or path.suffix != _STAGING_SUFFIX or not _staging_pid(vault, path):
        raise BadRequest("staged: not the name of a file that memd has staged for this vault")
    return str(path)


def list_stale_staging(vault: str) -> list[str]:
    """List the staging vaults of processes that have ended."""
    found = []
    for path in sorted(Path(vault).parent.glob(f"{Path(vault).name}.*{_STAGING_SUFFIX}*")):
        pid = _staging_pid(vault, path)
        if pid and (pid == os.getpid() or not is_process_alive(pid)):
            found.append(str(path))
    return found


def remove_stale_staging(vault: str) -> None:
    """Remove staging vaults of processes that have ended."""
    for path in list_stale_staging(vault):
        Path(path).unlink(missing_ok=True)


def _staging_pid(vault: str, path: Path) -> int:
    """The process that made a staging vault; 0 if the file is none."""
    pattern = rf"{re.escape(Path(vault).name)}\.(\d+){re.escape(_STAGING_SUFFIX)}"
    match = re.match(pattern, path.name, re.ASCII)
    return int(match[1]) if match else 0


def is_process_alive(pid: int) -> bool:
    """Return whether there is a process with this id."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # another user's, and alive
    return True
