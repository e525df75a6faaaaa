"""Notes with a YAML head: what they say, whose word it is, and heads that somebody made to do harm."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.errors import BadRequest
from memd.models import Kind
from memd.transfer import knowledge_notes, yaml_head
from memd.transfer.knowledge_notes import NoteLink, read_note, write_note
from memd.transfer.yaml_head import read_head

AT = 1_790_000_000_123
UID = "0123456789abcdef0123456789abcdef"


def memory(**fields):
    return {
        "uid": UID, "kind": "decision", "title": "Deploy on Fridays only", "tags": ["deploy", "ci/cd, x"],
        "files": ["src/app.py"], "body": "The pipeline is slow.\n\n- but steady", "at": AT, "expires_at": None,
        "topic_key": "deploy.day", "authority": 4,
    } | fields  # fmt: skip


def read_one(text, path="a/b.md"):
    (found,), reason = read_note(path, text, 7)
    assert reason == ""
    return found


def test_a_memory_reads_in_git_as_a_person_would_write_it():
    note = write_note(memory(), "ledger", [NoteLink("Any [day]", "ledger/any-day.md")], [])
    assert note == (
        "---\n"
        "type: Decision\n"
        "title: Deploy on Fridays only\n"
        "description: The pipeline is slow.\n"
        'tags: [deploy, "ci/cd, x"]\n'
        'generated: { by: "human:user", at: 2026-09-21T14:13:20.123Z }\n'
        "memd:\n"
        f'  id: "{UID}"\n'
        "  project: ledger\n"
        "  speaker: user\n"
        "  topic: deploy.day\n"
        "  files: [src/app.py]\n"
        "---\n"
        "The pipeline is slow.\n\n- but steady\n"
        "\n<!-- memd: links -->\n\nSupersedes [Any \\[day\\]](/ledger/any-day.md).\n"
    )
    found = read_one(note)
    assert (found.title, found.text, found.kind) == (
        "Deploy on Fridays only", "The pipeline is slow.\n\n- but steady", Kind.DECISION,
    )  # fmt: skip
    assert (found.tags, found.files, found.at) == (("deploy", "ci/cd, x"), ("src/app.py",), AT)
    assert (found.uid, found.project, found.speaker) == (UID, "ledger", "user")
    assert (found.topic_key, found.line, found.part) == ("deploy.day", 14, "")


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)


@given(TEXTS, TEXTS, st.lists(TEXTS, max_size=3), TEXTS, st.sampled_from([1, 2, 3, 4, 5]))
def test_whatever_a_memory_says_comes_back_from_its_note(title, body, files, topic, authority):
    title = " ".join(title.split())[:60] or "x"
    body = "\n".join(body.splitlines()).strip("\n") or "x"
    said = memory(title=title, body=body, files=files, topic_key=topic, authority=authority)
    found = read_one(write_note(said, title, [], [NoteLink(title, "x.md")] * 0))
    assert found.title == title
    assert "\n".join(found.text.splitlines()).strip("\n") == body or not body.strip()
    assert (found.topic_key, found.project, found.kind) == (topic, title, Kind.DECISION)
    assert found.files == knowledge_notes.clean_files(files)
    assert found.speaker == {1: "tool", 2: "agent", 3: "agent", 4: "user", 5: "user"}[authority]


def test_a_body_that_has_the_mark_of_the_links_loses_nothing():
    body = f"One\n{knowledge_notes.LINKS_MARK}\nTwo"
    assert read_one(write_note(memory(body=body), "x", [], [])).text == body
    assert read_one(write_note(memory(body=body), "x", [NoteLink("a", "b")], [])).text == body


def test_what_was_superseded_is_marked_and_not_imported():
    note = write_note(memory(), "ledger", [], [NoteLink("Any day", "ledger/any.md")])
    assert "\nstatus: deprecated\n" in note
    assert "Superseded by [Any day](/ledger/any.md)." in note
    assert read_note("a.md", note, 7) == ([], "deprecated")


def test_a_note_that_somebody_wrote_is_read_and_is_nobody_s_word_unless_it_says_so():
    note = (
        "\ufeff---\r\ntype: Playbook\r\ntitle: 'Data: fresh'\r\ntags:\r\n  - oncall\r\n  - \"#sql\"\r\n"
        "verified: { by: human:ann, at: 2026-01-01T00:00:00Z }\r\nstale_after: 2027-01-01T00:00:00Z\r\n"
        "unknown: [1, {a: b}]\r\n---\r\n\r\n# Steps\r\n\r\n1. Look.\r\n"
    )
    found = read_one(note)
    assert (found.title, found.text, found.kind) == (
        "Data: fresh",
        "# Steps\n\n1. Look.",
        Kind.NOTE,
    )
    assert found.tags == ("oncall", "sql", "Playbook")
    assert (found.speaker, found.uid, found.project, found.at) == ("agent", None, None, 7)
    assert found.expires_at == 1_798_761_600_000
    own = read_one(
        '---\ntype: Fact\ngenerated: {by: "human:ann", at: 2026-01-02T00:00:00Z}\n---\nx'
    )
    assert (own.speaker, own.at, own.kind, own.title) == ("user", 1_767_312_000_000, Kind.FACT, "b")


def test_a_long_note_is_a_memory_for_each_section_and_a_described_one_needs_no_body():
    words = "The wheel turns at a steady speed. " * 60
    found, _ = read_note("n.md", f"---\ntitle: Wheels\n---\n# A\n{words}\n# B\n{words}", 7)
    assert [(one.title, one.part, one.line) for one in found] == [
        ("Wheels › A", "A", 4),
        ("Wheels › B", "B", 6),
    ]
    assert read_one("---\ndescription: One row an order.\n---\n").text == "One row an order."
    assert read_note("n.md", "---\ntype: Fact\n---\n\n", 7) == ([], "empty")
    assert "memd import markdown" in read_note("n.md", "# No head\n", 7)[1]


LAUGHS = "a: &a [x, x]\n" + "".join(
    f"{new}: &{new} [*{old}, *{old}, *{old}, *{old}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (LAUGHS, "line 2: anchors"),
        ("a: x\nb: *a\n", "line 3: "),
        ("<<: *x\n", "line 2: "),
        ("title: !!python/object/apply:os.system ['true']\n", "line 2: tags"),
        ("title: !!binary aGk=\n", "line 2: tags"),
        ("type: Fact\ntitle: !x y\n", "line 3: tags"),
        ("type: Fact\ntitle: a\ntitle: b\n", "line 4: title stands here a second time"),
        ("memd: {id: a, id: b}\n", "line 2: id stands here a second time"),
        ("a: " + "[" * 9 + "]" * 9 + "\n", "line 2: nested"),
        ("a: " + "[" * 30_000 + "\n", "line 2: nested"),
        ("a: " + "{b: " * 10_000 + "\n", "line 2: nested"),
        ("a: [" + "x," * 3_000 + "]\n", "line 2: more than 2000 values"),
        ("- a\n- b\n", "line 2: the head is no list"),
        ("just words\n", "line 2: the head is no list"),
        ("[a]: b\n", "line 2: the name of a field"),
        ("a: 1\n%TAG ! x\n", "line 4: no YAML"),
        ("title: 'open\n", "line 3: no YAML"),
        ("title: a: b\n", "line 2: no YAML"),
        ("a: b\n\tc: d\n", "line 3: no YAML"),
        ("title: a\x00b\n", "line 2: a character"),
        ("a: 1\n\n# c\ntitle: \x1b[31m\n", "line 5: a character"),
        ('title: "\\UFFFFFFFF"\n', "line 2: the head has a number"),
        ("%YAML 1." + "9" * 5_000 + "\n--- \na: b\n", "line 2: "),
        ("title: [a]\n", "line 2: title is to be a text"),
        ("type: {a: b}\n", "line 2: type is to be a text"),
        ("x: 1\ntags: [{a: b}]\n", "line 3: tags is to be a list of texts"),
        ("memd: words\n", "line 2: memd is to have fields"),
        ("a: " + "x" * 140_000 + "\n", "line 1: the head is longer than 128 KiB"),
    ],
)
def test_a_hostile_head_is_refused_with_its_line(head, said):
    with pytest.raises(BadRequest) as refused:
        read_note("n.md", f"---\n{head}---\ntext\n", 7)
    assert str(refused.value).startswith(said)


def test_a_head_without_an_end_is_an_error_and_an_empty_one_is_none():
    with pytest.raises(BadRequest, match="line 1: the head that begins here with --- does not end"):
        read_note("n.md", "---\ntitle: a\n\ntext", 7)
    assert read_one("---\n---\ntext").text == "text"
    assert read_one("---\n# a comment\n---\ntext").text == "text"
    assert read_one("---\ntitle: ~\ntags: null\n...\ntext").title == "b"


def test_values_are_texts_whatever_yaml_takes_them_for():
    head = read_head("---\na: no\nb: 1_000\nc: 2026-01-02\nd: '~'\ne: |\n  x\n  y\n---\n")
    assert head is not None
    odd = read_head('---\na: "\\ud800"\n---\n')
    assert odd is not None
    assert odd.fields == {"a": "?"}
    assert head.fields == {"a": "no", "b": "1_000", "c": "2026-01-02", "d": "~", "e": "x\ny\n"}


@given(st.text(max_size=300))
def test_any_head_is_read_or_refused_with_a_line(head):
    try:
        found = read_head(f"---\n{head}\n---\nx")
    except BadRequest as error:
        assert re.match(r"line \d+: \w", str(error))  # noqa: PT017  # either is right
    else:
        assert found is not None
        json.dumps(found.fields)


def test_what_a_head_says_of_uid_and_speaker_is_taken_only_in_their_form():
    for uid in ("../../etc/passwd", UID.upper(), UID + "0", ""):
        assert read_one(f"---\nmemd:\n  id: '{uid}'\n  speaker: root\n---\nx").uid is None
    assert read_one("---\nmemd: {speaker: root}\n---\nx").speaker == "agent"
    assert yaml_head.HEAD_CHARACTERS_MAX < 200_000


def test_a_memory_of_as_many_and_as_long_paths_as_may_be_comes_back_whole():
    files = [f"{number:03}/{'ü' * 900}" for number in range(100)]
    tags = [f"{number} {'#' * 90}" for number in range(20)]
    found = read_one(write_note(memory(files=files, tags=tags), "ledger", [], []))
    assert (found.files, found.tags) == (tuple(files), tuple(tags))


def test_a_time_that_no_calendar_has_is_written_as_the_last_one():
    assert knowledge_notes._write_time(2**53) == "9999-12-31T23:59:59.999Z"
