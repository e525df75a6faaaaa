import shutil
from pathlib import Path

import pytest

from memd.errors import VaultCorrupt
from memd.store import wal
from memd.store.database import Database

FRAME = 4096 + 24


@pytest.fixture
def vault(tmp_path):
    """A vault whose daemon was killed: sixty transactions stand in its log."""
    db = Database(str(tmp_path / "open.db"), 1)
    for number in range(60):
        db.write_now(
            lambda tx, n=number: tx.execute("INSERT INTO forgotten VALUES (?, 1)", (f"k{n}",))
        )
    path = tmp_path / "v.db"
    for suffix in ("", "-wal"):
        shutil.copy(db.path + suffix, f"{path}{suffix}")
    db.close()
    return str(path)


def spoil(vault, at):
    log = Path(vault + "-wal")
    held = bytearray(log.read_bytes())
    held[at] ^= 0xFF
    log.write_bytes(held)


def frames(vault):
    return (Path(vault + "-wal").stat().st_size - 32) // FRAME


def test_a_log_that_is_whole_or_not_there_is_fine(vault, tmp_path):
    wal.check(vault)
    wal.check(str(tmp_path / "none.db"))


@pytest.mark.parametrize("at", [0, 10, 20, 31])
def test_a_log_whose_beginning_is_damaged_is_found_out(vault, at):
    spoil(vault, at)
    with pytest.raises(VaultCorrupt, match="its beginning is not that of a log"):
        wal.check(vault)


@pytest.mark.parametrize("within", [4, 8, 16, 24, 2_000])
def test_transactions_behind_a_break_are_counted(vault, within):
    behind = 20
    spoil(vault, 32 + (frames(vault) - behind - 1) * FRAME + within)
    with pytest.raises(VaultCorrupt, match=r"\d+ transactions behind a break"):
        wal.check(vault)


def test_what_a_power_cut_tears_is_no_damage(vault):
    log = Path(vault + "-wal")
    held = log.read_bytes()
    spoil(vault, len(held) - 100)
    wal.check(vault)
    log.write_bytes(held[: len(held) // 2 + 77])
    wal.check(vault)
    log.write_bytes(bytes(len(held)))
    wal.check(vault)
    log.write_bytes(b"")
    wal.check(vault)


def test_what_failed_commits_have_left_behind_is_no_damage(vault):
    log = Path(vault + "-wal")
    held = bytearray(log.read_bytes())
    last = frames(vault) - 1
    # Each second frame of the last six is another's: runs of one transaction each.
    for number in (last - 5, last - 3, last - 1):
        held[32 + number * FRAME + 30] ^= 0xFF
    log.write_bytes(held)
    wal.check(vault)
