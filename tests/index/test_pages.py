import mmap
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from memd.index import pages

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no pagemap")


@LINUX
def test_pages_that_were_read_go_and_those_that_were_written_to_stay(tmp_path):
    file = tmp_path / "f"
    file.write_bytes(np.random.default_rng(1).bytes(40 * 4_096 * 1_024))
    with file.open("rb") as handle:
        mapped = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_COPY)
    held, wanted = np.frombuffer(mapped, np.uint8), np.fromfile(file, np.uint8)
    for array in (held, wanted):
        array[:: 1 << 20] = 7
        array[100_000:200_000] = 9
    assert (held == wanted).all()
    given = pages.give_back(mapped, threading.RLock())
    assert 0.9 * len(mapped) < given < len(mapped)
    assert pages.give_back(mapped, threading.RLock()) == 0
    assert (held == wanted).all()


@LINUX
def test_what_was_read_of_libraries_goes_and_comes_again():
    assert pages.give_back_code() > 100_000
    assert np.linalg.norm(np.arange(9.0)) > 0


def test_where_nothing_tells_whose_a_page_is_nothing_goes(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "_PAGEMAP", str(tmp_path / "none"))
    monkeypatch.setattr(pages, "_MAPS", Path(tmp_path, "none"))
    assert pages.give_back(mmap.mmap(-1, 4_096), threading.RLock()) == 0
    assert pages.give_back_code() == 0
