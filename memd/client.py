"""Synchronous client of the control socket, for the command line and scripts.

    with Client(paths.socket) as memd:
        memd.call("memd/search", {"query": "why did login answer 500"})

Standard library only, so that a command starts quickly.
"""

import json
import os
import time
from _socket import (
    AF_UNIX,
    SOCK_STREAM,
    socket,
)  # `socket` itself takes longer to load than a call to make
from collections.abc import Mapping
from typing import Any, Self

from memd import errors
from memd.errors import BadRequest, Broken, MemdError, Unreachable
from memd.paths import LINE_BYTES_MAX, PING, SILENCE_S, is_mine

TIMEOUT_S = 30.0
_CHUNK_BYTES = 65_536
_HANGS = (
    "memd does not answer (it hangs or is overloaded), so this may or may not have been done;"
    " `memd status` says more"
)
_PREFACE_VERSION = 1
_SERVER_ERROR = -32000
"""The JSON-RPC code of errors that are not the caller's fault."""


class Client:
    """One connection to the daemon. Not thread-safe."""

    def __init__(
        self,
        socket_path: str,
        timeout_s: float = TIMEOUT_S,
        preface: Mapping[str, str] | None = None,
    ) -> None:
        """`preface`: what to say of oneself before the first call, such as `speaker`."""
        self._path = socket_path
        self._timeout_s = timeout_s
        self._preface = preface
        self._socket: socket | None = None
        self._buffer = b""
        self._call_id = 0

    def __enter__(self) -> Self:
        self.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def connect(self) -> None:
        """Connect now; Unreachable if no daemon listens."""
        if self._socket is not None:
            return
        link = socket(AF_UNIX, SOCK_STREAM)
        link.settimeout(min(self._timeout_s, SILENCE_S))
        try:
            link.connect(self._path)
        except OSError as error:
            link.close()
            raise Unreachable(_explain_unreachable(self._path, error)) from error
        if not is_mine(link):
            link.close()
            raise Unreachable(
                f"another user listens at {self._path}: that is not your memd. Set MEMD_HOME or"
                " XDG_RUNTIME_DIR to a directory of your own"
            )
        self._socket = link

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            self._buffer = b""

    def call(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Return the result of a control call, such as `memd/status`.

        Raises what the daemon raised (BadRequest, Broken and their subclasses), Unreachable if it does not run,
        Broken if it did not answer within `timeout_s` seconds, or sooner if it does not even answer a ping, BadRequest if
        the call is too large to send.
        """
        self._call_id += 1
        request = {
            "jsonrpc": "2.0",
            "id": self._call_id,
            "method": method,
            "params": dict(params or {}),
        }
        line = json.dumps(request).encode("ascii")
        if len(line) > LINE_BYTES_MAX:
            raise BadRequest(
                f"{method} has {len(line)} bytes, more than the {LINE_BYTES_MAX} of a message;"
                " send less at once, in several calls"
            )
        is_new = self._socket is None or self._call_id == 1
        self.connect()
        deadline = time.monotonic() + self._timeout_s
        try:
            if is_new and self._preface:
                said = json.dumps({"memd": _PREFACE_VERSION, **self._preface})
                self._send(said.encode("ascii") + b"\n", deadline)
            self._send(line + b"\n", deadline)
            return self._read_result(deadline)
        except TimeoutError as error:
            self.close()
            raise Broken(f"memd did not answer {method} within {self._timeout_s:g} s") from error
        except OSError as error:
            self.close()
            raise Unreachable(
                f"the connection to memd broke: {os.strerror(error.errno or 0)}"
            ) from error

    def _send(self, data: bytes, deadline: float) -> None:
        assert self._socket is not None
        self._socket.settimeout(min(_seconds_left(deadline), 2 * SILENCE_S))
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            # The daemon may have sent the reason before it closed the connection.
            return

    def _read_result(self, deadline: float) -> Any:
        while True:
            answer = self._read_answer(deadline)
            if answer.get("id") not in {self._call_id, None}:
                continue  # the answer to a call that timed out
            if "error" in answer:
                raise _make_error(answer["error"])
            return answer.get("result")

    def _read_answer(self, deadline: float) -> dict[str, Any]:
        assert self._socket is not None
        pieces = [self._buffer]
        while b"\n" not in pieces[-1]:
            chunk = self._receive(deadline)
            if not chunk:
                self.close()
                raise Unreachable("memd hung up without an answer")
            pieces.append(chunk)
        line, _, self._buffer = b"".join(pieces).partition(b"\n")
        try:
            answer = json.loads(line)
        except ValueError as error:
            self.close()
            raise Broken("what answers on the socket does not speak JSON") from error
        return answer if isinstance(answer, dict) else {}

    def _receive(self, deadline: float) -> bytes:
        """Wait for bytes as long as the daemon lives. One that works on a call answers a ping on another connection meanwhile."""
        assert self._socket is not None
        while True:
            self._socket.settimeout(min(_seconds_left(deadline), SILENCE_S))
            try:
                return self._socket.recv(_CHUNK_BYTES)
            except TimeoutError:
                if deadline > time.monotonic() and not self._answers_ping():
                    self.close()
                    raise Broken(_HANGS) from None

    def _answers_ping(self) -> bool:
        probe = socket(AF_UNIX, SOCK_STREAM)
        probe.settimeout(SILENCE_S)
        try:
            probe.connect(self._path)
            probe.sendall(PING)
            probe.recv(1)
        except (BlockingIOError, TimeoutError):
            return False
        except OSError:
            return True  # it has ended: the call's own connection says so
        finally:
            probe.close()
        return True


def _seconds_left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _make_error(answer: Any) -> MemdError:
    """Return the error that the daemon raised."""
    answer = answer if isinstance(answer, dict) else {}
    message = str(answer.get("message") or Broken.__doc__)
    data = answer.get("data")
    name = data.get("error") if isinstance(data, dict) else None
    kind = getattr(errors, name, None) if isinstance(name, str) else None
    if isinstance(kind, type) and issubclass(kind, MemdError):
        return kind(message)
    return Broken(message) if answer.get("code") == _SERVER_ERROR else BadRequest(message)


def _explain_unreachable(path: str, error: OSError) -> str:
    if isinstance(error, FileNotFoundError | ConnectionRefusedError):
        return Unreachable.__doc__ or ""
    return f"memd cannot be reached at {path}: {os.strerror(error.errno or 0) if error.errno else error}"
