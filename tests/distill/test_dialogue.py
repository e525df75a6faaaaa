import pytest

from memd.distill import turn
from memd.distill.episodes import Episode, EpisodeContext, Exchange, Utterance
from memd.models import Authority, Event, EventKind, Kind
from tests.distill.dialogues import DIALOGUES, Dialogue
from tests.distill.told_sessions import ToldSession, asks, edits, says

STANDS = {Kind.DECISION, Kind.INSTRUCTION, Kind.PREFERENCE, Kind.FACT, Kind.TASK}


def _event(number, kind, tool=None, **payload):
    return Event(number, 1, kind, "", number * 1_000, payload, tool=tool)


def _drafts(dialogue):
    events = [_event(2, EventKind.PROMPT, prompt=dialogue.says)]
    if dialogue.does_work:
        change = {"file_path": "/p/a.py", "old_string": "a", "new_string": "b"}
        events.append(_event(3, EventKind.TOOL_RESULT, tool="Edit", tool_input=change))
    events.append(_event(4, EventKind.STOP, last_assistant_message=dialogue.after))
    heard = Exchange(dialogue.asked_before, Utterance(1, 1_000, dialogue.before, "Assistant"))
    context = EpisodeContext(before={"e": (heard,)})
    return turn.distill_episode(Episode("e", tuple(events), "stop"), context)


def _standing(dialogue):
    return [
        draft
        for draft in _drafts(dialogue)
        if draft.kind in STANDS and draft.authority is Authority.USER_PROMPT
    ]


@pytest.mark.parametrize("dialogue", [d for d in DIALOGUES if d.keeps], ids=lambda d: d.name)
def test_what_the_user_decided_is_kept_with_what_it_is_about(dialogue):
    found = [f"{draft.title}\n{draft.body}".lower() for draft in _standing(dialogue)]
    assert any(all(word.lower() in text for word in dialogue.keeps) for text in found), found


@pytest.mark.parametrize("dialogue", [d for d in DIALOGUES if not d.keeps], ids=lambda d: d.name)
def test_what_decides_nothing_is_no_decision(dialogue):
    assert [draft.title for draft in _standing(dialogue)] == []


def test_what_restricts_another_thing_than_the_choice_is_not_told_of_the_choice():
    says_it = (
        "can you write down what we weighed (I'd go with option B for now) but keep it in the wiki"
    )
    (choice,) = _standing(
        Dialogue(
            "aside", "**Option A**: a queue\n**Option B**: a cron job\n\nWhich option?", says_it
        )
    )
    assert choice.title.startswith("Chosen: a cron job")
    assert "wiki" not in choice.title


def test_an_option_is_not_told_without_its_text_beside_the_choice_of_it():
    offer = "**Option A**: a queue\n**Option B**: a cron job with a lock\n\nWhich option?"
    found = _standing(Dialogue("one", offer, "let's go with option B, but no lock"))
    assert [draft.title for draft in found] == ["Chosen: a cron job with a lock, but no lock"]


@pytest.fixture
def session(db, clock, tmp_path):
    return ToldSession(db, clock, tmp_path)


async def standing(session):
    """Titles of what stands, by the user's word or the agent's."""
    return [
        one.title
        for one in await session.memories()
        if one.kind in STANDS and one.superseded_by is None
    ]


OFFERS = says(
    "I see two ways.\n\nOption 1: a queue in Redis\nOption 2: a table in Postgres\n\nWhich one do you prefer?"
)


async def test_a_choice_is_read_against_what_the_agent_offered_in_the_turn_before(session):
    await session.tell(asks("how could the mails be sent later?"), OFFERS)
    await session.tell(asks("2, we have that anyway"), edits(), says("Added the table."))
    (one,) = [m for m in await session.memories() if m.kind is Kind.DECISION]
    assert one.title.startswith("Chosen: a table in Postgres")
    assert "2, we have that anyway" in one.body
    assert one.authority is Authority.USER_PROMPT


@pytest.mark.parametrize(
    "points",
    [
        "1. You can show both in the same table",
        "1. You can show both in the same table\n2. The header stays where it is",
        "ok 1. the header stays where it is. 2. rename the column",
        "1) the mails of one day go into one message",
        "1. As an admin I want to see both of them",
        "a. the header stays where it is\nb. rename the column",
        f"1. You can show both\n{'and this is how it looks on the page today. ' * 12}\n2. Rename it",
    ],
)
async def test_who_numbers_his_own_points_chooses_no_option(session, points):
    await session.tell(asks("how could the mails be sent later?"), OFFERS)
    await session.tell(asks(points), edits(), says("Done."))
    assert [title for title in await standing(session) if title.startswith("Chosen")] == []


