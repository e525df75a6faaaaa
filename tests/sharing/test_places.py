"""A repository and a directory behind ssh, with the real programs but for the network."""

import os
import subprocess
from pathlib import Path

import anyio.to_thread
import pytest

from memd.errors import BadRequest
from memd.sharing import places
from memd.sharing.chunks import PLAIN
from memd.sharing.folder import LOGS, FolderTransport
from memd.sharing.places import (
    CloneTarget,
    FolderTarget,
    GitPlace,
    SshTarget,
    hold_place,
    parse_target,
)
from memd.sharing.records import PlaceUnreachable

FAKE_SSH = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
shift 2
if [ -e "$MEMD_TEST_CUT" ]; then head -c 700 | sh -c "$*"; else exec sh -c "$*"; fi
"""


@pytest.fixture
def fake_ssh(tmp_path, monkeypatch):
    """`ssh` that hands the words behind the host to a shell here; it breaks off while the file exists."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "ssh").write_text(FAKE_SSH)
    (programs / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("MEMD_TEST_CUT", str(tmp_path / "cut"))
    return tmp_path / "cut"


def git(*words):
    subprocess.run(["git", *map(str, words)], check=True, capture_output=True)  # noqa: S607


@pytest.fixture(autouse=True)
def _nobody_told_git_who_they_are(monkeypatch):
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, os.devnull)
    for name in ("NAME", "EMAIL"):
        monkeypatch.delenv(f"GIT_AUTHOR_{name}", raising=False)
        monkeypatch.delenv(f"GIT_COMMITTER_{name}", raising=False)
    # Else git may make an address of the names of user and machine.
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "user.useConfigOnly")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")


@pytest.fixture(params=["repository", "clone", "ssh"])
def find_place(request, tmp_path, fake_ssh):
    """Makes one place as each of two vaults names it."""
    assert not fake_ssh.exists()
    return make_place(request.param, tmp_path)


def make_place(kind, folder):
    """Make a place of this kind; returns name of a vault → the place as that vault sees it."""
    bare, there = folder / "place.git", folder / "there"
    git("init", "--bare", "--quiet", "--initial-branch", "main", bare)
    if kind == "folder":
        there.mkdir()
    if kind == "clone":
        git("clone", "--quiet", bare, folder / "desk-clone")
        (folder / "desk-clone" / "README").write_text("Notes.")
        git("-C", folder / "desk-clone", "add", ".")
        who = ("-c", "user.name=me", "-c", "user.email=me@localhost")
        git("-C", folder / "desk-clone", *who, "commit", "--quiet", "-m", "Begin")
        git("-C", folder / "desk-clone", "push", "--quiet", "-u", "origin", "HEAD")
        git("clone", "--quiet", bare, folder / "laptop-clone")

    def find(name):
        named = {
            "folder": str(there),
            "repository": str(bare),
            "clone": str(folder / f"{name}-clone"),
            "ssh": f"ssh://somewhere{there}",
        }
        return parse_target(named[kind], str(folder / f"{name}-mirrors"), asks=False)

    return find


async def step(work, *arguments):
    return await anyio.to_thread.run_sync(work, *arguments)


async def sync_folder(vault, place, sealing=PLAIN):
    device = await vault.syncer.identify()
    transport = FolderTransport(place.folder, device, vault.path.stem, sealing)
    report = await vault.syncer.sync(place.name, transport)
    assert report.refused == []
    return report


async def sync_place(vault, place, sealing=PLAIN):
    device = await vault.syncer.identify()
    await step(place.fetch, device)
    report = await sync_folder(vault, place, sealing)
    await step(place.publish, device)
    return report


async def test_two_vaults_share_what_they_know_and_neither_waits_for_the_other(
    make_vault, find_place
):
    desk, laptop = await step(make_vault, "desk"), await step(make_vault, "laptop")
    here, there = await step(find_place, "desk"), await step(find_place, "laptop")
    desk.remember("The port is 8080")
    number = laptop.remember("The launch code is 4711")
    # Both fetch before either has published.
    devices = [await desk.syncer.identify(), await laptop.syncer.identify()]
    for place, device in ((here, devices[0]), (there, devices[1])):
        await step(place.fetch, device)
    await sync_folder(desk, here)
    await sync_folder(laptop, there)
    await step(here.publish, devices[0])
    await step(there.publish, devices[1])
    for vault, place in ((desk, here), (laptop, there)):
        await sync_place(vault, place)
    assert desk.bodies() == laptop.bodies() == ["The launch code is 4711", "The port is 8080"]
    await laptop.forget(number)
    await sync_place(laptop, there)
    assert (await sync_place(desk, here)).forgotten == 1
    for vault, place in ((desk, here), (laptop, there)):
        again = await sync_place(vault, place)
        assert (again.sent, again.received) == (0, {})
    assert desk.bodies() == laptop.bodies() == ["The port is 8080"]
    assert len(await step(places._list_files, Path(here.folder))) == 2


