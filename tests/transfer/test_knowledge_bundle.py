"""A vault as a folder of notes: what stands there, what a second export changes, and what it must not touch."""

import os
import re

import pytest

from memd.capture.redact import redact_value
from memd.errors import BadRequest
from memd.store.database import Database
from memd.transfer import sources
from memd.transfer.knowledge_bundle import BundleReport, export_bundle
from memd.transfer.record import ReadIssues
from memd.transfer.yaml_head import read_head
from tests.export_records import AT, fill, project, summary, supersession

OLD, NEW, RULE, GONE = ("1" * 32, "2" * 32, "3" * 32, "4" * 32)
KEY = "AKIAIOSFODNN7EXAMPLE"


@pytest.fixture
def vault(tmp_path):
    return fill(
        tmp_path / "vault.db",
        [
            project(),
            project("global", name="global", reason="x"),
            summary(OLD, session=None, episode=None, title="Sessions live in SQLite"),
            summary(NEW, session=None, episode=None, title="Sessions live in Redis"),
            summary(GONE, session=None, episode=None, title="For a day", expires_at=AT),
            summary(
                RULE, session=None, episode=None, project="global", kind="instruction", authority=5,
                title="Nie freitags deployen / ../../etc", body=f"key {KEY}",
            ),
            supersession(NEW, OLD),
        ],
    )  # fmt: skip


def export(vault, target, **more):
    return export_bundle(vault, target, redact_value, AT, **more)


def change(vault, sql, *values):
    db = Database(vault, AT)
    try:
        db.write_now(lambda tx: tx.execute(sql, values))
    finally:
        db.close()


def tree(target):
    return {
        path.relative_to(target).as_posix(): path.read_bytes()
        for path in target.rglob("*")
        if path.is_file()
    }


LEDGER = {
    f"ledger/sessions-live-in-sqlite-{'1' * 12}.md",
    f"ledger/sessions-live-in-redis-{'2' * 12}.md",
}
GLOBAL = f"global/nie-freitags-deployen-etc-{'3' * 12}.md"


def test_a_vault_becomes_a_bundle_that_conforms_to_the_format(vault, tmp_path):
    target = tmp_path / "notes"
    assert export(vault, target) == BundleReport(written=6)
    found = tree(target)
    assert set(found) == {*LEDGER, GLOBAL, "index.md", "ledger/index.md", "global/index.md"}
    for path, content in found.items():
        head = read_head(content.decode())
        is_listing = path.endswith("index.md")
        assert (head is None) is (is_listing and "/" in path), path
        assert is_listing or head.fields["type"]
        for link in re.findall(r"\]\(([^)]*)\)", content.decode()):
            base = target if link.startswith("/") else (target / path).parent
            assert (base / link.lstrip("/")).exists(), (path, link)
    assert b'okf_version: "0.2"' in found["index.md"]
    listing = found["ledger/index.md"].decode()
    assert (
        f"# Decision\n\n* [Sessions live in Redis](sessions-live-in-redis-{'2' * 12}.md) - Because"
        in listing
    )
    assert "SQLite" not in listing, "what is superseded is no entry"
    older, newer = (found[path].decode() for path in sorted(LEDGER, reverse=True))
    assert "status: deprecated" in older
    assert (
        f"Superseded by [Sessions live in Redis](/ledger/sessions-live-in-redis-{'2' * 12}.md)."
        in older
    )
    assert "Supersedes [Sessions live in SQLite]" in newer
    assert not any(KEY.encode() in content for content in found.values())
    assert (target / GLOBAL).stat().st_mode & 0o777 == 0o600


def test_a_second_export_changes_nothing_and_a_third_only_what_has_changed(vault, tmp_path):
    target = tmp_path / "notes"
    export(vault, target)
    before = tree(target)
    times = {path: (target / path).stat().st_mtime_ns for path in before}
    assert export(vault, target) == BundleReport(unchanged=6)
    assert tree(target) == before
    assert times == {path: (target / path).stat().st_mtime_ns for path in before}
    # A title that has become better: the file keeps its name, so that git shows two lines.
    change(vault, "UPDATE summaries SET title = 'Redis has the sessions' WHERE uid = ?", NEW)
    assert export(vault, target) == BundleReport(written=3, unchanged=3)
    assert set(tree(target)) == set(before)


