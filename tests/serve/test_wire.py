import os
import select
import socket

import anyio
import anyio.lowlevel
import pytest

from memd.serve.wire import Wire, peer


@pytest.fixture
def ends():
    here, there = socket.socketpair(socket.AF_UNIX)
    yield Wire(here), there
    here.close()
    there.close()


def test_the_kernel_says_who_is_there():
    here, there = socket.socketpair(socket.AF_UNIX)
    with here, there:
        assert peer(here) == (os.getuid(), os.getpid())


def test_a_gone_client_is_told_from_one_that_is_only_done_sending(ends):
    wire, there = ends
    assert not wire.is_gone()
    there.shutdown(socket.SHUT_WR)
    select.select([wire._socket], [], [], 1)
    assert not wire.is_gone()
    there.close()
    assert wire.is_gone()


async def test_what_is_sent_arrives_whole_even_if_the_reader_is_slow(ends):
    wire, there = ends
    data = os.urandom(2_000_000)

    async def read():
        seen = b""
        while len(seen) < len(data):
            await anyio.lowlevel.checkpoint()
            seen += await anyio.to_thread.run_sync(there.recv, 30_000)
        assert seen == data

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await wire.send(data)


async def test_what_comes_is_received_until_the_end(ends):
    wire, there = ends
    there.send(b"hello")
    assert await wire.receive() == b"hello"
    there.close()
    assert await wire.receive() == b""


async def test_nothing_follows_half_a_line(ends):
    wire, _ = ends
    with anyio.move_on_after(0.05):
        await wire.send(b"x" * 10_000_000)
    with pytest.raises(BrokenPipeError):
        await wire.send(b"more\n")


async def test_it_counts_what_comes_without_a_pause(ends):
    wire, there = ends
    there.send(b"x" * 100_000)
    await wire.readable()
    await wire.receive()
    await wire.receive()
    assert wire.unbroken == 100_000
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wire.receive)
        await anyio.wait_all_tasks_blocked()
        assert wire.unbroken == 0
        there.send(b"y")
    assert wire.unbroken == 1


async def test_a_reader_that_does_not_read_is_known_until_it_does(ends):
    wire, there = ends
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wire.send, b"x" * 1_000_000)
        await anyio.wait_all_tasks_blocked()
        assert wire.is_stuck
        seen = 0
        while seen < 1_000_000:
            seen += len(await anyio.to_thread.run_sync(there.recv, 65_536))
    assert not wire.is_stuck


async def test_last_words_are_said_unless_half_a_line_is_on_its_way(ends):
    wire, there = ends
    wire.last_words(b"bye\n")
    assert there.recv(100) == b"bye\n"
    with pytest.raises(BrokenPipeError):
        await wire.send(b"more\n")
    there.setblocking(False)
    wire.last_words(b"again\n")
    with pytest.raises(BlockingIOError):
        there.recv(100)
