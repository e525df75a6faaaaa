import json

from memd import log
from memd.capture.redact import redact, redact_value
from memd.consolidate import scrubbing
from memd.store import projects, texts
from memd.store.texts import Row
from tests.make import by_pattern
from tests.planted import HEX40

EVENTS, SUMMARIES, EDGES = (
    next(one for one in texts.TABLES if one.name == name)
    for name in ("events", "summaries", "edges")
)


def test_a_pattern_is_replaced_in_keys_and_values_and_twice_is_once():
    rule = by_pattern(r"zeb\w+")
    row = Row(7, {"payload": json.dumps({"zebra": ["a zebra", {"n": 1}], "ok": None})})
    (new,) = scrubbing.changed(rule, EVENTS, [row])
    assert json.loads(new["payload"]) == {
        "[REDACTED:scrub]": ["a [REDACTED:scrub]", {"n": 1}], "ok": None,
    }  # fmt: skip
    assert scrubbing.changed(rule, EVENTS, [Row(7, new)]) == [{}]
    assert scrubbing.hits(rule, EVENTS, [row]) == {7: {"[REDACTED:scrub]": 2}}


def test_a_placeholder_is_never_part_of_what_is_found():
    rule = by_pattern("RED|scrub|:")
    assert rule.text("RED [REDACTED:aws-key] x") == "[REDACTED:scrub] [REDACTED:aws-key] x"
    assert rule.text(rule.text("RED: scrub")) == rule.text("RED: scrub")


def test_secrets_that_were_kept_before_a_rule_knew_them_are_redacted_as_today():
    rule = scrubbing.by_redaction(redact, redact_value)
    row = Row(1, {"payload": json.dumps({"env": {"DB_PASSWORD": "hunter2hunter2"}})})
    assert "hunter2" not in scrubbing.changed(rule, EVENTS, [row])[0]["payload"]
    title = Row(2, {"title": f"github_token={HEX40}", "body": "plain"})
    assert [list(new) for new in scrubbing.changed(rule, SUMMARIES, [title])] == [["title"]]


def test_the_number_of_a_memory_in_an_edge_is_no_text():
    row = Row(1, {"from_id": "12", "to_id": "/src/12.py", "detail": "{}", "rule": "turn"})
    rule = by_pattern("12")
    assert scrubbing.changed(rule, EDGES, [row]) == [{"to_id": "/src/[REDACTED:scrub].py"}]


def test_the_report_names_the_first_rows_and_counts_all():
    found = scrubbing.Scrubbed("x", is_dry_run=True)
    for start in (0, 8):
        found = found.with_rows(
            "events", {n: {"[REDACTED:scrub]": 2} for n in range(start, start + 8)}
        )
    assert (found.rows, len(found.ids["events"])) == ({"events": 16}, 10)
    assert found.found == {"[REDACTED:scrub]": 32}
    assert found.with_rows("edges", {}) is found


def test_names_by_which_something_is_found_are_only_told(db):
    db.write_now(lambda tx: projects.ensure_project(tx, "/home/zebra", "z", "", 1))
    rule = by_pattern("zebra")
    assert db.read_now(lambda tx: scrubbing.stays(tx, rule)) == {"projects.key": 1}


def test_the_log_is_counted_and_then_changed(tmp_path):
    path = tmp_path / "memd.log"
    path.write_text('{"a": 1}\n{"error": "zebra"}\n')
    rule = by_pattern("zebra")
    assert scrubbing.log_lines(str(path), rule.text, None) == 1
    assert scrubbing.log_lines(str(path), rule.text, rule.text) == 1
    assert list(log.lines(str(path)))[1] == '{"error": "[REDACTED:scrub]"}'
    assert scrubbing.log_lines(str(path), rule.text, rule.text) == 0
