"""Logs in a folder: whatever happens to them, nothing of it gets into a vault that was not written by memd."""

import contextlib
import json
import shutil
import socket
import zlib

import anyio.to_thread
import pytest

from memd.sharing import chunks
from memd.sharing.folder import LOGS, FolderTransport
from memd.sharing.records import PlaceUnreachable

SECRET = "Zanzibar-Quokka-4711"


def find_bytes(root, text):
    return [path for path in root.rglob("*") if path.is_file() and says(path, text)]


def says(path, text):
    content = path.read_bytes()
    if path.suffix == ".memd":
        content += chunks._decompress(content)
    return text.encode() in content


def the_chunks(place):
    return sorted((place / LOGS).rglob("*.memd"), key=lambda path: (path.parent, path.name))


async def test_what_is_forgotten_leaves_every_vault_and_every_chunk(make_vault, tmp_path):
    desk, laptop = make_vault("desk"), make_vault("laptop")
    number = desk.remember(f"The launch code is {SECRET}")
    desk.remember("The port is 8080")
    for vault in (desk, laptop, desk):
        await vault.sync()
    (copied,) = laptop.db.read_now(
        lambda tx: tx.execute("SELECT id FROM summaries WHERE body LIKE '%launch%'").fetchone()
    )
    assert find_bytes(tmp_path, SECRET)
    await laptop.forget(copied)
    desk.remember(f"The launch code is {SECRET}")  # said again, without knowing
    assert number
    for vault in (laptop, desk, laptop, desk):
        await vault.sync()
    assert desk.bodies() == laptop.bodies() == ["The port is 8080"]
    assert find_bytes(tmp_path, SECRET) == []
    # Said again on purpose, it is there again, on both.
    desk.remember(f"The launch code is {SECRET}")
    await desk.sync()
    assert (await laptop.sync()).received["memory"] == 1


