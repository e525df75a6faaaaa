"""Filter, truncate, redact and normalise one payload: all that needs no database, so that transactions are short."""

import functools
import json
import os
import re
import stat
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memd import log
from memd.capture import clients, ignore, truncate
from memd.capture.claude_code import Ignored, Refused, adapt_hook_payload, keep_unknown_payload
from memd.capture.clients import EXIT_CODE
from memd.capture.known_files import KnownFiles
from memd.capture.project import ProjectResolver, keep_clone_apart, read_branch, redact_directory
from memd.capture.redact import note_secrets, redact_value
from memd.capture.redact.names import FAIR, STRONG, is_random, judge
from memd.capture.redact.regexes import compile_regex
from memd.capture.redact.words import CODE_NAME
from memd.capture.write import PreparedItem
from memd.config import CaptureConfig
from memd.models import AGENTS_IMPORT, BRANCH, REMOTE
from memd.paths import is_inside
from memd.text import list_strings, map_strings

UNEXPECTED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What only a bug in memd raises while a payload is prepared."""
WRITERS_OWN = "a session of memd's own writer"
"""Why nothing is stored of the program that `distill.writer_command` names, nor shown to it."""
_SOURCES = frozenset({"live", "spool", "import", "transcript", AGENTS_IMPORT})
_AT_MAX = 253_402_300_800_000
"""UTC milliseconds of the year 10000; later times cannot be displayed."""
_SMALL_CHARACTERS = 16 * 1024
"""Characters of a payload that is prepared in one or two milliseconds."""
_SMALL_MEMBERS = 256
"""Members of a payload that are visited to see whether it is small."""


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """One payload as its client sent it. `at` is UTC ms; None: when it arrives.

    `capture=False`: its sender wants it counted but not stored.
    """

    client: str
    payload: Any
    at: int | None = None
    directory: str | None = None
    source: str = "live"
    capture: bool = True
    event: str | None = None
    """The event's name, as the hook was told it: some clients leave it out of the payload."""

    def translate(self) -> "CaptureRequest":
        """Return the request under its sender's own name, in the words of Claude Code's hooks."""
        client = clients.recognise(self.client, self.payload, self.source)
        client, payload = clients.translate(client, self.payload, self.event)
        if client == self.client and payload is self.payload:
            return self
        return replace(self, client=client, payload=payload)


IngestItem = CaptureRequest | Refused
"""A request, or a line of the spool that could not be read."""


# ── Known secrets ─────────────────────────────────────────────────────────────────────────────────
#
# Secrets that redaction has recognised once, so that they go wherever else they come.
#
# Beside its cue a key is known ("my api key is …"), in the command that writes it to a file it is not. What was redacted is
# known here by project, in memory only, and as long as the daemon runs; the oldest of many are dropped. Only a value
# whose form no word, number, name in code, date, version or path has is known: who types "the password is banana" does
# not lose every banana.

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

    def redact(self, value: Any, rules: truncate.RedactValue = redact_value) -> Any:
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

    def __init__(self, secrets: KnownSecrets, project: str, rules: truncate.RedactValue) -> None:
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


# ── Preparing ─────────────────────────────────────────────────────────────────────────────────────


