import json
import threading
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd import log
from memd.capture.redact import RULES_VERSION, redact, redact_value
from memd.consolidate import scrub
from memd.consolidate.scrub import PLACEHOLDER, make_pattern_rule
from memd.errors import BadRequest
from memd.store import erasure, projects
from memd.store.erasure import TextRow
from tests.planted_secrets import HEX40
from tests.tables import every_row

EVENTS, SUMMARIES, EDGES = (
    next(one for one in erasure.TEXT_TABLES if one.name == name)
    for name in ("events", "summaries", "edges")
)


def test_scrubbing_keys_and_values_twice_is_scrubbing_once():
    rule = make_pattern_rule(r"zeb\w+")
    row = TextRow(7, {"payload": json.dumps({"zebra": ["a zebra", {"n": 1}], "ok": None})})
    (new,) = scrub.rewrite_rows(rule, EVENTS, [row])
    assert json.loads(new["payload"]) == {
        "[REDACTED:scrub]": ["a [REDACTED:scrub]", {"n": 1}], "ok": None,
    }  # fmt: skip
    assert scrub.rewrite_rows(rule, EVENTS, [TextRow(7, new)]) == [{}]
    assert scrub.count_replacements(rule, EVENTS, [row]) == {7: {"[REDACTED:scrub]": 2}}


def test_secrets_stored_before_a_rule_existed_are_redacted():
    rule = scrub.make_redaction_rule(redact, redact_value)
    row = TextRow(1, {"payload": json.dumps({"env": {"DB_PASSWORD": "hunter2hunter2"}})})
    assert "hunter2" not in scrub.rewrite_rows(rule, EVENTS, [row])[0]["payload"]
    title = TextRow(2, {"title": f"github_token={HEX40}", "body": "plain"})
    assert [list(new) for new in scrub.rewrite_rows(rule, SUMMARIES, [title])] == [["title"]]


def test_what_older_rules_of_redaction_let_pass_is_scrubbed():
    rule = scrub.make_redaction_rule(redact, redact_value, RULES_VERSION)
    said = "la contraseña del servidor es Girasol88 y la clave de prueba es password=supersecret1"
    row = TextRow(1, {"payload": json.dumps({"prompt": said})})
    (new,) = scrub.rewrite_rows(rule, EVENTS, [row])
    assert "Girasol88" not in new["payload"]
    assert "supersecret1" not in new["payload"]


def test_a_scrub_that_older_rules_began_is_not_continued_by_newer_ones():
    begun, now = (scrub.make_redaction_rule(redact, version=version) for version in (1, 2))
    assert begun.digest != now.digest


def test_the_id_of_a_memory_in_an_edge_is_not_scrubbed():
    row = TextRow(1, {"from_id": "12", "to_id": "/src/12.py", "detail": "{}", "rule": "turn"})
    rule = make_pattern_rule("12")
    assert scrub.rewrite_rows(rule, EDGES, [row]) == [{"to_id": "/src/[REDACTED:scrub].py"}]


def test_the_report_names_the_first_rows_and_counts_all():
    found = scrub.ScrubResult("x", is_dry_run=True)
    for start in (0, 8):
        found = found.with_rows(
            "events", {n: Counter({"[REDACTED:scrub]": 2}) for n in range(start, start + 8)}
        )
    assert (found.rows, len(found.ids["events"])) == ({"events": 16}, 10)
    assert found.found == {"[REDACTED:scrub]": 32}
    assert found.with_rows("edges", {}) is found


def test_lookup_names_are_only_reported(db):
    db.write_now(lambda tx: projects.ensure_project(tx, "/home/zebra", "z", "", 1))
    rule = make_pattern_rule("zebra")
    assert db.read_now(lambda tx: scrub.find_unchangeable(tx, rule)) == {"projects.key": 1}


def test_the_log_is_counted_and_then_changed(tmp_path):
    path = tmp_path / "memd.log"
    path.write_text('{"a": 1}\n{"error": "zebra"}\n')
    rule = make_pattern_rule("zebra")
    assert scrub.scrub_log(str(path), rule.text, dry_run=True) == 1
    assert scrub.scrub_log(str(path), rule.text, dry_run=False) == 1
    assert list(log.lines(str(path)))[1] == '{"error": "[REDACTED:scrub]"}'
    assert scrub.scrub_log(str(path), rule.text, dry_run=False) == 0


def test_a_pattern_is_replaced_in_texts_and_values():
    found = make_pattern_rule("zeb[a-z]+").clean(
        ["a zebra", {"zebra": [1, None, "zebus"]}, 2.5, "\ud83dzebu"]
    )
    assert found == [
        f"a {PLACEHOLDER}",
        {PLACEHOLDER: [1, None, PLACEHOLDER]},
        2.5,
        f"\ud83d{PLACEHOLDER}",
    ]


@every_row(
    "pattern",
    ["", "(", "x*", "a" * 1_001, "(?P<", "a{99999999999999}", "(" * 1_000, r"\p{L}", "a(?R)",
     "(" * 20 + "a" + "|b)+" * 20, "(?:(?:ab){500}){500}"],
)  # fmt: skip
def test_an_invalid_pattern_is_refused(pattern):
    with pytest.raises(BadRequest, match="pattern: "):
        make_pattern_rule(pattern)


@pytest.mark.filterwarnings("ignore::FutureWarning")  # of re, about sets
@given(st.text("ab(){}[]?*+\\|^$<>=!:-&~,.1P", max_size=20))
def test_any_text_is_a_pattern_or_is_refused_as_one(pattern):
    try:
        rule = make_pattern_rule(pattern)
    except BadRequest:
        return
    assert rule.clean(["zzz"])


def test_a_pattern_that_would_search_for_years_is_refused_and_stops_no_other_thread():
    slow = make_pattern_rule(r"(?:(a)|aa)+(?=\1z)", time_max_s=0.5)
    assert slow.clean(["aaaz"]) == [f"{PLACEHOLDER}az"]
    ticks, is_over = [], threading.Event()

    def tick():
        while not is_over.wait(0.001):
            ticks.append(1)

    thread = threading.Thread(target=tick)
    thread.start()
    with pytest.raises(BadRequest, match=r"longer than 0\.5 seconds"):
        slow.clean(["a" * 100])
    is_over.set()
    thread.join()
    assert len(ticks) > 10


def test_all_texts_share_one_time_limit():
    slow = make_pattern_rule("a", time_max_s=1e-9)
    with pytest.raises(BadRequest, match="searches longer"):
        slow.clean(["b", "b"])
