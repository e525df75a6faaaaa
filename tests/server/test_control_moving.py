"""What was staged beside the vault is taken over by one control call; over the real listener."""

from pathlib import Path

import pytest

from memd.store.import_rows import commit_staging, staging_vault
from memd.transfer import archive
from tests.export_records import AT, lines, one_of_each, plain


@pytest.fixture
def merge(house, connect):
    """Make the call; its result, or the error's message."""

    async def merge(name):
        async with house.open(), connect() as line:
            told = await line.call("memd/import/vault", {"staged": name})
            return told["result"] if "result" in told else told["error"]["message"]

    return merge


@pytest.fixture
def staged(house, tmp_path):
    """A vault that lies staged beside the house's; the name of its file."""
    (tmp_path / "export").write_bytes(b"".join(lines(one_of_each())))
    with staging_vault(house.db.path, AT) as (tx, name):
        with (tmp_path / "export").open("rb") as file:
            archive.stage_export(file, tx, plain, lambda _: None)
        commit_staging(tx)
        yield name


async def test_what_was_staged_is_taken_over_and_told(house, merge, staged):
    told = await merge(staged)
    assert (told["created"]["summary"], told["created"]["event"]) == (3, 2)
    assert (told["known"], told["forgotten"], told["left"], told["hidden"]) == ({}, {}, {}, 0)
    found = house.db.read_now(lambda tx: tx.execute("SELECT count(*) FROM summaries").get)
    assert found == 3
    assert (await merge(staged))["created"] == {}


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../x.1.staging", "vault.db", "vault.db.99.staging.x"]
)
async def test_no_other_file_is_taken(merge, name):
    assert "staged" in await merge(name)


async def test_a_staged_file_that_is_gone_is_told(house, merge):
    assert "no vault" in await merge(f"{Path(house.db.path).name}.1.staging")
