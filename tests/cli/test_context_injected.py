from memd.cli import context


def test_a_session_that_was_shown_nothing_says_so(memd):
    ran = memd("injected", "d9b86e92")
    assert ran.status == 0
    assert ran.out.startswith("session d9b86e92-")
    assert ran.out.endswith("\nit was shown nothing\n")
    assert memd("injected", "d9b86e92", "--json").json["injections"] == []


def test_what_was_shown_is_told_with_when_and_why():
    def row(number, at, moment):
        told = {"id": number, "kind": "fix", "title": "A\x1b[31m title", "reason": "pinned"}
        return {**told, "at": at, "moment": moment}

    rows = [row(1, 0, "startup"), row(2, 0, "startup"), row(3, 60_000, "prompt")]
    head, *lines = context._lines_injected({"session": "s1", "title": None, "injections": rows})
    assert head == "session s1: without a prompt"
    assert [line.split()[-1] for line in lines if not line.startswith(" ")] == [
        "startup",
        "prompt",
    ]
    assert lines[1:3] == ["  #1 fix  A[31m title", "    pinned"]
    assert len(lines) == 8


def test_a_session_that_there_is_not_is_told(memd):
    ran = memd("injected", "unknown")
    assert ran.status == 1
    assert "there is no 'unknown'" in ran.err


def test_where_no_session_is_known_one_is_asked_for(memd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = memd("injected")
    assert ran.status == 1
    assert "name one by its id" in ran.err
