"""What a page, a file, a test or an error said never speaks to a later session that did not ask for it."""

import re
import unicodedata

import pytest

from memd.config import InjectConfig
from memd.server.context_builder import ContextBuilder, RecentInjections
from memd.server.injection_types import InjectionMoment
from tests.distill.told_sessions import DIRECTORY, ToldSession
from tests.factories import AT
from tests.indexed_vault import IndexedVault
from tests.server.poisons import LOOKS, POISONS

LATIN = {look: chr(plain) for plain, look in LOOKS.items()}


def flatten(text):
    """The letters and digits alone."""
    folded = (
        unicodedata.normalize("NFKD", text)
        .casefold()
        .translate({ord(k) if isinstance(k, str) else k: v for k, v in LATIN.items()})
    )
    return "".join(c for c in folded if c.isalnum())


def reaches(text, shown):
    """Whether five words of a text, or nine letters of one without spaces, or the stranger's host are in what is shown."""
    flat = flatten(shown)
    words = [flatten(word) for word in re.split(r"[\s_./-]+", text)]
    runs = ["".join(words[at : at + 5]) for at in range(len(words) - 4)]
    if len(words) < 5:
        whole = flatten(text)
        runs = [whole[at : at + 9] for at in range(len(whole) - 8)]
    return "evilexample" in flat or any(run in flat for run in runs)


class Later:
    """A project in which a session was told, and what the sessions after it are shown."""

    def __init__(self, db, clock, tmp_path):
        self.db, self.clock = db, clock
        self.session = ToldSession(db, clock, tmp_path)
        self.library = IndexedVault(db)

    async def is_shown(self, moment="startup", prompt="", session="later", client="claude-code"):
        if not self.library.index.loaded:
            await self.library.indexer.load()
        await self.library.indexer.settle()
        builder = ContextBuilder(
            self.db, self.library.recaller, self.session._distiller, InjectConfig(prompt_hits=5, floor=0.05),
            lambda: AT + 3_600_000,
        )  # fmt: skip
        wanted = InjectionMoment(client, session, moment, "E", prompt, DIRECTORY)
        return (await builder.build(wanted, RecentInjections({}))).text or ""

    async def is_shown_anywhere(self, asked):
        """What a start, a compaction of the same session, its resumption, and a prompt are shown."""
        moments = [("startup", "later"), ("clear", "later"), ("compact", "s1"), ("resume", "s0")]
        shown = [await self.is_shown(moment, session=session) for moment, session in moments]
        return "\n".join([*shown, await self.is_shown("prompt", asked)])


@pytest.fixture
def later(db, clock, tmp_path):
    return Later(db, clock, tmp_path)


@pytest.mark.anyio
@pytest.mark.parametrize("poison", POISONS, ids=lambda one: one.name)
async def test_what_a_stranger_wrote_reaches_no_later_session_unasked(later, poison):
    await later.session.tell(*poison.steps)
    memories = await later.session.memories()
    assert not poison.is_kept or any(reaches(poison.text, f"{m.title}\n{m.body}") for m in memories)
    shown = await later.is_shown_anywhere(poison.asked)
    assert not reaches(poison.text, shown)
    shown = await later.is_shown_anywhere(f"what was said about this: {poison.text[:40]}")
    assert not reaches(poison.text, shown)
