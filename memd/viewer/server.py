"""The server of `memd view`: who has access, every address and action with its function, and when it ends.

Every address of a page answers with the same empty shell, which knows nothing and needs no key. Its script asks for the
content below `/_`, with the key, so an address can be linked and reloaded while the key never stands in one.

The address that `memd view` prints has a token in its fragment, which no browser sends to a server. The page
exchanges it once, by POST, for a key, keeps that in sessionStorage and sends it as a header. There is no cookie:
cookies do not tell ports apart, so any other server on this machine would get it (RFC 6265, 8.5). A request must
name exactly this server as its host, so that no other name can be bound to it (DNS rebinding), and must come from
its own pages.
"""

import contextlib
import hmac
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from memd.client import Client
from memd.errors import BadRequest, MemdError, UnknownId, Unreachable
from memd.viewer import memory, overview, search, static
from memd.viewer.page import Fields, Json, Page, Visit, make_page, render_page, reveal

# ── Access ────────────────────────────────────────────────────────────────────────────────────────

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


PAGES: Mapping[str, tuple[Callable[[Visit], Page], str, str]] = {
    "/": (overview.show_home, "home.html", "/"),
    "/inbox": (overview.show_inbox, "inbox.html", "/inbox"),
    "/rejected": (overview.show_rejected, "rejected.html", "/inbox"),
    "/memories": (overview.show_memories, "memories.html", "/"),
    "/search": (search.show_search, "search.html", "/search"),
    "/whynot": (search.show_why_not, "why_not.html", "/search"),
    "/timeline": (search.show_timeline, "timeline.html", "/timeline"),
    "/memory/{id}": (memory.show_memory, "memory.html", ""),
    "/memory/{id}/forget": (memory.show_forget, "forget.html", ""),
    "/memory/{id}/edit": (partial(memory.show_one, change="Edit"), "edit.html", ""),
    "/memory/{id}/take-back": (memory.show_undo_edit, "take_back.html", ""),
    "/memory/{id}/pin": (partial(memory.show_one, change="Pin"), "pin.html", ""),
    "/memory/{id}/judge": (partial(memory.show_one, change="Judge"), "choose_other.html", ""),
    "/judge": (memory.show_judge, "judge.html", ""),
    "/judge/{id}/{other}": (memory.show_judge, "judge.html", ""),
    "/node": (memory.show_node, "node.html", ""),
    "/sessions": (overview.show_sessions, "sessions.html", "/sessions"),
    "/session/{key}": (overview.show_session, "session.html", "/sessions"),
    "/session/{key}/forget": (memory.show_forget_session, "forget.html", ""),
    "/told": (overview.show_told, "told.html", "/told"),
    "/context": (overview.show_context, "context.html", "/sessions"),
    "/projects": (overview.show_projects, "projects.html", "/projects"),
    "/project/rename": (overview.show_rename, "rename.html", "/projects"),
    "/project/merge": (overview.show_merge, "merge.html", "/projects"),
    "/unmerge": (overview.show_unmerge, "unmerge.html", "/projects"),
    "/project/switch": (overview.show_switch, "switch.html", "/projects"),
    "/project": (overview.show_project, "project.html", "/projects"),
    "/health": (overview.show_health, "health.html", "/health"),
    "/run/{run}": (overview.show_undo_run, "undo_run.html", "/health"),
    "/forget": (lambda _: make_page("Forget by words or time"), "forget_words.html", "/health"),
    "/scrub": (lambda _: make_page("Scrub"), "scrub.html", "/health"),
}
"""Path → what it shows, by which template, and the path of its link in the head."""
PARTS: Mapping[str, Callable[[Visit], str]] = {
    "/part/activity": search.show_recent_activity,
    "/part/doctor": overview.render_findings,
    "/part/session/{key}": static.write_session_file,
}
"""Path → what a page fetches after it is shown, because it takes longer."""
ACTIONS: Mapping[str, Callable[[Visit, Fields], Json]] = {
    "forget-preview": memory.preview_forget_words,
    "forget": memory.forget,
    "scrub-preview": memory.preview_scrub,
    "scrub": memory.scrub,
    "review": overview.review,
    "edit": memory.edit,
    "take-back": memory.take_back,
    "pin": memory.pin,
    "judge": memory.judge,
    "rename": overview.rename,
    "merge": overview.merge,
    "unmerge": overview.unmerge,
    "switch": overview.switch,
    "undo": overview.undo_run,
}
"""Name of an action → what does it. It answers with `say` and `go`, or with `html`."""
IDLE_S = 600.0
"""Without a request for this long the viewer ends."""
_CALL_S = 120.0
_WATCH_S = 1.0
_BACKLOG = 128


