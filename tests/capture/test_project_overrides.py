"""projects.toml: the most specific word of a person holds, and a broken file says why it does not."""

import os

import pytest

from memd.capture.project import ProjectOverrides, parse_overrides
from tests.tables import every_row


@pytest.fixture
def names(tmp_path):
    """What a directory below the home is called, by these lines."""

    def named(text, directory):
        file = tmp_path / "projects.toml"
        file.write_text(f"[projects]\n{text}")
        found = ProjectOverrides(str(file), str(tmp_path)).find(str(tmp_path / directory))
        return found and found.name

    return named


@pytest.mark.parametrize(
    ("directory", "name"),
    [
        ("work/shop", "shop"),
        ("work/shop/deep/below", "shop"),
        ("work/shop-api", "shop"),
        ("work/shop-api/src", "shop"),
        ("work/shopping", None),
        ("work", None),
        ("elsewhere/work/shop", None),
        ("work/shop/vendor/lib", "lib"),
        ("work/shop-legacy", "old"),
        ("forks/a/b/shop", "forks"),
    ],
)
def test_the_most_specific_pattern_wins(names, directory, name):
    text = """
    "~/work/shop" = "shop"
    "~/work/shop-*" = "shop"
    "~/work/*/vendor/lib" = "lib"
    "~/work/shop-legacy" = "old"
    "~/forks/**/shop" = "forks"
    """
    assert names(text, directory) == name


def test_a_tilde_alone_is_everything_at_home(names):
    assert names('"~" = "home"\n"~/work/" = "work"', "a") == "home"
    assert names('"~" = "home"\n"~/work/" = "work"', "work/b") == "work"


def test_a_pattern_may_lead_through_a_link(names, tmp_path):
    (tmp_path / "real" / "shop").mkdir(parents=True)
    (tmp_path / "work").symlink_to(tmp_path / "real")
    assert names('"~/work/shop" = "shop"', "real/shop") == "shop"
    assert names('"~/work/s*" = "shop"', "real/shop") == "shop"


@every_row(
    ("text", "said"),
    [
        ("[projects", "not valid TOML"),
        ("[project]", r"there is no \[project\], only \[projects\]"),
        ('projects = "x"', "projects is no table"),
        ('[projects]\n"work" = "x"', "must begin with / or ~/"),
        ('[projects]\n"~/../x" = "x"', "must not go up"),
        ('[projects]\n"/a" = 1', "needs the name of a project"),
        ('[projects]\n"/a" = ""', "needs the name of a project"),
        ('[projects]\n"/a" = "/b"', "no path"),
        ('[projects]\n"/a" = "global"', "none of all, current, global, scratch"),
        ('[projects]\n"/[z-a]" = "x"', "is no pattern"),
        ('[projects]\n"/**/a/**/a/**/a/**/b" = "x"', r"more than 3 times \*\*"),
        ("projects = " + "[" * 5_000, "nested too deeply"),
    ],
)
def test_what_is_wrong_is_said(text, said):
    with pytest.raises(ValueError, match=said):
        parse_overrides(text, "/home/u")


def test_no_file_says_nothing(tmp_path):
    for overrides in (ProjectOverrides(None, "/"), ProjectOverrides(str(tmp_path / "none"), "/")):
        assert overrides.find("/a") is None
        assert overrides.trouble is None


def test_many_wildcards_in_a_name_take_no_time():
    (one,) = parse_overrides(f'[projects]\n"/{"*a" * 40}b" = "x"', "/")
    assert not one.below.matches("a" * 3_000, is_directory=True)
    assert one.below.matches("a" * 3_000 + "b", is_directory=True)


@pytest.mark.parametrize("content", [b"\xff", b"#" * 300_000])
def test_a_file_that_cannot_be_read_is_reported(tmp_path, content):
    file = tmp_path / "projects.toml"
    file.write_bytes(content)
    overrides = ProjectOverrides(str(file), "/")
    assert overrides.find("/a") is None
    assert str(file) in overrides.trouble


def test_the_file_is_read_again_only_when_it_has_changed(tmp_path):
    file = tmp_path / "projects.toml"
    file.write_text('[projects]\n"/a" = "one"')
    overrides = ProjectOverrides(str(file), "/")
    assert [overrides.find("/a").name, overrides.find("/a/b").name] == ["one", "one"]
    assert overrides.generation == 1
    file.write_text('[projects]\n"/a" = 1')
    assert overrides.find("/a") is None
    assert overrides.trouble
    file.unlink()
    assert overrides.find("/a") is None
    assert (overrides.trouble, overrides.generation) == (None, 3)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "projects.toml")
    assert ProjectOverrides(str(tmp_path / "projects.toml"), "/").find("/a") is None


def test_a_number_without_end_is_a_fault_of_the_file():
    with pytest.raises(ValueError, match="not valid TOML"):
        parse_overrides('[projects]\n"/a" = ' + "9" * 5_000, "/home/dev")
