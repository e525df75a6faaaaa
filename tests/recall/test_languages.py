"""Fifteen languages in one vault: twenty memories each, asked for in the same words, in other forms, with Latin names."""

import json
from pathlib import Path

import pytest

from memd.store.database import open_database
from tests.indexed_vault import NOW, IndexedVault

FOLDER = Path(__file__).parent.parent / "data" / "languages"
MEMORIES = {
    path.stem: json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))
}
WAYS = ("same words", "other form", "mixed")
LEAST = {"same words": 0.95, "other form": 0.80, "mixed": 0.80}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The vault of all of them, and the number of each memory."""
    with open_database(str(tmp_path_factory.mktemp("languages") / "vault.db"), NOW) as db:
        library = IndexedVault(db)
        yield library, {row[0]: library.put(row[0]) for rows in MEMORIES.values() for row in rows}


async def find_missed(library, wanted, way):
    """Per language the questions of one way whose memory is not among the first five."""
    missed = {}
    for language, rows in MEMORIES.items():
        missed[language] = [
            row[1 + WAYS.index(way)]
            for row in rows
            if wanted[row[0]] not in (await library.ids(row[1 + WAYS.index(way)]))[:5]
        ]
    return missed


@pytest.mark.parametrize("way", WAYS)
async def test_memories_of_each_language_are_found_among_those_of_all(told, way):
    missed = await find_missed(*told, way)
    shares = {language: 1 - len(some) / 20 for language, some in missed.items()}
    assert len(shares) == 15
    assert all(share >= LEAST[way] for share in shares.values()), (shares, missed)