@dataclass(frozen=True, slots=True)
class ViewSettings:
    """Settings with which a viewer was started."""

    socket_path: str
    project: str
    """The project that is shown first: a name, a key, or `all`."""
    clock: Callable[[], int]
    """UTC milliseconds."""
    may_edit: bool = False
    port: int = 0
    idle_s: float = IDLE_S


@dataclass(eq=False)
class Viewer:
    """One viewer: its socket, its keys and its pages."""

    settings: ViewSettings
    keyring: Keyring = field(default_factory=Keyring)
    listening: socket.socket = field(init=False)
    visited_at: float = field(default_factory=time.monotonic)
    _counted: dict[str, tuple[int, int]] = field(default_factory=dict)
    """See `Visit.counted`."""

    def __post_init__(self) -> None:
        self.listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listening.bind((HOST, self.settings.port))
        # From now on a browser may connect; it is answered as soon as the server runs.
        self.listening.listen(_BACKLOG)

    @property
    def port(self) -> int:
        """The port of 127.0.0.1 that it listens on."""
        return int(self.listening.getsockname()[1])

    def make_address(self) -> str:
        """The address of the start page, with a new token."""
        return f"http://{HOST}:{self.port}/#token={self.keyring.issue_token()}"

    def make_app(self) -> Gatekeeper:
        """The application: everything behind the rules of access."""
        routes = [
            Route("/key", self._exchange_token, methods=["POST"]),
            *(
                Route(f"/assets/{name}", _serve_asset(name, media))
                for name, media in _ASSETS.items()
            ),
            *(
                Route(FRAGMENTS + path, self._answer(_make_page(*page)))
                for path, page in PAGES.items()
            ),
            *(
                Route(FRAGMENTS + path, self._answer(_make_part(part)))
                for path, part in PARTS.items()
            ),
            Route(f"{ACTION_PATH}/{{action}}", self._act, methods=["POST"]),
            *(Route(path, _answer_shell) for path in PAGES),
        ]
        app = Starlette(routes=routes, exception_handlers={404: self._answer_unknown})
        return Gatekeeper(app, self.keyring, self.port, self._note_visit)

    def run(self, until: Callable[[], bool] = lambda: False) -> None:
        """Serve until a signal, ten idle minutes, the end of the parent process, or `until`."""
        # Warnings are of what any user of this machine may send here; the user's terminal shows memd's own errors only.
        config = uvicorn.Config(
            self.make_app(), log_config=None, log_level="error", access_log=False, lifespan="off",
            ws="none", http=bound_connections(), backlog=_BACKLOG, server_header=False,
            timeout_graceful_shutdown=2, h11_max_incomplete_event_size=64 * 1024,
        )  # fmt: skip
        server = uvicorn.Server(config)
        ended = threading.Event()

        def watch() -> None:
            parent = os.getppid()
            while not ended.wait(_WATCH_S):
                idle = time.monotonic() - self.visited_at > self.settings.idle_s
                if idle or os.getppid() != parent or until():
                    server.should_exit = True
                    return

        threading.Thread(target=watch, daemon=True).start()
        self._note_visit()
        try:
            server.run(sockets=[self.listening])
        finally:
            ended.set()
            self.listening.close()

    def _note_visit(self) -> None:
        self.visited_at = time.monotonic()

    # ── Requests ─────────────────────────────────────────────────────────────────────────────────

    async def _exchange_token(self, request: Request) -> Response:
        given = _read_json(await request.body())
        key = self.keyring.redeem(str(given.get("token", "")))
        if key is None:
            return JSONResponse(
                {"error": "This link was used already, or is of an earlier `memd view`."}, 403
            )
        self._note_visit()
        return JSONResponse({"key": key})

    def _answer(self, make: Callable[[Visit], Json]) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            asked = dict(request.query_params), dict(request.path_params)
            return await run_in_threadpool(self._reply, make, *asked)

        return answer

    async def _act(self, request: Request) -> Response:
        action = ACTIONS.get(request.path_params["action"])
        if action is None:
            return JSONResponse({"error": "There is no such action."}, 404)
        if not self.settings.may_edit:
            return JSONResponse({"error": "This viewer only reads; start `memd view --edit`."}, 403)
        fields = _read_json(await request.body())
        return await run_in_threadpool(
            self._reply,
            lambda visit: _reveal_said(action(visit, fields)),
            dict(request.query_params),
            {},
        )

    def _reply(
        self, make: Callable[[Visit], Json], params: dict[str, str], places: dict[str, str]
    ) -> Response:
        """The answer to a request, or a page that says why there is none."""
        visit = self._make_visit(params, places)
        try:
            with Client(self.settings.socket_path, _CALL_S) as client:
                return JSONResponse(make(_begin_visit(visit, client)))
        except MemdError as error:
            page, status = _explain_error(visit, error)
            return JSONResponse({**page, "error": reveal(error.message)}, status)

    def _make_visit(self, params: dict[str, str], places: dict[str, str]) -> Visit:
        """A visit that cannot ask the daemon yet."""
        return Visit(
            _call_nothing,
            self.settings.clock(),
            self.settings.project,
            (),
            params,
            places,
            self.settings.may_edit,
            self._counted,
        )

    async def _answer_unknown(self, request: Request, _: Exception) -> Response:
        if not request.url.path.startswith(f"{FRAGMENTS}/"):
            return HTMLResponse(_SHELL, 404)
        page = _show_message(self._make_visit({}, {}), "There is no such page")
        return JSONResponse(page, 404)


