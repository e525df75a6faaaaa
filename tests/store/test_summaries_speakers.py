from hypothesis import given
from hypothesis import strategies as st

from memd.models import Authority
from memd.store.summaries import derive_authority, fold_topic, imported_authority
from tests.tables import every_row

HAND, PROMPT, _, CALL, TEXT, TOOL = sorted(Authority, reverse=True)


@every_row(
    ("source", "kind", "rule", "body", "whose"),
    [
        ("user", "fact", "remembered", "It is so.", HAND),
        ("agent", "decision", "remembered", "User: “It is so.”", CALL),
        ("import:markdown", "note", "imported:file", "It is so.", TOOL),
        ("import:claude-memory", "note", "imported:file", "User: “It is so.”", CALL),
        ("import:somebody", "decision", "decision:stated", "User: “It is so.”", TEXT),
        ("codex", "decision", "decision:stated", "Assistant: “A”\nUser: “B”", PROMPT),
        ("codex", "decision", "decision:stated", "Assistant: “he said: User: “B””", TEXT),
        ("codex", "decision", "decision:stated", "Reviewer: “B”", TEXT),
        ("claude-code", "preference", "preference:my", "User: “My way.”", PROMPT),
        ("claude-code", "task", "task:todo", "User: “Later.”", PROMPT),
        ("claude-code", "instruction", "made-up", "User: “Do.”", TEXT),
        ("claude-code", "failure", "same-command", "User: “Do.”", TOOL),
        ("claude-code", "fix", "same-command", "User: “Do.”", TEXT),
        ("claude-code", "change", "turn, written by a model", "User: “Do.”", TEXT),
        ("claude-code", "session", "compaction", "User: “Do.”", TEXT),
    ],
)
def test_whose_word_a_memory_without_a_speaker_is(source, kind, rule, body, whose):
    assert derive_authority(source, kind, rule, body) is whose


@every_row(
    ("one", "other"),
    [
        ("build.command", "Build.Command"),
        ("BÜRO.ort", "büro.ORT"),
        ("straße", "STRASSE"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("ﬁle", "FILE"),
        ("İstanbul", "İSTANBUL"),
    ],
)
def test_topic_keys_that_differ_only_in_case_are_one(one, other):
    assert fold_topic(one) == fold_topic(other)


@given(st.text())
def test_a_folded_topic_key_stays_as_it_is(key):
    assert fold_topic(fold_topic(key)) == fold_topic(key)


@every_row("said", [None, "user", "agent", "tool"])
@every_row("source", ["import:markdown", "import:okf"])
def test_a_note_in_a_file_is_never_more_than_a_file(source, said):
    assert imported_authority(source, said) is TOOL


@every_row(
    "source",
    ["import:claude-mem", "import:codex-memory", "import:claude-memory", "import:whatever"],
)
def test_what_another_program_kept_is_never_the_users_word(source):
    assert imported_authority(source, "user") < PROMPT
    assert imported_authority(source) < PROMPT
