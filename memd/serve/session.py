"""One MCP connection: the bridge between lines on a wire and the SDK's server, in either era.

The SDK cancels what is in flight as soon as its input ends, so its input stays open until every
request has ended (the connection counts them). Not here: reading lines, and what the tools do.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import mcp.types as t
from mcp.server.lowlevel import Server
from mcp.shared.message import ServerMessageMetadata, SessionMessage

from memd.serve.framing import Call
from memd.serve.inflight import InFlight
from memd.serve.scope import Caller

_AT_HAND = 8
"""Messages that lie between us and the SDK: without any, each would wait for the other side to turn."""
Send = Callable[[bytes], Awaitable[None]]


class Session:
    """A client of the MCP server. `run` it in a task, hand it calls with `take`, then `close` it."""

    def __init__(
        self, server: Server[Any], caller: Caller, send: Send, in_flight: InFlight
    ) -> None:
        self._server = server
        self._caller = caller
        self._send = send
        self._in_flight = in_flight
        self._input, self._server_reads = anyio.create_memory_object_stream[
            SessionMessage | Exception
        ](_AT_HAND)
        self._server_writes, self._output = anyio.create_memory_object_stream[SessionMessage](
            _AT_HAND
        )

    async def run(self) -> None:
        """Serve until `close`, or until the client cannot be reached."""
        async with anyio.create_task_group() as tasks, self._input, self._output:
            tasks.start_soon(self._deliver)
            await self._server.run(
                self._server_reads,
                self._server_writes,
                self._server.create_initialization_options(),
            )

    async def take(self, call: Call) -> None:
        """Hand over a request, which was entered into `in_flight` and leaves it here, or a notification."""
        message: t.JSONRPCMessage
        params = dict(call.params) or None
        if call.id is None:
            message = t.JSONRPCNotification(jsonrpc="2.0", method=call.method, params=params)
        else:
            message = t.JSONRPCRequest(
                jsonrpc="2.0", id=call.id, method=call.method, params=params
            )
        await self._input.send(SessionMessage(message, metadata=self._metadata(call)))

    def close(self) -> None:
        """No more calls: the server ends, with an error for what is still in flight."""
        self._input.close()

    def _metadata(self, call: Call) -> ServerMessageMetadata:
        unanswered = None if call.id is None else self._settled_silently
        return ServerMessageMetadata(
            request_context=self._caller, on_request_unanswered=unanswered
        )

    async def _settled_silently(self) -> None:
        """A cancelled request gets no answer, by the protocol."""
        self._in_flight.leave()

    async def _deliver(self) -> None:
        async with self._output:
            async for outgoing in self._output:
                message = outgoing.message
                line = message.model_dump_json(by_alias=True, exclude_unset=True)
                await self._send(line.encode("utf-8") + b"\n")
                if isinstance(message, t.JSONRPCResponse | t.JSONRPCError):
                    self._in_flight.leave()
