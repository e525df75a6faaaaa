"""The title of a turn says its outcome and names its subject. Each example stands for a kind of turn."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.distill.episodes import Episode, EpisodeContext, Exchange, Utterance, read_story
from memd.distill.outcome.forms import close_end
from memd.distill.outcome.naming import name_turn
from memd.distill.outcome.requests import (
    Preceding,
    find_choice,
    find_request,
    is_deictic,
    read_preceding,
    resolve_request,
)
from memd.distill.outcome.titles import (
    TITLE_CHARACTERS,
    read_commit_subject,
    read_pull_request_title,
)
from memd.distill.proof.chains import find_chains
from memd.distill.turn import draft_work
from memd.distill.work import read_work
from tests.factories import make_event

CONTEXT = EpisodeContext(roots=("/p",))
OFFER = "The cache is read on each request. Want me to load it once at the start?"
OPTIONS = """Three ways to store the rates:

- **Option A**: keep them in `rates.json`
- **Option B**: a table in the database
- **Option C**: ask the service each time

I'd go with B."""


def edited(path="/p/shop/cart.py", old="x = 1", new="x = 2"):
    given = {"file_path": path, "old_string": old, "new_string": new}
    return make_event("tool_result", id=5, tool_name="Edit", tool_input=given)


def ran(command):
    return make_event("tool_result", id=6, tool_name="Bash", tool_input={"command": command})


def title(prompt, answer="", *events, before=None, is_proven=False):
    found = [make_event(id=1, prompt=prompt), *events]
    if answer:
        found.append(make_event("stop", id=90, last_assistant_message=answer))
    story = read_story(found, CONTEXT)
    return name_turn(story, CONTEXT, before or Preceding(), is_proven=is_proven)


