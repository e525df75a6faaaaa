import json

import pytest

from memd.errors import BadRequest
from memd.transfer import archive
from memd.transfer.archive import ExportReader
from tests.export_records import lines, one_of_each, project, session, summary
from tests.tables import every_row


def read(found):
    reader = ExportReader()
    records = [record for line in found if (record := reader.feed(line)) is not None]
    reader.close()
    return records


def refusal(found):
    with pytest.raises(BadRequest) as error:
        read(found)
    return error.value.message


def changed(found, number, **fields):
    """The lines with fields of one of them changed."""
    line = json.loads(found[number]) | fields
    return [*found[:number], json.dumps(line).encode() + b"\n", *found[number + 1 :]]


def test_an_export_is_recognised_by_its_first_line():
    assert archive.is_header(lines([])[0])
    for line in (b"", b"{}", b'{"record":"summary"}', b"\xff", b"[" * 100_000):
        assert not archive.is_header(line)


def test_a_file_that_was_cut_off_anywhere_is_refused():
    whole = b"".join(lines(one_of_each()))
    for end in range(0, len(whole) - 1, 101):
        assert refusal(whole[:end].splitlines(keepends=True))
    assert "cut off" in refusal(lines(one_of_each())[:-1])


def test_changed_missing_and_doubled_lines_are_refused():
    found = lines([project(), session("s1"), summary("a"), summary("b")])
    assert "SHA-256" in refusal(changed(found, 3, title="other"))
    assert "missing" in refusal(found[:3] + found[4:])
    assert "missing" in refusal(found[:4] + found[3:])
    assert "SHA-256" in refusal(changed(found, 5, sha256="0" * 64))
    assert "out of order" in refusal([found[0], found[2], found[1], *found[3:]])
    assert "not part of the export" in refusal([*found, found[1]])


@every_row(
    "fields", [{"format": 0}, {"format": True}, {"format": "1"}, {"counts": {}}, {"counts": None}]
)
def test_a_damaged_header_is_refusal(fields):
    assert refusal(changed(lines([]), 0, **fields)) == "the header is damaged"


@every_row(
    ("line", "why"),
    [
        (b"not json\n", "not JSON"),
        (b"\n", "not JSON"),
        (b"[1]\n", "not a JSON object"),
        (b"{}\n", "does not say what it records"),
        (b'{"record":1}\n', "does not say what it records"),
        (b'{"record":"use","count":NaN}\n', "NaN is no number"),
        (b'{"record":"use","count":-Infinity}\n', "-Infinity is no number"),
        (b'{"record":"use","count":' + b"9" * 5_000 + b"}\n", "not JSON"),
        (b'{"record":"\xff"}\n', "not UTF-8"),
        (b'{"record":"\\ud800"}\n', "half of a character"),
        (b"[" * 200_000 + b"\n", "nested too deep"),
        (b'{"a":' * 200_000 + b"\n", "nested too deep"),
        (b"x" * (archive.EXPORT_LINE_BYTES_MAX + 1), "longer than 32 MiB"),
        (b'{"record":"use"}', "ends within this line"),
    ],
)
def test_a_line_that_is_no_record_is_refused_and_says_why(line, why):
    assert why in refusal([lines([])[0], line])
