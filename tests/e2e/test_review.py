"""The inbox with a real daemon: what waits, with its proof; keep, edit, reject, undo; and that nothing rejected returns."""

import json

import pytest
from mcp import Client

from tests.e2e.real_daemon import RealDaemon
from tests.e2e.test_authority import PLACE, command, hook, in_agents_shell, memories
from tests.e2e.test_judging import Asking, stdio_proxy
from tests.pseudo_terminal import run_on_terminal

SAID = "Migrations by hand only, please, the generator dropped a column once."
NOTE = "Database migrations are written by hand, because the generator once dropped a column."


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    it = RealDaemon(tmp_path_factory.mktemp("d"))
    it.start()
    yield it
    it.stop()


@pytest.fixture
def client(daemon):
    return lambda place=PLACE: Client(
        stdio_proxy(daemon).model_copy(update={"cwd": place}), mode="auto"
    )


def review(daemon, *words):
    return json.loads(command(daemon, "review", *words, "--json"))


def waiting(daemon):
    return {one["id"]: one for one in review(daemon)["memories"]}


def told(daemon, session, **more):
    return hook(daemon, "SessionStart", session_id=session, source="startup", **more)


async def test_what_was_learned_waits_with_its_proof_and_a_rejection_keeps_it_away(daemon, client):
    hook(daemon, "UserPromptSubmit", prompt=f"Add a table for orders. {SAID}")
    hook(daemon, "Stop", last_assistant_message="I have added it.")
    async with client() as agent:
        ask = Asking(agent)
        noted = await ask(
            "mem_remember", text=NOTE, kind="instruction", quote=SAID, why="lost data"
        )
    one = waiting(daemon)[noted["id"]]
    assert (one["text"], one["why"], one["speaker"]) == (NOTE, "lost data", "told")
    ((proof),) = one["proof"]
    assert (proof["quote"], proof["kind"]) == (SAID, "prompt")
    assert "the user's own words prove it" in one["because"]
    listed = command(daemon, "review")
    assert f"said    “{SAID.partition(' once')[0][:40]}" in listed
    assert "(you, 20" in " ".join(listed.split())
    assert "Database migrations are written by hand" in told(daemon, "s2")

    done = command(daemon, "review", "--reject", str(noted["id"]))
    assert "never learned again" in done
    assert noted["id"] not in waiting(daemon)
    assert "Database migrations are" not in told(daemon, "s3")
    async with client() as agent:
        ask = Asking(agent)
        found = await ask("mem_search", query="how are migrations written", include_superseded=True)
        assert [hit["id"] for hit in found["hits"] if hit["id"] == noted["id"]] == []
        assert (found["suppressed"].get("rejected"), "expired" in found["suppressed"]) == (1, False)
        said = await ask.refused("mem_remember", text=f"Remember: {NOTE}", kind="fact", quote=SAID)
        assert "the user rejected this on 20" in said
        assert f"memd review --undo {noted['id']}" in said
        why = await ask("mem_why", id=noted["id"])
        assert why["verdict"].startswith("rejected by the user on ")
    undone = command(daemon, "review", "--undo", str(noted["id"]))
    assert "waits for your review again" in undone
    assert noted["id"] in waiting(daemon)
    command(daemon, "review", "--keep", str(noted["id"]))
    assert noted["id"] not in waiting(daemon)
    assert memories(daemon, noted["id"])[noted["id"]]["speaker"] == "told"


def test_a_sentence_that_its_proof_shows_is_shown_there_alone(daemon):
    hook(
        daemon,
        "UserPromptSubmit",
        prompt="From now on, tag each release by hand.",
        session_id="tags",
    )
    hook(daemon, "Stop", last_assistant_message="All right.", session_id="tags")
    daemon.settle()
    shown = command(daemon, "review")
    assert "Tag each release by hand" in shown
    assert (
        shown.count("From now on, tag each release by hand.") == 2
    )  # the session's name and the proof


