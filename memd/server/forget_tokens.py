"""Tokens of dry runs: what an agent has shown to the user is what it may then erase, once and soon."""

import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from memd.errors import BadRequest
from memd.server.scope import Caller

TOKEN_MS = 600_000
"""How long a token holds, in milliseconds."""
_TOKENS_MAX = 256
"""Tokens held at a time; the oldest goes first."""
_REFUSAL = (
    "token: {}, so nothing was erased; call mem_forget with dry_run: true, show the user what would go, and"
    " pass the token that it returns"
)


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """One dry run: who made it, what it showed, and when (UTC milliseconds)."""

    token: str
    caller: Caller
    plan: str
    """The name of the plan: of exactly these rows."""
    at: int


class ForgetTokens:
    """Issues tokens and redeems them. They are held in memory only, so none outlives the daemon."""

    def __init__(
        self, clock: Callable[[], int], make_token: Callable[[], str] = secrets.token_urlsafe
    ) -> None:
        self._clock = clock
        self._make_token = make_token
        self._issued: list[IssuedToken] = []

    def issue(self, caller: Caller, plan: str) -> str:
        """Return a token for this plan, which only this caller's connection can redeem."""
        new = IssuedToken(self._make_token(), caller, plan, self._clock())
        self._issued = [*self._list_valid(), new][-_TOKENS_MAX:]
        return new.token

    def redeem(self, token: str | None, caller: Caller) -> str:
        """Return the plan of a token and void the token. BadRequest unless it is a valid one of this caller."""
        if not token:
            raise BadRequest(_REFUSAL.format("missing"))
        self._issued = self._list_valid()
        given = token.encode("utf-8", "surrogatepass")
        # Every token is compared, in a time that does not depend on how much of it is right.
        found = [
            one
            for one in self._issued
            if hmac.compare_digest(one.token.encode(), given) and one.caller == caller
        ]
        if not found:
            reason = "not one of a dry run on this connection within the last ten minutes, or used"
            raise BadRequest(_REFUSAL.format(reason))
        self._issued.remove(found[0])
        return found[0].plan

    def _list_valid(self) -> list[IssuedToken]:
        now = self._clock()
        # A clock that was set back must not make a token last.
        return [one for one in self._issued if 0 <= now - one.at < TOKEN_MS]
