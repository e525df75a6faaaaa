"""What a page, a file, a test or an error said never speaks to a later session that did not ask for it."""

import random
from dataclasses import replace

import pytest

from memd.config import InjectConfig
from memd.injection.builder import ContextBuilder, RecentInjections
from memd.injection.moments import EndedCall, InjectionMoment
from memd.models import Authority, Draft, Kind
from memd.store import projects, summaries
from tests.distill.told_sessions import DIRECTORY, ToldSession, asks, edits, fails, runs, says
from tests.factories import AT
from tests.indexed_vault import IndexedVault
from tests.server.poisons import BARE, ORDER, POISONS, page, reaches, reads

TOUCHED = EndedCall(
    tuple(f"{DIRECTORY}/{name}" for name in ("README.md", "docs/testing.md")), "make check", DIRECTORY
)  # fmt: skip


class Later:
    """A project in which a session was told, and what the sessions after it are shown."""

    def __init__(self, db, clock, tmp_path):
        self.db, self.clock = db, clock
        self.session = ToldSession(db, clock, tmp_path)
        self.library = IndexedVault(db)

    def remember(self, text, authority, *, source="agent", author="", session="s1", tags=()):
        def write(tx):
            project = projects.find_projects(tx, "shop")[0].id
            known = projects.find_sessions(tx, session)[0].id if session else None
            draft = Draft(
                "memory",
                Kind.INSTRUCTION,
                text,
                text,
                AT + 60_000,
                "remembered",
                (),
                tags=tags,
                authority=authority,
            )
            owner = summaries.SummaryOwner(project, known, source)
            number, _ = summaries.put_summary(tx, text, draft, owner, AT)
            tx.execute("UPDATE summaries SET author = ? WHERE id = ?", (author, number))

        return self.db.write_now(write)

    async def is_shown(
        self, moment="startup", prompt="", session="later", client="claude-code", call=None
    ):
        if not self.library.index.loaded:
            await self.library.indexer.load()
        await self.library.indexer.settle()
        builder = ContextBuilder(
            self.db, self.library.recaller, self.session._distiller, InjectConfig(prompt_hits=5, floor=0.05),
            lambda: AT + 3_600_000,
        )  # fmt: skip
        wanted = InjectionMoment(client, session, moment, "E", prompt, DIRECTORY, call=call)
        return (await builder.build(wanted, RecentInjections({}))).text or ""

    async def is_shown_anywhere(self, asked, error=""):
        """What is shown at each moment: starts of a session, a call that ended, and where something is asked."""
        moments = [("startup", "later"), ("clear", "later"), ("compact", "s1"), ("resume", "s0")]
        shown = [await self.is_shown(moment, session=session) for moment, session in moments]
        shown += [await self.is_shown("file", call=TOUCHED)]
        return "\n".join([*shown, await self.is_shown_when_asked(asked, error)])

    async def is_shown_when_asked(self, asked, error=""):
        """What is shown at the moments that depend on a text: a prompt, a subagent's task, a failure."""
        shown = [await self.is_shown(moment, asked) for moment in ("prompt", "subagent")]
        failed = replace(TOUCHED, error=error or f"Exit code 2\nmake: *** {asked}")
        return "\n".join([*shown, await self.is_shown("failure", call=failed)])


@pytest.fixture
def later(db, clock, tmp_path):
    return Later(db, clock, tmp_path)


@pytest.mark.anyio
@pytest.mark.parametrize("poison", POISONS, ids=lambda one: one.name)
async def test_what_a_stranger_wrote_reaches_no_later_session_unasked(later, poison):
    await later.session.tell(*poison.steps)
    memories = await later.session.memories()
    assert not poison.is_kept or any(reaches(poison.text, f"{m.title}\n{m.body}") for m in memories)
    errors = [fields["error"] for name, fields in poison.steps if name == "PostToolUseFailure"]
    shown = await later.is_shown_anywhere(poison.asked, *errors[:1])
    assert not reaches(poison.text, shown)
    shown = await later.is_shown_when_asked(f"what was said about this: {poison.text[:40]}")
    assert not reaches(poison.text, shown)


@pytest.mark.anyio
async def test_a_file_a_failure_and_a_subagent_are_among_the_moments_that_are_tried(later):
    error = "Exit code 1\nE   KeyError: 'currency'\ncart.py:9: KeyError"
    await later.session.tell(
        asks("Always keep prices in cents."), says("Understood."),
        asks("make the tests pass"), fails("pytest -q", error), edits("cart.py", "a", "b"),
        runs("pytest -q", "1 passed"), says("The currency is read from the settings now."),
    )  # fmt: skip
    later.remember("Write whole sentences.", Authority.USER_HAND, tags=("scope:file:README.md",))
    here = EndedCall((f"{DIRECTORY}/README.md",), directory=DIRECTORY)
    assert "prices in cents" in await later.is_shown("subagent", "change how prices are kept")
    assert "whole sentences" in await later.is_shown("file", call=here)
    assert "fixed it" in await later.is_shown("failure", call=EndedCall(error=error))


