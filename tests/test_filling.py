"""scripts/filling.py makes the vault that memd itself would have made of the same texts."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

from memd.daemon.checkup import examined
from memd.store import saved
from memd.store.database import Database

SCRIPTS = str(Path(__file__).parent.parent / "scripts")


@pytest.fixture
def filling(monkeypatch):
    """The script, as a module."""
    monkeypatch.syspath_prepend(SCRIPTS)
    filling = import_module("filling")

    yield filling
    for name in ("filling", "corpus"):
        sys.modules.pop(name)


def test_a_filled_vault_is_whole_and_its_index_equals_its_truth(tmp_path, monkeypatch, filling):
    monkeypatch.setattr("memd.index.keeper.ROWS_MIN", 1)
    path = str(tmp_path / "v.db")
    filling.fill(path, 300, learned=True)
    found = examined(path, 400, 2_000_000_000_000, is_served=False)
    assert [one for one in found if one.verdict != "ok"] == []
    db = Database(path, 1)
    assert db.read_now(saved.name)
    db.close()
