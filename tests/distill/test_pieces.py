"""A go-ahead, a choice, a correction and a chore belong to the memory of the work that they continue."""

import json
import random

import pytest

from memd.capture.ingest import Ingestor
from memd.capture.prepare import CaptureRequest
from memd.config import CaptureConfig, DistillConfig
from memd.distill.distiller import Distiller
from memd.distill.work import PIECE_TURNS_MAX, TurnOutline, find_continued, find_places
from memd.models import Kind
from memd.store import events, ledger
from memd.transfer.transcripts import TranscriptReader
from tests.distill.told_sessions import ToldSession, asks, edits, fails, runs, says, writes
from tests.factories import AT

PROPOSED = (
    "The invoices are numbered per customer, which leaves gaps. I could number them per year instead, with the year "
    "in front, and keep the old numbers as they are.\n\nShould I number them per year?"
)
DONE = (
    "Invoices are numbered per year now: `2031-0007` follows `2031-0006`, whoever the customer is."
)
WORK = (asks("number the invoices per year"), edits("shop/invoice.py"), says(DONE))


def outline(prompt, answer="", key="t", **fields):
    return TurnOutline(key, 1, AT, key, prompt, answer, is_answered=bool(answer), **fields)


def role_after(prompt, before=None):
    asked = outline("the invoices have gaps, what do you think?", PROPOSED)
    found = find_continued(outline(prompt), [before or asked])
    return found[1] if found else None


@pytest.mark.parametrize(
    "prompt", ["yes", "Yes, do it", "ok go ahead", "1", "commit", "commit and push", "/commit", "run the linter", "thanks!", "ja mach", "続けて",
     "Wonderful, thank you very much", "ok great, thanks a lot, perfect"]
)  # fmt: skip
def test_a_few_words_that_change_no_file_belong_to_the_work_before(prompt):
    assert role_after(prompt) == "follows"


def test_a_few_words_that_bring_work_have_a_memory_of_their_own():
    asked = outline("the invoices have gaps, what do you think?", PROPOSED)
    assert find_continued(outline("yes", DONE, has_edits=True), [asked]) is None


@pytest.mark.parametrize(
    "prompt",
    ["add a login page", "why?", "are you sure?", "what does the year stand for?", "the tests are slow", "show me the diff", "still broken", "nope, same error",
     "also update the docs", "commit messages should name the ticket", "no idea whether this fits, what would other shops do with gaps in their numbers?"],
)  # fmt: skip
def test_what_may_begin_something_new_stays_its_own(prompt):
    assert role_after(prompt) is None


@pytest.mark.parametrize(
    ("prompt", "answer", "role"),
    [
        ("la réponse vient du contexte", "Peux-tu la dire en cinq mots ?", "follows"),
        ("請求書の番号を年ごとに変えて、古い番号はそのまま残し、名前も一緒に決めてください、頼みます", "どちらですか？", "follows"),
        ("take the gaps out of the numbers", "Choose:\nA) per year\nB) per customer\n\nA or B.", "follows"),
        ("# undefined\n\nRead the file at: undefined", "I cannot read this, the path is “undefined”.", "follows"),
        ("take the gaps out of the numbers", "Each number is given out once now.", None),
        ("take the gaps out of the numbers", f"{DONE * 4} Shall I go on?", None),
        ("how do we number credit notes?", "In which country?", None),
    ],
)  # fmt: skip
def test_a_turn_in_which_the_agent_only_asks_back_belongs_to_the_work_before(prompt, answer, role):
    asked = outline("the invoices have gaps, what do you think?", PROPOSED)
    found = find_continued(outline(prompt, answer), [asked])
    assert (found and found[1]) == role
    looked = outline(prompt, answer, has_calls=True)
    assert find_continued(looked, [asked]) is None


