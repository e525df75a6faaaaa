"""One PostgreSQL for all tests of a team, and a database for each."""

import pytest

from memd.team import server
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

    server.prepare(url("owner"))
    for member, role in {"ann": "maintainer", "bob": "writer", "ray": "reader"}.items():
        server.grant(url("owner"), member, role, "app")
    return url
