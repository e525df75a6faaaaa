"""What is behind a note that is not the user's word: a line of a file, a proposal that stood; and proof from elsewhere."""

import json
import sqlite3

import pytest
from mcp import Client

from tests.e2e.real_daemon import RealDaemon
from tests.e2e.test_authority import command
from tests.e2e.test_judging import Asking, stdio_proxy


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    it = RealDaemon(tmp_path_factory.mktemp("d"))
    it.start()
    yield it
    it.stop()


@pytest.fixture
def place(tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "app.py").write_text("import os\n\nRETRIES = 7  # the gateway drops one in five\n")
    return tree


@pytest.fixture
def client(daemon, place):
    return Client(stdio_proxy(daemon).model_copy(update={"cwd": str(place)}), mode="auto")


@pytest.fixture
def hook(daemon, place):
    def hook(name, **payload):
        whole = {
            "hook_event_name": name,
            "session_id": f"s-{place.parent.name}",
            "cwd": str(place),
            **payload,
        }
        done = daemon.run("hook", name, stdin=json.dumps(whole).encode())
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    return hook


FACT = "Uploads are tried seven times, because the gateway drops one in five."


async def test_a_fact_that_rests_on_a_line_says_so_and_when_the_line_is_gone(client, place, hook):
    async with client as agent:
        ask = Asking(agent)
        noted = await ask("mem_remember", text=FACT, kind="decision", quote="app.py:3")
        assert noted["proved"] == (
            "your word, which rests on app.py:3 “RETRIES = 7 # the gateway drops one in five”"
        )
        number = noted["id"]

        async def why():
            return (await ask("mem_why", id=number))["because"]

        async def marked():
            hits = (await ask("mem_search", query="how often are uploads tried"))["hits"]
            return next(hit for hit in hits if hit["id"] == number).get("older_value", "")

        assert "it rests on app.py:3" in await why()
        assert await marked() == ""
        (place / "app.py").write_text(
            "# moved\n\n\n  RETRIES = 7  # the gateway drops one in five\n"
        )
        assert await marked() == ""
        (place / "app.py").write_text("import os\n")
        assert await marked() == "the line on which it rests is gone: app.py:3"
        assert "the line on which it rests is gone" in await why()
        assert "the line on which it rests is gone" in hook("SessionStart", source="startup")
        (place / "app.py").unlink()
        assert await marked() == "app.py, on which it rests, is gone"
        place.rename(place.parent / "away")
        assert await marked() == ""


async def test_a_line_outside_of_the_project_is_none(client, place):
    (place.parent / "secret.txt").write_text("the key\n")
    async with client as agent:
        ask = Asking(agent)
        for quote in ("../secret.txt:1", str(place.parent / "secret.txt") + ":1", "app.py:99"):
            noted = await ask(
                "mem_remember", text=f"There is a key, {quote}.", kind="fact", quote=quote
            )
            assert "proved" not in noted
            assert noted["unproved"].startswith("kept as your word")


PROPOSAL = "I keep the parser in one file, because the grammar is small."


async def test_a_note_is_proved_by_its_own_session_though_its_id_looks_like_a_secret(
    daemon, place, hook
):
    own = "ses_277daa810ffePOBsdfS6gm8uA2"
    hook("UserPromptSubmit", session_id=own, prompt="Reports are never sent twice, please.")
    environ = {**daemon.environ, "CLAUDE_CODE_SESSION_ID": own}
    proxy = stdio_proxy(daemon).model_copy(update={"cwd": str(place), "env": environ})
    async with Client(proxy, mode="auto") as agent:
        said = "Reports are never sent twice"
        noted = await Asking(agent)("mem_remember", text=f"{said}.", kind="instruction", quote=said)
    assert noted["proved"].startswith("the user's word")


async def test_a_proposal_that_the_user_let_stand_is_evidence_until_he_contradicts_it(client, hook):
    def turn(number, prompt, answer, **tool):
        hook("UserPromptSubmit", prompt=prompt, prompt_id=f"p{number}")
        if tool:
            hook(
                "PostToolUse",
                prompt_id=f"p{number}",
                tool_use_id=f"u{number}",
                tool_response="ok",
                **tool,
            )
        hook("Stop", prompt_id=f"p{number}", last_assistant_message=answer)

    commit = {"tool_name": "Bash", "tool_input": {"command": "git commit -m parser"}}
    turn(1, "Write a parser for the config.", PROPOSAL)
    note = {
        "text": "The parser stays in one file, because its grammar is small.",
        "kind": "decision",
    }
    async with client as agent:
        ask = Asking(agent)
        early = await ask("mem_remember", text="The parser is one file.", quote=PROPOSAL)
        assert "he has not answered yet" in early["unproved"]
        turn(2, "Good. Now add comments to the format.", "Added.", **commit)
        turn(3, "And numbers.", "Added.")
        noted = await ask("mem_remember", **note, quote=PROPOSAL)
        assert "they stood for 2 turns" in noted["unproved"]

        async def why():
            return await ask("mem_why", id=noted["id"])

        found = await why()
        assert found["because"].endswith(
            "the agent proposed it, and it stood for 2 turns and a commit"
        )
        assert found["speaker"] == "agent"
        assert [one["quote"] for one in found["sources"]] == [PROPOSAL]
        turn(4, "Don't keep the parser in one file, split it by section.", "I split it.")
        assert (
            "the user contradicted: “Don't keep the parser in one file" in (await why())["because"]
        )


