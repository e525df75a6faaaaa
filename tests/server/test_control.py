import math
from pathlib import Path

import pytest

from memd.server.jsonrpc import Call
from memd.store.import_rows import commit_staging, staging_vault
from memd.transfer import archive
from tests.export_records import AT, lines, one_of_each, plain


@pytest.fixture
def ask(connect):
    async def asked(method, params=None, preface=None):
        async with connect(preface) as client:
            return await client.call(method, params)

    return asked


EVENT = {
    "client": "claude-code",
    "payload": {
        "session_id": "s1", "hook_event_name": "UserPromptSubmit", "prompt_id": "p1", "prompt": "hello",
        "cwd": "/nowhere",
    },
    "directory": "/nowhere",
}  # fmt: skip


async def test_a_captured_event_is_acknowledged_with_its_number(server, ask):
    async with server.open():
        receipt = (await ask("memd/capture", EVENT))["result"]
        assert receipt["outcome"] == "stored"
        assert receipt["seq"] == 1
        again = (await ask("memd/capture", EVENT))["result"]
        assert (again["outcome"], again["seq"]) == ("duplicate", 1)


async def test_a_batch_gets_a_receipt_for_each(server, ask):
    async with server.open():
        reply = (
            await ask("memd/capture", {"events": [EVENT, {"client": "nobody", "payload": 7}]})
        )["result"]
        assert [one["outcome"] for one in reply["receipts"]] == ["stored", "refused"]
        assert reply["receipts"][1]["reason"]


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        ("memd/capture", {}, "client: is needed"),
        ("memd/capture", {**EVENT, "at": "now"}, "at: 'now' is not a whole number"),
        (
            "memd/capture",
            {**EVENT, "source": "dream"},
            "source: must be one of live, spool, import",
        ),
        ("memd/capture", {"events": 7}, "events: 7 is not a list"),
        ("memd/capture", {"events": [EVENT] * 1_001}, "events: more than 1000 items"),
        ("memd/search", {"query": "x", "k": "5"}, "k: '5' is not a whole number"),
        (
            "memd/search",
            {"query": "x", "limit": 5},
            "limit: there is no such argument; there are query, k",
        ),
        ("memd/search", {}, "query: say what to look for"),
        ("memd/get", {"ids": [999]}, "there is no memory #999"),
        ("memd/imports/mark", {"path": "/a", "size": -1, "modified_at": 1}, "size: "),
        ("memd/ping", {"loud": True}, "loud: there is no such argument; this call takes none"),
    ],
)
async def test_wrong_parameters_are_named(server, ask, method, params, message):
    async with server.open():
        error = (await ask(method, params))["error"]
        assert error["code"] == -32602
        assert error["message"].startswith(message)


async def test_an_unknown_method_is_answered_with_the_known_ones(server, ask):
    async with server.open():
        error = (await ask("memd/dance"))["error"]
        assert error["code"] == -32601
        assert "memd/ping, memd/capture" in error["message"]


async def test_a_failure_of_memd_has_its_own_code(server, ask):
    server.recaller.fails_with = RuntimeError("internal")
    async with server.open():
        error = (await ask("memd/search", {"query": "x"}))["error"]
        assert error == {
            "code": -32000, "message": "memd could not do this; see the log", "data": {"error": "Broken"},
        }  # fmt: skip


async def test_a_search_returns_whole_memories(server, ask):
    number = server.remember("login", "a body " * 500, project="/x")
    async with server.open():
        found = (await ask("memd/search", {"query": "login", "embedding": [0.5, 1]}))["result"]
        (hit,) = found["hits"]
        assert hit["id"] == number
        assert hit["body"] == "a body " * 500
        assert math.isclose(hit["score"], sum(part["value"] for part in hit["parts"]))
        assert found["space"] == "hashing/1/768"
        assert server.recaller.asked[0].embedding == (0.5, 1.0)
        assert server.recaller.asked[0].project_ids is None


async def test_a_directory_narrows_a_search_to_its_project(server, ask, tmp_path):
    server.remember("login there", project="/there")
    ours = server.remember("login here", project=str(tmp_path))
    async with server.open():
        for params, preface in (({"directory": str(tmp_path)}, None), ({}, {"cwd": str(tmp_path)})):
            found = (await ask("memd/search", {"query": "login", **params}, preface))["result"]
            assert [hit["id"] for hit in found["hits"]] == [ours]


async def test_timeline_why_and_get_return_whole_memories(server, ask):
    number = server.remember("login")
    async with server.open():
        rows = (await ask("memd/timeline", {"id": number}))["result"]["rows"]
        assert rows[0]["summary"]["id"] == number
        assert (await ask("memd/why", {"id": f"#{number}"}))["result"]["summary"][
            "title"
        ] == "login"
        memory = (await ask("memd/get", {"ids": [number]}))["result"]["memories"][0]
        assert (memory["project"], memory["body"]) == ("global", "a body")