@pytest.mark.parametrize(
    "choice",
    [
        "1.", "1", "1)", "1, please", "Option 1.", "1. yes do that", "1. please", "1. sounds good to me", "1. but with a lock",
        "1. do that please", "go with 1. The other is one more table to migrate", "Option 1. We have that anyway", "1. A queue in Redis",
        "1. I prefer that, we have Redis", "1. it's simpler", "1, we have that anyway", "1. definitely",
    ],
)  # fmt: skip
async def test_a_label_and_what_goes_on_from_it_is_a_choice(session, choice):
    await session.tell(asks("how could the mails be sent later?"), OFFERS)
    await session.tell(asks(choice), edits(), says("Done."))
    assert any(title.startswith("Chosen: a queue") for title in await standing(session))


async def test_what_the_user_takes_back_in_the_next_prompt_does_not_stand(session):
    await session.tell(asks("how could the mails be sent later?"), OFFERS)
    await session.tell(asks("2"), edits(), says("Added the table."))
    assert await standing(session)
    await session.tell(asks("hm, i concede, revert it"), edits(), says("Reverted."))
    assert await standing(session) == []


async def test_a_cause_that_the_same_error_refutes_does_not_stand(session):
    shown = "ERROR: job 17 failed: lock is held by worker 3"
    await session.tell(
        asks(f"why this?\n\n{shown}"), edits(), says("The issue was that Redis drops a lock silently when its owner restarts in between.")
    )  # fmt: skip
    assert len(await standing(session)) == 1
    await session.tell(
        asks("ERROR: job 18 failed: lock is held by worker 1"), edits(), says("Done.")
    )
    assert await standing(session) == []


async def test_live_and_at_once_the_same_stands(session):
    turns = [
        (asks("how could the mails be sent later?"), OFFERS),
        (asks("1"), edits(), says("Done. Now all mails wait in a queue in Redis until they are sent.")),
        (asks("actually no, forget that, use the table"), edits(), says("Done.")),
        (asks("why don't we just keep one table instead of three?"), edits(), says("Good point. Now all mails are kept in one table.")),
    ]  # fmt: skip
    for steps in turns:
        await session.tell(*steps)
    live = await standing(session)
    await session.starts_another("s2")
    await session.tell(*[step for steps in turns for step in steps])
    both = await standing(session)
    assert len(live) == 1
    assert sorted(both) in (sorted(live), sorted(live * 2))


def _drafts_of(*events):
    drafts = turn.distill_episode(Episode("e", events, "stop"), EpisodeContext())
    return [draft for draft in drafts if draft.kind in STANDS]


def test_an_answer_to_a_question_that_the_agent_asks_with_a_tool_is_a_decision():
    options = [
        {"label": "SQLite", "description": "one file, no server"},
        {"label": "Postgres", "description": "a server, many writers"},
    ]
    asked = {"questions": [{"question": "Where do the sessions live?", "options": options}]}
    (draft,) = _drafts_of(
        _event(1, EventKind.PROMPT, prompt="build the session store"),
        _event(2, EventKind.TOOL_RESULT, tool="AskUserQuestion", tool_input=asked,
               tool_response={"answers": {"Where do the sessions live?": "SQLite"}}),
        _event(3, EventKind.STOP, last_assistant_message="Done."),
    )  # fmt: skip
    assert draft.kind is Kind.DECISION
    assert draft.authority is Authority.USER_PROMPT
    assert "Where do the sessions live" in draft.title
    assert "one file, no server" in draft.body


def test_what_the_user_says_in_a_refused_tool_call_counts():
    (draft,) = _drafts_of(
        _event(1, EventKind.PROMPT, prompt="speed up the tests"),
        _event(2, EventKind.TOOL_REFUSED, tool="Bash", tool_input={"command": "pip install x"},
               said="no, we use uv on purpose because pip ignores the lock file"),
        _event(3, EventKind.STOP, last_assistant_message="Understood."),
    )  # fmt: skip
    assert draft.title.startswith("We use uv on purpose")
    assert draft.authority is Authority.USER_PROMPT


async def test_a_task_is_over_once_a_later_session_has_done_it(session):
    await session.tell(
        asks("TODO: retry the upload of broken mails"), says("Noted.")
    )  # fmt: skip
    assert await standing(session) == ["Retry the upload of broken mails"]
    await session.starts_another("s2")
    await session.tell(asks("sort the mails by date"), edits(), says("Mails are sorted by date."))
    assert "Retry the upload of broken mails" in await standing(session)
    await session.tell(
        asks("and now retry those uploads"), edits(), says("Uploads of broken mails are tried three times.")
    )  # fmt: skip
    assert "Retry the upload of broken mails" not in await standing(session)


