"""What a session that outlives its daemon owes to both sides, line by line."""

import json

from memd.mcp_relay import (
    INVALID_REQUEST,
    PARSE_ERROR,
    RETRYABLE,
    WAITING_BYTES_MAX,
    WAITING_MAX,
    LineCutter,
    LongLine,
    McpRelay,
    State,
)
from tests.tables import every_row

PREFACE = {"memd": 1, "cwd": "/work"}
META = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
REFUSED = {
    "jsonrpc": "2.0", "id": None,
    "error": {"code": -32000, "message": "memd has 2 connections already; close some"},
}  # fmt: skip


def line(value):
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def request(number, method="tools/call", **params):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def answer(number, **result):
    return {"jsonrpc": "2.0", "id": number, "result": result}


def hello(version="2025-11-25"):
    return answer(0, protocolVersion=version, capabilities={"tools": {}}, serverInfo={})


class Session:
    """A relay between a client and daemons that a test plays."""

    def __init__(self):
        self.relay = McpRelay(line(PREFACE))
        self.link()

    def link(self):
        self.relay.on_connected()
        return self

    def say(self, *messages):
        """The client sends these."""
        for message in messages:
            self.relay.take_client_line(message if isinstance(message, bytes) else line(message))
        return self

    def reply(self, *messages):
        """The daemon sends these."""
        for message in messages:
            self.relay.take_daemon_line(message if isinstance(message, bytes) else line(message))
        return self

    def deliver(self, count=None):
        """The daemon receives what is due to it: all, or so many bytes."""
        due = bytes(self.relay.to_daemon[:count])
        self.relay.drop_sent(len(due))
        return [json.loads(one) for one in due.splitlines() if count is None]

    def heard(self):
        """What the client receives."""
        due = bytes(self.relay.to_client)
        self.relay.to_client.clear()
        return [json.loads(one) for one in due.splitlines()]

    def restart(self):
        self.relay.on_disconnected()
        return self.link()

    def begin(self, *, initialized=True):
        """The handshake of the older era."""
        self.say(request(0, "initialize", protocolVersion="2025-11-25")).deliver()
        self.reply(hello())
        if initialized:
            self.say(INITIALIZED)
        self.deliver()
        self.heard()
        return self


def is_refused(message, number, *, done, words):
    error = message["error"]
    assert message["id"] == number
    assert error["code"] == RETRYABLE
    assert error["data"] == {"retryable": True, "done": done}
    assert words in error["message"], error["message"]
    return True


def test_lines_go_through_unchanged_and_in_order():
    session = Session()
    lines = [b'{"jsonrpc": "2.0",  "id":1,"method":"ping"}\r\n', b"not json\n", b"\xff\x00\n"]
    session.say(*lines)
    assert bytes(session.relay.to_daemon) == line(PREFACE) + b"".join(lines)
    session.reply(*lines)
    assert bytes(session.relay.to_client) == b"".join(lines)


# ── The handshake ────────────────────────────────────────────────────────────────────────────────


def test_the_next_daemon_is_greeted_as_the_first_one_was():
    session = Session().begin()
    session.restart().say(request(5))
    assert session.relay.state is State.GREETING
    assert session.deliver() == [PREFACE, request(0, "initialize", protocolVersion="2025-11-25")]
    session.reply(hello())
    assert session.deliver() == [INITIALIZED, request(5)]
    session.reply(answer(5, isError=False))
    assert session.heard() == [answer(5, isError=False)]


def test_a_daemon_of_the_stateless_era_is_discovered_again():
    session = Session()
    probe = request("probe-1", "server/discover", **META)
    session.say(probe).deliver()
    session.reply(answer("probe-1", supportedVersions=["2026-07-28"]))
    session.heard()
    session.restart().say(request(5, **META))
    assert session.deliver() == [PREFACE, probe]
    session.reply(answer("probe-1", supportedVersions=["2026-07-28"]))
    assert session.deliver() == [request(5, **META)]
    assert session.heard() == []


def test_a_stateless_session_that_never_asked_for_a_handshake_gets_none():
    session = Session().say(request(1, **META))
    session.deliver()
    session.reply(answer(1)).restart().say(request(2, **META))
    assert session.deliver() == [PREFACE, request(2, **META)]


def test_a_probe_that_was_refused_is_not_the_handshake():
    session = Session().say(request("p", "server/discover"))
    session.reply({"jsonrpc": "2.0", "id": "p", "error": {"code": -32601, "message": "no"}})
    session.deliver()
    session.begin().restart()
    assert session.deliver() == [PREFACE, request(0, "initialize", protocolVersion="2025-11-25")]


def test_a_handshake_in_flight_is_sent_again_and_answered_once():
    session = Session().say(request(0, "initialize"))
    session.deliver()
    session.restart()
    assert session.deliver() == [PREFACE, request(0, "initialize")]
    session.reply(hello())
    assert session.heard() == [hello()]


