import re
from pathlib import Path

import pytest

from memd.recall import provenance

MEMD = Path(__file__).parent.parent.parent / "memd"


@pytest.mark.parametrize(
    "rule", ["turn", "decision:chose", "decision:new-one", "instruction:always", "imported:x"]
)
def test_a_rule_is_told_in_words(rule):
    assert len(provenance.describe_rule(rule).split()) > 2


def test_a_rule_that_nobody_knows_has_no_words():
    assert provenance.describe_rule("test") == ""


def test_every_rule_that_the_code_names_has_words():
    named = re.compile(
        r'^(?:\w*RULE|STATED_REVERSAL|OTHER_CHOICE|REPEAT|STATEMENT|PASSED_LATER) = "([\w:-]+)"',
        re.MULTILINE,
    )
    rooms = ("consolidate", "distill", "store")
    found = {
        rule
        for room in rooms
        for path in (MEMD / room).glob("*.py")
        for rule in named.findall(path.read_text(encoding="utf-8"))
    }
    assert {rule for rule in found if not provenance.describe_rule(rule)} == set()