async def test_an_importer_gives_time_project_and_source(server, ask):
    memories = [
        {
            "text": "one",
            "at": 1_700_000_000_000,
            "session": "s",
            "source": "bench",
            "project": "corpus",
        },
        {"text": "two", "kind": "fact", "directory": "/nowhere"},
        {"text": "three", "title": ""},
    ]
    async with server.open():
        reply = (await ask("memd/remember", {"memories": memories}))["result"]["remembered"]
        assert [one["outcome"] for one in reply] == ["created"] * 3
        one, two, three = server.curator.memories
        assert (one.project_key, one.at, one.source) == ("corpus", 1_700_000_000_000, "bench")
        assert (one.session.client, one.session.key) == ("bench", "s")
        assert (two.project_key, two.kind.value, two.source) == ("/nowhere", "fact", "user")
        assert three.project_key is None
        assert "id" in (await ask("memd/remember", {"text": "four", "project": "corpus"}))["result"]
        assert server.curator.memories[3].project_key == "corpus"


async def test_status_imports_reindex_vacuum_pin_forget_and_shutdown_answer(server, ask):
    number = server.remember("login")
    async with server.open():
        assert (await ask("memd/status"))["result"]["healthy"] is True
        assert (await ask("memd/projects"))["result"]["projects"][0]["key"] == "global"
        await ask("memd/imports/mark", {"path": "/a", "size": 3, "modified_at": 4})
        assert (await ask("memd/imports"))["result"] == {"imports": {"/a": [3, 4]}}
        assert (await ask("memd/reindex"))["result"] == {"report": 7}
        assert (await ask("memd/reindex", {"embeddings": True}))["result"] == {
            "report": {"space": "a/b", "missing": 3}
        }
        again = {"memories": True}
        assert (await ask("memd/reindex", again))["result"] == {"report": {"created": 1}}
        preview = await ask("memd/reindex", {**again, "dry_run": True})
        assert preview["result"] == {"report": {"compacted": 2}}
        assert "preview" in (await ask("memd/reindex", {"dry_run": True}))["error"]["message"]
        assert (await ask("memd/vacuum", {"dry_run": True}))["result"] == {
            "report": {"dropped": [], "is_dry_run": True, "retention": {"compacted": 2}}
        }
        assert (await ask("memd/pin", {"id": number}))["result"]["tier"] == "core"
        gone = (await ask("memd/forget", {"ids": [number], "dry_run": False}))["result"]
        assert [one["id"] for one in gone["summaries"]] == [number]
        assert (await ask("memd/shutdown"))["result"] == {"leaving": True}
        assert server.shutdowns == [True]


async def test_a_notification_is_run_and_not_answered(server, connect):
    async with server.open(), connect() as client:
        await client.send({"jsonrpc": "2.0", "method": "memd/capture", "params": EVENT})
        await client.send({"jsonrpc": "2.0", "method": "memd/dance"})
        await client.half_close()
        assert await client.answer() is None
        assert server.db.read_now(lambda tx: tx.execute("SELECT count(*) FROM events").get) == 1


async def test_a_payload_with_half_a_surrogate_is_captured(server, connect):
    async with server.open(), connect() as client:
        payload = r'{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt_id":"p","prompt":"a\ud83db"}'
        params = f'{{"client":"claude-code","directory":"/tmp","payload":{payload}}}'
        await client.send(
            f'{{"jsonrpc":"2.0","id":1,"method":"memd/capture","params":{params}}}\n'.encode()
        )
        assert (await client.answer())["result"]["outcome"] == "stored"


async def test_an_imported_memory_has_its_origin_and_can_be_withdrawn(server, ask):
    place = {"path": "/n/a.md", "part": "Install", "line": 3}
    memory = {"text": "make", "source": "import:x", "session": "s", "client": "claude-code",
              "tier": "file", "origin": place, "project": "global"}  # fmt: skip
    async with server.open():
        (kept,) = (await ask("memd/remember", {"memories": [memory]}))["result"]["remembered"]
        (sent,) = server.curator.memories
        assert (sent.tier.value, sent.session.client) == ("file", "claude-code")
        assert (sent.origin.path, sent.origin.part, sent.origin.line) == ("/n/a.md", "Install", 3)
        reply = await ask("memd/why", {"id": "origin:/n/a.md#Install"})
        assert reply["result"]["edges"][0]["from_id"] == str(kept["id"])
        gone = await ask("memd/imports/withdraw", {"path": "/n/a.md", "staying": []})
        assert gone["result"] == {"withdrawn": [kept["id"]]}
        wrong = await ask("memd/remember", {**memory, "origin": {"path": ""}})
        assert "origin" in wrong["error"]["message"]


