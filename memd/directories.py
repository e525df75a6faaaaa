"""Paths of directories by their text alone, of this system and of Windows. Pure.

A session may come from another machine, whose paths cannot be looked up here.
"""

import ntpath

PATH_CHARACTERS_MAX = 4_096
"""No system has longer paths, and no request takes them."""
_BACKSLASH = "\\"


def is_below(directory: str, place: str) -> bool:
    """Whether a directory is this place or in it, by its name."""
    if is_windows_path(directory) and is_windows_path(place):
        directory, place = (
            normalize_windows_path(path).replace(_BACKSLASH, "/") for path in (directory, place)
        )
    return f"{directory}/".startswith(f"{place.rstrip('/')}/")


def is_directory_path(text: str) -> bool:
    """Whether a text is an absolute path, of this system or of Windows, that a directory may have."""
    is_absolute = text.startswith("/") or is_windows_path(text)
    return is_absolute and len(text) <= PATH_CHARACTERS_MAX and "\0" not in text


def is_windows_path(path: str) -> bool:
    r"""Whether a path is an absolute one of Windows: `D:\x`, `d:/x`, `\\server\share\x`."""
    has_drive = path[1:3] in (":\\", ":/") and path[0].isascii() and path[0].isalpha()
    return has_drive or path.startswith("\\\\")


def normalize_windows_path(path: str) -> str:
    r"""Return an absolute path of Windows in its usual form, by its text alone: `d:/x/../y` is `D:\y`.

    Paths of another machine cannot be looked up, and `pathlib` would take them for relative ones.
    """
    path = path.replace("/", _BACKSLASH)
    if path[:8].upper() == "\\\\?\\UNC\\":
        path = "\\\\" + path[8:]
    elif path[:4] in ("\\\\?\\", "\\\\.\\"):
        path = path[4:]
    path = ntpath.normpath(path)
    return path[:1].upper() + path[1:]