@pytest.mark.parametrize(
    ("prompt", "answer", "expected"),
    [
        # an opener that says nothing comes first
        ("sort the orders by date", "Done. Orders are now sorted by their date, newest first.", "Orders are now sorted by their date, newest first"),
        ("sort the orders by date", "All tests pass. The order list sorts by `created_at` now.", "The order list sorts by `created_at` now"),
        ("make the importer faster", "Perfect! I've moved the importer's parsing into a thread pool.", "Make the importer faster: Moved the importer's parsing into a thread pool"),
        ("is the invoice date in UTC?", "Good question! The invoice date is stored in local time.", "The invoice date is stored in local time"),
        ("add paging to /orders", "Here's a summary:\n\n## Changes\n\n- Added a `page` parameter to `/orders`\n- Added tests", "Added a `page` parameter to `/orders`"),
        ("add paging to the orders", "All done!\n\n## Paging for the orders endpoint\n\nEach page has 50 rows.", "Paging for the orders endpoint"),
        # a question is answered, not repeated
        ("why does checkout time out?", "Checkout times out because the tax service has no deadline.", "Checkout times out because the tax service has no deadline"),
        ("where do we set the currency?", "The currency is set in `config/locale.py`, from the shop's country.", "The currency is set in `config/locale.py`, from the shop's country"),
        ("do we retry failed webhooks?", "No, failed webhooks are dropped after the first attempt.", "Failed webhooks are dropped after the first attempt"),
        ("does the linter check docs?", "Yes - it checks docs in CI only.", "Does the linter check docs: It checks docs in CI only"),
        # offers, instructions and questions at the end are no outcome
        ("rename the flag to --dry-run", "The flag is now `--dry-run`. Would you like me to update the docs?", "The flag is now `--dry-run`"),
        ("rename the flag to --dry-run", "You can run it again now. Renamed the flag to `--dry-run` in the parser.", "Renamed the flag to `--dry-run` in the parser"),
        ("round the prices of the cart", "Open `http://localhost:8000` in your browser. Prices of the cart are rounded to cents.", "Prices of the cart are rounded to cents"),
        ("add paging to the orders", "The orders have pages of 50 rows. The deployment should be live in ~2 minutes.", "The orders have pages of 50 rows"),
        ("is the order list sorted?", "Glad it works now! The order list is sorted by date.", "The order list is sorted by date"),
        ("fix the typo in the order list", "The warning about `ordr` is not a real issue. The order list's heading is spelled right.", "Fix the typo in the order list: The order list's heading is spelled right"),
        # what was got ready, handed over or is about to be done is no outcome
        ("round the prices", "Now I have all the information needed. Prices are rounded half to even.", "Prices are rounded half to even"),
        ("round the prices", "8 files changed, 12 insertions. Prices are rounded half to even.", "Prices are rounded half to even"),
        # an item says more than an introduction that says nothing; names of items stand together
        ("round the prices", "The changes are:\n\n- `cart.py`: Rounded the prices half to even", "`cart.py`: Rounded the prices half to even"),
        ("can we test the rounding?", "Done. Added 3 tests covering:\n\n1. **Halves** - go to even\n2. **Negatives** - as above\n3. **Totals** - after the sum", "Test the rounding: Added 3 tests covering: Halves, Negatives, Totals"),
        # a yes or no answers the question
        ("would a second index make the search faster?", "The table has 3 million rows in `orders`. **Yes, a second index would make the search four times faster.**", "A second index would make the search four times faster"),
        # a title never ends before its main clause
        ("why is the cart empty?", "When a customer signs in on another device while the first session is still open, the cart of the first session is replaced by that of the second.", "Why is the cart empty: The cart of the first session is replaced by that of the second"),
        # a title that names something needs no word of the prompt in front
        ("what is the latest state of the tax thing that customers complained of so much in the last weeks?", "`read_rates` now keeps the last digit.", "`read_rates` now keeps the last digit"),
        # a list's introduction says what it says without its last words
        ("describe the checkout in README.md", "Updated README.md with a new section for the checkout, including:\n\n- taxes\n- shipping", "Updated README.md with a new section for the checkout"),
        ("commit the rounding of prices", 'Committed as `4ac6a1b` - "Round prices half to even"', "Round prices half to even"),
        # no typo and no chance word of a prompt goes in front
        ("a litle slow, is it?", "Each rate is looked up twice.", "A litle slow, is it: Each rate is looked up twice"),
        ("do not update the VPS yet", "Rates are read from `rates.json` now.", "Rates are read from `rates.json` now"),
        # a cause is told with the name of what it is about
        ("login is broken", "Found it! The root cause is that `session_key` was read before the `.env` was loaded.", "Login is broken: The root cause is that `session_key` was read before the `.env` was loaded"),
        ("the build is red since yesterday", "It turns out that the build image lost its `curl`.", "The build is red since yesterday: The build image lost its `curl`"),
        # what stands before its items says it only with them
        ("move the export command", "Done. The command has been moved:\n\n- **Before:** `shop export`\n- **After:** `shop data export`", "Move the export command: The command has been moved: `shop export` → `shop data export`"),
        ("our login page is broken", "Found it! The root cause is that the session key was read before the settings.", "Our login page is broken: The root cause is that the session key was read before the settings"),
        # a cry says nothing; a clause ends after all of its list
        ("are both rates read?", "Uh oh! Both rates are read and the second one wins.", "Are both rates read: Both rates are read and the second one wins"),
        ("what of older carts?", "Even though A, B were made by the old shop, older carts keep the rates that they had at the time of the order.", "Older carts keep the rates that they had at the time of the order"),
        # what was weighed and left out is no outcome
        ("how do we round?", "Alternative considered: rounding per line in `round_line`. Rounding is per invoice.", "How do we round: Rounding is per invoice"),
        # a subject that stands in the title is not said again
        ("the cart should use the existing RoundMoney helper", "The function now uses `RoundMoney` for each line.", "The cart should use the existing RoundMoney helper: The function now uses `RoundMoney` for each line"),
        ("`test_refund` fails in CI", "Updated it to read the clock once.", "`test_refund` fails in CI: Updated it to read the clock once"),
        # a file is a subject even if its name is a common word
        ("can you explain the comment in line 36 in merge.go", "The comment refers to two sessions that end at once.", "Explain the comment in line 36 in merge.go: The comment refers to two sessions that end at once"),
        # a remark beside what was done is not the outcome
        ("set the timeout to a minute", "Done. The timeout is 60 s now.\n\nOne heads-up: the retry of the timeout is still at 30 s.", "The timeout is 60 s now"),
        ("rename the cart package", "All packages are called `basket` now.\n\nNote: I left the `cart` command untouched.", "All packages are called `basket` now"),
        ("shorten the invoice texts", "The texts have two lines each.\n\nAll invoice texts are uncommitted.", "Shorten the invoice texts: The texts have two lines each"),
        ("explain the rounding", "Rounding is per invoice.\n\n`★ Insight ─────────────`\n**Rounding per line** drifts by a cent in long invoices.\n`──────────────────────`", "Rounding is per invoice"),
        # what the agent has in hand or sets out to do is no outcome
        ("review the refund branch", "I've got the refund branch and its one comment.\n\nThe branch rounds refunds twice.", "The branch rounds refunds twice"),
        ("how do refunds round?", "Walking through the refund step by step:\n\nRefunds round once, at the end.", "Refunds round once, at the end"),
        ("how do we run the refund job?", "There are three ways, depending on the day:\n\nThe refund job runs by `shop refund --now`.", "The refund job runs by `shop refund --now`"),
        # the subject goes in front if the outcome does not name it
        ("fix the flaky `test_refund`", "The clock was read twice within a second.", "Fix the flaky `test_refund`: The clock was read twice within a second"),
        ("what about the nightly backup of the ledger?", "It is kept for a week and then deleted. The ledger goes to cold storage.", "What about the nightly backup of the ledger: The ledger goes to cold storage"),
    ],
)  # fmt: skip
def test_the_outcome_is_told_and_not_what_leads_up_to_it(prompt, answer, expected):
    assert title(prompt, answer) == expected


