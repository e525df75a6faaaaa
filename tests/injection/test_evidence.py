import pytest

from memd.injection.evidence import make_key


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
