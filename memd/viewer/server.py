"""The server of `memd view`: every address and action with its function, the calls of the daemon, and when it ends.

Every address of a page answers with the same empty shell, which knows nothing and needs no key. Its script asks for the
content below `/_`, with the key, so an address can be linked and reloaded while the key never stands in one.
"""

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from memd.client import Client
from memd.errors import BadRequest, MemdError, UnknownId, Unreachable
from memd.viewer import changes, health, home, memory, search, sessions, static, timeline
from memd.viewer.access import ACTION_PATH, FRAGMENTS, HOST, Gatekeeper, Keyring, bound_connections
from memd.viewer.templates import render_page, reveal
from memd.viewer.visit import Fields, Json, Page, Visit

PAGES: Mapping[str, Callable[[Visit], Page]] = {
    "/": home.show_home,
    "/inbox": home.show_inbox,
    "/rejected": home.show_rejected,
    "/memories": home.show_memories,
    "/search": search.show_search,
    "/whynot": search.show_why_not,
    "/timeline": timeline.show_timeline,
    "/memory/{id}": memory.show_memory,
    "/memory/{id}/forget": changes.show_forget,
    "/memory/{id}/edit": changes.show_edit,
    "/memory/{id}/take-back": changes.show_undo_edit,
    "/memory/{id}/pin": changes.show_pin,
    "/memory/{id}/judge": changes.show_choose_other,
    "/judge": changes.show_judge,
    "/judge/{id}/{other}": changes.show_judge,
    "/node": memory.show_node,
    "/sessions": sessions.show_sessions,
    "/session/{key}": sessions.show_session,
    "/session/{key}/forget": changes.show_forget_session,
    "/told": sessions.show_told,
    "/context": sessions.show_context,
    "/projects": health.show_projects,
    "/project/rename": health.show_rename,
    "/project/merge": health.show_merge,
    "/unmerge": health.show_unmerge,
    "/project/switch": health.show_switch,
    "/project": health.show_project,
    "/health": health.show_health,
    "/run/{run}": health.show_undo_run,
    "/forget": changes.show_forget_words,
    "/scrub": changes.show_scrub,
}
"""Path → what it shows."""
PARTS: Mapping[str, Callable[[Visit], str]] = {
    "/part/activity": timeline.show_recent_activity,
    "/part/doctor": health.render_findings,
    "/part/session/{key}": static.write_session_file,
}
"""Path → what a page fetches after it is shown, because it takes longer."""
ACTIONS: Mapping[str, Callable[[Visit, Fields], Json]] = {
    "forget-preview": changes.preview_forget_words,
    "forget": changes.forget,
    "scrub-preview": changes.preview_scrub,
    "scrub": changes.scrub,
    "review": home.review,
    "edit": changes.edit,
    "take-back": changes.take_back,
    "pin": changes.pin,
    "judge": changes.judge,
    "rename": health.rename,
    "merge": health.merge,
    "unmerge": health.unmerge,
    "switch": health.switch,
    "undo": health.undo_run,
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
            *(Route(FRAGMENTS + path, self._answer(show)) for path, show in PAGES.items()),
            *(Route(FRAGMENTS + path, self._answer(write)) for path, write in PARTS.items()),
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
            ws="none", http=bound_connections(), backlog=_BACKLOG, server_header=False, timeout_graceful_shutdown=2, h11_max_incomplete_event_size=64 * 1024,
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

    def _answer(self, make: Callable[[Visit], Page | str]) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            asked = dict(request.query_params), dict(request.path_params)
            return await run_in_threadpool(self._reply, lambda visit: _pack(make(visit)), *asked)

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
            return JSONResponse({**_pack(page), "error": reveal(error.message)}, status)

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
        return JSONResponse(_pack(page), 404)


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


def _pack(made: Page | str) -> Json:
    """What the script of a page gets."""
    return {"html": made} if isinstance(made, str) else {"title": made.title, "html": made.content}


def _begin_visit(visit: Visit, client: Client) -> Visit:
    """The visit with a daemon that it can ask, and the projects that there are."""

    def call(method: str, **params: Any) -> Json:
        result: Json = client.call(
            method, {name: value for name, value in params.items() if value is not None}
        )
        return result

    names = call("memd/projects", counts=False)["projects"]
    return replace(visit, call=call, projects=names)


def _show_message(visit: Visit, title: str, words: str = "", *, comes_back: bool = False) -> Page:
    return render_page(
        visit, "message.html", title, words=words, comes_back=comes_back, heading=title
    )


def _explain_error(visit: Visit, error: MemdError) -> tuple[Page, int]:
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
