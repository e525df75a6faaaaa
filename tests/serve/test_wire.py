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
