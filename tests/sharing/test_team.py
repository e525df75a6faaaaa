"""Vaults that share a project over a real server: what travels, what stays, and whose word it remains."""

import psycopg
import pytest
from anyio import to_thread

from memd.errors import BadRequest
from memd.models import Kind
from memd.sharing import team_server
from memd.sharing.team_server import ServerRefused, ServerUnreachable
from memd.store import statements
from memd.store.export_rows import VaultRecords
from tests.sharing.teammates import append_rows

SECRET = "ghp_" + "a1B2" * 9  # planted
GOLD = "The ledger rounds half to even"


async def pair(teammate):
    ann, bob = teammate("ann"), teammate("bob")
    await ann.join()
    await bob.join()
    return ann, bob


async def exchange(*teammates):
    """Let each of them exchange with the server, one after the other."""
    for one in teammates:
        await one.exchange()


def server_texts(url):
    with psycopg.connect(url) as connection:
        return [text for (text,) in connection.execute("SELECT record FROM memd.records")]


async def test_what_one_learns_the_other_finds_with_its_author(teammate):
    ann, bob = await pair(teammate)
    await ann.remember(GOLD, tags=("money",), files=("ledger.py",))
    await exchange(ann, bob)

    there = bob.find(GOLD)
    assert (there.author, there.speaker, there.tags, there.files) == (
        "ann", "team", ("money",), ("ledger.py",))  # fmt: skip
    assert bob.written == 1
    assert (await bob.exchange()).written == 0, "nothing comes twice"
    assert (await ann.exchange()).sent == 0, "and nothing is sent on"
    assert (await bob.exchange()).sent == 0
    assert bob.worker.status()["state"] == "following"
    assert (await bob.worker.describe())["authors"] == {"ann": 1}


async def test_only_joined_projects_and_shared_kinds_leave_the_vault(teammate, team):
    ann, bob = teammate("ann"), teammate("bob")
    await ann.remember("shared decision", kind=Kind.DECISION)
    await ann.remember("my way", kind=Kind.PREFERENCE)
    await ann.remember("my errand", kind=Kind.TASK)
    await ann.remember("always ask first", kind=Kind.INSTRUCTION)
    await ann.remember("between us", tags=("private",))
    await ann.remember("another project", project="/src/other")

    preview = await ann.worker.preview_join("app", "/src/app", has_instructions=False)
    assert preview.shared == {"decision": 1}
    assert preview.kept == {"preference": 1, "task": 1, "instruction": 1}
    assert server_texts(team("owner")) == []
    await ann.join()
    await ann.exchange()
    await bob.join()
    await bob.exchange()
    assert bob.see() == [("ann", "shared decision")]

    await ann.join(has_instructions=True)
    await exchange(ann, bob)
    assert bob.see() == [("ann", "always ask first"), ("ann", "shared decision")]


async def test_a_teammate_never_supersedes_me_and_a_disagreement_names_both(teammate):
    ann, bob = await pair(teammate)
    await bob.remember("The port is 8080", by="agent", topic_key="port")
    ann.clock.advance(s=60)
    await ann.remember("The port is 9090", topic_key="port")
    await exchange(ann, bob)

    mine, theirs = bob.find("The port is 8080"), bob.find("The port is 9090")
    assert mine.superseded_by is theirs.superseded_by is None
    (finding,) = bob.db.read_now(
        lambda tx: tx.execute(
            "SELECT detail ->> 'finding' FROM edges WHERE type = 'contradicts'"
        ).fetchall()
    )
    assert finding == ("ann and you give port different values",)

    bob.clock.advance(s=60)
    await bob.remember("The port is 7070", by="agent", topic_key="port")
    assert bob.find("The port is 9090").superseded_by is None, "an agent does not overrule the team"
    await bob.remember("The port is 6060", topic_key="port")
    assert bob.find("The port is 9090").superseded_by is not None, (
        "the user does, in their own vault"
    )
    await ann.exchange()
    assert ann.find("The port is 9090").superseded_by is None


async def test_what_i_say_too_is_mine_and_stays_when_they_forget_it(teammate):
    ann, bob = await pair(teammate)
    number = await ann.remember(GOLD)
    await exchange(ann, bob)
    await bob.remember(GOLD)
    await ann.forget(number)
    await exchange(ann, bob)
    assert bob.see() == [("", GOLD)]


async def test_forgetting_erases_on_the_server_and_with_teammates(teammate, team, tmp_path):
    ann, bob = await pair(teammate)
    number = await ann.remember(GOLD)
    await ann.remember("it stays")
    await exchange(ann, bob)

    await ann.forget(number)
    await exchange(ann, bob)

    assert bob.see() == [("ann", "it stays")]
    assert not any(GOLD in text for text in server_texts(team("owner")))
    for one in (ann, bob):
        one.db.write_now(lambda tx: tx.execute("SELECT 1"))
        one.db.close()
    assert not any(GOLD.encode() in path.read_bytes() for path in tmp_path.glob("vault*"))


