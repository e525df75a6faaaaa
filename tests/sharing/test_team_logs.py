"""Logs on a real server: who may do what, and that a reader notices whatever the server lost."""

import socket

import psycopg
import pytest

from memd.errors import BadRequest
from memd.sharing import team_server
from memd.sharing.postgres import ROWS_MAX, Head, LogId, LogServer, PostgresTransport
from memd.sharing.records import PlaceUnreachable
from memd.sharing.team_server import ServerRefused, ServerUnreachable

ANN = LogId("app", "ann", "a" * 16)
BOB = LogId("app", "bob", "b" * 16)


def empty(key):
    return Head(key, "laptop", 0, 0)


def append(url, head, *rows, last=0):
    with LogServer.open(url) as logs:
        return PostgresTransport(logs, head.key, head.label)._append(head, rows, last)


def read_all(url, key, after=0):
    """(position at the end, rows) of a log, as somebody else reads it."""
    with LogServer.open(url) as logs:
        other = PostgresTransport(logs, LogId(key.project, "nobody", "0" * 16), "x")
        positions = {key.name: str(after)} if after else {}
        batches = [one for one in other.read(positions) if one.device == key.name]
    return batches[-1].position, [row for batch in batches for row in batch.rows]


def execute(url, statement):
    """What a user may do without memd: the rows, or the error."""
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(statement)
        return found.fetchall() if found.description else found.rowcount


# ── Reading and writing ────────────────────────────────────────────────────────────────────────


def test_a_log_has_the_newest_record_of_a_name_and_numbers_that_only_grow(team):
    head = append(team("ann"), empty(ANN), ("one", "1"), ("two", "2"), ("three", "3"))
    head = append(team("ann"), head, ("one", "new"), ("four", "4"))

    there, rows = read_all(team("bob"), ANN)

    assert there == head.position
    assert [(row.seq, row.name) for row in rows] == [
        (2, "two"), (3, "three"), (4, "one"), (5, "four"),
    ]  # fmt: skip
    assert not any("damaged" in row.reason for row in rows)
    assert sum(row.mark for row in rows) == head.mark
    assert [row.name for row in read_all(team("ray"), ANN, after=3)[1]] == ["one", "four"]


def test_many_rows_come_in_several_conversations(team):
    head = empty(BOB)
    for start in range(0, 3 * ROWS_MAX, ROWS_MAX):
        records = [(f"n{number}", "x" * 100) for number in range(start, start + ROWS_MAX)]
        head = append(team("bob"), head, *records)

    there, rows = read_all(team("ann"), BOB)

    assert len(rows) == 3 * ROWS_MAX
    assert there == head.position
    assert head.mark == sum(row.mark for row in rows)


def test_two_devices_of_one_person_do_not_disturb_each_other(team):
    desktop = LogId("app", "ann", "d" * 16)
    append(team("ann"), empty(ANN), ("one", "1"))
    append(team("ann"), empty(desktop), ("one", "1"))

    with LogServer.open(team("ray")) as logs:
        assert [head.key for head in logs.read_heads("app")] == [ANN, desktop]


def test_a_log_that_the_server_lost_a_part_of_is_not_continued_unseen(team):
    early = append(team("ann"), empty(ANN), ("one", "1"))
    backup = execute(team("owner"), "SELECT * FROM memd.records")
    late = append(team("ann"), early, ("two", "2"), ("three", "3"))
    # A backup from before is put back.
    execute(team("owner"), "DELETE FROM memd.records WHERE seq > 1")
    execute(team("owner"), f"UPDATE memd.heads SET seq = 1, mark = {early.mark}")
    assert execute(team("owner"), "SELECT * FROM memd.records") == backup

    with pytest.raises(PlaceUnreachable):
        append(team("ann"), late, ("four", "4"))
    mended = append(team("ann"), early, ("two", "2"), ("three", "3"), ("four", "4"), last=late.seq)

    assert mended.seq == 6, "above every number that a follower may have read before"
    assert [row.name for row in read_all(team("bob"), ANN, after=late.seq)[1]] == [
        "two",
        "three",
        "four",
    ]


def test_a_reader_is_told_at_once(team):
    head = append(team("ann"), empty(ANN), ("one", "1"))
    with LogServer.open(team("bob")) as logs:
        logs.listen()
        assert not logs.wait_for_news(0)
        append(team("ann"), head, ("two", "2"))
        assert logs.wait_for_news(30)


# ── Rights, tried with raw SQL ─────────────────────────────────────────────────────────────────


def test_nobody_reads_what_is_not_theirs(team):
    append(team("ann"), empty(ANN), ("one", "secret"))
    for table in ("records", "heads", "members", "projects"):
        assert execute(team("eve"), f"SELECT * FROM memd.{table}") == []
        assert execute(team("ray"), f"SELECT * FROM memd.{table}") != []
    assert execute(team("eve"), "SELECT memd.projects_as('reader', 'writer', 'maintainer')") == []


FORBIDDEN = [
    "INSERT INTO memd.records VALUES ('app', 'ann', 'aaaaaaaaaaaaaaaa', 2, 'x', 1, 'forged')",
    "INSERT INTO memd.heads VALUES ('app', 'ann', 'cccccccccccccccc', 'x', 0, 0, now())",
    "INSERT INTO memd.members VALUES ('app', 'bob', 'maintainer', 'bob', now())",
    "UPDATE memd.members SET role = 'maintainer'",
    "UPDATE memd.records SET record = 'forged'",
    "TRUNCATE memd.records CASCADE",
    "SELECT memd.set_role('app', 'bob', 'maintainer')",
    "SELECT memd.set_role('other', 'bob', 'maintainer')",
    "ALTER TABLE memd.records DISABLE ROW LEVEL SECURITY",
    "CREATE TABLE memd.x (a int)",
    "SET SESSION AUTHORIZATION ann",
    "SET ROLE ann",
]


