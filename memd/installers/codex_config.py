"""memd's MCP server in Codex CLI's `config.toml`, and Codex's trust in hooks there.

The file is the user's and Codex's, with comments, so only memd's own lines are added or taken out: the table
`mcp_servers.memd` and those below it, up to the next table. What comes of it is parsed and compared before it is written.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from memd.errors import BadRequest
from memd.installers import claude_settings
from memd.installers.plan import FileChange, read_file

_BYTE_ORDER_MARK = "\ufeff"
_MARK = "# Written by `memd install codex`"
_NO_NEWLINE = ", behind a line without an end"
"""Ends the mark where a newline had to be added, so that it is taken out again."""
_OURS = re.compile(r"\s*\[\s*mcp_servers\s*\.\s*[\"']?memd[\"']?\s*(?:\.[^\]]+)?\]\s*(?:#.*)?")
_TABLE = re.compile(r"\s*\[")


def change_server(file: Path, entry: Mapping[str, Any] | None) -> FileChange:
    """Plan memd's MCP server with this entry, None: without one. Raises BadRequest for a broken file."""
    content = read_file(file)
    text = _decode(file, content)
    before = _parse(file, text)
    servers = before.get("mcp_servers", {})
    old = servers.get(claude_settings.SERVER_NAME) if isinstance(servers, dict) else None
    if old is not None and not claude_settings.is_memd_server(old):
        if entry is None:
            return FileChange(file, content, content)
        raise BadRequest(
            f"{file} has another MCP server named `{claude_settings.SERVER_NAME}`;"
            " rename or remove that one first. Nothing was changed"
        )
    if entry is not None and old is not None and all(old.get(key) == entry[key] for key in entry):
        return FileChange(file, content, content)
    bare = _without_server(text)
    _check(file, bare, before, None)
    if entry is None:
        is_gone = not content or (not bare and not file.is_symlink())
        return FileChange(file, content, None if is_gone else bare.encode())
    written = bare + _format_server(bare, entry)
    _check(file, written, before, entry)
    return FileChange(file, content, written.encode())


def find_untrusted(file: Path, hooks_file: Path, hooks: Mapping[str, Any]) -> list[str]:
    """List the events whose memd hook Codex would skip: not trusted, changed since, or switched off.

    `hooks` is the content of `hooks_file`. Raises BadRequest if `file`, Codex's config.toml, is broken.
    """
    config = _parse(file, _decode(file, read_file(file)))
    states = config.get("hooks", {}).get("state", {})
    features = config.get("features", {})
    if any(features.get(name) is False for name in ("hooks", "codex_hooks")):
        return ["all (features.hooks is false)"]
    missing = []
    for event, group, handler, hook, matcher in _list_hooks(hooks):
        places = {str(hooks_file), str(hooks_file.resolve())}
        label = _make_label(event)
        keys = [f"{place}:{label}:{group}:{handler}" for place in places]
        state: Mapping[str, Any] = next((states[key] for key in keys if key in states), {})
        is_trusted = state.get("trusted_hash") == _hash_hook(label, hook, matcher)
        if not is_trusted or state.get("enabled") is False:
            missing.append(event)
    return missing


def _list_hooks(hooks: Mapping[str, Any]) -> Iterator[tuple[str, int, int, Mapping[str, Any], Any]]:
    """Yield (event, number of its group, number in the group, hook, matcher) of each hook of memd's."""
    events = hooks.get("hooks")
    for event, groups in events.items() if isinstance(events, Mapping) else ():
        for at, group in enumerate(groups if isinstance(groups, Sequence) else ()):
            listed = group.get("hooks") if isinstance(group, Mapping) else None
            for number, hook in enumerate(listed if isinstance(listed, list) else ()):
                if claude_settings.is_memd_hook(hook):
                    yield event, at, number, hook, group.get("matcher")


def _make_label(event: str) -> str:
    """Return Codex's name of an event in its records: `post_tool_use`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()


def _hash_hook(label: str, hook: Mapping[str, Any], matcher: Any) -> str:
    """Return Codex's hash of a hook: of its event, matcher and command as sorted JSON (seen with 0.169.0)."""
    identity: dict[str, Any] = {
        "event_name": label,
        "hooks": [
            {
                "async": False,
                "command": hook.get("command"),
                "timeout": hook.get("timeout", 600),
                "type": "command",
            }
        ],
    }
    if matcher is not None:
        identity["matcher"] = matcher
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _decode(file: Path, content: bytes | None) -> str:
    try:
        return (content or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRequest(f"{file}: byte {error.start} is not UTF-8. Nothing was changed") from error


def _parse(file: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix(_BYTE_ORDER_MARK))
    except tomllib.TOMLDecodeError as error:
        raise BadRequest(f"{file}: {error}. Nothing was changed; fix the file first") from error


def _without_server(text: str) -> str:
    """Return the text without memd's table, those below it and their mark."""
    kept: list[str] = []
    loose: list[str] = []
    """Blank lines and comments behind memd's table: they belong to what follows."""
    is_ours, added_newline_at = False, None
    for line in text.splitlines(keepends=True):
        if line.startswith(_MARK):
            added_newline_at = len(kept) if _NO_NEWLINE in line else None
            continue
        if _TABLE.match(line):
            is_ours = bool(_OURS.fullmatch(line.rstrip("\r\n")))
        if is_ours and not line.strip().startswith("#") and line.strip():
            loose.clear()
        elif is_ours:
            loose.append(line)
        else:
            kept += [*loose, line]
            loose.clear()
    kept += loose
    bare = "".join(kept)
    return bare.removesuffix("\n") if added_newline_at == len(kept) else bare


def _format_server(text: str, entry: Mapping[str, Any]) -> str:
    # Strings and lists of JSON are TOML, too; all but DEL, which no path has.
    is_open = bool(text) and not text.endswith("\n")
    lines = [
        f"{_MARK}{_NO_NEWLINE if is_open else ''}",
        f"[mcp_servers.{claude_settings.SERVER_NAME}]",
        *(f"{key} = {json.dumps(entry[key], ensure_ascii=False)}" for key in ("command", "args")),
        f"[mcp_servers.{claude_settings.SERVER_NAME}.env]",
        *(f"{key} = {json.dumps(value)}" for key, value in entry["env"].items()),
    ]
    return ("\n" if is_open else "") + "\n".join(lines) + "\n"


def _check(
    file: Path, text: str, before: Mapping[str, Any], entry: Mapping[str, Any] | None
) -> None:
    """Raise BadRequest unless the text says what was said before, but for memd's server."""
    expected = {**before, "mcp_servers": {**before.get("mcp_servers", {})}}
    expected["mcp_servers"].pop(claude_settings.SERVER_NAME, None)
    if entry is not None:
        expected["mcp_servers"][claude_settings.SERVER_NAME] = dict(entry)
    try:
        found = tomllib.loads(text.removeprefix(_BYTE_ORDER_MARK))
    except tomllib.TOMLDecodeError:
        found = {}
    found = {**found, "mcp_servers": found.get("mcp_servers", {})}
    if found != expected:
        raise BadRequest(
            f"{file}: memd cannot change `mcp_servers` as it is written there; add or remove"
            " `mcp_servers.memd` by hand (docs/clients.md). Nothing was changed"
        )
