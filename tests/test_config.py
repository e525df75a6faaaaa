import os
import re
import tomllib
from pathlib import Path

import pytest

from memd import config
from memd.config import Config
from memd.errors import ConfigError

EXAMPLE = Path(__file__).parent.parent / "config.example.toml"


def uncommented():
    """The example as it would be if somebody uncommented all of it: `## ` is prose, `# ` a setting."""
    lines = EXAMPLE.read_text(encoding="utf-8").split("\n\n", 1)[1].splitlines()
    return "\n".join(re.sub(r"^# ", "", line) for line in lines if not line.startswith("## "))


def test_the_example_uncommented_is_the_default():
    found = config.parse_config(uncommented(), "example")
    assert found.model_copy(update={"profiles": {}}) == Config()


def test_the_example_names_every_key():
    shown = tomllib.loads(uncommented())
    for name, branch in Config().model_dump().items():
        if name != "profiles":
            assert set(shown[name]) == set(branch), name


def test_the_example_as_it_stands_changes_nothing():
    assert config.parse_config(EXAMPLE.read_text(encoding="utf-8"), "example") == Config()


def test_no_file_means_the_defaults(tmp_path):
    assert config.load_config(str(tmp_path / "none.toml")) == Config()


def test_a_setting_is_read_from_the_file(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text("[recall]\nk = 9\n", encoding="utf-8")
    assert config.load_config(str(file)).recall.k == 9


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[recall]\nkk = 9", "recall.kk: there is no such key"),
        ("[recal]\nk = 9", "recal: there is no such key"),
        ("[recall]\nk = 0", "recall.k: "),
        ("[recall]\nk = 'many'", "recall.k: "),
        ("[consolidate]\nthreshold = 1.5", "consolidate.threshold: "),
        ("recall = 3", "recall: "),
        ("[distill]\nwriter = 'command'", "distill: writer_command: name the program to run"),
        (
            "[distill]\nwriter_command = ['']",
            "distill.writer_command: the first word is to be a program",
        ),
        ("[distill]\nwriter_command = 'claude -p'", "distill.writer_command: "),
        ("[recall", "is not valid TOML"),
    ],
)
def test_a_wrong_setting_is_refused_by_its_name(text, said):
    with pytest.raises(ConfigError, match=re.escape(said)) as caught:
        config.parse_config(text, "config.toml")
    assert caught.value.message.startswith("config.toml")


def test_a_file_that_is_not_text_is_refused(tmp_path):
    file = tmp_path / "config.toml"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="cannot be read"):
        config.load_config(str(file))


def test_the_settings_are_frozen():
    with pytest.raises(ValueError, match="frozen"):
        Config().recall.k = 3


def test_a_file_that_is_nested_without_end_is_named():
    with pytest.raises(ConfigError, match=r"c\.toml is nested too deeply"):
        config.parse_config("a = " + "[" * 5_000 + "]" * 5_000, "c.toml")


def test_a_pipe_a_device_or_a_huge_file_is_refused_at_once(tmp_path):
    file = tmp_path / "config.toml"
    os.mkfifo(file)
    with pytest.raises(ConfigError, match="it is not a regular file"):
        config.load_config(str(file))
    file.unlink()
    file.symlink_to("/dev/zero")
    with pytest.raises(ConfigError, match="it is not a regular file"):
        config.load_config(str(file))
    file.unlink()
    with file.open("wb") as opened:
        opened.truncate(1 << 30)
    with pytest.raises(ConfigError, match="larger than"):
        config.load_config(str(file))


def test_a_number_without_end_is_a_fault_of_the_file():
    with pytest.raises(ConfigError, match="not valid TOML"):
        config.parse_config("[index]\nbatch = " + "9" * 5_000, "config.toml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[team]\npoll_s = 4", "team.poll_s: 4 is not possible: at least 5, at most 86,400"),
        ("[inject]\nfloor = 1.5", "inject.floor: 1.5 is not possible: at least 0, at most 1"),
        ("[recall]\nk = 0", "recall.k: 0 is not possible: at least 1, at most 100"),
        ("[serve]\nline_bytes = 1", "serve.line_bytes: 1 is not possible: at least 65,536"),
        ("[serve]\nconnections = 1", "serve.connections: 1 is not possible: at least 16"),
        (
            "[index]\nbatch = 0",
            "index.batch: 0 is not possible: more than 0, at most 1,000,000,000",
        ),
        (f"[index]\nbatch = {2**63}", "is not possible: more than 0, at most 1,000,000,000"),
    ],
)
def test_a_value_out_of_its_limits_is_refused_with_them(text, said):
    with pytest.raises(ConfigError, match=re.escape(said)):
        config.parse_config(text, "config.toml")


def test_the_example_says_the_limits_of_every_setting_that_has_some():
    shown = EXAMPLE.read_text(encoding="utf-8").splitlines()
    limits = {
        key: config.describe_limits(field)
        for branch in Config.model_fields.values()
        if hasattr(branch.annotation, "model_fields")
        for key, field in branch.annotation.model_fields.items()
    }
    assert limits["poll_s"] == "at least 5, at most 86,400"
    told = [f"## {one[0].upper()}{one[1:]}." for one in limits.values() if one]
    assert set(told) <= set(shown)
