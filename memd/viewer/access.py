"""Access to the pages: one-time tokens, keys, and which requests are answered at all.

The address that `memd view` prints has a token in its fragment, which no browser sends to a server. The page
exchanges it once, by POST, for a key, keeps that in sessionStorage and sends it as a header. There is no cookie:
cookies do not tell ports apart, so any other server on this machine would get it (RFC 6265, 8.5). A request must
name exactly this server as its host, so that no other name can be bound to it (DNS rebinding), and must come from
its own pages.
"""

import hmac
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

HOST = "127.0.0.1"
KEY_HEADER = "memd-key"
RETRY_HEADER = "memd-retry"
"""On a request that a page repeats by itself: it does not keep the viewer running."""
FRAGMENTS = "/_"
ACTION_PATH = "/do"
_BODY_BYTES_MAX = 1024 * 1024
_KEYS_MAX = 100
CONNECTIONS_MAX = 256
"""At once; a process may often have 1,024 files open, and every user of the machine can connect."""
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(eq=False)
class Keyring:
    """The tokens that were given out and the keys that they were exchanged for."""

    tokens: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)

    def issue_token(self) -> str:
        """A new token; the ones before hold no longer."""
        self.tokens = [secrets.token_urlsafe(32)]
        return self.tokens[0]

    def redeem(self, token: str) -> str | None:
        """The key for a token, which is void from now on; None if it is none, or was redeemed."""
        if not _contains(self.tokens, token):
            return None
        self.tokens = []
        key = secrets.token_urlsafe(32)
        self.keys = [*self.keys, key][-_KEYS_MAX:]
        return key

    def has_key(self, key: str) -> bool:
        """Return whether this is a valid key."""
        return _contains(self.keys, key)


def _contains(known: Iterable[str], given: str) -> bool:
    """Compare with each in constant time."""
    offered = given.encode("utf-8", "replace")
    return sum(hmac.compare_digest(one.encode(), offered) for one in known) > 0


@dataclass(eq=False)
class Gatekeeper:
    """The ASGI application around the pages: refuses what may not pass, and sets the headers of every answer."""

    app: ASGIApp
    keyring: Keyring
    port: int
    on_visit: Callable[[], None]
    """Called for each request of a page that has a key."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(SECURITY_HEADERS)
            await send(message)

        headers = Headers(scope=scope)
        status, refusal = self._find_refusal(scope, headers)
        app: ASGIApp = self.app
        if refusal:
            app = PlainTextResponse(refusal + "\n", status)
        elif _needs_key(scope["path"]) and RETRY_HEADER not in headers:
            self.on_visit()
        await app(scope, receive, send_safely)

    def _find_refusal(self, scope: Scope, headers: Headers) -> tuple[int, str]:
        """(status, why) of a request that may not pass; (200, nothing) otherwise."""
        if headers.getlist("host") != [f"{HOST}:{self.port}"]:
            return 421, "This server has another name."
        method, path = scope["method"], scope["path"]
        if method not in {"GET", "HEAD", "POST"}:
            return 405, "Only GET and POST."
        if not _is_from_here(method, path, headers, f"http://{HOST}:{self.port}"):
            return 403, "This request comes from another page."
        length = headers.get("content-length", "0")
        is_bounded = length.isascii() and length.isdigit() and int(length) <= _BODY_BYTES_MAX
        if method == "POST" and (not is_bounded or "transfer-encoding" in headers):
            return 413, "Too much at once."
        if _needs_key(path) and not self.keyring.has_key(headers.get(KEY_HEADER, "")):
            return 401, "No key, or one of an earlier `memd view`."
        return 200, ""


def _needs_key(path: str) -> bool:
    return path.startswith((f"{FRAGMENTS}/", f"{ACTION_PATH}/"))


def _is_from_here(method: str, path: str, headers: Headers, own: str) -> bool:
    """Return whether a request is made by a page of this server, or by the user.

    The start page may also be opened from elsewhere, as by the file that `memd view` hands to the browser: it is the
    same for everyone and knows nothing.
    """
    origins = headers.getlist("origin")
    if origins not in ([], [own]) or (method == "POST" and not origins):
        return False
    site = headers.get("sec-fetch-site", "none" if method == "GET" else "same-origin")
    if site == "same-origin" or (site == "none" and method != "POST"):
        return True
    is_opening = (
        headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    )
    return method == "GET" and path == "/" and is_opening


class BoundedConnection(H11Protocol):
    """A connection of a browser; one too many ends the one that was silent longest, so that nobody keeps others out."""

    latest: "dict[BoundedConnection, None]"
    """All connections, the one that was seen last at the end; a server has a subclass with a dict of its own."""

    def connection_made(self, transport: Any) -> None:
        """Take a connection."""
        super().connection_made(transport)
        self.latest[self] = None
        if len(self.latest) > CONNECTIONS_MAX:
            silent = next(iter(self.latest))
            del self.latest[silent]
            silent.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        self.latest.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Note that it was seen."""
        if self.latest.pop(self, self) is None:
            self.latest[self] = None
        super().data_received(data)


def bound_connections() -> type[BoundedConnection]:
    """The protocol of one server."""
    return type("Connection", (BoundedConnection,), {"latest": {}})
