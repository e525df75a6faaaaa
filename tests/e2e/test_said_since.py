"""What the user said since, beside the hits of a search and in the story of a memory: real daemon, hooks, commands."""

import json

import anyio
import pytest
from mcp import Client as ToolClient

from memd.client import Client
from tests.e2e.hooked_session import NUMBERS, Session
from tests.e2e.test_judging import stdio_proxy


@pytest.fixture
def since(call):
    """What is told beside the first hit, or beside any."""

    def ask(query, **more):
        hits = call("memd/search", query=query, **more)["hits"]
        return [one["said_since"] for one in hits if one["said_since"]]

    return ask


RULE = "Never repaint the carousel horses!"
LATER = "the carousel horses can be repainted again, the insurer is happy"


def test_a_hit_and_its_story_are_told_with_what_the_user_said_since(
    says, call, since, shared_daemon, place
):
    says(RULE)
    assert since("may I repaint the carousel horses?") == []
    (hit,) = call("memd/search", query="may I repaint the carousel horses?")["hits"]
    number = hit["id"]
    assert call("memd/why", id=number)["verdict"] == "current"
    says(LATER)
    told = f"he said since: “{LATER}”"
    answer = call("memd/search", query="may I repaint the carousel horses?")
    assert [one["said_since"] for one in answer["hits"]] == [told]
    assert answer["reason"].startswith(f"#{number} may be out of force: {told}")
    assert call("memd/why", id=number)["verdict"] == f"perhaps ended, {told}"
    start = call("memd/context")["text"]
    assert f"({told})" in start
    ran = shared_daemon.run("search", "repaint the carousel horses", "--project", place)
    assert f"({told})" in ran.stdout.decode()
    assert told in shared_daemon.run("why", str(number)).stdout.decode()


def test_an_agent_reads_it_in_its_search_and_in_mem_why(says, call, shared_daemon, place):
    says(RULE)
    says(LATER)
    (hit,) = call("memd/search", query="may I repaint the carousel horses?")["hits"]

    async def ask():
        async with ToolClient(
            stdio_proxy(shared_daemon).model_copy(update={"cwd": place})
        ) as client:
            found = await client.call_tool("mem_search", {"query": "repaint the carousel horses"})
            why = await client.call_tool("mem_why", {"id": hit["id"]})
            return found.structured_content, why.structured_content

    found, why = anyio.run(ask)
    assert found["hits"][0]["said_since"] == f"he said since: “{LATER}”"
    assert "may be out of force" in found["reason"]
    assert why["verdict"] == f"perhaps ended, he said since: “{LATER}”"


def test_what_says_otherwise_for_sure_is_named_so(says, since):
    says("We decided to keep the oven at 220 degrees.")
    says("keep the oven at 180 degrees")
    assert since("at which degrees is the oven?") == [
        "he said otherwise since: “keep the oven at 180 degrees”"
    ]


@pytest.mark.parametrize(
    ("asked", "following", "is_told"),
    [
        ("paint the benches green", "no, brown again after all, green looks awful", True),
        ("streich die Bänke grün", "nein, doch wieder braun, grün sieht furchtbar aus", True),
        ("paint the benches green", "the benches get golden legs too", False),
    ],
)
def test_work_is_told_with_the_next_prompt_if_that_takes_it_back(
    shared_daemon, place, since, asked, following, is_told
):
    session = Session(shared_daemon, f"undone{next(NUMBERS)}", place)
    for prompt in (asked, following):
        session.asks(prompt)
        session.touches("benches.py", tool="Edit")
        session.ends("The benches have the colour that was asked for.")
    session.asks("what is left to do?")
    told = [f"he said since: “{following}”"] if is_told else []
    assert since("which colour have the carousel benches?")[:1] == told


def test_each_hit_is_told_with_the_words_of_its_own_project(says, since, tmp_path):
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    says(RULE)
    says("Never open the ghost train!", where=str(other))
    says(LATER, where=str(other))
    assert since("repaint the horses or open the ghost train", project="all") == []
    ghost = "the ghost train can be opened again, the brakes are new"
    says(ghost, where=str(other))
    assert since("repaint the horses or open the ghost train", project="all") == [
        f"he said since: “{ghost}”"
    ]


