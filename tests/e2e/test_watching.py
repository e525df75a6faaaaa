"""Watched folders are followed as they change, as Covalence's file memories are: real files, a real daemon.

Source: Covalence, "File — auto-indexed from a watched folder … the title is the file path … recency uses the file's
modification date, not when Covalence indexed it."
"""

import sys

import pytest

from tests.e2e.real_daemon import RealDaemon

WITHOUT_LIBRARY = """
import sys
sys.modules["watchfiles"] = None
from memd.daemon import client_notes
client_notes._POLL_S = 0.1
from memd.__main__ import main
sys.exit(main())
"""


def make_repository(place):
    (place / ".git").mkdir()
    (place / ".git" / "HEAD").write_text("ref: refs/heads/main\n")


class PollingDaemon(RealDaemon):
    """A daemon on a machine where the library that tells of changes is not installed."""

    def command(self, *words):
        return [sys.executable, "-c", WITHOUT_LIBRARY, *words]


class Watched:
    """A daemon and what it shows of a folder."""

    def __init__(self, daemon):
        self.daemon = daemon

    def folder(self, name):
        place = self.daemon.home / name
        place.mkdir(parents=True)
        return place

    def memd(self, *words):
        return self.daemon.run(*words).stdout.decode()

    def holding(self, place):
        """Text → memory of all that holds in the project of a folder."""
        with self.daemon.client() as client:
            where = {"directory": str(place), "project": "current"}
            found = client.call("memd/list", {"limit": 100, **where})["memories"]
            return {one["body"].strip(): one for one in found}

    def until(self, place, *texts):
        self.daemon.wait_for(lambda: set(self.holding(place)) == set(texts))
        return self.holding(place)

    def room(self):
        return next(one for one in self.daemon.status()["rooms"] if one["name"] == "notes")


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    pytest.importorskip("watchfiles")
    daemon = RealDaemon(tmp_path_factory.mktemp("w"))
    daemon.start()
    yield Watched(daemon)
    daemon.stop()


def test_where_nothing_tells_of_changes_the_folder_is_looked_at(tmp_path):
    daemon = PollingDaemon(tmp_path)
    daemon.start()
    here = Watched(daemon)
    place = here.folder("polled")
    here.memd("watch", str(place))
    (place / "a.md").write_text("The queue is drained at night.")
    here.until(place, "The queue is drained at night.")
    (place / "a.md").unlink()
    here.until(place)
    daemon.stop()