async def test_a_proposal_that_was_undone_stands_no_longer(client, hook):
    hook("UserPromptSubmit", prompt="Speed up the build.", prompt_id="p1")
    hook(
        "Stop", prompt_id="p1", last_assistant_message="I turn the build cache on for all branches."
    )
    hook("UserPromptSubmit", prompt="Fine, and now the docs.", prompt_id="p2")
    async with client as agent:
        ask = Asking(agent)
        noted = await ask(
            "mem_remember", text="The build cache is on for all branches.",
            quote="I turn the build cache on for all branches.",
        )  # fmt: skip
        hook(
            "PostToolUse", prompt_id="p2", tool_use_id="u2", tool_name="Bash", tool_response="ok",
            tool_input={"command": "git revert --no-edit HEAD"},
        )  # fmt: skip
        assert "it was undone later" in (await ask("mem_why", id=noted["id"]))["because"]


async def test_proof_from_another_device_is_told_with_its_words_device_and_time(
    daemon, client, hook
):
    said = "Never squash the history of the release branch."
    hook("UserPromptSubmit", prompt=said, prompt_id="p1")
    async with client as agent:
        noted = await Asking(agent)(
            "mem_remember", text="The release branch's history is never squashed.", quote=said, kind="instruction"
        )  # fmt: skip
    body = json.loads(command(daemon, "get", str(noted["id"]), "--json"))["memories"][0]["body"]
    assert "\nProved: 20" in body
    assert "squash" not in command(daemon, "why", str(noted["id"])).partition("proved 20")[2]
    # As a device has it that got the memory and not its events.
    with sqlite3.connect(daemon.paths.database) as vault:
        vault.execute("DELETE FROM edges WHERE from_id = ?", (str(noted["id"]),))
    told = " ".join(command(daemon, "why", str(noted["id"])).split())
    assert "proved 20" in told
    assert " on " in told.partition("proved 20")[2]
    (one,) = [
        one
        for one in json.loads(command(daemon, "review", "--json"))["memories"]
        if one["id"] == noted["id"]
    ]
    assert [quote["quote"] for quote in one["proof"]] == [said]


async def test_a_start_tells_in_his_own_words_what_a_note_does_not_surely_say_and_nothing_that_was_refuted(
    daemon, client, hook
):
    said = "roman numerals are never turned into arabic ones, the index needs them"
    hook("UserPromptSubmit", prompt=said, prompt_id="p1")
    hook("Stop", prompt_id="p1", last_assistant_message="I keep them.")
    asked = "Does the project print lace cards?"
    hook("UserPromptSubmit", prompt=asked, prompt_id="p2")
    hook("Stop", prompt_id="p2", last_assistant_message="No.")
    async with client as agent:
        ask = Asking(agent)
        turned = await ask(
            "mem_remember", kind="instruction", quote=said,
            text="Roman numerals are turned into arabic ones, because the index needs them.",
        )  # fmt: skip
        assert "unproved" in turned
        lace = await ask("mem_remember", text="The project prints lace cards.", kind="fact", quote=asked)  # fmt: skip
        assert "are a question" in lace["unproved"]
        hits = {
            hit["title"]: hit.get("unproved")
            for query in ("roman numerals arabic", "lace cards")
            for hit in (await ask("mem_search", query=query))["hits"]
        }
    assert hits["Roman numerals are turned into arabic ones, because the index needs them"] == f"he said “{said}”"  # fmt: skip
    assert hits["The project prints lace cards"].startswith("not his word: ")
    found = command(daemon, "search", "roman numerals arabic", "--project", "all")
    assert f"the index needs them  (he said “{said}”)" in found
    listed = command(daemon, "list", "--project", "all")
    assert "The project prints lace cards  (not his word: " in listed
    begun = hook("SessionStart", session_id="another", source="startup")
    told = json.loads(begun)["hookSpecificOutput"]["additionalContext"]
    assert f"he said “{said}”" in told
    assert "are turned into" not in told
    assert "lace" not in told
    why = " ".join(command(daemon, "why", str(turned["id"])).split())
    assert f"the user said “{said}”, which does not surely say that" in why
    assert "is not the user's word" in " ".join(command(daemon, "why", str(lace["id"])).split())
