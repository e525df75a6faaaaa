from pathlib import Path

from memd.installers.plan import FileChange, Place, Plan


def place(**environ):
    return Place({"HOME": "/h", **environ}, "/v/bin/python", Path("/v/memd"), "linux")


def test_an_ordinary_environment_need_not_be_carried():
    assert place().carried == {}
    assert place(XDG_DATA_HOME="/h/.local/share", XDG_STATE_HOME="", PATH="/bin").carried == {}


def test_what_decides_about_memd_s_files_is_carried():
    assert place(MEMD_HOME="/m", MEMD_VAULT="work", XDG_STATE_HOME="/s").carried == {
        "MEMD_HOME": "/m",
        "MEMD_VAULT": "work",
        "XDG_STATE_HOME": "/s",
    }


def test_the_home_is_that_of_the_environment():
    assert place().home == Path("/h")


def test_a_plan_with_neither_commands_nor_changes_is_empty():
    same, other = FileChange(Path("/a"), b"x", b"x"), FileChange(Path("/a"), b"x", b"y")
    assert Plan((same,), notes=("so it is",)).is_empty
    assert not Plan((same, other)).is_empty
    assert not Plan(before=(("true",),)).is_empty
    assert not Plan(after=(("true",),)).is_empty
