"""Calls of reading tools answered beside the MCP SDK, whose task switches and copies cost as much as a search. Pure.

A call is direct only if nothing can be decided about it any more: the SDK has agreed with the client on a protocol, or
has accepted the very envelope that the call has. Everything else is the SDK's. What the client gets is the same to the byte.
"""

from collections.abc import Mapping
from typing import Any

from memd.server import jsonrpc
from memd.server.json_format import encode_json
from memd.server.jsonrpc import Call

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
