import hashlib
import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from memd.index import copy
from memd.index.copied import Draft, Layout
from memd.index.copy import GivenUp, Odd

ROWS = np.arange(3_000, dtype=np.int64)
PLANES = np.arange(6_000, dtype=np.uint64).reshape(2, 3_000)


def late(room):
    made = room("made", 5, np.dtype(np.int32))
    made[:] = 7
    return {"made": Layout(made), "nothing": Layout(np.zeros(0, np.int32))}


DRAFT = Draft({"rows": Layout(ROWS, 0), "planes": Layout(PLANES, 1)}, late, {"rows": 3_000})


@pytest.fixture
def vault(tmp_path):
    return str(tmp_path / "v.db")


def write(vault, name="one", draft=DRAFT):
    copy.write(vault, name, draft, lambda: False)
    return Path(f"{vault}.shelf", name)


def test_what_is_written_is_mapped_with_room_behind_it(vault):
    write(vault)
    found = copy.read(vault, "one")
    assert found.about == {"rows": 3_000}
    arrays = found.arrays
    assert (arrays["rows"][:3_000] == ROWS).all()
    assert (arrays["planes"][:, :3_000] == PLANES).all()
    assert arrays["made"].tolist() == [7] * 5
    assert arrays["nothing"].shape == (0,)
    assert len(arrays["rows"]) == arrays["planes"].shape[1] > 1.25 * 3_000
    assert not arrays["rows"][3_000:].any()
    assert not arrays["planes"][:, 3_000:].any()


def test_what_is_written_to_a_map_stays_out_of_the_file(vault):
    write(vault)
    copy.read(vault, "one").arrays["rows"][:] = 1
    assert copy.read(vault, "one").arrays["rows"][2] == 2


def test_it_is_for_its_user_alone_and_its_room_takes_no_disk(vault):
    folder = write(vault)
    assert folder.stat().st_mode & 0o777 == folder.parent.stat().st_mode & 0o777 == 0o700
    files = list(folder.iterdir())
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    big = Draft({"rows": Layout(np.zeros(1_000_000), 0)}, lambda _: {}, {})
    whole = (write(vault, "two", big) / "rows").stat()
    assert whole.st_size > 1.2 * 8_000_000
    assert whole.st_blocks * 512 < 1.1 * 8_000_000


def spoil(name, change):
    def spoiled(folder):
        file = folder / name
        file.write_bytes(change(file.read_bytes()))

    return spoiled


def newer(content):
    """A manifest as a later memd would write it."""
    text = json.dumps(json.loads(content.decode().partition("\n")[2]) | {"format": 99})
    return f"{copy._check(text)}\n{text}".encode()


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (spoil("rows", lambda held: held[:-8]), "bytes"),
        (spoil("manifest.json", lambda held: held.replace(b"3000", b"4000")), "damaged"),
        (spoil("manifest.json", lambda _: b""), "damaged"),
        (spoil("manifest.json", newer), "format"),
        (lambda folder: (folder / "planes").unlink(), "cannot be read"),
        (lambda folder: (folder / "manifest.json").unlink(), "cannot be read"),
    ],
    ids=["short", "forged", "emptied", "newer", "lacking", "unfinished"],
)
def test_anything_odd_is_a_reason_to_do_without(vault, damage, why):
    damage(write(vault))
    with pytest.raises(Odd, match=why):
        copy.read(vault, "one")


def test_a_copy_under_another_name_is_none(vault):
    folder = write(vault)
    folder.rename(folder.with_name("two"))
    with pytest.raises(Odd):
        copy.read(vault, "two")


def test_who_gives_up_or_fails_leaves_nothing(vault):
    for after in range(3):
        calls = iter([False] * after)
        with pytest.raises(GivenUp):
            copy.write(vault, "one", DRAFT, partial(next, calls, True))
        assert list(Path(f"{vault}.shelf").iterdir()) == []

    def fail(_):
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space"):
        copy.write(vault, "one", Draft(DRAFT.layouts, fail, {}), lambda: False)
    assert list(Path(f"{vault}.shelf").iterdir()) == []


def test_all_but_one_are_swept_away_and_what_is_mapped_lives_on(vault):
    copy.sweep(vault, None)
    write(vault)
    found = copy.read(vault, "one")
    kept = write(vault, "two")
    copy.sweep(vault, "two")
    assert list(kept.parent.iterdir()) == [kept]
    assert found.arrays["rows"][2_999] == 2_999
    copy.sweep(vault, None)
    assert list(kept.parent.iterdir()) == []


@pytest.mark.parametrize(
    "change",
    [
        {"about": None},
        {"files": []},
        {"files": {"rows": {"dtype": ",", "room": [4_024], "bytes": 32_192}}},
        {"files": {"rows": {"dtype": "O", "room": [4_024], "bytes": 32_192}}},
        {"files": {"nothing": {"dtype": "<i4", "room": [2**53], "bytes": 0}}},
    ],
)
def test_a_whole_manifest_that_nobody_understands_is_odd(vault, change):
    file = write(vault) / "manifest.json"
    told = json.loads(file.read_text().partition("\n")[2]) | change
    text = json.dumps({key: value for key, value in told.items() if value is not None})
    file.write_text(f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}")
    with pytest.raises(Odd):
        copy.read(vault, "one")
