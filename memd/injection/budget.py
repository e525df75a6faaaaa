"""The budget that a session has for all that it is told unasked: tokens, and the time that its hooks wait."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from memd.config import InjectConfig
from memd.store import projects, usage
from memd.store.database import Connection, Database
from memd.store.usage import SpentBudget

SESSIONS_MAX = 256
"""Sessions whose budgets and injections are held in memory."""
SESSION_WAIT_S = 10.0
"""The seconds for which all hooks of one session together may be held up; then it is told nothing more."""
SPENT = "this session has been told as much as it may: inject.session_tokens"
SessionKey = tuple[str, str]
"""(client, the client's own id of the session)."""


@dataclass(eq=False)
class SessionBudget:
    """The budgets that sessions have left."""

    db: Database
    config: InjectConfig
    _spent: dict[SessionKey, SpentBudget] = field(default_factory=dict)
    _unwritten: set[SessionKey] = field(default_factory=set)

    async def load(self, key: SessionKey) -> SpentBudget:
        """Return what a session has spent; after a daemon's start as the vault has it."""
        if key not in self._spent:
            found = await self.db.read_inline(lambda tx: _read(tx, key))
            self._spent.setdefault(key, found)
            self._forget_oldest()
        return self._spent[key]

    async def tokens_left(self, key: SessionKey) -> int:
        """Return how many tokens a session may still be told; 0 once its hooks were held up for as long as they may."""
        spent = await self.load(key)
        return 0 if await self.find_spent(key) else self.config.session_tokens - spent.tokens

    async def find_spent(self, key: SessionKey) -> str:
        """Name the part of its budget that a session has used up; empty while it has some of both left."""
        spent = await self.load(key)
        if spent.waited_ms >= SESSION_WAIT_S * 1000:
            return "its hooks were held up for as long as they may be"
        return SPENT if spent.tokens >= self.config.session_tokens else ""

    def spend(self, key: SessionKey, tokens: int, waited_s: float) -> None:
        """Count what a session was told and how long a hook of it was held up. `load` comes first."""
        before = self._spent.get(key, SpentBudget())
        waited_ms = before.waited_ms + round(waited_s * 1000)
        self._put(key, SpentBudget(before.tokens + tokens, waited_ms))

    def restart(self, key: SessionKey) -> None:
        """Reset the budget: the session has lost what it was shown."""
        self._put(key, SpentBudget())

    def take_unwritten(self) -> Mapping[SessionKey, SpentBudget]:
        """Return what the vault does not have yet, and pass for having written it."""
        taken = {key: self._spent[key] for key in self._unwritten if key in self._spent}
        self._unwritten.clear()
        return taken

    def give_back(self, unwritten: Mapping[SessionKey, SpentBudget]) -> None:
        """Put back what could not be written, to write it the next time."""
        self._unwritten |= unwritten.keys() & self._spent.keys()

    def _put(self, key: SessionKey, spent: SpentBudget) -> None:
        self._spent.pop(key, None)
        self._spent[key] = spent
        self._unwritten.add(key)
        self._forget_oldest()

    def _forget_oldest(self) -> None:
        while len(self._spent) > SESSIONS_MAX:
            oldest = next((one for one in self._spent if one not in self._unwritten), None)
            oldest = next(iter(self._spent)) if oldest is None else oldest
            del self._spent[oldest]
            self._unwritten.discard(oldest)


def _read(tx: Connection, key: SessionKey) -> SpentBudget:
    session = projects.session_of_client(tx, *key)
    return usage.read_spent(tx, session.id) if session else SpentBudget()


def write_spent(tx: Connection, spent: Mapping[SessionKey, SpentBudget]) -> set[SessionKey]:
    """Write what sessions have spent, and return those that the vault does not know, or not yet."""
    unknown = set()
    for key, one in spent.items():
        session = projects.session_of_client(tx, *key)
        if session is None:
            unknown.add(key)
        else:
            usage.write_spent(tx, session.id, one)
    return unknown