def test_what_is_gone_from_the_vault_goes_and_what_people_wrote_stays(vault, tmp_path):
    target = tmp_path / "notes"
    export(vault, target)
    (target / "ledger" / "mine.md").write_text("---\ntype: Note\n---\nmine")
    (target / "ledger" / f"mine-{'5' * 12}.md").write_text("no head")
    (target / "ledger" / "index.md").write_text("# My own index\n")
    (target / "README.md").write_text("# Notes")
    change(vault, "DELETE FROM supersessions")
    change(vault, "DELETE FROM summaries WHERE uid IN (?, ?)", OLD, RULE)
    assert export(vault, target).removed == 2
    assert set(tree(target)) == {
        "index.md", "README.md", "ledger/index.md", "ledger/mine.md", f"ledger/mine-{'5' * 12}.md",
        f"ledger/sessions-live-in-redis-{'2' * 12}.md",
    }  # fmt: skip
    assert (target / "ledger" / "index.md").read_text() == "# My own index\n"


def test_one_project_is_written_without_the_others_and_leaves_theirs(vault, tmp_path):
    target = tmp_path / "notes"
    export(vault, target, project="ledger")
    assert set(tree(target)) == {*LEDGER, "ledger/index.md"}
    export(vault, target)
    assert export(vault, target, project="ledger").removed == 0
    assert GLOBAL in tree(target)
    with pytest.raises(BadRequest, match="there is no 'none'"):
        export(vault, target, project="none")


def test_projects_of_one_name_get_folders_of_their_own_and_are_told_by_their_keys(vault, tmp_path):
    change(vault, "UPDATE projects SET name = 'ledger'")
    export(vault, tmp_path / "notes")
    found = tree(tmp_path / "notes")
    folders = {path.partition("/")[0] for path in found if "/" in path}
    assert len(folders) == 2
    assert all(re.fullmatch(r"ledger-[0-9a-f]{8}", one) for one in folders)
    (rule,) = (text for path, text in found.items() if "nie-freitags" in path)
    assert b"\n  project: global\n" in rule


def test_no_link_in_the_folder_is_followed(vault, tmp_path):
    outside, target = tmp_path / "outside", tmp_path / "notes"
    outside.mkdir()
    target.mkdir()
    (target / "ledger").symlink_to(outside)
    with pytest.raises(BadRequest, match="ledger is not a folder"):
        export(vault, target)
    (target / "ledger").unlink()
    export(vault, target)
    victim = outside / "victim"
    victim.write_text("mine")
    note = target / GLOBAL
    note.unlink()
    note.symlink_to(victim)
    (target / "index.md").unlink()
    (target / "index.md").symlink_to(victim)
    export(vault, target)
    assert victim.read_text() == "mine"
    assert not note.is_symlink()
    assert list(outside.iterdir()) == [victim]
    (tmp_path / "linked").symlink_to(target)
    with pytest.raises(BadRequest, match="is not a folder"):
        export(vault, tmp_path / "linked")


def read_folder(target):
    """(what notes are found, what could not be read, why others were left out)."""
    source = sources.open_knowledge_source([target], {})
    issues = ReadIssues()
    found = [memory for file in source.files for memory, _ in file.read(issues)]
    return found, issues, source


def test_what_was_exported_is_found_again_but_for_what_no_longer_holds(vault, tmp_path):
    export(vault, tmp_path / "notes")
    found, issues, source = read_folder(tmp_path / "notes")
    assert {(one.uid, one.project, one.speaker) for one in found} == {
        (NEW, "ledger", "user"),
        (RULE, "global", "user"),
    }
    assert (issues.broken, issues.skipped) == ([], ["deprecated"])
    assert source.skipped == {"an index or a log": 3}


def test_what_is_no_note_is_left_out_with_its_reason_and_stops_nothing(tmp_path):
    (tmp_path / "good.md").write_text("---\ntype: Fact\n---\nThe port is 8080.")
    (tmp_path / "bad.md").write_text("---\ntitle: a\ntitle: b\n---\nx")
    (tmp_path / "none.md").write_text("# No head")
    (tmp_path / "binary.md").write_bytes(b"---\n\0\0\n---\nx")
    (tmp_path / "log.md").write_text("# Log")
    (tmp_path / "huge.md").write_bytes(
        b"---\na: b\n---\n" + b"x" * (sources.TEXT_FILE_BYTES_MAX + 1)
    )
    (tmp_path / "latin.md").write_bytes("---\ntitle: Größe\n---\nx".encode("latin-1"))
    (tmp_path / "passwd.md").symlink_to("/etc/passwd")
    (tmp_path / "up").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe.md")
    found, issues, source = read_folder(tmp_path)
    assert {one.title for one in found} == {"good", "Größe"}
    assert issues.broken == ["line 3: title stands here a second time"]
    assert issues.skipped == ["without a YAML head (`memd import markdown` reads it)"]
    assert source.skipped == {"a link": 2, "an index or a log": 1}
    assert len([said for said in source.messages if said.startswith("left out")]) == 2
