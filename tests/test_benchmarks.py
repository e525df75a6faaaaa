import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import __main__ as bench
from benchmarks import (
    feel,
    gate,
    live_session,
    metrics,
    misspelt,
    people_set,
    replay,
    retrieval,
    retrievers,
    vault_generator,
)
from memd.recall import likelihood
from memd.transfer.transcripts import TranscriptReader
from tests.tables import every_row

LIMITS = {"hook": {"p50": "<= 35"}, "h*": {"runs": ">= 3"}, "search": {"p50": "<= 8"}}


def test_questions_with_misspelt_words_have_no_word_of_their_titles_and_are_the_same_each_time():
    names = (
        "harbour",
        "lantern",
        "compass",
        "granary",
        "whistle",
        "blanket",
        "pendulum",
        "orchard",
    )
    titles = [
        f"{one.title()} {two} keeps {one}_{two} steady"
        for one in names
        for two in names
        if one != two
    ]
    documents = [
        {"corpus": "c", "doc": str(n), "title": title, "text": "", "ts": n}
        for n, title in enumerate(titles)
    ]
    made = list(misspelt.make_questions(documents))
    assert made == list(misspelt.make_questions(documents))
    assert {"misspelt", "identifier"} <= {one["type"] for one in made}
    assert len({one["gold"][0] for one in made}) == len(made)
    for one in made:
        title = titles[int(one["gold"][0])].lower()
        whole = set(re.findall(r"\w+", title))
        spelt = set(one["query"].lower().split())
        assert not whole & spelt, (one["query"], title)


@pytest.mark.parametrize("part", bench.PARTS)
def test_every_part_can_be_loaded_and_describes_itself(part, capsys):
    with pytest.raises(SystemExit) as ended:
        bench.main([part, "--help"])
    assert ended.value.code == 0
    assert f"usage: scripts/bench {part}" in capsys.readouterr().out


def test_an_unknown_part_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        bench.main(["speed"])
    assert ended.value.code == 2
    assert "feel" in capsys.readouterr().err


def test_a_report_names_the_limits_that_are_missed(capsys):
    figures = {"hook": {"p50": 36.0, "runs": 3}}
    assert metrics.report(figures, LIMITS, {"cores": 2}, None) == 1
    printed = capsys.readouterr().out
    assert "MISSED  hook: p50 36.0, limit <= 35" in printed
    assert "met     hook: runs 3, limit >= 3" in printed
    assert "search" not in printed


def test_a_report_as_json_holds_the_figures_and_what_was_missed(tmp_path):
    file = tmp_path / "figures.json"
    assert metrics.report({"hook": {"p50": 35.0}}, LIMITS, {"cores": 2}, str(file)) == 0
    assert json.loads(file.read_text(encoding="utf-8")) == {
        "machine": {"cores": 2},
        "figures": {"hook": {"p50": 35.0}},
        "missed": [],
    }


def test_the_vectors_of_the_index_find_what_a_scan_finds():
    options = bench.parse_options("retrievers", ["--rows", "300", "--questions", "3"])
    figures = retrievers.measure(options)
    assert figures["words, 300 rows"]["ratio"] > 0
    assert figures["vectors, 300 rows"]["recall"] >= 0.99


def test_consolidation_decides_the_labelled_pairs():
    consolidation = bench.load("consolidation")
    options = bench.parse_options("consolidation", ["--only", "pairs", "--model", "hashing"])
    figures = consolidation.measure(options)
    assert all(metrics.check(figures, consolidation.LIMITS).values())


def test_a_difference_that_pairs_agree_on_is_outside_chance_and_one_that_they_dispute_is_not():
    found, low, high = retrieval.compare_pairs([1.0, 0.9, 0.8] * 20, [0.5, 0.5, 0.3] * 20)
    assert low <= found <= high
    assert found == pytest.approx(1.4 / 3)
    assert low > 0
    found, low, high = retrieval.compare_pairs([1.0, 0.0] * 20, [0.0, 0.9] * 20)
    assert found == pytest.approx(0.05)
    assert low < 0 < high


def test_a_profile_is_chosen_for_a_file_by_what_it_reaches_on_the_others():
    reached = {"a: x": 50, "b: x": 50, "c: x": 90, "a: y": 60, "b: y": 60, "c: y": 10}
    figures = {row: {"recall@5": number, "MRR": number} for row, number in reached.items()}
    rows = retrieval.choose_by_others(figures, ["x", "y"], ["a", "b", "c"])
    assert [row["chosen"] for row in rows.values()] == ["x", "x", "y"]
    assert rows["left out: c"]["recall@5"] == 10


@every_row(
    ("row", "now", "before", "slower"),
    [
        ("memd status", 50.0, 40.0, 1.25),
        ("memd status", 40.0, 50.0, 0.8),
        ("captures a second", 2000, 2500, 1.25),
        ("at rest, page faults a second", 0.2, 0.0, 1.0),
    ],
)
def test_what_got_worse_since_a_commit_is_above_one_and_fails_the_gate(row, now, before, slower):
    compared = feel.compare(row, now, before)
    assert compared["slower"] == slower
    figures = {row: {"now": now, **compared}}
    assert list(metrics.check(figures, gate.LIMITS).values()) == [slower <= 1.15]


