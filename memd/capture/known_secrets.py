"""Secrets that redaction has recognised once, so that they go wherever else they come.

Beside its cue a key is known ("my api key is …"), in the command that writes it to a file it is not. What was redacted is
known here by project, in memory only, and as long as the daemon runs; the oldest of many are dropped. Only a value
whose form no word, number, name in code, date, version or path has is known: who types "the password is banana" does
not lose every banana.
"""

import re
import threading
from collections.abc import Callable, Mapping
from typing import Any

from memd.capture.redact import note_secrets, redact_value
from memd.capture.redact.names import FAIR, STRONG, is_random, judge
from memd.capture.redact.regexes import compile_regex
from memd.capture.redact.words import CODE_NAME
from memd.text import list_strings, map_strings

RedactValue = Callable[[Any], Any]
_PROJECTS_MAX = 64
_VALUES_MAX = 24
"""Values of a project that are looked for in each of its texts."""
_LENGTH_MIN, _LENGTH_MAX = 5, 512
_FAIR_MIN = 10
_UNBOUNDED_MIN = 16
"""Characters from which a value cannot be part of another word by chance."""
_DRAWN = r"(?=(?:\D*\d){2}|(?=\D*\d)[^!@#$%^&+?=~]*[!@#$%^&+?=~])[^\W_][\w!@#$%^&+?=~.*/-]*"
_DOOR_CODE = r"\d{4,8}[A-Z]"
_NAME = rf"{CODE_NAME}|[a-z]+(?:[-_.](?:[a-z]+|\d+))+"
"""What a database, a host or a test may be called as well: `shop_test_5432`."""
_BY_FORM = frozenset({"high-entropy"})
"""What is found wherever it stands, unless the text around it says that it is a digest or an id."""


class _Known:
    """The secrets of one project: value → what finds it, and what stands in its place."""

    def __init__(self) -> None:
        self._values: dict[str, tuple[re.Pattern[str] | None, str]] = {}

    def add(self, value: str, rule: str) -> bool:
        """Add a value, or note that it was seen again; return whether it is new."""
        before = self._values.pop(value, None)
        self._values[value] = before or (_bounded(value), f"[REDACTED:{rule}]")
        while len(self._values) > _VALUES_MAX:
            del self._values[next(iter(self._values))]
        return before is None

    def hide_in(self, value: Any) -> Any:
        """Return a JSON value without these secrets."""
        # Most values have none: looking for each in all strings at once costs less.
        joined = "\n".join(list_strings(value, keys=True))
        found = [one for one in tuple(self._values.items()) if one[0] in joined]

        def hide(text: str) -> str:
            for secret, (pattern, mark) in found:
                text = pattern.sub(mark, text) if pattern else text.replace(secret, mark)
            return text

        return map_strings(value, hide) if found else value


class KnownSecrets:
    """The secrets of all projects. May be used by any thread."""

    def __init__(self) -> None:
        self._projects: dict[str, _Known] = {}
        self._lock = threading.Lock()

    def redact(self, value: Any, rules: RedactValue = redact_value) -> Any:
        """Redact a JSON value by the rules, and then of the secrets of all projects."""
        clean = rules(value)
        for known in tuple(self._projects.values()):
            clean = known.hide_in(clean)
        return clean

    def add(self, project: str, found: Mapping[str, str]) -> dict[str, str]:
        """Add what the rules found in a project, value → rule, as far as it is telling; return what is new."""
        telling = {v: rule for v, rule in found.items() if rule not in _BY_FORM and is_telling(v)}
        if not telling:
            return telling
        with self._lock:
            known = self._projects.pop(project, None) or _Known()
            self._projects[project] = known
            while len(self._projects) > _PROJECTS_MAX:
                del self._projects[next(iter(self._projects))]
            return {value: rule for value, rule in telling.items() if known.add(value, rule)}

    def find(self, project: str) -> _Known | None:
        """Return the secrets of a project."""
        return self._projects.get(project)


class ProjectRedaction:
    """Redacts the values of one request: by the rules, and then of all that they ever found in its project."""

    def __init__(self, secrets: KnownSecrets, project: str, rules: RedactValue) -> None:
        self._secrets, self._project, self._rules = secrets, project, rules
        self._new = _Known()
        self.has_new = False
        """Whether secrets were recognised that were not known before."""

    def __call__(self, value: Any) -> Any:
        """Redact a JSON value."""
        with note_secrets() as found:
            clean = self._rules(value)
        if found:
            for secret, rule in self._secrets.add(self._project, found).items():
                self._new.add(secret, rule)
                self.has_new = True
        known = self._secrets.find(self._project)
        return clean if known is None else known.hide_in(clean)

    def hide_new(self, value: Any) -> Any:
        """Return a JSON value that was redacted before without what was recognised since."""
        return self._new.hide_in(value)


def is_telling(value: str) -> bool:
    """Return whether the form of a value is that of a secret alone: drawn, with several digits or a digit and a sign."""
    if not _LENGTH_MIN <= len(value) <= _LENGTH_MAX or not compile_regex(_DRAWN).fullmatch(value):
        return False
    kind = judge(value)
    is_drawn = kind == STRONG or (kind == FAIR and len(value) >= _FAIR_MIN) or is_random(value)
    is_drawn = is_drawn or compile_regex(_DOOR_CODE).fullmatch(value) is not None
    return is_drawn and compile_regex(_NAME).fullmatch(value) is None


def _bounded(value: str) -> re.Pattern[str] | None:
    """Return what finds a short value as a word of its own; a long one is looked for as it is."""
    if len(value) >= _UNBOUNDED_MIN:
        return None
    edge = r"(?:(?<![^\W_])|(?<=\\[nrt]))"
    return re.compile(rf"{edge}{re.escape(value)}(?![^\W_])")
