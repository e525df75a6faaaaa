import shutil
from pathlib import Path

import pytest

from memd.errors import VaultCorrupt
from memd.store import grafting
from memd.store.database import Database


@pytest.fixture
def sound(tmp_path):
    db = Database(str(tmp_path / "sound.db"), 1)
    db.close()
    return db.path


@pytest.fixture
def damaged(sound, tmp_path):
    return str(shutil.copy(sound, tmp_path / "damaged.db"))


def names(path):
    with grafting.source(path) as opened:
        return {row[0] for row in opened.execute("SELECT name FROM sqlite_schema")}


def test_what_can_be_read_is_left_as_it_is(damaged, sound):
    before = Path(damaged).read_bytes()
    grafting.make_readable(damaged, sound, ["events"])
    assert Path(damaged).read_bytes() == before


@pytest.mark.parametrize("size", [1, 100, 4096])
def test_a_lost_beginning_is_taken_from_a_sound_vault(damaged, sound, size):
    with Path(damaged).open("r+b") as file:
        file.write(b"\xff" * size)
    grafting.make_readable(damaged, sound, ["events"])
    assert names(damaged) == names(sound)


def test_a_file_that_is_no_vault_cannot_be_made_readable(damaged, sound):
    Path(damaged).write_bytes(b"")
    with pytest.raises(VaultCorrupt, match="not even the names"):
        grafting.make_readable(damaged, sound, ["events"])
