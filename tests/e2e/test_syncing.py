"""Three vaults with homes of their own share memories by a folder; one is killed in between."""

import json
import signal

import pytest

from memd.sharing import chunks
from tests.e2e.real_daemon import RealDaemon

SECRET = "Zanzibar-Quokka-4711"


@pytest.fixture
def homes(tmp_path):
    daemons = []
    for name in ("desk", "laptop", "train"):
        home = tmp_path / name
        home.mkdir()
        daemons.append(RealDaemon(home))
        (home / "config.toml").write_text(f'[sync]\nname = "{name}"\n')
    for one in daemons:
        one.start()
    yield daemons
    for one in daemons:
        one.stop()


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "place"
    folder.mkdir()
    return str(folder)


def sync(daemon, place, *words):
    done = daemon.run("sync", place, "--json", *words)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["refused"] == []
    return report


def remember(daemon, text):
    with daemon.client() as client:
        return client.call("memd/remember", {"text": text, "project": "global", "kind": "fact"})[
            "id"
        ]


def texts(daemon):
    with daemon.client() as client:
        found = client.call("memd/list", {"limit": 100, "project": "all"})["memories"]
    return sorted(one["title"] for one in found)


def says(root, text):
    """The files in which this stands, chunks as they are and as they are when they are unpacked."""
    found = []
    for path in root.rglob("*"):
        if path.is_file() and "-output" not in str(path):
            content = path.read_bytes()
            if path.suffix == chunks.SUFFIX:
                content += chunks._decompress(content)
            if text.encode() in content:
                found.append(str(path.relative_to(root)))
    return found


def test_three_vaults_converge_and_what_one_forgets_is_nowhere(homes, place, tmp_path):
    desk, laptop, train = homes
    remember(desk, "The build takes nine minutes")
    secret = remember(laptop, f"The launch code is {SECRET}")
    remember(train, "Deploy on Fridays")
    rehearsal = sync(desk, place, "--dry-run")
    assert (rehearsal["is_dry_run"], rehearsal["sent"] > 0) == (True, True)
    assert says(tmp_path, SECRET)
    for daemon in (desk, laptop, train, desk, laptop):
        sync(daemon, place)
    assert texts(desk) == texts(laptop) == texts(train)
    assert len(texts(desk)) == 3
    train.stop(signal.SIGKILL)
    laptop.run("forget", str(secret), "--yes")
    train.start()
    remember(train, "Use tabs in Go files")
    for daemon in (laptop, desk, train, desk, laptop):
        sync(daemon, place)
    assert texts(desk) == texts(laptop) == texts(train)
    assert [SECRET in text for text in texts(desk)] == [False] * 3
    assert says(tmp_path, SECRET) == []
    refused = desk.run("sync", place, environ={"CLAUDECODE": "1"})
    assert (refused.returncode, b"ask the user" in refused.stderr) == (1, True)
    again = sync(desk, place)
    assert (again["sent"], again["received"]) == (0, {})

    let_daemons_sync(desk, laptop, place)


def let_daemons_sync(desk, laptop, place):
    for daemon in (desk, laptop):
        daemon.stop()
        settings = f'[sync]\nplace = "{place}"\ninterval_s = 1\n'
        (daemon.home / "config.toml").write_text(settings)
        daemon.start()
    remember(desk, "Rollbacks take a minute")
    laptop.wait_for(lambda: "Rollbacks take a minute" in texts(laptop))
    (room,) = (one for one in laptop.status()["rooms"] if one["name"] == "sync")
    assert (room["place"], room["problem"]) == (place, "")
    remember(desk, "Review before noon")
    desk.stop()  # it syncs once more
    laptop.wait_for(lambda: "Review before noon" in texts(laptop))


def test_what_one_scrubs_leaves_the_files_of_the_others(homes, place, tmp_path):
    desk, laptop, _ = homes
    remember(desk, f"The launch code is {SECRET}")
    for daemon in (desk, laptop):
        sync(daemon, place)
    assert says(tmp_path / "laptop", SECRET)
    assert desk.run("scrub", SECRET, "--yes").returncode == 0
    for daemon in (desk, laptop, desk):
        sync(daemon, place)
    assert says(tmp_path, SECRET) == []
