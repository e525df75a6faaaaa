"""`memd view`: show in a browser what memd knows. The page is served by this process, on 127.0.0.1, until it ends."""

import contextlib
import os
import signal
import sys
import threading
import time
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer import Option

from memd.cli import daemon_call, output
from memd.errors import BadRequest

if TYPE_CHECKING:
    from memd.viewer.server import Viewer

_ALL = "all"


def run_view(  # noqa: PLR0913  # one parameter per option
    *,
    project: str | None = Option(
        None, help="Show this first: a name, a directory, or all. Default: this directory."
    ),
    edit: bool = Option(
        False, "--edit", help="Allow to forget, edit, pin, judge, rename, merge, switch."
    ),
    port: int = Option(0, min=0, max=65535, help="The port on 127.0.0.1. Default: any free one."),
    no_open: bool = Option(False, "--no-open", help="Open no browser; only print the link."),
    static: str | None = Option(
        None, metavar="FILE", help="Write one page that needs no server to this new file, and end."
    ),
    query: str | None = Option(None, help="With --static: the answer to this question."),
    session: str | None = Option(None, help="With --static: this session, by its id."),
) -> None:
    """Look at what memd knows in a browser. Ends with Ctrl-C, with its terminal, or after ten idle minutes.

    The link holds a token that works once. Nobody else on this machine or in the network sees the pages.
    Over SSH: ssh -L PORT:127.0.0.1:PORT, with --port PORT.
    """
    from memd.viewer.server import Viewer, ViewSettings

    if edit and daemon_call.find_agent():
        daemon_call.fail(
            "--edit changes memories as the user's word; run it in a shell of your own"
        )
    if static is None and (query is not None or session is not None):
        daemon_call.fail("--query and --session go with --static; the page has both")
    shown = _find_project(project)
    settings = ViewSettings(daemon_call.paths().socket, shown, _now, may_edit=edit, port=port)
    if static is not None:
        _write_static(settings, static, query or "", session or "")
        return
    try:
        viewer = Viewer(settings)
    except OSError as error:
        daemon_call.fail(f"port {port} cannot be had ({error.strerror}); leave --port out")
    ended = _listen_for_signals()  # before somebody who reads the link can send one
    address = viewer.make_address()
    print(f"memd view shows {output.one_line(shown)} at\n\n    {address}\n", flush=True)
    has_terminal = sys.stdin.isatty()
    another = " Enter prints another one." if has_terminal else ""
    print(f"The link works once.{another} Ctrl-C ends it.", flush=True)
    with contextlib.ExitStack() as stack:
        if not no_open:
            _open_browser(stack, viewer)
        if has_terminal:
            # Otherwise waiting for Enter would stop a viewer that is put in the background.
            signal.signal(signal.SIGTTIN, signal.SIG_IGN)
            threading.Thread(target=_print_links, args=(viewer,), daemon=True).start()
        viewer.run(ended.is_set)


def _find_project(named: str | None) -> str:
    """The project to show first; all of them where the directory has none that is known."""
    if named is not None and named != _ALL:
        found = daemon_call.call("memd/project", project=daemon_call.read_project(named))
    elif named == _ALL:
        return _ALL
    else:
        try:
            found = daemon_call.call("memd/project", directory=daemon_call.current_directory())
        except BadRequest:
            return _ALL
    if not found["is_known"]:
        if named is not None:
            daemon_call.fail(f"nothing is known of {found['key']}; see `memd project list`")
        return _ALL
    return str(found["key"])


def _listen_for_signals() -> threading.Event:
    """Set when the viewer is to end: by Ctrl-C, by being told, or because its terminal was closed."""
    ended = threading.Event()
    # The server has handlers of its own, and passes each signal on when it has ended.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: ended.set())
    return ended


def _print_links(viewer: "Viewer") -> None:
    """Print a new link for each line that is entered; the link before holds no longer."""
    with contextlib.suppress(OSError):  # in the background nothing can be entered
        for _ in sys.stdin:
            print(f"    {viewer.make_address()}", flush=True)


def _open_browser(stack: contextlib.ExitStack, viewer: "Viewer") -> None:
    """Open the page in a browser, if there is one.

    The token is not an argument of the browser's process, which other users of the machine can read: a file that only
    the user can read leads to it.
    """
    if not _has_browser():
        return
    folder = Path(daemon_call.paths().socket).parent
    file = folder / f"view-{os.getpid()}.html"
    stack.callback(file.unlink, missing_ok=True)
    address = viewer.keyring.tokens[0]
    target = f"http://127.0.0.1:{viewer.port}/#token={address}"
    page = (
        '<!doctype html><meta charset="utf-8"><title>memd</title>'
        f'<meta http-equiv="refresh" content="0;url={target}">'
    )
    with contextlib.suppress(OSError):
        _write_private(file, page)
        webbrowser.open(file.as_uri())


def _has_browser() -> bool:
    """Return whether a browser with a window can be opened here; one in the terminal would take the terminal."""
    if sys.platform != "darwin" and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    ):
        return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


def _write_private(file: Path, text: str) -> None:
    """Write a file that only the user can read; one that an earlier process has left is replaced."""
    file.unlink(missing_ok=True)
    made = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(made, "w", encoding="utf-8") as stream:
        stream.write(text)


def _write_static(settings: Any, file: str, query: str, session: str) -> None:
    from memd.cli.archive import STDOUT, open_new_file
    from memd.viewer.server import connect
    from memd.viewer.static import write_page

    with open_new_file(file) as write:
        with connect(settings) as visit:
            page = write_page(visit, query, session).encode()
        write(page)
    if file != STDOUT:
        print(f"{output.one_line(file)}: {output.format_size(len(page))}; only you can read it")


def _now() -> int:
    return time.time_ns() // 1_000_000
