"""A connected Unix socket: receive, send, who is at the other end, and whether they are gone.

Not here: lines and what they say (framing.py).
"""

import contextlib
import select
import socket
import struct
import sys

import anyio
import anyio.lowlevel

CHUNK = 65_536
_SOL_LOCAL = 0
_LOCAL_PEERCRED = 1
_LOCAL_PEERPID = 2
_XUCRED_BYTES = 76


class Wire:
    """One end of a stream. Receiving and sending may go on at once, each once at a time."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._is_torn = False
        self.unbroken = 0
        """Bytes received since the other side last made a pause."""
        self.is_stuck = False
        """Whether the other side does not read what it is sent."""

    async def receive(self) -> bytes:
        """What has come; empty when the other side has closed its direction. An OSError if it broke."""
        has_waited = False
        while True:
            try:
                chunk = self._socket.recv(CHUNK)
            except BlockingIOError:
                self.unbroken = 0
                await anyio.wait_readable(self._socket)
                has_waited = True
            else:
                self.unbroken += len(chunk)
                if not has_waited:
                    await anyio.lowlevel.checkpoint()
                return chunk

    async def readable(self) -> None:
        """Wait until something has come, or the other side has closed."""
        await anyio.wait_readable(self._socket)

    def send_at_once(self, data: bytes) -> bytes:
        """Hand the kernel what it takes now; the rest, for `send`. An OSError if it broke."""
        if self._is_torn:
            raise BrokenPipeError
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        self._is_torn = 0 < sent < len(data)
        return data[sent:]

    async def send(self, data: bytes, *, goes_on: bool = False) -> None:
        """Hand everything to the kernel; waits while the reader is slow. An OSError if it broke.

        `goes_on`: this is the rest of what `send_at_once` began with.
        """
        if self._is_torn and not goes_on:
            raise BrokenPipeError
        # Whoever is stopped half way leaves half a line: then nothing may follow it.
        self._is_torn = True
        view = memoryview(data)
        while view:
            try:
                view = view[self._socket.send(view) :]
            except BlockingIOError:
                self.is_stuck = True
                await anyio.wait_writable(self._socket)
        self._is_torn = self.is_stuck = False

    def last_words(self, data: bytes) -> None:
        """Send as much of this as goes at once, unless half a line is on its way."""
        if not self._is_torn:
            self._is_torn = True
            with contextlib.suppress(OSError):
                self._socket.send(data)

    def is_gone(self) -> bool:
        """Whether the other end is closed in both directions, not only done with sending."""
        poll = select.poll()
        poll.register(self._socket, 0)
        return any(flags & (select.POLLHUP | select.POLLERR) for _, flags in poll.poll(0))

    def close(self) -> None:
        """Let go."""
        with contextlib.suppress(OSError):
            self._socket.close()


def peer(sock: socket.socket) -> tuple[int | None, int | None]:
    """(uid, process id) of the other end; None where the system does not tell."""
    if sys.platform == "darwin":
        record = sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED_BYTES)
        (process,) = struct.unpack("i", sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID, 4))
        return struct.unpack_from("2I", record)[1], process
    if hasattr(socket, "SO_PEERCRED"):
        size = struct.calcsize("3i")
        process, uid, _ = struct.unpack(
            "3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        )
        return uid, process
    return None, None