async def test_one_key_each_on_a_terminal_and_u_takes_the_last_one_back(daemon, client):
    texts = [
        "The queue is RabbitMQ 3.",
        "Feature flags live in flags.toml.",
        "Logs are kept 30 days.",
    ]
    async with client() as agent:
        ask = Asking(agent)
        first, second, third = [
            (await ask("mem_remember", text=text, kind="fact"))["id"] for text in texts
        ]
    editor = daemon.home / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/30/90/' \"$1\"\n")
    editor.chmod(0o700)
    waits = list(waiting(daemon))
    keys = {first: "k", second: "rur", third: "e"}
    environ = daemon.environ | {"TERM": "dumb", "EDITOR": str(editor)}
    shown = run_on_terminal(
        daemon.command("review"), environ, columns=90, cwd=PLACE,
        keys="".join(keys.get(number, "n") for number in waits).encode(),
    )  # fmt: skip
    assert f"#{first} kept: it stays as it is" in shown
    assert f"#{second} waits for your review again; it was rejected" in shown
    assert "looked at" in shown
    assert waiting(daemon) == {}
    newest, *_ = review(daemon, "--rejected")["memories"]
    assert newest["id"] == second
    edited = memories(daemon, third)[third]["superseded_by"]
    new = memories(daemon, edited)[edited]
    assert (new["body"], new["speaker"]) == ("Logs are kept 90 days.", "user")


async def test_a_taste_of_two_projects_holds_everywhere_once_the_user_says_so(
    daemon, client, tmp_path
):
    other = tmp_path / "other"
    other.mkdir()
    text = "Commit messages are written in English and without a prefix."
    numbers = []
    for place in (PLACE, str(other)):
        async with client(place) as agent:
            ask = Asking(agent)
            numbers.append((await ask("mem_remember", text=text, kind="preference"))["id"])
    async with client() as agent:
        taste = "Diagrams are drawn with Mermaid."
        alone = (await Asking(agent)("mem_remember", text=taste, kind="preference"))["id"]
    one, two = numbers
    assert waiting(daemon)[one]["elsewhere_too"] == [{"id": two, "project": "other"}]
    assert "says the same: hold everywhere?" in command(daemon, "review")
    assert daemon.run("review", "--everywhere", str(alone)).returncode == 1
    (done,) = review(daemon, "--everywhere", str(two))["reviewed"]
    found = memories(daemon, done["global"], one, two)
    assert (found[done["global"]]["project"], found[done["global"]]["speaker"]) == (
        "global",
        "user",
    )
    assert {found[number]["superseded_by"] for number in numbers} == {done["global"]}
    assert not {one, two, done["global"]} & waiting(daemon).keys()
    command(daemon, "review", "--undo", str(one))
    assert {memories(daemon, one, two)[number]["superseded_by"] for number in numbers} == {None}
    assert {one, two} <= waiting(daemon).keys()


def test_distilling_again_and_importing_bring_nothing_back(daemon):
    rule = "From now on always squash before you merge."
    hook(daemon, "UserPromptSubmit", prompt=rule, session_id="q1", prompt_id="q1")
    hook(daemon, "Stop", last_assistant_message="I will.", session_id="q1", prompt_id="q1")
    daemon.settle()
    (number,) = [i for i, one in waiting(daemon).items() if "squash" in one["title"]]
    exported = daemon.home / "vault.memd"
    command(daemon, "export", str(exported))
    notes = daemon.home / "notes.md"
    notes.write_text("# Rules\n\n- Always squash before you merge.\n")
    command(daemon, "review", "--reject", str(number))
    hook(daemon, "UserPromptSubmit", prompt=rule, session_id="q2", prompt_id="q2")
    hook(daemon, "Stop", last_assistant_message="I will.", session_id="q2", prompt_id="q2")
    daemon.settle()
    command(daemon, "import", "markdown", str(notes))
    command(daemon, "import", str(exported), "--yes")
    command(daemon, "reindex", "--memories")
    assert in_agents_shell(daemon, "remember", "Squash always before you merge.").returncode == 1
    assert in_agents_shell(daemon, "forget", str(number), "--yes").returncode == 1
    daemon.settle()
    assert not [one for one in waiting(daemon).values() if "squash" in one["title"].lower()]
    for more in ("squash", "squash merge"):
        found = json.loads(command(daemon, "search", more, "--superseded", "--json"))
        assert not [
            hit for hit in found["hits"] if "quash" in hit["title"] and hit["kind"] != "session"
        ]
    assert "squash" not in told(daemon, "q3").lower().replace("asked", "")


