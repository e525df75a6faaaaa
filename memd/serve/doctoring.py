"""The control call of `memd doctor`: what is right and wrong with the vault, and mending it.

Not here: what is looked at (daemon/checkup.py), and what the command can see for itself.
"""

from typing import Any

from memd.serve import full
from memd.serve.app import App
from memd.serve.requests import DoctorRequest
from memd.serve.scope import Caller


class Doctoring:
    """The call over one App."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def doctor(self, asked: DoctorRequest, _: Caller) -> dict[str, Any]:
        """`memd/doctor`: the findings, and with `fix` what was mended before they were made."""
        mended = await self._app.checkup.mend() if asked.fix else []
        return {"mended": mended, "findings": full.plain(await self._app.checkup.examine())}
