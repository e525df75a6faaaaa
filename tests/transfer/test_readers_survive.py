"""Every reader survives what clients may write next month: one suite, with a session in each client's own form.

Whatever is damaged, unknown, missing or absurd in a file: the import goes on, no event gets a time or a directory that the lines
do not say, and what was left out is counted.
"""

import copy
import json
import os
import tracemalloc

import anyio.to_thread
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.store import events as stored_events
from memd.store import projects
from memd.transfer import importer, transcripts
from tests.transfer import told_sessions as told
from tests.transfer.test_readers_alike import MUCH_LATER, read_files, store

FEWER = settings(max_examples=settings().max_examples // 3)
"""Each example writes and imports a file; there is one for each client."""
CHANGED = MUCH_LATER - 86_400_000
"""When the files were changed last: the time of events in a file that says none."""
END = told.at(12)
DOCUMENTS = {"gemini-cli as a document": told.gemini_document, "opencode": told.opencode}
TELLERS = {**told.TOLD_WHOLE, **told.TOLD_IN_PART, **DOCUMENTS}
LINED = [name for name in TELLERS if name not in DOCUMENTS]
TYPED = [name for name in LINED if name != "aider"]
"""Clients with a JSON object on each line."""
ROUGH = {"cursor", "aider"}
"""Clients that write the minute of a prompt or the second of a session, in the time of some place."""
PLACED = [name for name in LINED if name not in {"cursor", "aider", "gemini-cli", "pi"}]
"""Clients of whose lines several, and nothing else, say the directory."""
IDS = {"sessionId", "session_id", "id", "cwd", "directory", "parentID", "timestamp", "startTime", "created", "start", "end"}  # fmt: skip
ODD = [None, 0, -1, 1e300, True, [], {}, ["a", {"text": 3}], {"a": [{}]}, 10**20]
ODD_TEXTS = ["", "x", "\ud800", "\0", "<system-reminder>", "2026-13-45T99:99"]
ABSURD_TIMES = [
    "1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2199-01-01T00:00:00Z", "yesterday", "", 0, -5, 12, 1e300, 4_102_444_800_000,
]  # fmt: skip
JUNK = [
    b"", b"   ", b"\0\0\0", b"\xff\xfe{\xc3", b"null", b"7", b"[]", b"{}", b'"text"', b"{" * 60, b'{"a":' * 3_000, b"\xef\xbb\xbf{}",
    b'{"timestamp":' + b"9" * 5_000 + b"}", b'{"type":"zz-new"}', b'{"type":["user"]}', b'{"type":{}}', b'{"role":7}',
    b'{"type":"mode","sessionId":"another"}', b'{"type":"user","message":null}', b'{"type":"response_item","payload":[]}',
]  # fmt: skip


def other_forms(at):
    """The same moment as other programs write it."""
    iso = told.iso((at - told.START) // 10_000)
    return [at, str(at), at / 1000, at // 1000, at * 1000, at * 1_000_000, iso.replace("Z", "+00:00"),
            iso.replace("T", " "), iso[:-1] + "000000Z"]  # fmt: skip


def write(folder, files, damage=lambda text: text):
    """Write a session's files below a folder, the last one damaged."""
    *others, (name, text) = files
    told.write(folder, [*others, (name, "")])
    (folder / name).write_bytes(damage(text.encode()))
    os.utime(folder / name, (CHANGED // 1000, CHANGED // 1000))
    return folder


def read(name, folder):
    return read_files(name.partition(" ")[0], folder)


def split(raw):
    return raw.rstrip(b"\n").split(b"\n")


def join(lines):
    return b"\n".join(lines) + b"\n"


def change_field(value, chance):
    """Damage one field somewhere in an object: leave it out, or give it another type or another name."""
    while True:
        key = chance.choice(sorted(value) if isinstance(value, dict) else range(len(value)))
        if isinstance(value[key], dict | list) and value[key] and chance.random() < 0.7:
            value = value[key]
            continue
        how = chance.randrange(4)
        if how == 0:
            del value[key]
        elif how == 1 and isinstance(value, dict):
            value[f"{key}_v2"] = value.pop(key)
        elif how == 2 and isinstance(value, dict):
            value["zz"] = copy.deepcopy(chance.choice(ODD))
        else:
            value[key] = copy.deepcopy(chance.choice(ODD if key in IDS else ODD + ODD_TEXTS))
        return


def change_time(value, chance):
    """Give a line's time another form, or one that cannot be."""
    steps = {told.iso(step): step for step in range(13)}
    if isinstance(value, dict) and (step := steps.get(str(value.get("timestamp")))) is not None:
        value["timestamp"] = chance.choice(other_forms(told.at(step)) + ABSURD_TIMES)


def damage_lines(raw, chance):
    """Drop, double, swap, cut and change lines, and put others between."""
    lines = split(raw)
    for _ in range(chance.randrange(1, 12)):
        if not lines:
            break
        number = chance.randrange(len(lines))
        line, how = lines[number], chance.randrange(7)
        if how == 0:
            del lines[number]
        elif how == 1:
            lines.insert(number, line)
        elif how == 2:
            other = chance.randrange(len(lines))
            lines[number], lines[other] = lines[other], line
        elif how == 3:
            lines[number] = line[: chance.randrange(len(line) + 1)]
        elif how == 4:
            lines.insert(number, chance.choice(JUNK))
        else:
            lines[number] = change_line(line, chance, change_field if how == 5 else change_time)
    return join(lines)


def change_line(line, chance, change):
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return line
    if isinstance(value, dict) and value:
        change(value, chance)
    return json.dumps(value, ensure_ascii=bool(chance.randrange(2))).encode(errors="replace")


def damage_document(raw, chance):
    """Change fields of a document anywhere, or cut it."""
    value = json.loads(raw)
    for _ in range(chance.randrange(1, 12)):
        if value:
            change_field(value, chance)
    text = json.dumps(value).encode()
    return text if chance.randrange(4) else text[: chance.randrange(len(text))]


def is_within(at, name):
    slack = 16 * 3_600_000 if name in ROUGH else 0
    return told.START - slack <= at <= END + slack


@pytest.mark.parametrize("name", LINED)
@FEWER
@given(chance=st.randoms(use_true_random=False), is_before=st.booleans())
def test_no_damaged_line_moves_an_event_in_time_or_to_another_place(
    name, chance, is_before, tmp_path_factory
):
    def damage(raw):
        damaged = damage_lines(raw, chance)
        return damaged + raw if is_before else raw + damaged

    folder = tmp_path_factory.mktemp("sessions")
    whole, _ = read(name, write(folder, TELLERS[name]()))
    events, report = read(name, write(folder, TELLERS[name](), damage))
    assert not report.failed
    assert [one["at"] for one in events if not is_within(one["at"], name)] == []
    directory = whole[0]["directory"]
    assert {(one["directory"], one["payload"].get("cwd")) for one in events} == {(directory, directory)}  # fmt: skip
    session = whole[0]["payload"]["session_id"]
    assert {one["payload"]["session_id"] for one in events} == {session}


@pytest.mark.parametrize("name", TELLERS)
@FEWER
@given(chance=st.randoms(use_true_random=False))
def test_a_file_with_nothing_whole_in_it_tells_no_event_of_now_or_of_elsewhere(
    name, chance, tmp_path_factory
):
    damage = damage_document if name in DOCUMENTS else damage_lines
    folder = write(tmp_path_factory.mktemp("d"), TELLERS[name](), lambda raw: damage(raw, chance))
    events, report = read(name, folder)
    assert not report.failed or name in DOCUMENTS  # a document that was cut is none
    for one in events:
        assert is_within(one["at"], name) or one["at"] == CHANGED
        assert one["directory"] is None or one["directory"].endswith("/shop")


@pytest.mark.parametrize("name", LINED)
@FEWER
@given(raw=st.binary(max_size=400), cut=st.integers(0, 10_000))
def test_bytes_that_are_no_text_stop_no_reader(name, raw, cut, tmp_path_factory):
    def damage(whole):
        return whole[: cut % len(whole)] + raw

    events, report = read(name, write(tmp_path_factory.mktemp("b"), TELLERS[name](), damage))
    assert not report.failed
    assert all(is_within(one["at"], name) or one["at"] == CHANGED for one in events)


UNKNOWN_LINES = {
    "cursor": {"role": "zz-new", "message": {"content": []}},
    "gemini-cli": {"type": "zz-new", "id": "z", "content": "x"},
}
UNKNOWN = {"type": "zz-new", "zz": [1, {"a": None}], "sessionId": "elsewhere", "cwd": "/elsewhere", "payload": {"cwd": "/elsewhere"}}  # fmt: skip


def without_line_numbers(events):
    """The events without the ids that are made of line numbers, where the client has none."""
    told_again = []
    for one in events:
        payload = {k: v for k, v in one["payload"].items() if k not in {"uuid", "tool_use_id"}}
        told_again.append({**one, "payload": payload})
    return told_again


@pytest.mark.parametrize("name", TYPED)
def test_lines_of_an_unknown_type_change_nothing_and_are_counted_by_their_name(name, tmp_path):
    whole, _ = read(name, write(tmp_path / "whole", TELLERS[name]()))
    count = 0

    def insert(raw):
        nonlocal count
        unknown = json.dumps(UNKNOWN_LINES.get(name, UNKNOWN)).encode()
        lines = [one for line in split(raw) for one in (line, unknown)]
        count = len(lines) // 2
        # Before the head that says which session it is, some clients' lines belong to none.
        return join(lines if name in {"codex", "gemini-cli", "pi"} else [unknown, *lines[:-1]])

    events, report = read(name, write(tmp_path / "more", TELLERS[name](), insert))
    assert without_line_numbers(events) == without_line_numbers(whole)
    told_count = 1 if name == "gemini-cli" else count  # they have one id, so they are one message
    assert report.skipped["unknown line zz-new"] == told_count


@pytest.mark.parametrize("name", DOCUMENTS)
def test_messages_of_an_unknown_type_in_a_document_are_counted_by_their_name(name, tmp_path):
    whole, _ = read(name, write(tmp_path / "whole", TELLERS[name]()))

    def insert(raw):
        document = json.loads(raw)
        unknown = {"type": "zz-new", "id": "z"}
        if name == "opencode":
            document["messages"][1]["parts"].insert(0, unknown)
        else:
            document["messages"].insert(0, unknown)
        return json.dumps(document).encode()

    events, report = read(name, write(tmp_path / "more", TELLERS[name](), insert))
    assert events == whole
    assert report.skipped["unknown line zz-new"] == 1


TIMED = [name for name in TYPED if name != "cursor"]


def change_times(raw, change, lines=slice(None)):
    """Change the times of some of the lines."""
    objects = [json.loads(line) for line in split(raw)]
    for line in objects[lines]:
        for part in (line, *line.get("toolCalls", ())):
            if "timestamp" in part:
                part["timestamp"] = change(part["timestamp"])
    return join([json.dumps(line).encode() for line in objects])


@pytest.mark.parametrize("name", TIMED)
@pytest.mark.parametrize("absurd", ABSURD_TIMES)
def test_a_line_whose_time_cannot_be_is_of_the_time_of_the_line_before(name, absurd, tmp_path):
    def spoil(raw):
        return change_times(raw, lambda _: absurd, slice(2, None, 4))

    events, report = read(name, write(tmp_path, TELLERS[name](), spoil))
    assert all(is_within(one["at"], name) for one in events)
    assert report.skipped["a time that cannot be"] > 0


@pytest.mark.parametrize("name", TYPED)
def test_a_line_beyond_all_bounds_is_left_out_and_counted(name, tmp_path, monkeypatch):
    monkeypatch.setattr(importer, "TRANSCRIPT_LINE_BYTES_MAX", 20_000)
    whole, _ = read(name, write(tmp_path / "whole", TELLERS[name]()))

    def insert(raw):
        first, *others = split(raw)
        long = json.dumps({"type": "user", "role": "user", "content": "z" * 90_000}).encode()
        return join([first, long, *others])

    events, report = read(name, write(tmp_path / "more", TELLERS[name](), insert))
    assert without_line_numbers(events) == without_line_numbers(whole)
    assert report.skipped["line too long"] == 1


def test_a_line_of_a_hundred_megabytes_takes_no_more_memory_than_a_line_may_have(tmp_path):
    folder = write(tmp_path, told.claude_code())
    path = folder / "session.jsonl"
    whole = path.read_bytes()
    with path.open("wb") as file:
        file.write(whole[: whole.index(b"\n") + 1])
        file.seek(100 * 1024 * 1024, os.SEEK_CUR)
        file.write(b"\n" + whole[whole.index(b"\n") + 1 :])
    tracemalloc.start()
    try:
        events, report = read("claude-code", folder)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(events) == 9
    assert report.skipped == {"line too long": 1}
    assert peak < 2.5 * importer.TRANSCRIPT_LINE_BYTES_MAX


@pytest.mark.parametrize("name", TYPED)
async def test_a_line_that_stands_twice_is_stored_once(name, db, clock, tmp_path):
    whole, _ = await anyio.to_thread.run_sync(read, name, write(tmp_path / "w", TELLERS[name]()))
    await store(db, clock, tmp_path, whole)
    lines = split(list(TELLERS[name]())[-1][1].encode())
    orders = {"each at once": [line for line in lines for _ in range(2)]}
    if name != "cursor":  # its lines have no ids: what stands again further on was said again
        orders |= {f"{number} at the end": [*lines, line] for number, line in enumerate(lines)}
    for order, doubled in orders.items():
        folder = write(tmp_path / order, TELLERS[name](), lambda _, doubled=doubled: join(doubled))
        events, _ = await anyio.to_thread.run_sync(read, name, folder)
        if name == "cursor":
            assert len(events) == len(whole)
        else:
            assert "stored" not in await store(db, clock, tmp_path, events), order


async def test_a_queued_prompt_that_stands_twice_is_stored_once_live_and_by_import(
    db, clock, tmp_path
):
    queued = {
        "type": "attachment", "uuid": "q1", "sessionId": "c-1", "cwd": told.DIRECTORY, "timestamp": told.iso(3),
        "attachment": {"type": "queued_command", "prompt": "and use tabs there", "commandMode": "prompt"},
    }  # fmt: skip
    lines = current_session()
    lines[9:9] = [queued, queued]
    live = transcripts.TranscriptReader()
    read_live = [one for line in [*lines, queued] for one in live.feed(json.dumps(line))]
    followed = [{"payload": one.payload, "at": one.at, "source": "live", "client": "claude-code"} for one in read_live]  # fmt: skip
    await store(db, clock, tmp_path, followed)
    await import_sessions(db, clock, tmp_path, {"c-1.jsonl": [*lines, queued]})
    stored = await db.read(lambda tx: stored_events.events_by_ids(tx, range(1, 99)).values())
    prompts = [dict(one.payload).get("prompt") for one in stored]
    assert prompts.count("and use tabs there") == 1


@pytest.mark.parametrize("name", TELLERS)
@pytest.mark.parametrize("content", [b"", b"\n\n", b" ", b"\xef\xbb\xbf"])
def test_a_file_without_anything_in_it_tells_nothing(name, content, tmp_path):
    events, _ = read(name, write(tmp_path, TELLERS[name](), lambda _: content))
    assert events == []


@pytest.mark.parametrize("name", PLACED)
def test_lines_that_do_not_say_when_or_where_are_of_the_first_that_do(name, tmp_path):
    whole, _ = read(name, write(tmp_path / "whole", TELLERS[name]()))

    def strip(raw):
        lines = [json.loads(line) for line in split(raw)]
        for line in lines[:6]:
            line.pop("timestamp", None)
        for line in lines[:4] if name != "claude-code" else lines[:6]:
            for part in (line, line.get("payload"), line.get("data"), line.get("data", {}).get("context")):  # fmt: skip
                if isinstance(part, dict):
                    part.pop("cwd", None)
        if name == "copilot":
            lines.insert(7, {"type": "session.context_changed", "data": {"cwd": told.DIRECTORY}})
        return join([json.dumps(line).encode() for line in lines])

    events, _ = read(name, write(tmp_path / "less", TELLERS[name](), strip))
    assert len(events) == len(whole)
    assert {one["directory"] for one in events} == {told.DIRECTORY}
    assert all(is_within(one["at"], name) for one in events)
    assert events[0]["payload"]["prompt"] == told.ASKED


# ── Claude Code 2.1.205 and later, and other machines ────────────────────────────────────────────


def current_session(session="c-1", directory=told.DIRECTORY, title="Retry once more"):
    """A session as Claude Code 2.1.205 and later writes it: lines about the session first, and again between."""
    about = [
        {"type": "custom-title", "customTitle": title, "sessionId": session},
        {"type": "agent-name", "agentName": title, "sessionId": session},
        {"type": "mode", "mode": "normal", "sessionId": session},
        {"type": "last-prompt", "leafUuid": "u0", "sessionId": session},
        {"type": "permission-mode", "permissionMode": "auto", "sessionId": session},
        {"type": "zz-new", "sessionId": session},
    ]
    ((_, text),) = told.claude_code(session)
    lines = [{**json.loads(line), "cwd": directory} for line in text.splitlines()]
    return [*about, *lines[:3], *about, *lines[3:], *about[:2]]


async def import_sessions(db, clock, tmp_path, files):
    """Import these files of Claude Code; return {session: (project's key and name, title, first and last event)}."""
    for name, lines in files.items():
        path = tmp_path / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        os.utime(path, (CHANGED // 1000, CHANGED // 1000))
    events, report = await anyio.to_thread.run_sync(read_files, "claude-code", tmp_path / "files")
    assert not report.failed
    await store(db, clock, tmp_path, events)

    def look(tx):
        found = {}
        for one in stored_events.events_by_ids(tx, range(1, 1_000)).values():
            session = projects.session(tx, one.session_id)
            place = projects.project(tx, session.project_id)
            _, times = found.setdefault(session.key, ((place.key, place.name, session.title), []))
            times.append(one.at)
        return {key: (*place, min(times), max(times)) for key, (place, times) in found.items()}

    return await db.read(look)


async def test_a_session_that_begins_with_its_title_is_of_the_time_and_project_of_its_lines(
    db, clock, tmp_path
):
    found = await import_sessions(db, clock, tmp_path, {"c-1.jsonl": current_session()})
    assert found == {"c-1": (told.DIRECTORY, "shop", "Retry once more", told.START, told.at(11))}


@pytest.mark.parametrize(
    ("directories", "key"),
    [
        (["D:\\oh-my-posh", "D:\\oh-my-posh\\src", "d:\\oh-my-posh", "D:/oh-my-posh"], "D:\\oh-my-posh"),
        (["c:/work/shop/", "C:\\work\\shop", "\\\\?\\C:\\work\\shop", "C:\\work\\x\\..\\shop"], "C:\\work\\shop"),
        (["\\\\server\\share\\shop", "\\\\?\\UNC\\server\\share\\shop"], "\\\\server\\share\\shop"),
        (["/Users/somebody/src/shop", "/Users/somebody/src/shop/web"], "/Users/somebody/src/shop"),
    ],
)  # fmt: skip
async def test_a_session_of_another_machine_forms_one_project_by_its_own_path(
    directories, key, db, clock, tmp_path
):
    lines = current_session(directory=directories[0])
    for number, line in enumerate(line for line in lines if "cwd" in line):
        line["cwd"] = directories[number % len(directories)]
    found = await import_sessions(db, clock, tmp_path, {"c-1.jsonl": lines})
    assert found["c-1"][:2] == (key, key.replace("\\", "/").rpartition("/")[2])
    elsewhere = await db.read(
        lambda tx: [
            one for one in stored_events.events_by_ids(tx, range(1, 99)).values()
            if "elsewhere" in json.dumps(dict(one.payload))
        ]
    )  # fmt: skip
    assert not elsewhere
    assert len(await db.read(projects.projects)) == len({key})


async def test_a_title_of_a_session_that_is_in_another_file_makes_no_session(db, clock, tmp_path):
    alone = [{"type": "custom-title", "customTitle": "Elsewhere", "sessionId": "c-9"}]
    files = {"c-1.jsonl": [*alone, *current_session()], "c-9.jsonl": alone}
    found = await import_sessions(db, clock, tmp_path, files)
    assert set(found) == {"c-1"}


async def test_a_title_before_a_private_turn_is_left_out_with_it(db, clock, tmp_path):
    lines = current_session(title="Visit to the clinic")
    for line in lines:
        if line["type"] == "user" and isinstance(line["message"]["content"], str):
            line["message"]["content"] = f"<private>{line['message']['content']}</private>"
    found = await import_sessions(db, clock, tmp_path, {"c-1.jsonl": lines})
    assert {title for *_, title, _, _ in found.values()} <= {None}


async def test_a_directory_that_is_no_path_places_no_session(db, clock, tmp_path):
    lines = current_session()
    for line, odd in zip([line for line in lines if "cwd" in line], ["src", ".", "~/x", "C:x", "a\0b", "/" + "x" * 5_000]):  # fmt: skip # noqa: B905  # as many as there are
        line["cwd"] = odd
    found = await import_sessions(db, clock, tmp_path, {"c-1.jsonl": lines})
    assert found["c-1"][0] == told.DIRECTORY
