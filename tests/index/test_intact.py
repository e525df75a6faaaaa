import os

import numpy as np
import pytest

from memd.index import copy, intact
from memd.index.copied import Draft, Layout
from memd.index.copy import Odd
from tests.index.test_copy import write


@pytest.fixture
def vault(tmp_path):
    return str(tmp_path / "v.db")


def read_through(found):
    return len(list(intact.read_through(found, found.checks)))


def flip(path, at):
    with path.open("r+b") as file:
        file.seek(at)
        (held,) = file.read(1)
        file.seek(at)
        file.write(bytes([held ^ 0x10]))


def big(vault, megabytes):
    rows = np.arange(megabytes * 1024**2 // 8)
    write(vault, "one", Draft({"rows": Layout(rows, 0)}, lambda _: {}, {"rows": 1}))
    return copy.read(vault, "one")


def test_what_was_written_is_what_it_was(vault):
    write(vault)
    found = copy.read(vault, "one")
    assert set(found.checks) == {"rows", "planes", "made", "nothing"}
    found.arrays["rows"][:] = 1  # a map's own pages are not the file's
    assert read_through(found)


@pytest.mark.parametrize("name", ["rows", "planes", "made"])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_one_bit_is_enough_in_the_rows_or_in_the_room(vault, name, share):
    path = write(vault) / name
    flip(path, int(share * (path.stat().st_size - 1)))
    with pytest.raises(Odd, match=f"{name} is damaged"):
        read_through(copy.read(vault, "one"))


def test_a_file_that_lost_its_end_or_is_gone_is_odd(vault):
    folder = write(vault)
    found = copy.read(vault, "one")
    os.truncate(folder / "planes", 8_000)
    with pytest.raises(Odd, match="planes"):
        read_through(found)
    (folder / "planes").unlink()
    with pytest.raises(Odd, match="cannot be read"):
        read_through(found)


def test_who_takes_the_copy_away_meanwhile_does_not_make_it_odd(vault):
    write(vault)
    found = copy.read(vault, "one")
    steps = intact.read_through(found, found.checks)
    assert next(steps)
    copy.sweep(vault, None)
    assert list(steps)


def test_small_files_are_those_that_take_no_time(vault, monkeypatch):
    write(vault)
    found = copy.read(vault, "one")
    monkeypatch.setattr(intact, "SMALL", 40_000)
    assert set(intact.small(found)) == {"rows", "made", "nothing"}
