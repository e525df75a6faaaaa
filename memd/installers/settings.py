"""Our hooks among other people's, in the settings of Claude Code. Pure.

An entry is known by what it runs, never by where it stands: an older one of ours is replaced in its
place, everything else stays as it is and in its order. What is not understood is left alone.
"""

from collections.abc import Mapping
from typing import Any

from memd.errors import BadRequest
from memd.installers import hooks

PLUGIN = "memd"

Settings = Mapping[str, Any]


def plugins(settings: Settings) -> list[str]:
    """Name the plugins of ours that are enabled, as `memd@marketplace`."""
    enabled = settings.get("enabledPlugins")
    if not isinstance(enabled, Mapping):
        return []
    return [name for name, how in enabled.items() if name.partition("@")[0] == PLUGIN and how]


def merge(settings: Settings, command: tuple[str, ...]) -> dict[str, Any]:
    """Return settings with our hooks and no older ones of ours. Raises BadRequest."""
    listed = _events(settings)
    ours = dict(hooks.groups(command))
    placed = {event: _placed(groups, ours.get(event)) for event, groups in listed.items()}
    placed |= {event: [group] for event, group in ours.items() if event not in listed}
    return {**settings, "hooks": _shown(placed, listed)}


def unmerge(settings: Settings) -> dict[str, Any]:
    """Return settings without our hooks, and without what they alone held. Raises BadRequest."""
    listed = _events(settings)
    left = _shown({event: _placed(groups, None) for event, groups in listed.items()}, listed)
    rest = {name: value for name, value in settings.items() if name != "hooks"}
    if left == listed:
        return dict(settings)
    return {**settings, "hooks": left} if left else rest


def _events(settings: Settings) -> dict[str, list[Any]]:
    found = settings.get("hooks", {})
    if not isinstance(found, dict):
        raise BadRequest("its `hooks` is not an object")
    for event, groups in found.items():
        if not isinstance(groups, list):
            raise BadRequest(f"its `hooks.{event}` is not a list")
    return found


def _shown(placed: dict[str, list[Any]], listed: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Leave out the events that we have emptied."""
    return {
        event: groups
        for event, groups in placed.items()
        if groups or not listed.get(event, True)
    }


def _placed(groups: list[Any], ours: dict[str, Any] | None) -> list[Any]:
    """Put our group where the first of ours stood, else at the end; what else is of ours goes."""
    kept: list[Any] = []
    at: int | None = None
    for group in groups:
        rest = _without_ours(group)
        if rest is not None:
            kept.append(rest)
        if rest is not group and at is None:
            at = len(kept)
    if ours is not None:
        kept.insert(len(kept) if at is None else at, ours)
    return kept


def _without_ours(group: Any) -> Any:
    """Return a group as it is, or with fewer hooks, or None if all of them are ours."""
    listed = group.get("hooks") if isinstance(group, Mapping) else None
    if not isinstance(listed, list) or not any(map(hooks.is_ours, listed)):
        return group
    kept = [hook for hook in listed if not hooks.is_ours(hook)]
    return {**group, "hooks": kept} if kept else None


def warnings(settings: Settings) -> tuple[str, ...]:
    """What in the settings keeps hooks from running."""
    if settings.get("disableAllHooks") is True:
        return ("The settings say disableAllHooks: no hook will run, so nothing is captured.",)
    return ()