def test_the_prompt_that_asks_is_no_later_word(says, shared_daemon, place):
    says(RULE)
    session = says(
        "can we finally repaint the carousel horses again or is that still off the table"
    )
    asked = {"query": "repaint the carousel horses", "directory": place}
    with Client(shared_daemon.paths.socket, preface={"session": session.key}) as own:
        (hit,) = own.call("memd/search", asked)["hits"]
        assert hit["said_since"] is None
        assert own.call("memd/why", {"id": hit["id"]})["verdict"] == "current"


@pytest.mark.parametrize("way", ["forget the words", "forget the session"])
def test_forgotten_words_do_not_come_back_beside_a_hit(says, call, since, way):
    says(RULE)
    session = says(LATER)
    assert since("repaint the carousel horses") == [f"he said since: “{LATER}”"]
    what = {"query": "insurer"} if way == "forget the words" else {"session": session.key}
    call("memd/forget", dry_run=False, **what)
    assert "insurer" not in json.dumps(call("memd/search", query="repaint the carousel horses"))
    assert since("repaint the carousel horses") == []


def test_what_the_user_rejected_is_not_told_from_his_prompt(says, since, shared_daemon):
    says(RULE)
    noted = says(LATER).notes("The carousel horses can be repainted.", kind="fact", quote=LATER)
    told = since("repaint the carousel horses")
    assert told == [f"he said since: “{LATER}”"]
    assert shared_daemon.run("review", "--reject", str(noted)).returncode == 0
    assert since("repaint the carousel horses") == []


def test_words_that_came_later_are_told_at_the_next_search_also_behind_a_later_memory(
    call, says, since
):
    question = "on which day is the ferry washed?"
    text = "The ferry is washed on Thursdays only, because the quay is free then."
    call("memd/remember", text=text, kind="instruction")
    assert since(question) == []
    text = "The ferry is washed on Tuesdays, because the quay is let."
    newer = call("memd/remember", text=text, kind="instruction")["id"]
    assert since(question) == [
        f"see #{newer}: The ferry is washed on Tuesdays, because the quay is let"
    ]
    says("the ferry is washed on fridays now")
    assert "he said since: “the ferry is washed on fridays now”" in since(question)


def test_of_two_later_words_the_nearer_one_is_told(says, since):
    says("Remind me to rotate the Stripe signing secret.")
    says("Scrap Adyen, legal never signed the contract. Everything goes through Stripe for now.")
    done = "Stripe signing secret is rotated, you can cross that off."
    says(done)
    assert since("rotate the Stripe signing secret") == [f"he said since: “{done}”"]


@pytest.fixture
def agent_notes(shared_daemon, place):
    """What `mem_remember` answers an agent of a session."""

    def note(session, **fields):
        async def ask():
            proxy = stdio_proxy(shared_daemon)
            env = {**(proxy.env or {}), "CLAUDE_CODE_SESSION_ID": session.key}
            async with ToolClient(proxy.model_copy(update={"cwd": place, "env": env})) as client:
                return (await client.call_tool("mem_remember", fields)).structured_content

        return anyio.run(ask)

    return note


HUMIDITY = "Always keep the humidity in the vault between 45 and 55 percent."
INSURANCE = "new insurance man was here, 40 to 50 it is from now on"


def test_a_refused_note_that_quotes_what_ended_something_is_told_beside_that_and_stays_behind_it(
    call, says, agent_notes
):
    says(HUMIDITY)
    text = "The humidity in the vault must never be measured again by anybody."
    noted = agent_notes(says(INSURANCE), text=text, kind="instruction", quote=INSURANCE)
    assert noted["unproved"]
    rule, note = call("memd/search", query="humidity in the vault between percent always")["hits"]
    assert note["id"] == noted["id"]
    assert rule["said_since"].startswith(f"see #{noted['id']}")