def test_a_turn_that_only_says_it_again_does_not_bring_it_back_as_its_title(daemon):
    text = "Deploys run only from the release branch."
    with daemon.client() as client:
        note = {"text": text, "source": "agent", "session": "r1", "client": "claude-code"}
        noted = client.call("memd/remember", {**note, "directory": PLACE})
    command(daemon, "review", "--reject", str(noted["id"]))
    for number, (prompt, answer) in enumerate([(f"From now on: {text.lower()}", "Done, as you said."), ("ok and the header is blue", "It is."), ("why do deploys run only from the release branch?", "Because main may be broken.")]):  # fmt: skip
        more = {"session_id": "r2", "prompt_id": f"r{number}"}
        hook(daemon, "UserPromptSubmit", prompt=prompt, **more)
        hook(daemon, "Stop", last_assistant_message=answer, **more)
    daemon.settle()
    found = json.loads(command(daemon, "search", "deploys release branch", "--all", "--json"))
    titles = [hit["title"] for hit in found["hits"] if hit["kind"] != "session"]
    assert not [one for one in titles if one.startswith("From now on")]
    assert [one for one in titles if "y do deploys" in one], titles


def test_what_was_forgotten_or_replaced_is_not_told_from_the_prompt_that_said_it(daemon):
    place = "/home/dev/replacing"
    forgotten = "Always write event names in the past tense."
    replaced = "We decided to use Redis for the cache because Memcached lost data."
    later = "We decided to use Valkey for the cache because of the licence of the other."
    for number, said in enumerate((forgotten, replaced, later)):
        more = {"session_id": "f1", "prompt_id": f"f{number}", "cwd": place}
        hook(daemon, "UserPromptSubmit", prompt=f"Add a.py. {said}", **more)
        hook(daemon, "Stop", last_assistant_message="Added; it is written so.", **more)
    daemon.settle()
    found = {one["title"]: i for i, one in waiting(daemon).items()}
    before = told(daemon, "f2", cwd=place)
    assert forgotten[:-1] in before
    assert "Redis" in before
    old, new = (
        next(i for title, i in found.items() if word in title) for word in ("Redis", "Valkey")
    )
    command(daemon, "forget", "--yes", str(found[forgotten[:-1]]))
    command(daemon, "judge", str(new), str(old), "supersedes", "--reason", "tried")
    after = told(daemon, "f3", cwd=place)
    assert "past tense" not in after
    assert "Redis" not in after
    assert "Valkey" in after


def test_what_he_typed_and_judged_to_hold_is_his_word_and_no_claim_of_an_agent(daemon):
    place = "/home/dev/judging"
    command(daemon, "remember", "Never push to main", "--kind", "instruction", "--project", place)
    said = "eh just push to main its only me anyway"
    more = {"session_id": "j1", "prompt_id": "j1", "cwd": place}
    hook(daemon, "UserPromptSubmit", prompt=said, **more)
    hook(daemon, "PostToolUse", tool_name="Bash", tool_use_id="j1", tool_input={"command": "git checkout -q main; echo pushed"}, tool_response="pushed", **more)  # fmt: skip
    hook(daemon, "Stop", last_assistant_message="Pushed to main.", **more)
    daemon.settle()
    listed = json.loads(command(daemon, "list", "--project", place, "--json"))["memories"]
    found = {one["title"]: one["id"] for one in listed}
    new, old = found[said.capitalize()], found["Never push to main"]
    command(daemon, "judge", str(new), str(old), "supersedes", "--reason", "alone now")
    start = json.loads(told(daemon, "j2", cwd=place))["hookSpecificOutput"]["additionalContext"]
    assert "Claimed by an agent" not in start
    assert f"user: {said.capitalize()}" in start
    assert json.loads(command(daemon, "why", str(new), "--json"))["summary"]["speaker"] == "user"


def test_a_turn_named_by_the_user_s_own_rule_is_told_as_the_user_s_words(daemon):
    place = "/home/dev/labelling"
    rules = ("We should never log email addresses, GDPR", "We use tabs in Makefiles only")
    for number, said in enumerate(rules):
        more = {"session_id": "l1", "prompt_id": f"l{number}", "cwd": place}
        file = f"{place}/a.py"
        edit = {"file_path": file, "old_string": "x", "new_string": f"y{number}"}
        hook(daemon, "UserPromptSubmit", prompt=said, **more)
        hook(daemon, "PostToolUse", tool_name="Edit", tool_use_id=f"l{number}", tool_input=edit, tool_response={"filePath": file}, **more)  # fmt: skip
        hook(daemon, "Stop", last_assistant_message="Noted; a.py masks them now.", **more)
    daemon.settle()
    start = json.loads(told(daemon, "l2", cwd=place))["hookSpecificOutput"]["additionalContext"]
    for said in rules:
        assert f"- “{said}” (" in start
        assert start.count(said) == 1