async def test_what_a_broken_connection_cuts_off_is_sent_again(make_vault, fake_ssh, tmp_path):
    desk, laptop = await step(make_vault, "desk"), await step(make_vault, "laptop")
    address = f"ssh://me@somewhere:2222{tmp_path}/with%20space"
    here = parse_target(address, str(tmp_path / "a"), asks=False)
    there = parse_target(address, str(tmp_path / "b"), asks=False)
    desk.remember("The port is 8080")
    await step(fake_ssh.touch)
    with pytest.raises(PlaceUnreachable, match="ssh failed"):
        await sync_place(desk, here)
    await step(fake_ssh.unlink)
    await sync_place(laptop, there)
    assert laptop.bodies() == []
    await sync_place(desk, here)
    await sync_place(laptop, there)
    assert laptop.bodies() == ["The port is 8080"]


def test_a_place_is_a_folder_a_repository_or_ssh_or_an_error_that_says_what_to_write(tmp_path):
    git("init", "--quiet", tmp_path / "clone")
    git("init", "--quiet", "--bare", tmp_path / "bare.git")
    for text, kind in (
        (str(tmp_path), FolderTarget),
        (str(tmp_path / "clone"), CloneTarget),
        (str(tmp_path / "bare.git"), GitPlace),
        ("git@example.org:me/memory.git", GitPlace),
        ("git+ssh://example.org/memory", GitPlace),
        ("https://example.org/memory.git", GitPlace),
        ("ssh://example.org/~/memory", SshTarget),
    ):
        assert type(parse_target(text, str(tmp_path), asks=False)) is kind, text
    for text in ("somewhere", "ssh://-oProxyCommand=x/y", "ssh://host", "git+--upload-pack=x"):
        with pytest.raises(BadRequest, match="place"):
            parse_target(text, str(tmp_path), asks=False)
    place = parse_target(str(tmp_path), str(tmp_path), asks=False)
    with (
        hold_place(place, str(tmp_path / "locks")),
        pytest.raises(PlaceUnreachable, match="another process"),
        hold_place(place, str(tmp_path / "locks")),
    ):
        pass


def test_what_is_pushed_makes_no_link_here_and_changes_no_byte_of_a_chunk(tmp_path):
    bare, other = tmp_path / "place.git", tmp_path / "other"
    git("init", "--bare", "--quiet", "--initial-branch", "memd", bare)
    git("clone", "--quiet", bare, other)
    chunk = other / LOGS / ("a" * 16) / f"0001-000001-{'0' * 32}.memd"
    chunk.parent.mkdir(parents=True)
    chunk.write_bytes(b"a\nb\n")
    (chunk.parent.parent / ("b" * 16)).symlink_to(tmp_path)
    (other / ".gitattributes").write_text("*.memd text eol=crlf\n")
    git("-C", other, "-c", "core.autocrlf=false", "add", ".")
    who = ("-c", "user.name=me", "-c", "user.email=me@localhost")
    git("-C", other, *who, "commit", "--quiet", "-m", "Begin")
    git("-C", other, "push", "--quiet", "origin", "HEAD:memd")
    here = parse_target(str(bare), str(tmp_path / "mirrors"), asks=False)
    here.fetch("b" * 16)
    logs = Path(here.folder, LOGS)
    assert (logs / chunk.relative_to(other / LOGS)).read_bytes() == b"a\nb\n"
    assert not (logs / ("b" * 16)).is_symlink()
    with pytest.raises(PlaceUnreachable, match="not a folder of its own"):
        FolderTransport(here.folder, "b" * 16, "me").append([], "", 1)


@pytest.mark.usefixtures("fake_ssh")
def test_a_name_with_a_line_break_behind_ssh_removes_no_other_file_there(tmp_path):
    device, mine = "b" * 16, tmp_path / "mine"
    mine.touch()
    there = tmp_path / "there"
    trap = there / LOGS / device / f"x\n{str(mine)[1:]}"
    trap.parent.mkdir(parents=True)
    trap.touch()
    (there / str(mine)[1:]).parent.mkdir(parents=True)
    (there / str(mine)[1:]).touch()
    relative = there / LOGS / device / "y\n.." / "kept"
    relative.parent.mkdir()
    relative.touch()
    (there.parent / "kept").touch()
    place = parse_target(f"ssh://somewhere{there}", str(tmp_path / "mirrors"), asks=False)
    place.fetch(device)
    place.publish(device)
    assert mine.exists()
    assert (there.parent / "kept").exists()