def test_a_later_statement_with_another_value_comes_before_the_older_hit(call, says):
    says(HUMIDITY)
    later = says(INSURANCE).notes(
        "The humidity has to stay between 40 and 50 in the vault.", kind="instruction"
    )
    first, then = call("memd/search", query="percent of humidity in the vault always")["hits"]
    assert first["id"] == later
    assert then["said_since"].startswith(f"see #{later}")


def test_a_note_on_the_same_matter_that_ends_nothing_is_not_told_so(says, since):
    says("Always keep the store room between 45 and 55 percent humidity.")
    typed = "the store room has a second door behind the shelf, add it to the plan"
    says(typed).notes("The store room has a second door.", kind="fact", quote=typed)
    assert since("which humidity for the store room?") == []


def test_what_the_user_keeps_in_a_review_holds_until_later_words(says, call, since, shared_daemon):
    says(RULE)
    says("insurer came round, horses are allowed a new coat of paint from now on")
    assert "horses are allowed a new coat" in call("memd/context")["text"]
    says(LATER)
    (hit,) = call("memd/search", query="may I repaint the carousel horses?")["hits"]
    assert hit["said_since"]
    assert shared_daemon.run("review", "--keep", str(hit["id"])).returncode == 0
    assert since("may I repaint the carousel horses?") == []
    told = call("memd/context")["text"]
    assert "he said since" not in told
    again = "the carousel horses may be repainted after all, the paint came"
    says(again)
    assert since("may I repaint the carousel horses?") == [f"he said since: “{again}”"]


def test_what_the_user_puts_in_another_s_place_by_hand_holds_until_later_words(
    says, call, since, shared_daemon
):
    says(RULE)
    says(LATER)
    (hit,) = call("memd/search", query="may I repaint the carousel horses?")["hits"]
    assert hit["said_since"]
    text = "Repaint the carousel horses in winter only"
    assert shared_daemon.run("edit", str(hit["id"]), "--text", text).returncode == 0
    assert since("may I repaint the carousel horses?") == []
    told = call("memd/context")["text"]
    assert text in told
    assert "he said since" not in told


def test_what_the_next_prompt_takes_back_goes_with_its_note(says, call, since, agent_notes):
    typed = "The nightly export is gzipped."
    session = says("Look at the exports.", typed)
    noted = agent_notes(session, text="The nightly export is gzipped.", kind="fact", quote=typed)
    assert "unproved" not in noted
    assert since("is the nightly export gzipped?") == []
    back = "Wait, no, it isn't, that was the weekly one."
    session.asks(back)
    session.ends("OK.")
    assert since("is the nightly export gzipped?") == [f"he said since: “{back}”"]
    assert f"he said since: “{back}”" in call("memd/context")["text"]


def test_a_refused_note_against_an_older_one_tells_what_he_said_to_the_value(
    says, call, agent_notes
):
    typed = "The premium plan costs 4.99 a month."
    old = agent_notes(says(typed), text=typed, kind="fact", quote=typed)
    assert "unproved" not in old
    quote = "raising to 5.99 from jan"
    text = "The premium plan costs 6.99 a month."
    said = f"the numbers are in, {quote} and no discounts"
    session = says(said)
    new = agent_notes(session, text=text, kind="fact", quote=quote, replaces=[old["id"]])
    assert new["unproved"]
    line = next(one for one in call("memd/context")["text"].splitlines() if typed[:-1] in one)
    assert f"he said since: “{said}”; contradicts the later #{new['id']} (agent)" in line


# ── What he typed later, beside a first hit that is his word ───────────────────────────────────────

KEEPER = "Bruno takes care of the lighthouse lamp, so ask him before anything is changed there."
AFTER_HIM = "Bruno went to the harbour office, the lighthouse lamp is Elsa's now."


def test_a_later_sentence_on_what_was_asked_is_told_beside_the_first_hit(says, call, since):
    says(KEEPER, answer="I will ask Bruno first, noted for the lamp.")
    question = "who takes care of the lighthouse lamp"
    assert since(question) == []
    says("the harbour café opens at eight", "what does the lighthouse lamp weigh?")
    says("check the lighthouse lamp again")
    assert since(question) == []
    says(AFTER_HIM, answer="OK.")
    answer = call("memd/search", query=question)
    assert [one["said_since"] for one in answer["hits"]] == [f"he said later: “{AFTER_HIM}”"]
    assert answer["said"] == []
    says("Elsa left, Ivo cares for the lighthouse lamp", answer="Ivo is told from now on, then.")
    later = call("memd/search", query=question)["hits"]
    assert [one for one in later if "Bruno went" in (one["said_since"] or "")] == []