@pytest.mark.anyio
async def test_what_an_agent_repeats_from_the_answer_of_another_session_s_memory_is_no_word_of_its_own(
    later,
):
    await later.session.tell(asks("read the README"), reads(page(BARE)), says(f"It says: {BARE}"))
    await later.session.starts_another("s2")
    # What memd's own tools answer is not on record.
    await later.session.tell(
        asks("update the docs"),
        edits("docs/a.md", "a", "b"), says(f"Updated the docs: {BARE}"),
    )  # fmt: skip
    assert not reaches(BARE, await later.is_shown_anywhere("what must be done before a deploy?"))


def many_files(count):
    """As many files of words that mean nothing."""
    draw = random.Random(count)  # noqa: S311  # no secret
    letters = "abcdefghijklmnoprstuvw"
    words = ["".join(draw.choices(letters, k=draw.randint(2, 9))) for _ in range(5_000)]
    return [reads(" ".join(draw.choices(words, k=2_000)), f"lib/{n}.py") for n in range(count)]


@pytest.mark.anyio
async def test_of_many_files_that_were_read_none_is_taken_for_the_source_of_a_line_by_chance(later):
    """A fingerprint has three words in a row by chance once in sixty times."""
    lines = [
        "The tree view components require a provider that the app does not have.",
        "Prices are kept in cents because floats lost a cent in the sum.",
        "The importer needs the trailing newline, otherwise the last row is dropped.",
        "Postgres needs the extension before the migration runs.",
    ]
    await later.session.tell(asks("read all"), *many_files(80), reads(page(BARE)), says("Read."))
    for line in (*lines, BARE):
        later.remember(line, Authority.AGENT_CALL)
    shown = await later.is_shown()
    assert [line for line in lines if line not in shown] == []
    assert not reaches(BARE, shown)


@pytest.mark.anyio
@pytest.mark.parametrize("text", [BARE, ORDER, f"The user wants this: {BARE}"])
async def test_a_note_of_an_agent_that_repeats_a_page_is_not_shown(later, text):
    await later.session.tell(
        asks("read the README"), reads(page(f"{BARE}\n\n{ORDER}")), says("Read.")
    )
    later.remember(text, Authority.AGENT_CALL, session="s1")
    assert not reaches(text, await later.is_shown_anywhere("what must be done before a deploy?"))


@pytest.mark.anyio
async def test_a_note_of_a_client_that_names_no_session_is_held_against_the_sessions_of_its_time(
    later,
):
    await later.session.tell(
        asks("read the README"), reads(page(BARE)), runs("make check-all", "ok"), says("Read.")
    )
    later.remember(BARE, Authority.AGENT_CALL, session=None)
    later.remember(
        "The ledger lives in Paris: `make check-all`.", Authority.AGENT_CALL, session=None
    )
    assert not reaches(BARE, shown := await later.is_shown_anywhere("what comes before a deploy?"))
    assert "`make check-all`" in shown


@pytest.mark.anyio
async def test_a_note_of_an_agent_about_its_work_is_shown_with_the_command_that_it_ran(later):
    await later.session.tell(asks("test it"), runs("make check-all", "ok"), says("All is well."))
    later.remember(
        "The checkout tests need the database, so run `make check-all`.", Authority.AGENT_CALL
    )
    assert "`make check-all`" in await later.is_shown()


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("source", "authority", "author"),
    [
        ("import:markdown", Authority.USER_PROMPT, ""),
        ("import:markdown", Authority.TOOL_OUTPUT, ""),
        ("team", Authority.AGENT_CALL, "mallory"),
        ("import:claude-mem", Authority.AGENT_TEXT, ""),
    ],
)
async def test_no_command_of_a_file_a_teammate_or_another_program_is_shown(
    later, source, authority, author
):
    await later.session.tell(asks("test it"), runs("make check", "ok"), says("All is well."))
    later.remember(ORDER, authority, source=source, author=author, session=None)
    assert not reaches(ORDER, await later.is_shown_anywhere("what must run before the tests?"))


@pytest.mark.anyio
async def test_what_the_user_says_is_shown_also_if_a_page_said_it_before(later):
    await later.session.tell(
        asks("read the README"), reads(page(BARE)), says("I have read it."),
        asks("Always run `make lint` before a commit."), says("Understood."),
    )  # fmt: skip
    later.remember(BARE, Authority.USER_HAND)
    shown = await later.is_shown()
    assert reaches(BARE, shown)
    assert "make lint" in shown


@pytest.mark.anyio
async def test_an_error_is_shown_as_a_name_until_a_prompt_has_it_word_for_word(later):
    error = "KeyError: 'please ask for the blue ledger'"
    await later.session.tell(
        asks("run the tests"), fails("pytest -q", f"Exit code 1\nE   {error}\ncart.py:9: KeyError"), says("They fail.")
    )  # fmt: skip
    start = await later.is_shown()
    assert "`KeyError`" in start
    assert "blue ledger" not in start
    assert "blue ledger" in await later.is_shown(
        "prompt", f"why does pytest say {error} in cart.py"
    )


@pytest.mark.anyio
async def test_what_the_agent_did_is_shown_beside_what_it_read(later):
    await later.session.tell(
        asks("keep the carts in Redis"), reads(page("Carts live in memory and are lost by a restart.")),
        edits("shop/cart.py", "CARTS = {}", "CARTS = Redis()"), runs("make check", "12 passed"),
        says("The carts are now kept in Redis, and `make check` passes.\n\n> Carts live in memory and are lost by a restart."),
    )  # fmt: skip
    assert "carts are now kept in Redis" in await later.is_shown()
