"""A session told step by step: each step is a hook call of the client, from capture to the distilled memory."""

import pytest

from memd.capture.ingest import Ingestor
from memd.capture.prepare import CaptureRequest
from memd.config import CaptureConfig, DistillConfig
from memd.distill.distiller import Distiller
from memd.models import Kind
from memd.store import session_context, summaries
from tests.factories import AT

DIRECTORY = "/home/dev/shop"


class ToldSession:
    """The verbs of a session. Each step happens a second after the one before."""

    def __init__(self, db, clock, tmp_path, session="s1"):
        self.db, self.clock, self.session = db, clock, session
        self._ingestor = Ingestor(db, CaptureConfig(), clock, str(tmp_path / "spool"), lambda: None)
        self._distiller = Distiller(db, DistillConfig(), clock, lambda: None)
        self._steps, self._turn = 0, 0

    async def tell(self, *steps):
        """Let the steps happen, in order, and be distilled; see the functions of this module."""
        for name, fields in steps:
            self._steps += 1
            if name == "UserPromptSubmit":
                self._turn += 1
            await self._capture({"hook_event_name": name, **fields})
        await self.distils()

    async def _capture(self, payload):
        self.clock.now = AT + self._steps * 1000
        given = {
            "session_id": self.session,
            "cwd": payload.pop("cwd", DIRECTORY),
            "prompt_id": f"{self.session}-{self._turn}",
            "tool_use_id": f"{self.session}-tool-{self._steps}",
        }
        (receipt,) = await self._ingestor.capture([CaptureRequest("claude-code", given | payload)])
        assert receipt.outcome == "stored", receipt

    async def distils(self):
        """Distil all that is pending, also what a dispute has put back."""
        await self._distiller.settle(1_000_000)

    async def starts_another(self, session):
        """Let the next steps happen in another session of the project."""
        self.session, self._turn = session, 0

    async def memories(self):
        def read(tx):
            number = tx.execute("SELECT coalesce(max(id), 0) FROM summaries").get
            return list(summaries.summaries_by_ids(tx, range(1, number + 1)).values())

        return await self.db.read(read)

    async def fixes(self):
        """What is said to be fixed: memories of that kind and every title that says so."""
        return [
            one
            for one in await self.memories()
            if one.kind is Kind.FIX or one.title.lower().startswith(("fixed", "resolved", "solved"))
        ]

    async def open_failures(self):
        """The ids of the failures that nothing has closed."""
        return await self.db.read(
            lambda tx: [n for one in (1, 2) for n in session_context.open_failure_ids(tx, one, 9)]
        )

    async def live(self):
        """The memories that nothing has replaced."""
        return [one for one in await self.memories() if one.superseded_by is None]

    async def outcome(self):
        """`fixed`, `open`, or `closed` without a fix."""
        fixes, still_open = await self.fixes(), await self.open_failures()
        assert not (fixes and still_open), (fixes, still_open)
        return "fixed" if fixes else "open" if still_open else "closed"


def case(name, *steps):
    return pytest.param(steps, id=name)


def asks(prompt):
    return "UserPromptSubmit", {"prompt": prompt}


def fails(command, output="Exit code 1\nE   KeyError: 'name'", **fields):
    given = {"tool_name": "Bash", "tool_input": {"command": command}, "error": output}
    return "PostToolUseFailure", given | fields


def used(tool, given, response, **fields):
    return "PostToolUse", {
        "tool_name": tool,
        "tool_input": given,
        "tool_response": response,
    } | fields


def runs(command, output="", *, background=False, **fields):
    given = {"command": command} | ({"run_in_background": True} if background else {})
    response = {"stdout": output, "stderr": "", "interrupted": False}
    return used("Bash", given, response, **fields)


def edits(path="shop/cart.py", old="return x", new="return x or {}"):
    given = {"file_path": f"{DIRECTORY}/{path}", "old_string": old, "new_string": new}
    return used("Edit", given, {"filePath": given["file_path"]})


def writes(path, content):
    given = {"file_path": f"{DIRECTORY}/{path}", "content": content}
    return used("Write", given, {"filePath": given["file_path"]})


def says(answer):
    return "Stop", {"last_assistant_message": answer, "stop_hook_active": False}