def test_what_he_keeps_is_told_with_nothing_that_he_typed_before(says, call, since, shared_daemon):
    says(KEEPER, answer="I will ask Bruno first, noted for the lamp.")
    says(AFTER_HIM, answer="OK.")
    question = "who takes care of the lighthouse lamp"
    assert since(question) == [f"he said later: “{AFTER_HIM}”"]
    first, *_ = call("memd/search", query=question)["hits"]
    assert shared_daemon.run("review", "--keep", str(first["id"])).returncode == 0
    assert since(question) == []


def test_a_later_hit_of_his_own_words_is_named_beside_the_first(says, call):
    says("dont ever commit to harbour directly, make a branch")
    answer = "Understood, then I push to harbour itself from here on."
    says("eh just push to harbour its only me anyway", answer=answer)
    first, later = call("memd/search", query="can I commit to harbour")["hits"]
    assert first["title"].startswith("Dont ever commit")
    assert first["said_since"] == f"he said later: #{later['id']}"


def test_what_contradicts_a_memory_contradicts_those_that_say_the_same(says, call, agent_notes):
    typed = "Dont ever commit to pier directly, make a branch."
    session = says()
    session.asks(typed)
    text = "Never commit to pier directly, make a branch."
    twin = agent_notes(session, text=text, kind="instruction", quote=typed)
    session.ends("OK.")
    other = says().notes("Pushing to pier is fine, as only he works on it.")
    rule = call("memd/search", query="commit to pier directly, make a branch")["hits"]
    numbers = {one["id"] for one in rule} - {other}
    assert twin["id"] in numbers
    assert len(numbers) == 2
    (first,) = numbers - {twin["id"]}
    call("memd/judge", id=other, other=first, relation="contradicts", reason="he changed his mind")
    hits = {
        one["id"]: one for one in call("memd/search", query="can I commit to pier directly")["hits"]
    }
    assert {number for number, one in hits.items() if one["contradiction"]} == {*numbers, other}


# ── In the overview and the inbox ──────────────────────────────────────────────────────────────────


def test_the_overview_the_lists_and_the_inbox_tell_what_a_search_tells(
    says, call, shared_daemon, place
):
    says(RULE)
    says(LATER)
    told = f"he said since: “{LATER}”"
    overview = call("memd/overview")
    for name in ("rules", "latest"):
        assert told in [one["said_since"] for one in overview[name]]
    (rule,) = call("memd/list", kinds=["instruction"])["memories"]
    (waiting,) = call("memd/review/list", project=place)["memories"]
    assert [rule["said_since"], waiting["said_since"]] == [told, told]
    assert f"({told})" in shared_daemon.run("list", "--project", place).stdout.decode()
    shown = " ".join(shared_daemon.run("review", "--project", place).stdout.decode().split())
    assert told in shown


def test_a_review_begins_with_the_project_that_one_stands_in(says, call, place, tmp_path):
    says("Always salt the fish before it is smoked.")
    other = tmp_path / "newer"
    (other / ".git").mkdir(parents=True)
    says("Always scale the fish before it is smoked.", where=str(other))
    for where, first in ((place, "salt"), (str(other), "scale")):
        found = call("memd/review/list", project="all", directory=where)["memories"]
        assert first in found[0]["title"]
        assert len({one["project_id"] for one in found}) > 1


# ── What was replaced, kept or refused ────────────────────────────────────────────────────────────


