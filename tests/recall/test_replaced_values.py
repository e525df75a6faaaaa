"""What is remembered of a setting that was changed and changed again, from the hooks to the answer."""

import pytest

from memd.config import Config
from memd.embeddings.hashing import HashingEmbedder
from memd.index.indexer import Indexer
from memd.index.memory_index import MemoryIndex
from memd.injection.choice import DAY_MS
from memd.injection.start import SessionPlace, read_candidates, read_session_state
from memd.recall import Question
from memd.recall.provenance import explain_node
from memd.recall.recaller import Recaller
from tests.distill import told_sessions
from tests.distill.told_sessions import DIRECTORY, asks, edits, fails, says, writes
from tests.tables import read_tables

TABLES = read_tables("recall/replaced_values")


class Project(told_sessions.ToldSession):
    """Sessions of one project, and an index of what is remembered of them."""

    def __init__(self, db, clock, tmp_path):
        super().__init__(db, clock, tmp_path)
        self._index = MemoryIndex()
        embedders = [HashingEmbedder()]
        self._indexer = Indexer(db, embedders, self._index)
        self._recaller = Recaller(db, embedders, self._index, Config().recall, {})
        self._days = 0

    async def turn(self, prompt, *steps, answer="Done."):
        """A turn that edits; the memory that it leaves."""
        known = {one.id for one in await self.memories()}
        await self.tell(asks(prompt), *steps, says(answer))
        return next((one for one in await self.memories() if one.id not in known), None)

    async def days_later(self, days=2):
        self._days += days
        self._steps += days * DAY_MS // 1000
        await self.starts_another(f"s{self._days}")

    async def ask(self, text, **more):
        if not self._index.loaded:
            await self._indexer.load()
        await self._indexer.settle()
        return (await self._recaller.search(Question(text, self.clock.now + 1000, **more))).hits

    async def why(self, memory):
        return await explain_node(self.db, "summary", str(memory.id), depth=1, project_ids=None)


@pytest.fixture
def project(db, clock, tmp_path):
    return Project(db, clock, tmp_path)


CHANGED_AGAIN = TABLES["CHANGED_AGAIN"]


@pytest.mark.parametrize("is_later", [False, True])
@pytest.mark.parametrize("case", CHANGED_AGAIN)
async def test_the_present_value_comes_first_and_says_what_it_replaced(project, case, is_later):
    path, line, values, first, then, question = case
    was, middle, now = (line.format(value) for value in values)
    old = await project.turn(first, edits(path, was, middle))
    if is_later:
        await project.days_later()
    new = await project.turn(then, edits(path, middle, now), answer="好的。" if is_later else "ok")
    hits = await project.ask(question)
    assert [hit.summary.id for hit in hits][:2] == [new.id, old.id]
    assert f"= {values[1]} of #{old.id}" in hits[0].replaces
    assert f"value replaced by #{new.id}" in hits[1].older_value
    assert hits[0].score >= hits[1].score
    why = await project.why(old)
    assert why.verdict == f"value replaced by #{new.id} (changed-value)"
    assert str(values[2]) in why.values[0]


LIMIT = ("RETRY_LIMIT = 10", "RETRY_LIMIT = 30")
LOOK_ALIKES = {
    "another file of the name": [edits("worker/config.py", "RETRY_LIMIT = 30", "RETRY_LIMIT = 60")],
    "another name": [edits("config.py", "RETRY_DELAY = 30", "RETRY_DELAY = 60")],
    "a longer name": [edits("config.py", "MAX_RETRY_LIMIT = 30", "MAX_RETRY_LIMIT = 60")],
    "a test's fixture": [edits("tests/config.py", "RETRY_LIMIT = 30", "RETRY_LIMIT = 60")],
    "given back at once": [edits("config.py", "RETRY_LIMIT = 30", "RETRY_LIMIT = 60"), edits("config.py", "RETRY_LIMIT = 60", "RETRY_LIMIT = 30")],
    "a comment": [edits("config.py", "# RETRY_LIMIT = 30", "# RETRY_LIMIT = 60")],
    "a docstring": [edits("config.py", '"""\nRETRY_LIMIT = 30\n"""', '"""\nRETRY_LIMIT = 60\n"""')],
    "a condition": [edits("config.py", "if RETRY_LIMIT == 30:", "if RETRY_LIMIT == 60:")],
    "a message": [edits("config.py", 'say("RETRY_LIMIT = 30")', 'say("RETRY_LIMIT = 60")')],
    "a document": [edits("README.md", "RETRY_LIMIT = 30", "RETRY_LIMIT = 60")],
    "the same value in all of the file": [writes("config.py", "RETRY_LIMIT = 30\nRETRY_DELAY = 60\n")],
    "a call that failed": [fails("sed -i s/30/60/ config.py", "sed: permission denied")],
}  # fmt: skip


@pytest.mark.parametrize("name", LOOK_ALIKES)
async def test_what_only_looks_like_the_setting_replaces_nothing(project, name):
    old = await project.turn("Bump the retry limit to 30", edits("config.py", *LIMIT))
    await project.days_later()
    await project.turn("and now the other thing, 60", *LOOK_ALIKES[name])
    assert (await project.why(old)).values == ()
    hits = await project.ask("what is the retry limit now?")
    assert [hit.older_value for hit in hits if hit.summary.id == old.id] == [None]


