"""The spool: what was appended is there after a crash, once, in order, for its owner alone."""

import errno
import fcntl
import os
import stat
import threading
from pathlib import Path

from memd.capture import spool


def lines(directory):
    return [line for path in spool.drainable(directory) for line in spool.read(path)]


def test_lines_come_out_in_the_order_they_went_in(tmp_path):
    directory = str(tmp_path / "s")
    for number in range(20):
        spool.append(directory, b"%d" % number)
    assert lines(directory) == [b"%d" % number for number in range(20)]


def test_files_are_private(tmp_path):
    directory = str(tmp_path / "s")
    spool.append(directory, b"x")
    assert stat.S_IMODE(Path(directory).stat().st_mode) == 0o700
    assert stat.S_IMODE(Path(directory, "active").stat().st_mode) == 0o600


def test_what_is_put_aside_is_never_appended_to(tmp_path):
    directory = str(tmp_path)
    spool.append(directory, b"one")
    first = spool.drainable(directory)
    spool.append(directory, b"two")
    assert list(spool.read(first[0])) == [b"one"]
    second = spool.drainable(directory)
    assert second[0] == first[0]
    spool.remove(first[0])
    assert lines(directory) == [b"two"]


def test_a_torn_line_does_not_take_the_next_one_with_it(tmp_path):
    (tmp_path / "active").write_bytes(b'whole\n{"torn')
    spool.append(str(tmp_path), b"next")
    assert lines(str(tmp_path)) == [b"whole", b'{"torn', b"next"]


def test_a_line_longer_than_any_of_ours_is_passed_over(tmp_path):
    (tmp_path / "active").write_bytes(b"x" * (spool.LINE_BYTES_MAX * 2 + 5) + b"\nnext\n")
    assert lines(str(tmp_path)) == [None, b"next"]


def test_a_large_file_is_put_aside_by_the_writer(tmp_path, monkeypatch):
    monkeypatch.setattr(spool, "SEGMENT_BYTES", 10)
    for text in (b"123456", b"789012", b"3"):
        spool.append(str(tmp_path), text)
    assert spool.measure(str(tmp_path)) == (2, 16, 3)
    assert lines(str(tmp_path)) == [b"123456", b"789012", b"3"]


def test_a_hook_that_cannot_have_the_lock_writes_a_file_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(spool, "_HOOK_LOCK_S", 0.02)
    with (tmp_path / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        spool.append(str(tmp_path), b"alone")
    spool.append(str(tmp_path), b"later")
    assert sorted(lines(str(tmp_path))) == [b"alone", b"later"]


def test_a_write_that_fails_leaves_no_half_line(tmp_path, monkeypatch):
    directory = str(tmp_path)
    spool.append(directory, b"one")

    def full(handle, data):
        os.write(handle, data[:3])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(spool, "_write_all", full)
        try:
            spool.append(directory, b"two-two")
        except OSError as error:
            assert error.errno == 28  # noqa: PT017  # the file matters, not the error
    spool.append(directory, b"three")
    assert lines(directory) == [b"one", b"three"]


def test_many_writers_and_a_drainer_lose_and_double_nothing(tmp_path):
    directory = str(tmp_path)
    seen = []
    done = threading.Event()

    def write(writer):
        for number in range(25):
            spool.append(directory, f"{writer}-{number}".encode())

    def drain():
        while True:
            is_last = done.is_set()
            for path in spool.drainable(directory):
                seen.extend(spool.read(path))
                spool.remove(path)
            if is_last and not spool.measure(directory).lines:  # a drain may miss the lock
                return

    drainer = threading.Thread(target=drain)
    writers = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in (drainer, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    drainer.join()
    assert len(seen) == 100
    assert len(set(seen)) == 100
    for writer in range(4):
        own = [int(line.split(b"-")[1]) for line in seen if line.startswith(b"%d-" % writer)]
        assert own == sorted(own)


def test_no_spool_is_an_empty_spool(tmp_path):
    nowhere = str(tmp_path / "no")
    assert spool.drainable(nowhere) == []
    assert spool.measure(nowhere) == (0, 0, 0)
    spool.remove(str(tmp_path / "gone.jsonl"))


def test_pipes_and_links_among_the_files_to_drain_are_left_alone(tmp_path):
    spool.append(str(tmp_path), b"{}")
    os.mkfifo(tmp_path / "000000000007.jsonl")
    (tmp_path / "000000000008.jsonl").symlink_to("/dev/zero")
    (drained,) = spool.drainable(str(tmp_path))
    assert list(spool.read(drained)) == [b"{}"]
    assert spool.measure(str(tmp_path)).files == 1


def test_the_reserve_lies_beside_the_spool_and_counts_as_nothing_that_waits(tmp_path):
    directory = str(tmp_path / "s")
    assert spool.keep_reserve(directory)
    assert spool.keep_reserve(directory)
    reserve = Path(f"{directory}.reserve")
    assert stat.S_IMODE(reserve.stat().st_mode) == 0o600
    assert reserve.stat().st_blocks * 512 >= spool.RESERVE_BYTES
    assert spool.measure(directory).files == 0
    assert spool.give_up_reserve(directory)
    assert not spool.give_up_reserve(directory)


def test_no_reserve_is_made_where_there_is_no_place_for_it(tmp_path):
    assert not spool.keep_reserve(str(tmp_path / "nowhere" / "s"))


def test_a_line_on_a_full_disk_uses_the_reserved_space(tmp_path, monkeypatch):
    directory = str(tmp_path / "s")
    spool.keep_reserve(directory)
    write = os.write

    def crowded(handle, data):
        if Path(f"{directory}.reserve").exists():
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(handle, data)

    monkeypatch.setattr(os, "write", crowded)
    spool.append(directory, b"the last words")
    assert lines(directory) == [b"the last words"]
