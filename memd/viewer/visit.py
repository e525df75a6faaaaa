"""The parts of a request that a page needs, what a form has sent, and the page that answers."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, urlencode

from memd.errors import BadRequest

ALL_PROJECTS = "all"
Json = dict[str, Any]
Calling = Callable[..., Json]
"""Makes one control call: its method, and parameters by name; those that are None are left out."""
Fields = Mapping[str, Any]
"""What a form has sent."""
_NUMBER_DIGITS_MAX = 15
_LOCAL = re.compile(r"#[\w-]*|/(?![/\\])[^\x00-\x20\\]*")
"""An address on this server, or a place on this page."""


def read_number(text: str) -> int | None:
    """A number as people write it, 12 or #12; None if it is none."""
    digits = text.strip().removeprefix("#")
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= _NUMBER_DIGITS_MAX
    return int(digits) if is_number else None


def read_text(fields: Fields, name: str) -> str:
    """A field's text, empty if it was not sent; BadRequest if it is none."""
    value = fields.get(name, "")
    if not isinstance(value, str):
        raise BadRequest(f"{name}: a text")
    return value.strip()


def read_field_number(fields: Fields, name: str) -> int:
    """A field's number; BadRequest if it is none."""
    found = read_number(str(fields.get(name, "")))
    if found is None:
        raise BadRequest(f"{name}: a number")
    return found


@dataclass(frozen=True, slots=True)
class Page:
    """A page: the title of the window, and its HTML."""

    title: str
    content: str


@dataclass(frozen=True, slots=True)
class Visit:
    """One request of a page."""

    call: Calling
    now: int
    """UTC milliseconds."""
    home_project: str
    """The project that is shown if an address names none: that of the directory, or all."""
    projects: Sequence[Json] = ()
    """Every project, without counts."""
    params: Mapping[str, str] = field(default_factory=dict)
    """The parameters of the address."""
    places: Mapping[str, str] = field(default_factory=dict)
    """The parts of the path that name something, such as `id`."""
    may_edit: bool = False
    counted: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Project → the most memories that this viewer has counted to hold in it, and when."""

    @property
    def project(self) -> str:
        """The project that is shown: a name, a key, or `all`."""
        return self.params.get("project") or self.home_project

    @property
    def key(self) -> str:
        """The key of the project that is shown; what the address calls it if that means none, or several."""
        named = [one["key"] for one in self.projects if self.project in {one["key"], one["name"]}]
        return named[0] if len(named) == 1 else self.project

    def link(self, path: str, **params: object) -> str:
        """An address on this server in the same project; parameters that are None or empty are left out.

        ValueError for an address that is not of this server.
        """
        given = {
            key.rstrip("_"): value
            for key, value in params.items()
            if value not in {None, "", False}
        }
        if self.project != self.home_project:
            given.setdefault("project", self.project)
        if given.get("project") == self.home_project:
            del given["project"]
        address = quote(path) + (f"?{urlencode(given)}" if given else "")
        if not _LOCAL.fullmatch(address):
            raise ValueError(f"it leads elsewhere: {address[:80]!r}")
        return address

    def same_page(self, path: str, **changes: object) -> str:
        """The same page's address with other parameters."""
        return self.link(path, **{**self.params, **changes})

    def number(self, name: str) -> int:
        """A number in the path or the parameters; BadRequest if it is none."""
        text = self.places.get(name) or self.params.get(name) or ""
        found = read_number(text)
        if found is None:
            raise BadRequest(f"{name}: a number such as 12 or #12, not {text[:40]!r}")
        return found

    def text(self, name: str) -> str:
        """A parameter; BadRequest if it is missing. No part of a path: a name may have slashes and `..`."""
        if not self.params.get(name):
            raise BadRequest(f"{name}: it is missing from the address")
        return self.params[name]

    def cursor(self) -> list[int] | None:
        """Return where the page before ended, as `after=TIME-ID` in the address."""
        numbers = [read_number(text) for text in self.params.get("after", "").split("-")]
        found = [number for number in numbers if number is not None]
        return found if len(found) == len(numbers) == 2 else None  # noqa: PLR2004  # a time and an id

    # ── Projects ─────────────────────────────────────────────────────────────────────────────────

    def label_project(self, key: str) -> str:
        """What people read of a project: its name, and what tells it from namesakes.

        `ledger · home/dev` and `ledger · work/dev`, each with as few folders of its path as make the difference.
        """
        if key == ALL_PROJECTS:
            return "All projects"
        same = self._namesakes(key)
        if len(same) < 2:  # noqa: PLR2004  # one has no namesake
            return str(same[0]["name"]) if same else key
        own, *others = (one["key"].strip("/").split("/") for one in same)
        for length in range(1, len(own) + 1):
            if all(other[-length:] != own[-length:] for other in others):
                # Where the folder itself has the name of the project, the name stands there already.
                parts = own[-length:] if own[-1] != same[0]["name"] else own[-length:-1] or own
                return f"{same[0]['name']} · {'/'.join(parts)}"
        return f"{same[0]['name']} · {key}"

    def choices(self, path: str) -> list[tuple[str, str, str]]:
        """(key, what people read, address of a page) of all projects, as the head offers them.

        Addresses call a project by its key: another of the same name may come at any time.
        """
        keys = dict.fromkeys([ALL_PROJECTS, *(one["key"] for one in self.projects), self.key])
        return [
            (key, self.label_project(key), replace(self, params={}).link(path, project=key))
            for key in keys
        ]

    def _namesakes(self, key: str) -> list[Json]:
        """The project of this key first, then those of the same name; none if the key is none's."""
        own = [one for one in self.projects if one["key"] == key]
        if not own:
            return []
        return own + [
            one for one in self.projects if one["name"] == own[0]["name"] and one["key"] != key
        ]
