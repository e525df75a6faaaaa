from memd.cli import query

# ── context ───────────────────────────────────────────────────────────────────────────────────────


def test_the_context_of_a_new_session_is_printed_or_why_there_is_none(machine):
    machine.run("start")
    assert machine.run("context").out.startswith("nothing would be told: nothing is known")
    assert "fewer than 2 words" in machine.run("context", "thanks").out
    noted = machine.run(
        "remember", "Always run the linter first", "--kind", "instruction", "--json"
    )
    ran = machine.run("context")
    assert ran.status == 0
    assert f"#{noted.json['id']} " in ran.out
    assert ran.out.startswith('<recalled-memory source="memd"')
    assert "(1 memory, about " in ran.out


def test_the_context_of_a_prompt_is_explained(memd):
    ran = memd("context", "why does login answer 500", "--session", "d9b86e92", "--explain")
    assert ran.status == 0
    assert "Login answers 500" in ran.out
    assert "Candidates:" in ran.out
    assert "\n+ #" in ran.out
    found = memd("context", "why does login answer 500", "--session", "d9b86e92", "--json")
    assert found.json["moment"] == "prompt"
    assert all(one["shown"] for one in found.json["memories"])


# ── injected ──────────────────────────────────────────────────────────────────────────────────────


def test_a_session_without_injections(memd):
    ran = memd("injected", "d9b86e92")
    assert ran.status == 0
    assert ran.out.startswith("session d9b86e92-")
    assert "\nnothing was injected\n" in ran.out
    assert ran.out.endswith(
        "startup: nothing, memd did not hear it begin: it was imported, or read from its transcript\n"
    )
    assert memd("injected", "d9b86e92", "--json").json["injections"] == []


def test_injections_are_listed_with_time_and_reason():
    def row(number, at, moment):
        fields = {"id": number, "kind": "fix", "title": "A\x1b[31m title", "reason": "pinned"}
        outcome = {"outcome": "used", "evidence": "retry_limit"} if number == 1 else {}
        return {**fields, "at": at, "moment": moment, "tokens": 10, **outcome}

    rows = [row(1, 0, "startup"), row(2, 0, "startup"), row(3, 60_000, "prompt")]
    head, total, *lines = query._format_injections(
        {"session": "s1", "title": None, "injections": rows, "texts": []}
    )
    assert head == "session s1: without a prompt"
    assert total == "3 memories, about 30 tokens, 1 used"
    assert [line.split()[-1] for line in lines if not line.startswith(" ")] == ["startup", "prompt"]
    assert lines[1:4] == ["  #1 fix  A[31m title", "    pinned", "    used: retry_limit"]
    assert len(lines) == 9


def test_without_a_session_one_must_be_named(memd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = memd("injected")
    assert ran.status == 1
    assert "name one by its id" in ran.err
