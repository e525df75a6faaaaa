import tomllib
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from memd.distill import assertions, own_words
from memd.distill.vetoes import OPAQUE
from tests.tables import every_row, read_tables

TABLES = read_tables("distill/own_words")

BELOW = tomllib.loads(
    (Path(__file__).parents[1] / "data" / "below.toml").read_text(encoding="utf-8")
)


def said(message):
    return [sentence.said for sentence in own_words.read_own_sentences(message)]


def shown(message):
    """What is left of a message, with one sign for each quotation."""
    (sentence,) = own_words.read_own_sentences(message)
    parts = sentence.bare.split(OPAQUE)
    return "…".join(
        part for number, part in enumerate(parts) if part or number in (0, len(parts) - 1)
    )


@every_row(("message", "left"), TABLES["quotations_code_and_tags_are_masked_and_nothing_else"])
def test_quotations_code_and_tags_are_masked_and_nothing_else(message, left):
    assert shown(message) == left


@every_row(
    ("message", "own"),
    TABLES["what_stands_around_a_paste_is_kept_only_if_it_is_clear_where_it_ends"],
)
def test_what_stands_around_a_paste_is_kept_only_if_it_is_clear_where_it_ends(message, own):
    assert said(message) == own


@every_row(
    ("message", "own"),
    [
        # What is reviewed stands elsewhere: only the order to review it goes.
        ("Review the plan. Never touch the importer.", ["Never touch the importer."]),
        # What is asked about stands below.
        (
            "Is this paragraph ok? Always use British spelling.\n\nOur colours never fade.",
            ["Always use British spelling."],
        ),
        (
            "Never use emojis in mails.\n\nShorten this text:\n\nWe always ship on Fridays.",
            ["Never use emojis in mails."],
        ),
        # It may stand above, or beside the question.
        (
            "We always ship on Fridays.\n\nProofread this mail. Never use emojis.",
            ["Never use emojis."],
        ),
        ("Proofread the mail.\n\nWe always ship on Fridays.", []),
        ("Explain this sentence. Always ship on Fridays.", []),
        ("Explain this sentence. From now on answer in German.", ["From now on answer in German."]),
    ],
)
def test_of_a_message_that_asks_about_text_what_is_no_part_of_it_is_kept(message, own):
    assert said(message) == own


@every_row(
    ("message", "own"),
    [
        ("Three things: never log mails. Keep it small.", ["never log mails.", "Keep it small."]),
        ("Aber: nie am Freitag. Sonst gern.", ["nie am Freitag.", "Sonst gern."]),
        ("Important: pas de tabs. Jamais.", ["pas de tabs.", "Jamais."]),
        ("In the simulator: always a fixed seed. Thanks!", [
            "In the simulator: always a fixed seed.", "Thanks!"]),
        ("Bei Fehlern: immer die Datei nennen. Danke.", [
            "Bei Fehlern: immer die Datei nennen.", "Danke."]),
        ("We agreed: no ORM. Plain SQL only.", ["We agreed: no ORM.", "Plain SQL only."]),
        # Here somebody, or a text, is named, or may be.
        ("Our auditor: never log mails. Keep it small.", ["Our auditor"]),
        ("Ole: nie am Freitag. Sonst gern.", ["Ole"]),
        ("and Priya: no ORM. Plain SQL only.", ["and Priya"]),
        ("In the changelog: always a date. Thanks!", ["In the changelog"]),
        ("Mir hat Ole geschrieben: nie am Freitag. Sonst gern.", ["Mir hat Ole geschrieben"]),
        ("She was plain: no ORM. Plain SQL only.", ["She was plain"]),
    ],
)  # fmt: skip
def test_a_lead_that_names_nobody_ends_nothing(message, own):
    assert said(message) == own


