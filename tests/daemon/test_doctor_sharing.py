"""What `memd doctor` says of the place and the encryption under [sync]; tests/sharing has the server's part."""

import os
import subprocess

import pytest

from memd.config import Config
from memd.daemon.doctor import examine_sharing
from memd.paths import Paths
from memd.sharing import chunks
from memd.sharing.folder import LOGS


@pytest.fixture
def examine(tmp_path):
    paths = Paths({"MEMD_HOME": str(tmp_path / "home")})

    def examine(**sync):
        return [
            (one.name, one.verdict, one.words, one.remedy)
            for one in examine_sharing(Config.model_validate({"sync": sync}), paths)
        ]

    examine.paths = paths
    return examine


def make_log(place):
    folder = place / LOGS / ("ab" * 8)
    folder.mkdir(parents=True)
    (folder / f"0001-000001-{'0' * 32}.memd").write_bytes(b"")


def test_nothing_is_asked_where_nothing_is_shared(examine):
    assert examine() == []


def test_a_folder_is_looked_at_and_one_that_is_gone_is_no_problem_of_memd_s(examine, tmp_path):
    place = tmp_path / "place"
    ((name, verdict, words, _),) = examine(place=str(place))
    assert (name, verdict) == ("place", "warning")
    assert "make it, or mount it" in words
    place.mkdir()
    assert examine(place=str(place)) == [("place", "ok", f"{place}: no logs yet", "")]
    make_log(place)
    assert examine(place=str(place)) == [("place", "ok", f"{place}: devices with a log: 1", "")]
    ((_, verdict, words, remedy),) = examine(place="somewhere")
    assert verdict == "problem"
    assert "absolute path" in words
    assert "[sync]" in remedy


def test_a_repository_is_asked_and_nothing_is_cloned(examine, tmp_path):
    bare = tmp_path / "place.git"
    ((_, verdict, words, _),) = examine(place=f"git+file://{bare}")
    assert (verdict, "git failed" in words) == ("warning", True)
    subprocess.run(["git", "init", "--bare", "--quiet", bare], check=True)  # noqa: S607
    ((_, verdict, words, _),) = examine(place=str(bare))
    assert (verdict, words) == ("ok", f"{bare}: no logs yet")
    assert not os.path.lexists(examine.paths.mirrors_dir)


def test_a_host_that_ssh_does_not_reach_is_named(examine, tmp_path, monkeypatch):
    (tmp_path / "ssh").write_text("#!/bin/sh\necho 'no route to host' >&2; exit 255\n")
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    ((_, verdict, words, _),) = examine(place="ssh://nowhere/memory")
    assert (verdict, words) == ("warning", "ssh failed: no route to host")


def test_a_key_that_cannot_be_used_is_a_problem_for_nothing_is_synced(examine, tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    public = chunks.create_identity(examine.paths.age_key)
    settings = {"place": str(place), "recipients": [public]}
    assert ("encryption", "ok", "keys: 1, this machine's among them", "") in examine(**settings)
    os.chmod(examine.paths.age_key, 0o644)  # noqa: PTH101
    (_, (name, verdict, words, remedy)) = examine(**settings)
    assert (name, verdict, remedy) == ("encryption", "problem", "nothing is synced until then")
    assert "chmod 600" in words