def test_a_file_that_is_new_changed_or_deleted_is_followed_and_retired_not_erased(here):
    place = here.folder("follow")
    (place / "deploy.md").write_text("We deploy on Fridays only.")
    here.memd("watch", str(place))
    (one,) = here.until(place, "We deploy on Fridays only.").values()
    assert (one["title"], one["tier"], one["source"]) == ("deploy.md", "file", "import:markdown")
    assert abs(one["at"] - (place / "deploy.md").stat().st_mtime_ns // 1_000_000) < 2_000
    (place / "deploy.md").write_text("We deploy on Mondays only.")
    here.until(place, "We deploy on Mondays only.")
    (place / "sub").mkdir()
    (place / "sub" / "new.txt").write_text("The staging database is rebuilt each night.")
    here.until(place, "We deploy on Mondays only.", "The staging database is rebuilt each night.")
    (place / "deploy.md").unlink()
    here.until(place, "The staging database is rebuilt each night.")
    with here.daemon.client() as client:
        (gone,) = client.call("memd/get", {"ids": [one["id"]]})["memories"]
    assert gone["body"].strip() == "We deploy on Fridays only."


def test_what_is_ignored_stays_out_and_what_is_ignored_later_is_retired(here):
    place = here.folder("ignore")
    make_repository(place)
    (place / ".gitignore").write_text("private/\n")
    (place / "private").mkdir()
    (place / "private" / "diary.md").write_text("Nobody reads this diary.")
    (place / "open.md").write_text("Releases are tagged by hand.")
    (place / "draft.md").write_text("Perhaps we move to Rust.")
    here.memd("watch", str(place))
    here.until(place, "Releases are tagged by hand.", "Perhaps we move to Rust.")
    (place / ".gitignore").write_text("private/\ndraft.md\n")
    here.until(place, "Releases are tagged by hand.")


def test_a_followed_folder_is_listed_with_the_project_that_its_notes_go_to(here):
    place = here.folder("handbook")
    make_repository(place)
    notes = here.folder("handbook/notes")
    (notes / "a.md").write_text("Invoices are sent on the first.")
    assert f"{notes} (project handbook):" in here.memd("watch", str(notes))
    here.until(place, "Invoices are sent on the first.")
    assert f"{notes} (project handbook): 1 note\n" in here.memd("watch", "--list")


def test_secrets_in_a_watched_file_are_redacted_and_its_words_are_not_the_users(here):
    place = here.folder("secret")
    (place / "keys.md").write_text('The staging key is AKIAIOSFODNN7QRSTUVW, "as I told you".')
    here.memd("watch", str(place))
    here.daemon.wait_for(lambda: here.holding(place))
    (one,) = here.holding(place).values()
    assert "AKIA" not in one["body"]
    assert one["speaker"] == "tool"


def test_a_restart_goes_on_watching_and_sees_what_changed_meanwhile(here):
    place = here.folder("restart")
    (place / "a.md").write_text("The cache lives for an hour.")
    here.memd("watch", str(place))
    here.until(place, "The cache lives for an hour.")
    here.daemon.stop()
    (place / "a.md").write_text("The cache lives for a day.")
    (place / "b.md").write_text("Logs are kept for a week.")
    here.daemon.start()
    here.until(place, "The cache lives for a day.", "Logs are kept for a week.")


def test_a_folder_that_is_not_there_loses_nothing_and_status_and_doctor_say_so(here):
    place = here.folder("disk")
    (place / "a.md").write_text("Backups go to the second disk.")
    here.memd("watch", str(place))
    here.until(place, "Backups go to the second disk.")
    place.rename(place.with_name("unplugged"))

    def state():
        states = {one["path"]: one["state"] for one in here.room()["watched"]}
        return states.get(str(place))

    here.daemon.wait_for(lambda: state() == "not there")
    assert f"{place}: not there" in here.memd("status")
    assert f"{place}: not there" in here.memd("status", "--verbose")
    assert f"{place}: not there" in here.daemon.run("doctor").stdout.decode()
    place.with_name("unplugged").rename(place)
    here.daemon.wait_for(lambda: state() == "followed")
    here.until(place, "Backups go to the second disk.")


def test_a_folder_that_has_become_a_link_leads_nowhere_else(here):
    place, other = here.folder("linked"), here.folder("private")
    (place / "a.md").write_text("Wombats are counted in May.")
    (other / "b.md").write_text("The private wombat number is 4711.")
    here.memd("watch", str(place))
    here.until(place, "Wombats are counted in May.")
    place.rename(place.with_name("moved"))
    place.symlink_to(other)
    here.daemon.wait_for(
        lambda: (
            {"not there"}
            == {one["state"] for one in here.room()["watched"] if one["path"] == str(place)}
        )
    )
    with here.daemon.client() as client:
        found = client.call("memd/search", {"query": "wombat", "project": "all"})["hits"]
    assert [one["body"].strip() for one in found] == ["Wombats are counted in May."]


def test_headings_make_memories_of_their_own(here):
    """ClawMem: "each heading creates a separate fragment that can be embedded and retrieved independently"."""
    place = here.folder("headings")
    (place / "ops.md").write_text("# Deploy\nFridays only.\n\n# Rollback\nUse the last tag.\n")
    here.memd("watch", str(place))
    assert len(here.until(place, "# Deploy\nFridays only.\n\n# Rollback\nUse the last tag.")) == 1
    here.memd("watch", str(place), "--headings")
    found = here.until(place, "# Deploy\nFridays only.", "# Rollback\nUse the last tag.")
    assert {one["title"] for one in found.values()} == {"ops.md › Deploy", "ops.md › Rollback"}


def test_quality_is_measured_and_front_matter_adds_a_fifth(here):
    """ClawMem: headings, lists and "we decided" score near the top; "Frontmatter adds 0.2 to the quality score"."""
    place = here.folder("quality")
    plain = "The build is slow."
    rich = "## Build\n\n- We decided on ninja because make rebuilt src/all.c each time.\n- Tests stay in ctest."
    (place / "plain.md").write_text(plain)
    (place / "rich.md").write_text(rich)
    (place / "same.md").write_text(f"---\ntitle: Builds\n---\n{rich} Yes.")
    here.memd("watch", str(place))
    found = here.until(place, plain, rich, f"{rich} Yes.")
    quality = {one["title"].partition(":")[0]: one["quality"] for one in found.values()}
    assert quality["plain.md"] < 0.3
    assert quality["rich.md"] > 0.6
    assert quality["same.md"] == pytest.approx(quality["rich.md"] + 0.2, abs=0.02)


def test_a_folder_that_is_watched_no_more_keeps_what_was_read(here):
    place = here.folder("stop")
    (place / "a.md").write_text("Tests run before each commit.")
    here.memd("watch", str(place))
    here.until(place, "Tests run before each commit.")
    assert f"{place} (project stop): 1 note" in here.memd("watch", "--list")
    here.memd("watch", "--remove", str(place))
    assert str(place) not in here.memd("watch", "--list")
    (place / "a.md").write_text("Tests run never.")
    looks = here.room()["looks"]
    here.daemon.wait_for(lambda: here.room()["looks"] > looks + 1) if here.room()[
        "watched"
    ] else None
    assert list(here.holding(place)) == ["Tests run before each commit."]


def test_only_the_user_says_what_is_watched(here):
    place = here.folder("agent")
    done = here.daemon.run("watch", str(place), environ={"CLAUDECODE": "1"})
    assert done.returncode == 1
    assert b"memd watch" in done.stderr


def test_a_folder_of_a_project_that_is_switched_off_is_left_alone(here):
    place = here.folder("off")
    (place / "a.md").write_text("Nothing of this is kept.")
    make_repository(place)
    here.memd("switch", "off", "--project", str(place))
    here.memd("watch", str(place))
    here.daemon.wait_for(
        lambda: any(
            one["path"] == str(place) and "off" in one["state"] for one in here.room()["watched"]
        )
    )
    assert here.holding(place) == {}