async def test_a_piece_begins_with_the_first_turn_that_is_more_than_a_menu(session):
    menu = "1. [MH] Show the menu again\n2. [CR] Check the invoices\n3. [XX] Leave"
    await session.tell(asks("Become Clerk, and load all of your file."), runs("cat clerk.md", menu), says(f"At your service.\n\n{menu}"))  # fmt: skip
    assert await turns_of(session) == []
    await session.tell(asks("CR"), runs("cat invoices.csv", "4\n6"), says(f"{DONE} Number 0005 is missing, since its customer was deleted."))  # fmt: skip
    (one,) = await turns_of(session)
    assert one.body.startswith("Asked: CR")
    assert "Become Clerk" not in one.body


def test_nothing_joins_a_private_turn_or_another_project():
    private = outline("[…]", PROPOSED, is_private=True)
    elsewhere = outline("number them per year?", PROPOSED, place="/home/dev/other")
    assert role_after("yes", private) is role_after("yes", elsewhere) is None


def test_a_long_piece_is_told_in_several_memories():
    turns = [outline("number them per year?", PROPOSED, "t0")]
    turns += [outline("continue", "Going on.", f"t{number}") for number in range(1, 30)]
    heads = [place.head for place in find_places(turns).values()]
    assert max(heads.count(head) for head in heads) == PIECE_TURNS_MAX
    assert heads == sorted(heads, key=lambda head: int(head[1:]))


async def turns_of(session):
    """The memories of whole turns: what was done, without the statements in it."""
    return [one for one in await session.memories() if one.rule == "turn"]


async def test_a_go_ahead_is_told_with_what_it_agreed_to(session):
    await session.tell(asks("the invoices have gaps, what do you think?"), says(PROPOSED))
    (before,) = await turns_of(session)
    await session.tell(asks("mind credit notes"), says("Credit notes keep their own numbers then; each year begins at 0001."))  # fmt: skip
    (one,) = await turns_of(session)
    assert (one.id, one.uid) == (before.id, before.uid)
    assert one.body.startswith("Asked: the invoices have gaps")
    for words in ("mind credit notes", "leaves gaps", "keep their own numbers"):
        assert words in one.body


async def test_a_go_ahead_that_brought_work_is_told_apart_with_what_it_agreed_to(session):
    await session.tell(asks("the invoices have gaps, what do you think?"), says(PROPOSED))
    await session.tell(asks("yes, do it"), edits("shop/invoice.py"), says(DONE))
    _, done = await turns_of(session)
    assert done.kind is Kind.CHANGE
    assert "numbered per year" in done.title
    assert "number them per year" in done.body


async def test_a_chore_adds_what_it_did_and_no_memory(session):
    await session.tell(*WORK)
    (before,) = await turns_of(session)
    await session.tell(
        asks("commit"), runs("git commit -am 'Number invoices per year'"), says("Committed.")
    )
    (one,) = await turns_of(session)
    assert one.id == before.id
    assert "Committed: Number invoices per year" in one.body
    assert "2031-0007" in one.body
    assert "Committed" not in one.title


async def test_the_summary_after_a_chore_is_the_outcome_of_the_piece(session):
    summary = (
        "Committed and pushed. The branch now numbers invoices per year, keeps the old numbers readable, moves the "
        "counter into its own table `invoice_counters` with a lock on each year, and has a migration for the 1,204 "
        "invoices that exist. The reminder mails still show the old numbers; that is left for the next branch."
    )
    await session.tell(*WORK)
    await session.tell(asks("commit and push"), runs("git push"), says(summary))
    (one,) = await turns_of(session)
    assert "Answered: Committed and pushed. The branch now numbers" in one.body
    assert DONE in one.body


async def test_statements_of_a_joined_turn_stay_memories_of_that_turn(session):
    await session.tell(*WORK)
    await session.tell(asks("Remember that the vault is locked at nine."), says("I will. Shall I go on?"))  # fmt: skip
    (one,) = await turns_of(session)
    assert "Then: Remember that the vault" in one.body
    (kept,) = [m for m in await session.memories() if m.kind is Kind.FACT]
    assert kept.episode != one.episode
    assert kept.title.startswith("The vault is locked at nine")


ENDED = asks(
    "<task-notification><task-id>b1</task-id><status>completed</status></task-notification>"
)
BRANCHES = (
    "The cleanup of the branches is complete: 53 of 61 branches are deleted, each of them after a check that `main` has "
    "all of it. Eight branches stay, since they have work of their own that nobody has merged."
)


