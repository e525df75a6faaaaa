import pytest

from memd.injection.choice import CandidateGroup
from memd.injection.evidence import FIXED_HEADING, NOTED_HEADING, drop_gone, make_key
from memd.injection.start import SessionCandidates
from memd.injection.working_tree import WorkingTree
from memd.models import Kind
from memd.store import ContextCandidate


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Nov 28 10:11:12 host: connection refused", "Dec  3 01:02:03 host: connection refused"),
        ("2026-11-28T10:11:12+02:00 no route to db", "2026-01-02T03:04:05.678-0530 no route to db"),
        ("app.py:41:17 in worker pid 812: no basket", "app.py:9 in worker pid 7: no basket"),
        ("Map of 7.5 GiB for shape (90, 4) refused", "Map of 812 MiB for shape (7, 4) refused"),
        ("heap is 1,048,576 bytes, 96kB free", "heap is 65536 bytes, 1.5 MB free"),
    ],
)
def test_what_differs_from_run_to_run_is_not_the_error(one, other):
    assert make_key(one) == make_key(other)


@pytest.mark.parametrize("things", ["columns", "rows", "blobs", "gibbons"])
def test_what_names_the_error_is_kept(things):
    assert make_key(f"ValueError: 3 {things}") != make_key(f"ValueError: 4 {things}")


def told_titles(tree, heading, *titles):
    cards = [ContextCandidate(n, 1, None, Kind.FIX, one, n, n) for n, one in enumerate(titles)]
    found = SessionCandidates((CandidateGroup(heading, tuple(cards)),), ())
    return [one.title for one in drop_gone(found, WorkingTree(str(tree))).groups[0].candidates]


def test_a_fix_is_told_though_what_its_command_makes_is_not_there_and_no_fix_that_changed_what_is_gone(
    tmp_path,
):
    (tmp_path / ".git").mkdir()
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/pack.py").write_text("x = 2\n")
    made = (
        "worked as `ninja out/boot.bin`",
        "changed tools/pack.py; ran `rm -f web/app.js && yarn build`",
    )
    gone = ("changed tools/sign.py", "ran `./tools/sign.sh out/boot.bin`")
    assert told_titles(tmp_path, FIXED_HEADING, *made, *gone) == list(made)
    assert told_titles(tmp_path, NOTED_HEADING, *made) == []
