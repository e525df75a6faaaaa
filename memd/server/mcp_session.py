"""Connects one client to the MCP SDK's server. The only module beside `tools` that imports the SDK."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import anyio
import mcp.types as t
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.shared.message import ServerMessageMetadata, SessionMessage

from memd.server import jsonrpc
from memd.server.json_format import encode_json
from memd.server.jsonrpc import Call
from memd.server.scope import Caller
from memd.server.tools import TOOLS, Tool, ToolHandlers

# ── Calls beside the SDK ──────────────────────────────────────────────────────────────────────────

METHOD = "tools/call"
_REVISIONS = frozenset({"2025-06-18", "2025-11-25"})
"""Revisions with a handshake whose answers have a structure; older ones are the SDK's."""
_RESERVED = "io.modelcontextprotocol/"
"""Before the keys of `_meta` that make the envelope of a request of the stateless revisions."""
_PARAMS = frozenset({"name", "arguments", "_meta"})


def read_envelope(call: Call) -> Mapping[str, Any]:
    """The envelope of a request; empty if it has none."""
    meta = call.params.get("_meta")
    if not isinstance(meta, dict):
        return {}
    return {key: value for key, value in meta.items() if key.startswith(_RESERVED)}


class DirectCalls:
    """Calls of one client that are answered without the SDK."""

    def __init__(self, server_info: Mapping[str, Any]) -> None:
        self._server_info = server_info
        self._asked: dict[jsonrpc.Id, Mapping[str, Any]] = {}
        """The envelope of each open request that the SDK has got."""
        self._envelope: Mapping[str, Any] | None = None
        """What the SDK accepted last: empty after a handshake."""

    def note_request(self, call: Call) -> None:
        """Note a request that is passed to the SDK."""
        if call.id is not None and (envelope := read_envelope(call)):
            self._asked[call.id] = envelope

    def note_answer(self, call_id: jsonrpc.Id | None, result: Mapping[str, Any] | None) -> None:
        """Note what the SDK answered to a request; None if it is an error, or if nothing was answered."""
        envelope = None if call_id is None else self._asked.pop(call_id, None)
        if result is None:
            return
        if envelope:
            self._envelope = envelope
        elif result.get("protocolVersion") in _REVISIONS:
            self._envelope = {}

    def may_answer(self, call: Call) -> bool:
        """Return whether this call needs nothing of the SDK."""
        if call.method != METHOD or call.id is None or self._envelope is None:
            return False
        meta, arguments = call.params.get("_meta", {}), call.params.get("arguments", {})
        return (
            call.params.keys() <= _PARAMS
            and isinstance(arguments, dict)
            and isinstance(meta, dict)
            and all(
                isinstance(value, str | int)
                for key, value in meta.items()
                if not key.startswith(_RESERVED)
            )
            and read_envelope(call) == self._envelope
        )

    def make_line(
        self, call_id: jsonrpc.Id, text: bytes, *, has_result: bool, is_error: bool
    ) -> bytes:
        """The response to a call, as the SDK writes it; `text` is the JSON of the result, if there is one."""
        more = b""
        if self._envelope:
            more = b',"_meta":' + encode_json({_RESERVED + "serverInfo": self._server_info})
        return b"".join((
            b'{"jsonrpc":"2.0","id":', encode_json(call_id),
            b',"result":{"content":[{"text":', encode_json(text.decode()),
            b',"type":"text"}],"isError":', b"true" if is_error else b"false",
            b',"resultType":"complete"' if self._envelope else b"",
            b',"structuredContent":' + text if has_result else b"", more, b"}}\n",
        ))  # fmt: skip


SDK_QUEUE_SIZE = 8
"""Messages between the connection and the SDK. With none, each would wait for a task switch."""
_CANCELLED = "notifications/cancelled"
DIRECT_TOOLS = frozenset(name for name, tool in TOOLS.items() if tool.is_read_only)
"""Tools whose calls need not pass through the SDK."""


