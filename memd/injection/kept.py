"""The pages of starts, kept for the next session that begins at the same place."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memd.injection.learned import SaidSentence
from memd.injection.moments import InjectedContext
from memd.injection.page import is_crowded
from memd.injection.start import SessionCandidates
from memd.injection.working_tree import Guides, WorkingTree

_KEPT_MAX = 8
_KEPT_MS = 600_000
"""What only time changes (ages, expiry, use) counts after this long at the latest."""


@dataclass(frozen=True, slots=True)
class StartKey:
    """The place where sessions begin that get the same page: those that have neither done nor been shown anything."""

    client: str
    directory: str | None
    project_ids: tuple[int, ...]
    project: str
    branch: str | None
    tokens: int


@dataclass(frozen=True, slots=True)
class StartInputs:
    """The state that a page rests on when it is written, or looked for, at `now` (UTC milliseconds)."""

    version: tuple[object, ...]
    read_prompts: Callable[[], tuple[SaidSentence, ...]]
    guides: Guides
    tree: WorkingTree
    now: int


@dataclass(frozen=True, slots=True)
class KeptPage:
    """A page, and what it rested on."""

    page: InjectedContext
    at: int
    version: tuple[object, ...]
    guides: Guides
    prompts: tuple[SaidSentence, ...] | None
    changed_files: Sequence[str] | None
    """The files that the branch had changed; None where all that stands has room, because then none comes first."""
    gone: tuple[str, ...]
    """What of each line was gone from the working tree."""

    def is_current(self, now: StartInputs) -> bool:
        """Return whether the page would say the same if it was written now."""
        is_same = self.version == now.version and self.guides == now.guides
        is_young = 0 <= now.now - self.at < _KEPT_MS
        is_same = is_same and is_young and self.prompts in (None, now.read_prompts())
        is_same = is_same and self.changed_files in (None, now.tree.changed_files)
        return is_same and _list_gone(self.page, now.tree) == self.gone


class KeptPages:
    """The pages of starts, for the next session that begins at the same place."""

    def __init__(self) -> None:
        self._kept: dict[StartKey, KeptPage] = {}

    def find(self, key: StartKey) -> KeptPage | None:
        """Return the last page that was written at a place."""
        return self._kept.get(key)

    def keep(
        self, key: StartKey, then: StartInputs, found: SessionCandidates, page: InjectedContext
    ) -> None:
        """Keep a page, and those of the places where one was written last."""
        self._kept.pop(key, None)
        files = then.tree.changed_files if is_crowded(found) else None
        gone = _list_gone(page, then.tree)
        self._kept[key] = KeptPage(page, then.now, then.version, then.guides, found.prompts, files, gone)  # fmt: skip
        while len(self._kept) > _KEPT_MAX:
            del self._kept[next(iter(self._kept))]


def _list_gone(page: InjectedContext, tree: WorkingTree) -> tuple[str, ...]:
    tree.look_up([one.title for one in page.shown])
    return tuple(tree.note_gone(one.title, one.at) for one in page.shown)
