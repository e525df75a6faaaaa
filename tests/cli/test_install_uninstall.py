import pytest


@pytest.fixture
def settings(tmp_path, monkeypatch):
    home = tmp_path / "user"
    path = home / ".claude" / "settings.json"
    path.parent.mkdir(parents=True)
    path.write_text('{ "model":"x" }', encoding="utf-8")
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", "")
    return path


def test_nothing_of_memd_is_left_and_the_rest_is_as_it_was(alone, settings):
    alone("install", "claude-code")
    assert settings.read_text(encoding="utf-8") != '{ "model":"x" }'
    ran = alone("uninstall", "claude-code")
    assert ran.status == 0
    assert f"removed {settings.parent.parent / '.claude.json'}" in ran.out
    assert settings.read_text(encoding="utf-8") == '{ "model":"x" }'


def test_a_dry_run_only_shows(alone, settings):
    alone("install", "claude-code")
    before = settings.read_bytes()
    ran = alone("uninstall", "claude-code", "--dry-run")
    assert "+++ /dev/null" in ran.out
    assert settings.read_bytes() == before


@pytest.mark.usefixtures("settings")
def test_what_was_never_installed_is_not_taken_away(alone):
    ran = alone("uninstall", "claude-code")
    assert (ran.status, ran.out) == (0, "nothing to do: it is so already\n")