@every_row(
    ("head", "is_own"),
    [
        ("passing on this one from marek", False),
        ("our accountant texted me", False),
        ("Kommt von Ingrid aus Kiel", False),
        ("Petra meint", False),
        ("reçu de Jeanne", False),
        ("OPS-9", False),
        ("@marek", False),
        ("Lena Berg, 14:05 Uhr", False),
        ("r/selfhosted · 2d", False),
        ("fresh start", True),
        ("Zur Ablage", True),
        ("OPS-9 is merged", True),
        ("as I told you", True),
        ("moving from Jest to Vitest", True),
        ("Zurück von Postgres auf SQLite", True),
        ("Règles de déploiement", True),
        ("Standup at 09:30", True),
        ("@src/loader.py", True),
        ("from now on", True),
    ],
)
def test_what_stands_below_a_line_that_names_who_wrote_it_is_nobody_s_own(head, is_own):
    rule = "Never restart the broker by hand."
    messages = [f"{head}\n\n{rule}", f"{head}\n{rule}"]
    messages += [] if is_own else [f"Thanks!\n\n{head}\n\n{rule}"]
    for message in messages:
        typed = own_words.find_typed_paragraphs(message)
        for shown in (said(message), typed):
            assert is_own == (rule.rstrip(".") in " ".join(shown)), message


@every_row("row", BELOW["typed"])
def test_what_is_typed_below_output_or_code_is_the_user_s_own(row):
    assert row["words"] in " ".join(said(row["message"]))


@every_row("row", BELOW["pasted"])
def test_what_a_pasted_text_says_below_output_is_nobody_s_own(row):
    message, words = row["message"], " ".join(row["words"].split())
    typed = [*said(message), *own_words.find_typed_paragraphs(message)]
    assert words not in " ".join(" ".join(typed).split())


@every_row(
    ("message", "own"),
    [
        ("<log>\n<id>1</id>\n\nAlways push.\n\n</log>\n\nFix it.", ["Fix it."]),
        ("Rename a_b to c_d.\nRename e_f to g_h.", ["Rename a_b to c_d.", "Rename e_f to g_h."]),
        ("from now on:\n- squash each branch", ["squash each branch"]),
    ],
)
def test_a_tag_a_list_and_names_in_a_sentence_are_no_output(message, own):
    assert said(message) == own


def test_what_a_program_wrote_with_escaped_quotation_marks_is_nobody_s_own():
    rules = r"Rules:\n\n- Never begin with words like \"Excellent!\".\n- Always name the file that was changed."
    assert said(f"Sum up what you did in two sentences.\n\n{rules}".replace("\\n", "\n")) == []
    assert (
        said('Run `printf "\\"x\\""`. Never commit on Fridays.')[-1] == "Never commit on Fridays."
    )


def test_a_very_long_prompt_is_pasted():
    assert said("Never push to main. " * 100)
    assert said("Never push to main. " * 200) == []


@given(st.text(max_size=400))
def test_any_message_can_be_read(message):
    own = own_words.read_own_sentences(message)
    for sentence in own:
        assert len(sentence.text) == len(sentence.bare)
        assert 0 <= sentence.start <= len(sentence.bare)
        assertions.read_sentence(sentence)
    assert set(own_words.select_assertions(own)) <= set(own)


@every_row(
    "piece",
    ["“", "«", '"', "'", " 'a", "`", "``", "<a", "<a>", "</a>", ": ", "note: ", "- ", "* ", "a|", "always ", "we ", "if you ", "x=", "\n", "\n\n",
     "*a", "__a", "On ", "the docs ", "always use ", "I want you to ", ", and ", "e.g. ", "said ", "1. "],
)  # fmt: skip
def test_a_long_message_of_one_thing_is_read_once(piece):
    # Read once for each character, this would run into the suite's timeout.
    message = piece * (20_000 // len(piece))
    own = own_words.read_own_sentences(message)
    for sentence in own_words.select_assertions(own):
        assertions.read_sentence(sentence)


@every_row(
    ("line", "is_own"), TABLES["a_setting_with_prose_behind_its_value_is_said_and_not_pasted"]
)
def test_a_setting_with_prose_behind_its_value_is_said_and_not_pasted(line, is_own):
    assert said(line) == ([line] if is_own else [])