@pytest.mark.parametrize(
    ("said", "tags"),
    [
        ("never use sleeps in our tests", ("scope:tests",)),
        ("always write short commit messages, in all my projects", ("scope:everywhere",)),
        ("let's only support linux for now", ("scope:for-now",)),
        ("always keep the list in `src/names.py` sorted", ("scope:file:src/names.py",)),
        ("always write short commit messages", ()),
        ("never use sleeps in this repository", ("scope:repository",)),
    ],
)
def test_where_a_rule_holds_is_a_tag_as_far_as_it_was_said(said, tags):
    found = _standing(Dialogue("scope", "It works.", said))
    assert [draft.tags for draft in found] == [tags]


def _findings(*texts, edits_path="/p/a.py"):
    change = {"file_path": edits_path, "old_string": "a", "new_string": "b"}
    said = [_event(3 + n, EventKind.AGENT_TEXT, text=text) for n, text in enumerate(texts[:-1])]
    return [
        draft.title
        for draft in _drafts_of(
            _event(1, EventKind.PROMPT, prompt="why does the upload fail?"),
            _event(2, EventKind.TOOL_RESULT, tool="Edit", tool_input=change),
            *said,
            _event(9, EventKind.STOP, last_assistant_message=texts[-1]),
        )
    ]


def test_a_limit_of_something_outside_is_a_fact():
    limit = "The nginx proxy does not support chunked uploads beyond one gigabyte."
    assert _findings(limit, "Done.") == [limit.rstrip(".")]


def test_a_limit_is_a_fact_beside_what_can_be_done_about_it():
    limit = (
        "GitLab deploy keys cannot be scoped to one folder, but we can give them to one job alone."
    )
    assert _findings(limit, "Done.") == [limit.rstrip(".")]
    assert _findings("The worker is ready, but we can start it later on the host.", "Done.") == []


@pytest.mark.parametrize(
    "texts",
    [
        ("The nginx proxy does not support chunked uploads beyond one gigabyte. Let me check its configuration.", "Done."),
        ("The nginx proxy does not support chunked uploads.", "The nginx proxy does support chunked uploads; the client sent none.", "Done."),
        ("The Postgres server is not accepting any connections from the new worker host.", "Done."),
        ("The Redis server needs to be configured for the new worker hosts first.", "Done."),
        ("Make the Redis queue require a second look at the card and it goes from hollow to satisfying.", "Done."),
        ("PR #7 is final and never runs the Docker image twice, so I recommend merging it.", "Done."),
        ("`UploadService` here is an interface that only has a fetch method and returns nothing.", "Done."),
        ("The UploadQueue only runs for files that are older than an hour or so.", "Done."),
        ("Now all uploads of the Docker image are always tried three times before an error.", "Now all uploads of the image are tried three times before an error."),
    ],
    ids=["guess", "refuted", "just now", "to be done", "advice", "of a day", "own interface", "own code", "outcome"],
)  # fmt: skip
def test_what_does_not_last_is_no_fact(texts):
    assert _findings(*texts, edits_path="/p/UploadQueue.py") == []


def test_the_next_step_is_no_decision_whatever_the_question():
    asked = {"questions": [
        {"question": "What would you like to do with this todo?", "options": [{"label": "Work on it now", "description": "start"}, {"label": "Put it back", "description": "later"}]},
        {"question": "Who may open a shared album?", "options": [{"label": "Only invited people", "description": "by mail"}, {"label": "Everyone with the link", "description": "a secret link"}]},
        {"question": "How long does a link live?", "options": [{"label": "You decide", "description": ""}, {"label": "A week", "description": ""}]},
        {"question": "Which part should I build next?", "options": [{"label": "Comments", "description": "below"}, {"label": "Likes", "description": "above"}]},
        {"question": "Is a deleted album shown?", "options": [{"label": "Yes", "description": "in grey"}, {"label": "No", "description": "gone"}]},
        {"question": "What shape has a cover?", "options": [{"label": "Round", "description": "a disc"}, {"label": "Square", "description": "a tile"}]},
    ]}  # fmt: skip
    answers = {
        "What would you like to do with this todo?": "Work on it now",
        "Who may open a shared album?": "Only invited people",
        "How long does a link live?": "You decide",
        "Which part should I build next?": "Comments",
        "Is a deleted album shown?": "this shouldnt be something we wonder about",
        "What shape has a cover?": "lets do the page first",
    }
    found = _drafts_of(
        _event(1, EventKind.PROMPT, prompt="plan the albums"),
        _event(2, EventKind.TOOL_RESULT, tool="AskUserQuestion", tool_input=asked, tool_response={"answers": answers}),
        _event(3, EventKind.STOP, last_assistant_message="Done."),
    )  # fmt: skip
    assert [draft.title for draft in found] == [
        "Chosen: Only invited people (Who may open a shared album)"
    ]


def test_what_names_nothing_says_what_the_agent_had_reported():
    dialogue = Dialogue(
        "revert", "The importer now deletes rows that are missing in the file.", "revert those changes, I think it's correct as it was", "Reverted.",
    )  # fmt: skip
    (draft,) = _standing(dialogue)
    assert "importer" in draft.title