async def test_what_i_forget_of_a_teammates_stays_away_from_me_alone(teammate):
    ann, bob = await pair(teammate)
    await ann.remember(GOLD)
    await exchange(ann, bob)
    await bob.forget(bob.find(GOLD).id)
    await ann.remember("more")
    await exchange(ann, bob)
    assert bob.see() == [("ann", "more")]
    assert len(ann.see()) == 2


async def test_what_is_superseded_or_said_again_follows(teammate):
    ann, bob = await pair(teammate)
    await ann.remember("The port is 8080", topic_key="port")
    await exchange(ann, bob)
    ann.clock.advance(s=60)
    newer = await ann.remember("The port is 9090", topic_key="port")
    await exchange(ann, bob)
    assert bob.see() == [("ann", "The port is 9090")]
    await ann.forget(newer)
    await exchange(ann, bob)
    ann.clock.advance(s=60)
    await ann.remember("The port is 9090", topic_key="port")
    await exchange(ann, bob)
    assert bob.see() == [("ann", "The port is 9090")]


async def test_two_devices_of_one_person_share_one_memory(teammate):
    desktop, laptop = teammate("ann", "d"), teammate("ann", "e")
    bob = teammate("bob")
    for one in (desktop, laptop, bob):
        await one.join()
    for one in (desktop, laptop):
        await one.remember(GOLD)
        await one.exchange()
    await bob.exchange()
    assert bob.see() == [("ann", GOLD)]
    await desktop.worker.join("app", "/src/other", has_instructions=False)
    await desktop.exchange()
    await bob.exchange()
    assert bob.see() == [("ann", GOLD)], "the laptop shares it still"
    assert laptop.see() == [("", GOLD)]


async def test_leaving_takes_their_memories_from_me_and_mine_from_them_if_i_want(teammate):
    ann, bob = await pair(teammate)
    await ann.remember("ann's")
    await bob.remember("bob's")
    for one in (ann, bob, ann):
        await one.exchange()
    assert len(ann.see()) == len(bob.see()) == 2

    left = await ann.worker.leave("app", withdraws=False)
    assert (left.removed, left.logs_removed, ann.see()) == (1, 0, [("", "ann's")])
    await bob.exchange()
    assert len(bob.see()) == 2
    await ann.join()
    await ann.exchange()
    assert len(ann.see()) == 2

    left = await ann.worker.leave("app", withdraws=True)
    await bob.exchange()
    assert (left.logs_removed, bob.see()) == (1, [("", "bob's")])
    with pytest.raises(BadRequest, match="not joined"):
        await ann.worker.leave("app", withdraws=True)


async def test_a_reader_reads_and_a_stranger_is_told_whom_to_ask(teammate):
    ann, ray, eve = teammate("ann"), teammate("ray"), teammate("eve")
    await ann.join()
    await ann.remember(GOLD)
    await ann.exchange()
    await ray.remember("rays own")
    preview = await ray.join()
    assert (preview.role, preview.shared, preview.kept) == ("reader", {}, {"fact": 1})
    await ray.exchange()
    assert ("ann", GOLD) in ray.see()
    with pytest.raises(ServerRefused, match="memd team grant eve writer app"):
        await eve.join()


async def test_who_loses_the_role_keeps_working_and_sees_why(teammate, team):
    ann, bob = await pair(teammate)
    await ann.remember(GOLD)
    await exchange(ann, bob)
    await to_thread.run_sync(team_server.grant, team("ann"), "bob", "none", "app")
    await ann.remember("later")
    await ann.exchange()
    report = await bob.exchange()
    assert "memd team leave app" in report.problems["app"]
    assert bob.see() == [("ann", GOLD)]


async def test_a_restored_server_is_noticed_and_made_whole(teammate, team):
    ann, bob = await pair(teammate)
    await ann.remember("first")
    await exchange(ann, bob)
    with psycopg.connect(team("owner"), autocommit=True) as owner:
        owner.execute("CREATE TABLE records AS SELECT * FROM memd.records")
        owner.execute("CREATE TABLE heads AS SELECT * FROM memd.heads")
        for text in ("second", "third"):
            await ann.remember(text)
            await ann.exchange()
        await bob.exchange()
        owner.execute("DELETE FROM memd.heads")
        owner.execute("INSERT INTO memd.heads SELECT * FROM heads")
        owner.execute("INSERT INTO memd.records SELECT * FROM records")

    report = await bob.exchange()
    assert (sorted(report.behind), len(bob.see())) == (["ann"], 3), (
        "nothing is taken away on a server's word"
    )
    await ann.exchange()
    report = await bob.exchange()
    assert len(server_texts(team("owner"))) == 3
    assert (sorted(report.behind), len(bob.see())) == ([], 3)
    late = teammate("ray")
    await late.join()
    await late.exchange()
    assert len(late.see()) == 3
    assert (await ann.exchange()).sent == 0