def test_what_the_client_says_between_the_daemons_completes_its_handshake():
    session = Session().begin(initialized=False)
    session.relay.on_disconnected()
    session.say(INITIALIZED).link()
    session.deliver()
    session.reply(hello())
    assert session.deliver() == [INITIALIZED]


@every_row(
    "reply",
    [
        hello("2024-11-05"),
        {"jsonrpc": "2.0", "id": 0, "error": {"code": -32602, "message": "unknown version"}},
    ],
    ids=["another version", "an error"],
)
def test_a_daemon_that_does_not_continue_the_session_ends_it(reply):
    session = Session().begin()
    session.restart().say(request(5)).deliver()
    session.reply(reply)
    assert session.relay.is_incompatible
    (refused,) = session.heard()
    assert is_refused(refused, 5, done="no", words="connect to it again")


def test_every_daemon_that_is_lost_during_its_greeting_is_followed_by_another():
    session = Session().begin().restart().say(request(5))
    for _ in range(20):
        assert len(session.deliver()) == 2
        session.restart()
    session.deliver()
    session.reply(hello())
    assert session.deliver() == [INITIALIZED, request(5)]
    assert session.heard() == []


# ── What was in flight ───────────────────────────────────────────────────────────────────────────


def test_a_call_that_the_daemon_had_is_answered_and_never_sent_again():
    session = Session().begin().say(request(5), request("6"))
    session.deliver()
    session.restart()
    first, second = session.heard()
    assert is_refused(first, 5, done="unknown", words="call again")
    assert is_refused(second, "6", done="unknown", words="restarted")
    session.deliver()
    session.reply(hello())
    assert session.deliver() == [INITIALIZED]


def test_a_call_that_the_daemon_did_not_have_whole_is_sent_to_the_next_one():
    session = Session().begin().say(request(5))
    session.deliver(len(line(request(5))) - 2)
    session.restart()
    assert session.heard() == []
    session.deliver()
    session.reply(hello())
    assert session.deliver() == [INITIALIZED, request(5)]


def test_a_call_of_which_only_the_line_end_is_missing_counts_as_received():
    session = Session().begin().say(line(request(5)).replace(b"\n", b" \r\n"))
    session.deliver(len(line(request(5))) - 1)
    session.restart()
    (refused,) = session.heard()
    assert is_refused(refused, 5, done="unknown", words="call again")


@every_row("method", ["tools/list", "ping", "resources/list", "prompts/list"])
def test_a_question_that_changes_nothing_is_asked_again_unseen(method):
    session = Session().begin().say(request(5, method))
    session.deliver()
    session.restart()
    session.deliver()
    session.reply(hello())
    assert session.deliver() == [INITIALIZED, request(5, method)]
    session.reply(answer(5))
    assert session.heard() == [answer(5)]


def test_what_was_answered_or_cancelled_gets_no_second_answer():
    session = Session().begin().say(request(5), request(6))
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 6}}
    session.reply(answer(5)).say(cancel)
    session.deliver()
    session.heard()
    session.restart()
    assert session.heard() == []


def test_answers_of_many_calls_may_come_in_any_order():
    session = Session().begin().say(*[request(number) for number in range(1, 1_001)])
    session.deliver()
    session.reply(*[answer(number) for number in range(1_000, 1, -1)])
    session.heard()
    session.restart()
    (refused,) = session.heard()
    assert is_refused(refused, 1, done="unknown", words="call again")


def test_messages_of_the_daemon_that_answer_nothing_leave_requests_open():
    session = Session().begin().say(request(5))
    session.deliver()
    progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"id": 5}}
    asked = {"jsonrpc": "2.0", "id": 5, "method": "roots/list"}
    session.reply(progress, asked)
    assert session.heard() == [progress, asked]
    session.restart()
    (refused,) = session.heard()
    assert is_refused(refused, 5, done="unknown", words="call again")


def test_calls_are_told_why_the_daemon_closed_the_connection():
    session = Session().begin().say(request(5))
    session.deliver()
    complaint = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": 'send "less"'}}
    session.reply(complaint)
    assert session.heard() == [complaint]
    session.restart()
    (refused,) = session.heard()
    assert is_refused(refused, 5, done="unknown", words='closed the connection: send "less"')


# ── What waits ───────────────────────────────────────────────────────────────────────────────────


def away():
    session = Session().begin()
    session.relay.on_disconnected()
    return session


def test_what_waits_is_refused_when_no_daemon_comes():
    session = away().say(request(5), request('a\n"ä😀', "tools/list"))
    assert session.relay.has_waiting
    session.relay.refuse_waiting("memd was stopped; run `memd start`, then call again")
    first, second = session.heard()
    assert is_refused(first, 5, done="no", words="run `memd start`")
    assert is_refused(second, 'a\n"ä😀', done="no", words="memd was stopped")
    assert not session.relay.has_waiting
    session.link().deliver()
    session.reply(hello())
    assert session.deliver() == [INITIALIZED]


