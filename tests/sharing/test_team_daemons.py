"""Two people with daemons of their own and one server: by command from the first grant to leaving."""

import json

import pytest

from tests.e2e.real_daemon import RealDaemon

GOLD = "Quokka invoices are due in nine days"


@pytest.fixture
def people(tmp_path, team):
    daemons = []
    for name in ("ann", "bob"):
        home = tmp_path / name
        home.mkdir()
        daemons.append(RealDaemon(home))
        (home / "config.toml").write_text(f'[team]\nurl = "{team(name)}"\n')
    for one in daemons:
        one.start()
    yield daemons
    for one in daemons:
        one.stop()


def run(daemon, *words):
    done = daemon.run(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def authors_of(daemon, text):
    with daemon.client() as client:
        found = client.call("memd/list", {"limit": 100, "project": "all"})["memories"]
    return [(one["speaker"], one["author"]) for one in found if text in one["title"]]


def test_a_team_from_the_first_grant_to_leaving(people, tmp_path, team, postgres):
    ann, bob = people
    database = team("owner").partition("?")[0].rpartition("/")[2]
    assert run(ann, "team", "init", "--url", team("owner")) == {"migrations": []}
    assert run(ann, "team", "grant", "bob", "writer", "app")["role"] == "writer"
    refused = bob.run("team", "grant", "bob", "maintainer", "app")
    assert refused.returncode == 1
    assert b"only a maintainer" in refused.stderr
    for daemon in people:
        source = tmp_path / f"{daemon.home.name}-src"
        source.mkdir()
        with daemon.client() as client:
            client.call(
                "memd/remember",
                {"text": "The tests take a minute", "kind": "fact", "project": str(source)},
            )
        without = daemon.run("team", "join", "app", "--project", str(source))
        assert without.returncode == 1, "nobody said yes"
        assert b"1 fact" in without.stdout
        run(daemon, "team", "join", "app", "--project", str(source), "--yes")

    with ann.client() as client:
        ours = {"text": GOLD, "kind": "decision", "project": str(tmp_path / "ann-src")}
        number = client.call("memd/remember", ours)["id"]
    bob.wait_for(lambda: authors_of(bob, "Quokka") == [("team", "ann")])
    asked = ("search", "quokka invoices", "--project", "all")
    bob.wait_for(lambda: b"of ann" in bob.run(*asked).stdout)
    status = run(bob, "team", "status")
    assert (status["state"], status["authors"]) == ("following", {"ann": 2})
    (room,) = (one for one in bob.status()["rooms"] if one["name"] == "team")
    assert room["server"] == team("bob").partition("?")[0]

    postgres.kill()
    with ann.client() as client:
        client.call("memd/forget", {"ids": [number], "dry_run": False})
    assert ann.status()["reasons"] == [], "nothing here waits for the server"
    postgres.start()
    bob.wait_for(lambda: authors_of(bob, "Quokka") == [])

    postgres.execute(database, "ALTER SCHEMA memd RENAME TO gone")
    with bob.client() as client:
        client.call(
            "memd/remember", {"text": "More", "kind": "fact", "project": str(tmp_path / "bob-src")}
        )
    bob.wait_for(lambda: "memd team init" in str(bob.status()["reasons"]))
    postgres.execute(database, "ALTER SCHEMA gone RENAME TO memd")

    left = run(ann, "team", "leave", "app", "--withdraw", "--yes")
    assert (left["removed"], left["logs_removed"]) == (1, 1)
    bob.wait_for(lambda: run(bob, "team", "status")["authors"] == {})
