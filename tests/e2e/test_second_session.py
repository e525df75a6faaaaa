"""What the second session of a fresh user knows of the first: real daemons, hooks and repositories."""

import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memd.client import Client
from tests.e2e.hooked_session import Session
from tests.e2e.real_daemon import RealDaemon

GIT = shutil.which("git")
NUMBERS = itertools.count(1)
BASKET = (
    "TypeError: Cannot read properties of undefined (reading 'basket')\n"
    "    at renderCart (/home/dev/shop/src/cart.ts:41:17)\n"
    "    at processTicksAndRejections (node:internal/process/task_queues:95:5)"
)
POLICY = "Deploys to production go out on Tuesday mornings only, never on Fridays."


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    it = RealDaemon(tmp_path_factory.mktemp("d")).start()
    yield it
    it.stop()


@pytest.fixture
def begin(daemon, tmp_path):
    """Begin a session in a directory; it and what its start tells."""
    (tmp_path / ".git").mkdir()

    def start(project=tmp_path):
        session = Session(daemon, f"second{next(NUMBERS)}", str(project))
        return session, session.hook("SessionStart", source="startup")

    return start


def edit(session, name):
    path = Path(session.project, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x = 2\n", "utf-8")
    session.touches(name, "Edit")


def work(begin, asked, answer, *, commit="", name="src/app.py"):
    session, _ = begin()
    session.asks(asked)
    edit(session, name)
    if commit:
        session.runs(f'git commit -qam "{commit}"', f"[main 1234567] {commit}")
    session.ends(answer)


# ── What is open, and why ────────────────────────────────────────────────────────────────────────


def test_a_start_tells_beside_a_commit_what_is_open_and_why(begin):
    answer = (
        "Webhooks are sent three times.\n\nStill open: the queue is not durable yet, because the sandbox of the"
        " vendor rejects streams."
    )
    work(begin, "Send webhooks more than once", answer, commit="Send webhooks three times")
    _, told = begin()
    assert "Send webhooks three times (app.py)" in told
    assert (
        "  Still open: the queue is not durable yet, because the sandbox of the vendor rejects"
        in told
    )
    work(
        begin,
        "Then go on",
        "The queue is durable now: streams work in the vendor's sandbox.",
        commit="Keep the queue",
    )
    assert "Still open" not in begin()[1]


# ── Requests that were done ──────────────────────────────────────────────────────────────────────


def test_a_request_that_was_done_is_not_told_as_if_it_stood(begin):
    work(
        begin, "The export dialog needs a cancel button next to the save button. Tokens are never kept in the browser's storage.",
        "The export dialog has a cancel button beside save.",
    )  # fmt: skip
    work(begin, "Remove the banner above the list of orders", "Done.", name="src/orders.py")
    session, _ = begin()
    session.asks("The nightly report should also be sent to the finance team.")
    session.ends("I can do that once you tell me their address.")
    _, told = begin()
    said = told.partition("Said lately")[2]
    assert "“The nightly report should also be sent to the finance team.”" in said
    assert "Tokens are never kept in the browser's storage" in told
    assert "cancel button" not in said
    assert "banner" not in said


def test_what_was_asked_and_not_reached_stands(begin):
    work(begin, "The search index should be rebuilt every night.", "I could not have the index rebuilt every night: cron is missing here.")  # fmt: skip
    assert "“The search index should be rebuilt every night.”" in begin()[1]


def test_reports_that_were_dealt_with_and_answers_of_a_few_words_are_not_told(begin):
    session, _ = begin()
    session.asks("Which module of the shop should be written next?")
    session.ends("There are storage and mail. Which of them first?")
    session.asks("First the storage module. Money is always counted in cents, never in floats.")
    edit(session, "src/storage.py")
    session.ends("Orders are written to `shop.db` now; three tests hold that.")
    session.asks("The totals are not shown in the cart of a guest.")
    edit(session, "src/cart.py")
    session.ends("It asked for an account before it counted.")
    said = begin()[1].partition("Said lately")[2]
    assert "counted in cents" in said
    assert "storage module" not in said
    assert "totals are not shown" not in said


def test_what_the_next_prompt_takes_back_is_told_with_that_prompt(begin):
    session, _ = begin()
    for rule, after in (
        ("Never touch `logs/`.", "hm no, forget that"),
        ("Always run `make lint` before you commit.", "no, the other file please"),
        ("We decided to move to Postgres because SQLite locks.", "nah, keep sqlite for now"),
        ("We decided to open at 7 because the bus is early.", "Remember that hall 2 has 84 seats."),
    ):
        session.asks(rule)
        session.ends("Noted.")
        session.asks(after)
        session.ends("All right.")
    lines = begin()[1].splitlines()
    (logs,) = (line for line in lines if "`logs/`" in line)
    (lint,) = (line for line in lines if "`make lint`" in line)
    (moved,) = (line for line in lines if "Move to Postgres" in line)
    assert "he said since: “hm no, forget that”" in logs
    assert "he said" not in lint
    (opens,) = (line for line in lines if "Open at 7" in line)
    assert "he said" not in opens
    assert "keep sqlite for now" in moved


def test_a_start_tells_beside_a_commit_why_the_work_was_done_so(begin):
    work(begin, "Cache the tiles", "Map tiles are cached for a day because the tile server limits us.", commit="Cache map tiles for a day")  # fmt: skip
    work(begin, "Sort the list", "The list of towns is sorted. I left the rest, because it is not mine.", commit="Sort the list of towns")  # fmt: skip
    work(begin, "Round it", "Totals are not rounded twice any more because you asked for it.", commit="Round totals once")  # fmt: skip
    _, told = begin()
    assert "Cache map tiles for a day, because the tile server limits us (app.py)" in told
    assert "Sort the list of towns (app.py)" in told
    assert "Round totals once (app.py)" in told


def test_words_that_later_words_or_work_end_are_not_told(begin):
    session, _ = begin()
    session.asks("Thumbnails should live on the old file server.")
    session.ends("I have not changed anything yet.")
    session.asks("Italian names are still missing in the city list. Prices stay in whole cents.")
    session.ends("Noted.")
    session.asks("From now on print each query, for this test only.")
    session.ends("All right.")
    session.asks("Here is what the page of orders has to show:\n\nthe total")
    session.ends("I see.")
    session.asks(
        "Rename the helper module. The new footer goes directly to main once its branch is green."
    )
    session.ends("I have not begun.")
    said = begin()[1].partition("Said lately")[2]
    assert "Italian names are still missing" in said
    assert "old file server" in said
    assert "print each query" not in said
    assert "has to show" not in said
    assert "helper module" not in said
    assert "footer" not in said
    work(begin, "next one", "City names are complete.", commit="Add Italian names to the city list")
    for topic in ("linter", "formatter", "spelling", "importer"):
        work(begin, "next one", f"The {topic} is new.", commit=f"Update the {topic}")
    session, _ = begin()
    session.asks("Thumbnails should move to the bucket instead of the old file server.")
    session.ends("I have not changed anything yet.")
    said = begin()[1].partition("Said lately")[2]
    assert "whole cents" in said
    assert "Italian names are still missing" not in said
    assert "Thumbnails should move to the bucket" in said
    assert "live on the old file server" not in said


def test_what_failed_is_not_told_as_said_lately_once_its_check_has_passed(begin):
    said = "The invoice export is broken since the upgrade, the totals are off by one."
    session, _ = begin()
    session.asks(said)
    session.fails(
        "pytest tests/test_totals.py",
        "FAILED tests/test_totals.py::test_sum - AssertionError: 3 != 4",
    )
    session.ends("I see, by one.")
    assert said in begin()[1]
    session, _ = begin()
    session.asks("Repair that, please.")
    edit(session, "src/sums.py")
    session.runs("pytest tests/test_totals.py", "1 passed in 0.1s")
    session.ends("Rows are added up right again.")
    assert said not in begin()[1]


def test_a_start_tells_what_an_earlier_turn_of_the_last_session_left_open(begin):
    session, _ = begin()
    session.asks("Send webhooks more than once")
    edit(session, "src/hooks.py")
    session.ends("Webhooks are sent three times.\n\nStill open: the queue is not durable yet, because the vendor rejects streams.")  # fmt: skip
    session.asks("Give the list of orders a filter by country")
    edit(session, "src/orders.py")
    session.ends("The list of orders can be filtered by country.")
    _, told = begin()
    assert "filtered by country" in told
    assert "  Still open: the queue is not durable yet" in told


def test_work_whose_commit_only_repeats_a_tool_s_words_is_told_by_its_title(begin):
    subject = "Import the ledger of partner banks through the nightly batch gateway"
    session, _ = begin()
    session.asks("Look into the ticket and do what it wants")
    session.runs("cat TICKET.md", f"# {subject}")
    edit(session, "src/ledger.py")
    session.runs(f'git commit -qam "{subject}"', f"[main 1234567] {subject}")
    session.ends("Partner ledgers arrive every night now, and broken rows are kept for review.")
    told = begin()[1]
    assert "Partner ledgers arrive every night now" in told
    assert "gateway" not in told


# ── The same error again ─────────────────────────────────────────────────────────────────────────

PASTED = [
    BASKET,
    BASKET.replace("41:17", "99:3"),
    f"It happens again, what is it?\n```\n{BASKET}\n```",
    "the cart breaks again: TypeError: Cannot read properties of undefined (reading 'basket'), what now?",
    f"{BASKET.partition(chr(10))[0]} -- again, in the importer",
]


def test_an_error_that_was_pasted_and_fixed_is_known_when_it_is_pasted_again_or_met_by_a_tool(
    begin,
):
    work(
        begin, f"I get this when I open the cart:\n\n{BASKET}",
        "Fixed: the cart was shown before the session was loaded; it waits for that now.",
    )  # fmt: skip
    for prompt in PASTED:
        told = begin()[0].asks(prompt)
        assert "The same was met here before; what was said or done then, without proof" in told, (
            prompt
        )
        assert "the cart was shown before the session was loaded" in told
    assert "the cart was shown before" in begin()[0].fails("npm run dev", BASKET)
    session, _ = begin()
    assert session.asks(BASKET)
    assert session.asks(f"{BASKET}\nand again") == "", "it was told"
    assert "here before" not in begin()[0].asks(BASKET.replace("basket", "order"))
    assert "here before" not in begin()[0].fails("npm run dev", BASKET.replace("basket", "order"))


def test_an_error_that_a_tool_met_is_known_though_the_start_told_of_the_work(begin):
    session, _ = begin()
    session.asks("Start the shop please")
    session.fails("npm run shop", BASKET)
    edit(session, "src/cart.ts")
    session.runs("npm run shop", "listening")
    session.ends("The shop runs: the cart waits until the session is loaded.")
    again, told = begin()
    assert "The shop runs" in told
    assert "changed src/cart.ts" in again.fails("npm run dev", BASKET)
    assert "changed src/cart.ts" in begin()[0].asks(BASKET)


def test_a_later_turn_that_only_ran_the_check_again_is_not_told_as_what_fixed_it(begin):
    error = "FAILED tests/test_cart.py::test_sum - AssertionError: the total is 130, expected 70"
    session, _ = begin()
    session.asks("Run the tests of the cart.")
    session.fails("pytest tests/test_cart.py", error)
    session.ends("They fail.")
    other, _ = begin()
    other.asks("Do the tests pass by now? Write the result into the notes.")
    other.runs("pytest tests/test_cart.py", "1 passed in 0.01s")
    edit(other, "NOTES.md")
    other.ends("All tests of the cart pass; `NOTES.md` says so.")
    assert "what fixed it" not in begin()[0].fails("pytest tests/test_cart.py", error)


def test_the_end_of_a_long_traceback_is_recognised(begin):
    frames = "".join(
        f'  File "/srv/m{n}.py", line {n}, in step\n    call_{n}(a, b)\n' for n in range(60)
    )
    error = f"Traceback (most recent call last):\n{frames}shop.BasketError: basket 7f3a9b21c0de has no currency"
    work(
        begin,
        f"Production died of this:\n\n{error}",
        "Old baskets have no currency; the loader takes the shop's.",
    )
    assert "the loader takes the shop's" in begin()[0].asks(
        error.replace("7f3a9b21c0de", "0123456789ab")
    )


# ── Whose words ──────────────────────────────────────────────────────────────────────────────────


def note(session, text, **fields):
    preface = {
        "client": "claude-code",
        "session": session.key,
        "speaker": "agent",
        "cwd": session.project,
    }
    with Client(session.daemon.paths.socket, preface=preface) as client:
        return client.call("memd/remember", {"text": text, "directory": session.project, **fields})


def test_words_that_the_user_said_before_any_tool_printed_them_are_the_user_s(begin):
    session, _ = begin()
    session.asks(f"{POLICY} Put that into the contributing file.")
    session.ends("It is in CONTRIBUTING.md.")
    session, _ = begin()
    session.asks("Read the contributing file")
    session.runs("cat CONTRIBUTING.md", POLICY)
    session.asks(f"As I said: {POLICY[0].lower()}{POLICY[1:]}")
    noted = note(session, POLICY, kind="instruction", quote=POLICY[:-1].lower())
    assert noted["proof"], noted["refused"]


def test_words_that_a_start_told_as_said_lately_prove_a_note_of_its_session(begin):
    said = "Prices stay integer cents everywhere, no floats."
    work(begin, f"Give the shop a cart. {said}", "The cart adds up.", commit="Add a cart")
    session, told = begin()
    assert f"“{said}”" in told.partition("Said lately")[2]
    noted = note(
        session, "Prices are integer cents everywhere, no floats.", kind="decision", quote=said[:-1]
    )
    assert noted["proof"]["quote"] == said, noted["refused"]
    with session.daemon.client() as client:
        (known,) = client.call("memd/get", {"ids": [noted["id"]]})["memories"]
    assert known["speaker"] == "told"


def test_words_that_a_start_told_prove_nothing_once_the_user_has_turned_them(begin):
    said = "Prices stay integer cents in every table."
    work(begin, f"Give the shop a cart. {said}", "The cart adds up.", commit="Add a cart")
    session, told = begin()
    assert said in told
    session.asks("Prices don't stay integer cents, they are decimals from now on.")
    noted = note(session, "Prices are integer cents in every table.", kind="decision", quote=said)
    assert "took it back since" in noted["refused"]["reason"]


def test_words_of_an_earlier_session_that_memd_did_not_tell_prove_nothing(begin):
    work(begin, f"Give the shop a cart. {POLICY}", "The cart adds up.", commit="Add a cart")
    told, _ = begin()
    session = Session(told.daemon, f"{told.key}-untold", told.project)
    session.runs("ls")
    noted = note(session, POLICY, kind="instruction", quote=POLICY)
    assert "not in this session's record" in noted["refused"]["reason"]
    assert note(told, POLICY, kind="instruction", quote=POLICY)["proof"]


def test_words_that_a_tool_printed_first_are_not_proved_by_repeating_them(begin):
    session, _ = begin()
    session.asks("Read the contributing file")
    session.runs("cat CONTRIBUTING.md", POLICY)
    session.asks(f"Right: {POLICY[0].lower()}{POLICY[1:]}")
    assert note(session, POLICY, kind="instruction", quote=POLICY[:-1].lower())["proof"] is None


def test_words_that_the_agent_said_in_an_earlier_session_are_its_own_though_a_tool_prints_them_now(
    begin,
):
    said = "The parser accepts trailing commas in arrays and objects"
    work(begin, "Make the parser lenient", f"{said}.", commit=said)
    session, _ = begin()
    session.asks("And tuples?")
    session.runs("git log -1", f"commit 12\n    {said}")
    edit(session, "src/tuples.py")
    session.ends(f"{said}, and now in tuples.")
    assert f"{said}, and now in tuples" in begin()[1]


# ── A moved checkout ─────────────────────────────────────────────────────────────────────────────


def git(place, *words):
    subprocess.run(
        [GIT, "-C", place, "-c", "user.name=x", "-c", "user.email=x@x.example", *words],
        check=True, capture_output=True, env={"PATH": os.environ["PATH"], "HOME": str(place)},
    )  # fmt: skip


def make_checkout(place, remote=""):
    place.mkdir()
    git(place, "init", "-q")
    (place / "name").write_text(str(place), "utf-8")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "First")
    if remote:
        git(place, "remote", "add", "origin", remote)
    return place


