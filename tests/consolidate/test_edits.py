"""An edited text gets the title that says it, and undoing the edit brings the old words back alone, by either command."""

import pytest

from memd.consolidate.curator import MemoryEdit, edit_memory, with_title
from memd.consolidate.judgments import undo_judgment
from memd.consolidate.runs import undo_change
from memd.models import Authority, Kind


@pytest.fixture
def edit(vault, clock):
    def edit(number, text, title=""):
        clock.advance(s=1)
        change = MemoryEdit(number, title=title, text=text)
        return vault.db.write_now(lambda tx: edit_memory(tx, with_title(tx, change), clock()))

    return edit


RULE = "Always squash before merging"


@pytest.mark.parametrize(
    ("old", "kind", "text", "told"),
    [
        ((RULE, f"User: “{RULE}.”"), Kind.INSTRUCTION, f"{RULE}, then delete it.", f"{RULE}, then delete it"),
        ((RULE, f"{RULE}. It keeps main short."), Kind.FACT, f"{RULE}. Main is short then.", RULE),
        (("Git habits", f"{RULE}."), Kind.INSTRUCTION, "Never squash.", "Git habits"),
        (("Squash before merging", f"Asked: {RULE}"), Kind.CHANGE, "Asked: never squash", "Squash before merging"),
    ],
)  # fmt: skip
def test_a_title_that_said_the_old_text_says_the_new_one(vault, edit, old, kind, text, told):
    title, body = old
    new = edit(vault.put(body, title=title, kind=kind), text)
    assert vault.get(new).title == told


@pytest.mark.parametrize("is_undone_by", ["judge --undo", "undo"])
def test_an_undone_edit_leaves_the_old_words_alone(vault, clock, edit, is_undone_by):
    old = vault.put(f"{RULE}.", title=RULE, kind=Kind.INSTRUCTION)
    new = edit(old, "Never squash")
    assert vault.live() == [new]
    clock.advance(s=1)
    if is_undone_by == "undo":
        vault.db.write_now(lambda tx: undo_change(tx, None, clock()))
    else:
        vault.db.write_now(lambda tx: undo_judgment(tx, new, old, Authority.USER_HAND, clock()))
    assert vault.live() == [old]
    clock.advance(s=1)
    again = edit(old, "Never squash")
    assert vault.live() == [again]
