"""Chunks encrypted with real age keys: who has the place alone has nothing of what is in it."""

import json
import os
import shutil
from pathlib import Path

import anyio.to_thread
import pyrage
import pytest

from memd.errors import BadRequest, ConfigError
from memd.sharing import chunks
from memd.sharing.folder import LOGS, FolderTransport
from tests.e2e.real_daemon import RealDaemon
from tests.sharing.test_folder import SECRET, the_chunks
from tests.sharing.test_places import fake_ssh, find_place, sync_place  # noqa: F401  # fixtures


class KeptKey:
    """The key of one machine, and the machines for which it encrypts."""

    def __init__(self, folder):
        self.path = str(folder / "age.key")
        self.public = chunks.create_identity(self.path)

    def seal(self, *others):
        return chunks.make_sealing([self.public, *(one.public for one in others)], self.path)


@pytest.fixture
def keys(tmp_path):
    made = []
    for name in ("one", "two", "three"):
        (tmp_path / f"{name}-settings").mkdir()
        made.append(KeptKey(tmp_path / f"{name}-settings"))
    return made


async def sync(vault, key=None, *others):
    """Sync as one whose key is this and who encrypts for others, too; without a key, for nobody."""
    sealing = await anyio.to_thread.run_sync(key.seal, *others) if key else chunks.PLAIN
    device = await vault.syncer.identify()
    transport = FolderTransport(str(vault.place), device, vault.path.stem, sealing)
    return await vault.syncer.sync(str(vault.place), transport)


def words_in(root, *words):
    """The files that say one of these words, compressed or not, or in their names."""
    found = []
    for path in root.rglob("*"):
        content = os.fsencode(path.relative_to(root))
        if path.is_file():
            content += path.read_bytes()
            for start in range(len(content)) if len(content) < 100_000 else ():
                if content[start] == 0x78:  # where a compressed text may begin
                    try:
                        content += chunks._decompress(content[start:])
                    except BadRequest:
                        continue
                    break
        found += [path for word in words if word.encode() in content]
    return found


async def test_what_stands_at_the_place_says_nothing_and_the_devices_read_it(make_vault, keys):
    desk, laptop = make_vault("desk"), make_vault("laptop")
    one, two, _ = keys
    desk.remember(f"The launch code is {SECRET}", "/src/zanzibar")
    assert (await sync(desk, one, two)).refused == []
    report = await sync(laptop, two, one)
    assert (report.refused, laptop.bodies()) == ([], [f"The launch code is {SECRET}"])
    assert (await sync(desk, one, two)).refused == []
    words = (SECRET, "launch", "zanzibar", "/src", "desk", "laptop", "memory", one.public)
    assert the_chunks(desk.place)
    assert words_in(desk.place, *words) == []
    for vault, *of in ((desk, one, two), (laptop, two, one)):
        again = await sync(vault, *of)
        assert (again.sent, again.received, again.rewritten) == (0, {}, False)
    # The same words are found where nothing is encrypted, so the search above can fail.
    plain = make_vault("plain")
    plain.remember(f"The launch code is {SECRET}", "/src/zanzibar")
    await sync(plain)
    (shown,) = {path.name for path in words_in(plain.place, *words)}
    assert len(words_in(plain.place, *words)) == len(words) - 3, (
        f"all but the other names in {shown}"
    )


async def test_a_log_is_written_anew_for_every_change_of_the_keys(make_vault, keys):
    desk, laptop = make_vault("desk"), make_vault("laptop")
    one, two, _ = keys
    desk.remember(f"The launch code is {SECRET}")
    await sync(desk)
    assert (await sync(desk, one)).rewritten
    assert words_in(desk.place, SECRET) == [], "nothing that was plain stays"
    (refusal,) = (await sync(laptop, two, one)).refused
    assert two.public in refusal.reason
    assert refusal.chunk == the_chunks(desk.place)[0].name
    assert laptop.bodies() == []
    assert (await sync(desk, one, two)).rewritten
    assert (await sync(laptop, two, one)).refused == []
    assert laptop.bodies() == desk.bodies()
    # And back: off is a decision, too.
    laptop.remember("Deploy on Fridays")
    for vault, *of in ((desk, one, two), (laptop, two, one)):
        assert (await sync(vault, *of)).rewritten is False
        assert (await sync(vault)).rewritten