def test_what_a_decision_left_open_is_told_beside_the_decision(daemon):
    more = {"session_id": "o1", "prompt_id": "o1", "cwd": "/home/dev/opening"}
    said = "We decided to use Postmark for mails because SES bounced too much."
    answer = "mail.py uses Postmark for mails because SES bounced too much.\n\nNot done yet: the bounce webhook."
    edit = {"file_path": "/home/dev/opening/mail.py", "old_string": "SES", "new_string": "Postmark"}
    hook(daemon, "UserPromptSubmit", prompt=said, **more)
    hook(daemon, "PostToolUse", tool_name="Edit", tool_use_id="o1", tool_input=edit, tool_response={"filePath": edit["file_path"]}, **more)  # fmt: skip
    hook(daemon, "Stop", last_assistant_message=answer, **more)
    daemon.settle()
    assert "the bounce webhook" in told(daemon, "o2", cwd="/home/dev/opening")


def test_a_list_of_what_is_left_to_do_is_told_by_its_items(daemon):
    more = {"session_id": "i1", "prompt_id": "i1", "cwd": "/home/dev/listing"}
    file = "/home/dev/listing/health.py"
    answer = "Added health.py, and the tests pass.\n\n**Still open:**\n- metrics are not exported\n- the balancer does not know the endpoint\n\nTell me when to go on."
    edit = {"file_path": file, "old_string": "x", "new_string": "y"}
    hook(daemon, "UserPromptSubmit", prompt="Add a health endpoint.", **more)
    hook(daemon, "PostToolUse", tool_name="Edit", tool_use_id="i1", tool_input=edit, tool_response={"filePath": file}, **more)  # fmt: skip
    hook(daemon, "Stop", last_assistant_message=answer, **more)
    daemon.settle()
    start = json.loads(told(daemon, "i2", cwd=more["cwd"]))["hookSpecificOutput"]
    for left in ("metrics are not exported", "the balancer does not know the endpoint"):
        assert left in start["additionalContext"]
    assert "Still open: Still open" not in start["additionalContext"]


def test_a_rule_with_a_long_command_is_told_whole(daemon):
    more = {"session_id": "c1", "prompt_id": "c1", "cwd": "/home/dev/commanding"}
    rule = "Always run `python3 -m pytest -q` before you commit"
    hook(daemon, "UserPromptSubmit", prompt=f"{rule}.", **more)
    hook(daemon, "Stop", last_assistant_message="I will.", **more)
    daemon.settle()
    start = json.loads(told(daemon, "c2", cwd=more["cwd"]))["hookSpecificOutput"]
    assert f"user: {rule}" in start["additionalContext"]


@pytest.mark.parametrize(
    "case",
    [
        ("Die Waage steht immer im Hof.", "Im Hof regnet es rein, die Waage kommt in die Halle.", "The scale stands in Ulm"),
        ("Miód sprzedaje zawsze Ola.", "Ola wyjeżdża do Gdańska, miodem zajmie się Staszek.", "Honey is sold in Gdynia"),
    ],
)  # fmt: skip
async def test_what_is_kept_replaces_what_it_contradicts_and_is_the_users_word_wherever_it_is_shown(
    daemon, client, tmp_path, case
):
    (said, later, new), place = case, str(tmp_path)
    for key, prompt in (("one", said), ("two", later)):
        hook(daemon, "UserPromptSubmit", session_id=f"{place}{key}", cwd=place, prompt=prompt)
        hook(daemon, "Stop", session_id=f"{place}{key}", cwd=place, last_assistant_message="Good.")
    async with client(place) as agent:
        ask = Asking(agent)
        old = (await ask("mem_remember", text=said, kind="decision", quote=said))["id"]
        noted = await ask("mem_remember", text=new, kind="decision", quote=later, replaces=[old])

    def look(number):
        with daemon.client() as asking:
            return asking.call("memd/get", {"ids": [number], "directory": place})["memories"][0]

    number = noted["id"]
    assert look(number)["speaker"] == "agent"
    assert "Said, but not surely that" in look(number)["body"]
    assert f"it replaces #{old}" in command(daemon, "review", "--keep", str(number))
    kept = look(number)
    assert (kept["speaker"], kept.get("unproved")) == ("told", None)
    assert kept["body"].endswith(f"Said: “{later}”")
    start = told(daemon, f"{place}new", cwd=place)
    assert f"#{number} " in start
    assert f"#{old} " not in start
    command(daemon, "review", "--undo", str(number))
    assert look(old)["superseded_by"] is None
    assert look(number)["speaker"] == "agent"
