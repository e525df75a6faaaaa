"""One connection from its first byte to its last: lines in, answers out, nothing lost in between.

The first call picks the vocabulary, MCP or memd's own, for good. When the client closes its side,
answers in flight still arrive. Not here: accepting connections (listener.py).
"""

import functools
import time
from dataclasses import dataclass, replace
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread
from mcp.server.lowlevel import Server

from memd.serve import framing
from memd.serve.commons import Commons
from memd.serve.control import PREFIX, Control
from memd.serve.framing import Call, Lines, Preface, Read, Refused, Response
from memd.serve.inflight import InFlight
from memd.serve.scope import Caller
from memd.serve.session import Session
from memd.serve.wire import Wire

IN_FLIGHT_MAX = 128
"""Requests of one connection at a time; further ones wait in the socket."""
LONG_LINE = 32 * 1024
"""Bytes from which a line is parsed in a thread, so that nobody else waits for it."""
UNFINISHED = 64 * 1024
"""Bytes of a line without an end from which they count as held for a client."""
UNBROKEN = 256 * 1024
"""Who has sent so much without a pause goes on in turn with others who did."""
PENANCE_S = 1.0
"""How long a connection that was let go stays open unheard, so that it does not come back at once."""
LINES_AT_ONCE = 64
"""Lines of one connection between two moments in which the others come in."""
PAUSE_S = 0.003
"""For the others, again and again while a long line is parsed."""
LINGER_S = 0.3
"""How long the last words of a connection may take."""
DISCARD_S = 1.0
"""How long we listen on after a line that is too long, so that its sender gets to read why."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a connection, in bytes and seconds."""

    line_bytes: int
    drain_s: float
    send_s: float
    leave_s: float


@dataclass(frozen=True, slots=True)
class Vocabularies:
    """What can be spoken."""

    mcp: Server[Any]
    control: Control