@pytest.mark.parametrize(
    ("path", "one", "other"), TABLES["the_same_name_in_another_place_is_another_setting"]
)
async def test_the_same_name_in_another_place_is_another_setting(project, path, one, other):
    old = await project.turn("Set the port to 81", edits(path, one.format(80), one.format(81)))
    await project.days_later()
    await project.turn("and 82 there", edits(path, other.format(81), other.format(82)))
    assert (await project.why(old)).values == ()


async def test_a_value_that_came_back_is_present_and_told_by_the_newest(project):
    memories = []
    for was, now in ((10, 30), (30, 60), (60, 30)):
        step = edits("config.py", f"RETRY_LIMIT = {was}", f"RETRY_LIMIT = {now}")
        memories.append(await project.turn(f"retry limit {now} please", step))
        await project.days_later()
    first, second, third = memories
    hits = await project.ask("what is the retry limit now?")
    assert hits[0].summary.id == third.id
    marks = {hit.summary.id: bool(hit.older_value) for hit in hits}
    assert marks == {first.id: False, second.id: True, third.id: False}
    former = await project.ask("what was the retry limit before?")
    assert former[0].summary.id == second.id


async def test_work_that_changed_more_is_still_found_for_what_holds_of_it(project):
    told = "The uploader retries 30 times with jitter and checks mime types by an allow list."
    work = await project.turn(
        "Harden the uploader: retry limit 30, jitter, mime types",
        edits("up.py", *LIMIT),
        edits("up.py", "def send(x):", "def send(x, jitter):"),
        writes("mime.py", "def check(kind): ...\n"),
        answer=told,
    )
    await project.days_later()
    new = await project.turn(
        "30 is too few, 60", edits("up.py", "RETRY_LIMIT = 30", "RETRY_LIMIT = 60")
    )
    (first, *_) = await project.ask("which mime types does the uploader check?")
    assert first.summary.id == work.id
    assert first.older_value == f"value replaced by #{new.id}: RETRY_LIMIT = 60, not 30 (up.py)"
    assert [hit.summary.id for hit in await project.ask("retry limit of the uploader")][:2] == [
        new.id,
        work.id,
    ]


async def test_all_of_a_file_written_anew_replaces_what_it_changes(project):
    old = await project.turn(
        "Create the settings", writes("s.yaml", "server:\n  port: 80\ntries: 3\n")
    )
    await project.days_later()
    new = await project.turn("81 instead", writes("s.yaml", "server:\n  port: 81\ntries: 3\n"))
    assert (await project.why(old)).values == (
        f"value replaced by #{new.id}: server.port = 81, not 80 (s.yaml)",
    )


async def test_a_statement_of_the_turn_is_replaced_with_its_setting(project):
    await project.turn("Decision: the retry limit is 30.", edits("config.py", *LIMIT))
    stated = next(one for one in await project.memories() if one.kind == "decision")
    await project.days_later()
    new = await project.turn(
        "make it 60", edits("config.py", "RETRY_LIMIT = 30", "RETRY_LIMIT = 60")
    )
    assert (await project.why(stated)).verdict == f"value replaced by #{new.id} (changed-value)"
    hits = await project.ask("what is the retry limit?")
    assert hits[0].summary.id == new.id


async def test_a_correction_tells_the_value_that_holds(project):
    told = "I raised the retry limit to 30 in config.py."
    await project.turn("Bump the retry limit to 30", edits("config.py", *LIMIT), answer=told)
    step = edits("config.py", "RETRY_LIMIT = 30", "RETRY_LIMIT = 60")
    now = await project.turn("actually make it 60", step)
    assert "RETRY_LIMIT 30 → 60" in now.title
    assert "Set: RETRY_LIMIT 30 → 60" in now.body


async def test_the_title_of_work_on_one_setting_tells_both_values(project):
    told = await project.turn(
        "30 is not enough, make it 60", edits("c.py", "LIMIT = 30", "LIMIT = 60")
    )
    assert told.title == "30 is not enough, make it 60: LIMIT 30 → 60"


async def test_a_session_does_not_start_with_a_value_that_was_replaced(project):
    old = await project.turn(
        "Raise the retry limit of the mailer", edits("config.py", *LIMIT),
        answer="Raised the retry limit of the mailer to 30.",
    )  # fmt: skip
    await project.days_later()
    await project.turn("make it 60", edits("config.py", "RETRY_LIMIT = 30", "RETRY_LIMIT = 60"))
    now = project.clock.now + 1000
    place = SessionPlace(project_key=DIRECTORY)

    def read(tx):
        here = read_session_state(tx, place, None, with_prompts=False)
        return read_candidates(tx, here, "startup", now)

    found = await project.db.read(read)
    left_out = {one.candidate.id: one.why for one in found.left_out}
    assert left_out[old.id].startswith("value replaced by")


async def test_a_weak_answer_is_no_use_of_what_it_shows(project):
    await project.turn("Bump the retry limit to 30", edits("config.py", *LIMIT))
    await project.ask("retry limit")
    assert project._recaller.status()["uses_pending"] == 1
    await project.ask("who waters the office plants while the retry season lasts")
    assert project._recaller.status()["uses_pending"] == 1
