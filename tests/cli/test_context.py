def test_what_a_new_session_would_be_shown_is_printed(memd, noted, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    number = noted("Always run the linter first", "--kind", "instruction")
    ran = memd("context")
    assert ran.status == 0
    assert f"#{number} " in ran.out
    assert ran.out.startswith('<recalled-memory source="memd"')
    assert "(1 memory, about " in ran.out


def test_nothing_to_show_is_told_with_the_reason(memd, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert memd("context").out.startswith("nothing would be shown: nothing is known")
    assert "fewer than 2 words" in memd("context", "--prompt", "thanks").out


def test_a_prompt_is_tried_and_every_candidate_explained(memd):
    ran = memd(
        "context", "--prompt", "why does login answer 500", "--session", "d9b86e92", "--explain"
    )
    assert ran.status == 0
    assert "Login answers 500" in ran.out
    assert "Candidates:" in ran.out
    assert "\n+ #" in ran.out
    found = memd(
        "context", "--prompt", "why does login answer 500", "--session", "d9b86e92", "--json"
    )
    assert found.json["moment"] == "prompt"
    assert all(one["shown"] for one in found.json["memories"])


def test_a_moment_that_there_is_not_is_refused(memd):
    ran = memd("context", "--moment", "never")
    assert ran.status == 1
    assert "startup, resume, clear, compact, prompt" in ran.err