@pytest.mark.parametrize(
    ("prompt", "answer", "expected"),
    [
        ("yes", "Done. The cache is loaded once at the start now.", "The cache is loaded once at the start now"),
        ("go ahead", "Done.", "Load it once at the start: edited cache.py"),
        ("ok do it", "", "Load it once at the start: edited cache.py"),
    ],
)  # fmt: skip
def test_a_go_ahead_is_named_by_what_came_of_it(prompt, answer, expected):
    change = edited("/p/shop/cache.py", "pass", "def load_cache():\n    return 1")
    assert title(prompt, answer, change, before=Preceding("is the cache slow?", OFFER)) == expected


@pytest.mark.parametrize(
    ("prompt", "meant"),
    [
        ("B", "a table in the database"),
        ("option b please", "a table in the database"),
        ("I like Option C", "ask the service each time"),
        ("let's go with A", "keep them in `rates.json`"),
        ("what is in table B of the report, by month?", ""),
    ],
)
def test_a_choice_means_the_option_that_was_offered(prompt, meant):
    assert resolve_request(prompt, Preceding("how do we store rates?", OPTIONS)) == meant


def test_a_yes_means_what_the_agent_offered_last():
    assert resolve_request("yep", Preceding("", OFFER)) == "load it once at the start"
    assert resolve_request("yep", Preceding("", "It is read on each request.")) == ""


@pytest.mark.parametrize("prompt", ["yes", "C)", "1", "yeah, let's add this", "can you do the fix?", "ok, works. great", "continue"])  # fmt: skip
def test_a_prompt_that_only_points_back_is_known(prompt):
    assert is_deictic(prompt)


@pytest.mark.parametrize("prompt", ["add a test for the parser", "why is it red in CI?", "a cart needs an owner", "no, keep `sum`"])  # fmt: skip
def test_a_prompt_with_words_of_its_own_is_known(prompt):
    assert not is_deictic(prompt)
    assert not find_choice(prompt)


