"""The parts of a request that a page needs, and the page that answers it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from memd.errors import BadRequest
from memd.viewer.html import Markup

ALL_PROJECTS = "all"
Json = dict[str, Any]
Calling = Callable[..., Json]
"""Makes one control call: its method, and parameters by name; those that are None are left out."""
_NUMBER_DIGITS_MAX = 15


def read_number(text: str) -> int | None:
    """A number as people write it, 12 or #12; None if it is none."""
    digits = text.strip().removeprefix("#")
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= _NUMBER_DIGITS_MAX
    return int(digits) if is_number else None


@dataclass(frozen=True, slots=True)
class Page:
    """A page: the title of the window, and the content below the head of all pages."""

    title: str
    content: Markup
    section: str = ""
    """The path of the link in the head that this page belongs to."""


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

    @property
    def project(self) -> str:
        """The project that is shown: a name, a key, or `all`."""
        return self.params.get("project") or self.home_project

    def link(self, path: str, **params: object) -> str:
        """An address on this server in the same project; parameters that are None or empty are left out."""
        given = {
            key.rstrip("_"): value
            for key, value in params.items()
            if value not in {None, "", False}
        }
        if self.project != self.home_project:
            given.setdefault("project", self.project)
        if given.get("project") == self.home_project:
            del given["project"]
        return quote(path) + (f"?{urlencode(given)}" if given else "")

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

    def name_project(self, key: str | None) -> str:
        """The name by which addresses call a project: its name, or its key where several share the name."""
        same = [one for one in self.projects if one["key"] == key]
        if not same:
            return key or ALL_PROJECTS
        name = str(same[0]["name"])
        is_alone = sum(one["name"] == name for one in self.projects) == 1
        return name if is_alone else str(same[0]["key"])