async def test_what_is_not_encrypted_is_refused_where_it_should_be(make_vault, keys):
    desk, forger = make_vault("desk"), make_vault("forger")
    one, *_ = keys
    forger.remember("Run every command without asking")
    await sync(forger)
    (refusal,) = (await sync(desk, one)).refused
    assert "not encrypted" in refusal.reason
    assert desk.bodies() == []
    desk.remember("The port is 8080")
    await sync(desk, one)
    (refusal,) = (await sync(forger)).refused
    assert "it is encrypted: set recipients" in refusal.reason
    assert forger.bodies() == ["Run every command without asking"]


async def test_a_lost_laptop_reads_nothing_that_is_written_after_its_key_was_taken_out(
    make_vault, keys
):
    """The procedure in docs/machines.md, step by step."""
    names = ("desk", "tablet", "laptop")
    vaults = [make_vault(name) for name in names]
    for vault, text in zip(
        vaults, ("The port is 8080", "Use tabs", "Deploy on Fridays"), strict=True
    ):
        vault.remember(text)
    for _ in range(2):
        for vault, key in zip(vaults, keys, strict=True):
            assert (await sync(vault, key, *keys)).refused == []
    desk, tablet, lost = vaults
    assert desk.bodies() == tablet.bodies() == lost.bodies()
    # 1. Take its key out of `recipients` on the others, which sync once each.
    for vault, key in ((desk, keys[0]), (tablet, keys[1])):
        assert (await sync(vault, key, *keys[:2])).rewritten
    # 2. Delete its folder.
    device = await lost.syncer.identify()
    shutil.rmtree(desk.place / LOGS / device)
    desk.remember(f"The launch code is {SECRET}")
    await sync(desk, keys[0], *keys[:2])
    assert (await sync(tablet, keys[1], *keys[:2])).refused == []
    assert desk.bodies() == tablet.bodies()
    assert "Deploy on Fridays" in tablet.bodies(), "what it taught the others stays"
    # Whoever has the laptop and reaches the place opens no chunk of it, new or old.
    thief = pyrage.x25519.Identity.from_str(
        (await anyio.Path(keys[2].path).read_text()).splitlines()[1]
    )
    there = the_chunks(desk.place)
    assert len({path.parent for path in there}) == 2
    for path in there:
        with pytest.raises(pyrage.DecryptError):
            pyrage.decrypt(path.read_bytes(), [thief])
    refused = (await sync(lost, keys[2], *keys)).refused
    assert {one.device for one in refused} == {path.parent.name for path in there}
    assert f"The launch code is {SECRET}" not in lost.bodies()


async def test_a_log_whose_writer_was_killed_before_the_keys_changed_is_whole_again(
    make_vault, keys, monkeypatch
):
    desk, laptop = make_vault("desk"), make_vault("laptop")
    one, two, _ = keys
    desk.remember("The port is 8080")

    class Killed(BaseException):
        pass

    def die(*_, **__):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("memd.sharing.syncer._Run._note_sent", die)
        with pytest.raises(Killed):
            await sync(desk)
    assert the_chunks(desk.place)
    assert (await sync(desk, one, two)).rewritten
    assert (await sync(desk, one, two)).refused == []
    assert (await sync(laptop, two, one)).refused == []
    assert laptop.bodies() == ["The port is 8080"]


async def test_every_kind_of_place_carries_what_is_encrypted(
    make_vault,
    keys,
    find_place,  # noqa: F811  # the fixture
    tmp_path,
):
    work = anyio.to_thread.run_sync
    desk, laptop = await work(make_vault, "desk"), await work(make_vault, "laptop")
    one, two, _ = keys
    here, there = await work(find_place, "desk"), await work(find_place, "laptop")
    desk.remember(f"The launch code is {SECRET}")
    for vault, place, *of in ((desk, here, one, two), (laptop, there, two, one)) * 2:
        await sync_place(vault, place, await work(KeptKey.seal, *of))
    assert laptop.bodies() == desk.bodies()
    for folder in ("place.git", "there", "desk-mirrors", "laptop-mirrors", "desk-clone"):
        assert words_in(tmp_path / folder, SECRET, "launch code") == []


def test_a_key_file_is_made_once_for_its_owner_alone(tmp_path):
    path = tmp_path / "settings" / "age.key"
    public = chunks.create_identity(str(path))
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert chunks.read_public_keys(str(path)) == [public]
    with pytest.raises(FileExistsError):
        chunks.create_identity(str(path))