async def test_rows_that_vanished_or_were_skipped_are_found_by_their_sums(teammate):
    ann, bob = await pair(teammate)
    for text in ("one", "two", "three"):
        await ann.remember(text)
    await exchange(ann, bob)
    # As after a restored copy of bob's vault: rows are missing here, and one is here that is not there.
    bob.db.write_now(lambda tx: tx.execute("DELETE FROM summaries WHERE body = 'two'"))
    bob.db.write_now(lambda tx: tx.execute("DELETE FROM team_said WHERE seq = 2"))
    await ann.remember("four")
    await ann.exchange()

    assert [(await bob.exchange()).broken for _ in range(3)] == [1, 0, 0]

    assert [body for _, body in bob.see()] == ["four", "one", "three", "two"]


async def test_an_append_that_was_never_noted_is_recognised(teammate):
    ann, bob = await pair(teammate)
    await ann.remember(GOLD)
    await ann.exchange()
    # The daemon was killed between the server's commit and its own.
    ann.db.write_now(lambda tx: tx.execute("DELETE FROM sync_places"))
    ann.db.write_now(lambda tx: tx.execute("DELETE FROM sync_cursors"))
    assert (await ann.exchange()).sent == 0
    await bob.exchange()
    assert bob.see() == [("ann", GOLD)]


async def test_a_forged_or_damaged_row_is_refused_and_takes_nothing_with_it(
    teammate, team, tmp_path
):
    ann, _ = await pair(teammate)
    record = '{"format":1,"state":"forgotten"}'
    good = '{"format":1,"state":"shared","memory":{"kind":"fact","title":"t","body":"good","topic_key":null,"tags":[],"files":[],"at":1,"expires_at":null,"confidence":0.5,"quality":0.5}}'
    bad = ("not json", "{}", good.replace("fact", "preference"), good.replace("shared", "").replace('""', "[1]"),
           good.replace('"at":1', '"at":"x"'), good.replace("0.5", "NaN"), good.replace("[]", "[1]"),
           good.replace('"fact"', '["fact"]'), good.replace("good", r"\ud800"), good.replace("[]", r'["\udfff"]'))  # fmt: skip
    rows = [(f"bad{number}", text) for number, text in enumerate(bad)]
    rows += [
        ("key", good.replace("null", f'"{SECRET}"', 1)),
        ("nul", good.replace("[]", r'["a\u0000b"]')),
        ("good", good),
        ("leak", good.replace("good", SECRET)),
        ("none", record),
    ]
    await to_thread.run_sync(append_rows, team("bob"), rows)
    report = await ann.exchange()
    assert len(report.refused) == len(bad)
    assert ("bob", "good") in ann.see()
    assert not any(SECRET in body for _, body in ann.see())
    assert ann.worker.status()["refused"] == len(bad)
    files = await to_thread.run_sync(list, tmp_path.glob("vault*"))
    assert files
    assert not any([SECRET.encode() in await to_thread.run_sync(one.read_bytes) for one in files])
    assert (await ann.exchange()).refused == {}


async def test_what_is_a_teammates_is_in_no_export_and_no_sync(teammate):
    ann, bob = await pair(teammate)
    await ann.remember(GOLD, topic_key="rounding")
    await exchange(ann, bob)
    records = bob.db.write_now(lambda tx: list(VaultRecords(tx).records()))
    assert not any(GOLD in str(fields) for _, fields in records)
    bob.clock.advance(s=60)
    await bob.remember("The ledger rounds up", topic_key="rounding")
    assert bob.find(GOLD).superseded_by

    def settle(tx):
        assert [one for one, _, _ in statements.read_statements(tx, "memory")] == [
            uid for (uid,) in tx.execute("SELECT uid FROM summaries WHERE author = ''")
        ]
        assert statements.read_statements(tx, "supersession") == {}
        before = tx.total_changes()
        statements.hold_supersessions(tx, set(), bob.clock())
        assert tx.total_changes() == before

    bob.db.write_now(settle)
    assert bob.find(GOLD).superseded_by, "syncing undoes nothing that it does not know"


async def test_a_server_that_is_away_loses_nothing(teammate, postgres):
    ann, bob = await pair(teammate)
    await ann.remember(GOLD)
    postgres.kill()
    with pytest.raises(ServerUnreachable):
        await ann.exchange()
    await ann.remember("meanwhile")
    postgres.start()
    assert (await ann.exchange()).sent == 2
    await bob.exchange()
    assert len(bob.see()) == 2
