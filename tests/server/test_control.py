import math

import pytest

from memd.server.jsonrpc import Call


@pytest.fixture
def ask(connect):
    async def asked(method, params=None, preface=None):
        async with connect(preface) as line:
            return await line.call(method, params)

    return asked


EVENT = {
    "client": "claude-code",
    "payload": {
        "session_id": "s1", "hook_event_name": "UserPromptSubmit", "prompt_id": "p1", "prompt": "hello",
        "cwd": "/nowhere",
    },
    "directory": "/nowhere",
}  # fmt: skip


async def test_a_capture_is_acknowledged_with_its_number(house, ask):
    async with house.open():
        receipt = (await ask("memd/capture", EVENT))["result"]
        assert receipt["outcome"] == "stored"
        assert receipt["seq"] == 1
        again = (await ask("memd/capture", EVENT))["result"]
        assert (again["outcome"], again["seq"]) == ("duplicate", 1)


async def test_a_batch_gets_a_receipt_for_each(house, ask):
    async with house.open():
        told = (
            await ask("memd/capture", {"events": [EVENT, {"client": "nobody", "payload": 7}]})
        )["result"]
        assert [one["outcome"] for one in told["receipts"]] == ["stored", "refused"]
        assert told["receipts"][1]["reason"]


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
        (
            "memd/capture",
            {"events": [EVENT] * 1_001},
            "events: more than 1000 items",
        ),
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
async def test_wrong_parameters_are_named(house, ask, method, params, message):
    async with house.open():
        error = (await ask(method, params))["error"]
        assert error["code"] == -32602
        assert error["message"].startswith(message)


async def test_an_unknown_method_is_told_which_there_are(house, ask):
    async with house.open():
        error = (await ask("memd/dance"))["error"]
        assert error["code"] == -32601
        assert "memd/ping, memd/capture" in error["message"]


async def test_a_failure_of_ours_has_its_own_code(house, ask):
    house.recaller.fails_with = RuntimeError("internal")
    async with house.open():
        error = (await ask("memd/search", {"query": "x"}))["error"]
        assert error == {
            "code": -32000, "message": "memd could not do this; see the log", "data": {"error": "Broken"},
        }  # fmt: skip


async def test_a_search_is_answered_whole(house, ask):
    number = house.remember("login", "a body " * 500, project="/x")
    async with house.open():
        found = (await ask("memd/search", {"query": "login", "embedding": [0.5, 1]}))["result"]
        (hit,) = found["hits"]
        assert hit["id"] == number
        assert hit["body"] == "a body " * 500
        assert math.isclose(hit["score"], sum(part["value"] for part in hit["parts"]))
        assert found["space"] == "hashing/1/768"
        assert house.recaller.asked[0].embedding == (0.5, 1.0)
        assert house.recaller.asked[0].project_ids is None


async def test_a_directory_narrows_a_search_to_its_project(house, ask, tmp_path):
    house.remember("login there", project="/there")
    ours = house.remember("login here", project=str(tmp_path))
    async with house.open():
        for params, preface in (
            ({"directory": str(tmp_path)}, None),
            ({}, {"cwd": str(tmp_path)}),
        ):
            found = (await ask("memd/search", {"query": "login", **params}, preface))["result"]
            assert [hit["id"] for hit in found["hits"]] == [ours]


async def test_a_timeline_why_and_get_are_answered_whole(house, ask):
    number = house.remember("login")
    async with house.open():
        rows = (await ask("memd/timeline", {"id": number}))["result"]["rows"]
        assert rows[0]["summary"]["id"] == number
        assert (await ask("memd/why", {"id": f"#{number}"}))["result"]["summary"][
            "title"
        ] == "login"
        memory = (await ask("memd/get", {"ids": [number]}))["result"]["memories"][0]
        assert (memory["project"], memory["body"]) == ("global", "a body")


async def test_importers_say_when_where_and_who(house, ask):
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
    async with house.open():
        told = (await ask("memd/remember", {"memories": memories}))["result"]["remembered"]
        assert [one["outcome"] for one in told] == ["created"] * 3
        one, two, three = house.curator.memories
        assert (one.project_key, one.at, one.source) == ("corpus", 1_700_000_000_000, "bench")
        assert (one.session.client, one.session.key) == ("bench", "s")
        assert (two.project_key, two.kind.value, two.source) == ("/nowhere", "fact", "user")
        assert three.project_key is None
        assert (
            "id"
            in (await ask("memd/remember", {"text": "four", "project": "corpus"}))["result"]
        )
        assert house.curator.memories[3].project_key == "corpus"


