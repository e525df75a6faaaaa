"""What an installation leaves beside the files that it changed."""

from memd.installers import file_changes


def test_only_backups_of_memds_own_making_are_removed(tmp_path):
    settings = tmp_path / "settings.json"
    mine = [tmp_path / f"settings.json.memd-20261121-155900{n}.bak" for n in ("", "-2")]
    others = [
        tmp_path / name
        for name in ("settings.json", "settings.json.bak", "settings.json.memd-old.bak", "x.json.memd-20261121-155900.bak")
    ]  # fmt: skip
    for file in (*mine, *others):
        file.touch()
    assert file_changes.remove_backups(settings) == sorted(mine)
    assert sorted(tmp_path.iterdir()) == sorted(others)
    assert file_changes.remove_backups(tmp_path / "gone" / "x") == []