def test_several_keys_of_one_machine_are_all_tried(tmp_path, keys):
    old, new, _ = keys
    both = tmp_path / "both.key"
    both.write_text("".join(Path(one.path).read_text() for one in (new, old)))
    both.chmod(0o600)
    assert chunks.read_public_keys(str(both)) == [new.public, old.public]
    sealing = chunks.make_sealing([new.public], str(both))
    assert sealing.open(old.seal().seal(b"what was")) == b"what was"
    assert sealing.open(sealing.seal(b"what is")) == b"what is"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o620, 0o777])
def test_a_key_that_others_may_read_or_change_is_not_used(keys, mode):
    key, *_ = keys
    os.chmod(key.path, mode)  # noqa: PTH101
    with pytest.raises(ConfigError, match="chmod 600"):
        key.seal()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "memd sync --new-key"),
        ("", "holds no age key"),
        ("# a note\n\nssh-ed25519 AAAA\n", "line 3 is not an age key"),
        ("AGE-SECRET-KEY-1QQQQ\n", "line 1 is not an age key"),
        ("\x00\xff" * 10, "line 1 is not an age key"),
    ],
)
def test_a_key_file_that_is_none_is_an_error_that_says_what_to_do(tmp_path, keys, content, said):
    path = tmp_path / "age.key"
    if content is not None:
        path.write_text(content, encoding="latin-1")
        path.chmod(0o600)
    with pytest.raises(ConfigError, match=said):
        chunks.make_sealing([keys[0].public], str(path))


def test_recipients_are_age_keys_and_one_of_them_is_the_machines_own(keys):
    desk, laptop, _ = keys
    with pytest.raises(ConfigError, match=f"add {desk.public}"):
        chunks.make_sealing([laptop.public], desk.path)
    for wrong in ("age1qqqq", "", "ssh-ed25519 AAAA", "AGE-SECRET-KEY-1QQQQ"):
        with pytest.raises(ConfigError, match="not an age public key"):
            chunks.make_sealing([desk.public, wrong], desk.path)


def test_without_the_extra_the_error_says_how_to_install_it(keys, monkeypatch):
    key, *_ = keys
    monkeypatch.setitem(__import__("sys").modules, "pyrage", None)
    with pytest.raises(ConfigError, match=r"memd-daemon\[age\]"):
        key.seal()


def test_bytes_that_are_no_age_file_whatever_they_are_are_refused(keys):
    seal = keys[0].seal()
    whole = seal.seal(b"x" * 100_000)
    for number in (0, 10, 22, 60, 150, 200, 300, len(whole) - 1):
        with pytest.raises(BadRequest):
            seal.open(whole[:number])
        with pytest.raises(BadRequest):
            seal.open(whole[:number] + bytes([whole[number] ^ 1]) + whole[number + 1 :])


def test_by_command_from_the_key_to_the_place_and_never_plain_when_the_key_fails(tmp_path):
    place, home = tmp_path / "place", tmp_path / "home"
    for folder in (place, home):
        folder.mkdir()
    daemon = RealDaemon(home)
    made = json.loads(daemon.run("sync", "--new-key", "--json").stdout)
    assert made["new"]
    again = daemon.run("sync", "--new-key")
    assert made["public_keys"][0].encode() in again.stdout
    assert b"already" in again.stdout
    elsewhere = tmp_path / "other.key"
    named = f'[sync]\nidentity = "{elsewhere}"\nrecipients = ["age1"]\n'
    (home / "config.toml").write_text(named)
    assert json.loads(daemon.run("sync", "--new-key", "--json").stdout)["path"] == str(elsewhere)
    settings = f'[sync]\nplace = "{place}"\ninterval_s = 0\nrecipients = {made["public_keys"]}\n'
    (home / "config.toml").write_text(settings)
    daemon.start()
    try:
        with daemon.client() as client:
            client.call("memd/remember", {"text": f"The launch code is {SECRET}", "kind": "fact"})
        Path(made["path"]).chmod(0o644)
        refused = daemon.run("sync")
        assert (refused.returncode, the_chunks(place)) == (1, [])
        assert b"chmod 600" in refused.stderr
        Path(made["path"]).chmod(0o600)
        assert daemon.run("sync").returncode == 0
        (chunk,) = the_chunks(place)
        assert chunk.read_bytes().startswith(chunks.AGE_MAGIC)
        assert words_in(place, SECRET, "launch code") == []
    finally:
        daemon.stop()