async def test_the_other_calls_do_what_they_say(house, ask):
    number = house.remember("login")
    async with house.open():
        assert (await ask("memd/status"))["result"] == {"healthy": True}
        assert (await ask("memd/projects"))["result"]["projects"][0]["key"] == "global"
        await ask("memd/imports/mark", {"path": "/a", "size": 3, "modified_at": 4})
        assert (await ask("memd/imports"))["result"] == {"imports": {"/a": [3, 4]}}
        assert (await ask("memd/reindex"))["result"] == {"report": 7}
        assert (await ask("memd/reindex", {"embeddings": True}))["result"] == {
            "report": {"space": "a/b", "missing": 3}
        }
        assert (await ask("memd/vacuum", {"dry_run": True}))["result"] == {
            "report": {"dropped": [], "is_dry_run": True, "retention": {"compacted": 2}}
        }
        assert (await ask("memd/consolidate"))["result"]["report"] == {"superseded": 1}
        assert (await ask("memd/consolidate", {"dry_run": True}))["result"]["report"] == {
            "superseded": 2
        }
        assert (await ask("memd/pin", {"id": number}))["result"]["tier"] == "core"
        gone = (await ask("memd/forget", {"ids": [number], "dry_run": False}))["result"]
        assert [one["id"] for one in gone["summaries"]] == [number]
        assert (await ask("memd/shutdown"))["result"] == {"leaving": True}
        assert house.left == [True]


async def test_a_notification_is_done_and_not_answered(house, connect):
    async with house.open(), connect() as line:
        await line.send({"jsonrpc": "2.0", "method": "memd/capture", "params": EVENT})
        await line.send({"jsonrpc": "2.0", "method": "memd/dance"})
        await line.half_close()
        assert await line.answer() is None
        assert house.db.read_now(lambda tx: tx.execute("SELECT count(*) FROM events").get) == 1


async def test_a_payload_with_half_a_surrogate_is_captured(house, connect):
    async with house.open(), connect() as line:
        payload = r'{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt_id":"p","prompt":"a\ud83db"}'
        params = f'{{"client":"claude-code","directory":"/tmp","payload":{payload}}}'
        await line.send(
            f'{{"jsonrpc":"2.0","id":1,"method":"memd/capture","params":{params}}}\n'.encode()
        )
        assert (await line.answer())["result"]["outcome"] == "stored"


async def test_what_is_read_elsewhere_comes_with_its_place_and_can_be_withdrawn(house, ask):
    place = {"path": "/n/a.md", "part": "Install", "line": 3}
    memory = {"text": "make", "source": "import:x", "session": "s", "client": "claude-code",
              "tier": "file", "origin": place, "project": "global"}  # fmt: skip
    async with house.open():
        (kept,) = (await ask("memd/remember", {"memories": [memory]}))["result"]["remembered"]
        (sent,) = house.curator.memories
        assert (sent.tier.value, sent.session.client) == ("file", "claude-code")
        assert (sent.origin.path, sent.origin.part, sent.origin.line) == (
            "/n/a.md",
            "Install",
            3,
        )
        told = await ask("memd/why", {"id": "origin:/n/a.md#Install"})
        assert told["result"]["edges"][0]["from_id"] == str(kept["id"])
        gone = await ask("memd/imports/withdraw", {"path": "/n/a.md", "staying": []})
        assert gone["result"] == {"withdrawn": [kept["id"]]}
        wrong = await ask("memd/remember", {**memory, "origin": {"path": ""}})
        assert "origin" in wrong["error"]["message"]


async def test_an_answer_of_very_many_is_whole(house, ask):
    wanted = [house.remember(f"login {number}") for number in range(40)]
    async with house.open():
        result = (await ask("memd/get", {"ids": wanted}))["result"]
        assert [one["id"] for one in result["memories"]] == wanted


async def test_a_capture_and_a_ping_are_light_and_a_batch_is_not(house):
    async with house.open():
        control = house.listener._handlers.control
        assert control.is_light(Call(1, "memd/ping"))
        assert control.is_light(Call(1, "memd/capture", {"client": "c", "payload": {}}))
        assert control.is_light(Call(1, "memd/remember", {"text": "x"}))
        assert not control.is_light(Call(1, "memd/capture", {"events": []}))
        assert not control.is_light(Call(1, "memd/remember", {"memories": []}))
        assert not control.is_light(Call(1, "memd/search", {"query": "x"}))
