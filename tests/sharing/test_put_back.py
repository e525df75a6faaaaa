"""A place that somebody puts back to an older state: Dropbox's rewind, a restored disk, an old commit."""

import shutil
import subprocess
from pathlib import Path

import anyio.to_thread
import pytest

from memd.sharing import chunks
from memd.sharing.folder import FolderTransport
from tests.sharing.test_folder import find_bytes, the_chunks
from tests.sharing.test_places import fake_ssh, make_place, sync_place  # noqa: F401  # a fixture

SECRET = "Quokka-4711"
in_thread = anyio.to_thread.run_sync


def rewind(place, earlier):
    shutil.rmtree(place)
    shutil.copytree(earlier, place)


async def forget_on_laptop(make_vault, tmp_path):
    """Desk says a word, laptop forgets it, all sync; returns both and a copy of the place as it was before."""
    desk, laptop = make_vault("desk"), make_vault("laptop")
    desk.remember(f"The launch code is {SECRET}")
    desk.remember("The port is 8080")
    for vault in (desk, laptop):
        await vault.sync()
    earlier = Path(await in_thread(shutil.copytree, desk.place, tmp_path / "earlier"))
    (number,) = laptop.db.read_now(
        lambda tx: tx.execute("SELECT id FROM summaries WHERE body LIKE '%launch%'").fetchone()
    )
    await laptop.forget(number)
    for vault in (laptop, desk, laptop):
        await vault.sync()
    assert find_bytes(desk.place, SECRET) == []
    return desk, laptop, earlier


async def test_a_forgotten_word_in_our_own_log_is_cleaned_though_we_have_nothing_new_to_say(
    make_vault, tmp_path
):
    desk, laptop, earlier = await forget_on_laptop(make_vault, tmp_path)
    await in_thread(rewind, desk.place, earlier)
    assert find_bytes(desk.place, SECRET)
    assert (await desk.sync()).rewritten
    assert find_bytes(desk.place, SECRET) == []
    # The laptop's log had gone, too: the desk spoke for it until it was back.
    for vault in (laptop, desk):
        assert (await vault.sync()).refused == []
    for vault in (desk, laptop):
        again = await vault.sync()
        assert (again.sent, again.received, again.rewritten) == (0, {}, False)
        assert vault.bodies() == ["The port is 8080"]


async def test_a_machine_that_joins_before_the_log_is_cleaned_never_gets_what_was_forgotten(
    make_vault, tmp_path
):
    desk, laptop, earlier = await forget_on_laptop(make_vault, tmp_path)
    await in_thread(rewind, desk.place, earlier)
    await laptop.sync()  # which knows, but cannot clean the desk's log
    assert find_bytes(desk.place, SECRET)
    train = make_vault("train")
    await train.sync()
    assert train.bodies() == ["The port is 8080"]
    train.db.close()
    old = (tmp_path / "earlier", desk.place)
    assert all(any(map(path.is_relative_to, old)) for path in find_bytes(tmp_path, SECRET))
    assert (await desk.sync()).rewritten
    assert find_bytes(desk.place, SECRET) == []


async def test_every_log_says_what_was_forgotten_whoever_forgot_it(make_vault, tmp_path):
    desk, _, earlier = await forget_on_laptop(make_vault, tmp_path)
    # The laptop, which forgot it, is gone with its log; an old copy of the desk's log is taken for another device's.
    mine = await desk.syncer.identify()
    await in_thread(rewind, desk.place, earlier)
    await desk.sync()
    (chunk,) = the_chunks(earlier)
    records = chunks.read_chunk(
        chunk.read_bytes(), chunks.parse_name(chunk.name), mine, chunks.PLAIN
    ).records
    old = FolderTransport(str(desk.place), "f" * 16, "old")
    await in_thread(old.append, records, "", 1)
    assert find_bytes(desk.place, SECRET)
    tablet = make_vault("tablet")
    await tablet.sync()
    assert tablet.bodies() == ["The port is 8080"]


async def test_a_log_that_lost_its_last_chunk_is_made_whole_at_the_next_sync(make_vault):
    desk, laptop = make_vault("desk"), make_vault("laptop")
    for text in ("The port is 8080", "Deploy on Fridays"):
        desk.remember(text)
        await desk.sync()
    the_chunks(desk.place)[-1].unlink()
    assert (await desk.sync()).rewritten
    await laptop.sync()
    assert laptop.bodies() == desk.bodies()


async def test_a_chunk_of_ours_whose_bytes_were_changed_is_written_anew(make_vault):
    desk, laptop = make_vault("desk"), make_vault("laptop")
    desk.remember("The port is 8080")
    await desk.sync()
    (chunk,) = the_chunks(desk.place)
    chunk.write_bytes(b"nothing")
    assert (await desk.sync()).rewritten
    await laptop.sync()
    assert laptop.bodies() == ["The port is 8080"]


def git(*words):
    subprocess.run(["git", *map(str, words)], check=True, capture_output=True)  # noqa: S607


def put_back_commit(repository, folder, is_forced):
    """Make the branch say again what its first commit said: by force, or by a newer commit."""
    git("clone", "--quiet", repository, folder)
    found = subprocess.run(
        ["git", "-C", folder, "log", "--reverse", "--format=%H", "--", "memd-sync"],  # noqa: S607
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    first = found.stdout.split()[0]
    if is_forced:
        git("-C", folder, "reset", "--quiet", "--hard", first)
        git("-C", folder, "push", "--quiet", "--force", "origin", "HEAD")
        return
    git("-C", folder, "rm", "--quiet", "-r", "memd-sync")
    git("-C", folder, "checkout", "--quiet", first, "--", "memd-sync")
    git(
        "-C",
        folder,
        "-c",
        "user.name=me",
        "-c",
        "user.email=me@localhost",
        "commit",
        "--quiet",
        "-m",
        "Back",
    )
    git("-C", folder, "push", "--quiet", "origin", "HEAD")


@pytest.mark.parametrize(
    "kind", ["repository forced", "repository", "clone forced", "clone", "ssh", "folder"]
)
@pytest.mark.usefixtures("fake_ssh")
async def test_each_kind_of_place_that_is_put_back_is_cleaned_at_the_next_sync(
    make_vault, tmp_path, kind, monkeypatch
):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    way = kind.partition(" ")[0]
    find = await in_thread(make_place, way, tmp_path)
    desk, here = make_vault("desk"), await in_thread(find, "desk")
    number = desk.remember(f"The launch code is {SECRET}")
    desk.remember("The port is 8080")
    await sync_place(desk, here)
    there = tmp_path / "there"
    if way in {"ssh", "folder"}:
        await in_thread(shutil.copytree, there, tmp_path / "earlier")
    await desk.forget(number)
    await sync_place(desk, here)
    if way in {"ssh", "folder"}:
        await in_thread(rewind, there, tmp_path / "earlier")
        assert find_bytes(there, SECRET)
    else:
        repository = tmp_path / "place.git"
        if way == "repository":
            await in_thread(git, "-C", repository, "symbolic-ref", "HEAD", "refs/heads/memd")
        await in_thread(put_back_commit, repository, tmp_path / "other", kind.endswith("forced"))
    await sync_place(desk, here)
    train = make_vault("train")
    if way == "clone":
        await in_thread(git, "clone", "--quiet", tmp_path / "place.git", tmp_path / "train-clone")
    joined = await in_thread(find, "train")
    await sync_place(train, joined)
    assert train.bodies() == ["The port is 8080"]
    looked_at = there if way in {"ssh", "folder"} else Path(joined.folder)
    assert not any(path for path in find_bytes(looked_at, SECRET) if path.suffix == ".memd")