def test_commits_and_pull_requests_name_the_work_where_the_answer_does_not():
    commit = ran(
        "git add -A && git commit -m \"$(cat <<'EOF'\nRound prices half to even\n\nWhy: tax\nEOF\n)\""
    )
    assert title("commit and push", "Done, pushed.", commit) == "Round prices half to even"
    pull = ran('gh pr create --title "Round prices half to even" --body "x"')
    assert title("open a pr", "Here it is.", pull) == "Round prices half to even"


@pytest.mark.parametrize(
    ("command", "subject"),
    [
        ("git commit -m 'Fix it'", "Fix it"),
        ('git -C /p commit -am "Fix it" -m "body"', "Fix it"),
        ('git commit -m "Call it \\"basket\\""', 'Call it "basket"'),
        ("git log --grep commit", ""),
        ("git status", ""),
    ],
)
def test_the_subject_of_a_commit_is_read_from_its_command(command, subject):
    assert read_commit_subject(command) == subject
    assert read_pull_request_title(command) == ""


def test_without_proof_no_title_says_that_something_is_fixed():
    said = "Fixed the rounding in the cart."
    assert (
        title("the cart rounds wrongly", said, edited())
        == "The cart rounds wrongly: edited cart.py"
    )
    assert (
        title("the cart rounds wrongly", said, edited(), is_proven=True)
        == "Fixed the rounding in the cart"
    )
    cause = f"{said} The cart rounded each line instead of the sum."
    assert (
        title("the cart rounds wrongly", cause, edited())
        == "The cart rounded each line instead of the sum"
    )


def test_a_turn_that_was_broken_off_is_named_by_what_the_agent_said_last():
    text = make_event(
        "agent_text", id=7, text="The webhook secret is read from the wrong variable."
    )
    assert title("webhooks fail", "", text) == "The webhook secret is read from the wrong variable"


def draft_of(events, context=CONTEXT):
    """The memory of a turn with these events; None if it leaves none."""
    episode = Episode("t1", tuple(events), "stop")
    work = read_work(episode, read_story(events, context), context)
    return draft_work(work, context, find_chains(work.whole))


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ("rename the cart module", ""),
        ("thanks, that works", "Glad it helped!"),
        ("great", ""),
        ("is the cart shared between tabs?", ""),
    ],
)
def test_a_prompt_that_nothing_came_of_leaves_nothing(prompt, answer):
    found = [make_event(id=1, prompt=prompt)]
    if answer:
        found.append(make_event("stop", id=2, last_assistant_message=answer))
    assert draft_of(found) is None


def test_a_request_is_told_as_work_where_the_answer_tells_nothing():
    said = "Refresh the page in your browser. It should be live in a minute."
    asked = "could you sort the orders by date?"
    assert (
        title(asked, said, edited("/p/shop/orders.py"))
        == "Sort the orders by date: edited orders.py"
    )
    plans = edited("/home/u/.claude/plans/brave-fox.md")
    assert title(asked, "", plans) == "Sort the orders by date"


def test_words_of_an_earlier_prompt_go_in_front_only_if_the_answer_has_them():
    before = Preceding("why does the gift voucher expire early?", "Its clock is in UTC.")
    assert (
        title("ok continue", "The clock is in local time now.", before=before)
        == "The clock is in local time now"
    )


PLAN = """Implement the following plan:

# Plan: Half-even rounding for invoices

## Context

Each line is rounded up, so sums are a cent too high.

## Changes

1. `shop/money.py`: round half to even
"""


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("All tests pass.\n\n- `shop/money.py` — Added `round_half_even`\n- Tests", "Half-even rounding for invoices: `shop/money.py` — Added `round_half_even`"),
        ("Invoices now use half-even rounding, in `round_money`.", "Invoices now use half-even rounding, in `round_money`"),
        ("", "Half-even rounding for invoices: edited cart.py"),
    ],
)  # fmt: skip
def test_a_pasted_plan_is_named_by_its_heading_and_what_came_of_it(answer, expected):
    assert title(PLAN, answer, edited()) == expected