class Connection:
    """`serve` it in a task; `leave` asks it to finish what it does and end."""

    def __init__(
        self, wire: Wire, speaks: Vocabularies, limits: Limits, commons: Commons, caller: Caller
    ) -> None:
        self._wire = wire
        self._speaks = speaks
        self._limits = limits
        self._commons = commons
        self._caller = caller
        self._drain_s = limits.drain_s
        self._reading = anyio.CancelScope()
        self._sending = anyio.Lock()
        self._in_flight = InFlight(IN_FLIGHT_MAX, commons.turnstile, caller.pid or id(self))
        self._lines = Lines(limits.line_bytes)
        self._unread = 0
        self._tasks: anyio.abc.TaskGroup | None = None
        self._session: Session | None = None
        self._is_control = False
        self._is_first = True
        self._is_let_go = False
        self._is_waiting = False
        """Whether the client has sent nothing after the line at hand yet."""

    async def serve(self) -> None:
        """Read until the client is done, then let answers in flight arrive. An OSError if it broke."""
        try:
            await self._serve()
        finally:
            self._lines.rest()
            self._in_flight.abandon()
            self._commons.incoming.hold(self, 0)
            self._commons.outgoing.hold(self, 0)
        if self._is_let_go:
            await anyio.sleep(PENANCE_S)

    async def _serve(self) -> None:
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            with self._reading:
                await self._read()
            await self._drain()
            tasks.cancel_scope.deadline = anyio.current_time() + LINGER_S
            if self._session is not None:
                self._session.close()

    def let_go(self, reason: str) -> None:
        """End now, with a last word if it can still be said."""
        self._is_let_go = True
        self._wire.last_words(framing.error_line(None, framing.BROKEN, reason))
        if self._tasks is not None:
            self._tasks.cancel_scope.cancel()

    def leave(self) -> None:
        """Read no more; what is in flight has until the deadline of the house."""
        self._drain_s = min(self._drain_s, self._limits.leave_s)
        self._reading.cancel()

    async def _read(self) -> None:
        lines = self._lines
        while chunk := await self._receive():
            found = lines.feed(chunk)
            for number, line in enumerate(found, 1):
                self._is_waiting = number == len(found)
                await self._hear(line)
                if not number % LINES_AT_ONCE:
                    await self._commons.pass_gate()
            self._commons.incoming.hold(self, lines.held if lines.held > UNFINISHED else 0)
            if lines.is_overfull:
                await self._refuse_the_rest()
                return
        await self._hear(lines.rest())

    async def _receive(self) -> bytes:
        if self._wire.unbroken > UNBROKEN or self._lines.held > UNFINISHED:
            await self._wire.readable()
            await self._commons.pass_gate()
        return await self._wire.receive()

    async def _hear(self, line: bytes) -> None:
        if len(line) > LONG_LINE:
            said = await anyio.to_thread.run_sync(
                framing.read_long,
                line,
                functools.partial(time.sleep, PAUSE_S),
                limiter=self._commons.long_lines,
            )
        else:
            said = framing.read(line)
        if said is not None:
            await self._act(said)
            self._is_first = False

    async def _act(self, said: Read) -> None:
        match said:
            case Call():
                await self._call(said)
            case Preface() if self._is_first:
                self._caller = _introduced(self._caller, said)
            case Preface():
                await self._refuse(
                    Refused(framing.INVALID_REQUEST, "a preface may only be the first line")
                )
            case Refused():
                await self._refuse(said)
            case Response():
                pass  # we never ask a client anything

    async def _call(self, call: Call) -> None:
        if self._session is None and not self._is_control:
            self._choose(call)
        if self._is_foreign(call.method):
            await self._refuse_method(call)
            return
        if call.id is not None or self._is_control:
            await self._enter(is_light=self._is_light(call))
        if self._session is not None:
            await self._session.take(call)
            return
        if self._is_waiting and self._speaks.control.is_capture(call):
            # Nothing else is there to be done for this client: a task would cost as much as the call.
            with anyio.CancelScope(shield=True):
                await self._answer(call)
            return
        assert self._tasks is not None  # made by `serve`
        self._tasks.start_soon(self._answer, call)

    async def _enter(self, *, is_light: bool) -> None:
        await self._in_flight.turn(is_light=is_light)
        if self._wire.is_stuck:
            async with self._sending:
                pass  # nothing more is answered to who does not read
        self._in_flight.enter(is_light=is_light)

    def _choose(self, call: Call) -> None:
        """The first call decides for the whole connection."""
        if call.method.startswith(PREFIX):
            self._is_control = True
            return
        assert self._tasks is not None  # made by `serve`
        self._session = Session(self._speaks.mcp, self._caller, self._send, self._in_flight)
        self._tasks.start_soon(self._session.run)

    def _is_light(self, call: Call) -> bool:
        return self._is_control and self._speaks.control.is_light(call)

    def _is_foreign(self, method: str) -> bool:
        """Whether this method belongs to the other vocabulary, or to none."""
        if self._is_control:
            return not self._speaks.control.knows(method)
        return method.startswith(PREFIX)

    async def _answer(self, call: Call) -> None:
        try:
            line = await self._speaks.control.reply(call, self._caller)
            if line is not None:
                await self._send(line)
        finally:
            self._in_flight.leave(is_light=self._is_light(call))

    async def _refuse_method(self, call: Call) -> None:
        if call.id is None:
            return
        if self._is_control:
            await self._send(self._speaks.control.unknown(call))
            return
        message = "this connection speaks MCP; open another one for memd's own calls"
        await self._send(framing.error_line(call.id, framing.METHOD_NOT_FOUND, message))

    async def _refuse(self, said: Refused) -> None:
        await self._send(framing.error_line(said.id, said.code, said.message))

    async def _refuse_the_rest(self) -> None:
        """Say that a line is too long, then take in the rest of it for a moment, and drop it."""
        limit = self._limits.line_bytes
        await self._refuse(
            Refused(framing.INVALID_REQUEST, f"a line may have {limit} bytes at most")
        )
        with anyio.move_on_after(DISCARD_S):
            while await self._receive():
                pass

    async def _send(self, line: bytes) -> None:
        """One line at a time. A TimeoutError if the client does not read: it ends the connection."""
        rest = line if self._sending.locked() else self._wire.send_at_once(line)
        if not rest:
            return
        self._count_unread(len(rest))
        try:
            async with self._sending:
                with anyio.fail_after(self._limits.send_s):
                    await self._wire.send(rest, goes_on=len(rest) < len(line))
        finally:
            self._count_unread(-len(rest))

    def _count_unread(self, size: int) -> None:
        self._unread += size
        self._commons.outgoing.hold(self, self._unread)

    async def _drain(self) -> None:
        """Wait for what is in flight, unless nobody is there to hear it."""
        if self._session is not None and self._wire.is_gone():
            return
        with anyio.move_on_after(self._drain_s):
            await self._in_flight.empty()


def _introduced(caller: Caller, said: Preface) -> Caller:
    return replace(
        caller, cwd=said.cwd, project=said.project, session=said.session, client=said.client
    )