def transcript_lines(session, day, said):
    """Lines of a transcript: what the user and the agent said in turn, a minute apart."""
    common = {
        "sessionId": session,
        "cwd": "/home/dev/shop",
        "version": "2.0.0",
        "isSidechain": False,
    }
    for minute, (role, text) in enumerate(said):
        yield json.dumps(
            {
                **common,
                "type": role,
                "uuid": f"{session}-{minute}",
                "timestamp": f"2026-03-{day:02}T10:{minute:02}:00.000Z",
                "message": {"role": role, "content": text},
            }
        )


def test_contexts_are_replayed_as_they_were_at_their_moment(tmp_path, capsys):
    first = [
        (
            "user",
            "Where do sessions live? And note a decision: we keep sessions in SQLite rather than Redis.",
        ),
        ("assistant", "They live in SQLite now. I noted the decision."),
    ]
    second = [("user", "Which page lists the open orders?"), ("assistant", "orders.html does.")]
    for name, day, said in (("one", 2, first), ("two", 4, second)):
        lines = transcript_lines(name, day, said)
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    moments = tmp_path / "moments.json"
    words = [
        "contexts",
        str(tmp_path),
        "--starts",
        "9",
        "--prompts",
        "9",
        "--moments",
        str(moments),
    ]
    assert bench.main(words) == 0
    assert "startup of two, 2026-03-04 10:00" in capsys.readouterr().out
    found = json.loads(moments.read_text("utf-8"))
    assert [(one["session"], one["name"]) for one in found] == [
        ("one", "startup"), ("one", "prompt"), ("two", "startup"), ("two", "prompt"),
    ]  # fmt: skip
    assert [bool(one["memories"]) for one in found[:2]] == [False, False]
    assert "We keep sessions in SQLite" in found[2]["text"]


_THREAD_ENDS = """
import sys, threading, time
def work():
    sys.stdin.readline()
    while time.thread_time() < 0.1:
        pass
worker = threading.Thread(target=work)
worker.start()
print(flush=True)
worker.join()
print(flush=True)
sys.stdin.readline()
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="Linux counts by thread")
def test_what_a_process_used_includes_a_thread_that_ended_meanwhile():
    with subprocess.Popen(
        [sys.executable, "-c", _THREAD_ENDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdout.readline()
        then = feel.read_activity(process.pid)
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()
        while len((now := feel.read_activity(process.pid)).switches) > 1:
            pass  # the kernel takes a joined thread off its list a moment later
        process.stdin.close()
    assert len(then.switches) == 2
    spent = feel.subtract_activity(now, then)
    assert spent.cpu_s >= 0.09
    assert spent.switches >= 1
    assert spent.faults >= 0


def test_switches_of_a_thread_count_from_the_first_reading_and_of_a_new_one_all():
    then = feel.Activity(1.0, {"main": 100, "ends": 1000}, 10)
    now = feel.Activity(1.5, {"main": 103, "begins": 2}, 11)
    assert feel.subtract_activity(now, then) == feel.Spent(0.5, 3 + 2 + 1, 1)


def test_a_replay_asks_the_same_in_every_way_and_sees_the_last_bit_of_a_score(
    tmp_path, monkeypatch
):
    vault = str(tmp_path / "vault.db")
    vault_generator.fill(vault, 150)

    def answer():
        out = tmp_path / "answers.jsonl"
        replay.answer_all(vault, str(out), "20", "")
        return out.read_text("utf-8").split("\n")

    first = answer()
    assert answer() == first
    assert len({line for line in first if line}) == 20
    monkeypatch.setattr(likelihood, "_BEND", likelihood._BEND * (1 + 1e-15))
    different = [one for one, other in zip(first, answer(), strict=True) if one != other]
    assert len(different) > 5


class SilentDaemon:
    def call(self, *said):
        pass


def test_the_transcript_of_a_live_session_has_one_turn_after_the_other(tmp_path):
    session = live_session.LiveSession(SilentDaemon(), tmp_path)
    for name in ("one", "two", "three"):
        session.run_turn(name)
    session.wait_written()
    (file,) = tmp_path.iterdir()
    reader = TranscriptReader()
    found = [one for line in file.read_text().splitlines() for one in reader.feed(line)]
    texts = [one.payload["text"] for one in found if one.payload["hook_event_name"] == "AgentText"]
    assert texts == [
        f"The limit in {name}.py is 1: I raise it." for name in ("one", "two", "three")
    ]


def test_a_question_over_people_names_its_turn_by_a_hash_and_any_memory_of_it_answers():
    asked = people_set.read_questions()
    assert {frozenset(one) for one in asked} == {frozenset({"person", "question", "turn"})}
    assert all(re.fullmatch("([0-9a-f]{16})?", one["turn"]) for one in asked)
    memory = {
        "record": "summary",
        "session": "s1",
        "uid": "u1",
        "episode": "p1",
        "title": "T",
        "body": "B",
        "at": 5,
    }
    records = [{"record": "session", "uid": "s1", "key": "abc"}, memory, {**memory, "uid": "u2"}]
    one, other = people_set.make_documents("p99", records)
    assert one["doc"] == other["doc"] == people_set.label_turn("p99", "abc", "p1")
    assert (one["corpus"], one["session"], one["text"]) == ("p99", "abc", "B")