def test_the_body_of_a_turn_tells_a_plan_by_its_heading_and_first_paragraph():
    events = [make_event(id=1, prompt=PLAN), edited()]
    body = draft_of(events).body
    told = "the plan “Half-even rounding for invoices”. Each line is rounded up, so sums are a cent too high."
    assert body.startswith(f"Asked: {told}\n")


def test_a_prompt_that_was_broken_off_belongs_to_the_next_one():
    broken_off = Exchange("can we remove the word beta from the checkout page?", None)
    before = read_preceding([broken_off])
    assert find_request(["screenshot"], before).startswith("can we remove the word beta")
    answered = Exchange("is the shop in beta?", Utterance(3, 3, "Yes.", "Assistant"))
    assert find_request(["screenshot"], read_preceding([answered])) == "screenshot"
    events = [make_event(id=1, prompt="screenshot"), edited()]
    body = draft_of(events, replace(CONTEXT, before={"t1": (broken_off,)})).body
    assert body.startswith("Asked: can we remove the word beta from the checkout page? screenshot")


def test_what_was_done_says_more_than_how_it_was_before():
    said = "Done. The `__cache__/` pattern was already ignored. I removed 13 cache files from git."
    asked = "add the caches to the ignored files"
    assert title(asked, said) == "The `__cache__/` pattern was already ignored"
    assert title(asked, said, edited()) == "Removed 13 cache files from git"


def test_a_general_word_as_subject_gets_the_file_that_was_asked_about():
    said = "The comment refers to two sessions that end at once."
    asked = "can you explain the comment in line 36 in orders/ledger.py above both of the loops over sessions"
    assert title(asked, said) == (
        "orders/ledger.py: The comment refers to two sessions that end at once"
    )


@pytest.mark.parametrize(
    ("prompt", "items", "expected"),
    [
        # a list of names answers as a whole
        ("any other name for the basket?", "- Cart - as in most shops\n- Crate - for wholesale\n- Trolley - British", "Any other name for the basket: Cart, Crate, Trolley"),
        # an item without a verb is a part of what was asked
        ("could we keep the baskets of guests?", "- Guests' baskets per `session_key`\n- Cookie of 30 days\n- Job at night", "Keep the baskets of guests: Guests' baskets per `session_key`"),
        # a remark asks for nothing
        ("I think the baskets of guests are too many", "- Guests' baskets per `session_key`\n- Cookie of 30 days\n- Job at night", "Guests' baskets per `session_key`"),
    ],
)  # fmt: skip
def test_an_item_of_a_list_stands_with_what_was_asked(prompt, items, expected):
    assert title(prompt, f"The ways:\n\n{items}") == expected


def test_items_with_names_stand_together_where_their_lead_has_no_subject():
    said = "All fixed and verified:\n\n1. **Wider refund table.** It fills it.\n2. **Small buttons.** They fit.\n3. **Dark rows.** Grey."
    assert (
        title("the refund table and its buttons are ugly", said, edited())
        == "Wider refund table, Small buttons, Dark rows"
    )


def test_an_edited_name_is_told_only_where_nothing_else_is():
    edit = edited(old="def total(): ...", new="def total_of_cart(): ...")
    said = "The invoice rounds each cart only once."
    assert title("the invoice rounds twice", said, edit) == "The invoice rounds each cart only once"
    assert title("the invoice rounds twice", "Done.", edit).startswith("The invoice rounds twice")


def test_a_bare_commit_is_named_by_its_message():
    events = [
        make_event(id=1, prompt="comit"),
        make_event(
            "tool_result", id=2, tool_name="Bash",
            tool_input={"command": "git commit -m 'Round prices half to even in the cart'"},
        ),
        make_event("stop", id=3, last_assistant_message="Done. The two files have been committed."),
    ]  # fmt: skip
    found = draft_of(events)
    assert found.title == "Round prices half to even in the cart"


