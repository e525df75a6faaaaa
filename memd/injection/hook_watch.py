"""The words for which a hook asks before a tool runs: a small file for each session. Standard library only.

Every tool call of a client starts the hook that may hold it up. It asks the daemon only if the call has all words of one
row of its session's file, else it ends at once; without the file it does not even read what the call is. The daemon writes
the file (`memd.injection.guard`); `hook.sh` reads it in the shell, `hook_event.py` with `is_watched`.
"""

import os

_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
_WORD = _NAME | frozenset(".")
_AGE_MAX_S = 7 * 86_400
"""A session without an event for this long is over."""


def watch_dir(socket: str) -> str:
    """Return the directory of the files, beside the socket: nobody else can enter it."""
    return socket + ".watch"


def find_watch(socket: str, session: str) -> str | None:
    """Return the file of a session; None if its name cannot be one."""
    if not session or not _NAME.issuperset(session):
        return None
    return f"{watch_dir(socket)}/{session}"


def write_watch(socket: str, session: str, rows: "tuple[tuple[str, ...], ...]") -> None:
    """Let the hook ask for calls that have all words of one of these rows; without rows for none.

    Words that JSON could write in another way are left out; a row without any is asked for at every call.
    """
    path = find_watch(socket, session)
    if path is None:
        return
    lines = [" ".join(word for word in row if word and _WORD.issuperset(word)) for row in rows]
    text = "".join(f"{line}\n" for line in sorted(set(lines)))
    if text == _read(path):
        return
    if not text:
        os.unlink(path)
        return
    os.makedirs(watch_dir(socket), 0o700, exist_ok=True)
    draft = f"{path}.{os.getpid()}.new"
    with open(draft, "w", encoding="ascii") as file:
        file.write(text)
    os.replace(draft, path)


def drop_old(socket: str, now_s: float) -> None:
    """Remove the files of sessions that are over."""
    place = watch_dir(socket)
    try:
        names = os.listdir(place)
    except OSError:
        return
    for name in names:
        path = f"{place}/{name}"
        try:
            if now_s - os.stat(path).st_mtime > _AGE_MAX_S:
                os.unlink(path)
        except OSError:
            continue


def is_watched(socket: str, session: str, payload: str) -> bool:
    """Return whether the hook has to ask the daemon about a call."""
    path = find_watch(socket, session)
    text = _read(path) if path else ""
    return any(all(word in payload for word in row.split()) for row in text.splitlines())


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except (OSError, ValueError):
        return ""