def test_a_checkout_knows_its_memories_where_it_was_moved(begin, tmp_path):
    old = make_checkout(tmp_path / "shop")
    begin(old)[0].notes("Prices are whole cents.", kind="fact")
    assert "whole cents" not in begin(make_checkout(tmp_path / "other"))[1]
    begin(old)  # before it moves, it was there
    old.rename(tmp_path / "store")
    assert "Prices are whole cents" in begin(tmp_path / "store")[1]


def test_a_checkout_knows_its_memories_where_it_was_cloned_anew(begin, tmp_path):
    old = make_checkout(tmp_path / "queue", "git@host.example:acme/queue.git")
    begin(old)[0].notes("The queue is kept in one file.", kind="fact")
    begin(old)
    old.rename(tmp_path / "nowhere")
    (tmp_path / "nowhere" / ".git").rename(tmp_path / "nowhere" / "gone")
    new = make_checkout(tmp_path / "queue2", "https://host.example/acme/queue")
    assert "The queue is kept in one file" in begin(new)[1]


def test_a_clone_beside_its_checkout_is_a_project_of_its_own(begin, tmp_path):
    old = make_checkout(tmp_path / "both")
    begin(old)[0].notes("Both are there.", kind="fact")
    begin(old)
    subprocess.run([GIT, "clone", "-q", old, tmp_path / "clone"], check=True, capture_output=True)
    assert "Both are there" not in begin(tmp_path / "clone")[1]