@pytest.mark.parametrize("prompt", ["That works now!", "looks great", "I tested it, seems fine"])
def test_praise_leaves_nothing(prompt):
    said = "Glad that it works! " + "Here is once more all that was done today. " * 9
    events = [
        make_event(id=1, prompt=prompt),
        make_event("stop", id=2, last_assistant_message=said),
    ]
    assert draft_of(events) is None


def test_a_long_sentence_is_cut_where_a_clause_ends():
    said = "The importer reads each file twice, once for its size and once for its rows, because the progress bar needs the total first."
    assert (
        title("importer is slow", said)
        == "Importer is slow: The importer reads each file twice, once for its size and once for its rows"
    )


WORDS = st.sampled_from(
    ["Done.", "Fixed!", "the", "cart", "parser", "`load_cache`", "is", "was", "now", "because", "tests", "pass.", "##", "Changes", "-", "**", "Here's", "Would", "you", "like", "it?", "fails:", "in", "shop/cart.py", "I've", "moved\n", "", "", "", "added", "Option", "A)", "\n", "\n\n", "```", "|", ">", "yes", "no,", "(", ")", '"', "1.", "→", "…"]
)  # fmt: skip
TEXTS = st.lists(WORDS, max_size=40).map(" ".join)


@given(TEXTS, TEXTS, TEXTS, st.booleans())
def test_every_title_is_one_line_of_at_most_a_hundred_characters(prompt, answer, before, is_proven):
    said = Preceding(before, before)
    found = title(prompt, answer, edited(), before=said, is_proven=is_proven)
    assert found == title(prompt, answer, edited(), before=said, is_proven=is_proven)
    assert found
    assert len(found) <= TITLE_CHARACTERS
    assert "\n" not in found
    assert not found.endswith("?")


@pytest.mark.parametrize(
    ("lead", "title"),
    [
        (
            "Rewrote the guide as `docs/kiln.md` - it now describes",
            "Rewrote the guide as `docs/kiln.md`",
        ),
        (
            "Created `scripts/fire-kiln.sh` with the following test flow",
            "Created `scripts/fire-kiln.sh`",
        ),
        (
            "The glaze table moved to `glazes.toml`, which contains",
            "The glaze table moved to `glazes.toml`",
        ),
        ("The kiln log now shows", "The kiln log now shows"),
    ],
)
def test_a_title_does_not_end_with_the_words_that_lead_to_a_list(lead, title):
    assert close_end(lead) == title


TABLE = """Open points:

| # | Point | Age |
|---|-------|-----|
| 1 | Sort the orders by date | 2d |
| 2 | **Add a limit to the uploads** | 6d |

Which one?"""


@pytest.mark.parametrize(
    "prompt", ["2", "2 seems like a good one", "2 but on this branch, it belongs here"]
)
def test_a_number_means_the_row_of_the_table_that_was_shown(prompt):
    before = Preceding("What is open?", TABLE)
    assert resolve_request(prompt, before) == "Add a limit to the uploads"
    done = ran("mv open/uploads.md done/")
    assert title(prompt, "", done, before=before) == "Add a limit to the uploads: edited uploads.md"


def test_a_command_of_the_client_is_told_where_its_argument_does_not_say_what_was_done():
    assert (
        find_request(["/security:review all of the store"], Preceding())
        == "security review: all of the store"
    )
    assert find_request(["/run fix the rounding"], Preceding()) == "fix the rounding"


@pytest.mark.parametrize(
    "aside",
    [
        "...and likewise in the refunds of the orders.",
        "Try the orders now — I'm watching the log of the orders.",
    ],
)
def test_half_a_sentence_and_what_the_user_is_to_do_name_no_turn(aside):
    told = f"{aside} Orders are sorted by date in the archive."
    assert title("How are the orders sorted?", told).endswith(
        "rders are sorted by date in the archive"
    )
