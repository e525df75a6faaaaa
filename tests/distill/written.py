"""A vault with turns that the rules wrote, for a model to write up."""

from memd.capture.redact import redact_value
from memd.config import DistillConfig
from memd.distill.distiller import Distiller
from memd.models import EventKind
from memd.store import events, projects, summaries
from tests.factories import make_new_event

PROMPT = "Fix the login: it answers 500 when the token is garbage"
ANSWER = (
    "auth.py raised ValueError because decode_token expects three parts. I catch it and answer 401 now,"
    " since a garbage token is no fault of the server."
)
RULES_TITLE = "It answers 500 when the token is garbage: auth.py raised ValueError because decode_token expects three parts"


class Desk:
    """Turns happen, the rules write them, and what is remembered can be read."""

    def __init__(self, db, clock):
        self.db, self.clock = db, clock
        self.distiller = Distiller(db, DistillConfig(), clock, lambda: None)

    async def turn(self, name="t1", prompt=None, answer=ANSWER, *, session="s1", stop=True):
        """A turn that has just happened; its summary. The same prompt again would belong to the turn before."""
        self.clock.advance(s=1)
        if prompt is None:
            prompt = PROMPT if name == "t1" else f"{PROMPT} in {name}"
        found = [self._event(EventKind.PROMPT, name, session, prompt=prompt)]
        if stop:
            found.append(self._event(EventKind.STOP, name, session, last_assistant_message=answer))
        else:
            edited = {"file_path": "/home/dev/ledger/auth.py", "old_string": "a", "new_string": "c"}
            found.append(
                self._event(
                    EventKind.TOOL_RESULT, name, session, tool_name="Edit", tool_input=edited
                )
            )
        last = await self.db.write(lambda tx: [_store(tx, event) for event in found][-1])
        await self.distiller.settle(last)
        return next((s for s in await self.all() if s.episode == name and s.rule == "turn"), None)

    def _event(self, kind, name, session, **payload):
        self.clock.advance(ms=1)
        payload = {key: redact_value(value) for key, value in payload.items()}
        key = f"{session}/{name}/{kind}/{payload.get('tool_name')}"
        return make_new_event(kind, at=self.clock(), turn=name, session=session, key=key, **payload)

    async def happens(self, name, session="s1", **payload):
        """Something more in a turn, distilled."""
        event = self._event(EventKind.TOOL_RESULT, name, session, **payload)
        await self.distiller.settle(await self.db.write(lambda tx: _store(tx, event)))

    async def get(self, number):
        return await self.db.read(lambda tx: summaries.get_summary(tx, number))

    async def all(self):
        def read(tx):
            last = tx.execute("SELECT coalesce(max(id), 0) FROM summaries").get
            return list(summaries.summaries_by_ids(tx, range(1, last + 1)).values())

        return await self.db.read(read)


def _store(tx, event):
    project = projects.ensure_project(tx, event.session.directory, "ledger", "", 1)
    session = projects.ensure_session(tx, event.session, project, event.at)
    projects.extend_session(tx, session, event.at, None)
    return events.append_event(tx, event, session)[0]