def test_a_note_for_one_branch_is_told_on_that_branch_alone(begin, tmp_path):
    place = make_checkout(tmp_path / "station")
    git(place, "checkout", "-qb", "exp/ulp")
    begin(place)[0].notes("Readings go out unrounded.", kind="fact", where=["branch exp/ulp"])
    assert "unrounded" in begin(place)[1]
    git(place, "checkout", "-q", "-")
    assert "unrounded" not in begin(place)[1]


# ── memd injected ────────────────────────────────────────────────────────────────────────────────


def test_memd_injected_shows_word_for_word_what_was_told(daemon, begin):
    work(begin, "Send mails twice. The footer of mails names the company.", "Mails are sent twice.", commit="Send mails twice")  # fmt: skip
    session, start = begin()
    assert "Said lately" in start
    session.notes("Mails are sent at night.", kind="fact", where=["src/app.py"])
    touched = session.touches("src/app.py")
    assert touched

    def injected(*words):
        ran = subprocess.run(
            [sys.executable, "-m", "memd", "injected", session.key, *words],
            env=daemon.environ, cwd=session.project, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return ran.stdout

    found = json.loads(injected("--json"))
    assert [one["text"] for one in found["texts"]] == [start, touched]
    shown = injected()
    lines = [line for text in (start, touched) for line in text.splitlines()]
    assert [line[2:] for line in shown.splitlines() if line[2:] in lines] == lines
    assert f"\n{sum(line.startswith('- ') for line in lines)} lines, " in shown
    daemon.stop()
    daemon.start()
    assert [one["text"] for one in json.loads(injected("--json"))["texts"]] == [start, touched]


def test_what_was_told_goes_with_what_was_forgotten(daemon, begin):
    session, _ = begin()
    number = session.notes("The vault of the bakery is behind the oven.", kind="fact")
    told, start = begin()
    assert "behind the oven" in start
    with daemon.client() as client:
        plan = client.call("memd/forget", {"ids": [number], "dry_run": True})
        client.call("memd/forget", {"ids": [number], "dry_run": False, "token": plan["token"]})
        found = client.call("memd/injected", {"session": told.key})
    assert found["texts"] == []


def test_what_the_user_asked_to_be_reminded_of_stands_through_later_work(begin):
    session, _ = begin()
    session.asks("Remind me to renew the mooring contract.")
    session.ends("All right.")
    for topic in ("linter", "formatter", "spelling", "importer", "logbook"):
        work(begin, "next one", f"The {topic} is new.", commit=f"Update the {topic}")
    assert "Renew the mooring contract" in begin()[1]


def test_work_that_was_judged_to_supersede_a_rule_or_fact_is_told_in_its_place(begin, daemon):
    session, _ = begin()
    session.asks("Remember that segments are cut with Praat.")
    session.ends("Noted.")
    title = "Cut the segments with the Montreal aligner"
    work(begin, title, "Segments are cut with the Montreal aligner now.", commit=title)
    with Client(daemon.paths.socket) as client:
        found = client.call("memd/list", {"directory": session.project})["memories"]
        number = {kind: one["id"] for one in found for kind in [one["kind"]]}
        asked = {"id": number["change"], "other": number["fact"], "relation": "supersedes"}
        client.call("memd/judge", {**asked, "reason": "the aligner is used now"})
    told = begin()[1].partition("Known")[2]
    assert "Montreal aligner" in told.partition("\n\n")[0]
    assert "Praat" not in told