def test_only_so_many_requests_wait():
    session = away().say(*[request(number) for number in range(1, WAITING_MAX + 3)])
    refused = session.heard()
    assert [one["id"] for one in refused] == [WAITING_MAX + 1, WAITING_MAX + 2]
    assert all(is_refused(one, one["id"], done="no", words="calls wait for it") for one in refused)


def test_only_so_many_bytes_wait():
    third = "x" * (WAITING_BYTES_MAX // 3)
    session = away().say(*(request(number, text=third) for number in (1, 2, 3)), request(4))
    assert [one["id"] for one in session.heard()] == [3]


def test_a_cancelled_request_waits_no_longer():
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}
    session = away().say(request(5), cancel).link()
    session.deliver()
    session.reply(hello())
    assert session.deliver() == [INITIALIZED]
    assert session.heard() == []


def test_notifications_and_answers_to_the_last_daemon_are_not_told_to_the_next_one():
    progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}
    session = away().say(progress, answer(9), {"jsonrpc": "2.0", "id": 8, "error": {}}).link()
    session.deliver()
    session.reply(hello())
    assert session.deliver() == [INITIALIZED]


def test_what_is_no_json_is_told_so_without_a_daemon():
    session = away().say(b"{nonsense\n", b"\n", b"[" * 100_000 + b"\n")
    first, second = session.heard()
    assert first["id"] is second["id"] is None
    assert first["error"]["code"] == second["error"]["code"] == PARSE_ERROR


# ── Refused connections ──────────────────────────────────────────────────────────────────────────


def test_a_refused_connection_is_tried_again_without_a_word():
    session = Session().say(request(0, "initialize"))
    session.deliver()
    session.reply(REFUSED).restart()
    assert session.heard() == []
    session.deliver()
    session.reply(hello())
    assert session.heard() == [hello()]


def test_the_reason_of_a_refusal_is_known():
    session = Session().begin().restart()
    session.deliver()
    session.reply(REFUSED)
    session.relay.on_disconnected()
    assert session.relay.complaint == "memd has 2 connections already; close some"
    assert session.heard() == []
    session = Session().say(request(1)).reply(REFUSED)
    session.relay.on_disconnected()
    session.relay.release_refusal()
    assert REFUSED in session.heard()


def test_an_error_without_an_id_that_is_no_refusal_is_passed_on():
    told = {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "not JSON"}}
    session = Session().say(b"nonsense\n").reply(told)
    assert session.heard() == [told]


# ── Lines ────────────────────────────────────────────────────────────────────────────────────────


def test_lines_are_cut_wherever_the_chunks_end():
    text = b"one\n\ntwo\r\nthree\nfour"
    for size in range(1, len(text) + 1):
        cutter = LineCutter()
        cut = [one for at in range(0, len(text), size) for one in cutter.feed(text[at : at + size])]
        assert cut == [b"one\n", b"\n", b"two\r\n", b"three\n"]
        assert cutter.take_rest() == b"four"
        assert cutter.take_rest() == b""


def test_a_line_that_is_too_long_is_not_kept_and_the_next_one_is():
    cutter = LineCutter(limit=100)
    first = b"a" * 50 + b"b" * 200_000 + b"c" * 50
    lines = [one for at in range(0, len(first), 999) for one in cutter.feed(first[at : at + 999])]
    assert lines == []
    long, short = cutter.feed(b"\nshort\n")
    assert isinstance(long, LongLine)
    assert long.startswith(b"a" * 50 + b"b")
    assert long.endswith(b"b" + b"c" * 50)
    assert len(long) < 2_000
    assert short == b"short\n"


@every_row(
    ("head", "tail", "number"),
    [
        ('{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"text":"', '"}}', 7),
        ('{"jsonrpc":"2.0","id":"s-7","method":"tools/call","params":{"text":"', '"}}', "s-7"),
        ('{"method":"tools/call","params":{"text":"', '"},"jsonrpc":"2.0","id":7} \r', 7),
        ('{"method":"tools/call","params":{"id":8,"text":"', '"},"jsonrpc":"2.0","id":"x"}', "x"),
        ('{"method":"tools/call","params":{"id":8,"text":"', '","id":9}}', None),
        ("", '"id":', None),
    ],
)
def test_a_request_that_is_too_long_is_refused_by_its_id(head, tail, number):
    cutter = LineCutter(limit=1_000)
    (long,) = cutter.feed(f"{head}{'x' * 5_000}{tail}\n".encode())
    session = Session()
    session.relay.take_client_line(long)
    (refused,) = session.heard()
    assert refused["id"] == number
    assert refused["error"]["code"] == INVALID_REQUEST
    assert "send less at once" in refused["error"]["message"]
    assert session.deliver() == [PREFACE]


def test_nothing_is_kept_of_lines_that_were_answered():
    session = Session().begin()
    for number in range(1, 3_000):
        session.say(request(number, text="x" * 1_000)).reply(answer(number, text="y" * 1_000))
        session.deliver()
        session.heard()
    assert len(session.relay._backlog) < 300
    session.relay.catch_up()
    assert not session.relay._backlog
    assert not session.relay._open