@pytest.mark.parametrize("damage", ["cut", "flipped", "renamed", "moved", "replaced", "missing"])
async def test_a_damaged_chunk_is_refused_by_name_and_takes_nothing_with_it(make_vault, damage):
    desk, laptop = make_vault("desk"), make_vault("laptop")
    desk.remember("The port is 8080")
    await desk.sync()
    first = the_chunks(desk.place)[0]
    desk.remember("Deploy on Fridays")
    await desk.sync()
    _, second = the_chunks(desk.place)
    whole, third = second.read_bytes(), None
    if damage == "cut":
        second.write_bytes(whole[: len(whole) // 2])
    elif damage == "flipped":
        second.write_bytes(whole[:20] + bytes([whole[20] ^ 1]) + whole[21:])
    elif damage == "renamed":
        third = second.rename(second.with_name(second.name.replace("-000002-", "-000003-")))
    elif damage == "moved":
        third = second.parent.with_name("0" * 16) / first.name
        third.parent.mkdir()
        shutil.copy(first, third)
    elif damage == "replaced":
        name, content = chunks.write_chunk(
            chunks.read_chunk(whole, chunks.parse_name(second.name), second.parent.name, chunks.PLAIN).records,
            second.parent.name, "desk", chunks.ChunkName(1, 1, "0" * 32), 1, chunks.PLAIN,
        )  # fmt: skip
        second.unlink()
        third = second.with_name(str(name))
        third.write_bytes(content)
    else:
        desk.remember("Use tabs")
        await desk.sync()
        second.unlink()
    report = await laptop.sync()
    (refusal,) = report.refused
    expected = third or (the_chunks(desk.place)[1])
    assert refusal.chunk == expected.name
    assert ("Deploy on Fridays" in laptop.bodies()) is (damage == "moved")
    assert "The port is 8080" in laptop.bodies()
    second.write_bytes(whole)
    if third is not None:
        third.unlink()
    assert (await laptop.sync()).refused == []
    assert "Deploy on Fridays" in laptop.bodies()


async def test_a_writer_that_is_killed_at_any_moment_goes_on_where_it_was(make_vault, monkeypatch):
    desk, laptop = make_vault("desk"), make_vault("laptop")

    class Killed(BaseException):
        pass

    def die(*_, **__):
        raise Killed

    places = ("memd.sharing.folder._write_file", "memd.sharing.folder._flush_directory", "pathlib.Path.rename",
              "memd.sharing.syncer._Run._note_sent", "memd.sharing.syncer._Run._finish_merging")  # fmt: skip
    for number, place in enumerate(places):
        desk.remember(f"Rule number {number}")
        laptop.remember(f"Habit number {number}")
        await laptop.sync()
        with monkeypatch.context() as patched:
            patched.setattr(place, die)
            with pytest.raises(Killed):
                await desk.sync()
    for vault in (desk, laptop, desk):
        assert (await vault.sync()).refused == []
    assert desk.bodies() == laptop.bodies()
    assert len(desk.bodies()) == 2 * len(places)
    assert not list(desk.place.rglob("*.partial"))


async def test_a_place_that_is_gone_stops_nothing_and_a_lost_log_is_written_anew(make_vault):
    desk, laptop = make_vault("desk"), make_vault("laptop")
    desk.remember("The port is 8080")
    await desk.sync()
    aside = desk.place.rename(desk.place.with_name("unmounted"))
    with pytest.raises(PlaceUnreachable):
        await desk.sync()
    desk.place.mkdir()
    desk.remember("Deploy on Fridays")
    assert (await desk.sync()).rewritten
    await laptop.sync()
    assert laptop.bodies() == desk.bodies()
    assert aside.exists()


async def test_a_restored_vault_reads_its_own_log_and_a_copied_one_becomes_another_device(
    make_vault,
):
    desk = make_vault("desk")
    desk.remember("The port is 8080")
    await desk.sync()
    await desk.db.truncate_wal()
    await anyio.to_thread.run_sync(shutil.copy, desk.path, desk.path.with_name("restored.db"))
    desk.remember("Deploy on Fridays")
    await desk.sync()
    restored = await anyio.to_thread.run_sync(make_vault, "restored")
    restored.syncer.host = "desk"
    assert restored.bodies() == ["The port is 8080"]
    assert (await restored.sync()).received["memory"] == 1
    assert await restored.syncer.identify() == await desk.syncer.identify()
    restored.syncer.host = "another machine"
    restored.remember("Use tabs")
    await restored.sync()
    assert await restored.syncer.identify() != await desk.syncer.identify()
    assert (await desk.sync()).received["memory"] == 1


def test_a_chunk_of_records_that_no_memd_writes_is_refused(tmp_path):
    device = "a" * 16
    line = {
        "record": "memory",
        "name": ["u+0"],
        "rank": 1,
        "stamp": [1, 0, device],
        "value": {"title": "x"},
    }
    header = {"record": "memd-sync", "format": 1, "device": device, "label": "x", "epoch": 1, "number": 1,
              "previous": "", "count": 1}  # fmt: skip
    for change, record, words in (
        ({"format": "2"}, line, "header is damaged"),
        ({}, line, "has not the fields"),
        ({}, line | {"name": ["u"], "record": "pin", "value": None}, "not the name of a memory"),
        ({}, line | {"record": ["memory"]}, "does not know"),
        ({}, line | {"record": {}}, "does not know"),
        ({"count": 2}, line, "another chunk"),
    ):
        lines = [json.dumps(header | change), json.dumps(record), ""]
        content = zlib.compress("\n".join(lines).encode())
        name = chunks.ChunkName(1, 1, chunks.hash_bytes(content))
        folder = tmp_path / LOGS / device
        folder.mkdir(parents=True, exist_ok=True)
        (folder / str(name)).write_bytes(content)
        (refusal,) = FolderTransport(str(tmp_path), "b" * 16, "me").read({})
        assert words in refusal.reason
        (folder / str(name)).unlink()


async def test_what_a_removed_device_said_reaches_machines_that_come_later(make_vault):
    desk, tablet, lost = (make_vault(name) for name in ("desk", "tablet", "lost"))
    gone = desk.remember("The launch code is 4711")
    for vault in (desk, lost, tablet):
        await vault.sync()
    (copied,) = lost.db.read_now(lambda tx: tx.execute("SELECT id FROM summaries").fetchone())
    assert gone
    await lost.forget(copied)
    lost.remember("Deploy on Fridays")
    for vault in (lost, desk, tablet):
        await vault.sync()
    assert desk.bodies() == tablet.bodies() == ["Deploy on Fridays"]

    shutil.rmtree(desk.place / LOGS / await lost.syncer.identify())
    assert (await desk.sync()).rewritten
    # A machine that knew the forgotten memory, and one that knew nothing.
    later = make_vault("later")
    later.remember("The launch code is 4711")
    await later.sync()
    assert later.bodies() == ["Deploy on Fridays"]
    # And what is handed on is handed on again when who handed it on goes, too.
    await tablet.sync()
    for vault in (desk, tablet):
        shutil.rmtree(desk.place / LOGS / await vault.syncer.identify())
    await later.sync()
    last = make_vault("last")
    await last.sync()
    assert last.bodies() == ["Deploy on Fridays"]
    for vault in (later, last):
        again = await vault.sync()
        assert (again.sent, again.received, again.rewritten) == (0, {}, False)
    # It was not lost after all: its log comes back, and others need not hand it on any more.
    assert (await lost.sync()).rewritten
    assert (await later.sync()).rewritten
    for vault in (last, lost, later):
        again = await vault.sync()
        assert (again.refused, vault.bodies()) == ([], ["Deploy on Fridays"])


async def test_a_log_that_has_lost_a_chunk_in_its_middle_is_written_anew_with_the_next_word(
    make_vault,
):
    desk, laptop = make_vault("desk"), make_vault("laptop")
    for text in ("The port is 8080", "Deploy on Fridays", "Use tabs"):
        desk.remember(text)
        await desk.sync()
    the_chunks(desk.place)[1].unlink()
    (refusal,) = (await laptop.sync()).refused
    assert "number 2, is not there yet" in refusal.reason
    desk.remember("Never on a Sunday")
    assert (await desk.sync()).rewritten
    assert (await laptop.sync()).refused == []
    assert laptop.bodies() == desk.bodies()


def write_log(folder, device, content):
    """A log of one chunk whose name is right, whatever it says."""
    name = chunks.ChunkName(1, 1, chunks.hash_bytes(content))
    (folder / device).mkdir(parents=True)
    (folder / device / str(name)).write_bytes(content)
    return folder / device / str(name)


def test_a_chunk_that_cannot_be_opened_keeps_no_other_log_from_being_read(tmp_path):
    writer = FolderTransport(str(tmp_path), "c" * 16, "desk")
    writer.append([], "", 1)
    writer.rewrite([], "", 1)
    path = write_log(tmp_path / LOGS, "a" * 16, b"x")
    path.unlink()
    with socket.socket(socket.AF_UNIX) as listening, contextlib.chdir(path.parent):
        # Opening a socket fails for root, too, whom no permission stops.
        listening.bind(path.name)
    found = list(FolderTransport(str(tmp_path), "b" * 16, "me").read({}))
    assert [one.device[0] for one in found] == ["a", "c"]
    assert "cannot be read" in found[0].reason


@pytest.mark.parametrize("link", [LOGS, f"{LOGS}/{'b' * 16}"])
def test_nothing_is_written_or_removed_behind_a_link_in_the_place(tmp_path, link):
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / ("b" * 16)).mkdir(parents=True)
    mine = [elsewhere / "a.partial", elsewhere / ("b" * 16) / "a.partial"]
    for file in mine:
        file.touch()
    place = tmp_path / "place"
    (place / link).parent.mkdir(parents=True)
    (place / link).symlink_to(elsewhere)
    with pytest.raises(PlaceUnreachable, match="not a folder of its own"):
        FolderTransport(str(place), "b" * 16, "me").append([], "", 1)
    assert sorted(elsewhere.rglob("*")) == sorted([elsewhere / ("b" * 16), *mine])
