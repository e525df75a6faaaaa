import pytest

from memd.errors import BadRequest
from memd.installers import plan
from memd.installers.plan import FileChange


@pytest.fixture
def path(tmp_path):
    return tmp_path / "settings.json"


def added(value):
    return {**value, "b": 2}


def test_a_missing_and_an_empty_file_say_nothing_yet(path):
    assert plan.read_documents(path).changed(added) == FileChange(
        path, None, b'{\n  "b": 2\n}\n'
    )
    path.write_bytes(b" \n")
    assert plan.read_documents(path).changed(added).after == b'{\n  "b": 2\n}\n'


def test_only_what_changes_is_changed(path):
    before = b'{ "a":  [1,2] }'
    path.write_bytes(before)
    change = plan.read_documents(path).changed(added)
    assert (change.before, change.after) == (before, b'{ "a":  [1,2], "b": 2 }')
    assert plan.read_documents(path).changed(dict) == FileChange(path, before, before)


def test_the_mark_that_an_editor_put_before_the_text_stays(path):
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert plan.read_documents(path).value == {"a": 1}
    assert plan.read_documents(path).changed(added).after == b'\xef\xbb\xbf{"a": 1, "b": 2}'
    path.write_bytes(b"\xef\xbb\xbf")
    assert plan.read_documents(path).value == {}


def test_a_file_that_would_say_nothing_goes(path):
    path.write_bytes(b'{"a": 1}')
    assert plan.read_documents(path).changed(lambda _: {}).after is None


def test_a_file_that_says_nothing_and_stays_so_is_not_touched(path):
    path.write_bytes(b"{}")
    assert not plan.read_documents(path).changed(dict).is_needed


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{\n "a": 1,\n // no\n}', "line 3, column 2: a comment"),
        (b'{"a": \xff}', "byte 6 is not UTF-8"),
        (b"[]", "holds no object"),
        (b"{", "line 1, column 2"),
    ],
)
def test_a_broken_file_is_named_and_left_alone(path, content, said):
    path.write_bytes(content)
    with pytest.raises(BadRequest, match=said) as refused:
        plan.read_documents(path)
    assert refused.value.message.startswith(f"{path}: ")
    assert "Nothing was changed" in refused.value.message
    assert path.read_bytes() == content


def test_what_a_change_cannot_deal_with_is_told_with_the_file_s_name(path):
    def refuse(_):
        raise BadRequest("its `a` is odd")

    path.write_bytes(b"{}")
    with pytest.raises(
        BadRequest, match=r"settings\.json: its `a` is odd\. Nothing was changed"
    ):
        plan.read_documents(path).changed(refuse)