def test_the_turn_that_said_what_a_note_replaced_is_told_with_what_replaces_it_and_stays_behind_it(
    says, call, since, agent_notes
):
    typed = "Only Elsa and I may see the tide tables, exports included."
    talk = "I see, then nobody else gets access to those tables, and exports count as access too."
    old = agent_notes(says(typed, answer=talk), text=typed, kind="fact", quote=typed)
    asked = "who may see the tide tables?"
    assert since(asked) == []
    new_typed = "Bruno may see the tide tables from now on as well as Elsa and me."
    new = agent_notes(
        says(new_typed, answer=talk), text=new_typed, kind="fact", quote=new_typed,
        replaces=[old["id"]],
    )  # fmt: skip
    hits = call("memd/search", query=asked)["hits"]
    turn = next(one for one in hits if one["title"].startswith("Only Elsa and I may see"))
    assert turn["said_since"].startswith(f"see #{new['id']}: Bruno may see the tide tables")
    places = [one["id"] for one in hits]
    assert places.index(new["id"]) < places.index(turn["id"])


def test_words_of_which_a_replaced_note_quotes_a_part_do_not_come_back(says, call, agent_notes):
    long = "I'd go with 80 for every basin, one number is easier to explain."
    session = says(long)
    text, quote = "Basins are drained at 80", "I'd go with 80 for every basin"
    old = agent_notes(session, text=text, kind="decision", quote=quote)
    assert "80 for every basin" in call("memd/context")["text"]
    typed = "We decided to drain the tidal basins at 90 and the others at 70."
    agent_notes(says(typed), text=typed, kind="decision", quote=typed, replaces=[old["id"]])
    assert "80 for every basin" not in call("memd/context")["text"]


def test_a_claim_that_the_user_keeps_is_told_as_noted_and_as_his(
    says, call, agent_notes, shared_daemon
):
    typed = "they have put the audit off to 21 April"
    text = "The harbour audit is on 21 April, so the tide tables have to be ready then."
    noted = agent_notes(says(typed), text=text, kind="fact", quote=typed)
    assert noted["unproved"]
    assert text[:-1] not in call("memd/context")["text"]
    assert shared_daemon.run("review", "--keep", str(noted["id"])).returncode == 0
    line = next(one for one in call("memd/context")["text"].splitlines() if text[:-1] in one)
    assert "he said" not in line
    assert call("memd/why", id=noted["id"])["summary"]["speaker"] == "told"
    assert "Claimed by an agent" not in call("memd/context")["text"]


def test_a_next_prompt_on_another_matter_takes_nothing_back(says, call, since, agent_notes):
    typed = "Reports are built with Typst."
    session = says("Look at the reports.", typed)
    agent_notes(session, text=typed, kind="decision", quote=typed)
    session.asks("Tomasz is on parental leave until the summer, so Leila reviews our changes.")
    session.ends("OK.")
    assert since("what are reports built with?") == []
    assert "he said since" not in call("memd/context")["text"]


def test_an_agent_that_may_not_judge_is_told_what_to_do(says, call, shared_daemon, place):
    says("Always ask the keeper before the lamp is changed.")
    (rule,) = call("memd/search", query="ask the keeper about the lamp")["hits"]

    async def judge():
        async with ToolClient(
            stdio_proxy(shared_daemon).model_copy(update={"cwd": place})
        ) as client:
            made = await client.call_tool(
                "mem_remember", {"text": "The lamp may be changed by anybody now.", "kind": "fact"}
            )
            pair = {"id": made.structured_content["id"], "other": rule["id"]}
            asked = {**pair, "relation": "supersedes", "reason": "the keeper is gone"}
            return (await client.call_tool("mem_judge", asked)).structured_content

    judged = anyio.run(judge)
    assert judged["outcome"] == "asked"
    assert f"`memd judge {judged['id']} RELATION {rule['id']}`" in judged["next"]


def test_a_refused_note_told_by_his_words_is_told_with_what_he_said_since(says, call, agent_notes):
    typed = "Beatriz does the design, so nobody changes the carousel css without asking her."
    text = "The carousel css must never be looked at, by nobody."
    noted = agent_notes(says(typed), text=text, kind="decision", quote=typed)
    assert noted["unproved"]
    later = "Beatriz left the design, the carousel css can be changed again by anybody"
    says(later)
    line = next(one for one in call("memd/context")["text"].splitlines() if f"“{typed}”" in one)
    assert f"he said since: “{later}”" in line