async def test_what_a_task_in_the_background_brings_belongs_to_the_work_that_started_it(session):
    started = "Eleven agents look into the branches now, and I tell you what they have found."
    await session.tell(
        asks("which branches are merged? delete them"), runs("git branch -v"), says(started)
    )
    for count in range(PIECE_TURNS_MAX + 1):
        await session.tell(
            ENDED, runs(f"git branch -d old-{count}"), says("One more agent is done.")
        )
    await session.tell(ENDED, runs("git branch -D older"), says(BRANCHES))
    (one,) = await turns_of(session)
    assert "53 of 61 branches are deleted" in one.title
    assert f"Answered: {BRANCHES}" in one.body
    await session.tell(*WORK)
    assert DONE.split(":", maxsplit=1)[0] in [told.title for told in await turns_of(session)][-1]


async def test_a_check_that_a_later_turn_of_the_piece_mends_is_one_fix(session):
    failure = fails("pytest tests/test_invoice.py", "Exit code 1\nE   KeyError: 'year'")
    await session.tell(asks("number the invoices per year"), edits(), failure, says("One fails."))
    await session.tell(
        asks("go on and mend it"), edits("shop/year.py"), runs("pytest tests/test_invoice.py", "4 passed"), says("It passes.")
    )  # fmt: skip
    shown = [one for one in await session.memories() if one.superseded_by is None]
    assert [one.kind for one in shown].count(Kind.FIX) <= 1


def compiler_says(place):
    return fails("go build ./...", f"Exit code 1\n{place}:7:2: undefined: Year")


async def test_a_compilers_word_about_a_line_just_written_is_no_problem_of_its_own(session):
    built = runs("go build ./...", "")
    await session.tell(asks("number the invoices per year"), edits("invoice.go"), compiler_says("./invoice.go"), edits("invoice.go", "Year", "year"), built, says(DONE))  # fmt: skip
    (one,) = await session.memories()
    assert one.kind is Kind.CHANGE
    await session.tell(asks("why is the build red?"), compiler_says("./invoice.go"), edits("invoice.go", "y", "year"), built, says("It builds."))  # fmt: skip
    assert len(await session.fixes()) == 1


async def test_a_compilers_word_about_another_file_is_a_consequence_of_the_work_too(session):
    await session.tell(asks("number the invoices per year"), edits("invoice.go"), compiler_says("./export.go"), edits("export.go"), runs("go build ./...", ""), says(DONE))  # fmt: skip
    (one,) = await session.memories()
    assert (one.kind, "Error: " in one.body) == (Kind.CHANGE, False)


TURNS = (
    WORK,
    (asks("no, only for new customers"), edits("shop/customer.py"), says("Old customers keep theirs.")),
    (asks("commit"), runs("git commit -am 'Number invoices per year'"), says("Committed.")),
    (asks("why is the export slow?"), says("It reads each invoice twice: `export_all` calls `load` in both loops, once to count and once to write, so the file grows slowly.")),
    (asks("the mails should wait, what do you think of a queue?"), says("A queue fits. " + PROPOSED)),
    (asks("yes"), writes("shop/queue.py", "class Queue: ...\n"), says("Mails wait in `Queue` until the next full minute.")),
    (asks("push"), runs("git push"), says("Pushed.")),
)  # fmt: skip


async def dump(session, name="s1"):
    """What the memories say, whatever their numbers and the session."""
    return sorted(
        (one.kind.value, one.title, one.body, one.files, (one.episode or "").removeprefix(name))
        for one in await session.memories()
        if one.rule == "turn"
    )


@pytest.fixture
async def told(session):
    for steps in TURNS:
        await session.tell(*steps)
    return await dump(session)


async def test_seven_turns_are_five_pieces(told):
    assert [row[0] for row in told].count("change") == 3
    assert [row[0] for row in told].count("discovery") == 2