async def test_an_answer_with_many_memories_is_whole(server, ask):
    wanted = [server.remember(f"login {number}") for number in range(40)]
    async with server.open():
        result = (await ask("memd/get", {"ids": wanted}))["result"]
        assert [one["id"] for one in result["memories"]] == wanted


async def test_a_capture_and_a_ping_are_light_and_a_batch_is_not(server):
    async with server.open():
        control = server.listener._handlers.control
        assert control.is_light(Call(1, "memd/ping"))
        assert control.is_light(Call(1, "memd/capture", {"client": "c", "payload": {}}))
        assert control.is_light(Call(1, "memd/remember", {"text": "x"}))
        assert not control.is_light(Call(1, "memd/capture", {"events": []}))
        assert not control.is_light(Call(1, "memd/remember", {"memories": []}))
        assert not control.is_light(Call(1, "memd/search", {"query": "x"}))


async def test_doctor_returns_findings_and_with_fix_what_was_repaired(server, connect):
    async with server.open(), connect() as client:
        looked = (await client.call("memd/doctor"))["result"]
        assert looked["mended"] == []
        assert looked["findings"] == [
            {"name": "books", "verdict": "ok", "words": "fake", "remedy": "", "fixable": False}
        ]
        mended = (await client.call("memd/doctor", {"fix": True}))["result"]
        assert mended["mended"] == ["fake"]


@pytest.fixture
def merge(server, connect):
    """Make the call; its result, or the error's message."""

    async def merge(name):
        async with server.open(), connect() as client:
            reply = await client.call("memd/import/vault", {"staged": name})
            return reply["result"] if "result" in reply else reply["error"]["message"]

    return merge


@pytest.fixture
def staged(server, tmp_path):
    """A vault that lies staged beside the server's; the name of its file."""
    (tmp_path / "export").write_bytes(b"".join(lines(one_of_each())))
    with staging_vault(server.db.path, AT) as (tx, name):
        with (tmp_path / "export").open("rb") as file:
            archive.stage_export(file, tx, plain, lambda _: None)
        commit_staging(tx)
        yield name


async def test_a_staged_vault_is_merged(server, merge, staged):
    reply = await merge(staged)
    assert (reply["created"]["summary"], reply["created"]["event"]) == (3, 2)
    assert (reply["known"], reply["forgotten"], reply["left"], reply["hidden"]) == ({}, {}, {}, 0)
    found = server.db.read_now(lambda tx: tx.execute("SELECT count(*) FROM summaries").get)
    assert found == 3
    assert (await merge(staged))["created"] == {}


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../x.1.staging", "vault.db", "vault.db.99.staging.x"]
)
async def test_only_a_staged_file_beside_the_vault_is_merged(merge, name):
    assert "staged" in await merge(name)


async def test_a_missing_staged_file_is_an_error(server, merge):
    assert "no vault" in await merge(f"{Path(server.db.path).name}.1.staging")


async def test_a_consolidation_is_run_or_previewed(server, ask):
    async with server.open():
        done = (await ask("memd/consolidate"))["result"]
        assert done == {"dry_run": False, "report": {"superseded": 1}}
        previewed = (await ask("memd/consolidate", {"dry_run": True}))["result"]
        assert previewed == {"dry_run": True, "report": {"superseded": 2}}
        assert (await ask("memd/consolidate/runs", {"limit": 1}))["result"] == {"runs": [{"id": 1}]}


async def test_an_undone_consolidation_is_searchable_when_the_call_returns(server, ask):
    async with server.open():
        undone = (await ask("memd/consolidate/undo", {"what": "r1"}))["result"]
        assert undone == {"report": {"run": "r1", "is_dry_run": False}}
        assert server.worker.settled == [None]
        await ask("memd/consolidate/undo", {"what": "r1", "dry_run": True})
        assert server.worker.settled == [None]


async def test_a_scrub_needs_a_pattern_or_secrets(server, ask):
    async with server.open():
        for wrong in ({}, {"pattern": "x", "secrets": True}):
            assert "pattern" in (await ask("memd/scrub", wrong))["error"]["message"]
        done = (await ask("memd/scrub", {"pattern": "nowhere-at-all"}))["result"]
        assert (done["rows"], done["is_dry_run"]) == ({}, True)
        done = (await ask("memd/scrub", {"secrets": True, "dry_run": False}))["result"]
        assert done["rows"] == {}