class Preparer:
    """Prepares requests, in any thread."""

    def __init__(
        self,
        config: CaptureConfig,
        clock: Callable[[], int],
        projects: ProjectResolver,
        redact: truncate.RedactValue | None = None,
        writer_dirs: tuple[str, ...] = (),
        secrets: KnownSecrets | None = None,
    ) -> None:
        self._secrets = secrets or KnownSecrets()
        self._writer_dirs = writer_dirs
        self._config = config
        self._clock = clock
        self._projects = projects
        self._redact = redact or functools.partial(redact_value, entropy=config.entropy)
        self._ignore = ignore.compile_ignore(config.ignore_paths, config.ignore_tools)
        self._known_files = KnownFiles()

    def prepare_all(self, items: Sequence[IngestItem]) -> list[PreparedItem]:
        """Prepare each item, in order. A bug raises one of `UNEXPECTED`."""
        self._projects.refresh()
        return [self._prepare_or_refuse(item) for item in items]

    def _prepare_or_refuse(self, item: IngestItem) -> PreparedItem:
        """Prepare an item; refuse a spool line that memd fails on, so that it does not block those behind it."""
        try:
            return self._prepare(item)
        except UNEXPECTED as error:
            if not isinstance(item, CaptureRequest) or item.source != "spool":
                raise
            log.get("intake").exception("spool_line_failed")
            return PreparedItem("spool", Refused(f"memd failed on it: {type(error).__name__}"))

    def _prepare(self, item: IngestItem) -> PreparedItem:
        if isinstance(item, Refused):
            return PreparedItem("spool", item)
        source = item.source if item.source in _SOURCES else "live"
        item = add_exit_code(item).translate()
        if reason := self._find_switch(item, source):
            return PreparedItem(source, Ignored(reason))
        directory = _find_directory(item)
        for place in {directory, item.directory or directory}:
            if reason := self._ignore.reason(item.payload, place):
                return PreparedItem(source, Ignored(reason))
        at = self._event_time(item.at)
        whole = self._known_files.complete(_add_branch(item), at)
        project = self._projects.find_project(directory)
        redact = ProjectRedaction(self._secrets, project.key, self._redact)
        slim = truncate.trim_tool_response(whole, keep_reads=self._config.keep_reads, redact=redact)
        payload = truncate.clean_payload(slim, redact=redact)
        if project.worktree and isinstance(payload, dict) and isinstance(payload.get(REMOTE), str):
            project = keep_clone_apart(project, payload[REMOTE])
        stored = None if directory is None else redact_directory(directory)
        adapt = keep_unknown_payload if item.client == clients.UNKNOWN else adapt_hook_payload
        verdict = adapt(payload, at, directory=stored, source=source, client=item.client)
        hide = redact.hide_new if redact.has_new else None
        return PreparedItem(source, verdict, project, has_root=bool(item.directory), hide=hide)

    def _find_switch(self, item: CaptureRequest, source: str) -> str | None:
        """Return why nothing of this session is stored; None if nothing speaks against it."""
        if not item.capture:
            return "switched off by its sender"
        named = (item.directory, _payload_directory(item.payload))
        if any(one and is_inside(one, self._writer_dirs) for one in named):
            return WRITERS_OWN
        # The setting is about automatic capture; a user starts an import.
        is_off = not self._config.enabled and source != "import"
        return "switched off in config.toml" if is_off else None

    def _event_time(self, at: int | None) -> int:
        is_sane = isinstance(at, int) and not isinstance(at, bool) and 0 < at < _AT_MAX
        return at if at is not None and is_sane else self._clock()


def is_small(items: Sequence[IngestItem]) -> bool:
    """Return whether preparing these items is quick enough for the thread that commits: one small request."""
    if len(items) != 1:
        return False
    item = items[0]
    if isinstance(item, Refused):
        return True
    room, members = _SMALL_CHARACTERS, [item.payload]
    for value in members:  # which grow meanwhile
        if isinstance(value, str):
            room -= len(value)
        elif isinstance(value, dict):
            members.extend(value.values())
            room -= sum(map(len, value))
        elif isinstance(value, list):
            members.extend(value)
        if room < 0 or len(members) > _SMALL_MEMBERS:
            return False
    return True


def _find_directory(item: CaptureRequest) -> str | None:
    """Return the directory that places an event: the session's root, or where its user has gone on with it.

    `/cd` and a resumption elsewhere change the payload's directory and not the root. A directory below the root, or above it,
    moves nothing, and neither does an agent that changes it within its turn. The transcript is read by the same rule.
    """
    root, cwd = item.directory, _payload_directory(item.payload)
    if not root or not cwd or item.payload.get("hook_event_name") != "UserPromptSubmit":
        return root or cwd
    return root if is_inside(cwd, (root,)) or is_inside(root, (cwd,)) else cwd