def test_a_writer_neither_forges_nor_promotes(team):
    append(team("ann"), empty(ANN), ("one", "1"))
    for user in ("bob", "ray", "eve"):
        with psycopg.connect(team(user), autocommit=True) as connection:
            for statement in FORBIDDEN:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(statement)


def test_nobody_changes_what_is_not_theirs(team):
    head = append(team("ann"), empty(ANN), ("one", "1"))
    for user in ("bob", "ray", "eve"):
        assert execute(team(user), "DELETE FROM memd.records") == 0
        assert execute(team(user), "DELETE FROM memd.heads") == 0
        assert execute(team(user), "UPDATE memd.heads SET mark = 0") == 0
        with pytest.raises(ServerRefused):
            append(team(user), head, ("one", "forged"))
    assert read_all(team("ray"), ANN)[0] == head.position


def test_a_reader_and_a_stranger_write_nothing_and_are_told_what_to_do(team):
    for user in ("ray", "eve"):
        with pytest.raises(ServerRefused, match="ask a maintainer for a role"):
            append(team(user), empty(LogId("app", user, "c" * 16)), ("one", "1"))


def test_who_is_a_member_no_more_takes_their_own_away_and_sees_nothing_else(team):
    append(team("ann"), empty(ANN), ("one", "1"))
    head = append(team("bob"), empty(BOB), ("two", "2"))
    team_server.grant(team("ann"), "bob", "none", "app")

    assert execute(team("bob"), "SELECT record FROM memd.records") == [("2",)]
    with pytest.raises(ServerRefused):
        append(team("bob"), head, ("three", "3"))
    with LogServer.open(team("bob")) as logs:
        assert logs.list_roles() == ("bob", {})
        logs.remove_log(BOB)
    assert execute(team("ann"), "SELECT record FROM memd.records") == [("1",)]


def test_a_maintainer_removes_a_log_and_writes_none_for_others(team):
    head = append(team("bob"), empty(BOB), ("two", "2"))
    with pytest.raises(ServerRefused):
        append(team("ann"), head, ("two", "forged"))
    with LogServer.open(team("ann")) as logs:
        logs.remove_log(BOB)
        assert logs.read_heads("app") == []


def test_only_the_owner_makes_projects_and_only_known_users_get_roles(team):
    with pytest.raises(ServerRefused, match="only a maintainer"):
        team_server.grant(team("ann"), "ann", "maintainer", "new")
    team_server.grant(team("owner"), "ann", "maintainer", "new")
    with pytest.raises(ServerRefused, match="no user nobody_known"):
        team_server.grant(team("ann"), "nobody_known", "reader", "new")
    with pytest.raises(BadRequest, match="none of reader, writer, maintainer"):
        team_server.grant(team("ann"), "bob", "king", "new")
    assert team_server.list_roles(team("ann")) == (
        "ann",
        {"app": "maintainer", "new": "maintainer"},
    )


# ── A server that is not as it should be ───────────────────────────────────────────────────────


def test_a_server_that_is_not_prepared_or_newer_says_what_to_do(postgres, team):
    with pytest.raises(ServerRefused, match="memd team init"):
        team_server.list_roles(postgres.url("ann", "postgres"))
    with pytest.raises(ServerRefused, match="may create"):
        team_server.prepare(postgres.url("eve", "postgres"))
    assert team_server.prepare(team("owner")) == []
    execute(team("owner"), "INSERT INTO memd.migrations (number) VALUES (99)")
    with pytest.raises(ServerRefused, match="update memd"):
        team_server.list_roles(team("ann"))


def test_an_address_that_is_wrong_is_named_without_its_password():
    for url in ("mysql://ann:hunter2@db/team", "host=db password=hunter2"):
        with pytest.raises(ServerRefused, match="must begin with postgresql://"):
            team_server.list_roles(url)
    for url in (
        "postgresql://ann:hunter2@127.0.0.1:1/team",
        "postgresql://ann:hunter2@db/team?bad=1",
    ):
        with pytest.raises((ServerRefused, ServerUnreachable), match="postgresql://ann@") as caught:
            team_server.list_roles(url)
        assert "hunter2" not in str(caught.value)


def test_a_server_that_accepts_and_is_silent_is_given_up(monkeypatch):
    monkeypatch.setattr(team_server, "CONNECT_S", 2)  # psycopg takes no less
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(ServerUnreachable):
            team_server.list_roles(f"postgresql://ann@127.0.0.1:{port}/team")


def test_a_server_that_hangs_in_the_middle_is_cut_off(team):
    append(team("ann"), empty(ANN), ("one", "1"))
    with psycopg.connect(team("owner")) as other:
        other.execute("LOCK TABLE memd.heads IN ACCESS EXCLUSIVE MODE")
        with LogServer.open(team("bob"), call_s=0.2) as logs, pytest.raises(ServerUnreachable):
            logs.read_heads("app")


def test_a_killed_server_loses_nothing_and_answers_again(team, postgres):
    head = append(team("ann"), empty(ANN), ("one", "1"))
    with LogServer.open(team("bob")) as logs:
        postgres.kill()
        with pytest.raises(ServerUnreachable):
            logs.read_heads("app")
    with pytest.raises(ServerUnreachable):
        append(team("ann"), head, ("two", "2"))

    postgres.start()

    assert append(team("ann"), head, ("two", "2")).seq == 2