async def test_distilling_again_changes_nothing(told, session, db):
    def again(tx):
        events.mark_pending(tx, range(1, 100))

    for _ in range(2):
        await db.write(again)
        await session.distils()
        assert await dump(session) == told


@pytest.mark.parametrize("seed", range(6))
async def test_turns_that_arrive_in_any_order_make_the_same_memories(told, db, clock, tmp_path, seed):  # fmt: skip
    late = ToldSession(db, clock, tmp_path, "late")
    steps = list(enumerate(TURNS))
    random.Random(seed).shuffle(steps)  # noqa: S311  # only another order each time
    before = await dump(late)
    for number, turn in steps:
        # Each turn has its time and its id, whenever it arrives.
        late._turn = number
        late._steps = sum(len(earlier) for earlier in TURNS[:number])
        await late.tell(*turn)
    mine = [row for row in await dump(late, "late") if row[4].startswith("-")]
    assert sorted(row[:4] for row in mine) == sorted(row[:4] for row in told)
    assert len(before) == len(told)


async def test_a_forgotten_piece_takes_no_later_turn_along(session, db):
    await session.tell(*WORK)
    (one,) = await turns_of(session)

    def forget(tx):
        tx.execute("DELETE FROM summaries WHERE id = ?", (one.id,))
        ledger.record_forgotten(tx, one.uid, AT)

    await db.write(forget)
    await session.tell(asks("also update the docs"), edits("docs/invoices.md"), says("The docs name the year in front of each number."))  # fmt: skip
    (other,) = await turns_of(session)
    assert other.uid != one.uid
    assert other.files == ("docs/invoices.md",)


def _lines():
    """The turns as a transcript of the client."""
    steps = [(turn, *step) for turn, found in enumerate(TURNS) for step in found]
    for number, (turn, name, fields) in enumerate(steps, 1):
        base = {
            "sessionId": "s1",
            "timestamp": f"2031-01-01T10:00:{number:02}.000Z",
            "uuid": f"u{number}",
            "cwd": "/home/dev/shop",
        }
        says = base | {"type": "assistant"}
        if name == "UserPromptSubmit":
            yield base | {
                "type": "user",
                "promptId": f"p{turn}",
                "message": {"content": fields["prompt"]},
            }
        elif name == "Stop":
            said = [{"type": "text", "text": fields["last_assistant_message"]}]
            yield says | {
                "message": {"id": f"m{number}", "content": said, "stop_reason": "end_turn"}
            }
        else:
            use = {
                "type": "tool_use",
                "id": f"t{number}",
                "name": fields["tool_name"],
                "input": fields["tool_input"],
            }
            yield says | {
                "message": {"id": f"m{number}", "content": [use], "stop_reason": "tool_use"}
            }
            done = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "ok"}
            yield base | {
                "type": "user", "uuid": f"r{number}", "promptId": f"p{turn}",
                "toolUseResult": fields["tool_response"], "message": {"content": [done]},
            }  # fmt: skip


async def test_hooks_and_an_import_make_the_same_pieces(told, db, clock, tmp_path):
    reader = TranscriptReader()
    found = [p for line in _lines() for p in reader.feed(json.dumps(line))] + reader.finish()
    ingestor = Ingestor(db, CaptureConfig(), clock, str(tmp_path / "spool"), lambda: None)
    given = [
        CaptureRequest("claude-code", p.payload | {"session_id": "imported"}, p.at, "/home/dev/shop", "import")
        for p in found
    ]  # fmt: skip
    await ingestor.capture(given)
    await Distiller(db, DistillConfig(), clock, lambda: None).settle(1_000_000)
    other = ToldSession(db, clock, tmp_path, "imported")
    mine = [row[:4] for row in await dump(other)]
    assert sorted(mine) == sorted([row[:4] for row in told] * 2)


def test_the_very_same_prompt_that_brings_nothing_again_and_again_is_one():
    before = outline("Check errors: none", "Nothing is wrong. Stop asking.")
    again = outline("check errors:  none", "Still nothing.")
    assert find_continued(again, [before]) == (before, "resumed")
    assert find_continued(outline("check errors", "Fixed it.", has_edits=True), [before]) is None