def _add_branch(item: CaptureRequest) -> Any:
    """The payload of a prompt that is given now, with the git branch that its transcript will name; else as it is."""
    payload, directory = item.payload, _payload_directory(item.payload) or item.directory
    is_prompt = isinstance(payload, dict) and payload.get("hook_event_name") == "UserPromptSubmit"
    if item.source != "live" or not is_prompt or not directory:
        return payload
    branch = read_branch(directory)
    return payload if branch is None else {**payload, BRANCH: branch}


def may_have_failed(item: CaptureRequest) -> bool:
    """Return whether a call of Codex's may have failed without its hook saying so; the session's rollout may tell."""
    payload = item.payload
    is_hooks = isinstance(payload, dict) and item.source in ("live", "spool")
    if not is_hooks or payload.get("hook_event_name") != "PostToolUse":
        return False
    if EXIT_CODE in payload or not names_rollout(payload):
        return False
    return clients.recognise(item.client, payload) == clients.CODEX


def add_exit_code(item: CaptureRequest) -> CaptureRequest:
    """The request with the exit code of Codex's command, which its hook leaves out; None if its rollout lacks it, too."""
    if not may_have_failed(item):
        return item
    code = find_exit_code(item.payload)
    return replace(item, payload={**item.payload, EXIT_CODE: code})


def _payload_directory(payload: Any) -> str | None:
    cwd = payload.get("cwd") if isinstance(payload, dict) else None
    return cwd if isinstance(cwd, str) and cwd else None


# ── The exit code of a command that Codex CLI has run ─────────────────────────────────────────────
#
# Its hook leaves it out, its rollout has it by then: the client's own file of a session, a JSON object a line. The line about a
# command that has ended is written before the hook runs (seen with 0.169.0), so it is near the end, also when an event has waited
# in the spool for a while.

TAIL_BYTES = 512 * 1024
"""Bytes before the end that are searched."""
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_ROLLOUT_NAME = re.compile(r"rollout-[^/]+\.jsonl")


def find_exit_code(payload: Mapping[str, Any]) -> int | None:
    """Return the exit code of the command that a hook's payload reports; None if the rollout does not tell it."""
    call = payload.get("tool_use_id")
    if not (names_rollout(payload) and isinstance(call, str) and call):
        return None
    try:
        tail = _read_tail(payload["transcript_path"])
    except (OSError, ValueError):  # also a path with a zero byte
        return None
    wanted = json.dumps(call).encode()
    for line in reversed(tail.split(b"\n")):
        if b'"exit_code"' in line and wanted in line:
            code = _read_exit_code(line, call)
            if code is not None:
                return code
    return None


def names_rollout(payload: Mapping[str, Any]) -> bool:
    """Return whether a hook's payload says where its session's rollout is."""
    path = payload.get("transcript_path")
    if not isinstance(path, str) or not path.startswith("/"):
        return False
    return _ROLLOUT_NAME.fullmatch(path.rpartition("/")[2]) is not None


def _read_tail(path: str) -> bytes:
    descriptor = os.open(path, _FLAGS)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return b""
        return os.pread(descriptor, TAIL_BYTES, max(status.st_size - TAIL_BYTES, 0))
    finally:
        os.close(descriptor)


def _read_exit_code(line: bytes, call: str) -> int | None:
    """Return the code in a line about this call: of 2026 with an `item`, of older clients without one."""
    try:
        told = json.loads(line)["payload"]
        item = told.get("item", told)
        code = item["exit_code"]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    is_it = call in (item.get("id"), item.get("call_id"))
    return code if is_it and isinstance(code, int) and not isinstance(code, bool) else None
