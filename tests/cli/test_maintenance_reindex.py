import sys

import pytest

from memd.cli import maintenance


def test_what_was_found_before_is_found_after(memd):
    query = ("search", "login 500", "--project", "all", "--json")
    before = [hit["id"] for hit in memd(*query).json["hits"]]
    ran = memd("reindex")
    assert ran.status == 0
    assert ran.out.startswith("done in ")
    assert [hit["id"] for hit in memd(*query).json["hits"]] == before


def test_embedding_anew_without_a_model_says_what_to_do_and_changes_nothing(memd):
    before = memd("status", "--json").json["summaries"]
    ran = memd("reindex", "--embeddings")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith("memd: ")
    assert "Ollama" in ran.err
    assert memd("status", "--json").json["summaries"] == before


def said(done, missing, *, eta=None, why=""):
    return {"space": "s", "done": done, "missing": missing, "eta_s": eta, "why": why}


def test_where_there_is_no_terminal_a_line_tells_every_tenth_and_why_it_waits(capsys):
    with maintenance._progress("a/b") as draw:
        for done in range(101):
            draw(said(done, 100 - done, eta=(100 - done) // 10))
        draw(said(100, 50, why="nobody answers\nstart it"))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "0 of 100  10 s left"
    assert lines[5] == "50 of 100  5 s left"
    assert lines[10].startswith("100 of 100")
    assert lines[11:] == ["100 of 150  waits: nobody answers start it"]


def test_nothing_to_embed_is_done_at_once(capsys):
    with maintenance._progress("a/b") as draw:
        draw(said(0, 0))
    assert capsys.readouterr().err == "0 of 0\n"


def test_on_a_terminal_a_bar_is_drawn(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with maintenance._progress("ollama/m") as draw:
        draw(said(30, 70, eta=7))
    shown = capsys.readouterr().err
    assert "ollama/m" in shown
    assert "30/100" in shown


def test_who_interrupts_is_told_that_it_goes_on(monkeypatch, capsys):
    def call(method, *_, **__):
        if method == "memd/status":
            raise KeyboardInterrupt
        return {"report": {"space": "s", "missing": 3}}

    monkeypatch.setattr(maintenance.daemon_call, "call", call)
    with pytest.raises(KeyboardInterrupt):
        maintenance.run_reindex(embeddings=True)
    assert "goes on in the background" in capsys.readouterr().out
