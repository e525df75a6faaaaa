"""One bounded HTTP request to a model server; network, HTTP and JSON errors become EngineFailed.

Memories leave this machine only if the settings allow it, so there is no proxy, no redirect and no other
host. The caller sets deadlines: cancelling its scope closes the connection. Most daemons have no such server: httpx, four
megabytes, is imported when something listens there.
"""

import importlib
import ipaddress
import json
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

import anyio
import anyio.to_thread

from memd import __version__
from memd.embeddings.base import TextsRefused
from memd.errors import ConfigError, EngineAbsent, EngineFailed
from memd.text import one_line

if TYPE_CHECKING:
    import httpx

REPLY_BYTES = 32 * 1024 * 1024
"""64 vectors of 4,096 numbers are some 6 MB."""
_CONNECT_S = 2.0
_PARSED_INLINE_BYTES = 64 * 1024
"""A larger reply is parsed in a thread: a megabyte of JSON blocks the event loop for 15 ms."""
_REASON_CHARACTERS = 200
_TOO_LONG = re.compile(
    r"context (?:length|size|window)|too (?:large|long)|larger than|maximum .*tokens", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Reply:
    """A server's reply."""

    status: int
    value: Any
    """The parsed JSON; None if an error status came without JSON."""

    @property
    def reason(self) -> str:
        """The reason that the server refused, in its own words if it gave any."""
        said = self.value if isinstance(self.value, dict) else {}
        error = said.get("message") if said.get("error") is None else said["error"]
        if isinstance(error, dict):
            error = error.get("message")
        reason = one_line(error, _REASON_CHARACTERS) if isinstance(error, str) else ""
        return reason or f"HTTP status {self.status}"

    def refusal(self) -> TextsRefused | None:
        """Return why the server refuses these texts, None if it accepted them.

        Raises EngineFailed if it would have refused any others, too.
        """
        if self.status == HTTPStatus.OK:
            return None
        is_length = bool(_TOO_LONG.search(self.reason))
        if is_length or self.status in (400, 500):
            return TextsRefused(self.reason, is_length=is_length)
        raise EngineFailed(f"the server of the model refused: {self.reason}")


class ModelServer:
    """A server at a base URL. Connections are reused until `close`."""

    def __init__(self, url: str, *, is_remote_allowed: bool, key: str = "") -> None:
        self.url = checked_url(url, is_remote_allowed=is_remote_allowed)
        if not key.isascii() or not key.isprintable():
            raise ConfigError("engines.api_key_env: the key in it has characters no header takes")
        self._headers = {"accept-encoding": "identity", "user-agent": f"memd/{__version__}"}
        if key:
            self._headers["authorization"] = f"Bearer {key}"
        self._client: httpx.AsyncClient | None = None
        self._is_closed = False

    async def ask(self, path: str, body: Mapping[str, Any] | None = None) -> Reply:
        """Return what the server answers: to a POST if there is a body, else to a GET.

        Raises EngineAbsent if nothing listens there, EngineFailed for any other error on the way.
        """
        if self._is_closed:
            raise EngineFailed("the daemon is about to leave")
        client = self._client or await self._open_client()
        import httpx  # noqa: PLC0415  # `_open_client` has imported it

        try:
            # ASCII: half of a surrogate pair, which UTF-8 cannot say, must not stop a batch.
            content = None if body is None else json.dumps(body).encode("ascii")
            async with client.stream(
                "GET" if content is None else "POST",
                self.url + path,
                content=content,
                headers={"content-type": "application/json"} if content else None,
            ) as response:
                raw = await self._read_body(response)
        except httpx.ConnectError as error:
            raise EngineAbsent(f"nothing answers at {self.url}") from error
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            reason = one_line(str(error), _REASON_CHARACTERS) or type(error).__name__
            raise EngineFailed(f"{self.url} broke off: {reason}") from error
        return Reply(response.status_code, await self._parse_json(raw, response.status_code))

    async def _read_body(self, response: "httpx.Response") -> bytes:
        whole = bytearray()
        async for piece in response.aiter_bytes():
            whole += piece
            if len(whole) > REPLY_BYTES:
                raise EngineFailed(f"{self.url} sent more than {REPLY_BYTES >> 20} MiB")
        return bytes(whole)

    async def _parse_json(self, raw: bytes, status: int) -> Any:
        try:
            if len(raw) > _PARSED_INLINE_BYTES:
                return await anyio.to_thread.run_sync(json.loads, raw)
            return json.loads(raw)
        except (ValueError, RecursionError) as error:
            if status < HTTPStatus.BAD_REQUEST:
                raise EngineFailed(f"{self.url} answered something that is not JSON") from error
            return None

    async def _open_client(self) -> "httpx.AsyncClient":
        """Return the client; the certificates for https are read in a thread. Raises as `ask` does."""
        await self._find_listener()
        httpx = await anyio.to_thread.run_sync(importlib.import_module, "httpx")
        is_tls = self.url.startswith("https:")
        # For plain http an empty one, so that httpx does not read its list of certificates from disk.
        context = (
            await anyio.to_thread.run_sync(partial(httpx.create_ssl_context, trust_env=False))
            if is_tls
            else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        )
        if self._client is None:
            self._client = httpx.AsyncClient(
                headers=self._headers,
                verify=context,
                trust_env=False,
                follow_redirects=False,
                timeout=httpx.Timeout(None, connect=_CONNECT_S),
            )
        return self._client

    async def _find_listener(self) -> None:
        parts = urlsplit(self.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        try:
            with anyio.fail_after(_CONNECT_S):
                found = await anyio.connect_tcp(parts.hostname or "", port)
                await found.aclose()
        except TimeoutError:
            raise EngineFailed(f"{self.url} broke off: it lets nobody in") from None
        except OSError as error:
            raise EngineAbsent(f"nothing answers at {self.url}") from error

    async def close(self) -> None:
        """Close every connection; requests fail until `reopen`."""
        self._is_closed = True
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def reopen(self) -> None:
        """Allow requests again after `close`."""
        self._is_closed = False


def checked_url(url: str, *, is_remote_allowed: bool) -> str:
    """Return a base URL without its last slash. Raises ConfigError, naming the key that is wrong."""
    try:
        parts = urlsplit(url)
        is_whole = parts.port != 0 and bool(parts.hostname)
    except ValueError:
        parts, is_whole = SplitResult("", "", "", "", ""), False
    if parts.scheme not in ("http", "https") or not is_whole or parts.query or parts.fragment:
        raise ConfigError(f"engines.url: {url!r} is not like http://127.0.0.1:11434")
    if not is_remote_allowed and not _is_loopback(parts.hostname or ""):
        raise ConfigError(
            f"engines.url: {parts.hostname} is not this machine; what is remembered goes there only"
            " with engines.remote = true"
        )
    return url.rstrip("/")


def _is_loopback(host: str) -> bool:
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