_ASSETS = {"page.js": "text/javascript", "style.css": "text/css", "icon.svg": "image/svg+xml"}


def _serve_asset(name: str, media: str) -> Callable[[Request], Any]:
    text = static.load_asset(name)

    async def answer(_: Request) -> Response:
        return Response(text, media_type=media)

    return answer


_SHELL = static.load_asset("shell.html")


async def _answer_shell(_: Request) -> Response:
    return HTMLResponse(_SHELL)


def _reveal_said(answer: Json) -> Json:
    return {**answer, "say": reveal(answer["say"])} if "say" in answer else answer


def _read_json(body: bytes) -> Json:
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}


def _call_nothing(*_: object, **__: object) -> Json:
    raise Unreachable


def _make_page(
    show: Callable[[Visit], Page], template: str, section: str
) -> Callable[[Visit], Json]:
    return lambda visit: render_page(visit, template, section, show(visit))


def _make_part(write: Callable[[Visit], str]) -> Callable[[Visit], Json]:
    return lambda visit: {"html": write(visit)}


def _begin_visit(visit: Visit, client: Client) -> Visit:
    """The visit with a daemon that it can ask, and the projects that there are."""

    def call(method: str, **params: Any) -> Json:
        result: Json = client.call(
            method, {name: value for name, value in params.items() if value is not None}
        )
        return result

    names = call("memd/projects", counts=False)["projects"]
    return replace(visit, call=call, projects=names)


def _show_message(visit: Visit, title: str, words: str = "", *, comes_back: bool = False) -> Json:
    page = make_page(title, words=words, comes_back=comes_back, heading=title)
    return render_page(visit, "message.html", "", page)


def _explain_error(visit: Visit, error: MemdError) -> tuple[Json, int]:
    """(a page that says what is wrong, its status); 503 makes the page try again by itself."""
    if isinstance(error, Unreachable):
        return _show_message(visit, "memd is not there", error.message, comes_back=True), 503
    status = 404 if isinstance(error, UnknownId) else 400 if isinstance(error, BadRequest) else 500
    title = "That is not there" if status == 404 else "That does not work"  # noqa: PLR2004  # as above
    return _show_message(visit, title, error.message), status


@contextlib.contextmanager
def connect(settings: ViewSettings) -> Iterator[Visit]:
    """A visit of no page in particular."""
    with Client(settings.socket_path, _CALL_S) as client:
        yield _begin_visit(Visit(_call_nothing, settings.clock(), settings.project), client)
