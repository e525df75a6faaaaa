"""Devices with real vaults in memory, which sync through a list of records: no files, no daemon."""

import json
from collections import defaultdict
from dataclasses import dataclass, field

import apsw

from memd.belief import rejections, supersede
from memd.consolidate import forget
from memd.consolidate.curator import MemoryEdit, edit_memory
from memd.consolidate.forget import ForgetSelection
from memd.consolidate.judgments import NewJudgment, apply_judgment
from memd.consolidate.remember import NewMemory, remember
from memd.errors import BadRequest
from memd.models import Authority, Kind, Stance
from memd.sharing.records import from_fields, to_fields
from memd.sharing.replica import Replica
from memd.store import database, sharing, statements, summaries
from memd.store.filter import Filter

START = 1_800_000_000_000


def _make_template():
    vault = apsw.Connection(":memory:")
    vault.pragma("foreign_keys", 1)
    database.migrate(vault, START)
    return vault.serialize("main")


TEMPLATE = _make_template()


@dataclass
class Place:
    """What every device has appended, as lines of JSON."""

    logs: dict = field(default_factory=lambda: defaultdict(list))

    def lines(self):
        return [line for log in self.logs.values() for line in log]


class Device:
    def __init__(self, name, skew=0):
        self.name, self.skew, self.now = name, skew, START
        self.tx = apsw.Connection(":memory:")
        self.tx.deserialize("main", TEMPLATE)
        self.tx.pragma("foreign_keys", 1)
        self.sent, self.read = 0, defaultdict(int)

    # ── What its user and agents do ──

    def clock(self):
        self.now += 1
        return self.now + self.skew

    def remember(self, text, *, by="user", topic=None, project="/src/ledger", kind=Kind.FACT):
        voice = {"user": Authority.USER_HAND, "agent": Authority.AGENT_CALL}[by]
        memory = NewMemory(
            text, title=text[:40], kind=kind, topic_key=topic, project_key=project, source=by,
            authority=voice,
        )  # fmt: skip
        return remember(self.tx, memory, self.clock()).id

    def forget(self, number):
        plan = forget.plan_selection(self.tx, ForgetSelection((number,)))
        forget.apply_plan(self.tx, plan, self.clock())

    def pin(self, number, by=Authority.USER_HAND):
        supersede.pin(self.tx, summaries.get_summary(self.tx, number), by, self.clock())

    def unpin(self, number, by=Authority.USER_HAND):
        supersede.unpin(self.tx, summaries.get_summary(self.tx, number), by)

    def judge(self, one, other, relation, by="user"):
        judgment = NewJudgment(one, other, Stance(relation), "so it is", by)
        apply_judgment(self.tx, judgment, self.clock())

    def edit(self, number, text):
        return edit_memory(self.tx, MemoryEdit(number, text=text), self.clock())

    def reject(self, number):
        return rejections.reject(self.tx, number, self.clock())

    def take_back(self, number):
        return rejections.take_back(self.tx, number)

    def visible(self):
        now = Filter(now=self.now).condition()
        rows = self.tx.execute(f"SELECT s.title FROM summaries s WHERE {now[0]} ORDER BY 1", now[1])
        return [title for (title,) in rows]

    def ids(self):
        return [number for (number,) in self.tx.execute("SELECT id FROM summaries ORDER BY id")]

    def try_to(self, action, *arguments):
        """Do it as the daemon would: in one transaction, or not at all."""
        try:
            with self.tx:
                action(*arguments)
        except BadRequest:
            pass

    # ── Syncing ──

    def replica(self):
        return Replica(self.tx, self.name, self.clock())

    def note(self):
        with self.tx:
            self.replica().note_changes()

    def merge(self, lines, *, compares=False):
        """Merge these lines; whether some must be merged again. `compares`: that is all there is for now."""
        with self.tx:
            replica = self.replica()
            replica.note_changes()
            records = [from_fields(json.loads(line)) for line in lines]
            outcome = replica.merge(records)
            replica.settle(outcome.memories if compares else ())
        self.erase()
        return outcome.is_waiting

    def erase(self):
        """Forget what was forgotten elsewhere, as the daemon's eraser does."""
        with self.tx:
            if pending := statements.forgotten_but_there(self.tx):
                plan = forget.plan_selection(self.tx, ForgetSelection(tuple(pending)))
                forget.apply_plan(self.tx, plan, self.clock())
        with self.tx:
            replica = self.replica()
            replica.note_changes()
            replica.settle()

    def push(self, place):
        self.note()
        with self.tx:
            found = list(self.replica().own_records(self.sent))
        place.logs[self.name] += [json.dumps(to_fields(record)) for _, record in found]
        self.sent = sharing.last_register_id(self.tx)

    def pull(self, place):
        lines = []
        for name, log in place.logs.items():
            if name != self.name:
                lines += log[self.read[name] :]
        if not self.merge(lines, compares=True) or not self.merge(lines, compares=True):
            self.read.update({name: len(log) for name, log in place.logs.items()})

    def sync(self, place):
        self.pull(place)
        self.push(place)

    # ── What it knows ──

    def state(self):
        """All that devices must agree on, in names that are the same everywhere."""
        tx = self.tx
        return {
            "memories": sorted(
                tx.execute(
                    "SELECT m.uid, p.key, kind, tier, title, body, topic_key, authority, at, expires_at, duplicates,"
                    " pinned_at, pinned_by FROM summaries m JOIN projects p ON p.id = m.project_id"
                ),
                key=repr,
            ),
            "hidden": sorted(
                tx.execute(
                    "SELECT n.uid, o.uid, x.rule FROM supersessions x JOIN summaries n ON n.id = x.newer_id"
                    " JOIN summaries o ON o.id = x.older_id WHERE x.undone_at IS NULL"
                )
            ),
            "judged": sorted(
                tx.execute(
                    "SELECT n.uid, o.uid, x.relation, x.who FROM judgments x JOIN summaries n ON n.id = x.newer_id"
                    " JOIN summaries o ON o.id = x.older_id WHERE x.undone_at IS NULL"
                )
            ),
            "edges": sorted(
                tx.execute(
                    "SELECT n.uid, x.type, o.uid FROM edges x JOIN summaries n ON n.id = CAST(x.from_id AS INTEGER)"
                    " JOIN summaries o ON o.id = CAST(x.to_id AS INTEGER)"
                    " WHERE x.from_kind = 'summary' AND x.to_kind = 'summary'"
                )
            ),
            "reviews": sorted(
                tx.execute(
                    "SELECT m.uid, v.verdict, (SELECT f.uid FROM summaries f WHERE f.id = v.follows) FROM reviews v"
                    " JOIN summaries m ON m.id = v.summary_id"
                ),
                key=repr,
            ),
            "forgotten": sorted(tx.execute("SELECT key FROM forgotten")),
        }


def converge(devices, place):
    """Sync until nobody has anything to say."""
    for _ in range(10):
        before = len(place.lines())
        for device in devices:
            device.sync(place)
        if len(place.lines()) == before:
            return
    raise AssertionError("they go on telling each other for ever")
