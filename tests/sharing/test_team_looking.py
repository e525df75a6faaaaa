"""What `memd doctor` sees of the server, and the name by which a project is joined."""

import pytest

from memd.config import Config
from memd.daemon.doctor import examine_sharing
from memd.errors import BadRequest
from memd.paths import Paths
from memd.sharing import postgres, team_server
from tests.sharing.test_team_daemons import people, run  # noqa: F401  # a fixture
from tests.tables import every_row


@pytest.fixture
def examine(tmp_path):
    def examine(url):
        config = Config.model_validate({"team": {"url": url}})
        (found,) = examine_sharing(config, Paths({"MEMD_HOME": str(tmp_path)}))
        assert found.name == "team"
        return found.verdict, found.words, found.remedy

    return examine


def test_a_member_is_told_role_version_schema_and_that_rows_are_guarded(examine, team):
    verdict, words, remedy = examine(team("bob"))
    assert (verdict, remedy) == ("ok", "")
    assert "bob is writer of app; PostgreSQL " in words
    assert ", schema 1, row-level security on" in words


def test_who_has_no_role_or_stands_above_the_rules_is_told_what_to_do(examine, team):
    assert examine(team("eve"))[0::2] == (
        "warning", "ask a maintainer: `memd team grant eve writer PROJECT`",
    )  # fmt: skip
    verdict, words, _ = examine(team("owner"))
    assert (verdict, "owner stands above row-level security" in words) == ("warning", True)


def test_a_table_that_nobody_guards_is_a_problem(examine, team, postgres):
    database = team("owner").partition("?")[0].rpartition("/")[2]
    postgres.execute(database, "ALTER TABLE memd.records DISABLE ROW LEVEL SECURITY")
    verdict, words, remedy = examine(team("bob"))
    assert (verdict, "is off for memd.records" in words) == ("problem", True)
    assert "ENABLE ROW LEVEL SECURITY" in remedy
    postgres.execute(database, "ALTER TABLE memd.records ENABLE ROW LEVEL SECURITY")
    assert examine(team("bob"))[0] == "ok"


def test_a_server_that_is_away_or_was_not_prepared_is_named(examine, postgres, tmp_path):
    verdict, _, remedy = examine(f"postgresql://bob@/x?host={tmp_path}")
    assert (verdict, "answers do not" in remedy) == ("warning", True)
    bare = postgres.url("owner", postgres.create_database())
    verdict, words, _ = examine(bare)
    assert (verdict, "memd team init" in words) == ("problem", True)
    assert team_server.prepare(bare) == [1]


@every_row(
    ("names", "found"),
    [
        ({"ledger"}, "ledger"),
        ({"ledger", "me/ledger"}, "me/ledger"),
        ({"ledger", "github.com/me/ledger"}, "github.com/me/ledger"),
        ({"me", "github.com", "edger"}, None),
        (set(), None),
    ],
)
def test_a_remote_means_the_project_that_has_the_longest_part_of_its_name(names, found):
    assert postgres.propose_name("github.com/me/ledger", names) == found
    assert postgres.propose_name("", {"", "app"}) is None


async def test_without_a_name_the_project_of_the_remote_is_joined_or_the_error_says_whom_to_ask(
    teammate, tmp_path
):
    bob = teammate("bob")
    with pytest.raises(BadRequest, match=r"\(there is none\); you have a role in app. Name one"):
        await bob.worker.propose_name(str(tmp_path))


def test_by_command_a_project_is_joined_by_its_remote(people, tmp_path):  # noqa: F811  # the fixture
    ann, _ = people
    source = tmp_path / "somewhere"
    (source / ".git").mkdir(parents=True)
    config = source / ".git" / "config"
    config.write_text('[remote "origin"]\n\turl = git@example.org:we/other.git\n')
    words = ("team", "join", "--project", str(source), "--yes")
    refused = ann.run(*words)
    assert refused.returncode == 1
    assert b"example.org/we/other; you have a role in app" in refused.stderr
    assert b"memd team grant ann writer other" in refused.stderr
    config.write_text('[remote "origin"]\n\turl = git@example.org:we/app.git\n')
    asked = ann.run(*words[:-1])
    assert asked.returncode == 1, "nobody said yes"
    assert b"would be shared as app; you are maintainer there" in asked.stdout
    assert run(ann, *words)["name"] == "app"
    doctor = ann.run("doctor", "--json")
    assert b"ann is maintainer of app" in doctor.stdout
