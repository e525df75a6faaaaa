"""One PostgreSQL for all tests of a team, and a database for each."""

from functools import partial

import pytest

from memd.capture.project import read_remote
from memd.capture.redact import redact, redact_value
from memd.config import TeamConfig
from memd.consolidate.curator import Curator
from memd.consolidate.remember import NewMemory
from memd.consolidate.scrub import Eraser, make_redaction_rule
from memd.models import Authority, Kind
from memd.sharing import team_server
from memd.sharing.postgres import Head, LogId, LogServer, PostgresTransport, _read_head
from memd.sharing.syncer import Syncer
from memd.sharing.workers import TeamWorker
from memd.store import projects, summaries
from tests.factories import live_summaries, open_new_vault
from tests.postgres import Postgres


@pytest.fixture(scope="session")
def postgres():
    there = Postgres().start()
    yield there
    there.close()


@pytest.fixture
def team(postgres):
    """user → address of a database in which ann maintains `app`, bob writes it, ray reads it and eve has no part."""
    name = postgres.create_database(["ann", "bob", "ray", "eve"])

    def url(user):
        return postgres.url(user, name)

    team_server.prepare(url("owner"))
    for member, role in {"ann": "maintainer", "bob": "writer", "ray": "reader"}.items():
        team_server.grant(url("owner"), member, role, "app")
    return url


def append_rows(url, rows, author="bob"):
    """Append (name, text) to an author's log, also what no memd would write."""
    key = LogId("app", author, author[0] * 16)
    with LogServer.open(url) as logs:
        transport = PostgresTransport(logs, key, "x")
        with logs.conversation() as connection:
            head = _read_head(connection, key) or Head(key, "x", 0, 0)
        return transport._append(head, rows, 0)


class Teammate:
    """A person with a vault of their own, who shares the project `/src/app` as `app`."""

    def __init__(self, name, db, url, clock, device):
        self.name, self.db, self.clock, self.written = name, db, clock, 0
        eraser = Eraser(db, clock, lambda: None)
        secrets = make_redaction_rule(redact, redact_value)
        self.curator = Curator(db, redact, clock, lambda: None, eraser, secrets)
        self.syncer = Syncer(
            db, redact_value, clock, self._count, lambda ids: self.curator.forget(ids, dry_run=False),
            new_device=lambda: device, read_remote=read_remote, host="here",
        )  # fmt: skip
        self.worker = TeamWorker(self.syncer, TeamConfig(url=url), f"{name}s-laptop")

    def _count(self):
        self.written += 1

    async def join(self, **options):
        return await self.worker.join("app", "/src/app", **{"has_instructions": False, **options})

    async def exchange(self):
        self.clock.advance(s=1)
        return await self.worker.exchange()

    async def remember(self, text, *, kind=Kind.FACT, by="user", project="/src/app", **more):
        voice = {"user": Authority.USER_HAND, "agent": Authority.AGENT_CALL}[by]
        memory = NewMemory(text, kind=kind, project_key=project, source=by, authority=voice, **more)
        return (await self.curator.remember(memory)).id

    async def forget(self, *ids):
        await self.curator.forget(ids, dry_run=False)

    def see(self):
        """(author, body) of every visible memory."""
        return sorted(
            (one.author, one.body)
            for place in self.db.read_now(projects.projects)
            for one in self.db.read_now(partial(live_summaries, project_id=place.id))
        )

    def find(self, body):
        """The memory with this body, hidden ones too."""
        (number,) = self.db.read_now(
            lambda tx: [
                n for (n,) in tx.execute("SELECT id FROM summaries WHERE body = ?", (body,))
            ]
        )
        return self.db.read_now(lambda tx: summaries.get_summary(tx, number))


@pytest.fixture
def teammate(team, tmp_path, clock):
    """name, device → a teammate with a new vault."""
    paths = [tmp_path / f"vault{number}.db" for number in range(3)]
    opened = [open_new_vault(path, clock()) for path in paths]
    unused = list(opened)

    def make(name, device=None, url=None):
        return Teammate(name, unused.pop(), url or team(name), clock, (device or name[0]) * 16)

    yield make
    for one in opened:
        one.close()