class McpSession:
    """One client of the SDK's server: run it in a task, pass it calls, then `close` it.

    The SDK cancels open requests as soon as its input ends, so its input stays open until they have ended.
    """

    def __init__(
        self,
        server: Server[Any],
        tools: ToolHandlers,
        caller: Caller,
        send: Callable[[bytes], Awaitable[None]],
        end_request: Callable[[], None],
    ) -> None:
        self._server = server
        self._tools = tools
        self._direct = DirectCalls(server.server_info_stamp)
        self._running: dict[str, anyio.CancelScope] = {}
        """The calls that are answered directly now, by their ids: 7 and "7" are the same."""
        self._tasks: anyio.abc.TaskGroup | None = None
        self._caller = caller
        self._send_line = send
        self._end_request = end_request
        self._input, self._server_reads = anyio.create_memory_object_stream[
            SessionMessage | Exception
        ](SDK_QUEUE_SIZE)
        self._server_writes, self._output = anyio.create_memory_object_stream[SessionMessage](
            SDK_QUEUE_SIZE
        )

    async def run(self) -> None:
        """Serve until `close`, or until the client cannot be reached."""
        async with anyio.create_task_group() as tasks, self._input, self._output:
            self._tasks = tasks
            tasks.start_soon(self._send_responses)
            await self._server.run(
                self._server_reads,
                self._server_writes,
                # Not this connection, but the stdio proxy tells the client, when another daemon has other tools.
                self._server.create_initialization_options(NotificationOptions(tools_changed=True)),
            )

    async def handle(self, call: Call) -> None:
        """Pass a notification or a request to the server. `end_request` is called when a request ends."""
        tool = TOOLS.get(str(call.params.get("name"))) if self._direct.may_answer(call) else None
        if tool is not None and tool.name in DIRECT_TOOLS and self._tasks is not None:
            scope = self._running[str(call.id)] = anyio.CancelScope()
            self._tasks.start_soon(self._answer_directly, call, tool, scope)
            return
        cancelled = call.params.get("requestId")
        if call.method == _CANCELLED and cancelled is not None and str(cancelled) in self._running:
            self._running[str(cancelled)].cancel()
            return
        self._direct.note_request(call)
        message: t.JSONRPCMessage
        params = dict(call.params) or None
        if call.id is None:
            message = t.JSONRPCNotification(jsonrpc="2.0", method=call.method, params=params)
        else:
            message = t.JSONRPCRequest(jsonrpc="2.0", id=call.id, method=call.method, params=params)
        metadata = ServerMessageMetadata(
            request_context=self._caller,
            on_request_unanswered=None
            if call.id is None
            else partial(self._end_unanswered, call.id),
        )
        await self._input.send(SessionMessage(message, metadata=metadata))

    async def _answer_directly(self, call: Call, tool: Tool, scope: anyio.CancelScope) -> None:
        """Answer a call beside the SDK; one that is cancelled gets no response."""
        assert call.id is not None
        with scope:
            done = await self._tools.run(tool, call.params.get("arguments", {}), self._caller)
        if self._running.get(str(call.id)) is scope:
            del self._running[str(call.id)]
        if not scope.cancelled_caught:
            line = self._direct.make_line(
                call.id, done.text, has_result=done.result is not None, is_error=done.is_error
            )
            await self._send_line(line)
        self._end_request()

    def close(self) -> None:
        """End the server's input. Requests that are still open get an error."""
        self._input.close()
        for scope in self._running.values():
            scope.cancel()

    async def _end_unanswered(self, call_id: jsonrpc.Id) -> None:
        """End a cancelled request, which by the protocol gets no response."""
        self._direct.note_answer(call_id, None)
        self._end_request()

    async def _send_responses(self) -> None:
        async with self._output:
            async for outgoing in self._output:
                message = outgoing.message
                line = message.model_dump_json(by_alias=True, exclude_unset=True).encode("utf-8")
                if isinstance(message, t.JSONRPCResponse | t.JSONRPCError):
                    result = message.result if isinstance(message, t.JSONRPCResponse) else None
                    self._direct.note_answer(message.id, result)
                await self._send_line(line + b"\n")
                if isinstance(message, t.JSONRPCResponse | t.JSONRPCError):
                    self._end_request()
