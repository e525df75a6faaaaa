import os
import re
import tomllib
from pathlib import Path

import pytest

from memd import config
from memd.config import RETIRED, Config
from memd.errors import ConfigError
from tests.tables import read_tables

TABLES = read_tables("config")


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
    for table, branch in Config().model_dump().items():
        if table != "profiles":
            keys = {key for key in branch if f"{table}.{key}" not in RETIRED}
            assert set(shown[table]) == keys, table


def test_the_example_as_it_stands_changes_nothing():
    assert config.parse_config(EXAMPLE.read_text(encoding="utf-8"), "example") == Config()


def test_no_file_means_the_defaults(tmp_path):
    assert config.load_config(str(tmp_path / "none.toml")) == Config()


def test_a_setting_is_read_from_the_file(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text("[inject]\ntokens = 900\n", encoding="utf-8")
    assert config.load_config(str(file)).inject.tokens == 900


@pytest.mark.parametrize(("text", "said"), TABLES["a_wrong_setting_is_refused_by_its_name"])
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
        Config().inject.tokens = 300


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
        config.parse_config("[retention]\nsize_bytes = " + "9" * 5_000, "config.toml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[sync]\ninterval_s = -1",
            "sync.interval_s: -1 is not possible: at least 0, at most 86,400",
        ),
        (
            "[retention]\narchive_days = -1",
            "retention.archive_days: -1 is not possible: at least 0",
        ),
        (
            "[distill]\nwriter_s = 0",
            "distill.writer_s: 0 is not possible: more than 0, at most 600",
        ),
        (f"[sync]\ninterval_s = {2**63}", "is not possible: at least 0, at most 86,400"),
    ],
)
def test_a_value_out_of_its_limits_is_refused_with_them(text, said):
    with pytest.raises(ConfigError, match=re.escape(said)):
        config.parse_config(text, "config.toml")


def test_the_example_says_the_limits_of_every_setting_that_has_some():
    shown = EXAMPLE.read_text(encoding="utf-8").splitlines()
    limits = {
        key: config.describe_limits(field)
        for table, branch in Config.model_fields.items()
        if hasattr(branch.annotation, "model_fields")
        for key, field in branch.annotation.model_fields.items()
        if f"{table}.{key}" not in RETIRED
    }
    assert limits["writer_s"] == "more than 0, at most 600"
    told = [f"## {one[0].upper()}{one[1:]}." for one in limits.values() if one]
    assert set(told) <= set(shown)


# ── What was a setting once ──────────────────────────────────────────────────────────────────────

OLD_CONFIG = Path(__file__).parent / "data" / "old-config.toml"
"""Every setting that was retired, in the file of a memd which still had it, and one that stayed."""


def test_an_old_file_with_every_retired_setting_is_read_and_each_is_explained():
    text = OLD_CONFIG.read_text(encoding="utf-8")
    named = {f"{table}.{key}" for table, keys in tomllib.loads(text).items() for key in keys}
    assert RETIRED.keys() <= named
    read = config.parse_config(text, "old")
    assert (read.distill.idle_s, read.inject.floor) == (600, 0.4), "its value is ignored"
    assert read.inject.tokens == 900, "the others count"
    explained = config.explain_retired(str(OLD_CONFIG))
    assert [words.split(" is no setting any more: ")[0] for words in explained] == list(RETIRED)


@pytest.mark.parametrize("text", ["[index]\n", "[serve]\ndrain_s = 'long'\n[engines]\nbatch = 0\n"])
def test_what_a_retired_setting_or_table_holds_does_not_matter(text):
    assert config.parse_config(text, "old") == Config()


def test_a_daemon_of_a_test_takes_what_is_no_setting_from_its_environment():
    text = "[distill]\nidle_s = 5\ntask_days = 7\n"
    read = config.parse_config(text, "c.toml", '{"distill.idle_s": 1, "daemon.log_bytes": 9}')
    assert (read.distill.idle_s, read.distill.task_days, read.daemon.log_bytes) == (1, 7, 9)
    assert config.parse_config(text, "c.toml", "").distill.idle_s == 600


@pytest.mark.parametrize(("tuning", "said"), TABLES["a_wrong_tuning_is_refused_by_its_name"])
def test_a_wrong_tuning_is_refused_by_its_name(tuning, said):
    with pytest.raises(ConfigError, match=f"MEMD_TUNING.*{re.escape(said)}"):
        config.parse_config("", "c.toml", tuning)
