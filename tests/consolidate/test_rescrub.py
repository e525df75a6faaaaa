"""What was scrubbed since a copy was made is found by comparing, and scrubbed in all of the copy."""

from memd.consolidate.scrub import ScrubbedText, find_scrubbed, make_literal_rule
from tests.tables import every_row

SCRUB, KEY = "[REDACTED:scrub]", "[REDACTED:key]"


@every_row(
    ("old", "new", "found"),
    [
        ("say zzyzx now", f"say {SCRUB} now", ["zzyzx"]),
        ("zzyzx", SCRUB, ["zzyzx"]),
        ("a zzyzx b quux c", f"a {SCRUB} b {KEY} c", ["zzyzx", "quux"]),
        (f"a {KEY} b quux c", f"a {KEY} b {SCRUB} c", ["quux"]),
        ("line\nzzyzx\nend", f"line\n{SCRUB}\nend", ["zzyzx"]),
        ("quite another text", f"say {SCRUB} now", []),
        ("say now", f"say {SCRUB}now", []),
        ("two words", f"{SCRUB}{KEY}", []),
        ("", SCRUB, []),
    ],
)
def test_what_a_placeholder_replaced_is_found_by_what_stands_around_it(old, new, found):
    assert [one.text for one in find_scrubbed(old, new)] == found


def test_a_word_is_replaced_as_a_word_and_a_part_anywhere():
    rule = make_literal_rule(
        [ScrubbedText("zzyzx", SCRUB, is_word=True), ScrubbedText("quux", KEY, is_word=False)]
    )
    assert rule.text("zzyzx zzyzxes quux quuxes") == f"{SCRUB} zzyzxes {KEY} {KEY}es"
    assert rule.clean([{"quux": ["zzyzx", 1]}]) == [{KEY: [SCRUB, 1]}]


@every_row("text", ["", "abc", "    "])
def test_what_is_too_short_to_be_sure_makes_no_rule(text):
    assert make_literal_rule([ScrubbedText(text, SCRUB, is_word=True)]) is None
