from memd.index.passages import ENTITIES_MAX, entities_of_summary, entities_of_text, is_name_in
from tests.factories import make_summary
from tests.tables import every_row


@every_row(
    ("text", "named"),
    [
        ("see memd/recall/fuse.py.", [("memd/recall/fuse.py", "file"), ("fuse.py", "file")]),
        ("in /etc/hosts and ~/notes", [("/etc/hosts", "file"), ("~/notes", "file")]),
        ("README.md says so", [("readme.md", "file")]),
        ("call decode_token()", [("decode_token", "symbol"), ("decode_token", "identifier")]),
        ("Matrix.top is slow", [("matrix.top", "symbol")]),
        ("getUserById and MAX_SIZE", [("getuserbyid", "identifier"), ("max_size", "identifier")]),
        ("@carol said no", [("carol", "person")]),
        ("Anna Lindqvist approved it", [("anna lindqvist", "person")]),
        ("ask Ben about it", [("ben", "person")]),
        ("reported by Ava", [("ava", "person")]),
        ("and/or, TCP/IP, 1.4, v2.0.1, e.g. this", []),
        ("The user wants tea. It said so. Monday told us.", []),
        ("Plain Words With Capitals", []),
        ("mail a@b.org", []),
        ("", []),
    ],
)
def test_what_a_text_names(text, named):
    assert list(entities_of_text(text)) == named


def test_a_memory_names_its_files_even_if_its_words_do_not():
    summary = make_summary("Fixed", "nothing more", files=("/a/app/login.py",))
    assert entities_of_summary(summary) == (("/a/app/login.py", "file"), ("login.py", "file"))


def test_a_flood_of_names_is_bounded():
    assert len(entities_of_text(" ".join(f"name_{i}" for i in range(999)))) == ENTITIES_MAX
    assert entities_of_text("x_" * 500) == ()


def test_a_question_names_an_entity_by_all_of_its_words():
    assert is_name_in("login.py", {"why", "login", "py"})
    assert is_name_in("anna lindqvist", {"anna", "lindqvist"})
    assert not is_name_in("anna lindqvist", {"anna"})
    assert not is_name_in("", {"anna"})


@every_row("unit", ["e+", "a-", "a::", "A::b", "a.", "/a", "@a", "a/", "~/", "A-", "_a ", "Ab "])
def test_a_text_of_one_thing_over_and_over_is_read_in_a_moment(unit):
    entities_of_text(unit * (600_000 // len(unit)))
