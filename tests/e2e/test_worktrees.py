"""Worktrees that are gone, and what was remembered in them, through a real daemon."""

import shutil
import subprocess
import time

from memd.store.database import Database


def git(directory, *words):
    subprocess.run(
        [shutil.which("git"), "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=directory, check=True, capture_output=True
    )  # fmt: skip


def make_repository(path, remote=None):
    path.mkdir(parents=True)
    git(path, "init", "-q")
    git(path, "commit", "-q", "--allow-empty", "-m", "begin")
    if remote:
        git(path, "remote", "add", "origin", remote)
    return path


def say(client, directory, text, session="s1", **more):
    """A turn in which the user says something."""
    prompt = {
        "session_id": session,
        "prompt_id": session,
        "hook_event_name": "UserPromptSubmit",
        "prompt": text,
    }
    stop = {
        "session_id": session,
        "prompt_id": session,
        "hook_event_name": "Stop",
        "last_assistant_message": f"Done: {text}",
    }
    events = [
        {"client": "claude-code", "payload": {**one, **more}, "directory": str(directory), "source": "import", "at": 1_760_000_000_000}
        for one in (prompt, stop)
    ]  # fmt: skip
    receipts = client.call("memd/capture", {"events": events})["receipts"]
    assert {one["outcome"] for one in receipts} == {"stored"}


def list_projects(daemon):
    with daemon.client() as client:
        found = client.call("memd/projects")["projects"]
    return {one["key"]: one["sessions"] for one in found if one["key"] not in {"global", "scratch"}}


def wait_for_joiner(daemon):
    """Wait until memd has looked at every project that there is."""

    def has_looked():
        with daemon.client() as client:
            count = len(client.call("memd/projects", {"counts": False})["projects"])
            rooms = client.call("memd/status")["rooms"]
        return next(room for room in rooms if room["name"] == "worktrees")["projects"] == count

    daemon.wait_for(has_looked)


def wait_for_projects(daemon, *wanted):
    deadline = time.monotonic() + 60
    while set(found := list_projects(daemon)) != {str(one) for one in wanted}:
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


def test_what_was_said_in_a_worktree_that_is_gone_is_its_repositorys(daemon, tmp_path):
    daemon.start()
    with daemon.client() as client:
        for name, layout in (("shop", ".worktrees/3"), ("mill", "../mill-worktrees/x")):
            path = make_repository(tmp_path / name) / layout
            say(client, path.resolve(), "From now on tests run with make", name)
    assert set(list_projects(daemon)) == {str(tmp_path / "shop"), str(tmp_path / "mill")}


def test_worktrees_of_a_tool_are_joined_by_the_remote_that_their_sessions_recorded(daemon):
    one, two = "https://example.com/ann/shop.git", "git@example.com:ann/shop"
    other = "https://example.com/bob/shop.git"
    daemon.start()
    with daemon.client() as client:
        say(client, "/Users/ann/src/shop", "From now on we deploy by hand", "s1", git_remote=one)
        say(
            client,
            "/Users/ann/.codex/worktrees/4ee0/shop",
            "From now on use make",
            "s2",
            git_remote=two,
        )
        say(
            client,
            "/Users/ann/.codex/worktrees/9a6a/shop",
            "From now on use ninja",
            "s3",
            git_remote=other,
        )
    wait_for_projects(daemon, "/Users/ann/src/shop", "/Users/ann/.codex/worktrees/9a6a/shop")


def test_what_only_looks_like_a_worktree_stays_apart(daemon, tmp_path):
    plain = tmp_path / "plain"
    plain.mkdir()
    named = make_repository(tmp_path / "worktrees")
    clone = make_repository(tmp_path / "shop" / ".worktrees" / "clone")
    shop = make_repository(tmp_path / "ours", "https://example.com/ann/ours.git")
    gone = shop / ".worktrees" / "theirs"
    daemon.start()
    with daemon.client() as client:
        say(client, plain / ".worktrees" / "x", "From now on a", "s1")
        say(client, named, "From now on b", "s2")
        say(client, clone, "From now on c", "s3")
        say(client, gone, "From now on d", "s4", git_remote="https://example.com/bob/theirs")
        say(client, tmp_path / "ours", "From now on e", "s5")
    daemon.settle()
    wait_for_joiner(daemon)
    assert set(list_projects(daemon)) == {
        str(plain / ".worktrees" / "x"), str(named), str(clone), str(gone), str(shop),
    }  # fmt: skip


def test_a_project_of_before_is_joined_at_an_upgrade_and_separated_again_for_good(daemon, tmp_path):
    shop = make_repository(tmp_path / "shop")
    gone = shop / ".worktrees" / "3"
    daemon.start()
    with daemon.client() as client:
        say(client, shop, "From now on we deploy by hand", "s1")
        say(client, tmp_path / "other", "From now on tests run with make", "s2")
    daemon.settle()
    daemon.stop()
    database = Database(daemon.paths.database, 1)
    database.write_now(  # as an earlier memd had it
        lambda tx: (
            tx.execute(
                "UPDATE projects SET key = ?, name = '3' WHERE name = 'other'", (str(gone),)
            ),
            tx.execute("UPDATE sessions SET directory = ? WHERE key = 's2'", (str(gone),)),
        )
    )
    database.close()
    daemon.start()
    wait_for_projects(daemon, shop)
    undone = daemon.run("project", "merge", "3", "--undo")
    assert undone.returncode == 0, undone.stderr
    assert list_projects(daemon) == {str(shop): 1, str(gone): 1}
    with daemon.client() as client:
        say(client, gone / "lib", "From now on logs are JSON", "s3")
        say(client, tmp_path / "new", "From now on x", "s4")
    daemon.stop()
    daemon.start()
    wait_for_joiner(daemon)
    assert list_projects(daemon) == {str(shop): 1, str(gone): 2, str(tmp_path / "new"): 1}
    merged = daemon.run("project", "merge", str(gone), str(shop), "--yes")
    assert merged.returncode == 0, merged.stderr
    assert list_projects(daemon)[str(shop)] == 3


def test_why_of_a_file_in_a_worktree_means_its_own_file_and_the_shared_memory(daemon, tmp_path):
    shop = make_repository(tmp_path / "shop")
    tree = tmp_path / "shop-worktrees" / "fix"
    git(shop, "worktree", "add", "-q", str(tree))
    (tree / "src").mkdir()
    (tree / "src" / "auth.py").touch()
    gone = shop / ".worktrees" / "old"
    daemon.start()
    with daemon.client() as client:
        for text, where in (
            ("tokens last a day", shop),
            ("tokens last an hour", tree),
            ("tokens are opaque", gone),
        ):
            file = str(where / "src" / "auth.py")
            client.call("memd/remember", {"text": text, "files": [file], "directory": str(where)})

        def why(name, directory):
            return client.call("memd/why", {"id": name, "directory": str(directory)})

        for name in ("auth.py", "src/auth.py", str(tree / "src" / "auth.py")):
            found = why(name, tree)
            assert found["node"] == f"file:{tree}/src/auth.py"
            assert {edge["from_id"] for edge in found["edges"]} == {"1", "2", "3"}
        assert why("../src/auth.py", tree / "docs")["node"] == f"file:{tree}/src/auth.py"
        assert why("./auth.py", tree / "src")["node"] == f"file:{tree}/src/auth.py"
        from_shop = why(".worktrees/old/src/auth.py", shop)
        assert {edge["from_id"] for edge in from_shop["edges"]} == {"1", "2", "3"}
        assert why("auth.py", shop)["node"] == f"file:{shop}/src/auth.py"
        assert why("auth.py", shop / "src")["node"] == f"file:{shop}/src/auth.py"
    told = daemon.run("why", str(tree / "src" / "auth.py"), "--json")
    assert told.returncode == 0, told.stderr
